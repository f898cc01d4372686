//! The canonical quantizer under every float mode a caller may have set, and that mode left as it was.
//!
//! What each operation does about the mode: the integer encoder has no float operation; the vector backends and
//! the portable one on x86-64 run under the default mode and set the caller's again, exception flags included;
//! the portable one on other targets asks for the mode and declines in any but the default one.

use core::arch::asm;
use core::cell::Cell;
use std::vec;
use std::vec::Vec;

use super::Backend;
use super::encode_tests::{FORMATS, Random, backends};
use crate::error::Error;
use crate::format::Format;
use crate::layout::{Layout, Plan};
use crate::tensor::TensorMut;
use crate::value::Source;

std::thread_local! {
    /// What is broken on purpose on this thread.
    static PLANTED: Cell<Planted> = const { Cell::new(Planted::Nothing) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Planted {
    Nothing,
    /// The guard and the question for the mode do nothing.
    NoGuard,
    /// Every source value is multiplied by a third, outside the guard.
    UnguardedMultiply,
}

pub(super) fn planted() -> Planted {
    PLANTED.get()
}

const MASKED: u32 = 0x1f80;
const ROUNDINGS: [u32; 4] = [0x0000, 0x2000, 0x4000, 0x6000];
const FLUSH_TO_ZERO: u32 = 0x8000;
const DENORMALS_ARE_ZERO: u32 = 0x0040;

/// All 4 x 2 x 2 modes; the first is the default one.
fn modes() -> impl Iterator<Item = u32> {
    let flushes = [0, FLUSH_TO_ZERO, DENORMALS_ARE_ZERO, FLUSH_TO_ZERO | DENORMALS_ARE_ZERO];
    ROUNDINGS.into_iter().flat_map(move |rounding| flushes.map(|flush| MASKED | rounding | flush))
}

fn read() -> u32 {
    let mut word = 0u32;
    // SAFETY: STMXCSR stores 4 bytes.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
    word
}

/// Runs in a mode, and checks that the mode and the flags are still those when it returns.
fn in_mode<R>(mode: u32, run: impl FnOnce() -> R) -> R {
    let before = read();
    let write = |word: u32| {
        // SAFETY: LDMXCSR loads 4 bytes; no reserved bit is set in any mode used here.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
    };
    write(mode);
    let result = run();
    let after = read();
    write(before);
    assert_eq!(after, mode, "the caller's mode or flags have changed");
    result
}

/// Values whose codes and scales depend on how each operation rounds: many magnitudes, ties, subnormal groups.
fn sensitive(format: Format, count: usize) -> Vec<f32> {
    let scheme = format.scheme().unwrap();
    let code_max = f32::from(scheme.code_max);
    let mut random = Random(11);
    let mut values: Vec<f32> = (0..count).map(|_| random.next() as i32 as f32 * 1e-10).collect();
    for (index, group) in values.chunks_mut(scheme.group as usize).enumerate() {
        let scale = 0.001 * (1.0 + index as f32 / 1000.0);
        match index % 4 {
            // Halves of a code.
            0 => group.iter_mut().enumerate().for_each(|(lane, value)| {
                *value = scale * (lane as f32 % (2.0 * code_max) - code_max + 0.5);
            }),
            // All subnormal.
            1 if index % 8 == 1 => group.iter_mut().for_each(|value| *value *= 1e-38),
            // A maximum at a tie of the scale.
            2 => group[0] = code_max * half::f16::from_f32(scale).to_f32() * (1.0 + 1.0 / 4096.0),
            // Thirds of these are halves of a code, or the next number after one.
            3 => {
                let scale = 1.0 / 1024.0;
                group.iter_mut().enumerate().for_each(|(lane, value)| {
                    let half = 3.0 * scale * (lane as f32 % code_max - 0.5);
                    *value = f32::from_bits(half.to_bits() + lane as u32 / 8 % 2);
                    *value = if lane % 2 == 0 { *value } else { -*value };
                });
                group[0] = 3.0 * scale * code_max;
            }
            _ => {}
        }
    }
    values
}

const ROWS: usize = 5;
const COLUMNS: usize = 4000;

fn quantize(backend: Option<Backend>, format: Format, values: &[f32]) -> (Result<(), Error>, Vec<u8>) {
    let plan = Plan::new(format, Layout::RowSplitK128V1, &[ROWS as u64, COLUMNS as u64]).unwrap();
    let mut payload = vec![0; plan.payload_bytes() as usize];
    let result = if planted() == Planted::UnguardedMultiply {
        let values: Vec<f32> =
            values.iter().map(|value| core::hint::black_box(*value) * (1.0 / 3.0)).collect();
        TensorMut::new(plan, &mut payload).unwrap().quantize_with(backend, Source::F32(&values), COLUMNS)
    } else {
        TensorMut::new(plan, &mut payload).unwrap().quantize_with(backend, Source::F32(values), COLUMNS)
    };
    (result, payload)
}

fn all_ways() -> Vec<Option<Backend>> {
    backends().into_iter().map(Some).chain([None]).collect()
}

#[test]
fn results_and_mode_are_the_same_in_every_mode() {
    for format in FORMATS {
        let values = sensitive(format, ROWS * COLUMNS);
        let expected = quantize(None, format, &values);
        assert_eq!(expected.0, Ok(()));
        for backend in all_ways() {
            for mode in modes() {
                let actual = in_mode(mode, || quantize(backend, format, &values));
                assert!(actual == expected, "{backend:?} {format:?} in mode {mode:#x}");
            }
        }
    }
}

#[test]
fn the_mode_is_kept_when_a_call_fails() {
    let faults = [(f32::NAN, 1700), (f32::INFINITY, 3999), (1e7, 4000), (f32::NAN, 19_999)];
    for format in FORMATS {
        for (fault, index) in faults {
            let mut values = sensitive(format, ROWS * COLUMNS);
            values[index] = fault;
            let expected = quantize(None, format, &values).0;
            assert!(expected.is_err());
            for backend in all_ways() {
                for mode in modes() {
                    assert_eq!(in_mode(mode, || quantize(backend, format, &values).0), expected);
                }
            }
        }
    }
}

/// Raised flags stay raised, and lowered ones lowered; exceptions that the caller wants do not come from us.
#[test]
fn flags_and_masks_are_kept() {
    let values = sensitive(Format::Q4G64F16S, ROWS * COLUMNS);
    let expected = quantize(None, Format::Q4G64F16S, &values);
    for backend in all_ways() {
        for word in [MASKED | 0x3f, MASKED | 0x01, MASKED | 0x20, 0x0000, 0x1e80] {
            let actual = in_mode(word, || quantize(backend, Format::Q4G64F16S, &values));
            assert!(actual == expected, "{backend:?} with {word:#x}");
        }
    }
}

#[test]
fn the_question_for_the_mode_knows_all_modes() {
    for mode in modes() {
        let word = read();
        // The question itself raises flags.
        // SAFETY: as in `in_mode`.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, preserves_flags)) };
        let is_default = super::portable_quantize::is_default_float_mode();
        // SAFETY: as in `in_mode`.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
        assert_eq!(is_default, mode == MASKED, "mode {mode:#x}");
    }
}

/// A negative control: these tests see a multiplication that is not guarded, in each mode.
#[test]
fn a_planted_multiplication_is_seen_in_every_mode() {
    PLANTED.set(Planted::UnguardedMultiply);
    for backend in all_ways() {
        let values = sensitive(Format::W8G32F16S, ROWS * COLUMNS);
        let expected = quantize(backend, Format::W8G32F16S, &values);
        for mode in modes().skip(1) {
            let actual = unchecked_in_mode(mode, || quantize(backend, Format::W8G32F16S, &values));
            assert!(actual != expected, "{backend:?}: not seen in mode {mode:#x}");
        }
    }
    PLANTED.set(Planted::Nothing);
}

/// Another: without the guard, every rounding mode shows.
#[test]
fn a_missing_guard_is_seen() {
    PLANTED.set(Planted::NoGuard);
    for backend in backends() {
        for format in FORMATS {
            let values = sensitive(format, ROWS * COLUMNS);
            let expected = quantize(backend.into(), format, &values);
            for rounding in ROUNDINGS.into_iter().skip(1) {
                let actual =
                    unchecked_in_mode(MASKED | rounding, || quantize(backend.into(), format, &values));
                assert!(actual != expected, "{backend:?} {format:?}: not seen in rounding {rounding:#x}");
            }
        }
    }
    PLANTED.set(Planted::Nothing);
}

/// As [`in_mode`], where float operations of the test's own raise flags.
fn unchecked_in_mode<R>(mode: u32, run: impl FnOnce() -> R) -> R {
    let before = read();
    // SAFETY: as in `in_mode`.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, preserves_flags)) };
    let result = run();
    // SAFETY: as in `in_mode`.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const before, options(nostack, preserves_flags)) };
    result
}
