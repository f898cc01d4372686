//! binary16, the scale type of the grouped formats. Not a tensor format. Spec: tensor-formats §6.1.
//!
//! ```text
//! s eeeee ffffffffff    bias 15
//! ```

use super::rounding::shift_right_ties_even;
use super::{WordClass, WordFault};

const SIGN: u16 = 0x8000;
pub(crate) const INFINITY: u16 = 0x7c00;
/// The least normal magnitude, 2^-14.
pub(crate) const MIN_NORMAL: u16 = 0x0400;
/// The exponent field of binary32 less that of binary16, in place.
const REBIAS: u32 = (127 - 15) << 23;
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
        0x0400..0x7c00 => sign | ((magnitude << 13) + REBIAS),
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
    const NORMAL: u32 = 0x3880_0000;
    const OVERFLOW: u32 = 0x477f_f000;
    const F32_INFINITY: u32 = 0x7f80_0000;
    let sign = (word >> 16) as u16 & SIGN;
    let magnitude = word & 0x7fff_ffff;
    sign | match magnitude {
        0..NORMAL => {
            // Counted in units of 2^-24. The few subnormal binary32 words are far below half of one.
            let significand = magnitude & 0x007f_ffff | 0x0080_0000;
            let field = magnitude >> 23;
            shift_right_ties_even(significand as u64, 126 - field) as u16
        }
        NORMAL..OVERFLOW => rounded_magnitude(magnitude) as u16,
        OVERFLOW..=F32_INFINITY => INFINITY,
        _ => INFINITY | QUIET | (magnitude >> 13 & 0x3ff) as u16,
    }
}

/// The same for a zero, or a finite magnitude of at least 2^-14, without a branch.
#[inline]
pub(crate) fn from_normal_f32_bits(word: u32) -> u16 {
    let sign = (word >> 16) as u16 & SIGN;
    // A zero comes out below zero, what overflows at infinity or above. Vectors are narrowed by an instruction that
    // saturates, and have minima and maxima of 16 bits.
    let rounded = rounded_magnitude(word & 0x7fff_ffff).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
    sign | rounded.clamp(0, INFINITY as i16) as u16
}

/// The rounded binary16 magnitude of a binary32 one that is normal in binary16. A zero comes out negative, what overflows
/// at [`INFINITY`] or above.
const fn rounded_magnitude(magnitude: u32) -> i32 {
    // Half a unit, less one where the kept part is even; a carry runs on into the exponent as it should.
    let odd = magnitude >> 13 & 1;
    magnitude.wrapping_sub(REBIAS).wrapping_add(0x0fff + odd) as i32 >> 13
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
        1..MIN_NORMAL => WordClass::Subnormal,
        MIN_NORMAL..INFINITY => WordClass::Normal,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branchless_way_agrees_on_zeros_and_all_that_it_takes() {
        // All signs, exponents and upper fractions, with what decides about the rounding below them.
        let lower = [0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff];
        let words = (0..1 << 19).flat_map(|upper| lower.map(|lower| upper << 13 | lower));
        let taken = words.filter(|word| matches!(word & 0x7fff_ffff, 0 | 0x3880_0000..0x7f80_0000));
        let mut count = 0;
        for word in taken {
            assert_eq!(from_normal_f32_bits(word), from_f32_bits(word), "{word:08x}");
            count += 1;
        }
        assert_eq!(count, 2 + 2 * 6 * (0x7f80_0000 / 0x2000 - 0x3880_0000 / 0x2000));
    }
}
