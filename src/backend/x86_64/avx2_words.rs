//! Decode kernels of 16-bit outputs for AVX2 and F16C: the words of all codes under a scale are made first, and codes
//! look them up.
//!
//! A look-up takes bytes out of sixteen, so of the grouped formats only Q4 is better off by one: each code's low byte
//! comes from one table, its high byte from another.

use core::arch::x86_64::*;

use super::avx2_decode::{BATCH, nibbles, scale_values};
use super::lanes::{Q4_CODES, Words16Avx2, load32, store_each32, words32};
use crate::backend::GroupedRow;
use crate::backend::run::Carry;

/// Bytes of a group's words.
const OUT_BYTES: usize = 128;

/// Q4: 16 products a group. Their exactness is that of [`super::avx2_decode`].
#[inline(never)] // nothing moves across the guard
#[target_feature(enable = "avx2,f16c")]
pub(super) fn q4<N: Words16Avx2>(row: &GroupedRow<'_>, out: &mut [u8], _: &mut Carry) {
    // Every second four bytes of the codes in the upper half: twice unpacked by halves, they are in order.
    let order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    let (first, second) = Q4_CODES.split_at(8);
    let (first, second) = (_mm256_castsi256_ps(words32(first)), _mm256_castsi256_ps(words32(second)));
    for ((bases, scales), out) in row.batches(BATCH).zip(out.chunks_mut(BATCH * OUT_BYTES)) {
        let mut values = [0.0; BATCH];
        scale_values(scales, 1.0, &mut values);
        for ((base, scale), out) in bases.iter().zip(&values).zip(out.as_chunks_mut::<OUT_BYTES>().0) {
            let scale = _mm256_set1_ps(*scale);
            // SAFETY: this function has the instruction sets that `narrow_avx2` asks for.
            let table = unsafe { N::narrow_avx2(_mm256_mul_ps(first, scale), _mm256_mul_ps(second, scale)) };
            // Low bytes of eight words and their high bytes, then those of the other eight.
            let low = _mm256_and_si256(table, _mm256_set1_epi16(0x00ff));
            let bytes = _mm256_packus_epi16(low, _mm256_srli_epi16::<8>(table));
            let low_bytes = _mm256_permute4x64_epi64::<0b10_00_10_00>(bytes);
            let high_bytes = _mm256_permute4x64_epi64::<0b11_01_11_01>(bytes);
            let [[a, b], [c, d]] = nibbles(_mm256_permutevar8x32_epi32(load32(base), order)).map(|codes| {
                let low = _mm256_shuffle_epi8(low_bytes, codes);
                let high = _mm256_shuffle_epi8(high_bytes, codes);
                [_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)]
            });
            store_each32(out, [a, b, c, d]);
        }
    }
}
