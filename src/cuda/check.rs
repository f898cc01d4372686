//! What can be found wrong with an operation's arguments before anything is enqueued, in the host's order. No device
//! is needed here.

use std::string::String;

use super::CudaError;
use crate::decode::check_strided;
use crate::error::Error;
use crate::format::{Category, Format};
use crate::layout::Plan;
use crate::value::ValueType;

/// Above this many elements, the keys by which kernels report faults would not fit a word.
const MOST_ELEMENTS: u64 = 1 << 54;

/// The rows asked for; entries of a list are checked on the device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    Range { begin: u64, count: u64 },
    List { len: u64 },
}

/// How a decode is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DecodeKernel {
    /// Words as they are, of so many bytes.
    Words { bytes: u64 },
    /// A kernel, and the columns that a warp takes at once.
    Named(String, u64),
}

/// Checks payload length and rows, and returns how many rows there are.
pub(super) fn rows(plan: &Plan, payload: usize, asked: Asked) -> Result<u64, Error> {
    length(plan, payload)?;
    match asked {
        Asked::Range { begin, count } => plan.check_rows(begin, count).map(|_| count),
        Asked::List { len: 0 } => Err(Error::EmptyRows),
        Asked::List { len } => Ok(len),
    }
}

/// Checks a decode, and returns how many rows there are and the kernel.
pub(super) fn decode(
    plan: &Plan,
    payload: usize,
    asked: Asked,
    output: ValueType,
    stride: u64,
    out: u64,
) -> Result<(u64, DecodeKernel), Error> {
    let count = rows(plan, payload, asked)?;
    let format = plan.format();
    let kernel = decode_kernel(format, output).ok_or(Error::UnsupportedOutput { format, output })?;
    check_strided(count, plan.columns(), stride, out)?;
    size(plan, count)?;
    Ok((count, kernel))
}

/// Checks a quantization, and returns the format in the kernel's name.
pub(super) fn quantize(
    plan: &Plan,
    payload: usize,
    begin: u64,
    count: u64,
    source: ValueType,
    stride: u64,
    len: u64,
) -> Result<&'static str, Error> {
    rows(plan, payload, Asked::Range { begin, count })?;
    let format = plan.format();
    let name = short_name(format).filter(|_| format.scheme().is_some());
    let name = name.ok_or(Error::NoCanonicalEncoder { format })?;
    if source == ValueType::F64 {
        return Err(Error::UnsupportedOutput { format, output: source });
    }
    check_strided(count, plan.columns(), stride, len)?;
    size(plan, count)?;
    Ok(name)
}

/// Checks a gather, and returns the plan of the result.
pub(super) fn gather(plan: &Plan, payload: usize, asked: Asked, out: usize) -> Result<Plan, Error> {
    let count = rows(plan, payload, asked)?;
    let to_plan = plan.with_rows(count)?;
    length(&to_plan, out)?;
    size(plan, count)?;
    Ok(to_plan)
}

/// Checks the scales of an NVFP4 matrix in either order.
pub(super) fn swizzle(rows: u64, columns: u64, from: u64, to: u64) -> Result<(), Error> {
    let plan = Plan::new(Format::Nvfp4, Format::Nvfp4.layout(), &[rows, columns])?;
    let expected = plan.scales().bytes;
    for actual in [from, to] {
        if actual != expected {
            return Err(Error::BufferLength { expected, actual });
        }
    }
    size(&plan, rows)
}

/// Checks that the keys of reports can name every place.
pub(super) fn size(plan: &Plan, count: u64) -> Result<(), Error> {
    let size = count.max(plan.rows()).saturating_mul(plan.columns());
    if size > MOST_ELEMENTS { Err(Error::TooLarge { size }) } else { Ok(()) }
}

/// Checks a device pointer to values; cudarc's views of its slices are aligned, so that none should fail.
pub(super) fn aligned(address: u64, multiple: usize) -> Result<(), CudaError> {
    let multiple = multiple as u64;
    if address.is_multiple_of(multiple) { Ok(()) } else { Err(CudaError::Misaligned { address, multiple }) }
}

fn length(plan: &Plan, actual: usize) -> Result<(), Error> {
    let (expected, actual) = (plan.payload_bytes(), actual as u64);
    if actual == expected { Ok(()) } else { Err(Error::PayloadLength { expected, actual }) }
}

/// The format in the names of kernels; none for direct formats.
pub(super) fn short_name(format: Format) -> Option<&'static str> {
    match format {
        Format::Q4G64F16S => Some("q4"),
        Format::Q5G64F16S => Some("q5"),
        Format::Q6G64F16S => Some("q6"),
        Format::W8G32F16S => Some("w8"),
        Format::Nvfp4 => Some("nvfp4"),
        Format::Fp8E4M3FnRowBf16S => Some("fp8"),
        Format::Bf16 | Format::Fp32 | Format::I32 => None,
    }
}

fn decode_kernel(format: Format, output: ValueType) -> Option<DecodeKernel> {
    match (format, output) {
        (Format::Bf16, ValueType::Bf16) => return Some(DecodeKernel::Words { bytes: 2 }),
        (Format::Fp32, ValueType::F32) => return Some(DecodeKernel::Words { bytes: 4 }),
        (Format::Bf16, ValueType::F32) => return Some(DecodeKernel::Named("decode_bf16_f32".into(), 256)),
        (Format::Nvfp4, _) => {}
        (_, ValueType::F64) => return None,
        _ => {}
    }
    let name = std::format!("decode_{}_{}", short_name(format)?, output.name());
    let eight_bits = format.descriptor().category == Category::RowScaled || format == Format::W8G32F16S;
    Some(DecodeKernel::Named(name, if eight_bits { 512 } else { 1024 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Asked = Asked::Range { begin: 0, count: 4 };

    fn plan(format: Format, rows: u64, columns: u64) -> Plan {
        Plan::new(format, format.layout(), &[rows, columns]).unwrap()
    }

    fn bytes(plan: &Plan) -> usize {
        plan.payload_bytes() as usize
    }

    #[test]
    fn payload_lengths_are_exact() {
        let plan = plan(Format::Q5G64F16S, 4, 130);
        let expected = plan.payload_bytes();
        for actual in [0, expected - 1, expected + 1] {
            let error = Err(Error::PayloadLength { expected, actual });
            let length = actual as usize;
            assert_eq!(rows(&plan, length, ALL).map(|_| ()), error);
            assert_eq!(decode(&plan, length, ALL, ValueType::F32, 130, 520).map(|_| ()), error);
            assert_eq!(quantize(&plan, length, 0, 4, ValueType::F32, 130, 520).map(|_| ()), error);
            assert_eq!(gather(&plan, length, ALL, bytes(&plan)).map(|_| ()), error);
            assert_eq!(gather(&plan, bytes(&plan), ALL, length).map(|_| ()), error);
        }
    }

    #[test]
    fn ranges_and_lists_of_rows() {
        let plan = plan(Format::W8G32F16S, 4, 130);
        let payload = bytes(&plan);
        for none in
            [Asked::Range { begin: 0, count: 0 }, Asked::Range { begin: 9, count: 0 }, Asked::List { len: 0 }]
        {
            assert_eq!(rows(&plan, payload, none), Err(Error::EmptyRows));
            assert_eq!(
                decode(&plan, payload, none, ValueType::F16, 130, 520).map(|_| ()),
                Err(Error::EmptyRows)
            );
            assert_eq!(gather(&plan, payload, none, payload).map(|_| ()), Err(Error::EmptyRows));
        }
        for (begin, count, row) in [
            (0, 5, 4),
            (4, 1, 4),
            (5, 1, 5),
            (u64::MAX, 1, u64::MAX),
            (1, u64::MAX, 4),
            (u64::MAX, u64::MAX, u64::MAX),
        ] {
            let error = Err(Error::RowOutOfRange { row, rows: 4 });
            let asked = Asked::Range { begin, count };
            assert_eq!(rows(&plan, payload, asked).map(|_| ()), error);
            assert_eq!(decode(&plan, payload, asked, ValueType::F16, 130, u64::MAX).map(|_| ()), error);
            assert_eq!(
                quantize(&plan, payload, begin, count, ValueType::F32, 130, u64::MAX).map(|_| ()),
                error
            );
            assert_eq!(gather(&plan, payload, asked, payload).map(|_| ()), error);
        }
        assert_eq!(rows(&plan, payload, Asked::Range { begin: 3, count: 1 }), Ok(1));
        assert_eq!(rows(&plan, payload, Asked::List { len: 9 }), Ok(9)); // entries are looked at on the device
    }

    #[test]
    fn strides_and_value_lengths() {
        let plan = plan(Format::Q4G64F16S, 4, 130);
        let payload = bytes(&plan);
        let out = |stride, len| decode(&plan, payload, ALL, ValueType::F32, stride, len).map(|_| ());
        let source = |stride, len| quantize(&plan, payload, 0, 4, ValueType::Bf16, stride, len).map(|_| ());
        for stride in [0, 129] {
            assert_eq!(out(stride, 520), Err(Error::Stride { stride, columns: 130 }));
            assert_eq!(source(stride, 520), Err(Error::Stride { stride, columns: 130 }));
        }
        assert_eq!(out(130, 519), Err(Error::BufferLength { expected: 520, actual: 519 }));
        assert_eq!(source(200, 729), Err(Error::BufferLength { expected: 730, actual: 729 }));
        assert_eq!(
            out(u64::MAX, u64::MAX),
            Err(Error::BufferLength { expected: u64::MAX, actual: u64::MAX })
        );
        assert_eq!(out(130, 520), Ok(()));
        assert_eq!(source(200, 730), Ok(()));
    }

    #[test]
    fn types_that_a_format_does_not_have() {
        for format in Format::ALL {
            let plan = plan(format, 128, 64);
            let asked = Asked::Range { begin: 0, count: 128 };
            for output in ValueType::ALL {
                let legal = match format {
                    Format::I32 => false,
                    Format::Fp32 => output == ValueType::F32,
                    Format::Bf16 => matches!(output, ValueType::F32 | ValueType::Bf16),
                    Format::Nvfp4 => true,
                    _ => output != ValueType::F64,
                };
                let result = decode(&plan, bytes(&plan), asked, output, 64, 8192);
                if legal {
                    assert!(result.is_ok(), "{format:?} {output:?}");
                } else {
                    assert_eq!(result, Err(Error::UnsupportedOutput { format, output }));
                }
            }
            let encoder = quantize(&plan, bytes(&plan), 0, 128, ValueType::F64, 64, 8192);
            let expected = match format.scheme() {
                Some(_) => Error::UnsupportedOutput { format, output: ValueType::F64 },
                None => Error::NoCanonicalEncoder { format },
            };
            assert_eq!(encoder, Err(expected));
        }
    }

    #[test]
    fn an_nvfp4_gather_goes_by_tiles() {
        let plan = plan(Format::Nvfp4, 256, 64);
        for len in [1, 127, 129] {
            let error = Error::NotMultiple { axis: 0, dimension: len, multiple: 128 };
            assert_eq!(gather(&plan, bytes(&plan), Asked::List { len }, 4).map(|_| ()), Err(error));
        }
    }

    #[test]
    fn swizzles() {
        assert_eq!(swizzle(128, 64, 512, 512), Ok(()));
        assert_eq!(swizzle(0, 64, 0, 0), Err(Error::ZeroDimension { axis: 0 }));
        assert_eq!(
            swizzle(127, 64, 508, 508),
            Err(Error::NotMultiple { axis: 0, dimension: 127, multiple: 128 })
        );
        assert_eq!(
            swizzle(128, 32, 256, 256),
            Err(Error::NotMultiple { axis: 1, dimension: 32, multiple: 64 })
        );
        assert_eq!(swizzle(128, 64, 511, 512), Err(Error::BufferLength { expected: 512, actual: 511 }));
        assert_eq!(swizzle(128, 64, 512, 513), Err(Error::BufferLength { expected: 512, actual: 513 }));
        assert_eq!(swizzle(1 << 40, 1 << 40, 0, 0), Err(Error::Overflow));
        let size = 1 << 55;
        assert_eq!(swizzle(1 << 49, 64, size / 16, size / 16), Err(Error::TooLarge { size }));
    }

    #[test]
    fn sizes_that_reports_could_not_name() {
        let plan = plan(Format::Fp32, 1 << 55, 1);
        assert_eq!(size(&plan, 1), Err(Error::TooLarge { size: 1 << 55 }));
        let plan = self::plan(Format::Fp32, 1, 1 << 30);
        assert_eq!(size(&plan, 1 << 24), Ok(()));
        assert_eq!(size(&plan, (1 << 24) + 1), Err(Error::TooLarge { size: (1 << 54) + (1 << 30) }));
        assert_eq!(size(&plan, u64::MAX), Err(Error::TooLarge { size: u64::MAX }));
    }

    #[test]
    fn misaligned_pointers() {
        assert_eq!(aligned(1 << 40, 8), Ok(()));
        for (address, multiple) in [(1, 2), (2, 4), (6, 4), (4, 8), (u64::MAX, 8)] {
            let error = CudaError::Misaligned { address, multiple: multiple as u64 };
            assert_eq!(aligned(address, multiple), Err(error));
        }
    }
}
