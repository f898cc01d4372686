//! The canonical encoder's arithmetic, line for line with the contract, in integers.
//!
//! No float operation happens here, so no float mode of the host can matter.
//! Spec: tensor-formats §7.2, storage-layouts §7.

use crate::format::binary16;
use crate::format::grouped::Scheme;
use crate::format::rounding::{f32_bits_from_scaled, f32_split, shift_right_ties_even};

const SIGN: u32 = 1 << 31;

/// Quantizes one logical group of finite binary32 words; returns the scale word.
///
/// # Errors
/// The binary32 word of a scale that rounds to binary16 infinity; then `codes` is unspecified.
pub(crate) fn quantize_group(scheme: &Scheme, source: &[u32], codes: &mut [i8]) -> Result<u16, u32> {
    // amax = max_i(abs(x[i])); magnitudes of one sign order as integers do
    let amax = source.iter().map(|word| word & !SIGN).max().unwrap_or(0);
    if amax == 0 {
        codes.fill(0);
        return Ok(0);
    }
    let raw_scale = divide(amax, scheme.code_max as u32);
    let scale = match binary16::from_f32_bits(raw_scale) {
        0 => binary16::MIN_POSITIVE,
        binary16::INFINITY.. => return Err(raw_scale),
        scale => scale,
    };
    let inverse = reciprocal(binary16::to_f32_bits(scale));
    for (code, &word) in codes.iter_mut().zip(source) {
        let rounded = round_to_integral(multiply(word, inverse));
        // Not `clamp`, which panics where the ends are the wrong way round.
        *code = rounded.max(scheme.code_min.into()).min(scheme.code_max.into()) as i8;
    }
    Ok(scale)
}

/// `round_f32(magnitude / qmax)`.
fn divide(magnitude: u32, qmax: u32) -> u32 {
    // 32 more bits below the significand: at least 26 bits of quotient, and the rest in a sticky bit.
    const LIFT: i32 = 32;
    let (significand, exponent) = f32_split(magnitude);
    let dividend = u64::from(significand) << LIFT;
    let divisor = u64::from(qmax).max(1);
    let sticky = u64::from(!dividend.is_multiple_of(divisor));
    f32_bits_from_scaled((dividend / divisor) | sticky, exponent - LIFT)
}

/// `round_f32(1 / scale)`, for a positive normal binary32 word.
fn reciprocal(scale: u32) -> u32 {
    // 2^50 over 24 bits: at least 26 bits of quotient.
    const LIFT: i32 = 50;
    let (significand, exponent) = f32_split(scale);
    let divisor = u64::from(significand).max(1);
    let sticky = u64::from(!(1u64 << LIFT).is_multiple_of(divisor));
    f32_bits_from_scaled(((1 << LIFT) / divisor) | sticky, -exponent - LIFT)
}

/// `round_f32(x * inverse)`, for a positive inverse.
fn multiply(x: u32, inverse: u32) -> u32 {
    let (x_significand, x_exponent) = f32_split(x & !SIGN);
    let (significand, exponent) = f32_split(inverse);
    let product = u64::from(x_significand) * u64::from(significand);
    x & SIGN | f32_bits_from_scaled(product, x_exponent + exponent)
}

/// `round_to_integral_ties_to_even(x)`; beyond 2^31 any number of that sign, as the clamp follows.
fn round_to_integral(x: u32) -> i32 {
    let (significand, exponent) = f32_split(x & !SIGN);
    let magnitude = if exponent < 0 {
        shift_right_ties_even(significand.into(), exponent.unsigned_abs()) as i32
    } else {
        i32::MAX
    };
    if x & SIGN == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::format::grouped::{Q4, W8};

    fn quantize(scheme: &Scheme, source: &[u32]) -> (u16, Vec<i8>) {
        let mut codes = vec![99; source.len()];
        (quantize_group(scheme, source, &mut codes).unwrap(), codes)
    }

    #[test]
    fn reciprocal_then_multiply_is_not_division() {
        assert_eq!(quantize(&Q4, &[0x3ff6_8800, 0x3f76_87ff, 0]), (0x3467, vec![7, 4, 0]));
    }

    #[test]
    fn codes_are_chosen_by_the_rounded_scale() {
        assert_eq!(quantize(&Q4, &[0x3f05_5bee, 0x3e3e_7bb1]), (0x2cc3, vec![7, 3]));
    }

    #[test]
    fn a_scale_that_rounds_to_zero_is_rescued() {
        assert_eq!(quantize(&Q4, &[0x3460_0000, 0x3300_0000, 0xb3c0_0000]), (1, vec![4, 0, -2]));
        assert_eq!(quantize(&Q4, &[1]), (1, vec![0]));
    }

    #[test]
    fn w8_never_emits_minus_128() {
        // 1.25 units of the least scale round to one: the codes would be -158.75 and 158.75 without the clamp.
        let amax = multiply(0x33a0_0000, 127.0f32.to_bits());
        assert_eq!(quantize(&W8, &[amax | SIGN, amax]), (1, vec![-127, 127]));
        assert_eq!(quantize(&Q4, &[multiply(0x33a0_0000, 7.0f32.to_bits()) | SIGN]), (1, vec![-8]));
    }

    #[test]
    fn an_overflowing_scale_is_refused() {
        let amax = (65520.0f32 * 7.0).to_bits();
        assert_eq!(quantize_group(&Q4, &[amax], &mut [0]), Err(65520.0f32.to_bits()));
        assert_eq!(quantize(&Q4, &[amax - 1]).0, 0x7bff);
    }

    #[test]
    fn ties_round_to_even() {
        let halves = [0.5f32, -0.5, 1.5, -1.5, 2.5, -2.5].map(|x| round_to_integral(x.to_bits()));
        assert_eq!(halves, [0, 0, 2, -2, 2, -2]);
    }
}
