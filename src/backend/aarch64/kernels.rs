//! Decode kernels of the grouped formats, of FP8 and of BF16.
//!
//! Each writes whole units over all of `out`. Codes become binary32 exactly: by a conversion of integers, or out of a
//! table. Every product is exact and normal (or a zero of the product's sign), so neither rounding mode nor
//! flush-to-zero can change a result. Rounding to an output type is looked after by [`super::lanes`].

use core::arch::aarch64::*;

use super::lanes::{load8, load16, nibbles, store_each16, widen_f16, word_bytes};
use crate::backend::{FP8_UNIT, GroupedRow, Narrow};
use crate::format::e4m3fn;
use crate::layout::row_split::{BASE_BYTES, Q5_HIGH_BYTES, Q6_HIGH_BYTES, SCALE_BYTES};

/// Groups whose scales are widened together, well before they are used.
const BATCH: usize = 64;

/// Up to [`BATCH`] binary16 scales, none negative, infinite or a NaN, as binary32.
#[inline]
#[target_feature(enable = "neon")]
fn scale_values(scales: &[[u8; SCALE_BYTES]], values: &mut [f32; BATCH]) {
    for (scales, values) in scales.chunks(4).zip(values.as_chunks_mut::<4>().0) {
        let mut padded = [[0; SCALE_BYTES]; 4];
        let words = load8(match scales.as_flattened().first_chunk() {
            Some(full) => full,
            None => {
                for (padded, scale) in padded.iter_mut().zip(scales) {
                    *padded = *scale;
                }
                bytemuck::cast_ref(&padded)
            }
        });
        let words = vreinterpret_u16_u8(words);
        // Of a normal word the exponent field is moved. A subnormal one is an integer times 2^-24: the conversion is
        // exact, so no mode matters.
        let normal = vaddq_u32(vshll_n_u16::<13>(words), vdupq_n_u32((127 - 15) << 23));
        let integers = vmovl_u16(words);
        let subnormal = vcvtq_n_f32_u32::<24>(integers);
        let is_subnormal = vcltq_u32(integers, vdupq_n_u32(0x400));
        let wide = vbslq_f32(is_subnormal, subnormal, vreinterpretq_f32_u32(normal));
        // SAFETY: the reference is 16 writable bytes.
        unsafe { vst1q_f32(values.as_mut_ptr(), wide) };
    }
}

/// Multiplies 16 signed bytes by a scale.
#[inline]
#[target_feature(enable = "neon")]
fn products(codes: int8x16_t, scale: f32) -> [float32x4_t; 4] {
    let (low, high) = (vmovl_s8(vget_low_s8(codes)), vmovl_high_s8(codes));
    [vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)]
        .map(|codes| vmulq_n_f32(vcvtq_f32_s32(codes), scale))
}

/// The signed codes of a Q4 group, one a byte.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn q4_codes(base: &[u8; BASE_BYTES]) -> [uint8x16_t; 4] {
    let sign = vdupq_n_u8(8);
    group_nibbles(base).map(|nibbles| vsubq_u8(veorq_u8(nibbles, sign), sign))
}

#[inline]
#[target_feature(enable = "neon")]
fn group_nibbles(base: &[u8; BASE_BYTES]) -> [uint8x16_t; 4] {
    let mut all = [vdupq_n_u8(0); 4];
    for (two, base) in all.as_chunks_mut().0.iter_mut().zip(base.as_chunks().0) {
        *two = nibbles(base);
    }
    all
}

/// The signed codes of a Q5 group, one a byte.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn q5_codes(base: &[u8; BASE_BYTES], high: &[u8; Q5_HIGH_BYTES]) -> [uint8x16_t; 4] {
    const BYTES: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    let high = vcombine_u8(load8(high), vdup_n_u8(0));
    let (mut bytes, bits) = (load16(&BYTES), load16(&BITS));
    group_nibbles(base).map(|nibbles| {
        let is_set = vtstq_u8(vqtbl1q_u8(high, bytes), bits);
        bytes = vaddq_u8(bytes, vdupq_n_u8(2));
        // Two's complement: 16 less where the bit is set.
        vsliq_n_u8::<4>(nibbles, is_set)
    })
}

/// The signed codes of a Q6 group, one a byte.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn q6_codes(base: &[u8; BASE_BYTES], high: &[u8; Q6_HIGH_BYTES]) -> [uint8x16_t; 4] {
    const BYTES: [u8; 16] = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3];
    // To the left, so that a lane's two bits are its highest.
    const PLACES: [u8; 16] = [6, 4, 2, 0, 6, 4, 2, 0, 6, 4, 2, 0, 6, 4, 2, 0];
    let (mut bytes, places) = (load16(&BYTES), vreinterpretq_s8_u8(load16(&PLACES)));
    let high = load16(high);
    group_nibbles(base).map(|nibbles| {
        let own = vshlq_u8(vqtbl1q_u8(high, bytes), places);
        bytes = vaddq_u8(bytes, vdupq_n_u8(4));
        let signed = vshrq_n_s8::<6>(vreinterpretq_s8_u8(own));
        vsliq_n_u8::<4>(nibbles, vreinterpretq_u8_s8(signed))
    })
}

/// Writes the products of a group's codes.
///
/// # Safety
/// As of [`super::Lanes::store`].
#[inline]
#[target_feature(enable = "neon")]
unsafe fn store_products<N: Narrow>(codes: &[uint8x16_t], scale: f32, out: &mut [u8]) {
    for (codes, out) in codes.iter().zip(out.chunks_exact_mut(16 * word_bytes::<N>())) {
        // SAFETY: the caller's promise.
        unsafe { N::store(products(vreinterpretq_s8_u8(*codes), scale), out) };
    }
}

/// Q4. Where words have two bytes, the 16 products of a group are rounded, and then looked up byte by byte.
///
/// # Safety
/// As of [`super::Lanes::store`].
#[inline(never)] // nothing moves across the guard
#[target_feature(enable = "neon")]
pub(super) unsafe fn q4<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8]) {
    // The two's complement codes in order, as bytes and as what is above the zeros of their binary32 words.
    const CODES: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff];
    const THIRD_BYTES: [u8; 16] = code_bytes(16);
    const TOP_BYTES: [u8; 16] = code_bytes(24);
    let codes = vreinterpretq_s8_u8(load16(&CODES));
    let (third_bytes, top_bytes) = (load16(&THIRD_BYTES), load16(&TOP_BYTES));
    let out_bytes = 64 * word_bytes::<N>();
    for ((bases, scales), out) in row.batches(BATCH).zip(out.chunks_mut(BATCH * out_bytes)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.chunks_exact_mut(out_bytes)) {
            let nibbles = group_nibbles(base);
            // SAFETY: the caller's promise.
            let planes = unsafe { N::byte_planes(products(codes, *scale)) };
            for (nibbles, out) in nibbles.into_iter().zip(out.chunks_exact_mut(out_bytes / 4)) {
                if let Some([low, high]) = planes {
                    let (low, high) = (vqtbl1q_u8(low, nibbles), vqtbl1q_u8(high, nibbles));
                    store_each16(out, [vzip1q_u8(low, high), vzip2q_u8(low, high)]);
                    continue;
                }
                let (third, top) = (vqtbl1q_u8(third_bytes, nibbles), vqtbl1q_u8(top_bytes, nibbles));
                let words = [vzip1q_u8(third, top), vzip2q_u8(third, top)].map(|halves| {
                    let halves = vreinterpretq_u16_u8(halves);
                    [vshll_n_u16::<16>(vget_low_u16(halves)), vshll_high_n_u16::<16>(halves)]
                });
                let products =
                    words.map(|words| words.map(|words| vmulq_n_f32(vreinterpretq_f32_u32(words), *scale)));
                let [[a, b], [c, d]] = products;
                // SAFETY: the caller's promise.
                unsafe { N::store([a, b, c, d], out) };
            }
        }
    }
}

/// A byte of the binary32 word of each Q4 code, which has only zeros below bit 16.
#[expect(clippy::indexing_slicing, reason = "at compile time")]
const fn code_bytes(place: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut code = 0;
    while code < 16 {
        let value = if code < 8 { code as f32 } else { code as f32 - 16.0 };
        bytes[code] = (value.to_bits() >> place) as u8;
        code += 1;
    }
    bytes
}

/// A kernel of a format whose codes have high bits in a plane of their own.
macro_rules! with_high_bits {
    ($name:ident, $format:literal, $codes:ident) => {
        #[doc = concat!($format, ".")]
        ///
        /// # Safety
        /// As of [`super::Lanes::store`].
        #[inline(never)] // nothing moves across the guard
        #[target_feature(enable = "neon")]
        pub(super) unsafe fn $name<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8]) {
            let out_bytes = 64 * word_bytes::<N>();
            for (((bases, highs), scales), out) in
                row.batches_with_high(BATCH).zip(out.chunks_mut(BATCH * out_bytes))
            {
                let mut values = [0.0; BATCH];
                scale_values(scales, &mut values);
                let groups = bases.iter().zip(highs).zip(&values);
                for (((base, high), scale), out) in groups.zip(out.chunks_exact_mut(out_bytes)) {
                    // SAFETY: the caller's promise.
                    unsafe { store_products::<N>(&$codes(base, high), *scale, out) };
                }
            }
        }
    };
}

with_high_bits!(q5, "Q5", q5_codes);
with_high_bits!(q6, "Q6", q6_codes);

/// W8.
///
/// # Safety
/// As of [`super::Lanes::store`].
#[inline(never)] // nothing moves across the guard
#[target_feature(enable = "neon")]
pub(super) unsafe fn w8<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8]) {
    let out_bytes = 32 * word_bytes::<N>();
    for ((bases, scales), out) in row.batches(BATCH).zip(out.chunks_mut(BATCH * out_bytes)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.chunks_exact_mut(out_bytes)) {
            if let [low, high] = base.as_chunks().0 {
                // SAFETY: the caller's promise.
                unsafe { store_products::<N>(&[load16(low), load16(high)], *scale, out) };
            }
        }
    }
}

/// FP8 codes, 64 at a time, under a scale that makes no product subnormal or infinite.
///
/// An E4M3FN word is a binary16 word of a number 2^8 times as small, and widening that keeps subnormals in any mode;
/// the product is exact. A NaN is put in its place.
///
/// # Safety
/// As of [`super::Lanes::store`].
#[inline(never)] // nothing moves across the guard
#[target_feature(enable = "neon")]
pub(super) unsafe fn fp8<N: Narrow>(codes: &[u8], scale: f32, out: &mut [u8]) {
    // A NaN of either sign without its sign bit, shifted.
    const NAN: u8 = e4m3fn::NAN << 1;
    // What sign extension sets besides the sign.
    let stray = vdupq_n_u16(0x4000);
    let scale = scale * 256.0;
    let out_bytes = word_bytes::<N>();
    let units = codes.as_chunks::<FP8_UNIT>().0.iter();
    for (codes, out) in units.zip(out.chunks_exact_mut(FP8_UNIT * out_bytes)) {
        let mut greatest = vdupq_n_u8(0);
        for codes in codes.as_chunks().0 {
            greatest = vmaxq_u8(greatest, vshlq_n_u8::<1>(load16(codes)));
        }
        let has_nan = vmaxvq_u8(greatest) == NAN;
        for (codes, out) in codes.as_chunks().0.iter().zip(out.chunks_exact_mut(16 * out_bytes)) {
            let codes = vreinterpretq_s8_u8(load16(codes));
            let halves = [vshll_n_s8::<7>(vget_low_s8(codes)), vshll_high_n_s8::<7>(codes)];
            let [low, high] = halves.map(|halves| vbicq_u16(vreinterpretq_u16_s16(halves), stray));
            let mut products =
                [vget_low_u16(low), vget_high_u16(low), vget_low_u16(high), vget_high_u16(high)]
                    .map(|words| vmulq_n_f32(widen_f16(words), scale));
            if has_nan {
                products = with_nans(codes, products);
            }
            // SAFETY: the caller's promise.
            unsafe { N::store(products, out) };
        }
    }
}

/// The products, and NaNs where the codes are some.
#[cold]
#[target_feature(enable = "neon")]
fn with_nans(codes: int8x16_t, products: [float32x4_t; 4]) -> [float32x4_t; 4] {
    let nan = vdupq_n_u8(e4m3fn::NAN << 1);
    let is_nan = vceqq_u8(vshlq_n_u8::<1>(vreinterpretq_u8_s8(codes)), nan);
    let is_nan = vreinterpretq_s8_u8(is_nan);
    let (low, high) = (vmovl_s8(vget_low_s8(is_nan)), vmovl_high_s8(is_nan));
    let [a, b, c, d] = [
        vmovl_s16(vget_low_s16(low)),
        vmovl_high_s16(low),
        vmovl_s16(vget_low_s16(high)),
        vmovl_high_s16(high),
    ];
    let [p, q, r, s] = products;
    let nan = vreinterpretq_f32_u32(vdupq_n_u32(e4m3fn::NAN_F32_BITS));
    [(a, p), (b, q), (c, r), (d, s)]
        .map(|(is_nan, product)| vbslq_f32(vreinterpretq_u32_s32(is_nan), nan, product))
}

/// BF16 words of a unit.
pub(super) const WIDEN_UNIT: usize = 16;

/// BF16 words to binary32 words.
#[target_feature(enable = "neon")]
pub(super) fn widen_bf16(source: &[[u8; 2 * WIDEN_UNIT]], out: &mut [[u32; WIDEN_UNIT]]) {
    for (source, out) in source.iter().zip(out) {
        let out: &mut [u8; 4 * WIDEN_UNIT] = bytemuck::cast_mut(out);
        for (source, out) in source.as_chunks().0.iter().zip(out.as_chunks_mut::<32>().0) {
            let words = vreinterpretq_u16_u8(load16(source));
            let (low, high) = (vshll_n_u16::<16>(vget_low_u16(words)), vshll_high_n_u16::<16>(words));
            store_each16(out, [vreinterpretq_u8_u32(low), vreinterpretq_u8_u32(high)]);
        }
    }
}
