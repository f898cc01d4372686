//! Decode kernels of NVFP4 for AVX-512 F, BW, DQ, VL and VBMI: words of tables are moved, no number is made.

use core::arch::x86_64::*;

use super::lanes::{each_scale, load32, prefetch, table, words, words32};
use super::sink::Sink;
use crate::backend::nvfp4_tables::Tables;
use crate::backend::run::Carry;

/// NVFP4 to 32-bit words, 64 codes under four scales at a time: words of `tables` are moved, no number is
/// made.
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
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.as_chunks().0);
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(256)) {
        prefetch::<STREAM>(codes);
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
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.as_chunks().0);
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(128)) {
        prefetch::<STREAM>(codes);
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
    let quads = codes.as_chunks::<32>().0.iter().zip(scales.as_chunks().0);
    for ((codes, scales), out) in quads.zip(out.chunks_exact_mut(512)) {
        prefetch::<STREAM>(codes);
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
pub(super) const fn wide_places<const LANES: usize>(bytes: usize) -> [u8; LANES] {
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
