//! The canonical quantizer with NEON: four groups at a time, whose scales are worked out together.
//!
//! Every float operation here runs under [`DefaultMode`]. Magnitudes are compared as integers, so a NaN or an infinity
//! is its group's maximum, and makes a scale word that is not finite.

use core::arch::aarch64::*;

use half::{bf16, f16};

use super::fpcr::DefaultMode;
use super::lanes::{load16, narrow_f16, store8, store16, widen_f16};
use super::planes::{
    BATCH, Batch, MAX_WEIGHTS, Planes, Shape, code_min, fill, group, high_bytes, make_aside,
};
use crate::backend::Quantize;
use crate::format::{Format, binary16};
use crate::layout::row_split::BASE_BYTES;
use crate::value::Source;

/// Quantizes rows until one is at fault; see the contract in [`crate::backend`].
pub(crate) fn quantize_rows(job: Quantize<'_>) -> usize {
    let _mode = DefaultMode::enter();
    match job.source {
        Source::F32(values) => rows_of(job, values),
        Source::Bf16(values) => rows_of(job, values),
        Source::F16(values) => rows_of(job, values),
        // No converter's inner loop: weights come in 16 and 32 bits.
        Source::F64(_) => crate::backend::portable_quantize::quantize_rows(job),
    }
}

fn rows_of<T: Element>(job: Quantize<'_>, values: &[T]) -> usize {
    match job.format {
        Format::Q4G64F16S => rows::<T, 4>(job, values),
        Format::Q5G64F16S => rows::<T, 5>(job, values),
        Format::Q6G64F16S => rows::<T, 6>(job, values),
        Format::W8G32F16S => rows::<T, 8>(job, values),
        _ => 0,
    }
}

fn rows<T: Element, const BITS: u32>(job: Quantize<'_>, values: &[T]) -> usize {
    let Quantize { rows, columns, stride, high_bytes, base, high, scales, .. } = job;
    let shape = Shape { rows, columns, stride, group: group(BITS), high_bytes };
    fill(&shape, Planes { base, high, scales }, |elements, _, planes| {
        values.get(elements).map_or(0, |values| row::<T, BITS>(values, planes))
    })
}

/// Quantizes a row, the last batch of which may be short; returns the groups done.
fn row<T: Element, const BITS: u32>(values: &[T], planes: &mut Planes<'_>) -> usize {
    let batch = BATCH * group(BITS);
    // SAFETY: the target has NEON, and the mode is set.
    let done = unsafe { batches::<T, BITS>(values, planes) };
    let rest = values.get(done * group(BITS)..).unwrap_or(&[]);
    if rest.is_empty() || rest.len() >= batch {
        return done;
    }
    // The lanes beyond the row are zeros: they change no maximum, and their codes are zero as padding must be.
    let mut padded = [T::ZERO; MAX_WEIGHTS];
    for (padded, value) in padded.iter_mut().zip(rest) {
        *padded = *value;
    }
    let groups = rest.len().div_ceil(group(BITS));
    done + make_aside(planes, done, groups, high_bytes(BITS), |planes| {
        // SAFETY: as above.
        unsafe { batches::<T, BITS>(padded.get(..batch).unwrap_or(&[]), planes) }
    })
}

/// An element of a source.
trait Element: Copy {
    const ZERO: Self;

    /// 16 elements as binary32; finite ones are exact.
    ///
    /// # Safety
    /// NEON; the default float mode.
    unsafe fn values(from: &[Self; 16]) -> [float32x4_t; 4];

    /// The greatest magnitude of each of four groups of 64 or 32 elements that follow one another.
    ///
    /// # Safety
    /// As of [`Element::values`].
    unsafe fn maxima(groups: &[Self]) -> float32x4_t;
}

impl Element for f32 {
    const ZERO: Self = 0.0;

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn values(from: &[Self; 16]) -> [float32x4_t; 4] {
        let mut values = [vdupq_n_f32(0.0); 4];
        for (values, from) in values.iter_mut().zip(from.as_chunks::<4>().0) {
            // SAFETY: the reference is four readable numbers.
            *values = unsafe { vld1q_f32(from.as_ptr()) };
        }
        values
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn maxima(groups: &[Self]) -> float32x4_t {
        let mut maxima = [vdupq_n_u32(0); BATCH];
        for (greatest, group) in maxima.iter_mut().zip(groups.chunks_exact((groups.len() / BATCH).max(1))) {
            for from in group.as_chunks::<4>().0 {
                // SAFETY: the reference is four readable numbers.
                let values = unsafe { vld1q_f32(from.as_ptr()) };
                *greatest = vmaxq_u32(*greatest, vreinterpretq_u32_f32(vabsq_f32(values)));
            }
        }
        let [a, b, c, d] = maxima;
        vreinterpretq_f32_u32(vpmaxq_u32(vpmaxq_u32(a, b), vpmaxq_u32(c, d)))
    }
}

/// The greatest magnitudes of four groups of 16-bit elements, as words.
#[inline]
#[target_feature(enable = "neon")]
fn maxima_16(groups: &[u8]) -> uint16x4_t {
    let mut maxima = [vdupq_n_u16(0); BATCH];
    for (greatest, group) in maxima.iter_mut().zip(groups.chunks_exact((groups.len() / BATCH).max(1))) {
        for from in group.as_chunks().0 {
            let magnitudes = vandq_u16(vreinterpretq_u16_u8(load16(from)), vdupq_n_u16(0x7fff));
            *greatest = vmaxq_u16(*greatest, magnitudes);
        }
    }
    let [a, b, c, d] = maxima;
    let pairs = vpmaxq_u16(vpmaxq_u16(a, b), vpmaxq_u16(c, d));
    vpmax_u16(vget_low_u16(pairs), vget_high_u16(pairs))
}

impl Element for bf16 {
    const ZERO: Self = Self::ZERO;

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn values(from: &[Self; 16]) -> [float32x4_t; 4] {
        halves(from).map(|words| vreinterpretq_f32_u32(vshll_n_u16::<16>(words)))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn maxima(groups: &[Self]) -> float32x4_t {
        vreinterpretq_f32_u32(vshll_n_u16::<16>(maxima_16(bytemuck::cast_slice(groups))))
    }
}

impl Element for f16 {
    const ZERO: Self = Self::ZERO;

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn values(from: &[Self; 16]) -> [float32x4_t; 4] {
        halves(from).map(|words| widen_f16(words))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn maxima(groups: &[Self]) -> float32x4_t {
        widen_f16(maxima_16(bytemuck::cast_slice(groups)))
    }
}

/// 16 words as short vectors.
#[inline]
#[target_feature(enable = "neon")]
fn halves<T: bytemuck::Pod>(from: &[T; 16]) -> [uint16x4_t; 4] {
    let mut all = [vdup_n_u16(0); 4];
    let bytes: &[u8] = bytemuck::cast_slice(from);
    for (two, bytes) in all.as_chunks_mut().0.iter_mut().zip(bytes.as_chunks().0) {
        let words = vreinterpretq_u16_u8(load16(bytes));
        *two = [vget_low_u16(words), vget_high_u16(words)];
    }
    all
}

/// `1 / scale` and the scale words of four groups.
#[inline]
#[target_feature(enable = "neon")]
fn find_scales<const BITS: u32>(maxima: float32x4_t) -> (float32x4_t, uint16x4_t) {
    let code_max = ((1 << (BITS - 1)) - 1) as f32;
    let zero = vmovn_u32(vceqq_u32(vreinterpretq_u32_f32(maxima), vdupq_n_u32(0)));
    let words = narrow_f16(vdivq_f32(maxima, vdupq_n_f32(code_max)));
    let words = vmax_u16(words, vdup_n_u16(binary16::MIN_POSITIVE));
    let inverse = vdivq_f32(vdupq_n_f32(1.0), widen_f16(words));
    // Under a zero scale all weights are zeros, and so are their codes under any inverse.
    (inverse, vbic_u16(words, zero))
}

/// Quantizes the whole batches of `values` and returns how many groups it has done: it stops before a batch with a
/// value or a scale that is not finite, and when there is no room for one more.
///
/// # Safety
/// NEON; the default float mode.
#[inline(never)] // nothing moves across the guard
#[target_feature(enable = "neon")]
unsafe fn batches<T: Element, const BITS: u32>(values: &[T], planes: &mut Planes<'_>) -> usize {
    let mut done = 0;
    let batches = values.chunks_exact(BATCH * group(BITS)).zip(planes.batches(high_bytes(BITS)));
    for (values, Batch { base, high, scales }) in batches {
        // SAFETY: the caller's promise.
        let (inverses, words) = find_scales::<BITS>(unsafe { T::maxima(values) });
        if vmaxv_u16(words) >= binary16::INFINITY {
            break;
        }
        store8(scales, vreinterpret_u8_u16(words));
        let (first, second) = values.split_at_checked(2 * group(BITS)).unwrap_or_default();
        let [base_0, base_1, base_2, base_3] = base;
        let (high_first, high_second) = high.split_at_mut_checked(2 * high_bytes(BITS)).unwrap_or_default();
        // SAFETY: as above.
        unsafe {
            convert_pair::<T, BITS, 0, 1>(first, inverses, [base_0, base_1], high_first);
            convert_pair::<T, BITS, 2, 3>(second, inverses, [base_2, base_3], high_second);
        }
        done += BATCH;
    }
    done
}

/// Quantizes and packs two groups, whose inverses are in two lanes.
///
/// # Safety
/// NEON; the default float mode.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn convert_pair<T: Element, const BITS: u32, const FIRST: i32, const SECOND: i32>(
    values: &[T],
    inverses: float32x4_t,
    base: [&mut [u8; BASE_BYTES]; 2],
    high: &mut [u8],
) {
    let (first, second) = values.split_at_checked(group(BITS)).unwrap_or_default();
    let (high_first, high_second) = high.split_at_mut_checked(high_bytes(BITS)).unwrap_or_default();
    let [base_first, base_second] = base;
    // SAFETY: the caller's promise.
    unsafe {
        pack_group::<BITS>(codes::<T, BITS, FIRST>(first, inverses), base_first, high_first);
        pack_group::<BITS>(codes::<T, BITS, SECOND>(second, inverses), base_second, high_second);
    }
}

/// The codes of a group as bytes, in order; of W8, in the first two vectors.
///
/// # Safety
/// NEON; the default float mode.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn codes<T: Element, const BITS: u32, const LANE: i32>(
    values: &[T],
    inverses: float32x4_t,
) -> [uint8x16_t; 4] {
    let mut all = [vdupq_n_u8(0); 4];
    for (codes, values) in all.iter_mut().zip(values.as_chunks().0) {
        // SAFETY: the caller's promise.
        let [a, b, c, d] = unsafe { T::values(values) }
            .map(|values| vcvtnq_s32_f32(vmulq_laneq_f32::<LANE>(values, inverses)))
            .map(|codes| vreinterpretq_s16_s32(codes));
        // A scale is at least two thirds of its group's maximum over the greatest code, so a code is less than twice
        // the greatest: it fits two bytes, and of all formats but W8 one.
        let (low, high) = (vuzp1q_s16(a, b), vuzp1q_s16(c, d));
        let bounded = if BITS == 8 {
            vmaxq_s8(vqmovn_high_s16(vqmovn_s16(low), high), vdupq_n_s8(code_min(BITS)))
        } else {
            let bytes = vuzp1q_s8(vreinterpretq_s8_s16(low), vreinterpretq_s8_s16(high));
            let least = vmaxq_s8(bytes, vdupq_n_s8(code_min(BITS)));
            vminq_s8(least, vdupq_n_s8(-1 - code_min(BITS)))
        };
        *codes = vreinterpretq_u8_s8(bounded);
    }
    all
}

/// Packs a group's codes.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn pack_group<const BITS: u32>(
    codes: [uint8x16_t; 4],
    base: &mut [u8; BASE_BYTES],
    high: &mut [u8],
) {
    let [a, b, c, d] = codes;
    // Of two bytes, the second one's low nibble goes above the first one's.
    let pairs = |x, y| vsliq_n_u8::<4>(vuzp1q_u8(x, y), vuzp2q_u8(x, y));
    let halves = if BITS == 8 { [a, b] } else { [pairs(a, b), pairs(c, d)] };
    for (base, half) in base.as_chunks_mut().0.iter_mut().zip(halves) {
        store16(base, half);
    }
    if BITS == 5 {
        // Bit 4 of each byte to its place among eight; a sum of bits is all of them.
        const BITS_OF_8: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        let (bit, places) = (vdupq_n_u8(0x10), load16(&BITS_OF_8));
        let [a, b, c, d] = codes.map(|codes| vandq_u8(vtstq_u8(codes, bit), places));
        let quarters = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        if let Some(high) = high.first_chunk_mut() {
            store8(high, vget_low_u8(vpaddq_u8(quarters, quarters)));
        }
    }
    if BITS == 6 {
        // Bits 5 and 4 of each byte to their places among four lanes'.
        const PLACES: [u8; 16] = [0xfc, 0xfe, 0, 2, 0xfc, 0xfe, 0, 2, 0xfc, 0xfe, 0, 2, 0xfc, 0xfe, 0, 2];
        let (bits, places) = (vdupq_n_u8(0x30), vreinterpretq_s8_u8(load16(&PLACES)));
        let [a, b, c, d] = codes.map(|codes| vshlq_u8(vandq_u8(codes, bits), places));
        if let Some(high) = high.first_chunk_mut() {
            store16(high, vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d)));
        }
    }
}
