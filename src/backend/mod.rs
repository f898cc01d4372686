//! How it is made fast. Private: a backend defines no meaning, it only reproduces `portable`'s bytes.
//!
//! Contract of every operation here. The caller has checked every argument: planes and outputs are as long as
//! the columns ask for, scale and divisor words are legal where the operation says so. The callee writes all
//! of its output and nothing else. A backend may decline (return `false`) before it has written anything; then
//! `portable` runs. No backend's result depends on the host's float mode.

mod detect;
mod portable;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86_64;

pub(crate) use detect::active;
#[cfg(any(test, feature = "internals"))]
pub(crate) use detect::{Backend, select};
pub(crate) use portable::{decode_fp8_row, decode_grouped_row, decode_nvfp4_row, decode_nvfp4_row_f64};

use crate::format::{binary16, direct};

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
