//! The canonical quantizer under every float mode a caller may have set, and that mode left as it was.
//!
//! What each operation does about the mode: the integer encoder has no float operation; the vector backends and
//! the portable one beside them run under the default mode and set the caller's again, exception flags included;
//! the portable one on other targets asks for the mode and declines in any but the default one.

use core::cell::Cell;
use std::vec;
use std::vec::Vec;

use super::Backend;
use super::encode_tests::{FORMATS, Random, backends};
use super::host_mode::{CHANGES, DEFAULT, ROUNDINGS, all_modes, modes, run_in};
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

/// Runs in a mode, and checks that the mode and the flags are still those when it returns.
fn in_mode<R>(mode: u64, run: impl FnOnce() -> R) -> R {
    let (result, [before, after]) = run_in(mode, run);
    assert_eq!(after, before, "the caller's mode or flags have changed");
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
            for mode in all_modes() {
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
        for word in CHANGES.map(|change| DEFAULT ^ change) {
            let actual = in_mode(word, || quantize(backend, Format::Q4G64F16S, &values));
            assert!(actual == expected, "{backend:?} with {word:#x}");
        }
    }
}

#[test]
fn the_question_for_the_mode_knows_all_modes() {
    for mode in modes() {
        // The question itself raises flags.
        let (is_default, _) = run_in(mode, super::portable_quantize::is_default_float_mode);
        assert_eq!(is_default, mode == DEFAULT, "mode {mode:#x}");
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
            let actual = run_in(mode, || quantize(backend, Format::W8G32F16S, &values)).0;
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
                let actual = run_in(DEFAULT | rounding, || quantize(backend.into(), format, &values)).0;
                assert!(actual != expected, "{backend:?} {format:?}: not seen in rounding {rounding:#x}");
            }
        }
    }
    PLANTED.set(Planted::Nothing);
}
