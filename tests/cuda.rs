//! The device side for Rust programs: the committed PTX, the typed errors of a machine without CUDA, and, where there
//! is a device, its bytes against the host's. `kernels/shim/driver.sh` runs all of it on a CPU, against a stand-in for
//! the driver.
#![cfg(feature = "cuda")]

use std::io::Write;
use std::path::Path;

use cudarc::driver::{DeviceRepr, ValidAsZeroBits};
use half::{bf16, f16};
use ninfer_codec::cuda::{CudaCodec, CudaError, DeviceRows, DeviceValue, Pending};
use ninfer_codec::{Error, Format, Output, Plan, Tensor, TensorMut, WordsMut};

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
    let bad = CudaError::Misaligned { address: 0x1002, multiple: 4 };
    assert_eq!(bad.to_string(), "the device pointer 0x1002 is not a multiple of 4");
    assert_eq!(CudaError::from(Error::EmptyRows), CudaError::Codec(Error::EmptyRows));
}

/// Says loudly that something was not tried: past the test harness's capture.
fn skipped(test: &str, why: &dyn std::fmt::Display) {
    // In one write, on a line of its own: other tests write too.
    let _ = std::io::stderr().write_all(format!("\nSKIPPED {test}: {why}\n").as_bytes());
}

/// Opens the first device, or says that the rest is skipped.
fn device(test: &str) -> Option<CudaCodec> {
    match CudaCodec::open(0) {
        Ok(codec) => Some(codec),
        Err(error @ (CudaError::NoDriver | CudaError::NoDevice | CudaError::DriverTooOld { .. })) => {
            skipped(test, &error);
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

/// A type that the device decodes to, and its bits for comparing.
trait Value: DeviceValue + DeviceRepr + ValidAsZeroBits + Default + Copy {
    fn bits(self) -> u64;
}

macro_rules! values {
    ($($value:ty),*) => {$(
        impl Value for $value {
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
    )*};
}

values!(f32, bf16, f16, f64);

fn bits<T: Value>(values: &[T]) -> Vec<u64> {
    values.iter().map(|value| value.bits()).collect()
}

/// Values from -1 to 1 with some structure.
fn source(elements: usize) -> Vec<f32> {
    (0..elements as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0).collect()
}

fn plan(format: Format, rows: u64, columns: u64) -> Plan {
    Plan::new(format, format.layout(), &[rows, columns]).unwrap()
}

/// A payload with some structure, whose scale and divisor words are legal.
fn payload(plan: &Plan) -> Vec<u8> {
    let bytes = plan.payload_bytes() as u32;
    let mut payload: Vec<u8> = (0..bytes).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let scales = plan.scales().offset as usize..(plan.scales().offset + plan.scales().bytes) as usize;
    match plan.format() {
        Format::Bf16 | Format::Fp32 | Format::I32 => {}
        Format::Nvfp4 => {
            let divisor = scales.end;
            payload[scales].iter_mut().for_each(|scale| *scale = (*scale & 0x7f).min(0x7e));
            payload[divisor..].copy_from_slice(&3.0f32.to_bits().to_le_bytes());
        }
        _ => payload[scales].as_chunks_mut::<2>().0.iter_mut().for_each(|scale| scale[1] &= 0x3f),
    }
    payload
}

/// Decodes all rows of a payload at an odd address, then a list of them with a stride; compares with the host.
fn decode<T: Value>(codec: &CudaCodec, plan: &Plan)
where
    for<'a> Output<'a>: From<&'a mut [T]>,
{
    let stream = codec.stream().clone();
    let payload = payload(plan);
    let tensor = Tensor::new(*plan, &payload).unwrap();
    let odd = stream.clone_htod(&[&[0], &payload[..]].concat()).unwrap();
    let view = odd.slice(1..);
    let columns = plan.columns() as usize;
    let what = format!("{:?} to {:?}", plan.format(), T::TYPE);

    let mut host = vec![T::default(); plan.rows() as usize * columns];
    tensor.decode(&mut host[..], columns).unwrap();
    let mut out = stream.alloc_zeros::<T>(host.len()).unwrap();
    let all = DeviceRows::Range { begin: 0, count: plan.rows() };
    codec.decode(plan, &view, all, &mut out, columns as u64).unwrap().wait().unwrap();
    assert!(bits(&stream.clone_dtoh(&out).unwrap()) == bits(&host), "{what}");

    let (list, stride) = ([plan.rows() - 1, 0, 7, 7], columns + 3);
    let mut host = vec![T::default(); 3 * stride + columns];
    tensor.decode_rows(&list, &mut host[..], stride).unwrap();
    let device_list = stream.clone_htod(&list[..]).unwrap();
    let mut out = stream.alloc_zeros::<T>(host.len()).unwrap();
    let rows = DeviceRows::List(&device_list);
    codec.decode(plan, &view, rows, &mut out, stride as u64).unwrap().wait().unwrap();
    assert!(bits(&stream.clone_dtoh(&out).unwrap()) == bits(&host), "{what}, a list");
}

#[test]
fn decode_gives_the_hosts_bytes() {
    let Some(codec) = device("decode_gives_the_hosts_bytes") else { return };
    for format in [Format::Q4G64F16S, Format::Q5G64F16S, Format::Q6G64F16S, Format::W8G32F16S] {
        let plan = plan(format, 33, 1000);
        decode::<f32>(&codec, &plan);
        decode::<bf16>(&codec, &plan);
        decode::<f16>(&codec, &plan);
    }
    let fp8 = plan(Format::Fp8E4M3FnRowBf16S, 33, 1001);
    decode::<f32>(&codec, &fp8);
    decode::<bf16>(&codec, &fp8);
    decode::<f16>(&codec, &fp8);
    let nvfp4 = plan(Format::Nvfp4, 128, 192);
    decode::<f32>(&codec, &nvfp4);
    decode::<bf16>(&codec, &nvfp4);
    decode::<f16>(&codec, &nvfp4);
    decode::<f64>(&codec, &nvfp4);
    decode::<f32>(&codec, &plan(Format::Bf16, 33, 1001));
    decode::<bf16>(&codec, &plan(Format::Bf16, 33, 1001));
    decode::<f32>(&codec, &plan(Format::Fp32, 33, 1001));
}

#[test]
fn quantize_gives_the_hosts_bytes() {
    let Some(codec) = device("quantize_gives_the_hosts_bytes") else { return };
    let stream = codec.stream().clone();
    for format in [Format::Q4G64F16S, Format::Q5G64F16S, Format::Q6G64F16S, Format::W8G32F16S] {
        let plan = plan(format, 33, 1000);
        let values = source(33_000);
        let mut payload = vec![0xa5; plan.payload_bytes() as usize];
        TensorMut::new(plan, &mut payload).unwrap().quantize(&values[..], 1000).unwrap();

        let device_values = stream.clone_htod(&values).unwrap();
        let mut device_payload = stream.clone_htod(&vec![0xa5u8; payload.len()]).unwrap();
        // In two ranges, the later first.
        let later = device_values.slice(20_000..);
        codec.quantize(&plan, &later, 1000, 20, 13, &mut device_payload).unwrap().wait().unwrap();
        codec.quantize(&plan, &device_values, 1000, 0, 20, &mut device_payload).unwrap().wait().unwrap();
        assert!(stream.clone_dtoh(&device_payload).unwrap() == payload);
        codec.validate(&plan, &device_payload, 0, 33).unwrap().wait().unwrap();
    }
}

#[test]
fn gather_gives_the_hosts_bytes() {
    let Some(codec) = device("gather_gives_the_hosts_bytes") else { return };
    let stream = codec.stream().clone();
    for format in Format::ALL {
        let plan = plan(format, 384, 192);
        let payload = payload(&plan);
        let tensor = Tensor::new(plan, &payload).unwrap();
        let device_payload = stream.clone_htod(&payload).unwrap();
        let list: Vec<u64> = (0..128).map(|i| i * 7 % 384).collect();
        let device_list = stream.clone_htod(&list).unwrap();
        let mut host = vec![0; plan.with_rows(128).unwrap().payload_bytes() as usize];
        let mut out = stream.alloc_zeros::<u8>(host.len()).unwrap();
        tensor.gather(&list, &mut host).unwrap();
        codec
            .gather(&plan, &device_payload, DeviceRows::List(&device_list), &mut out)
            .unwrap()
            .wait()
            .unwrap();
        assert!(stream.clone_dtoh(&out).unwrap() == host, "{format:?}");
        let range: Vec<u64> = (77..205).collect();
        tensor.gather(&range, &mut host).unwrap();
        let rows = DeviceRows::Range { begin: 77, count: 128 };
        codec.gather(&plan, &device_payload, rows, &mut out).unwrap().wait().unwrap();
        assert!(stream.clone_dtoh(&out).unwrap() == host, "{format:?}, a range");
    }
}

#[test]
fn scales_are_swizzled_both_ways() {
    let Some(codec) = device("scales_are_swizzled_both_ways") else { return };
    let stream = codec.stream().clone();
    for (rows, columns) in [(128, 64), (256, 192), (384, 320)] {
        let plan = plan(Format::Nvfp4, rows, columns);
        let payload = payload(&plan);
        let scales = plan.scales();
        let plane = &payload[scales.offset as usize..][..scales.bytes as usize];
        let (mut codes, mut natural) = (vec![0; plan.codes().bytes as usize], vec![0; plane.len()]);
        let mut divisor = 0;
        let words = WordsMut::Nvfp4 { codes: &mut codes, scales: &mut natural, divisor: &mut divisor };
        Tensor::new(plan, &payload).unwrap().unpack(words).unwrap();

        let device_natural = stream.clone_htod(&natural).unwrap();
        let mut out = stream.alloc_zeros::<u8>(plane.len()).unwrap();
        let mut back = stream.alloc_zeros::<u8>(plane.len()).unwrap();
        codec.swizzle_scales(rows, columns, &device_natural, &mut out).unwrap();
        codec.unswizzle_scales(rows, columns, &out, &mut back).unwrap();
        assert!(stream.clone_dtoh(&out).unwrap() == plane);
        assert!(stream.clone_dtoh(&back).unwrap() == natural);
    }
}

#[test]
fn operations_return_before_they_have_run() {
    let Some(codec) = device("operations_return_before_they_have_run") else { return };
    let stream = codec.stream().clone();
    let plan = plan(Format::Nvfp4, 128, 192);
    let payload = payload(&plan);
    let device_payload = stream.clone_htod(&payload).unwrap();
    let mut copy = stream.alloc_zeros::<u8>(payload.len()).unwrap();
    let mut out = stream.alloc_zeros::<f32>(128 * 192).unwrap();
    let mut plane = stream.alloc_zeros::<u8>(128 * 12).unwrap();
    let all = DeviceRows::Range { begin: 0, count: 128 };
    // Each goes on from the one before, with nothing read back between them. The stand-in puts all work off until
    // something waits.
    let begin = stream.record_event(None).unwrap();
    drop(codec.gather(&plan, &device_payload, all, &mut copy).unwrap());
    drop(device_payload);
    codec.swizzle_scales(128, 192, &copy.slice(..128 * 12), &mut plane).unwrap();
    let pending = codec.decode(&plan, &copy, all, &mut out, 192).unwrap();
    if stream.context().name().unwrap() == "CPU stand-in" {
        assert!(!begin.try_is_complete().unwrap(), "an operation waited");
    }
    pending.wait().unwrap();
    assert!(begin.try_is_complete().unwrap());
    let mut host = vec![0.0f32; 128 * 192];
    Tensor::new(plan, &payload).unwrap().decode(&mut host[..], 192).unwrap();
    assert!(bits(&stream.clone_dtoh(&out).unwrap()) == bits(&host));
}

/// The error of an operation's arguments.
fn refused(result: Result<Pending, CudaError>) -> Error {
    match result.unwrap_err() {
        CudaError::Codec(error) => error,
        other => panic!("{other}"),
    }
}

/// The error that an operation reports.
fn reported(result: Result<Pending, CudaError>) -> Error {
    match result.unwrap().wait().unwrap_err() {
        CudaError::Codec(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn the_device_refuses_what_the_host_refuses() {
    let Some(codec) = device("the_device_refuses_what_the_host_refuses") else { return };
    let stream = codec.stream().clone();
    let plan = plan(Format::Q4G64F16S, 2, 64);
    let mut payload = stream.alloc_zeros::<u8>(plan.payload_bytes() as usize).unwrap();
    let mut out = stream.clone_htod(&[f16::ONE; 128]).unwrap();
    let all = DeviceRows::Range { begin: 0, count: 2 };
    let none = DeviceRows::Range { begin: 0, count: 0 };
    assert_eq!(refused(codec.decode(&plan, &payload, none, &mut out, 64)), Error::EmptyRows);
    let past = DeviceRows::Range { begin: 1, count: 2 };
    assert_eq!(
        refused(codec.decode(&plan, &payload, past, &mut out, 64)),
        Error::RowOutOfRange { row: 2, rows: 2 }
    );
    assert_eq!(
        refused(codec.decode(&plan, &payload, all, &mut out, 63)),
        Error::Stride { stride: 63, columns: 64 }
    );
    let short = payload.slice(1..);
    assert!(matches!(refused(codec.validate(&plan, &short, 0, 2)), Error::PayloadLength { .. }));

    let list = stream.clone_htod(&[0u64, 1, 2]).unwrap();
    let mut rows = stream.clone_htod(&[f16::ONE; 192]).unwrap();
    assert_eq!(
        reported(codec.decode(&plan, &payload, DeviceRows::List(&list), &mut rows, 64)),
        Error::RowOutOfRange { row: 2, rows: 2 }
    );
    assert!(stream.clone_dtoh(&rows).unwrap() == [f16::ONE; 192], "a refused decode wrote");
    let mut bytes = stream.clone_dtoh(&payload).unwrap();
    let scale = plan.scales().offset as usize + plan.scales().row_bytes as usize;
    bytes[scale..][..2].copy_from_slice(&0x7c00u16.to_le_bytes());
    let bad = stream.clone_htod(&bytes).unwrap();
    let error = Tensor::new(plan, &bytes).unwrap().validate().unwrap_err();
    assert_eq!(reported(codec.validate(&plan, &bad, 0, 2)), error);
    assert_eq!(reported(codec.decode(&plan, &bad, all, &mut out, 64)), error);
    assert!(stream.clone_dtoh(&out).unwrap() == [f16::ONE; 128], "a refused decode wrote");

    let mut values = source(128);
    values[65] = f32::NAN;
    let word = u64::from(values[65].to_bits());
    let device_values = stream.clone_htod(&values).unwrap();
    assert_eq!(
        reported(codec.quantize(&plan, &device_values, 64, 0, 2, &mut payload)),
        Error::NonFiniteSource { row: 1, column: 1, word }
    );
}

#[test]
fn memory_of_another_device_is_refused() {
    let test = "memory_of_another_device_is_refused";
    let Some(codec) = device(test) else { return };
    let other = match CudaCodec::open(1) {
        Ok(other) => other.stream().clone(),
        Err(error) => return skipped(test, &error),
    };
    let stream = codec.stream();
    let plan = plan(Format::Nvfp4, 128, 64);
    let bytes = payload(&plan);
    let list: Vec<u64> = (0..128).collect();
    let (mut here, mut there) = (stream.clone_htod(&bytes).unwrap(), other.clone_htod(&bytes).unwrap());
    let mut out_here = stream.alloc_zeros::<f32>(8192).unwrap();
    let mut out_there = other.alloc_zeros::<f32>(8192).unwrap();
    let list_there = other.clone_htod(&list).unwrap();
    let all = DeviceRows::Range { begin: 0, count: 128 };
    let listed = DeviceRows::List(&list_there);
    let error = |result: Result<Pending, CudaError>| assert_eq!(result.unwrap_err(), CudaError::OtherContext);
    error(codec.decode(&plan, &there, all, &mut out_here, 64));
    error(codec.decode(&plan, &here, all, &mut out_there, 64));
    error(codec.decode(&plan, &here, listed, &mut out_here, 64));
    error(codec.gather(&plan, &there, all, &mut here));
    error(codec.gather(&plan, &here, all, &mut there));
    let mut copy = stream.alloc_zeros::<u8>(bytes.len()).unwrap();
    error(codec.gather(&plan, &here, listed, &mut copy));
    error(codec.validate(&plan, &there, 0, 128));
    let q4 = self::plan(Format::Q4G64F16S, 128, 64);
    let mut payload = stream.alloc_zeros::<u8>(q4.payload_bytes() as usize).unwrap();
    error(codec.quantize(&q4, &out_there, 64, 0, 128, &mut payload));
    let mut payload = other.alloc_zeros::<u8>(q4.payload_bytes() as usize).unwrap();
    error(codec.quantize(&q4, &out_here, 64, 0, 128, &mut payload));
    let from = there.slice(..512);
    assert_eq!(
        codec.swizzle_scales(128, 64, &from, &mut here.slice_mut(..512)).unwrap_err(),
        CudaError::OtherContext
    );
}

/// Every operation once, on a device of its own opening.
fn every_operation() -> Result<(), CudaError> {
    let codec = CudaCodec::open(0)?;
    let stream = codec.stream().clone();
    let plan = plan(Format::Nvfp4, 128, 64);
    let all = DeviceRows::Range { begin: 0, count: 128 };
    let payload = stream.clone_htod(&payload(&plan))?;
    let list = stream.clone_htod(&(0..128).collect::<Vec<u64>>())?;
    let mut copy = stream.alloc_zeros::<u8>(payload.len())?;
    let mut scales = stream.alloc_zeros::<u8>(512)?;
    let mut out = stream.alloc_zeros::<f32>(8192)?;
    codec.validate(&plan, &payload, 0, 128)?.wait()?;
    codec.decode(&plan, &payload, all, &mut out, 64)?.wait()?;
    codec.gather(&plan, &payload, DeviceRows::List(&list), &mut copy)?.wait()?;
    codec.swizzle_scales(128, 64, &payload.slice(..512), &mut scales)?;
    codec.unswizzle_scales(128, 64, &payload.slice(..512), &mut scales)?;
    let q6 = self::plan(Format::Q6G64F16S, 128, 64);
    let mut quantized = stream.alloc_zeros::<u8>(q6.payload_bytes() as usize)?;
    codec.quantize(&q6, &stream.clone_htod(&source(8192))?, 64, 0, 128, &mut quantized)?.wait()
}

/// The stand-in driver fails its Nth call and all after it, if asked to.
#[test]
fn a_driver_that_fails_is_a_typed_error() {
    let test = "a_driver_that_fails_is_a_typed_error";
    match every_operation() {
        Ok(()) => {
            let _ = writeln!(std::io::stderr().lock(), "no call failed");
        }
        Err(error @ CudaError::Driver { .. }) if std::env::var_os("CUDA_STAND_IN_FAIL").is_some() => {
            let _ = writeln!(std::io::stderr().lock(), "told: {error}");
        }
        Err(error @ (CudaError::NoDriver | CudaError::NoDevice | CudaError::DriverTooOld { .. })) => {
            skipped(test, &error);
        }
        Err(error) => panic!("{error}"),
    }
}
