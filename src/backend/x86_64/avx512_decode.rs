//! Decode kernels for AVX-512 F, BW, DQ, VL and VBMI.
//!
//! Each writes whole groups over all of `out`. Codes become 64 bytes with the code in the top bits and zeros
//! below; a byte permutation lifts them to the top of 32-bit lanes, which are converted and multiplied. Every
//! conversion and product is exact and normal (or a zero of the product's sign), so neither rounding mode,
//! flush-to-zero nor denormals-are-zero can change a result.

use core::arch::x86_64::*;

use super::lanes::{load16, load32, load64, store32, store64, store_each64, word_bytes, words, words32};
use crate::backend::nvfp4_tables::Tables;
use crate::backend::{GroupedRow, Narrow};
use crate::layout::row_split::{BASE_BYTES, Q5_HIGH_BYTES, Q6_HIGH_BYTES, SCALE_BYTES};

/// Byte `4 i + 3` of permutation `j` is `16 j + i`: 16 codes to the top of 16 lanes.
static SPREAD: [[u8; 64]; 4] = [spread(0), spread(16), spread(32), spread(48)];
/// The top byte of every 32-bit lane.
const TOP_BYTES: u64 = 0x8888_8888_8888_8888;

/// [`TOP_BYTES`] in a mask register: a known mask the compiler would turn into an AND for every vector.
#[inline]
fn top_bytes() -> __mmask64 {
    core::hint::black_box(TOP_BYTES)
}

const fn spread(first: u8) -> [u8; 64] {
    let mut permutation = [0; 64];
    let mut rest: &mut [u8] = &mut permutation;
    let mut next = first;
    while let Some(([_, _, _, top], more)) = rest.split_first_chunk_mut() {
        *top = next;
        next += 1;
        rest = more;
    }
    permutation
}

/// Bit offsets, in a 64-bit lane, of eight codes: `first`, then `step` on; a negative offset wraps around.
const fn offsets<const LANES: usize>(first: i32, step: i32, per_lane: i32) -> [u8; LANES] {
    let mut offsets = [0; LANES];
    let mut rest: &mut [u8] = &mut offsets;
    let mut next = 0;
    while let Some((offset, more)) = rest.split_first_mut() {
        *offset = ((first + next % per_lane * step) & 63) as u8;
        next += 1;
        rest = more;
    }
    offsets
}

/// 32 nibble pairs, each widened to 16 bits, as 64 bytes: nibble `k` in the high bits less `BELOW` of byte
/// `k`, other bits undefined.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn nibbles<const BELOW: i32>(base: &[u8; BASE_BYTES]) -> __m512i {
    // Pair j's low nibble lies at bit 16 j of its lane, its high nibble at 16 j + 4.
    let pairs = _mm512_cvtepu8_epi16(load32(base));
    let places = const { nibble_places(4 - BELOW) };
    _mm512_multishift_epi64_epi8(words(&places), pairs)
}

const fn nibble_places(up: i32) -> [u8; 64] {
    let mut places = [0; 64];
    let mut rest: &mut [u8] = &mut places;
    let mut pair = 0;
    while let Some(([low, high], more)) = rest.split_first_chunk_mut() {
        *low = ((pair * 16 - up) & 63) as u8;
        *high = ((pair * 16 + 4 - up) & 63) as u8;
        pair = (pair + 1) % 4;
        rest = more;
    }
    places
}

/// The binary32 value of a binary16 scale, times `unit`, a power of two, in every lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn scale_lanes(scale: [u8; SCALE_BYTES], unit: f32) -> __m512 {
    // The conversion ignores denormals-are-zero; the least product is 2^-24 * 2^-31.
    let half = _mm256_set1_epi16(i16::from_le_bytes(scale));
    _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(unit))
}

/// Multiplies 64 codes, each in the top bits of its byte, by the scales of their halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn store_products<N: Narrow>(top: __mmask64, codes: __m512i, scales: [__m512; 2], out: &mut [u8]) {
    let lane = |permutation, scale| {
        let lifted = _mm512_maskz_permutexvar_epi8(top, load64(permutation), codes);
        _mm512_mul_ps(_mm512_cvtepi32_ps(lifted), scale)
    };
    let [first, second, third, fourth] = &SPREAD;
    let [low_scale, high_scale] = scales;
    let (low, high) = out.split_at_mut_checked(32 * word_bytes::<N>()).unwrap_or_default();
    // SAFETY: this function has the instruction sets that `store_avx512` asks for.
    unsafe { N::store_avx512(lane(first, low_scale), lane(second, low_scale), low) };
    // SAFETY: as above.
    unsafe { N::store_avx512(lane(third, high_scale), lane(fourth, high_scale), high) };
}

/// Codes of `WIDTH` bits in the top of bytes count in units of `2^(8 - WIDTH)`, and bytes on top of 32-bit
/// lanes in units of `2^24`.
const fn unit(width: u32) -> f32 {
    1.0 / (1u64 << (32 - width)) as f32
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn q4<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8]) {
    let top_bytes = top_bytes();
    let groups = row.base.as_chunks::<BASE_BYTES>().0.iter().zip(row.scales.as_chunks().0);
    for ((base, scale), out) in groups.zip(out.chunks_exact_mut(64 * word_bytes::<N>())) {
        let high_bits = _mm512_set1_epi8(0xf0u8 as i8);
        let codes = _mm512_and_si512(nibbles::<0>(base), high_bits);
        let scale = scale_lanes(*scale, unit(4));
        store_products::<N>(top_bytes, codes, [scale; 2], out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn q5<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8]) {
    let top_bytes = top_bytes();
    let groups = row.base.as_chunks().0.iter().zip(row.high.as_chunks::<Q5_HIGH_BYTES>().0);
    let groups = groups.zip(row.scales.as_chunks().0);
    for (((base, high), scale), out) in groups.zip(out.chunks_exact_mut(64 * word_bytes::<N>())) {
        // Lane k's high bit is bit k of 64: bring it to bit 7 of byte k.
        const PLACES: [u8; 64] = offsets(-7, 1, 64);
        let high = _mm512_set1_epi64(i64::from_le_bytes(*high));
        let high = _mm512_multishift_epi64_epi8(words(&PLACES), high);
        let nibbles = _mm512_and_si512(nibbles::<1>(base), _mm512_set1_epi8(0x78));
        let top = _mm512_set1_epi8(0x80u8 as i8);
        let codes = _mm512_ternarylogic_epi32::<0b1111_1000>(nibbles, high, top); // nibbles | high & top
        let scale = scale_lanes(*scale, unit(5));
        store_products::<N>(top_bytes, codes, [scale; 2], out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn q6<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8]) {
    let top_bytes = top_bytes();
    let groups = row.base.as_chunks().0.iter().zip(row.high.as_chunks::<Q6_HIGH_BYTES>().0);
    let groups = groups.zip(row.scales.as_chunks().0);
    for (((base, high), scale), out) in groups.zip(out.chunks_exact_mut(64 * word_bytes::<N>())) {
        // Lanes 0 to 31 have their high bits in the first 64, two by two; bring them to bits 7 and 6.
        const HALVES: [u64; 8] = [0, 0, 0, 0, 1, 1, 1, 1];
        const PLACES: [u8; 64] = offsets(-6, 2, 32);
        let high = _mm512_permutexvar_epi64(words(&HALVES), _mm512_castsi128_si512(load16(high)));
        let high = _mm512_multishift_epi64_epi8(words(&PLACES), high);
        let nibbles = _mm512_and_si512(nibbles::<2>(base), _mm512_set1_epi8(0x3c));
        let top = _mm512_set1_epi8(0xc0u8 as i8);
        let codes = _mm512_ternarylogic_epi32::<0b1111_1000>(nibbles, high, top); // nibbles | high & top
        let scale = scale_lanes(*scale, unit(6));
        store_products::<N>(top_bytes, codes, [scale; 2], out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn w8<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8]) {
    let groups = row.base.as_chunks::<BASE_BYTES>().0.iter().zip(row.scales.as_chunks().0);
    for ((base, scale), out) in groups.zip(out.chunks_exact_mut(32 * word_bytes::<N>())) {
        let scale = scale_lanes(*scale, 1.0);
        let product = |codes: &[u8; 16]| {
            _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load16(codes))), scale)
        };
        if let [low, high] = base.as_chunks().0 {
            // SAFETY: this function has the instruction sets that `store_avx512` asks for.
            unsafe { N::store_avx512(product(low), product(high), out) };
        }
    }
}

/// FP8 codes under a scale that makes no product subnormal, infinite or NaN, 64 at a time.
///
/// An E4M3FN word with its fields moved to those of binary16 is the same number, subnormal or not, over 2^8;
/// that conversion ignores denormals-are-zero.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn fp8<N: Narrow>(codes: &[u8], scale: f32, out: &mut [u8]) {
    let scale = _mm512_set1_ps(scale * 256.0);
    let nan = _mm512_castsi512_ps(_mm512_set1_epi32(crate::format::e4m3fn::NAN_F32_BITS as i32));
    for (codes, out) in codes.as_chunks::<32>().0.iter().zip(out.chunks_exact_mut(32 * word_bytes::<N>())) {
        let wide = _mm512_cvtepi8_epi16(load32(codes));
        let halves = _mm512_and_si512(_mm512_slli_epi16::<7>(wide), _mm512_set1_epi16(0xbfffu16 as i16));
        let product = |halves| _mm512_mul_ps(_mm512_cvtph_ps(halves), scale);
        let mut low = product(_mm512_castsi512_si256(halves));
        let mut high = product(_mm512_extracti64x4_epi64::<1>(halves));
        let magnitudes = _mm256_or_si256(load32(codes), _mm256_set1_epi8(0x80u8 as i8));
        let nans = _mm256_cmpeq_epi8_mask(magnitudes, _mm256_set1_epi8(-1));
        if nans != 0 {
            low = _mm512_mask_mov_ps(low, nans as u16, nan);
            high = _mm512_mask_mov_ps(high, (nans >> 16) as u16, nan);
        }
        // SAFETY: this function has the instruction sets that `store_avx512` asks for.
        unsafe { N::store_avx512(low, high, out) };
    }
}

/// NVFP4 to 32-bit words, 64 codes under four scales at a time: words of `tables` are moved, no number is
/// made. The scales of the next 64 codes come 512 bytes on.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn nvfp4_words32(codes: &[u8], scales: &[u8], tables: &Tables<u32>, out: &mut [u8]) {
    const PLACES: [u8; 64] = wide_places(4);
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.chunks(512));
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(256)) {
        let Some(scales) = scales.first_chunk::<4>() else { return };
        for ((codes, scale), out) in codes.as_chunks().0.iter().zip(scales).zip(out.as_chunks_mut().0) {
            let codes = _mm512_set1_epi64(i64::from_le_bytes(*codes));
            let index = _mm512_multishift_epi64_epi8(words(&PLACES), codes);
            let values = _mm512_permutexvar_epi32(index, words(table(tables, *scale)));
            store64(out, values);
        }
    }
}

/// NVFP4 to 16-bit words; see [`nvfp4_words32`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn nvfp4_words16(codes: &[u8], scales: &[u8], tables: &Tables<u16>, out: &mut [u8]) {
    const PLACES: [u8; 32] = wide_places(2);
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.chunks(512));
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(128)) {
        let Some(scales) = scales.first_chunk::<4>() else { return };
        for ((codes, scale), out) in codes.as_chunks().0.iter().zip(scales).zip(out.as_chunks_mut().0) {
            let codes = _mm256_set1_epi64x(i64::from_le_bytes(*codes));
            let index = _mm256_multishift_epi64_epi8(load32(&PLACES), codes);
            store32(out, _mm256_permutexvar_epi16(index, words32(table(tables, *scale))));
        }
    }
}

/// NVFP4 to 64-bit words; see [`nvfp4_words32`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn nvfp4_words64(codes: &[u8], scales: &[u8], tables: &Tables<u64>, out: &mut [u8]) {
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.chunks(512));
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(512)) {
        let Some(scales) = scales.first_chunk::<4>() else { return };
        for ((codes, scale), out) in codes.as_chunks::<8>().0.iter().zip(scales).zip(out.chunks_exact_mut(128))
        {
            let (low, high) = table(tables, *scale).split_at(8);
            let (low, high) = (words(low), words(high));
            let value = |codes: [u8; 4]| {
                let codes = _mm512_set1_epi64(i64::from(u32::from_le_bytes(codes)));
                let index = _mm512_srlv_epi64(codes, _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28));
                _mm512_permutex2var_epi64(low, index, high)
            };
            if let [first, second] = codes.as_chunks().0 {
                store_each64(out, [value(*first), value(*second)]);
            }
        }
    }
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "a masked index into 128 entries")]
fn table<T>(tables: &Tables<T>, scale: u8) -> &[T; 16] {
    &tables[usize::from(scale & 0x7f)]
}

/// Bit offsets in 64 bits of consecutive nibbles, one for every `bytes` bytes.
const fn wide_places<const LANES: usize>(bytes: usize) -> [u8; LANES] {
    let mut places = [0; LANES];
    let mut rest: &mut [u8] = &mut places;
    let mut next = 0;
    while let Some((place, more)) = rest.split_first_mut() {
        *place = (next / bytes * 4) as u8;
        next += 1;
        rest = more;
    }
    places
}

/// BF16 words to binary32 words, 32 at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn widen_bf16(source: &[u8], out: &mut [u8]) {
    for (source, out) in source.as_chunks::<64>().0.iter().zip(out.chunks_exact_mut(128)) {
        let widen = |half: &[u8; 32]| _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(load32(half)));
        if let [low, high] = source.as_chunks().0 {
            store_each64(out, [widen(low), widen(high)]);
        }
    }
}
