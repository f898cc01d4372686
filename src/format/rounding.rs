//! Rounding to nearest, ties to even, in integers.
//!
//! The encoder's oracle, NVFP4's quotients and the conversions round here, so that no result depends on the
//! host's float mode; the backends are compared with them byte for byte. Spec: tensor-formats §7.2 ("All binary32 and binary16 operations use round-to-nearest, ties-to-even").

/// Returns `value / 2^shift` rounded to the nearest integer, ties to even; any shift is legal.
///
/// # Panics
/// Never.
///
/// ```
/// use ninfer_codec::format::rounding::shift_right_ties_even;
/// assert_eq!([1, 2, 3, 5, 6, 7].map(|v| shift_right_ties_even(v, 1)), [0, 1, 2, 2, 3, 4]);
/// ```
#[must_use]
pub const fn shift_right_ties_even(value: u64, shift: u32) -> u64 {
    match shift {
        0 => value,
        1..=63 => {
            let quotient = value >> shift;
            let rest = value & ((1 << shift) - 1);
            let half = 1 << (shift - 1);
            quotient + (rest > half || (rest == half && quotient & 1 == 1)) as u64
        }
        64 => (value > 1 << 63) as u64,
        _ => 0,
    }
}

/// Returns the binary32 word nearest to `significand * 2^exponent`; overflow gives infinity.
///
/// A significand that stands for a longer number carries that number's lost bits as a sticky bit 0, which
/// is enough whenever it has 26 bits or more.
#[must_use]
pub(crate) const fn f32_bits_from_scaled(significand: u64, exponent: i32) -> u32 {
    // Exponent of the unit in the last place of a binary32 subnormal, and the fraction's width.
    const MIN_EXPONENT: i32 = -149;
    const FRACTION_BITS: i32 = 23;
    let wide = scaled_to_bits(significand, exponent, MIN_EXPONENT, FRACTION_BITS, F32_INFINITY as u64);
    wide as u32
}

/// Returns the binary64 word nearest to `significand * 2^exponent`; overflow gives infinity.
///
/// A sticky bit 0 is enough whenever the significand has 55 bits or more.
#[must_use]
pub(crate) const fn f64_bits_from_scaled(significand: u64, exponent: i32) -> u64 {
    const MIN_EXPONENT: i32 = -1074;
    const FRACTION_BITS: i32 = 52;
    scaled_to_bits(significand, exponent, MIN_EXPONENT, FRACTION_BITS, 0x7ff0_0000_0000_0000)
}

/// Returns the BF16 word nearest to `significand * 2^exponent`; overflow gives infinity.
#[must_use]
pub(crate) const fn bf16_bits_from_scaled(significand: u64, exponent: i32) -> u16 {
    const MIN_EXPONENT: i32 = -133;
    const FRACTION_BITS: i32 = 7;
    scaled_to_bits(significand, exponent, MIN_EXPONENT, FRACTION_BITS, 0x7f80) as u16
}

/// Returns the binary16 word nearest to `significand * 2^exponent`; overflow gives infinity.
#[must_use]
pub(crate) const fn f16_bits_from_scaled(significand: u64, exponent: i32) -> u16 {
    const MIN_EXPONENT: i32 = -24;
    const FRACTION_BITS: i32 = 10;
    scaled_to_bits(significand, exponent, MIN_EXPONENT, FRACTION_BITS, 0x7c00) as u16
}

/// Exponents beyond about 2^30 either way are not looked after.
const fn scaled_to_bits(
    significand: u64,
    exponent: i32,
    min_exponent: i32,
    fraction_bits: i32,
    infinity: u64,
) -> u64 {
    if significand == 0 {
        return 0;
    }
    let width = 64 - significand.leading_zeros() as i32;
    // The result's unit in the last place is 2^unit: full precision, or the subnormal unit.
    let full = exponent + width - (fraction_bits + 1);
    let unit = if full < min_exponent { min_exponent } else { full };
    let shift = unit - exponent;
    let rounded =
        if shift >= 0 { shift_right_ties_even(significand, shift as u32) } else { significand << -shift };
    // A subnormal has unit exponent field 0; a normal's implicit bit adds one to the field. A carry out of
    // the fraction moves into the exponent field, which is the next binade, or infinity.
    let field = (unit - min_exponent) as u64;
    let bits = (field << fraction_bits) + rounded;
    if bits > infinity { infinity } else { bits }
}

const F32_INFINITY: u32 = 0x7f80_0000;

/// Narrows a binary64 word to the nearest binary32 word; overflow gives infinity.
///
/// A NaN keeps its sign and top payload bits and becomes quiet.
///
/// # Panics
/// Never.
///
/// Spec: tensor-formats §7.1.
#[must_use]
pub const fn f32_bits_from_f64_bits(word: u64) -> u32 {
    const SIGN: u64 = 1 << 63;
    const INFINITY: u64 = 0x7ff0_0000_0000_0000;
    const FRACTION_BITS: u32 = 52;
    const QUIET: u32 = 1 << 22;
    let sign = ((word & SIGN) >> 32) as u32;
    let magnitude = word & !SIGN;
    if magnitude > INFINITY {
        let payload = (magnitude >> (FRACTION_BITS - 23)) as u32 & 0x007f_ffff;
        return sign | F32_INFINITY | QUIET | payload;
    }
    match f64_split(word) {
        Some((significand, exponent)) => sign | f32_bits_from_scaled(significand, exponent),
        None => sign | F32_INFINITY,
    }
}

/// Splits a finite binary64 magnitude (sign bit ignored) into `(significand, exponent)`, with
/// `value = significand * 2^exponent` and a significand below 2^53; `None` for an infinity or NaN.
#[must_use]
pub(crate) const fn f64_split(word: u64) -> Option<(u64, i32)> {
    let field = (word >> 52 & 0x7ff) as i32;
    let fraction = word & ((1 << 52) - 1);
    match field {
        0x7ff => None,
        0 => Some((fraction, -1074)),
        _ => Some((fraction | 1 << 52, field - 1075)),
    }
}

/// Splits a finite binary32 magnitude (sign bit ignored) into `(significand, exponent)`, with
/// `value = significand * 2^exponent` and a significand below 2^24.
#[must_use]
pub(crate) const fn f32_split(word: u32) -> (u32, i32) {
    let field = (word >> 23 & 0xff) as i32;
    let fraction = word & 0x007f_ffff;
    if field == 0 { (fraction, -149) } else { (fraction | 0x0080_0000, field - 150) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shift_agrees_with_wide_arithmetic() {
        let values = [0, 1, 2, 3, 5, 6, 7, 0x8000_0000, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) + 1];
        for value in values {
            for shift in 0..200u32 {
                let expected = if shift > 100 {
                    0
                } else {
                    // Round half up in u128, then take the tie back to even.
                    let doubled = (u128::from(value) << 1) >> shift;
                    let tie = u128::from(value) << 1 == doubled << shift && doubled & 1 == 1;
                    let up = (doubled + 1) >> 1;
                    (if tie { up & !1 } else { up }) as u64
                };
                assert_eq!(shift_right_ties_even(value, shift), expected, "{value} >> {shift}");
            }
        }
    }

    #[test]
    fn composing_a_split_word_gives_it_back() {
        for word in (0..0x7f80_0000u32).step_by(4099).chain(0..5000).chain([0x7f7f_ffff]) {
            let (significand, exponent) = f32_split(word);
            assert_eq!(f32_bits_from_scaled(u64::from(significand), exponent), word);
        }
    }

    #[test]
    fn overflow_gives_infinity() {
        assert_eq!(f32_bits_from_scaled(0x01ff_ffff, 103), F32_INFINITY);
        assert_eq!(f32_bits_from_scaled(0x01ff_fffe, 103), 0x7f7f_ffff);
        assert_eq!(f32_bits_from_scaled(1, 128), F32_INFINITY);
        assert_eq!(f32_bits_from_scaled(u64::MAX, 1000), F32_INFINITY);
        assert_eq!(f64_bits_from_scaled(1, 1024), 0x7ff0_0000_0000_0000);
    }
}
