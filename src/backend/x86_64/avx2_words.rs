//! Decode kernels of 16-bit outputs for AVX2, FMA and F16C: the words of all codes under a scale are made first, and
//! codes look them up.
//!
//! A look-up takes bytes out of sixteen: each code's low byte comes from one table, its high byte from another. Words
//! are made of magnitudes; signs are put in afterwards.

use core::arch::x86_64::*;

use super::avx2_decode::{BATCH, Q5Places, nibbles, scale_values};
use super::lanes::{Words16Avx2, each_scale, load32, store_each32, table, words32};
use crate::backend::nvfp4_tables::Tables;
use crate::backend::run::Carry;
use crate::backend::{GroupedRow, ToBf16};
use crate::format::e4m3fn;
use crate::layout::row_split::BASE_BYTES;

/// Bytes of a group's words.
const OUT_BYTES: usize = 128;

/// The low and the high bytes of 16 words, each in both halves of a vector: what look-ups want.
struct Halves {
    low: __m256i,
    high: __m256i,
}

impl Halves {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn of(words: __m256i) -> Self {
        // Low bytes of eight words and their high bytes, then those of the other eight.
        let apart = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
        let bytes = _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(apart));
        Self {
            low: _mm256_permute4x64_epi64::<0b10_00_10_00>(bytes),
            high: _mm256_permute4x64_epi64::<0b11_01_11_01>(bytes),
        }
    }
}

/// Nibbles as [`nibbles`] takes them apart, but so that after being unpacked with their likes they are in order: every
/// second eight in the upper half.
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles_of_pairs(base: &[u8; BASE_BYTES]) -> [__m256i; 2] {
    let order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    nibbles(_mm256_permutevar8x32_epi32(load32(base), order))
}

/// 16 magnitudes times a scale, as words.
///
/// # Safety
/// AVX2, FMA and F16C.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn multiples<N: Words16Avx2>(magnitudes: &[f32; 16], scale: f32) -> __m256i {
    let (low, high) = magnitudes.split_at(8);
    let product =
        |numbers| _mm256_mul_ps(_mm256_castsi256_ps(words32::<f32>(numbers)), _mm256_set1_ps(scale));
    // SAFETY: the caller's promise.
    unsafe { N::narrow_avx2(product(low), product(high)) }
}

/// Q4: 16 products a group. Their exactness is that of [`super::avx2_decode`].
#[inline(never)] // nothing moves across the guard
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q4<N: Words16Avx2>(row: &GroupedRow<'_>, out: &mut [u8], _: &mut Carry) {
    const MAGNITUDES: [f32; 16] =
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0];
    let negative = _mm256_broadcastsi128_si256(_mm_set_epi64x(0x8080_8080_8080_8080u64 as i64, 0));
    for ((bases, scales), out) in row.batches(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.as_chunks_mut::<OUT_BYTES>().0) {
            // SAFETY: this function has the instruction sets that are asked for.
            let mut words = Halves::of(unsafe { multiples::<N>(&MAGNITUDES, *scale) });
            words.high = _mm256_or_si256(words.high, negative);
            let [[a, b], [c, d]] = nibbles_of_pairs(base).map(|codes| {
                let low = _mm256_shuffle_epi8(words.low, codes);
                let high = _mm256_shuffle_epi8(words.high, codes);
                [_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)]
            });
            store_each32(out, [a, b, c, d]);
        }
    }
}

/// Q5: 16 products a group, of which those of 1 to 15 are taken twice.
#[inline(never)] // nothing moves across the guard
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q5<N: Words16Avx2>(row: &GroupedRow<'_>, out: &mut [u8], _: &mut Carry) {
    const MAGNITUDES: [f32; 16] =
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0];
    /// What a look-up makes zero of.
    const NONE: u8 = 0x80;
    let bytes = |byte: u8| _mm256_set1_epi8(byte as i8);
    let places = Q5Places::new([0, 2, 1, 3], 4);
    for (((bases, highs), scales), out) in row.batches_with_high(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES))
    {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        let groups = bases.iter().zip(highs).zip(&values);
        for (((base, high), scale), out) in groups.zip(out.as_chunks_mut::<OUT_BYTES>().0) {
            // SAFETY: this function has the instruction sets that are asked for.
            let words = Halves::of(unsafe { multiples::<N>(&MAGNITUDES, *scale) });
            // A nibble n looks up n without its high bit. With it the code is n - 16, whose magnitude is the word n
            // from the last.
            let positive = Halves {
                low: _mm256_bslli_epi128::<1>(words.low),
                high: _mm256_bslli_epi128::<1>(words.high),
            };
            let negative = Halves { low: words.low, high: _mm256_or_si256(words.high, bytes(0x80)) };
            let ([first, second], [first_set, second_set]) = (nibbles_of_pairs(base), places.set(high));
            let [[a, b], [c, d]] = [(first, first_set), (second, second_set)].map(|(nibbles, set)| {
                let above = _mm256_or_si256(nibbles, _mm256_and_si256(set, bytes(NONE)));
                let below = _mm256_xor_si256(above, bytes(NONE | 0x0f));
                let word = |positive, negative| {
                    let (positive, negative) =
                        (_mm256_shuffle_epi8(positive, above), _mm256_shuffle_epi8(negative, below));
                    _mm256_or_si256(positive, negative)
                };
                let (low, high) = (word(positive.low, negative.low), word(positive.high, negative.high));
                [_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)]
            });
            store_each32(out, [a, b, c, d]);
        }
    }
}

/// NVFP4, 64 codes under four scales at a time: words of `tables` are moved, no number is made.
#[target_feature(enable = "avx2")]
pub(super) fn nvfp4(codes: &[u8], scales: &[u8], tables: &Tables<u16>, out: &mut [u8], _: &mut Carry) {
    let quads = codes.as_chunks().0.iter().zip(scales.as_chunks().0);
    for ((codes, scales), out) in quads.zip(out.as_chunks_mut::<OUT_BYTES>().0) {
        let [a, b, c, d] = each_scale(*scales).map(|scale| Halves::of(words32(table(tables, scale))));
        let look_up = |words: Halves, codes| {
            [_mm256_shuffle_epi8(words.low, codes), _mm256_shuffle_epi8(words.high, codes)]
        };
        // Unpacked, the lower eights are the first group's words, the upper eights the second's.
        let pair = |first: Halves, second: Halves, codes| {
            let ([low, high], [other_low, other_high]) = (look_up(first, codes), look_up(second, codes));
            [_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(other_low, other_high)]
        };
        let [first, second] = nibbles_of_pairs(codes);
        let ([a, b], [c, d]) = (pair(a, b, first), pair(c, d, second));
        store_each32(out, [a, b, c, d]);
    }
}

/// FP8 to bf16, 32 codes at a time, under a scale that makes no product subnormal or infinite.
///
/// Where a code is normal, its exponent is added to that of a word: a code's lower four bits, of which the first is
/// the last of the exponent, look up the word for the upper bits 001, and the upper bits count on from there.
#[inline(never)] // nothing moves across the guard
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn fp8_to_bf16(codes: &[u8], scale: f32, out: &mut [u8], _: &mut Carry) {
    let nan = e4m3fn::NAN_F32_BITS.to_be_bytes();
    let bytes = |byte: u8| _mm256_set1_epi8(byte as i8);
    let words = |first| {
        let [low, high] = [first, first + 8].map(|code| {
            let values = e4m3fn::F32_BITS.get(code..).and_then(|words| words.first_chunk::<8>());
            let values = _mm256_castsi256_ps(words32(values.unwrap_or(&[0; 8])));
            _mm256_mul_ps(values, _mm256_set1_ps(scale))
        });
        // SAFETY: this function has the instruction sets that `narrow_avx2` asks for.
        unsafe { Halves::of(<ToBf16 as Words16Avx2>::narrow_avx2(low, high)) }
    };
    let (first, second) = (words(0), words(16));
    // Zeros have no exponent to add to.
    let upper_bits = if scale == 0.0 { 0 } else { 0x07 };
    let before = _mm256_sub_epi8(second.high, bytes(upper_bits & 1));
    for (codes, out) in codes.as_chunks().0.iter().zip(out.as_chunks_mut::<64>().0) {
        // Unpacking works on 128-bit halves; so every second eight codes go to the upper half first.
        let codes = _mm256_permute4x64_epi64::<0b11_01_10_00>(load32(codes));
        let lower = _mm256_and_si256(codes, bytes(0x0f));
        let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(codes), bytes(0x07));
        let is_first = _mm256_cmpeq_epi8(upper, _mm256_setzero_si256());
        let upper = _mm256_and_si256(upper, bytes(upper_bits));
        let low = _mm256_shuffle_epi8(second.low, lower);
        let high = _mm256_add_epi8(_mm256_shuffle_epi8(before, lower), upper);
        let low = _mm256_blendv_epi8(low, _mm256_shuffle_epi8(first.low, lower), is_first);
        let high = _mm256_blendv_epi8(high, _mm256_shuffle_epi8(first.high, lower), is_first);
        let mut high = _mm256_or_si256(high, _mm256_and_si256(codes, bytes(0x80)));
        let mut low = low;
        let is_nan = _mm256_cmpeq_epi8(_mm256_or_si256(codes, bytes(0x80)), bytes(0xff));
        if _mm256_movemask_epi8(is_nan) != 0 {
            high = _mm256_blendv_epi8(high, bytes(nan[0]), is_nan);
            low = _mm256_blendv_epi8(low, bytes(nan[1]), is_nan);
        }
        store_each32(out, [_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)]);
    }
}
