//! All products of FP8 rows, and all NVFP4 quotients under thousands of divisors.

use half::{bf16, f16};
use ninfer_codec::{Format, Tensor, TensorMut, Words};

use crate::each_backend;
use crate::oracle::decode::nvfp4_weight;
use crate::oracle::words::{self, e4m3fn_to_f32, round};
use crate::support::{Random, plan};

#[test]
#[ignore = "minutes: run it in release, as the file says"]
fn every_product_of_e4m3fn_and_bf16() {
    const SCALES: u64 = 0x7f80;
    let plan = plan(Format::Fp8E4M3FnRowBf16S, &[SCALES, 256]);
    let mut payload: Vec<u8> = (0..SCALES).flat_map(|_| 0..=255).collect();
    payload.extend((0..SCALES as u16).flat_map(u16::to_le_bytes));
    let tensor = Tensor::new(plan, &payload).unwrap();
    let elements = plan.elements() as usize;
    each_backend("all legal row scales times all 256 codes", |backend| {
        let mut wide = vec![0.0f32; elements];
        let (mut brains, mut halves) = (vec![bf16::ZERO; elements], vec![f16::ZERO; elements]);
        tensor.decode(&mut wide[..], 256).unwrap();
        tensor.decode(&mut brains[..], 256).unwrap();
        tensor.decode(&mut halves[..], 256).unwrap();
        for (at, value) in wide.iter().enumerate() {
            let (code, scale) = (at as u8, (at / 256) as u32);
            let expected = match code & 0x7f {
                0x7f => f32::from_bits(0x7fc0_0000),
                // 12 bits of significand and small exponents: exact in binary64, so that it is rounded once.
                _ => {
                    let code = f64::from(f32::from_bits(e4m3fn_to_f32(code)));
                    (code * f64::from(f32::from_bits(scale << 16))) as f32
                }
            };
            let name = || format!("{backend}: {code:02x} * {scale:04x}");
            assert_eq!(value.to_bits(), expected.to_bits(), "{}", name());
            assert_eq!(brains[at].to_bits(), bf16::from_f32(expected).to_bits(), "{}", name());
            assert_eq!(halves[at].to_bits(), f16::from_f32(expected).to_bits(), "{}", name());
        }
    });
}

/// Legal divisors: both ends, all powers of two and their neighbours, and random words.
fn divisors() -> Vec<u32> {
    let mut divisors = vec![0x7f7f_ffff];
    for exponent in 0..0xff {
        divisors.extend([exponent << 23 | 1, exponent << 23 | 0x007f_ffff]);
        if exponent > 0 {
            divisors.push(exponent << 23);
        }
    }
    divisors.extend((0..23).map(|bit| 1 << bit));
    let mut random = Random(9);
    while divisors.len() < 4200 {
        divisors.push(1 + random.below(0x7f7f_ffff) as u32);
    }
    divisors.sort_unstable();
    divisors.dedup();
    assert!(divisors.len() >= 4096);
    divisors
}

#[test]
#[ignore = "minutes: run it in release, as the file says"]
fn every_quotient_under_thousands_of_divisors() {
    // Row r has scale r in every group (row 127 repeats scale 0), column c code c % 16.
    let plan = plan(Format::Nvfp4, &[128, 64]);
    let codes: Vec<u8> =
        (0..128 * 32u32).map(|byte| (byte % 8 * 2 + (byte % 8 * 2 + 1) * 16) as u8).collect();
    let scales: Vec<u8> = (0..128u8).flat_map(|row| [row % 127; 4]).collect();
    let divisors = divisors();
    println!("{} divisors", divisors.len());
    // The oracle's words, of the codes without a sign: the others are their mirror images.
    let expected: Vec<(u32, u64)> = divisors
        .iter()
        .flat_map(|&divisor| (0..128 * 8).map(move |at: u32| ((at % 8) as u8, (at / 8 % 127) as u8, divisor)))
        .map(|(code, scale, divisor)| {
            let quotient = nvfp4_weight(code, scale, divisor);
            (round(quotient, words::F32) as u32, round(quotient, words::F64))
        })
        .collect();
    each_backend("all NVFP4 quotients", |backend| {
        for (&divisor, expected) in divisors.iter().zip(expected.chunks(128 * 8)) {
            let mut payload = vec![0xa5; plan.payload_bytes() as usize];
            let words = Words::Nvfp4 { codes: &codes, scales: &scales, divisor };
            TensorMut::new(plan, &mut payload).unwrap().pack(words).unwrap();
            let tensor = Tensor::new(plan, &payload).unwrap();
            let (mut f32s, mut f64s) = (vec![f32::NAN; 128 * 64], vec![f64::NAN; 128 * 64]);
            let (mut brains, mut halves) = (vec![bf16::NAN; 128 * 64], vec![f16::NAN; 128 * 64]);
            tensor.decode(&mut f32s[..], 64).unwrap();
            tensor.decode(&mut f64s[..], 64).unwrap();
            tensor.decode(&mut brains[..], 64).unwrap();
            tensor.decode(&mut halves[..], 64).unwrap();
            for at in 0..128 * 64 {
                let (row, code) = (at / 64, at % 16);
                let (single, double) = expected[row * 8 + code % 8];
                let (single, double) = match code < 8 {
                    true => (single, double),
                    false => (single | 1 << 31, double | 1 << 63),
                };
                let name = || format!("{backend}: {code:x} * {:02x} / {divisor:08x}", row % 127);
                assert_eq!(f32s[at].to_bits(), single, "{}", name());
                assert_eq!(f64s[at].to_bits(), double, "{}", name());
                let value = f32::from_bits(single);
                assert_eq!(brains[at].to_bits(), bf16::from_f32(value).to_bits(), "{}", name());
                assert_eq!(halves[at].to_bits(), f16::from_f32(value).to_bits(), "{}", name());
            }
        }
    });
}
