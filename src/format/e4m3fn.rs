//! E4M3FN, the scale word of NVFP4 and the code word of FP8_E4M3FN_ROW_BF16S. Spec: tensor-formats §3.3.
//!
//! ```text
//! s eeee mmm    bias 7; no infinities; 0x7f and 0xff are NaN
//! ```

use super::rounding::f32_bits_from_scaled;
use super::{WordClass, WordFault};

const SIGN: u8 = 0x80;
/// Magnitude of the two NaN words.
pub(crate) const NAN: u8 = 0x7f;
/// What decoding gives for either NaN word, whatever its sign or scale.
pub(crate) const NAN_F32_BITS: u32 = 0x7fc0_0000;

/// The binary32 word of each of the 256 words; both NaN words give `0x7fc00000`.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
pub static F32_BITS: [u32; 256] = {
    let mut table = [0; 256];
    let mut word = 0;
    while word < 256 {
        table[word] = compute_f32_bits(word as u8);
        word += 1;
    }
    table
};

/// Splits a word's magnitude into `(significand, exponent)` with `value = significand * 2^exponent`.
pub(crate) const fn split(word: u8) -> (u32, i32) {
    let field = (word >> 3 & 0xf) as i32;
    let fraction = (word & 7) as u32;
    if field == 0 { (fraction, -9) } else { (8 + fraction, field - 10) }
}

/// Computes what [`to_f32_bits`] looks up.
pub(crate) const fn compute_f32_bits(word: u8) -> u32 {
    if word & !SIGN == NAN {
        return NAN_F32_BITS;
    }
    let (significand, exponent) = split(word);
    ((word & SIGN) as u32) << 24 | f32_bits_from_scaled(significand as u64, exponent)
}

/// Returns the binary32 word of an E4M3FN word; a NaN word gives `0x7fc00000`.
///
/// # Panics
/// Never.
///
/// ```
/// assert_eq!(ninfer_codec::format::e4m3fn::to_f32_bits(0x7e), 448.0f32.to_bits());
/// ```
#[must_use]
#[expect(clippy::indexing_slicing, reason = "a byte into 256 entries")]
pub fn to_f32_bits(word: u8) -> u32 {
    F32_BITS[word as usize]
}

/// Names the value class of an E4M3FN word; its NaN words are neither quiet nor signaling.
///
/// # Panics
/// Never.
#[must_use]
pub const fn classify(word: u8) -> WordClass {
    match word & !SIGN {
        0 => WordClass::Zero,
        1..=7 => WordClass::Subnormal,
        NAN => WordClass::Nan,
        _ => WordClass::Normal,
    }
}

/// Checks an NVFP4 block scale: sign bit zero and finite.
///
/// # Errors
/// The [`WordFault`] that makes the word illegal.
///
/// # Panics
/// Never.
pub const fn check_scale(word: u8) -> Result<(), WordFault> {
    match word {
        0..NAN => Ok(()),
        SIGN => Err(WordFault::NegativeZero),
        NAN | 0xff => Err(WordFault::Nan),
        _ => Err(WordFault::Negative),
    }
}

/// Says whether a word may stand as an FP8 weight code: every word but the two NaNs. Spec: §3.4.
///
/// # Panics
/// Never.
#[must_use]
pub const fn is_legal_code(word: u8) -> bool {
    word & !SIGN != NAN
}
