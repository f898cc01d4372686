//! NVFP4: E2M1 codes, an E4M3FN scale for 16 of them, one FP32 divisor a matrix. Spec: tensor-formats §3.3.
//!
//! The represented weight is the exact quotient `e2m1 * e4m3fn / divisor`; its binary32 or binary64 value
//! is that quotient rounded once.

use super::rounding::{f32_bits_from_scaled, f32_split, f64_bits_from_scaled};
use super::{WordFault, e2m1, e4m3fn};

/// Weights along K that share one scale word.
pub const GROUP: usize = 16;

/// Checks the divisor: finite and strictly positive.
///
/// # Errors
/// The [`WordFault`] that makes the word illegal.
///
/// # Panics
/// Never.
pub const fn check_divisor(word: u32) -> Result<(), WordFault> {
    const INFINITY: u32 = 0x7f80_0000;
    match (word & 0x7fff_ffff, word >> 31) {
        (0, 0) => Err(WordFault::Zero),
        (..INFINITY, 0) => Ok(()),
        (0, _) => Err(WordFault::NegativeZero),
        (..INFINITY, _) => Err(WordFault::Negative),
        (INFINITY, _) => Err(WordFault::Infinite),
        _ => Err(WordFault::Nan),
    }
}

/// Returns the binary32 word of `code * scale / divisor`, for legal scale and divisor words.
///
/// # Panics
/// Never.
///
/// ```
/// use ninfer_codec::format::nvfp4::quotient_f32_bits;
/// assert_eq!(quotient_f32_bits(0x2, 0x38, 2.0f32.to_bits()), 0.5f32.to_bits()); // 1.0 * 1.0 / 2.0
/// assert_eq!(quotient_f32_bits(0x8, 0x38, 2.0f32.to_bits()), (-0.0f32).to_bits());
/// ```
#[must_use]
pub const fn quotient_f32_bits(code: u8, scale: u8, divisor: u32) -> u32 {
    let (significand, exponent) = quotient(code, scale, divisor);
    ((code & 8) as u32) << 28 | f32_bits_from_scaled(significand, exponent)
}

/// Returns the binary64 word of `code * scale / divisor`, for legal scale and divisor words.
///
/// # Panics
/// Never.
#[must_use]
pub const fn quotient_f64_bits(code: u8, scale: u8, divisor: u32) -> u64 {
    let (significand, exponent) = quotient(code, scale, divisor);
    ((code & 8) as u64) << 60 | f64_bits_from_scaled(significand, exponent)
}

/// The quotient's magnitude as `(significand, exponent)`: at least 55 leading bits, the rest in a sticky bit.
#[expect(clippy::indexing_slicing, reason = "a masked index into 8 entries")]
const fn quotient(code: u8, scale: u8, divisor: u32) -> (u64, i32) {
    const HALF: i32 = -1;
    let (scale_significand, scale_exponent) = e4m3fn::split(scale);
    let product = e2m1::HALVES[(code & 7) as usize] as u64 * scale_significand as u64;
    let (significand, exponent) = f32_split(divisor);
    if significand == 0 {
        return (0, 0); // not a legal divisor
    }
    // A divisor of exactly 24 bits, so that the quotient's width is known: the product is below 2^8. Its top bit
    // is set as it is; to say so shows the compiler that it is not zero.
    const HIDDEN: u32 = 1 << 23;
    let lift = significand.leading_zeros() - 8;
    let divisor = (significand << lift | HIDDEN) as u64;
    let divisor_exponent = exponent - lift as i32;
    // Long division in two digits, of 40 and 38 bits: each dividend stays below 2^64.
    const HIGH: i32 = 40;
    const LOW: i32 = 38;
    let high = product << HIGH;
    let low = (high % divisor) << LOW;
    let digits = ((high / divisor) << LOW) | (low / divisor);
    let sticky = !low.is_multiple_of(divisor) as u64;
    (digits | sticky, HALF + scale_exponent - divisor_exponent - HIGH - LOW)
}

/// All quotients of one divisor: eight scale significands times two code significands, each rounded once.
///
/// Every nonzero product of an E2M1 and an E4M3FN word is `(1 or 1.5) * (1 + m/8) * 2^e`. Scaling a rounded
/// quotient by a power of two is exact while it stays normal, so 16 divisions serve a whole matrix.
#[derive(Clone, Copy)]
pub(crate) struct Quotients {
    divisor: u32,
    /// Indexed by `m`, then by code significand: 1 or 1.5; `None` where a result can leave the normal range.
    f32_bits: Option<[[u32; 2]; 8]>,
}

/// Code words of 1.0 and 1.5, and the scale word of 1.0.
const CODE_ONE: u8 = 2;
const CODE_ONE_AND_A_HALF: u8 = 3;
const SCALE_ONE: u8 = 0x38;

impl Quotients {
    pub(crate) fn new(divisor: u32) -> Self {
        // Products lie in 2^-10 .. 2^12; with the divisor inside 2^-100 .. 2^100 no quotient is near an end.
        const LOW: u32 = (127 - 100) << 23;
        const HIGH: u32 = (127 + 100) << 23;
        let f32_bits = (LOW..HIGH)
            .contains(&divisor)
            .then(|| significands(|code, scale| quotient_f32_bits(code, scale, divisor)));
        Self { divisor, f32_bits }
    }

    /// The binary32 words of all 16 codes under one scale.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a masked index into 8 entries")]
    pub(crate) fn group_f32_bits(&self, scale: u8) -> [u32; 16] {
        let Some(table) = self.f32_bits else {
            let mut code = 0;
            return [(); 16].map(|()| {
                let word = quotient_f32_bits(code, scale, self.divisor);
                code += 1;
                word
            });
        };
        let (m, exponent) = scale_parts(scale);
        let [one, one_and_a_half] = table[m];
        // Adding to the exponent field scales by a power of two; a zero scale makes every magnitude zero.
        const DOUBLE: u32 = 1 << 23;
        let Some(exponent) = exponent else { return with_signs([0; 8], 1 << 31) };
        let lift = (exponent as u32).wrapping_mul(DOUBLE);
        let (one, one_and_a_half) = (one.wrapping_add(lift), one_and_a_half.wrapping_add(lift));
        let magnitudes = [
            0,
            one.wrapping_sub(DOUBLE),
            one,
            one_and_a_half,
            one.wrapping_add(DOUBLE),
            one_and_a_half.wrapping_add(DOUBLE),
            one.wrapping_add(2 * DOUBLE),
            one_and_a_half.wrapping_add(2 * DOUBLE),
        ];
        with_signs(magnitudes, 1 << 31)
    }

    /// Gives the binary32 words of all 16 codes under every scale in turn, the last of which is a NaN and means
    /// nothing.
    #[inline]
    pub(crate) fn each_scale(&self, mut take: impl FnMut([u32; 16])) {
        // Where no result leaves the normal range, scales from 16 on give what the one 8 before gives, doubled.
        const SCALES_A_BINADE: u8 = 8;
        const BINADES: u8 = 16;
        const ONE: u32 = 1 << 23;
        const HALF: [u32; 8] = [0, ONE, ONE, ONE, ONE, ONE, ONE, ONE];
        const DOUBLE: [[u32; 8]; 2] = [HALF; 2];
        if self.f32_bits.is_none() {
            return (0..SCALES_A_BINADE * BINADES).for_each(|scale| take(self.group_f32_bits(scale)));
        }
        (0..SCALES_A_BINADE).for_each(|scale| take(self.group_f32_bits(scale)));
        let mut scale = SCALES_A_BINADE;
        let mut binade = [(); SCALES_A_BINADE as usize].map(|()| {
            let words = self.group_f32_bits(scale);
            scale += 1;
            words
        });
        for _ in 1..BINADES {
            for words in &mut binade {
                take(*words);
                for (word, double) in words.iter_mut().zip(DOUBLE.as_flattened()) {
                    *word = word.wrapping_add(*double);
                }
            }
        }
    }
}

/// All quotients of one divisor in binary64; see [`Quotients`]. None leaves the normal range.
pub(crate) struct Quotients64([[u64; 2]; 8]);

impl Quotients64 {
    pub(crate) fn new(divisor: u32) -> Self {
        Self(significands(|code, scale| quotient_f64_bits(code, scale, divisor)))
    }

    /// The binary64 words of all 16 codes under one scale.
    #[expect(clippy::indexing_slicing, reason = "a masked index into 8 entries")]
    pub(crate) fn group_bits(&self, scale: u8) -> [u64; 16] {
        let (m, exponent) = scale_parts(scale);
        let [one, one_and_a_half] = self.0[m & 7];
        const DOUBLE: u64 = 1 << 52;
        let Some(exponent) = exponent else { return with_signs([0; 8], 1 << 63) };
        let lift = (i64::from(exponent) as u64).wrapping_mul(DOUBLE);
        let (one, one_and_a_half) = (one.wrapping_add(lift), one_and_a_half.wrapping_add(lift));
        let magnitudes = [
            0,
            one.wrapping_sub(DOUBLE),
            one,
            one_and_a_half,
            one.wrapping_add(DOUBLE),
            one_and_a_half.wrapping_add(DOUBLE),
            one.wrapping_add(2 * DOUBLE),
            one_and_a_half.wrapping_add(2 * DOUBLE),
        ];
        with_signs(magnitudes, 1 << 63)
    }
}

/// The quotients of code significands 1 and 1.5 under the eight scale significands of exponent 0.
fn significands<W>(quotient: impl Fn(u8, u8) -> W) -> [[W; 2]; 8] {
    let mut scale = SCALE_ONE;
    [(); 8].map(|()| {
        let pair = [CODE_ONE, CODE_ONE_AND_A_HALF].map(|code| quotient(code, scale));
        scale += 1;
        pair
    })
}

/// The significand's `m` and the exponent of a scale word's magnitude; no exponent for zero.
fn scale_parts(scale: u8) -> (usize, Option<i32>) {
    // Its own binary32 word names its exponent and, in the top three fraction bits, its m.
    let bits = e4m3fn::to_f32_bits(scale & 0x7f);
    let exponent = (bits >> 23) as i32 - 127;
    ((bits >> 20 & 7) as usize, (bits != 0).then_some(exponent))
}

/// The magnitudes of codes 0 to 7, then the same with the sign.
fn with_signs<W: Copy + core::ops::BitOr<Output = W>>(magnitudes: [W; 8], sign: W) -> [W; 16] {
    let mut words = [sign; 16];
    let (positive, negative) = words.split_at_mut(8);
    for ((positive, negative), magnitude) in positive.iter_mut().zip(negative).zip(magnitudes) {
        (*positive, *negative) = (magnitude, magnitude | sign);
    }
    words
}
