//! Decode kernels for AVX-512 F, BW, DQ, VL and VBMI.
//!
//! Each writes whole groups over all of `out`. Codes become 64 bytes with the code in the top bits and zeros
//! below; a byte permutation lifts them to the top of 32-bit lanes, which are converted and multiplied. Every
//! conversion and product is exact and normal (or a zero of the product's sign), so neither rounding mode,
//! flush-to-zero nor denormals-are-zero can change a result.

use core::arch::x86_64::*;

use super::lanes::{each_scale, load16, load32, load64, store_each64, table, word_bytes, words, words32};
use super::sink::Sink;
use crate::backend::nvfp4_tables::Tables;
use crate::backend::run::Carry;
use crate::backend::{GroupedRow, Narrow};
use crate::format::e4m3fn;
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

/// Groups whose scales are widened together, well before they are used.
const BATCH: usize = 64;

/// Up to [`BATCH`] binary16 scales as binary32, times `unit`, a power of two.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn scale_values(scales: &[[u8; SCALE_BYTES]], unit: f32, values: &mut [f32; BATCH]) {
    for (scales, values) in scales.chunks(16).zip(values.as_chunks_mut::<16>().0) {
        let halves = match scales.as_flattened().first_chunk() {
            Some(full) => load32(full),
            None => {
                let mut padded = [[0; SCALE_BYTES]; 16];
                for (padded, scale) in padded.iter_mut().zip(scales) {
                    *padded = *scale;
                }
                words32(&padded)
            }
        };
        // The conversion ignores denormals-are-zero; the least product is 2^-24 * 2^-28.
        let wide = _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(unit));
        store_each64(bytemuck::cast_slice_mut(values), [_mm512_castps_si512(wide)]);
    }
}

/// Multiplies 64 codes, each in the top bits of its byte, by their scale.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn store_products<N: Narrow, const STREAM: bool>(
    top: __mmask64,
    codes: __m512i,
    scale: &f32,
    out: &mut [u8],
    sink: &mut Sink<STREAM>,
) {
    let scale = _mm512_set1_ps(*scale);
    let lane = |permutation| {
        let lifted = _mm512_maskz_permutexvar_epi8(top, load64(permutation), codes);
        _mm512_mul_ps(_mm512_cvtepi32_ps(lifted), scale)
    };
    let [first, second, third, fourth] = &SPREAD;
    let (low, high) = out.split_at_mut_checked(32 * word_bytes::<N>()).unwrap_or_default();
    // SAFETY: this function has the instruction sets that `store_avx512` asks for.
    unsafe { N::store_avx512(lane(first), lane(second), low, sink) };
    // SAFETY: as above.
    unsafe { N::store_avx512(lane(third), lane(fourth), high, sink) };
}

/// Codes of `WIDTH` bits in the top of bytes count in units of `2^(8 - WIDTH)`, and bytes on top of 32-bit
/// lanes in units of `2^24`.
const fn unit(width: u32) -> f32 {
    1.0 / (1u64 << (32 - width)) as f32
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn q4<N: Narrow, const STREAM: bool>(row: &GroupedRow<'_>, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    const PLACES: [u8; 64] = wide_places(4);
    const CODES: [f32; 16] =
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0];
    let all_codes = _mm512_castsi512_ps(words(&CODES));
    let out_bytes = 64 * word_bytes::<N>();
    let batches =
        row.base.as_chunks::<BASE_BYTES>().0.chunks(BATCH).zip(row.scales.as_chunks().0.chunks(BATCH));
    for ((bases, scales), out) in batches.zip(out.chunks_mut(BATCH * out_bytes)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.chunks_exact_mut(out_bytes)) {
            // The products of all codes, permuted by the codes of 16 lanes: an index's high bits are ignored.
            let products = _mm512_mul_ps(all_codes, _mm512_set1_ps(*scale));
            let value = |codes: &[u8; 8]| {
                let codes = _mm512_set1_epi64(i64::from_le_bytes(*codes));
                _mm512_permutexvar_ps(_mm512_multishift_epi64_epi8(words(&PLACES), codes), products)
            };
            for (half, out) in base.as_chunks::<16>().0.iter().zip(out.chunks_exact_mut(out_bytes / 2)) {
                if let [low, high] = half.as_chunks().0 {
                    // SAFETY: this function has the instruction sets that `store_avx512` asks for.
                    unsafe { N::store_avx512(value(low), value(high), out, &mut sink) };
                }
            }
        }
    }
    sink.end(carry);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn q5<N: Narrow, const STREAM: bool>(row: &GroupedRow<'_>, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    // Lane k's high bit is bit k of 64: bring it to bit 7 of byte k.
    const PLACES: [u8; 64] = offsets(-7, 1, 64);
    let top_bytes = top_bytes();
    let out_bytes = 64 * word_bytes::<N>();
    let groups =
        row.base.as_chunks().0.chunks(BATCH).zip(row.high.as_chunks::<Q5_HIGH_BYTES>().0.chunks(BATCH));
    let batches = groups.zip(row.scales.as_chunks().0.chunks(BATCH));
    for (((bases, highs), scales), out) in batches.zip(out.chunks_mut(BATCH * out_bytes)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, unit(5), &mut values);
        let groups = bases.iter().zip(highs).zip(&values);
        for (((base, high), scale), out) in groups.zip(out.chunks_exact_mut(out_bytes)) {
            let high = _mm512_set1_epi64(i64::from_le_bytes(*high));
            let high = _mm512_multishift_epi64_epi8(words(&PLACES), high);
            let nibbles = _mm512_and_si512(nibbles::<1>(base), _mm512_set1_epi8(0x78));
            let top = _mm512_set1_epi8(0x80u8 as i8);
            let codes = _mm512_ternarylogic_epi32::<0b1111_1000>(nibbles, high, top); // nibbles | high & top
            store_products::<N, STREAM>(top_bytes, codes, scale, out, &mut sink);
        }
    }
    sink.end(carry);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn q6<N: Narrow, const STREAM: bool>(row: &GroupedRow<'_>, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    // Lanes 0 to 31 have their high bits in the first 64, two by two; bring them to bits 7 and 6.
    const HALVES: [u64; 8] = [0, 0, 0, 0, 1, 1, 1, 1];
    const PLACES: [u8; 64] = offsets(-6, 2, 32);
    let top_bytes = top_bytes();
    let out_bytes = 64 * word_bytes::<N>();
    let groups =
        row.base.as_chunks().0.chunks(BATCH).zip(row.high.as_chunks::<Q6_HIGH_BYTES>().0.chunks(BATCH));
    let batches = groups.zip(row.scales.as_chunks().0.chunks(BATCH));
    for (((bases, highs), scales), out) in batches.zip(out.chunks_mut(BATCH * out_bytes)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, unit(6), &mut values);
        let groups = bases.iter().zip(highs).zip(&values);
        for (((base, high), scale), out) in groups.zip(out.chunks_exact_mut(out_bytes)) {
            let high = _mm512_permutexvar_epi64(words(&HALVES), _mm512_castsi128_si512(load16(high)));
            let high = _mm512_multishift_epi64_epi8(words(&PLACES), high);
            let nibbles = _mm512_and_si512(nibbles::<2>(base), _mm512_set1_epi8(0x3c));
            let top = _mm512_set1_epi8(0xc0u8 as i8);
            let codes = _mm512_ternarylogic_epi32::<0b1111_1000>(nibbles, high, top); // nibbles | high & top
            store_products::<N, STREAM>(top_bytes, codes, scale, out, &mut sink);
        }
    }
    sink.end(carry);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn w8<N: Narrow, const STREAM: bool>(row: &GroupedRow<'_>, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    let out_bytes = 32 * word_bytes::<N>();
    let batches =
        row.base.as_chunks::<BASE_BYTES>().0.chunks(BATCH).zip(row.scales.as_chunks().0.chunks(BATCH));
    for ((bases, scales), out) in batches.zip(out.chunks_mut(BATCH * out_bytes)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.chunks_exact_mut(out_bytes)) {
            let scale = _mm512_set1_ps(*scale);
            let product = |codes: &[u8; 16]| {
                _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load16(codes))), scale)
            };
            if let [low, high] = base.as_chunks().0 {
                // SAFETY: this function has the instruction sets that `store_avx512` asks for.
                unsafe { N::store_avx512(product(low), product(high), out, &mut sink) };
            }
        }
    }
    sink.end(carry);
}

/// The high and low bytes of the BF16 words of E4M3FN magnitudes, 127 of which is a NaN. BF16 holds them all.
static FP8_BYTES: [[[u8; 64]; 2]; 2] = [fp8_bytes(1), fp8_bytes(0)];

const fn fp8_bytes(byte: u32) -> [[u8; 64]; 2] {
    let mut bytes = [[0; 64]; 2];
    let mut rest: &mut [u8] = bytes.as_flattened_mut();
    let mut magnitude = 0;
    while let Some((entry, more)) = rest.split_first_mut() {
        *entry = (e4m3fn::compute_f32_bits(magnitude) >> (16 + 8 * byte)) as u8;
        magnitude += 1;
        rest = more;
    }
    bytes
}

/// The signed codes of words of `BITS` bits, one a byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn sign_extend<const BITS: u32>(words: __m512i) -> __m512i {
    let sign = _mm512_set1_epi8(1 << (BITS - 1));
    _mm512_sub_epi8(_mm512_xor_si512(words, sign), sign)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn unpack_q4<const STREAM: bool>(row: &GroupedRow<'_>, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    for (base, out) in row.base.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        let nibbles = _mm512_and_si512(nibbles::<4>(base), _mm512_set1_epi8(0x0f));
        sink.put(out, sign_extend::<4>(nibbles));
    }
    sink.end(carry);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn unpack_q5<const STREAM: bool>(row: &GroupedRow<'_>, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    // Lane k's high bit to bit 4 of byte k.
    const PLACES: [u8; 64] = offsets(-4, 1, 64);
    let groups = row.base.as_chunks().0.iter().zip(row.high.as_chunks::<Q5_HIGH_BYTES>().0);
    for ((base, high), out) in groups.zip(out.as_chunks_mut().0) {
        let high = _mm512_set1_epi64(i64::from_le_bytes(*high));
        let high = _mm512_multishift_epi64_epi8(words(&PLACES), high);
        let nibbles = _mm512_and_si512(nibbles::<4>(base), _mm512_set1_epi8(0x0f));
        let top = _mm512_set1_epi8(0x10);
        let codes = _mm512_ternarylogic_epi32::<0b1111_1000>(nibbles, high, top); // nibbles | high & top
        sink.put(out, sign_extend::<5>(codes));
    }
    sink.end(carry);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn unpack_q6<const STREAM: bool>(row: &GroupedRow<'_>, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    // Lane k's high bits to bits 5 and 4 of byte k.
    const HALVES: [u64; 8] = [0, 0, 0, 0, 1, 1, 1, 1];
    const PLACES: [u8; 64] = offsets(-4, 2, 32);
    let groups = row.base.as_chunks().0.iter().zip(row.high.as_chunks::<Q6_HIGH_BYTES>().0);
    for ((base, high), out) in groups.zip(out.as_chunks_mut().0) {
        let high = _mm512_permutexvar_epi64(words(&HALVES), _mm512_castsi128_si512(load16(high)));
        let high = _mm512_multishift_epi64_epi8(words(&PLACES), high);
        let nibbles = _mm512_and_si512(nibbles::<4>(base), _mm512_set1_epi8(0x0f));
        let top = _mm512_set1_epi8(0x30);
        let codes = _mm512_ternarylogic_epi32::<0b1111_1000>(nibbles, high, top); // nibbles | high & top
        sink.put(out, sign_extend::<6>(codes));
    }
    sink.end(carry);
}

/// FP8 codes, 64 at a time, under a scale that makes no product subnormal or infinite.
///
/// Bytes are looked up and moved to make the codes' own binary32 words, none of which is subnormal; the product
/// is exact. A NaN, quiet and positive, passes through it.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn fp8<N: Narrow, const STREAM: bool>(
    codes: &[u8],
    scale: f32,
    out: &mut [u8],
    carry: &mut Carry,
) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    let scale = _mm512_set1_ps(scale);
    let [[high_first, high_second], [low_first, low_second]] = &FP8_BYTES;
    let high_table = [load64(high_first), load64(high_second)];
    let low_table = [load64(low_first), load64(low_second)];
    // Unpacking works on 128-bit quarters: each gets four codes of every 16.
    const ORDER: [u32; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
    let zero = _mm512_setzero_si512();
    let out_bytes = 64 * word_bytes::<N>();
    for (codes, out) in codes.as_chunks().0.iter().zip(out.chunks_exact_mut(out_bytes)) {
        let codes = _mm512_permutexvar_epi32(words(&ORDER), load64(codes));
        let look_up = |[first, second]: [__m512i; 2]| _mm512_permutex2var_epi8(first, codes, second);
        // The sign, but not that of a NaN: adding one carries out of 0xff.
        let next = _mm512_add_epi8(codes, _mm512_set1_epi8(1));
        let signs = _mm512_ternarylogic_epi32::<0b1000_0000>(codes, next, _mm512_set1_epi8(i8::MIN));
        let (high, low) = (_mm512_or_si512(look_up(high_table), signs), look_up(low_table));
        let product = |word| _mm512_mul_ps(_mm512_castsi512_ps(word), scale);
        let halves = [_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)];
        for (half, out) in halves.into_iter().zip(out.chunks_exact_mut(out_bytes / 2)) {
            let (low, high) = (_mm512_unpacklo_epi16(zero, half), _mm512_unpackhi_epi16(zero, half));
            // SAFETY: this function has the instruction sets that `store_avx512` asks for.
            unsafe { N::store_avx512(product(low), product(high), out, &mut sink) };
        }
    }
    sink.end(carry);
}

/// NVFP4 to 32-bit words, 64 codes under four scales at a time: words of `tables` are moved, no number is
/// made. The scales of the next 64 codes come 512 bytes on.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn nvfp4_words32<const STREAM: bool>(
    codes: &[u8],
    scales: &[u8],
    tables: &Tables<u32>,
    out: &mut [u8],
    carry: &mut Carry,
) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    const PLACES: [u8; 64] = wide_places(4);
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.chunks(512));
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(256)) {
        let Some(scales) = scales.first_chunk() else { break };
        let scales = each_scale(*scales);
        for ((codes, scale), out) in codes.as_chunks().0.iter().zip(scales).zip(out.as_chunks_mut().0) {
            let codes = _mm512_set1_epi64(i64::from_le_bytes(*codes));
            let index = _mm512_multishift_epi64_epi8(words(&PLACES), codes);
            let values = _mm512_permutexvar_epi32(index, words(table(tables, scale)));
            sink.put(out, values);
        }
    }
    sink.end(carry);
}

/// NVFP4 to 16-bit words; see [`nvfp4_words32`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn nvfp4_words16<const STREAM: bool>(
    codes: &[u8],
    scales: &[u8],
    tables: &Tables<u16>,
    out: &mut [u8],
    carry: &mut Carry,
) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    const PLACES: [u8; 32] = wide_places(2);
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.chunks(512));
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(128)) {
        let Some(scales) = scales.first_chunk() else { break };
        let value = |codes: [u8; 8], scale| {
            let codes = _mm256_set1_epi64x(i64::from_le_bytes(codes));
            let index = _mm256_multishift_epi64_epi8(load32(&PLACES), codes);
            _mm256_permutexvar_epi16(index, words32(table(tables, scale)))
        };
        if let ([a, b, c, d], [e, f, g, h]) = (each_scale(*scales), codes.as_chunks().0) {
            let pair = |low, high| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            let (first, second) = (pair(value(*e, a), value(*f, b)), pair(value(*g, c), value(*h, d)));
            sink.put_each(out, [first, second]);
        }
    }
    sink.end(carry);
}

/// NVFP4 to 64-bit words; see [`nvfp4_words32`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn nvfp4_words64<const STREAM: bool>(
    codes: &[u8],
    scales: &[u8],
    tables: &Tables<u64>,
    out: &mut [u8],
    carry: &mut Carry,
) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.chunks(512));
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(512)) {
        let Some(scales) = scales.first_chunk() else { break };
        let scales = each_scale(*scales);
        for ((codes, scale), out) in
            codes.as_chunks::<8>().0.iter().zip(scales).zip(out.chunks_exact_mut(128))
        {
            let (low, high) = table(tables, scale).split_at(8);
            let (low, high) = (words(low), words(high));
            let value = |codes: [u8; 4]| {
                let codes = _mm512_set1_epi64(i64::from(u32::from_le_bytes(codes)));
                let index = _mm512_srlv_epi64(codes, _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28));
                _mm512_permutex2var_epi64(low, index, high)
            };
            if let [first, second] = codes.as_chunks().0 {
                sink.put_each(out, [value(*first), value(*second)]);
            }
        }
    }
    sink.end(carry);
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
pub(super) fn widen_bf16<const STREAM: bool>(source: &[u8], out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    for (source, out) in source.as_chunks::<64>().0.iter().zip(out.chunks_exact_mut(128)) {
        let widen = |half: &[u8; 32]| _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(load32(half)));
        if let [low, high] = source.as_chunks().0 {
            sink.put_each(out, [widen(low), widen(high)]);
        }
    }
    sink.end(carry);
}
