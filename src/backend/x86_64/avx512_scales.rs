//! The scales of the quantizer with AVX-512: a batch's maxima, its scale words and what weights are multiplied by.
//!
//! Every float operation here runs under [`super::mxcsr::DefaultMode`]; see [`super::avx512_quantize`].

use core::arch::x86_64::*;

use super::quantize::{F16, F32, element_bytes};

/// Weights of a unit.
pub(super) const UNIT: usize = 64;

pub(super) const MAGNITUDE: i32 = 0x7fff_ffff;

/// `1 / scale` of the groups of a batch, and the scale words; eight groups fill the lower halves.
#[derive(Clone, Copy)]
pub(super) struct Scales {
    pub inverse: __m512,
    pub words: __m256i,
    pub kind: Kind,
}

/// What the scales of a batch are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Zero or normal.
    Plain,
    /// Some are subnormal.
    Subnormal,
    /// Some are infinite or NaN.
    Fault,
}

/// # Safety
/// The batch is readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) unsafe fn batch_scales<const BITS: u32, const SOURCE: u8>(batch: *const u8) -> Scales {
    // SAFETY: the caller's promise.
    let pairs = unsafe {
        [
            pair_maxima::<BITS, SOURCE>(batch, 0),
            pair_maxima::<BITS, SOURCE>(batch, 1),
            pair_maxima::<BITS, SOURCE>(batch, 2),
            pair_maxima::<BITS, SOURCE>(batch, 3),
        ]
    };
    find_scales::<BITS, SOURCE>(pairs)
}

/// # Safety
/// 64 bytes are readable.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn load(from: *const u8) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe { _mm512_loadu_si512(from.cast()) }
}

/// The maxima of the groups of units `2 * pair` and `2 * pair + 1`, not yet of all lanes: of two groups 8 lanes
/// are left, of W8's four groups 4.
///
/// # Safety
/// The batch is readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) unsafe fn pair_maxima<const BITS: u32, const SOURCE: u8>(
    batch: *const u8,
    pair: usize,
) -> __m512i {
    let unit_bytes = UNIT * element_bytes(SOURCE);
    if BITS != 8 && SOURCE != F32 {
        // SAFETY: both units lie in the batch.
        return unsafe {
            let unit = batch.add(2 * pair * unit_bytes);
            fold_halves(group_maxima(unit), group_maxima(unit.add(unit_bytes)))
        };
    }
    // SAFETY: both units lie in the batch.
    let (first, second) = unsafe {
        let unit = batch.add(2 * pair * unit_bytes);
        (unit_maxima::<SOURCE>(unit), unit_maxima::<SOURCE>(unit.add(unit_bytes)))
    };
    if BITS == 8 {
        fold_halves_again(fold_halves(first[0], first[1]), fold_halves(second[0], second[1]))
    } else {
        fold_halves(_mm512_max_epu32(first[0], first[1]), _mm512_max_epu32(second[0], second[1]))
    }
}

/// The maxima of 32 weights and of the next 32, in 16 lanes each, without f32 NaNs that are quiet.
///
/// # Safety
/// The unit is readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
unsafe fn unit_maxima<const SOURCE: u8>(unit: *const u8) -> [__m512i; 2] {
    if SOURCE == F32 {
        // The greater magnitude, with a plus sign.
        const MAX_ABS: i32 = 0b10_11;
        // SAFETY: a unit is 256 bytes.
        let [a, b, c, d] =
            unsafe { [load(unit), load(unit.add(64)), load(unit.add(128)), load(unit.add(192))] }
                .map(|x| _mm512_castsi512_ps(x));
        [_mm512_range_ps::<MAX_ABS>(a, b), _mm512_range_ps::<MAX_ABS>(c, d)].map(|x| _mm512_castps_si512(x))
    } else {
        let mask = _mm512_set1_epi32(MAGNITUDE & !0xffff);
        // SAFETY: a unit is 128 bytes.
        unsafe { [load(unit), load(unit.add(64))] }.map(|x| {
            let high = _mm512_and_si512(x, mask);
            let low = _mm512_and_si512(_mm512_slli_epi32::<16>(x), mask);
            _mm512_max_epu32(high, low)
        })
    }
}

/// The maxima of a group of 64 weights of 16 bits, in 16 lanes.
///
/// # Safety
/// The group is readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn group_maxima(group: *const u8) -> __m512i {
    let mask = _mm512_set1_epi16(0x7fff);
    // SAFETY: a group is 128 bytes.
    let [a, b] = unsafe { [load(group), load(group.add(64))] }.map(|x| _mm512_and_si512(x, mask));
    let both = _mm512_max_epu16(a, b);
    let high = _mm512_and_si512(both, _mm512_set1_epi32(!0xffff));
    _mm512_max_epu32(high, _mm512_slli_epi32::<16>(both))
}

/// Two vectors to one: half as many lanes of each.
#[inline]
#[target_feature(enable = "avx512f")]
fn fold_halves(x: __m512i, y: __m512i) -> __m512i {
    let low = _mm512_shuffle_i32x4::<0x44>(x, y);
    let high = _mm512_shuffle_i32x4::<0xee>(x, y);
    _mm512_max_epu32(low, high)
}

/// Two such pairs to one vector of four blocks.
#[inline]
#[target_feature(enable = "avx512f")]
fn fold_halves_again(x: __m512i, y: __m512i) -> __m512i {
    let even = _mm512_shuffle_i32x4::<0x88>(x, y);
    let odd = _mm512_shuffle_i32x4::<0xdd>(x, y);
    _mm512_max_epu32(even, odd)
}

/// Two vectors of blocks to one, half as many lanes of each in every block.
#[inline]
#[target_feature(enable = "avx512f")]
fn fold_in_blocks(x: __m512i, y: __m512i) -> __m512i {
    let (x, y) = (_mm512_castsi512_ps(x), _mm512_castsi512_ps(y));
    let even = _mm512_castps_si512(_mm512_shuffle_ps::<0x88>(x, y));
    let odd = _mm512_castps_si512(_mm512_shuffle_ps::<0xdd>(x, y));
    _mm512_max_epu32(even, odd)
}

/// The scales of a batch.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn find_scales<const BITS: u32, const SOURCE: u8>(pairs: [__m512i; 4]) -> Scales {
    const INFINITY: i16 = 0x7c00;
    const MIN_NORMAL: i16 = 0x0400;
    let code_max = ((1 << (BITS - 1)) - 1) as f32;
    let [p0, p1, p2, p3] = pairs;
    if BITS == 8 {
        let blocks = fold_in_blocks(fold_in_blocks(p0, p1), fold_in_blocks(p2, p3));
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        let maxima = _mm512_permutexvar_epi32(order, blocks);
        let maxima = if SOURCE == F16 {
            _mm512_castps_si512(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(maxima))))
        } else {
            maxima
        };
        let nonzero = _mm512_test_epi32_mask(maxima, maxima);
        let raw = _mm512_div_ps(_mm512_castsi512_ps(maxima), _mm512_set1_ps(code_max));
        let words = _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(raw);
        let words = _mm256_maskz_max_epu16(nonzero, words, _mm256_set1_epi16(1));
        let scale = _mm512_cvtph_ps(words);
        let inverse = _mm512_maskz_div_ps(nonzero, _mm512_set1_ps(1.0), scale);
        // Zero is not below the least normal but one less than 2^16 here.
        let before = _mm256_sub_epi16(words, _mm256_set1_epi16(1));
        let fault = _mm256_cmpge_epu16_mask(words, _mm256_set1_epi16(INFINITY)) != 0;
        let subnormal = _mm256_cmplt_epu16_mask(before, _mm256_set1_epi16(MIN_NORMAL - 1)) != 0;
        Scales { inverse, words, kind: kind(fault, subnormal) }
    } else {
        let blocks = fold_in_blocks(fold_halves_again(p0, p1), fold_halves_again(p2, p3));
        let blocks = _mm512_max_epu32(blocks, _mm512_shuffle_epi32::<0xb1>(blocks));
        let order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
        let maxima = _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, blocks));
        let maxima = if SOURCE == F16 {
            _mm256_castps_si256(_mm256_cvtph_ps(_mm256_cvtepi32_epi16(_mm256_srli_epi32::<16>(maxima))))
        } else {
            maxima
        };
        let nonzero = _mm256_test_epi32_mask(maxima, maxima);
        let raw = _mm256_div_ps(_mm256_castsi256_ps(maxima), _mm256_set1_ps(code_max));
        let words = _mm256_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(raw);
        let words = _mm_maskz_max_epu16(nonzero, words, _mm_set1_epi16(1));
        let scale = _mm256_cvtph_ps(words);
        let inverse = _mm256_maskz_div_ps(nonzero, _mm256_set1_ps(1.0), scale);
        let before = _mm_sub_epi16(words, _mm_set1_epi16(1));
        let fault = _mm_cmpge_epu16_mask(words, _mm_set1_epi16(INFINITY)) != 0;
        let subnormal = _mm_cmplt_epu16_mask(before, _mm_set1_epi16(MIN_NORMAL - 1)) != 0;
        Scales {
            inverse: _mm512_zextps256_ps512(inverse),
            words: _mm256_zextsi128_si256(words),
            kind: kind(fault, subnormal),
        }
    }
}

const fn kind(fault: bool, subnormal: bool) -> Kind {
    match (fault, subnormal) {
        (true, _) => Kind::Fault,
        (_, true) => Kind::Subnormal,
        _ => Kind::Plain,
    }
}
