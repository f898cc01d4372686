//! The device side for Rust programs: the committed PTX, the typed errors of a machine without CUDA, and, where there
//! is a device, its bytes against the host's.
#![cfg(feature = "cuda")]

use std::path::Path;

use half::{bf16, f16};
use ninfer_codec::cuda::{CudaCodec, CudaError, DeviceRows};
use ninfer_codec::{Error, Format, Plan, Tensor, TensorMut};

const SOURCES: [&str; 10] = [
    "ninfer_codec_ptx.cuh",
    "ninfer_codec.cuh",
    "common.cuh",
    "kernels.cuh",
    "status.cuh",
    "decode.cu",
    "quantize.cu",
    "rows.cu",
    "validate.cu",
    "explain.cu",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn ptx() -> String {
    std::fs::read_to_string(root().join("src/cuda/kernels.ptx")).unwrap()
}

#[test]
fn the_ptx_is_that_of_the_sources() {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for name in SOURCES {
        for byte in std::fs::read(root().join("kernels").join(name)).unwrap() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    let first = format!("// sources {hash:016x};");
    assert!(ptx().starts_with(&first), "src/cuda/kernels.ptx is stale: run kernels/tools/ptx.py");
}

#[test]
fn the_ptx_holds_every_kernel_and_needs_no_newer_device_or_driver_than_said() {
    let ptx = ptx();
    assert!(ptx.contains("\n.version 8.8\n") && ptx.contains("\n.target sm_80\n"));
    let list = std::fs::read_to_string(root().join("kernels/kernels.cuh")).unwrap();
    let names: Vec<&str> = list.split("X(").skip(1).filter_map(|rest| rest.split(',').next()).collect();
    assert_eq!(names.len(), 50);
    for name in names {
        assert!(ptx.contains(&format!(".visible .entry ninfer_codec_{name}(")), "no {name} in the PTX");
    }
}

#[test]
fn errors_say_what_is_missing() {
    assert_eq!(CudaError::NoDriver.to_string(), "there is no CUDA driver on this machine");
    let old = CudaError::DriverTooOld { driver: 12040, needed: 12090 };
    assert_eq!(old.to_string(), "the CUDA driver is of version 12.4, the kernels need 12.9");
    assert_eq!(CudaError::from(Error::EmptyRows), CudaError::Codec(Error::EmptyRows));
}

/// Opens the first device, or says loudly that the rest is skipped.
fn device(test: &str) -> Option<CudaCodec> {
    match CudaCodec::open(0) {
        Ok(codec) => Some(codec),
        Err(error @ (CudaError::NoDriver | CudaError::NoDevice | CudaError::DriverTooOld { .. })) => {
            // Past the test harness's capture, so that it is seen.
            use std::io::Write;
            let _ = writeln!(std::io::stderr().lock(), "SKIPPED {test}: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_machine_without_a_device_gets_a_typed_error() {
    if device("a_machine_without_a_device_gets_a_typed_error").is_some() {
        assert_eq!(CudaCodec::open(1 << 20).unwrap_err(), CudaError::NoDevice);
    }
}

/// Values from -1 to 1 with some structure.
fn source(elements: usize) -> Vec<f32> {
    (0..elements as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0).collect()
}

#[test]
fn the_device_gives_the_hosts_bytes() {
    let Some(codec) = device("the_device_gives_the_hosts_bytes") else { return };
    let stream = codec.stream().clone();
    for format in [Format::Q4G64F16S, Format::Q5G64F16S, Format::Q6G64F16S, Format::W8G32F16S] {
        let plan = Plan::new(format, format.layout(), &[300, 1000]).unwrap();
        let values = source(300_000);
        let mut payload = vec![0xa5; plan.payload_bytes() as usize];
        TensorMut::new(plan, &mut payload).unwrap().quantize(&values[..], 1000).unwrap();

        let device_values = stream.clone_htod(&values).unwrap();
        let mut device_payload = stream.clone_htod(&vec![0xa5u8; payload.len()]).unwrap();
        codec.quantize(&plan, &device_values, 1000, 0, 300, &mut device_payload).unwrap();
        assert!(stream.clone_dtoh(&device_payload).unwrap() == payload);
        codec.validate(&plan, &device_payload, 0, 300).unwrap();

        let tensor = Tensor::new(plan, &payload).unwrap();
        let mut host = vec![0.0f32; 300_000];
        tensor.decode(&mut host[..], 1000).unwrap();
        let mut out = stream.alloc_zeros::<f32>(300_000).unwrap();
        codec
            .decode(&plan, &device_payload, DeviceRows::Range { begin: 0, count: 300 }, &mut out, 1000)
            .unwrap();
        assert!(stream.clone_dtoh(&out).unwrap() == host);

        let rows = [299u64, 0, 7, 7];
        let list = stream.clone_htod(&rows[..]).unwrap();
        let mut host = vec![bf16::ZERO; 4000];
        tensor.decode_rows(&rows, &mut host[..], 1000).unwrap();
        let mut out = stream.alloc_zeros::<bf16>(4000).unwrap();
        codec.decode(&plan, &device_payload, DeviceRows::List(&list), &mut out, 1000).unwrap();
        assert!(stream.clone_dtoh(&out).unwrap() == host);

        let small = plan.with_rows(4).unwrap();
        let mut host = vec![0; small.payload_bytes() as usize];
        tensor.gather(&rows, &mut host).unwrap();
        let mut out = stream.alloc_zeros::<u8>(host.len()).unwrap();
        codec.gather(&plan, &device_payload, DeviceRows::List(&list), &mut out).unwrap();
        assert!(stream.clone_dtoh(&out).unwrap() == host);
    }
}

#[test]
fn the_device_refuses_what_the_host_refuses() {
    let Some(codec) = device("the_device_refuses_what_the_host_refuses") else { return };
    let stream = codec.stream().clone();
    let plan = Plan::new(Format::Q4G64F16S, Format::Q4G64F16S.layout(), &[2, 64]).unwrap();
    let mut payload = stream.alloc_zeros::<u8>(plan.payload_bytes() as usize).unwrap();
    let mut out = stream.alloc_zeros::<f16>(128).unwrap();
    let all = DeviceRows::Range { begin: 0, count: 2 };
    let codec_error = |result: Result<(), CudaError>| match result.unwrap_err() {
        CudaError::Codec(error) => error,
        other => panic!("{other}"),
    };
    assert_eq!(
        codec_error(codec.decode(&plan, &payload, DeviceRows::Range { begin: 0, count: 0 }, &mut out, 64)),
        Error::EmptyRows
    );
    assert_eq!(
        codec_error(codec.decode(&plan, &payload, DeviceRows::Range { begin: 1, count: 2 }, &mut out, 64)),
        Error::RowOutOfRange { row: 2, rows: 2 }
    );
    assert_eq!(
        codec_error(codec.decode(&plan, &payload, all, &mut out, 63)),
        Error::Stride { stride: 63, columns: 64 }
    );
    let mut values = source(128);
    values[65] = f32::NAN;
    let word = u64::from(values[65].to_bits());
    let device_values = stream.clone_htod(&values).unwrap();
    assert_eq!(
        codec_error(codec.quantize(&plan, &device_values, 64, 0, 2, &mut payload)),
        Error::NonFiniteSource { row: 1, column: 1, word }
    );
}
