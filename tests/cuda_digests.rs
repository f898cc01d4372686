//! Digests of what this library computes, which the device program of `kernels/test` is held against.
//!
//! `NINFER_CODEC_BLESS=1 cargo test --test cuda_digests` writes `kernels/test/digests.txt` anew.

use std::fmt::Write;

use half::{bf16, f16};
use ninfer_codec::{Format, Plan, Tensor, TensorMut, ValueType};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/test/digests.txt");

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Random bytes, padding and gaps too, whose scale and divisor words are made legal.
fn payload(plan: &Plan, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < plan.payload_bytes() {
        bytes.extend(random.next().to_le_bytes());
    }
    bytes.truncate(plan.payload_bytes() as usize);
    let scales = plan.scales().offset as usize..(plan.scales().offset + plan.scales().bytes) as usize;
    match plan.format() {
        Format::Nvfp4 => {
            let divisor = scales.end;
            for scale in &mut bytes[scales] {
                *scale = (*scale & 0x7f).min(0x7e);
            }
            let word = u32::from_le_bytes(bytes[divisor..].try_into().unwrap()) & 0x7fff_ffff;
            let word = if word == 0 || word >= 0x7f80_0000 { 0x3f80_0000 } else { word };
            bytes[divisor..].copy_from_slice(&word.to_le_bytes());
        }
        Format::Bf16 | Format::Fp32 | Format::I32 => {}
        format => {
            let infinity = if format == Format::Fp8E4M3FnRowBf16S { 0x7f80 } else { 0x7c00 };
            for scale in bytes[scales].as_chunks_mut::<2>().0 {
                let word = u16::from_le_bytes(*scale) & 0x7fff;
                *scale = (if word >= infinity { word & 0x3fff } else { word }).to_le_bytes();
            }
        }
    }
    bytes
}

fn decode(plan: Plan, seed: u64, output: ValueType) -> u64 {
    let payload = payload(&plan, seed);
    let tensor = Tensor::new(plan, &payload).unwrap();
    let columns = plan.columns() as usize;
    let elements = plan.rows() as usize * columns;
    match output {
        ValueType::F32 => {
            let mut out = vec![0.0f32; elements];
            tensor.decode(&mut out[..], columns).unwrap();
            fnv1a(&out.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect::<Vec<_>>())
        }
        ValueType::Bf16 => {
            let mut out = vec![bf16::ZERO; elements];
            tensor.decode(&mut out[..], columns).unwrap();
            fnv1a(&out.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect::<Vec<_>>())
        }
        ValueType::F16 => {
            let mut out = vec![f16::ZERO; elements];
            tensor.decode(&mut out[..], columns).unwrap();
            fnv1a(&out.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect::<Vec<_>>())
        }
        ValueType::F64 => {
            let mut out = vec![0.0f64; elements];
            tensor.decode(&mut out[..], columns).unwrap();
            fnv1a(&out.iter().flat_map(|v| v.to_bits().to_le_bytes()).collect::<Vec<_>>())
        }
    }
}

fn quantize(plan: Plan, seed: u64, source: ValueType) -> u64 {
    let mut random = Random(seed);
    let columns = plan.columns() as usize;
    let words: Vec<u32> = (0..plan.rows() as usize * columns).map(|_| random.next() as u32).collect();
    let mut payload = vec![0xa5; plan.payload_bytes() as usize];
    let mut tensor = TensorMut::new(plan, &mut payload).unwrap();
    match source {
        ValueType::F32 => {
            let values: Vec<f32> =
                words.iter().map(|w| f32::from_bits(w & 0x8fff_ffff | 0x3000_0000)).collect();
            tensor.quantize(&values[..], columns).unwrap();
        }
        ValueType::Bf16 => {
            let values: Vec<bf16> =
                words.iter().map(|&w| bf16::from_bits(w as u16 & 0x8fff | 0x3000)).collect();
            tensor.quantize(&values[..], columns).unwrap();
        }
        _ => {
            let values: Vec<f16> = words.iter().map(|&w| f16::from_bits(w as u16 & 0xbfff)).collect();
            tensor.quantize(&values[..], columns).unwrap();
        }
    }
    fnv1a(&payload)
}

fn lines() -> String {
    let mut text = String::from("# Written by tests/cuda_digests.rs; read by kernels/test/digest.cc.\n");
    for format in Format::ALL {
        let outputs: &[ValueType] = match format {
            Format::Bf16 => &[ValueType::F32, ValueType::Bf16],
            Format::Fp32 => &[ValueType::F32],
            Format::I32 => &[],
            Format::Nvfp4 => &ValueType::ALL,
            _ => &[ValueType::F32, ValueType::Bf16, ValueType::F16],
        };
        let shapes: &[[u64; 2]] = match format {
            Format::Nvfp4 => &[[128, 64], [256, 1152], [384, 2048]],
            _ => &[[1, 1], [7, 130], [33, 1000], [300, 2304]],
        };
        for (seed, shape) in (1..).zip(shapes) {
            let plan = Plan::new(format, format.layout(), shape).unwrap();
            let [rows, columns] = shape;
            for &output in outputs {
                let (name, output_name, digest) = (format.name(), output.name(), decode(plan, seed, output));
                writeln!(text, "decode {name} {output_name} {rows} {columns} {seed} {digest:016x}").unwrap();
            }
            if format.scheme().is_some() {
                for source in [ValueType::F32, ValueType::Bf16, ValueType::F16] {
                    let (name, source_name, digest) =
                        (format.name(), source.name(), quantize(plan, seed, source));
                    writeln!(text, "quantize {name} {source_name} {rows} {columns} {seed} {digest:016x}")
                        .unwrap();
                }
            }
        }
    }
    text
}

#[test]
fn committed_digests_are_those_of_this_library() {
    let text = lines();
    if std::env::var_os("NINFER_CODEC_BLESS").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(FILE).unwrap() == text,
        "kernels/test/digests.txt is not what this library computes"
    );
}
