//! The direct scalar formats: BF16, FP32, I32. Spec: tensor-formats §3.1.
//!
//! ```text
//! BF16   s eeeeeeee fffffff                         bias 127
//! FP32   s eeeeeeee fffffffffffffffffffffff         bias 127
//! I32    two's complement
//! ```

use super::{WordClass, WordFault};

const BF16_SIGN: u16 = 0x8000;
const BF16_INFINITY: u16 = 0x7f80;
const BF16_QUIET: u16 = 0x0040;

/// Expands a BF16 word to the binary32 word of the same value; NaN payloads and the quiet bit are kept.
///
/// # Panics
/// Never.
///
/// ```
/// use ninfer_codec::format::direct::bf16_to_f32_bits;
/// assert_eq!(bf16_to_f32_bits(0x3f80), 1.0f32.to_bits());
/// assert_eq!(bf16_to_f32_bits(0x7f81), 0x7f81_0000); // a signaling NaN stays one
/// ```
#[must_use]
pub const fn bf16_to_f32_bits(word: u16) -> u32 {
    (word as u32) << 16
}

/// Rounds a binary32 word to the nearest BF16 word, ties to even; overflow gives infinity.
///
/// A NaN keeps its sign and top payload bits and becomes quiet.
///
/// # Panics
/// Never.
#[must_use]
pub const fn bf16_from_f32_bits(word: u32) -> u16 {
    if word & 0x7fff_ffff > 0x7f80_0000 {
        return (word >> 16) as u16 | BF16_QUIET;
    }
    bf16_from_ordered_f32_bits(word)
}

/// The same for a word that is no NaN.
pub(crate) const fn bf16_from_ordered_f32_bits(word: u32) -> u16 {
    // Half a unit, less one where the kept part is even; a carry runs on into the exponent as it should.
    let odd = word >> 16 & 1;
    (word.wrapping_add(0x7fff + odd) >> 16) as u16
}

/// Names the value class of a BF16 word.
///
/// # Panics
/// Never.
#[must_use]
pub const fn bf16_classify(word: u16) -> WordClass {
    let magnitude = word & !BF16_SIGN;
    match magnitude {
        0 => WordClass::Zero,
        1..=0x007f => WordClass::Subnormal,
        0x0080..BF16_INFINITY => WordClass::Normal,
        BF16_INFINITY => WordClass::Infinite,
        _ if magnitude & BF16_QUIET != 0 => WordClass::QuietNan,
        _ => WordClass::SignalingNan,
    }
}

/// Checks a BF16 row scale: sign bit zero and finite. Spec: tensor-formats §3.4.
///
/// # Errors
/// The [`WordFault`] that makes the word illegal.
///
/// # Panics
/// Never.
pub const fn bf16_check_scale(word: u16) -> Result<(), WordFault> {
    match (word & !BF16_SIGN, word & BF16_SIGN) {
        (..BF16_INFINITY, 0) => Ok(()),
        (0, _) => Err(WordFault::NegativeZero),
        (..BF16_INFINITY, _) => Err(WordFault::Negative),
        (BF16_INFINITY, _) => Err(WordFault::Infinite),
        _ => Err(WordFault::Nan),
    }
}

/// Returns the value of an I32 logical word.
///
/// # Panics
/// Never.
#[must_use]
pub const fn i32_value(word: u32) -> i32 {
    word as i32
}
