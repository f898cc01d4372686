//! Results do not depend on the caller's float mode, and the mode is as it was afterwards.

use std::vec::Vec;

use super::{Chooser, Numbers, QUANTIZED, clean_payload, decode, outputs, payload};
use crate::backend::host_mode::{FLAGS, all_modes, run_in};
use crate::backend::{Backend, select};
use crate::{Format, Tensor, ValueType};

/// Runs an operation in a float mode and looks whether the mode is left alone.
fn in_mode<T>(mode: u64, operation: &dyn Fn() -> T) -> T {
    let (result, [before, after]) = run_in(mode, operation);
    assert_eq!(after & !FLAGS, before & !FLAGS, "the mode was changed");
    result
}

fn all_backends(chooser: &Chooser<'_>) -> Vec<Backend> {
    let mut backends = chooser.vector_backends();
    backends.push(Backend::Portable);
    backends
}

#[test]
fn decoding() {
    let chooser = Chooser::new();
    let mut numbers = Numbers(7);
    for format in QUANTIZED.into_iter().chain([Format::Bf16, Format::Fp32]) {
        for columns in [192, 1024] {
            let (plan, mut payload) = payload(format, 128, columns, &mut numbers);
            if format == Format::Fp8E4M3FnRowBf16S {
                // Products that are subnormal or infinite too.
                let at = plan.scales().offset as usize;
                for (scale, word) in (0u16..).zip(payload[at..].as_chunks_mut().0) {
                    *word = (scale * 255).to_le_bytes();
                }
            }
            let divisors: &[u32] = &[0x3fd9_999a, 0x7f00_0001, 0x0000_0001];
            for divisor in if format == Format::Nvfp4 { divisors } else { &divisors[..1] } {
                if format == Format::Nvfp4 {
                    let at = plan.divisor().offset as usize;
                    payload[at..].copy_from_slice(&divisor.to_le_bytes());
                }
                for &value in outputs(format) {
                    assert!(select(Backend::Portable));
                    let operation = || decode(plan, &payload, value, columns, 0);
                    let expected = operation();
                    for backend in all_backends(&chooser) {
                        assert!(select(backend));
                        for mode in all_modes() {
                            let what = (format.name(), value.name(), backend.name());
                            let same = || in_mode(mode, &operation) == expected;
                            assert!(same(), "{what:?} in mode {mode:04x}");
                            let without = super::without_bf16(backend, same);
                            assert!(without != Some(false), "{what:?} in mode {mode:04x}, no bf16");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn validation_and_refusal() {
    let chooser = Chooser::new();
    let mut numbers = Numbers(8);
    for format in QUANTIZED {
        let (plan, mut clean) = {
            let plan = crate::Plan::new(format, format.layout(), &[128, 192]).unwrap();
            (plan, clean_payload(plan, &mut numbers))
        };
        for backend in all_backends(&chooser) {
            assert!(select(backend));
            for mode in all_modes() {
                in_mode(mode, &|| assert_eq!(Tensor::new(plan, &clean).unwrap().validate(), Ok(())));
            }
        }
        // The mode is left alone by a call that fails, too.
        clean[plan.scales().offset as usize + 1] = 0xff;
        let tensor = Tensor::new(plan, &clean).unwrap();
        for backend in all_backends(&chooser) {
            assert!(select(backend));
            for mode in all_modes() {
                let refused = in_mode(mode, &|| {
                    let mut out = std::vec![0.0f32; 128 * 192];
                    tensor.validate().is_err() && tensor.decode(&mut out[..], 192).is_err()
                });
                assert!(refused, "{} in mode {mode:04x}", format.name());
            }
        }
    }
    let _ = ValueType::F32;
}
