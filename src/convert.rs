//! Explicit conversions between direct types. Nothing in the crate converts implicitly.
//!
//! `nearest` rounds once, ties to even, overflow to infinity, and narrowing quiets a NaN while keeping its
//! sign and top payload bits. `exact` takes a value only where the target type holds it, NaN payloads included.
//! Spec: tensor-formats §2.4, §3.1 (Rules common to direct formats).

use bytemuck::{cast_slice, cast_slice_mut};
use half::{bf16, f16};

use crate::error::Error;
use crate::format::rounding::{
    bf16_bits_from_scaled, f16_bits_from_scaled, f32_bits_from_f64_bits, f32_split, f64_bits_from_scaled,
    f64_split,
};
use crate::format::{binary16, direct};
use crate::value::Source;

/// Rounds values to the nearest BF16.
///
/// # Errors
/// [`Error::BufferLength`] unless both have one length; nothing is written.
///
/// # Panics
/// Never.
///
/// ```
/// use half::bf16;
/// let mut out = [bf16::ZERO; 1];
/// ninfer_codec::convert::to_bf16_nearest(&[1.00390625f32][..], &mut out)?; // halfway: to even
/// assert_eq!(out[0].to_bits(), 0x3f80);
/// # Ok::<(), ninfer_codec::Error>(())
/// ```
pub fn to_bf16_nearest<'s>(source: impl Into<Source<'s>>, out: &mut [bf16]) -> Result<(), Error> {
    let source = source.into();
    check_length(source.len(), out.len())?;
    let out: &mut [u16] = cast_slice_mut(out);
    match source {
        Source::F32(values) => each(cast_slice(values), out, direct::bf16_from_f32_bits),
        Source::Bf16(values) => each(cast_slice::<_, u16>(values), out, |word| word),
        Source::F16(values) => {
            each(cast_slice(values), out, |word| direct::bf16_from_f32_bits(binary16::to_f32_bits(word)));
        }
        Source::F64(values) => each(cast_slice(values), out, bf16_from_f64_bits),
    }
    Ok(())
}

/// Takes values that BF16 holds exactly.
///
/// # Errors
/// [`Error::BufferLength`]: nothing is written. [`Error::NotExact`] with the first other value: what comes
/// before it is written.
///
/// # Panics
/// Never.
pub fn to_bf16_exact<'s>(source: impl Into<Source<'s>>, out: &mut [bf16]) -> Result<(), Error> {
    let source = source.into();
    check_length(source.len(), out.len())?;
    let out: &mut [u16] = cast_slice_mut(out);
    match source {
        Source::F32(values) => try_each(cast_slice(values), out, bf16_exact),
        Source::Bf16(values) => try_each(cast_slice::<_, u16>(values), out, Some),
        Source::F16(values) => {
            try_each(cast_slice(values), out, |word| bf16_exact(binary16::to_f32_bits(word)))
        }
        Source::F64(values) => try_each(cast_slice(values), out, |word| f32_exact(word).and_then(bf16_exact)),
    }
}

/// Rounds values to the nearest binary16, which is no tensor format but what an engine may compute in.
///
/// # Errors
/// [`Error::BufferLength`] unless both have one length; nothing is written.
///
/// # Panics
/// Never.
///
/// ```
/// use half::f16;
/// let mut out = [f16::ZERO; 2];
/// ninfer_codec::convert::to_f16_nearest(&[1.0f32, 65520.0][..], &mut out)?;
/// assert_eq!(out, [f16::ONE, f16::INFINITY]);
/// # Ok::<(), ninfer_codec::Error>(())
/// ```
pub fn to_f16_nearest<'s>(source: impl Into<Source<'s>>, out: &mut [f16]) -> Result<(), Error> {
    let source = source.into();
    check_length(source.len(), out.len())?;
    let out: &mut [u16] = cast_slice_mut(out);
    match source {
        Source::F32(values) => each(cast_slice(values), out, binary16::from_f32_bits),
        Source::Bf16(values) => {
            each(cast_slice(values), out, |word| binary16::from_f32_bits(direct::bf16_to_f32_bits(word)));
        }
        Source::F16(values) => each(cast_slice::<_, u16>(values), out, |word| word),
        Source::F64(values) => each(cast_slice(values), out, f16_from_f64_bits),
    }
    Ok(())
}

/// Rounds values to the nearest FP32; only binary64 has any that are not exact.
///
/// # Errors
/// [`Error::BufferLength`] unless both have one length; nothing is written.
///
/// # Panics
/// Never.
pub fn to_f32_nearest<'s>(source: impl Into<Source<'s>>, out: &mut [f32]) -> Result<(), Error> {
    let source = source.into();
    check_length(source.len(), out.len())?;
    let out: &mut [u32] = cast_slice_mut(out);
    match source {
        Source::F32(values) => each(cast_slice::<_, u32>(values), out, |word| word),
        Source::Bf16(values) => each(cast_slice(values), out, direct::bf16_to_f32_bits),
        Source::F16(values) => each(cast_slice(values), out, binary16::to_f32_bits),
        Source::F64(values) => each(cast_slice(values), out, f32_bits_from_f64_bits),
    }
    Ok(())
}

/// Takes values that FP32 holds exactly.
///
/// # Errors
/// As for [`to_bf16_exact`].
///
/// # Panics
/// Never.
pub fn to_f32_exact<'s>(source: impl Into<Source<'s>>, out: &mut [f32]) -> Result<(), Error> {
    match source.into() {
        Source::F64(values) => {
            check_length(values.len(), out.len())?;
            try_each(cast_slice(values), cast_slice_mut(out), f32_exact)
        }
        source => to_f32_nearest(source, out),
    }
}

/// Takes floating-point values that are whole numbers in the range of I32; -0 is taken as 0.
///
/// # Errors
/// As for [`to_bf16_exact`].
///
/// # Panics
/// Never.
///
/// ```
/// use ninfer_codec::{Error, convert::to_i32_exact};
/// let mut out = [0; 2];
/// to_i32_exact(&[-2147483648.0f32, 7.0][..], &mut out)?;
/// assert_eq!(out, [i32::MIN, 7]);
/// assert!(matches!(to_i32_exact(&[0.0f32, 0.5][..], &mut out), Err(Error::NotExact { index: 1, .. })));
/// # Ok::<(), ninfer_codec::Error>(())
/// ```
pub fn to_i32_exact<'s>(source: impl Into<Source<'s>>, out: &mut [i32]) -> Result<(), Error> {
    let source = source.into();
    check_length(source.len(), out.len())?;
    match source {
        Source::F32(values) => try_each(cast_slice(values), out, i32_from_f32_bits),
        Source::Bf16(values) => {
            try_each(cast_slice(values), out, |word| i32_from_f32_bits(direct::bf16_to_f32_bits(word)))
        }
        Source::F16(values) => {
            try_each(cast_slice(values), out, |word| i32_from_f32_bits(binary16::to_f32_bits(word)))
        }
        Source::F64(values) => try_each(cast_slice(values), out, i32_from_f64_bits),
    }
}

/// Takes signed integers in the range of I32.
///
/// # Errors
/// As for [`to_bf16_exact`].
///
/// # Panics
/// Never.
pub fn i64_to_i32_exact(source: &[i64], out: &mut [i32]) -> Result<(), Error> {
    check_length(source.len(), out.len())?;
    try_each(cast_slice::<_, u64>(source), out, |word| i32::try_from(word as i64).ok())
}

/// Takes unsigned integers in the range of I32.
///
/// # Errors
/// As for [`to_bf16_exact`].
///
/// # Panics
/// Never.
pub fn u64_to_i32_exact(source: &[u64], out: &mut [i32]) -> Result<(), Error> {
    check_length(source.len(), out.len())?;
    try_each(source, out, |word| i32::try_from(word).ok())
}

fn check_length(expected: usize, actual: usize) -> Result<(), Error> {
    if expected == actual {
        Ok(())
    } else {
        Err(Error::BufferLength { expected: expected as u64, actual: actual as u64 })
    }
}

fn each<T: Copy, U>(source: &[T], out: &mut [U], convert: impl Fn(T) -> U) {
    for (target, &word) in out.iter_mut().zip(source) {
        *target = convert(word);
    }
}

fn try_each<T: Copy + Into<u64>, U>(
    source: &[T],
    out: &mut [U],
    convert: impl Fn(T) -> Option<U>,
) -> Result<(), Error> {
    for ((index, target), &word) in (0..).zip(out.iter_mut()).zip(source) {
        *target = convert(word).ok_or(Error::NotExact { index, word: word.into() })?;
    }
    Ok(())
}

fn bf16_from_f64_bits(word: u64) -> u16 {
    let narrow = direct::bf16_from_f32_bits(f32_bits_from_f64_bits(word));
    match f64_split(word) {
        // Rounded once; by way of binary32 it would be twice.
        Some((significand, exponent)) => narrow & 0x8000 | bf16_bits_from_scaled(significand, exponent),
        None => narrow,
    }
}

fn f16_from_f64_bits(word: u64) -> u16 {
    let narrow = binary16::from_f32_bits(f32_bits_from_f64_bits(word));
    match f64_split(word) {
        // Rounded once, as above.
        Some((significand, exponent)) => narrow & 0x8000 | f16_bits_from_scaled(significand, exponent),
        None => narrow,
    }
}

fn bf16_exact(word: u32) -> Option<u16> {
    (word & 0xffff == 0).then_some((word >> 16) as u16)
}

fn f32_exact(word: u64) -> Option<u32> {
    const FRACTION: u64 = (1 << 52) - 1;
    const INFINITY: u64 = 0x7ff << 52;
    const F32_INFINITY: u32 = 0xff << 23;
    if word & INFINITY == INFINITY {
        // The payload's top 23 bits, the quiet bit as it is; they must say all there is.
        let payload = word & FRACTION;
        let narrow = (payload >> 29) as u32;
        let sign = (word >> 32) as u32 & 1 << 31;
        return (u64::from(narrow) << 29 == payload).then_some(sign | 0x7f80_0000 | narrow);
    }
    let narrow = f32_bits_from_f64_bits(word);
    let (significand, exponent) = f32_split(narrow);
    if narrow & F32_INFINITY == F32_INFINITY {
        return None; // too large; infinity splits as 2^128 does
    }
    let magnitude = word & !(1 << 63);
    (f64_bits_from_scaled(significand.into(), exponent) == magnitude).then_some(narrow)
}

fn i32_from_f32_bits(word: u32) -> Option<i32> {
    if word & 0x7f80_0000 == 0x7f80_0000 {
        return None;
    }
    let (significand, exponent) = f32_split(word);
    whole(significand.into(), exponent, word >> 31 != 0)
}

fn i32_from_f64_bits(word: u64) -> Option<i32> {
    let (significand, exponent) = f64_split(word)?;
    whole(significand, exponent, word >> 63 != 0)
}

/// `significand * 2^exponent` with a sign, where that is a whole number in the range of `i32`.
fn whole(significand: u64, exponent: i32, negative: bool) -> Option<i32> {
    let magnitude = if significand == 0 {
        0
    } else if exponent >= 0 {
        // The significand is whole: 2^23 or more, so that more than 8 places up is past 2^31.
        if exponent > 8 { return None } else { significand << exponent }
    } else {
        if significand.trailing_zeros() < exponent.unsigned_abs() {
            return None;
        }
        significand >> exponent.unsigned_abs()
    };
    let magnitude = i64::try_from(magnitude).ok()?;
    i32::try_from(if negative { -magnitude } else { magnitude }).ok()
}
