//! binary16, the scale type of the grouped formats. Not a tensor format. Spec: tensor-formats §6.1.
//!
//! ```text
//! s eeeee ffffffffff    bias 15
//! ```

use super::rounding::shift_right_ties_even;
use super::{WordClass, WordFault};

const SIGN: u16 = 0x8000;
pub(crate) const INFINITY: u16 = 0x7c00;
const QUIET: u16 = 0x0200;

/// The scale word that rescues a nonzero group whose scale rounds to zero: 2^-24, the least positive.
pub const MIN_POSITIVE: u16 = 0x0001;

/// Expands a binary16 word to the binary32 word of the same value; NaN payloads and the quiet bit are kept.
///
/// # Panics
/// Never.
///
/// ```
/// use ninfer_codec::format::binary16::to_f32_bits;
/// assert_eq!(to_f32_bits(0x3c00), 1.0f32.to_bits());
/// assert_eq!(to_f32_bits(0x0001), (2.0f32).powi(-24).to_bits());
/// ```
#[must_use]
pub const fn to_f32_bits(word: u16) -> u32 {
    // The binary32 exponent field of 2^0 less that of binary16.
    const REBIAS: u32 = 127 - 15;
    let sign = ((word & SIGN) as u32) << 16;
    let magnitude = (word & !SIGN) as u32;
    let fraction = magnitude & 0x3ff;
    match magnitude {
        0 => sign,
        1..0x0400 => {
            // fraction * 2^-24: move the leading one to the implicit place.
            let width = 32 - fraction.leading_zeros();
            let field = 127 - 24 + (width - 1);
            sign | field << 23 | (fraction << (24 - width) & 0x007f_ffff)
        }
        0x0400..0x7c00 => sign | ((magnitude << 13) + (REBIAS << 23)),
        _ => sign | 0x7f80_0000 | fraction << 13,
    }
}

/// Rounds a binary32 word to the nearest binary16 word, ties to even; overflow gives infinity.
///
/// A NaN keeps its sign and top payload bits and becomes quiet.
///
/// # Panics
/// Never.
#[must_use]
pub const fn from_f32_bits(word: u32) -> u16 {
    // The least binary32 magnitudes that are normal in binary16, and that round to its infinity.
    const MIN_NORMAL: u32 = 0x3880_0000;
    const OVERFLOW: u32 = 0x477f_f000;
    const F32_INFINITY: u32 = 0x7f80_0000;
    const REBIAS: u32 = (127 - 15) << 23;
    let sign = (word >> 16) as u16 & SIGN;
    let magnitude = word & 0x7fff_ffff;
    sign | match magnitude {
        0..MIN_NORMAL => {
            // Counted in units of 2^-24. The few subnormal binary32 words are far below half of one.
            let significand = magnitude & 0x007f_ffff | 0x0080_0000;
            let field = magnitude >> 23;
            shift_right_ties_even(significand as u64, 126 - field) as u16
        }
        MIN_NORMAL..OVERFLOW => {
            let odd = magnitude >> 13 & 1;
            ((magnitude - REBIAS + 0x0fff + odd) >> 13) as u16
        }
        OVERFLOW..=F32_INFINITY => INFINITY,
        _ => INFINITY | QUIET | (magnitude >> 13 & 0x3ff) as u16,
    }
}

/// Names the value class of a binary16 word.
///
/// # Panics
/// Never.
#[must_use]
pub const fn classify(word: u16) -> WordClass {
    let magnitude = word & !SIGN;
    match magnitude {
        0 => WordClass::Zero,
        1..0x0400 => WordClass::Subnormal,
        0x0400..INFINITY => WordClass::Normal,
        INFINITY => WordClass::Infinite,
        _ if magnitude & QUIET != 0 => WordClass::QuietNan,
        _ => WordClass::SignalingNan,
    }
}

/// Checks a grouped scale: positive zero, or finite and positive.
///
/// # Errors
/// The [`WordFault`] that makes the word illegal.
///
/// # Panics
/// Never.
pub const fn check_scale(word: u16) -> Result<(), WordFault> {
    match (word & !SIGN, word & SIGN) {
        (..INFINITY, 0) => Ok(()),
        (0, _) => Err(WordFault::NegativeZero),
        (..INFINITY, _) => Err(WordFault::Negative),
        (INFINITY, _) => Err(WordFault::Infinite),
        _ => Err(WordFault::Nan),
    }
}
