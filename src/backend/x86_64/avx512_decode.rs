//! Decode kernels for AVX-512 F, BW, DQ, VL and VBMI.
//!
//! Each writes whole groups over all of `out`. Where a group or a row has few possible values, they are made first
//! and looked up by the codes; else codes are lifted to the top of 32-bit lanes, converted and multiplied. Every
//! conversion and product is exact and normal (or a zero of the product's sign), so neither rounding mode,
//! flush-to-zero nor denormals-are-zero can change a result.

use core::arch::x86_64::*;

use super::avx512_nvfp4::wide_places;
use super::lanes::{Q4_CODES, each_lane, load16, load32, load64, prefetch, store_each64, words, words32};
use super::sink::Sink;
use crate::backend::GroupedRow;
use crate::backend::run::Carry;
use crate::format::e4m3fn;
use crate::layout::row_split::{BASE_BYTES, Q5_HIGH_BYTES, Q6_HIGH_BYTES, SCALE_BYTES};

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

/// 32 nibble pairs as 64 bytes: nibble `k` in the low bits of byte `k`, other bits undefined.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn nibbles(base: &[u8; BASE_BYTES]) -> __m512i {
    // Pair j's low nibble lies at bit 16 j of its lane, its high nibble at 16 j + 4.
    let pairs = _mm512_cvtepu8_epi16(load32(base));
    let places = const { nibble_places() };
    _mm512_multishift_epi64_epi8(words(&places), pairs)
}

const fn nibble_places() -> [u8; 64] {
    let mut places = [0; 64];
    let mut rest: &mut [u8] = &mut places;
    let mut pair = 0;
    while let Some(([low, high], more)) = rest.split_first_chunk_mut() {
        *low = pair * 16;
        *high = pair * 16 + 4;
        pair = (pair + 1) % 4;
        rest = more;
    }
    places
}

/// Bytes of 64 binary32 words.
const OUT_BYTES: usize = 256;

/// Groups whose scales are widened together, well before they are used.
pub(super) const BATCH: usize = 64;

/// Up to [`BATCH`] binary16 scales as binary32, times `unit`, a power of two.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn scale_values(scales: &[[u8; SCALE_BYTES]], unit: f32, values: &mut [f32; BATCH]) {
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
        // The conversion ignores denormals-are-zero; the least product, far from subnormal, is that of 2^-24 and the
        // unit.
        let wide = _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(unit));
        store_each64(bytemuck::cast_slice_mut(values), [_mm512_castps_si512(wide)]);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn q4<const STREAM: bool>(row: &GroupedRow<'_>, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    const PLACES: [u8; 64] = wide_places(4);
    let all_codes = _mm512_castsi512_ps(words(&Q4_CODES));
    for ((bases, scales), out) in row.batches(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.chunks_exact_mut(OUT_BYTES)) {
            prefetch::<STREAM>(base);
            // The products of all codes, permuted by the codes of 16 lanes: an index's high bits are ignored.
            let products = _mm512_mul_ps(all_codes, _mm512_set1_ps(*scale));
            let value = |codes: &[u8; 8]| {
                let codes = _mm512_set1_epi64(i64::from_le_bytes(*codes));
                let index = _mm512_multishift_epi64_epi8(words(&PLACES), codes);
                _mm512_castps_si512(_mm512_permutexvar_ps(index, products))
            };
            for (codes, out) in base.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
                sink.put(out, value(codes));
            }
        }
    }
    sink.end(carry);
}

/// Tables for codes in sixteens: byte `k` of 32-bit lane `i` is code `16 k + i`. So 64 bits have two neighbours of each
/// sixteen, whose nibbles are one byte.
enum Places {
    /// The bytes of the nibbles, twice.
    Nibbles,
    /// The same once, then those of Q6's high bits, which come 64 bytes on: four neighbours share one.
    NibblesAndHigh,
    /// Of the bits of the nibbles, less some places up.
    NibbleBits { up: usize },
    /// Of Q5's high bits among 64, less four places up.
    Q5HighBits,
    /// Of Q6's high bits after the nibbles, less six places up.
    Q6HighBits,
}

const fn places(of: Places) -> [u8; 64] {
    let mut places = [0; 64];
    let mut rest: &mut [u8] = &mut places;
    let mut at = 0;
    while let Some((place, more)) = rest.split_first_mut() {
        let (qword, sixteen, second) = (at / 8, at % 4, at / 4 % 2);
        *place = match of {
            Places::NibblesAndHigh if second == 1 => 64 + 4 * sixteen + qword / 2,
            Places::Nibbles | Places::NibblesAndHigh => qword + 8 * sixteen,
            Places::NibbleBits { up } => (64 + 8 * sixteen + 4 * second - up) % 64,
            Places::Q5HighBits => (64 + 16 * sixteen + 2 * qword + second - 4) % 64,
            Places::Q6HighBits => 32 + 8 * sixteen + 4 * (qword % 2) + 2 * second - 6,
        } as u8;
        rest = more;
        at += 1;
    }
    places
}

/// The numbers from `first` on.
pub(super) const fn numbers(first: i32) -> [f32; 16] {
    let mut numbers = [0.0; 16];
    let mut rest: &mut [f32] = &mut numbers;
    let mut next = first;
    while let Some((number, more)) = rest.split_first_mut() {
        *number = next as f32;
        next += 1;
        rest = more;
    }
    numbers
}

/// Codes in sixteens, in the low bits of their bytes under other bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn q5_sixteens(base: &[u8; BASE_BYTES], high: &[u8; Q5_HIGH_BYTES]) -> __m512i {
    const BYTES: [u8; 64] = places(Places::Nibbles);
    const NIBBLES: [u8; 64] = places(Places::NibbleBits { up: 0 });
    const HIGH: [u8; 64] = places(Places::Q5HighBits);
    let bytes = _mm512_permutexvar_epi8(words(&BYTES), _mm512_castsi256_si512(load32(base)));
    let nibbles = _mm512_multishift_epi64_epi8(words(&NIBBLES), bytes);
    let high = _mm512_set1_epi64(i64::from_le_bytes(*high));
    let high = _mm512_multishift_epi64_epi8(words(&HIGH), high);
    // The nibble where the mask has ones, else the high bit and others.
    _mm512_ternarylogic_epi32::<0b1100_1010>(_mm512_set1_epi8(0x0f), nibbles, high)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn q5<const STREAM: bool>(row: &GroupedRow<'_>, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    const CODES: [[f32; 16]; 2] = [numbers(0), numbers(-16)];
    let all_codes = CODES.map(|codes| _mm512_castsi512_ps(words(&codes)));
    for (((bases, highs), scales), out) in row.batches_with_high(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES))
    {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        let groups = bases.iter().zip(highs).zip(&values);
        for (((base, high), scale), out) in groups.zip(out.chunks_exact_mut(OUT_BYTES)) {
            prefetch::<STREAM>(base);
            prefetch::<STREAM>(high);
            // The products of all codes, permuted by the codes of 16 lanes: an index's high bits are ignored.
            let scale = each_lane(scale);
            let [low, top] = all_codes.map(|codes| _mm512_mul_ps(codes, scale));
            let value = |index| _mm512_castps_si512(_mm512_permutex2var_ps(low, index, top));
            let codes = q5_sixteens(base, high);
            let second = _mm512_srli_epi32::<8>(codes);
            let third = _mm512_srli_epi32::<16>(codes);
            let fourth = _mm512_srli_epi32::<24>(codes);
            sink.put_each(out, [codes, second, third, fourth].map(value));
        }
    }
    sink.end(carry);
}

/// Codes in sixteens, in the high bits of their bytes, with zeros below.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn q6_sixteens(base: &[u8; BASE_BYTES], high: &[u8; Q6_HIGH_BYTES]) -> __m512i {
    const BYTES: [u8; 64] = places(Places::NibblesAndHigh);
    const NIBBLES: [u8; 64] = places(Places::NibbleBits { up: 2 });
    const HIGH: [u8; 64] = places(Places::Q6HighBits);
    let (base, high) = (_mm512_castsi256_si512(load32(base)), _mm512_castsi128_si512(load16(high)));
    let bytes = _mm512_permutex2var_epi8(base, words(&BYTES), high);
    let nibbles = _mm512_multishift_epi64_epi8(words(&NIBBLES), bytes);
    let nibbles = _mm512_and_si512(nibbles, _mm512_set1_epi8(0x3c));
    let high = _mm512_multishift_epi64_epi8(words(&HIGH), bytes);
    let top = _mm512_set1_epi8(0xc0u8 as i8);
    _mm512_ternarylogic_epi32::<0b1111_1000>(nibbles, high, top) // nibbles | high & top
}

const fn every_byte(first: u8) -> [u8; 64] {
    let mut places = [0; 64];
    let mut rest: &mut [u8] = &mut places;
    let mut next = first;
    while let Some(([_, _, _, top], more)) = rest.split_first_chunk_mut() {
        *top = next;
        next += 4;
        rest = more;
    }
    places
}

/// The top byte of every 32-bit lane.
const TOP_BYTES: u64 = 0x8888_8888_8888_8888;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn q6<const STREAM: bool>(row: &GroupedRow<'_>, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    // In a mask register: a known mask the compiler would turn into an AND for every vector.
    let top_bytes = core::hint::black_box(TOP_BYTES);
    // Byte 1 or byte 2 to the top of each 32-bit lane.
    const SECOND: [u8; 64] = every_byte(1);
    const THIRD: [u8; 64] = every_byte(2);
    for (((bases, highs), scales), out) in row.batches_with_high(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES))
    {
        let mut values = [0.0; BATCH];
        // Codes count in units of 2^2 in a byte, and bytes on top of 32-bit lanes in units of 2^24.
        scale_values(scales, 1.0 / (1 << 26) as f32, &mut values);
        let groups = bases.iter().zip(highs).zip(&values);
        for (((base, high), scale), out) in groups.zip(out.chunks_exact_mut(OUT_BYTES)) {
            prefetch::<STREAM>(base);
            prefetch::<STREAM>(high);
            let scale = each_lane(scale);
            let value = |code| _mm512_castps_si512(_mm512_mul_ps(_mm512_cvtepi32_ps(code), scale));
            let codes = q6_sixteens(base, high);
            // Different instructions, as each has but some of the pipes.
            let first = _mm512_slli_epi32::<24>(codes);
            let second = _mm512_maskz_permutexvar_epi8(top_bytes, words(&SECOND), codes);
            let third = _mm512_maskz_permutexvar_epi8(top_bytes, words(&THIRD), codes);
            let fourth = _mm512_and_si512(codes, _mm512_set1_epi32(0xff00_0000u32 as i32));
            sink.put_each(out, [first, second, third, fourth].map(value));
        }
    }
    sink.end(carry);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn w8<const STREAM: bool>(row: &GroupedRow<'_>, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    for ((bases, scales), out) in row.batches(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES / 2)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.chunks_exact_mut(OUT_BYTES / 2)) {
            prefetch::<STREAM>(base);
            let scale = each_lane(scale);
            for (codes, out) in base.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
                let codes = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load16(codes)));
                sink.put(out, _mm512_castps_si512(_mm512_mul_ps(codes, scale)));
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
        prefetch::<STREAM>(base);
        let nibbles = _mm512_and_si512(nibbles(base), _mm512_set1_epi8(0x0f));
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
        prefetch::<STREAM>(base);
        prefetch::<STREAM>(high);
        let high = _mm512_set1_epi64(i64::from_le_bytes(*high));
        let high = _mm512_multishift_epi64_epi8(words(&PLACES), high);
        let nibbles = _mm512_and_si512(nibbles(base), _mm512_set1_epi8(0x0f));
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
        prefetch::<STREAM>(base);
        prefetch::<STREAM>(high);
        let high = _mm512_permutexvar_epi64(words(&HALVES), _mm512_castsi128_si512(load16(high)));
        let high = _mm512_multishift_epi64_epi8(words(&PLACES), high);
        let nibbles = _mm512_and_si512(nibbles(base), _mm512_set1_epi8(0x0f));
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
pub(super) fn fp8<const STREAM: bool>(codes: &[u8], scale: f32, out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    let scale = _mm512_set1_ps(scale);
    let [[high_first, high_second], [low_first, low_second]] = &FP8_BYTES;
    let high_table = [load64(high_first), load64(high_second)];
    let low_table = [load64(low_first), load64(low_second)];
    // Unpacking works on 128-bit quarters: each gets four codes of every 16.
    const ORDER: [u32; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
    let zero = _mm512_setzero_si512();
    for (codes, out) in codes.as_chunks().0.iter().zip(out.chunks_exact_mut(OUT_BYTES)) {
        prefetch::<STREAM>(codes);
        let codes = _mm512_permutexvar_epi32(words(&ORDER), load64(codes));
        let look_up = |[first, second]: [__m512i; 2]| _mm512_permutex2var_epi8(first, codes, second);
        // The sign, but not that of a NaN: adding one carries out of 0xff.
        let next = _mm512_add_epi8(codes, _mm512_set1_epi8(1));
        let signs = _mm512_ternarylogic_epi32::<0b1000_0000>(codes, next, _mm512_set1_epi8(i8::MIN));
        let (high, low) = (_mm512_or_si512(look_up(high_table), signs), look_up(low_table));
        let product = |word| _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(word), scale));
        let halves = [_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)];
        for (half, out) in halves.into_iter().zip(out.chunks_exact_mut(OUT_BYTES / 2)) {
            let (low, high) = (_mm512_unpacklo_epi16(zero, half), _mm512_unpackhi_epi16(zero, half));
            sink.put_each(out, [low, high].map(product));
        }
    }
    sink.end(carry);
}

/// BF16 words to binary32 words, 32 at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn widen_bf16<const STREAM: bool>(source: &[u8], out: &mut [u8], carry: &mut Carry) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    for (source, out) in source.as_chunks::<64>().0.iter().zip(out.chunks_exact_mut(128)) {
        prefetch::<STREAM>(source);
        let widen = |half: &[u8; 32]| _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(load32(half)));
        if let [low, high] = source.as_chunks().0 {
            sink.put_each(out, [widen(low), widen(high)]);
        }
    }
    sink.end(carry);
}
