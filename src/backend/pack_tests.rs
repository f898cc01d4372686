//! Packing: every backend against the plain rows, byte for byte, and the errors of both.

use std::vec;
use std::vec::Vec;

use super::Backend;
use super::encode_tests::{COLUMNS, Dirty, FORMATS, Random, backends};
use crate::error::Error;
use crate::format::Format;
use crate::layout::{Layout, Plan, blockscale};
use crate::tensor::TensorMut;
use crate::value::Words;

/// Legal words: a zero scale here and there, its codes zero.
fn words(format: Format, rows: usize, columns: usize, random: &mut Random) -> (Vec<i8>, Vec<u16>) {
    let scheme = format.scheme().unwrap();
    let (mut codes, mut scales) = (vec![], vec![]);
    for _ in 0..rows {
        for column in 0..columns {
            if column % scheme.group as usize == 0 {
                scales.push(if random.next().is_multiple_of(8) {
                    0
                } else {
                    (random.next() % 0x7bff + 1) as u16
                });
            }
            let span = i32::from(scheme.code_max) - i32::from(scheme.code_min) + 1;
            let code = i32::from(scheme.code_min) + (random.next() % span as u32) as i32;
            codes.push(if scales.last() == Some(&0) { 0 } else { code as i8 });
        }
    }
    (codes, scales)
}

fn compare(
    backend: Backend,
    format: Format,
    rows: usize,
    columns: usize,
    codes: &[i8],
    scales: &[u16],
    modulo: usize,
) {
    let plan = Plan::new(format, Layout::RowSplitK128V1, &[rows as u64, columns as u64]).unwrap();
    let bytes = plan.payload_bytes() as usize;
    let words = Words::Grouped { codes, scales };
    let mut expected = vec![0x5a; bytes];
    let mut actual = Dirty::new(bytes, modulo);
    let expected_result = TensorMut::new(plan, &mut expected).unwrap().pack_with(None, words);
    let actual_result = TensorMut::new(plan, actual.payload()).unwrap().pack_with(Some(backend), words);
    assert_eq!(actual_result, expected_result, "{} {format:?} {rows}x{columns}", backend.name());
    actual.check_canaries();
    let actual = actual.payload();
    let whole_rows = match expected_result {
        Ok(()) => {
            assert!(actual == expected, "{} {format:?} {rows}x{columns} at {modulo}", backend.name());
            return;
        }
        Err(
            Error::InvalidScale { row, .. }
            | Error::InvalidCode { row, .. }
            | Error::ZeroScaleNonzeroCode { row, .. },
        ) => row,
        Err(error) => panic!("{error}"),
    };
    for plane in [plan.codes(), plan.high(), plan.scales()] {
        let whole = plane.offset as usize..(plane.offset + whole_rows * plane.row_bytes) as usize;
        assert!(actual[whole.clone()] == expected[whole]);
    }
}

#[test]
fn lengths_and_addresses() {
    let mut random = Random(21);
    for backend in backends() {
        for format in FORMATS {
            for columns in COLUMNS {
                for modulo in [0, 1, 16, 63] {
                    let rows = 1 + random.next() as usize % 5;
                    let (codes, scales) = words(format, rows, columns, &mut random);
                    compare(backend, format, rows, columns, &codes, &scales, modulo);
                }
            }
            for modulo in 0..64 {
                let (codes, scales) = words(format, 2, 1152, &mut random);
                compare(backend, format, 2, 1152, &codes, &scales, modulo);
            }
        }
    }
}

/// Payloads that are written past the caches.
#[test]
fn large_payloads() {
    let mut random = Random(22);
    for backend in backends() {
        for format in FORMATS {
            for (rows, columns, modulo) in [(1026, 2048, 16), (700, 2880, 1)] {
                let (codes, scales) = words(format, rows, columns, &mut random);
                compare(backend, format, rows, columns, &codes, &scales, modulo);
            }
        }
    }
}

#[test]
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
))]
fn vector_backends_pack_every_row() {
    let mut random = Random(23);
    for backend in backends().into_iter().filter(|&backend| backend != Backend::Portable) {
        for format in FORMATS {
            for columns in COLUMNS {
                let (codes, scales) = words(format, 3, columns, &mut random);
                let plan = Plan::new(format, Layout::RowSplitK128V1, &[3, columns as u64]).unwrap();
                let mut payload = vec![0; plan.payload_bytes() as usize];
                let mut tensor = TensorMut::new(plan, &mut payload).unwrap();
                let done = tensor.pack_grouped_rows(backend, 0, &codes, &scales);
                assert_eq!(done, 3, "{} declined", backend.name());
            }
        }
    }
}

/// Every illegal code and every kind of illegal scale, at every place.
#[test]
fn faults() {
    const ROWS: usize = 3;
    const COLUMNS: usize = 1100;
    let mut random = Random(24);
    for backend in backends() {
        for format in FORMATS {
            let scheme = format.scheme().unwrap();
            let illegal: Vec<i8> = (i8::MIN..=i8::MAX).filter(|&code| !scheme.is_legal_code(code)).collect();
            let (codes, scales) = words(format, ROWS, COLUMNS, &mut random);
            for index in 0..ROWS * COLUMNS {
                let mut codes = codes.clone();
                // Under a zero scale a legal code is wrong too.
                codes[index] = if index % 2 == 0 { illegal[index % illegal.len()] } else { 1 };
                compare(backend, format, ROWS, COLUMNS, &codes, &scales, 0);
            }
            for index in 0..scales.len() {
                for word in [0x7c00, 0x7e01, 0x8000, 0x8001, 0xfc00, 0xffff, 0] {
                    let mut scales = scales.clone();
                    scales[index] = word;
                    compare(backend, format, ROWS, COLUMNS, &codes, &scales, 0);
                }
            }
        }
    }
}

#[test]
fn nvfp4_scales_lie_where_the_formula_says() {
    let mut random = Random(25);
    for (rows, columns) in [(128, 64), (256, 320), (384, 1024)] {
        let plan = Plan::new(Format::Nvfp4, Layout::BlockscaleK16M128x4V1, &[rows, columns]).unwrap();
        let groups = columns / 16;
        let codes: Vec<u8> = (0..rows * columns / 2).map(|_| random.next() as u8).collect();
        let mut scales: Vec<u8> = (0..rows * groups).map(|_| (random.next() % 0x7f) as u8).collect();
        let mut payload = vec![0xa5; plan.payload_bytes() as usize];
        let pack = |payload: &mut [u8], scales: &[u8]| {
            let words = Words::Nvfp4 { codes: &codes, scales, divisor: 0x3f80_0000 };
            TensorMut::new(plan, payload).unwrap().pack(words)
        };
        assert_eq!(pack(&mut payload, &scales), Ok(()));
        assert_eq!(payload[..codes.len()], codes);
        let plane = plan.scales().offset;
        for row in 0..rows {
            for group in 0..groups {
                let at = plane + blockscale::scale_offset(row, group, groups);
                assert_eq!(payload[at as usize], scales[(row * groups + group) as usize]);
            }
        }
        for word in [0x7f, 0x80, 0xff] {
            for index in (0..scales.len()).step_by(97) {
                let legal = core::mem::replace(&mut scales[index], word);
                let (row, group) = (index as u64 / groups, index as u64 % groups);
                let result = pack(&mut payload, &scales);
                assert!(
                    matches!(result, Err(Error::InvalidScale { row: r, group: g, .. }) if (r, g) == (row, group))
                );
                scales[index] = legal;
            }
        }
    }
}

#[test]
fn fp8_codes_are_checked() {
    let plan = Plan::new(Format::Fp8E4M3FnRowBf16S, Layout::RowScaleV1, &[2, 100]).unwrap();
    let mut payload = vec![0xa5; plan.payload_bytes() as usize];
    for index in 0..200 {
        for word in 0..=255u8 {
            for scale in [0x3f80, 0] {
                let mut codes = [0; 200];
                codes[index] = word;
                let words = Words::Fp8Row { codes: &codes, scales: &[scale; 2] };
                let result = TensorMut::new(plan, &mut payload).unwrap().pack(words);
                let (row, column) = (index as u64 / 100, index as u64 % 100);
                let expected = if word & 0x7f == 0x7f {
                    Err(Error::InvalidCode { row, column, word })
                } else if scale == 0 && word & 0x7f != 0 {
                    Err(Error::ZeroScaleNonzeroCode { row, column, word })
                } else {
                    Ok(())
                };
                assert_eq!(result, expected);
            }
        }
    }
}
