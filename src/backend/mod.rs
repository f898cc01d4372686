//! How it is made fast. Private: a backend defines no meaning, it only reproduces `portable`'s bytes.
//!
//! Contract of every operation here. The caller has checked every argument: planes and outputs are as long as
//! the columns ask for, scale and divisor words are legal where the operation says so. The callee writes all
//! of its output and nothing else. A backend may decline (return `false`) before it has written anything; then
//! `portable` runs. No backend's result depends on the host's float mode.

mod detect;
#[cfg(all(test, target_arch = "x86_64"))]
#[allow(unsafe_code)]
mod encode_mode_tests;
#[cfg(test)]
#[allow(unsafe_code)]
mod encode_tests;
mod portable;
mod portable_quantize;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86_64;

#[cfg(any(test, feature = "internals"))]
pub(crate) use detect::select;
pub(crate) use detect::{Backend, active};
pub(crate) use portable::{decode_fp8_row, decode_grouped_row, decode_nvfp4_row, decode_nvfp4_row_f64};

use crate::format::{Format, binary16, direct};
use crate::value::Source;

/// Narrows the binary32 word of a decoded value to an output type, rounding once.
pub(crate) trait Narrow {
    /// The output type's words.
    type Word: Copy + Default;
    /// Rounds to nearest, ties to even.
    fn narrow(f32_bits: u32) -> Self::Word;
}

/// To binary32: as it is.
pub(crate) struct ToF32;
/// To bfloat16.
pub(crate) struct ToBf16;
/// To binary16.
pub(crate) struct ToF16;

impl Narrow for ToF32 {
    type Word = u32;
    #[inline]
    fn narrow(f32_bits: u32) -> u32 {
        f32_bits
    }
}

impl Narrow for ToBf16 {
    type Word = u16;
    #[inline]
    fn narrow(f32_bits: u32) -> u16 {
        direct::bf16_from_f32_bits(f32_bits)
    }
}

impl Narrow for ToF16 {
    type Word = u16;
    #[inline]
    fn narrow(f32_bits: u32) -> u16 {
        binary16::from_f32_bits(f32_bits)
    }
}

/// A row of a grouped tensor, from the first group of a column range on.
pub(crate) struct GroupedRow<'a> {
    pub base: &'a [u8],
    pub high: &'a [u8],
    pub scales: &'a [u8],
}

/// A row of an NVFP4 tensor.
pub(crate) struct Nvfp4Row<'a> {
    /// Code pairs from the first column of the range on.
    pub codes: &'a [u8],
    /// The scale plane from the row's group 0 on: group `g` is at `g / 4 * 512 + g % 4`.
    pub scales: &'a [u8],
    /// The range's first group.
    pub first_group: usize,
}

/// Rows to quantize into the planes of a grouped tensor.
pub(crate) struct Quantize<'a> {
    pub format: Format,
    pub source: Source<'a>,
    pub rows: usize,
    pub columns: usize,
    /// Elements from one row's first to the next one's; `(rows - 1) * stride + columns` are there.
    pub stride: usize,
    /// High bytes a group.
    pub high_bytes: usize,
    /// The planes' bytes of these rows, padding included.
    pub base: &'a mut [u8],
    pub high: &'a mut [u8],
    pub scales: &'a mut [u8],
}

/// Quantizes rows with the canonical encoder's bytes, from the first on, and returns how many are complete.
///
/// It stops before a row that it cannot do: one with a value or a scale that is not finite, or any row where the
/// portable backend cannot trust the host's arithmetic. That row and those after it are unspecified then; the
/// integer encoder does the row, or says what is wrong with it.
pub(crate) fn quantize_rows(backend: Backend, job: Quantize<'_>) -> usize {
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 | Backend::Avx512 => x86_64::quantize_rows(backend, job),
        _ => portable_quantize::quantize_rows(job),
    }
}
