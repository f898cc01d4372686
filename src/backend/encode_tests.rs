//! The canonical quantizer: every backend against the integer encoder, byte for byte.

use std::vec;
use std::vec::Vec;
use std::{eprintln, format};

use super::Backend;
use crate::error::Error;
use crate::format::Format;
use crate::layout::{Layout, Plan};
use crate::tensor::TensorMut;
use crate::value::Source;

pub(super) const FORMATS: [Format; 4] =
    [Format::Q4G64F16S, Format::Q5G64F16S, Format::Q6G64F16S, Format::W8G32F16S];

/// Column counts: 1, a group of W8 and of the others and their neighbours, the padding's 128, a kernel's batch of
/// 512 and what a vector of it holds, and numbers that take several batches and a short one.
pub(super) const COLUMNS: [usize; 33] = [
    1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 96, 127, 128, 129, 191, 192, 255, 256, 257, 511,
    512, 513, 640, 1023, 1024, 1025, 1536, 2880,
];

/// Source words of 4 or 2 bytes, at any element-aligned place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    F32,
    Bf16,
    F16,
}

const TYPES: [Type; 3] = [Type::F32, Type::Bf16, Type::F16];

impl Type {
    const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 2,
        }
    }

    /// The words as a source, from 64-byte aligned memory on plus `offset` elements.
    fn with_source<R>(self, words: &[u32], offset: usize, run: impl FnOnce(Source<'_>) -> R) -> R {
        #[derive(Clone, Copy)]
        #[repr(align(64))]
        struct Line(#[expect(dead_code, reason = "read as bytes")] [u8; 64]);
        let bytes: Vec<u8> = match self {
            Self::F32 => words.iter().flat_map(|word| word.to_ne_bytes()).collect(),
            Self::Bf16 | Self::F16 => words.iter().flat_map(|word| (*word as u16).to_ne_bytes()).collect(),
        };
        let start = offset * self.bytes();
        let mut lines = vec![Line([0xee; 64]); (start + bytes.len()).div_ceil(64)];
        // SAFETY: the lines are plain bytes.
        let memory =
            unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast::<u8>(), lines.len() * 64) };
        let memory = &mut memory[start..start + bytes.len()];
        memory.copy_from_slice(&bytes);
        match self {
            Self::F32 => run(Source::F32(bytemuck::cast_slice(memory))),
            Self::Bf16 => run(Source::Bf16(bytemuck::cast_slice(memory))),
            Self::F16 => run(Source::F16(bytemuck::cast_slice(memory))),
        }
    }
}

/// Backends that this processor has, the portable one among them.
pub(super) fn backends() -> Vec<Backend> {
    for &backend in Backend::ALL {
        if !backend.is_available() {
            eprintln!("SKIPPED: this processor has no {}", backend.name());
        }
    }
    Backend::ALL.iter().copied().filter(|backend| backend.is_available()).collect()
}

/// Names of backends that count as run: see [`runs`].
fn takes(backend: Backend, _source: Type) -> bool {
    backend != Backend::Portable || super::portable_quantize::SINGLE_ROUNDING
}

/// A payload at any place modulo 64, with canaries on both sides.
pub(super) struct Dirty {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Dirty {
    const CANARY: usize = 64;

    pub(super) fn new(len: usize, modulo: usize) -> Self {
        let memory = vec![0xa5; len + 64 + 2 * Self::CANARY];
        let start = memory[Self::CANARY..].as_ptr().align_offset(64) + Self::CANARY + modulo;
        Self { memory, start, len }
    }

    pub(super) fn payload(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    pub(super) fn check_canaries(&self) {
        let outside = self.memory[..self.start].iter().chain(&self.memory[self.start + self.len..]);
        assert!(outside.copied().all(|byte| byte == 0xa5), "bytes outside the payload were written");
    }
}

/// Where a case puts things.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    source_offset: usize,
    payload_modulo: usize,
    extra_stride: usize,
}

/// Quantizes with one backend and with the integer encoder and compares results and bytes; of a failure, the rows
/// before the failing one.
fn compare(
    backend: Backend,
    format: Format,
    from: Type,
    rows: usize,
    columns: usize,
    words: &[u32],
    place: Place,
) {
    let stride = columns + place.extra_stride;
    let plan = Plan::new(format, Layout::RowSplitK128V1, &[rows as u64, columns as u64]).unwrap();
    let bytes = plan.payload_bytes() as usize;
    let quantize = |backend, payload: &mut [u8]| {
        from.with_source(words, place.source_offset, |source| {
            TensorMut::new(plan, payload).unwrap().quantize_with(backend, source, stride)
        })
    };
    let mut expected = vec![0x5a; bytes];
    let mut actual = Dirty::new(bytes, place.payload_modulo);
    let expected_result = quantize(None, &mut expected);
    let actual_result = quantize(Some(backend), actual.payload());
    let case = || format!("{} {format:?} {from:?} {rows}x{columns} {place:?}", backend.name());
    assert_eq!(actual_result, expected_result, "{}", case());
    actual.check_canaries();
    let actual = actual.payload();
    match expected_result {
        Ok(()) => {
            if actual != expected {
                let at = actual.iter().zip(&expected).position(|(a, b)| a != b).unwrap();
                panic!("{}: byte {at} of {bytes} is {:#x}, not {:#x}", case(), actual[at], expected[at]);
            }
        }
        Err(
            Error::NonFiniteSource { row, .. }
            | Error::ScaleOverflow { row, .. }
            | Error::SourceNotRepresentable { row, .. },
        ) => {
            for plane in [plan.codes(), plan.high(), plan.scales()] {
                let whole = plane.offset as usize..(plane.offset + row * plane.row_bytes) as usize;
                assert!(actual[whole.clone()] == expected[whole], "{}: a row before the failing one", case());
            }
        }
        Err(error) => panic!("{}: {error}", case()),
    }
}

/// How many rows a backend does itself.
fn rows_done(
    backend: Backend,
    format: Format,
    from: Type,
    rows: usize,
    columns: usize,
    words: &[u32],
) -> usize {
    let plan = Plan::new(format, Layout::RowSplitK128V1, &[rows as u64, columns as u64]).unwrap();
    let mut payload = vec![0; plan.payload_bytes() as usize];
    from.with_source(words, 0, |source| {
        let mut tensor = TensorMut::new(plan, &mut payload).unwrap();
        tensor.quantize_rows(backend, 0, &source, 0, columns)
    })
}

/// A small generator, so that a failure repeats.
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = (self.0 ^ self.0 >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (x >> 32) as u32
    }
}

/// Plain weights: all of one size, more or less.
fn weights(from: Type, count: usize, random: &mut Random) -> Vec<u32> {
    let word = |random: &mut Random| {
        let value = (random.next() as i32 as f32) * 2.0f32.powi(-31 - (random.next() % 3) as i32);
        match from {
            Type::F32 => value.to_bits(),
            Type::Bf16 => value.to_bits() >> 16,
            Type::F16 => half::f16::from_f32(value).to_bits().into(),
        }
    };
    (0..count).map(|_| word(random)).collect()
}

/// Any finite bit patterns; every group of 32 has a greatest exponent of its own, with scales from zero through
/// subnormal to just not overflowing.
fn patterns(from: Type, count: usize, random: &mut Random) -> Vec<u32> {
    let mut words = vec![];
    let mut cap = 0;
    for index in 0..count {
        if index % 32 == 0 {
            // The greatest exponent field, as of binary32: 142 is below 65504 * 7.
            cap = match random.next() % 4 {
                0 => random.next() % 143,
                1 => 95 + random.next() % 30,
                2 => 0,
                _ => 115 + random.next() % 28,
            };
        }
        let sign = random.next() & 1;
        let field = cap.saturating_sub(match random.next() % 3 {
            0 => 0,
            1 => random.next() % 5,
            _ => random.next() % 40,
        });
        let fraction = random.next() & 0x7f_ffff;
        words.push(match from {
            Type::F32 => sign << 31 | field << 23 | fraction,
            Type::Bf16 => sign << 15 | field << 7 | fraction >> 16,
            Type::F16 => sign << 15 | field.saturating_sub(112).min(30) << 10 | fraction >> 13,
        });
    }
    words
}

#[test]
fn backends_that_the_processor_has_run() {
    let mut random = Random(1);
    for backend in backends() {
        let mut declined = 0;
        for from in TYPES {
            for format in FORMATS {
                for columns in COLUMNS {
                    let words = weights(from, 3 * columns, &mut random);
                    let done = rows_done(backend, format, from, 3, columns, &words);
                    declined += usize::from(takes(backend, from) && done != 3);
                }
            }
        }
        assert_eq!(declined, 0, "{} declined", backend.name());
    }
}

#[test]
#[cfg(all(target_arch = "x86_64", not(ninfer_codec_force_portable)))]
fn detection_agrees_with_std() {
    let avx2 = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("f16c");
    assert_eq!(Backend::Avx2.is_available(), avx2 && std::is_x86_feature_detected!("fma"));
    let avx512 = std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512vl")
        && std::is_x86_feature_detected!("avx512vbmi");
    assert_eq!(Backend::Avx512.is_available(), avx512);
}

/// A processor with NEON has it in all programs of such a target, so it is in this one.
#[test]
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
fn detection_agrees_with_std() {
    assert!(std::arch::is_aarch64_feature_detected!("neon"));
    assert!(Backend::ALL.iter().any(|backend| backend.name() == "neon" && backend.is_available()));
}

#[test]
fn named_lengths_and_rows() {
    let mut random = Random(2);
    for backend in backends() {
        for from in TYPES {
            for format in FORMATS {
                for columns in COLUMNS {
                    for extra_stride in [0, 1, 64] {
                        let rows = 1 + random.next() as usize % 6;
                        let count = rows * (columns + extra_stride);
                        let place = Place { extra_stride, ..Place::default() };
                        let words = weights(from, count, &mut random);
                        compare(backend, format, from, rows, columns, &words, place);
                        let words = patterns(from, count, &mut random);
                        compare(backend, format, from, rows, columns, &words, place);
                    }
                }
            }
        }
    }
}

#[test]
fn any_address() {
    let mut random = Random(3);
    for backend in backends() {
        for from in TYPES {
            for format in FORMATS {
                for place in 0..64 {
                    let place = Place {
                        source_offset: place % (64 / from.bytes()),
                        payload_modulo: place,
                        extra_stride: place % 3,
                    };
                    for (rows, columns) in [(2, 1100), (1, 1152), (3, 66)] {
                        let words = patterns(from, rows * (columns + place.extra_stride), &mut random);
                        compare(backend, format, from, rows, columns, &words, place);
                    }
                }
            }
        }
    }
}

/// Payloads that are written past the caches.
#[test]
fn large_payloads() {
    let mut random = Random(4);
    for backend in backends() {
        for (from, format) in TYPES.into_iter().zip([Format::W8G32F16S, Format::Q5G64F16S, Format::Q6G64F16S])
        {
            for (rows, columns, payload_modulo) in [(1024, 2048, 16), (700, 2880, 1), (1026, 2048, 63)] {
                let words = weights(from, rows * columns, &mut random);
                let place = Place { payload_modulo, ..Place::default() };
                compare(backend, format, from, rows, columns, &words, place);
            }
        }
    }
}

/// Sources at which reciprocal and multiply differ from division, and ties of the scale and of the codes.
#[test]
fn neighbourhoods_of_scales() {
    let mut random = Random(5);
    for format in FORMATS {
        let scheme = format.scheme().unwrap();
        let (group, code_max) = (scheme.group as usize, f32::from(scheme.code_max));
        let mut words = vec![];
        // Every 7th binary16 scale and all of its neighbours' rounding boundaries.
        for scale in (1..0x7c00u16).step_by(7).chain([1, 2, 3, 0x3ff, 0x400, 0x401, 0x7bfe, 0x7bff]) {
            let exact = half::f16::from_bits(scale).to_f32();
            let below = half::f16::from_bits(scale - 1).to_f32();
            let tie = (exact + below) / 2.0;
            for value in [exact, tie] {
                for nudge in -1i32..=1 {
                    let amax = (value * code_max).to_bits().wrapping_add_signed(nudge) & 0x7fff_ffff;
                    words.push(amax | random.next() << 31);
                    for lane in 1..group {
                        // Half a code off, and its neighbours.
                        let code = (random.next() % (2 * scheme.code_max as u32 + 1)) as f32 - code_max;
                        let half = (code + 0.5) * exact;
                        let word = half.to_bits().wrapping_add_signed(lane as i32 % 3 - 1);
                        words.push(if word & 0x7fff_ffff > amax { 0 } else { word });
                    }
                }
            }
        }
        let columns = words.len();
        for backend in backends() {
            compare(backend, format, Type::F32, 1, columns, &words, Place::default());
            assert_eq!(
                rows_done(backend, format, Type::F32, 1, columns, &words) == 1,
                takes(backend, Type::F32)
            );
        }
    }
}

/// The greatest maximum that has a scale, and the next one.
#[test]
fn overflowing_scales() {
    for format in FORMATS {
        let scheme = format.scheme().unwrap();
        let first = (65520.0 * f32::from(scheme.code_max)).to_bits();
        for backend in backends() {
            for nudge in -4i32..4 {
                for column in [0, 31, 32, 63, 64, 511, 512, 1200] {
                    let mut words = vec![0x3f80_0000; 1300];
                    words[column] = first.wrapping_add_signed(nudge) | (column as u32) << 31;
                    compare(backend, format, Type::F32, 1, 1300, &words, Place::default());
                }
            }
        }
    }
}

/// A value that is not finite at every place, alone and before or after an overflowing scale.
#[test]
fn faults_at_every_position() {
    const ROWS: usize = 3;
    const COLUMNS: usize = 1100;
    let mut random = Random(6);
    for backend in backends() {
        for from in TYPES {
            let faults: &[u32] = match from {
                Type::F32 => &[
                    0x7fc0_0000,
                    0xffc0_0001,
                    0x7f80_0001,
                    0x7f80_0000,
                    0xff80_0000,
                    0x7fff_ffff,
                    0x7f00_0000,
                ],
                Type::Bf16 => &[0x7fc0, 0xffc1, 0x7f81, 0x7f80, 0xff80, 0x7fff, 0x7f00],
                Type::F16 => &[0x7e00, 0xfe01, 0x7c01, 0x7c00, 0xfc00, 0x7fff],
            };
            for format in FORMATS {
                let plain = weights(from, ROWS * COLUMNS, &mut random);
                let tiny = if from == Type::F32 { 0x3300_0000 } else { 0x0001 };
                for index in 0..ROWS * COLUMNS {
                    let mut words = plain.clone();
                    words[index] = faults[index % faults.len()];
                    if index % 5 == 0 {
                        words[(index * 7 + 3) % (ROWS * COLUMNS)] = faults[(index / 5) % faults.len()];
                    }
                    if index % 3 == 0 {
                        // A NaN among subnormal scales.
                        let around = index / 64 * 64;
                        for word in &mut words[around..(around + 64).min(ROWS * COLUMNS)] {
                            *word = if *word == faults[index % faults.len()] { *word } else { tiny };
                        }
                    }
                    compare(backend, format, from, ROWS, COLUMNS, &words, Place::default());
                }
            }
        }
    }
}

/// Short rows, several in a batch, with padding and without: a fault in any of them.
#[test]
fn faults_among_short_rows() {
    const ROWS: usize = 20;
    let mut random = Random(7);
    for backend in backends() {
        for format in FORMATS {
            for (columns, extra_stride) in [(128, 0), (100, 0), (100, 28), (130, 3)] {
                let count = ROWS * (columns + extra_stride);
                let plain = weights(Type::F32, count, &mut random);
                for index in (0..count).step_by(37) {
                    let mut words = plain.clone();
                    words[index] = 0x7fc0_0000;
                    let place = Place { extra_stride, ..Place::default() };
                    compare(backend, format, Type::F32, ROWS, columns, &words, place);
                }
            }
        }
    }
}
