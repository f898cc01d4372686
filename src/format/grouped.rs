//! The grouped signed-integer formats: Q4, Q5, Q6, W8. Spec: tensor-formats §3.2, §5, §6.

use super::binary16;

/// One of the four grouped schemes; there is no way to make another. Its numbers are in
/// [`Format::descriptor`](crate::Format::descriptor).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    pub(crate) code_bits: u32,
    pub(crate) group: u32,
    pub(crate) code_min: i8,
    pub(crate) code_max: i8,
}

/// Q4G64_F16S.
pub const Q4: Scheme = Scheme { code_bits: 4, group: 64, code_min: -8, code_max: 7 };
/// Q5G64_F16S.
pub const Q5: Scheme = Scheme { code_bits: 5, group: 64, code_min: -16, code_max: 15 };
/// Q6G64_F16S.
pub const Q6: Scheme = Scheme { code_bits: 6, group: 64, code_min: -32, code_max: 31 };
/// W8G32_F16S; -128 is not a legal code.
pub const W8: Scheme = Scheme { code_bits: 8, group: 32, code_min: -127, code_max: 127 };

impl Scheme {
    /// Returns the width of a logical code word in bits.
    #[must_use]
    pub const fn code_bits(&self) -> u32 {
        self.code_bits
    }

    /// Returns how many weights along K share one scale.
    #[must_use]
    pub const fn group(&self) -> u32 {
        self.group
    }

    /// Returns the least legal code.
    #[must_use]
    pub const fn code_min(&self) -> i8 {
        self.code_min
    }

    /// Returns the greatest legal code, which is also the canonical encoder's denominator.
    #[must_use]
    pub const fn code_max(&self) -> i8 {
        self.code_max
    }

    /// Says whether `code` lies in the legal interval.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub const fn is_legal_code(&self, code: i8) -> bool {
        self.code_min <= code && code <= self.code_max
    }

    /// Says whether `code` is the signed code of some logical word: W8 -128 is one, though not a legal code.
    pub(crate) const fn is_signed_code(&self, code: i8) -> bool {
        self.signed_code(code as u8) == code
    }

    /// Returns the signed code of a logical word: two's complement of `code_bits` bits, higher bits ignored.
    ///
    /// # Panics
    /// Never.
    ///
    /// ```
    /// assert_eq!(ninfer_codec::format::grouped::Q5.signed_code(0x10), -16);
    /// ```
    #[must_use]
    pub const fn signed_code(&self, word: u8) -> i8 {
        let unused = 8 - self.code_bits;
        (word << unused) as i8 >> unused
    }
}

/// Returns the binary32 word of `scale * code`, for a legal scale and any code.
///
/// An 11-bit times an 8-bit significand is exact in binary32, and neither overflows nor is subnormal, so the
/// host's rounding and flush modes cannot touch it. Code zero gives +0.
///
/// # Panics
/// Never.
///
/// Spec: tensor-formats §6.2.
#[inline]
#[must_use]
pub fn product_f32_bits(code: i8, scale: u16) -> u32 {
    (f32::from_bits(binary16::to_f32_bits(scale)) * f32::from(code)).to_bits()
}
