//! Decode kernels for AVX2, FMA and F16C.
//!
//! Each writes whole groups over all of `out`. Codes are sign-extended to 32-bit lanes with some zeros below,
//! converted and multiplied. Every conversion and product is exact and normal (or a zero of the product's
//! sign), so neither rounding mode, flush-to-zero nor denormals-are-zero can change a result; where words of 16 bits
//! are rounded, [`Lanes`] says how.

use core::arch::x86_64::*;

use super::lanes::{
    StoreAvx2, each_scale, load16, load32, store_each32, store16, store32, table, word_bytes, words32,
};
use crate::backend::nvfp4_tables::Tables;
use crate::backend::run::Carry;
use crate::backend::{GroupedRow, Narrow, ToF32};
use crate::format::e4m3fn;
use crate::layout::row_split::{BASE_BYTES, Q5_HIGH_BYTES, Q6_HIGH_BYTES, SCALE_BYTES};

/// Groups whose scales are widened together, well before they are used.
pub(super) const BATCH: usize = 64;

/// Up to [`BATCH`] binary16 scales as binary32, over `units`, a power of two.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn scale_values(scales: &[[u8; SCALE_BYTES]], units: f32, values: &mut [f32; BATCH]) {
    for (scales, values) in scales.chunks(8).zip(values.as_chunks_mut::<8>().0) {
        let halves = match scales.as_flattened().first_chunk() {
            Some(full) => load16(full),
            None => {
                let mut padded = [[0; SCALE_BYTES]; 8];
                for (padded, scale) in padded.iter_mut().zip(scales) {
                    *padded = *scale;
                }
                load16(&bytemuck::cast(padded))
            }
        };
        // The conversion ignores denormals-are-zero; the least product is 2^-24 * 2^-28.
        let wide = _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(1.0 / units));
        store_each32(bytemuck::cast_slice_mut(values), [_mm256_castps_si256(wide)]);
    }
}

/// Multiplies signed bytes by a scale over [`Lanes::CODE_UNITS_AVX2`], 16 at a time.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn store_products<N: Narrow>(codes: &[u8], scale: &f32, out: &mut [u8]) {
    let scale = _mm256_set1_ps(*scale);
    let sixteens = codes.as_chunks().0.iter().zip(out.chunks_exact_mut(16 * word_bytes::<N>()));
    for (codes, out) in sixteens {
        // SAFETY: this function has the instruction sets that are asked for.
        unsafe { N::store_products_avx2(codes, scale, out) };
    }
}

/// The 64 nibbles of a group, one a byte: lanes 0 to 15 and 32 to 47, then 16 to 31 and 48 to 63.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn nibbles(base: __m256i) -> [__m256i; 2] {
    let mask = _mm256_set1_epi8(0x0f);
    let low = _mm256_and_si256(base, mask);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(base), mask);
    [_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)]
}

/// Puts what [`nibbles`] takes apart in order again.
#[inline]
#[target_feature(enable = "avx2")]
fn in_order([first, second]: [__m256i; 2]) -> [u8; 64] {
    let mut codes = [0; 64];
    let parts = [
        _mm256_castsi256_si128(first),
        _mm256_castsi256_si128(second),
        _mm256_extracti128_si256::<1>(first),
        _mm256_extracti128_si256::<1>(second),
    ];
    for (codes, part) in codes.as_chunks_mut().0.iter_mut().zip(parts) {
        store16(codes, part);
    }
    codes
}

/// Q4 to binary32; [`super::avx2_words`] has the other outputs.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q4(row: &GroupedRow<'_>, out: &mut [u8], _: &mut Carry) {
    const OUT_BYTES: usize = 256;
    let to_top = _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0);
    let top = _mm256_set1_epi32(0xf000_0000u32 as i32);
    for ((bases, scales), out) in row.batches(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, (1u32 << 28) as f32, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.as_chunks_mut::<OUT_BYTES>().0) {
            let scale = _mm256_set1_ps(*scale);
            let product = |codes: &[u8; 4]| {
                let codes = _mm256_sllv_epi32(_mm256_set1_epi32(i32::from_le_bytes(*codes)), to_top);
                _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_and_si256(codes, top)), scale)
            };
            for (codes, out) in base.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
                store32(out, _mm256_castps_si256(product(codes)));
            }
        }
    }
}

/// Where a Q5 lane's high bit is, in the order of [`nibbles`]: which byte, and the bit.
pub(super) struct Q5Places {
    bytes: [__m256i; 2],
    bits: __m256i,
}

impl Q5Places {
    /// For nibbles whose first eights have these high bytes, and the second ones those `step` further on.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn new(first: [i64; 4], step: i8) -> Self {
        let [a, b, c, d] = first.map(|byte| byte * 0x0101_0101_0101_0101);
        let first = _mm256_setr_epi64x(a, b, c, d);
        let bits = _mm256_set1_epi64x(0x8040_2010_0804_0201u64 as i64);
        Self { bytes: [first, _mm256_add_epi8(first, _mm256_set1_epi8(step))], bits }
    }

    /// All bits of a byte where the lane's high bit is set.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn set(&self, high: &[u8; Q5_HIGH_BYTES]) -> [__m256i; 2] {
        let high = _mm256_set1_epi64x(i64::from_le_bytes(*high));
        self.bytes.map(|bytes| {
            let own = _mm256_and_si256(_mm256_shuffle_epi8(high, bytes), self.bits);
            _mm256_cmpeq_epi8(own, self.bits)
        })
    }

    /// The signed codes of a group, one a byte.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn codes(&self, base: &[u8; BASE_BYTES], high: &[u8; Q5_HIGH_BYTES]) -> [__m256i; 2] {
        let ([first, second], [first_set, second_set]) = (nibbles(load32(base)), self.set(high));
        // Two's complement: 16 less where the bit is set.
        let code = |nibbles, set| _mm256_or_si256(nibbles, _mm256_and_si256(set, _mm256_set1_epi8(-16)));
        [code(first, first_set), code(second, second_set)]
    }
}

/// Q5 to binary32; [`super::avx2_words`] has the other outputs.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q5(row: &GroupedRow<'_>, out: &mut [u8], _: &mut Carry) {
    const OUT_BYTES: usize = 256;
    let places = Q5Places::new([0, 1, 4, 5], 2);
    for (((bases, highs), scales), out) in row.batches_with_high(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES))
    {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        let groups = bases.iter().zip(highs).zip(&values);
        for (((base, high), scale), out) in groups.zip(out.as_chunks_mut::<OUT_BYTES>().0) {
            store_products::<ToF32>(&in_order(places.codes(base, high)), scale, out);
        }
    }
}

/// Where a Q6 lane's high bits are: four lanes share a byte.
struct Q6Places {
    /// The byte of every 32-bit lane, zero-extended, in the order of [`nibbles`].
    bytes: [__m256i; 2],
    /// Bits 1 and 0, or 3 and 2, of a nibble as the high four bits of a code, sign included.
    signed: __m256i,
}

impl Q6Places {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new() -> Self {
        const ZERO: u8 = 0x80;
        let byte = |byte: u8| u32::from_le_bytes([byte, ZERO, ZERO, ZERO]);
        let [first, second] =
            [0, 4].map(|at| [at, at + 1, at + 2, at + 3, at + 8, at + 9, at + 10, at + 11].map(byte));
        let signed = _mm_setr_epi8(0, 16, -32, -16, 16, 0, 0, 0, -32, 0, 0, 0, -16, 0, 0, 0);
        Self { bytes: [words32(&first), words32(&second)], signed: _mm256_broadcastsi128_si256(signed) }
    }

    /// The signed codes of a group, one a byte.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn codes(&self, base: &[u8; BASE_BYTES], high: &[u8; Q6_HIGH_BYTES]) -> [__m256i; 2] {
        let high = _mm256_broadcastsi128_si256(load16(high));
        let code = |nibbles, bytes| {
            // The low nibble to bytes 0 and 1, the high nibble to bytes 2 and 3; then each lane's two bits.
            let byte = _mm256_shuffle_epi8(high, bytes);
            let halves = _mm256_or_si256(byte, _mm256_slli_epi32::<12>(byte));
            let each = _mm256_or_si256(halves, _mm256_slli_epi32::<8>(halves));
            let own = _mm256_and_si256(each, _mm256_set1_epi16(0x0c03));
            _mm256_or_si256(nibbles, _mm256_shuffle_epi8(self.signed, own))
        };
        let ([first, second], [first_bytes, second_bytes]) = (nibbles(load32(base)), self.bytes);
        [code(first, first_bytes), code(second, second_bytes)]
    }
}

#[inline(never)] // nothing moves across the guard
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn q6<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8], _: &mut Carry) {
    let places = Q6Places::new();
    let out_bytes = 64 * word_bytes::<N>();
    for (((bases, highs), scales), out) in row.batches_with_high(BATCH).zip(out.chunks_mut(BATCH * out_bytes))
    {
        let mut values = [0.0; BATCH];
        scale_values(scales, N::CODE_UNITS_AVX2, &mut values);
        let groups = bases.iter().zip(highs).zip(&values);
        for (((base, high), scale), out) in groups.zip(out.chunks_exact_mut(out_bytes)) {
            store_products::<N>(&in_order(places.codes(base, high)), scale, out);
        }
    }
}

#[inline(never)] // nothing moves across the guard
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn w8<N: Narrow>(row: &GroupedRow<'_>, out: &mut [u8], _: &mut Carry) {
    let out_bytes = 32 * word_bytes::<N>();
    for ((bases, scales), out) in row.batches(BATCH).zip(out.chunks_mut(BATCH * out_bytes)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, N::CODE_UNITS_AVX2, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.chunks_exact_mut(out_bytes)) {
            store_products::<N>(base, scale, out);
        }
    }
}

#[target_feature(enable = "avx2,f16c")]
pub(super) fn unpack_q4(row: &GroupedRow<'_>, out: &mut [u8], _: &mut Carry) {
    let sign = _mm256_set1_epi8(8);
    let code = |nibbles| _mm256_sub_epi8(_mm256_xor_si256(nibbles, sign), sign);
    for (base, out) in row.base.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        *out = in_order(nibbles(load32(base)).map(code));
    }
}

#[target_feature(enable = "avx2,f16c")]
pub(super) fn unpack_q5(row: &GroupedRow<'_>, out: &mut [u8], _: &mut Carry) {
    let places = Q5Places::new([0, 1, 4, 5], 2);
    let groups = row.base.as_chunks().0.iter().zip(row.high.as_chunks().0);
    for ((base, high), out) in groups.zip(out.as_chunks_mut().0) {
        *out = in_order(places.codes(base, high));
    }
}

#[target_feature(enable = "avx2,f16c")]
pub(super) fn unpack_q6(row: &GroupedRow<'_>, out: &mut [u8], _: &mut Carry) {
    let places = Q6Places::new();
    let groups = row.base.as_chunks().0.iter().zip(row.high.as_chunks().0);
    for ((base, high), out) in groups.zip(out.as_chunks_mut().0) {
        *out = in_order(places.codes(base, high));
    }
}

/// FP8 codes, 32 at a time, under a scale that makes no product subnormal or infinite.
///
/// Bytes are looked up and moved to make the codes' own binary32 words, none of which is subnormal; the product
/// is exact. A NaN, quiet and positive, passes through it.
#[inline(never)] // nothing moves across the guard
#[target_feature(enable = "avx2,f16c")]
pub(super) fn fp8<N: Narrow + StoreAvx2>(codes: &[u8], scale: f32, out: &mut [u8], _: &mut Carry) {
    // The upper half of the binary32 word of a magnitude is `magnitude << 4` with the exponent moved by 120,
    // except below 8, the subnormals, and for the NaN.
    const SUBNORMAL_HIGH: [u8; 16] = fp8_subnormals(24);
    const SUBNORMAL_LOW: [u8; 16] = fp8_subnormals(16);
    let (subnormal_high, subnormal_low) = (
        _mm256_broadcastsi128_si256(load16(&SUBNORMAL_HIGH)),
        _mm256_broadcastsi128_si256(load16(&SUBNORMAL_LOW)),
    );
    let bytes = |byte: u8| _mm256_set1_epi8(byte as i8);
    // Unpacking works on 128-bit halves; so every second four codes go to the upper half first.
    let order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    let zero = _mm256_setzero_si256();
    let scale = _mm256_set1_ps(scale);
    let out_bytes = 32 * word_bytes::<N>();
    for (codes, out) in codes.as_chunks().0.iter().zip(out.chunks_exact_mut(out_bytes)) {
        let codes = _mm256_permutevar8x32_epi32(load32(codes), order);
        let magnitude = _mm256_and_si256(codes, bytes(0x7f));
        let is_nan = _mm256_cmpeq_epi8(magnitude, bytes(0x7f));
        let is_subnormal = _mm256_cmpgt_epi8(bytes(8), magnitude);
        let low = _mm256_and_si256(_mm256_slli_epi16::<4>(magnitude), bytes(0xf0));
        let low = _mm256_blendv_epi8(low, _mm256_shuffle_epi8(subnormal_low, magnitude), is_subnormal);
        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(magnitude), bytes(0x0f));
        let high = _mm256_add_epi8(high, bytes(120 >> 1));
        let high = _mm256_blendv_epi8(high, _mm256_shuffle_epi8(subnormal_high, magnitude), is_subnormal);
        let mut high = _mm256_or_si256(high, _mm256_and_si256(codes, bytes(0x80)));
        let mut low = low;
        if _mm256_movemask_epi8(is_nan) != 0 {
            high = _mm256_blendv_epi8(high, bytes((e4m3fn::NAN_F32_BITS >> 24) as u8), is_nan);
            low = _mm256_blendv_epi8(low, bytes((e4m3fn::NAN_F32_BITS >> 16) as u8), is_nan);
        }
        let product = |word| _mm256_mul_ps(_mm256_castsi256_ps(word), scale);
        let words = [_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)];
        for (words, out) in words.into_iter().zip(out.chunks_exact_mut(out_bytes / 2)) {
            let (low, high) = (_mm256_unpacklo_epi16(zero, words), _mm256_unpackhi_epi16(zero, words));
            // SAFETY: this function has the instruction sets that `store_avx2` asks for.
            unsafe { N::store_avx2(product(low), product(high), out) };
        }
    }
}

const fn fp8_subnormals(place: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    let (mut rest, _): (&mut [u8], _) = bytes.split_at_mut(8);
    let mut magnitude = 0;
    while let Some((byte, more)) = rest.split_first_mut() {
        *byte = (e4m3fn::compute_f32_bits(magnitude) >> place) as u8;
        magnitude += 1;
        rest = more;
    }
    bytes
}

/// NVFP4 to 32-bit words, 64 codes under four scales at a time: words of `tables` are moved, no number is made.
#[target_feature(enable = "avx2,f16c")]
pub(super) fn nvfp4_words32(
    codes: &[u8],
    scales: &[u8],
    tables: &Tables<u32>,
    out: &mut [u8],
    _: &mut Carry,
) {
    let to_top = _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0);
    let sign = _mm256_set1_epi32(i32::MIN);
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.as_chunks().0);
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(256)) {
        let scales = each_scale(*scales);
        for ((codes, scale), out) in codes.as_chunks::<8>().0.iter().zip(scales).zip(out.chunks_exact_mut(64))
        {
            // The words of codes 8 to 15 are those of 0 to 7 with the sign bit.
            let positive = words32(table(tables, scale));
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

/// NVFP4 to 64-bit words; see [`nvfp4_words32`].
#[target_feature(enable = "avx2,f16c")]
pub(super) fn nvfp4_words64(
    codes: &[u8],
    scales: &[u8],
    tables: &Tables<u64>,
    out: &mut [u8],
    _: &mut Carry,
) {
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.as_chunks().0);
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(512)) {
        let scales = each_scale(*scales);
        let groups = codes.as_chunks::<8>().0.iter().zip(scales).zip(out.chunks_exact_mut(128));
        for ((codes, scale), out) in groups {
            let table = table(tables, scale);
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
#[expect(clippy::indexing_slicing, reason = "a masked index into 16 entries")]
fn entry(table: &[u64; 16], code: u8) -> u64 {
    table[usize::from(code & 0xf)]
}

/// BF16 words to binary32 words, 32 at a time.
#[target_feature(enable = "avx2,f16c")]
pub(super) fn widen_bf16(source: &[u8], out: &mut [u8], _: &mut Carry) {
    for (source, out) in source.as_chunks::<32>().0.iter().zip(out.chunks_exact_mut(64)) {
        let widen = |half: &[u8; 16]| _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(load16(half)));
        if let [low, high] = source.as_chunks().0 {
            store_each32(out, [widen(low), widen(high)]);
        }
    }
}
