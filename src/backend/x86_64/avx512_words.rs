//! Decode kernels for AVX-512 F, BW, DQ, VL and VBMI whose output words have 16 bits.
//!
//! What a group or a row can hold is worked out first, as output words; then codes look words up. Products are
//! exact and normal (or a zero of the product's sign), as in [`super::avx512_decode`]; how they become words is
//! said at [`Words16`], whose type may ask for more of the processor; that is what callers of the kernels promise.

use core::arch::x86_64::*;

use super::avx512_decode::{BATCH, numbers, scale_values};
use super::lanes::{
    Q4_CODES, Words16, byte_numbers, each_lane, load16, load32, load64, prefetch, store_each64, words,
    words32,
};
use super::sink::Sink;
use crate::backend::GroupedRow;
use crate::backend::run::Carry;
use crate::format::e4m3fn;
use crate::layout::row_split::{BASE_BYTES, Q6_HIGH_BYTES};

/// Bytes of 64 output words.
const OUT_BYTES: usize = 128;

/// Tables for codes in halves: 128 bits are eight of the first 32 codes, then eight of the others, in the order in
/// which unpacking bytes makes two vectors of words of them.
enum Places {
    /// The bytes of eight nibbles, then those of Q6's high bits, which come 64 bytes on.
    NibblesAndHigh,
    /// Of Q5's high bits among 64, less four places up.
    Q5HighBits,
    /// Of Q6's high bits after the nibbles, less four places up.
    Q6HighBits,
}

const fn places(of: Places) -> [u8; 64] {
    let mut places = [0; 64];
    let mut rest: &mut [u8] = &mut places;
    let mut at = 0;
    while let Some((place, more)) = rest.split_first_mut() {
        let (eight, half, byte) = (at / 16, at / 8 % 2, at % 8);
        *place = match of {
            Places::NibblesAndHigh if byte < 4 => 16 * half + 4 * eight + byte,
            Places::NibblesAndHigh => 64 + 8 * half + 2 * eight + byte % 2,
            Places::Q5HighBits => (64 + 32 * half + 8 * eight + byte - 4) % 64,
            Places::Q6HighBits => 32 + 2 * byte - 4,
        } as u8;
        rest = more;
        at += 1;
    }
    places
}

/// Of the nibbles of the low 32 bits of 64.
const NIBBLES: [u64; 8] = [0x1c18_1410_0c08_0400; 8];

/// 64 nibbles in halves, each in the low bits of a byte under other bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn nibbles(base: &[u8; BASE_BYTES]) -> __m512i {
    /// Eight nibbles to the low half of each 64-bit lane.
    const EIGHTS: [u32; 16] = [0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7];
    let eights = _mm512_permutexvar_epi32(words(&EIGHTS), _mm512_castsi256_si512(load32(base)));
    _mm512_multishift_epi64_epi8(words(&NIBBLES), eights)
}

/// 64 codes of Q6 in halves, each in the low bits of a byte under other bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn q6_codes(base: &[u8; BASE_BYTES], high: &[u8; Q6_HIGH_BYTES]) -> __m512i {
    const BYTES: [u8; 64] = places(Places::NibblesAndHigh);
    const HIGH: [u8; 64] = places(Places::Q6HighBits);
    let (base, high) = (_mm512_castsi256_si512(load32(base)), _mm512_castsi128_si512(load16(high)));
    let bytes = _mm512_permutex2var_epi8(base, words(&BYTES), high);
    let nibbles = _mm512_multishift_epi64_epi8(words(&NIBBLES), bytes);
    select(0x0f, nibbles, _mm512_multishift_epi64_epi8(words(&HIGH), bytes))
}

/// The bits of `low` where the mask has ones, those of `high` elsewhere.
#[inline]
#[target_feature(enable = "avx512f")]
fn select(mask: i8, low: __m512i, high: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0b1100_1010>(_mm512_set1_epi8(mask), low, high)
}

/// 64 bytes in halves, as words that have them in their low and in their high halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn widen(low: __m512i, high: __m512i) -> [__m512i; 2] {
    [_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)]
}

/// Q4: 16 products a group.
///
/// # Safety
/// The processor has what the target features name, and what `W` asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) unsafe fn q4<W: Words16, const STREAM: bool>(
    row: &GroupedRow<'_>,
    out: &mut [u8],
    carry: &mut Carry,
) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    let all_codes = _mm512_castsi512_ps(words(&Q4_CODES));
    for ((bases, scales), out) in row.batches(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.as_chunks_mut::<OUT_BYTES>().0) {
            prefetch::<STREAM>(base);
            // Twice the same 16 words: an index's fifth bit and those above do not matter.
            let products = _mm512_mul_ps(all_codes, each_lane(scale));
            // SAFETY: the caller's promise.
            let table = unsafe { W::narrow_avx512(products, products) };
            let codes = nibbles(base);
            sink.put_each(out, widen(codes, codes).map(|index| _mm512_permutexvar_epi16(index, table)));
        }
    }
    sink.end(carry);
}

/// Q5: 32 products a group.
///
/// # Safety
/// The processor has what the target features name, and what `W` asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) unsafe fn q5<W: Words16, const STREAM: bool>(
    row: &GroupedRow<'_>,
    out: &mut [u8],
    carry: &mut Carry,
) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    const CODES: [[f32; 16]; 2] = [numbers(0), numbers(-16)];
    const PLACES: [u8; 64] = places(Places::Q5HighBits);
    let all_codes = CODES.map(|codes| _mm512_castsi512_ps(words(&codes)));
    for (((bases, highs), scales), out) in row.batches_with_high(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES))
    {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        let groups = bases.iter().zip(highs).zip(&values);
        for (((base, high), scale), out) in groups.zip(out.as_chunks_mut::<OUT_BYTES>().0) {
            prefetch::<STREAM>(base);
            prefetch::<STREAM>(high);
            let scale = each_lane(scale);
            let [low, top] = all_codes.map(|codes| _mm512_mul_ps(codes, scale));
            // SAFETY: the caller's promise.
            let table = unsafe { W::narrow_avx512(low, top) };
            let high = _mm512_set1_epi64(i64::from_le_bytes(*high));
            let high = _mm512_multishift_epi64_epi8(words(&PLACES), high);
            let codes = select(0x0f, nibbles(base), high);
            sink.put_each(out, widen(codes, codes).map(|index| _mm512_permutexvar_epi16(index, table)));
        }
    }
    sink.end(carry);
}

/// Q6: 33 magnitudes a group, the greatest of all groups first.
///
/// # Safety
/// The processor has what the target features name, and what `W` asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) unsafe fn q6<W: Words16, const STREAM: bool>(
    row: &GroupedRow<'_>,
    out: &mut [u8],
    carry: &mut Carry,
) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    const CODES: [[f32; 16]; 2] = [numbers(0), numbers(16)];
    // The words of codes -32 to -1 are those of 32 to 1 with the sign: from the low word that is 32's, and the words of
    // 0 to 31, which come 32 words on.
    const MIRROR: [u16; 32] = {
        let mut mirror = [0; 32];
        let (_, mut rest): (_, &mut [u16]) = mirror.split_at_mut(1);
        let mut next = 32 + 31;
        while let Some((place, more)) = rest.split_first_mut() {
            *place = next;
            next -= 1;
            rest = more;
        }
        mirror
    };
    let all_codes = CODES.map(|codes| _mm512_castsi512_ps(words(&codes)));
    for (((bases, highs), scales), out) in row.batches_with_high(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES))
    {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        let mut greatest = [0; BATCH];
        // SAFETY: the caller's promise.
        unsafe { greatest_words::<W>(&values, &mut greatest) };
        let groups = bases.iter().zip(highs).zip(values.iter().zip(&greatest));
        for (((base, high), (scale, greatest)), out) in groups.zip(out.as_chunks_mut::<OUT_BYTES>().0) {
            prefetch::<STREAM>(base);
            prefetch::<STREAM>(high);
            let scale = each_lane(scale);
            let [low, top] = all_codes.map(|codes| _mm512_mul_ps(codes, scale));
            // SAFETY: the caller's promise.
            let positive = unsafe { W::narrow_avx512(low, top) };
            let mirrored =
                _mm512_permutex2var_epi16(_mm512_set1_epi32(*greatest as i32), words(&MIRROR), positive);
            let negative = _mm512_or_si512(mirrored, _mm512_set1_epi16(i16::MIN));
            let codes = q6_codes(base, high);
            let look_up = |index| _mm512_permutex2var_epi16(positive, index, negative);
            sink.put_each(out, widen(codes, codes).map(look_up));
        }
    }
    sink.end(carry);
}

/// The words of 32 under each scale.
///
/// # Safety
/// What narrowing asks for.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn greatest_words<W: Words16>(scales: &[f32; BATCH], greatest: &mut [u32; BATCH]) {
    for (scales, greatest) in scales.as_chunks::<32>().0.iter().zip(greatest.as_chunks_mut::<32>().0) {
        let (low, high) = scales.split_at(16);
        let [low, high] =
            [low, high].map(|half| _mm512_mul_ps(_mm512_castsi512_ps(words(half)), _mm512_set1_ps(32.0)));
        // SAFETY: the caller's promise.
        let made = unsafe { W::narrow_avx512(low, high) };
        let halves = [_mm512_castsi512_si256(made), _mm512_extracti64x4_epi64::<1>(made)];
        store_each64(bytemuck::cast_slice_mut(greatest), halves.map(|half| _mm512_cvtepu16_epi32(half)));
    }
}

/// W8: the products themselves, as there are as many codes as products of a scale could be used.
///
/// # Safety
/// The processor has what the target features name, and what `W` asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) unsafe fn w8<W: Words16, const STREAM: bool>(
    row: &GroupedRow<'_>,
    out: &mut [u8],
    carry: &mut Carry,
) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    for ((bases, scales), out) in row.batches(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES / 2)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.as_chunks_mut().0) {
            prefetch::<STREAM>(base);
            let scale = each_lane(scale);
            let product = |codes: &[u8; 16]| {
                _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load16(codes))), scale)
            };
            if let [low, high] = base.as_chunks().0 {
                // SAFETY: the caller's promise.
                sink.put(out, unsafe { W::narrow_avx512(product(low), product(high)) });
            }
        }
    }
    sink.end(carry);
}

/// The BF16 words of E4M3FN magnitudes, 127 of which is a NaN. BF16 holds them all.
static MAGNITUDES: [[[u16; 16]; 2]; 4] = magnitudes();

const fn magnitudes() -> [[[u16; 16]; 2]; 4] {
    let mut words = [[[0; 16]; 2]; 4];
    let mut rest: &mut [u16] = words.as_flattened_mut().as_flattened_mut();
    let mut magnitude = 0;
    while let Some((word, more)) = rest.split_first_mut() {
        *word = (e4m3fn::compute_f32_bits(magnitude) >> 16) as u16;
        magnitude += 1;
        rest = more;
    }
    words
}

/// FP8 codes, 64 at a time, under a scale that makes no product subnormal or infinite.
///
/// The words of all magnitudes under the scale are made first, low bytes and high bytes apart; each product is
/// exact. A NaN, quiet and positive, passes through.
///
/// # Safety
/// The processor has what the target features name, and what `W` asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) unsafe fn fp8<W: Words16, const STREAM: bool>(
    codes: &[u8],
    scale: f32,
    out: &mut [u8],
    carry: &mut Carry,
) {
    let Some(mut sink) = Sink::<STREAM>::begin(carry, out) else { return };
    // Every second byte of two vectors.
    const EVEN: [u8; 64] = byte_numbers(0, 2);
    const ODD: [u8; 64] = byte_numbers(1, 2);
    let scale = _mm512_set1_ps(scale);
    let [a, b, c, d] = MAGNITUDES.each_ref().map(|pair| {
        let [low, high] = pair.each_ref().map(|half| {
            let wide = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(words32(half)));
            _mm512_mul_ps(_mm512_castsi512_ps(wide), scale)
        });
        // SAFETY: the caller's promise.
        unsafe { W::narrow_avx512(low, high) }
    });
    let split = |places: &[u8; 64]| {
        let places = load64(places);
        [_mm512_permutex2var_epi8(a, places, b), _mm512_permutex2var_epi8(c, places, d)]
    };
    let (low_table, high_table) = (split(&EVEN), split(&ODD));
    let order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    for (codes, out) in codes.as_chunks().0.iter().zip(out.as_chunks_mut::<OUT_BYTES>().0) {
        prefetch::<STREAM>(codes);
        let codes = _mm512_permutexvar_epi64(order, load64(codes));
        let look_up = |[first, second]: [__m512i; 2]| _mm512_permutex2var_epi8(first, codes, second);
        // The sign, but not that of a NaN: adding one carries out of 0xff.
        let next = _mm512_add_epi8(codes, _mm512_set1_epi8(1));
        let signs = _mm512_ternarylogic_epi32::<0b1000_0000>(codes, next, _mm512_set1_epi8(i8::MIN));
        let high = _mm512_or_si512(look_up(high_table), signs);
        sink.put_each(out, widen(look_up(low_table), high));
    }
    sink.end(carry);
}
