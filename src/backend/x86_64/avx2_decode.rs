//! Decode kernels for AVX2, FMA and F16C; FMA is not used, a fused product would be rounded otherwise.
//!
//! Each writes whole groups over all of `out`. Codes are sign-extended to 32-bit lanes with some zeros below,
//! converted and multiplied. Every conversion and product is exact and normal (or a zero of the product's
//! sign), so neither rounding mode, flush-to-zero nor denormals-are-zero can change a result.

use core::arch::x86_64::*;

use super::lanes::{load8, load16, store_each32, store32, word_bytes, words32};
use crate::backend::nvfp4_tables::Tables;
use crate::backend::{GroupedRow, Narrow};
use crate::layout::row_split::{BASE_BYTES, Q5_HIGH_BYTES, Q6_HIGH_BYTES, SCALE_BYTES};

/// The binary32 value of a binary16 scale, over a power of two, in every lane.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn scale_lanes(scale: [u8; SCALE_BYTES], units: f32) -> __m256 {
    // The conversion ignores denormals-are-zero; the least product is 2^-24 * 2^-28.
    let half = _mm_set1_epi16(i16::from_le_bytes(scale));
    _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(1.0 / units))
}

/// Multiplies signed bytes by a scale, 16 at a time.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn store_products<N: Narrow>(codes: &[u8], scale: __m256, out: &mut [u8]) {
    let product =
        |codes| _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load8(codes))), scale);
    let sixteens = codes.as_chunks::<16>().0.iter().zip(out.chunks_exact_mut(16 * word_bytes::<N>()));
    for (codes, out) in sixteens {
        if let [low, high] = codes.as_chunks().0 {
            // SAFETY: this function has the instruction sets that `store_avx2` asks for.
            unsafe { N::store_avx2(product(low), product(high), out) };
        }
    }
}

/// The 32 nibbles of 16 bytes, one a byte.
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles(base: &[u8; 16]) -> __m256i {
    let pairs = _mm256_cvtepu8_epi16(load16(base));
    let both = _mm256_or_si256(pairs, _mm256_slli_epi16::<4>(pairs));
    _mm256_and_si256(both, _mm256_set1_epi8(0x0f))
}

#[target_feature(enable = "avx2,f16c")]
pub(super) fn q4<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8]) {
    let to_top = _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0);
    let top = _mm256_set1_epi32(0xf000_0000u32 as i32);
    let groups = row.base.as_chunks::<BASE_BYTES>().0.iter().zip(row.scales.as_chunks().0);
    for ((base, scale), out) in groups.zip(out.chunks_exact_mut(64 * word_bytes::<N>())) {
        let scale = scale_lanes(*scale, (1u32 << 28) as f32);
        let product = |codes: &[u8; 4]| {
            let codes = _mm256_sllv_epi32(_mm256_set1_epi32(i32::from_le_bytes(*codes)), to_top);
            _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_and_si256(codes, top)), scale)
        };
        let sixteens = base.as_chunks::<8>().0.iter().zip(out.chunks_exact_mut(16 * word_bytes::<N>()));
        for (codes, out) in sixteens {
            if let [low, high] = codes.as_chunks().0 {
                // SAFETY: this function has the instruction sets that `store_avx2` asks for.
                unsafe { N::store_avx2(product(low), product(high), out) };
            }
        }
    }
}

#[target_feature(enable = "avx2,f16c")]
pub(super) fn q5<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8]) {
    let spread = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
    let bits = _mm256_set1_epi64x(0x8040_2010_0804_0201u64 as i64);
    let groups = row.base.as_chunks::<BASE_BYTES>().0.iter().zip(row.high.as_chunks::<Q5_HIGH_BYTES>().0);
    let groups = groups.zip(row.scales.as_chunks().0);
    for (((base, high), scale), out) in groups.zip(out.chunks_exact_mut(64 * word_bytes::<N>())) {
        let mut codes = [0; 64];
        let halves = base.as_chunks().0.iter().zip(high.as_chunks().0).zip(codes.as_chunks_mut().0);
        for ((base, high), codes) in halves {
            // Every lane gets the byte that holds its high bit and keeps that bit.
            let high = _mm256_shuffle_epi8(_mm256_set1_epi32(i32::from_le_bytes(*high)), spread);
            let set = _mm256_cmpeq_epi8(_mm256_and_si256(high, bits), bits);
            let top = _mm256_and_si256(set, _mm256_set1_epi8(0x80u8 as i8));
            store32(codes, _mm256_or_si256(_mm256_slli_epi16::<3>(nibbles(base)), top));
        }
        store_products::<N>(&codes, scale_lanes(*scale, 8.0), out);
    }
}

#[target_feature(enable = "avx2,f16c")]
pub(super) fn q6<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8]) {
    let groups = row.base.as_chunks::<BASE_BYTES>().0.iter().zip(row.high.as_chunks::<Q6_HIGH_BYTES>().0);
    let groups = groups.zip(row.scales.as_chunks().0);
    for (((base, high), scale), out) in groups.zip(out.chunks_exact_mut(64 * word_bytes::<N>())) {
        let mut codes = [0; 64];
        let halves = base.as_chunks().0.iter().zip(high.as_chunks().0).zip(codes.as_chunks_mut().0);
        for ((base, high), codes) in halves {
            // A byte of four lanes, shifted by 6, 12, 18 and 24: each lane's two bits to the top of its byte.
            let high = _mm256_slli_epi32::<6>(_mm256_cvtepu8_epi32(load8(high)));
            let high = _mm256_or_si256(high, _mm256_slli_epi32::<6>(high));
            let high = _mm256_or_si256(high, _mm256_slli_epi32::<12>(high));
            let top = _mm256_and_si256(high, _mm256_set1_epi8(0xc0u8 as i8));
            store32(codes, _mm256_or_si256(_mm256_slli_epi16::<2>(nibbles(base)), top));
        }
        store_products::<N>(&codes, scale_lanes(*scale, 4.0), out);
    }
}

#[target_feature(enable = "avx2,f16c")]
pub(super) fn w8<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8]) {
    let groups = row.base.as_chunks::<BASE_BYTES>().0.iter().zip(row.scales.as_chunks().0);
    for ((base, scale), out) in groups.zip(out.chunks_exact_mut(32 * word_bytes::<N>())) {
        store_products::<N>(base, scale_lanes(*scale, 1.0), out);
    }
}

/// FP8 codes under a scale that makes no product subnormal, infinite or NaN, 16 at a time.
///
/// An E4M3FN word with its fields moved to those of binary16 is the same number, subnormal or not, over 2^8;
/// that conversion ignores denormals-are-zero.
#[target_feature(enable = "avx2,f16c")]
pub(super) fn fp8<N: Narrow>(codes: &[u8], scale: f32, out: &mut [u8]) {
    let scale = _mm256_set1_ps(scale * 256.0);
    let nan = _mm256_castsi256_ps(_mm256_set1_epi32(crate::format::e4m3fn::NAN_F32_BITS as i32));
    let kept = _mm256_set1_epi16(0xbfffu16 as i16);
    for (codes, out) in codes.as_chunks::<16>().0.iter().zip(out.chunks_exact_mut(16 * word_bytes::<N>())) {
        let codes = load16(codes);
        let halves = _mm256_and_si256(_mm256_slli_epi16::<7>(_mm256_cvtepi8_epi16(codes)), kept);
        let product = |halves| _mm256_mul_ps(_mm256_cvtph_ps(halves), scale);
        let mut low = product(_mm256_castsi256_si128(halves));
        let mut high = product(_mm256_extracti128_si256::<1>(halves));
        let nans = _mm_cmpeq_epi8(_mm_or_si128(codes, _mm_set1_epi8(0x80u8 as i8)), _mm_set1_epi8(-1));
        if _mm_movemask_epi8(nans) != 0 {
            let lanes = |nans| _mm256_castsi256_ps(_mm256_cvtepi8_epi32(nans));
            low = _mm256_blendv_ps(low, nan, lanes(nans));
            high = _mm256_blendv_ps(high, nan, lanes(_mm_unpackhi_epi64(nans, nans)));
        }
        // SAFETY: this function has the instruction sets that `store_avx2` asks for.
        unsafe { N::store_avx2(low, high, out) };
    }
}

/// NVFP4 to 32-bit words, 64 codes under four scales at a time: words of `tables` are moved, no number is
/// made. The scales of the next 64 codes come 512 bytes on.
#[target_feature(enable = "avx2,f16c")]
pub(super) fn nvfp4_words32(codes: &[u8], scales: &[u8], tables: &Tables<u32>, out: &mut [u8]) {
    let to_top = _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0);
    let sign = _mm256_set1_epi32(i32::MIN);
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.chunks(512));
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(256)) {
        let Some(scales) = scales.first_chunk::<4>() else { return };
        for ((codes, scale), out) in codes.as_chunks::<8>().0.iter().zip(scales).zip(out.chunks_exact_mut(64)) {
            // The words of codes 8 to 15 are those of 0 to 7 with the sign bit.
            let positive = words32(table(tables, *scale));
            let value = |codes: &[u8; 4]| {
                let codes = _mm256_sllv_epi32(_mm256_set1_epi32(i32::from_le_bytes(*codes)), to_top);
                let index = _mm256_srli_epi32::<28>(codes);
                let magnitude = _mm256_permutevar8x32_epi32(positive, index);
                _mm256_or_si256(magnitude, _mm256_and_si256(codes, sign))
            };
            if let [low, high] = codes.as_chunks().0 {
                store_each32(out, [value(low), value(high)]);
            }
        }
    }
}

/// NVFP4 to 16-bit words; see [`nvfp4_words32`].
#[target_feature(enable = "avx2,f16c")]
pub(super) fn nvfp4_words16(codes: &[u8], scales: &[u8], tables: &Tables<u16>, out: &mut [u8]) {
    let split = _mm256_setr_epi8(
        0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11,
        13, 15,
    );
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.chunks(512));
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(128)) {
        let Some(scales) = scales.first_chunk::<4>() else { return };
        for ((codes, scale), out) in codes.as_chunks().0.iter().zip(scales).zip(out.as_chunks_mut().0) {
            // The table's low bytes in the low half, its high bytes in the high half.
            let table = words32(table(tables, *scale));
            let table = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_shuffle_epi8(table, split));
            let pairs = _mm_cvtepu8_epi16(load8(codes));
            let nibbles = _mm_and_si128(_mm_or_si128(pairs, _mm_slli_epi16::<4>(pairs)), _mm_set1_epi8(0x0f));
            let bytes = _mm256_shuffle_epi8(table, _mm256_broadcastsi128_si256(nibbles));
            let (low, high) = (_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes));
            store32(out, _mm256_set_m128i(_mm_unpackhi_epi8(low, high), _mm_unpacklo_epi8(low, high)));
        }
    }
}

/// NVFP4 to 64-bit words; see [`nvfp4_words32`].
#[target_feature(enable = "avx2,f16c")]
pub(super) fn nvfp4_words64(codes: &[u8], scales: &[u8], tables: &Tables<u64>, out: &mut [u8]) {
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.chunks(512));
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(512)) {
        let Some(scales) = scales.first_chunk::<4>() else { return };
        let groups = codes.as_chunks::<8>().0.iter().zip(scales).zip(out.chunks_exact_mut(128));
        for ((codes, scale), out) in groups {
            let table = table(tables, *scale);
            for (code, out) in codes.iter().zip(out.as_chunks_mut::<16>().0) {
                if let ([low, high], [first, second]) =
                    (out.as_chunks_mut().0, [code & 0xf, code >> 4].map(|code| entry(table, code)))
                {
                    (*low, *high) = (first.to_ne_bytes(), second.to_ne_bytes());
                }
            }
        }
    }
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "a masked index into 128 entries")]
fn table<T>(tables: &Tables<T>, scale: u8) -> &[T; 16] {
    &tables[usize::from(scale & 0x7f)]
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "a masked index into 16 entries")]
fn entry(table: &[u64; 16], code: u8) -> u64 {
    table[usize::from(code & 0xf)]
}

/// BF16 words to binary32 words, 32 at a time.
#[target_feature(enable = "avx2,f16c")]
pub(super) fn widen_bf16(source: &[u8], out: &mut [u8]) {
    for (source, out) in source.as_chunks::<32>().0.iter().zip(out.chunks_exact_mut(64)) {
        let widen = |half: &[u8; 16]| _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(load16(half)));
        if let [low, high] = source.as_chunks().0 {
            store_each32(out, [widen(low), widen(high)]);
        }
    }
}
