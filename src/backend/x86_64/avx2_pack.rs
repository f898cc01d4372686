//! Packing of grouped codes with AVX2: 512 codes at a time, checked on the way.

use core::arch::x86_64::*;

use super::avx2_quantize::{in_order, load, pack_unit, store};
use super::output::{BATCH, Output, batch_bytes};
use super::quantize::code_min;

/// As with AVX-512.
///
/// # Safety
/// The processor has AVX2. `codes` points to `batches` times 512 readable bytes, `scales` to 8 scale words a batch,
/// or 16 of W8. The batch of `output` is that of the format with `BITS` bits.
#[inline(never)]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn pack<const BITS: u32>(
    codes: *const u8,
    scales: *const u8,
    batches: usize,
    output: &mut Output<'_>,
) -> usize {
    const GREATEST: i16 = 0x7bff;
    let rooms = output.rooms();
    let batches = batches.min(rooms.batches);
    let bytes = batch_bytes(BITS);
    let mut room = rooms.first;
    let streaming = output.streaming() && room.base.addr().is_multiple_of(16);
    let (words, codes_a_word) = if BITS == 8 { (16, 32) } else { (8, 64) };
    let mut done = 0;
    while done < batches {
        let mut least = _mm256_setzero_si256();
        let mut greatest = _mm256_setzero_si256();
        let mut good = true;
        if streaming {
            room.prefetch_narrow(bytes, matches!(BITS, 5 | 6));
        }
        // SAFETY: batch `done` is readable, and the room is one of the output's; its base is a multiple of 16 bytes
        // where it must be.
        unsafe {
            let batch = codes.add(done * BATCH);
            for eight in 0..words / 8 {
                let scales = _mm_loadu_si128(scales.add(done * bytes.scales + 16 * eight).cast());
                _mm_storeu_si128(room.scales.add(16 * eight).cast(), scales);
                // A sign, which makes a negative number, is as illegal as what is above the greatest.
                let illegal = _mm_or_si128(_mm_cmpgt_epi16(scales, _mm_set1_epi16(GREATEST)), scales);
                good &= _mm_movemask_epi8(_mm_and_si128(illegal, _mm_set1_epi16(i16::MIN))) == 0;
                let zero = _mm_movemask_epi8(_mm_cmpeq_epi16(scales, _mm_setzero_si128()));
                if zero != 0 {
                    good &= zeros_are_zeros(batch.add(8 * eight * codes_a_word), zero, codes_a_word);
                }
            }
            for pair in 0..BATCH / 128 {
                let mut quads = [_mm256_setzero_si256(); 2];
                for (unit, quads) in (2 * pair..).zip(&mut quads) {
                    let (a, b) = (load(batch.add(64 * unit)), load(batch.add(64 * unit + 32)));
                    least = _mm256_min_epi8(least, _mm256_min_epi8(a, b));
                    greatest = _mm256_max_epi8(greatest, _mm256_max_epi8(a, b));
                    if BITS == 8 {
                        store(room.base.add(64 * unit), streaming, a);
                        store(room.base.add(64 * unit + 32), streaming, b);
                    } else {
                        *quads = pack_unit::<BITS>([a, b], unit, room, streaming);
                    }
                }
                if BITS == 6 {
                    let [first, second] = quads;
                    let high = in_order(_mm256_packus_epi16(first, second));
                    _mm256_storeu_si256(room.high.add(32 * pair).cast(), high);
                }
            }
        }
        let low = _mm256_cmpgt_epi8(_mm256_set1_epi8(code_min(BITS)), least);
        let high = _mm256_cmpgt_epi8(greatest, _mm256_set1_epi8(-1 - code_min(BITS)));
        let outside = if BITS == 8 { low } else { _mm256_or_si256(low, high) };
        if !good || _mm256_movemask_epi8(outside) != 0 {
            break;
        }
        room = room.next(bytes);
        done += 1;
    }
    output.commit(done);
    done
}

/// Whether all codes of the groups under zero scales, two bits each, are zero.
///
/// # Safety
/// The eight groups of `bytes` codes, a multiple of 32, are readable.
#[cold]
#[target_feature(enable = "avx2")]
unsafe fn zeros_are_zeros(groups: *const u8, zero: i32, bytes: usize) -> bool {
    let mut nonzero = _mm256_setzero_si256();
    for group in (0..8).filter(|group| zero >> (2 * group) & 1 != 0) {
        for at in (0..bytes).step_by(32) {
            // SAFETY: the vector lies in the group.
            nonzero = _mm256_or_si256(nonzero, unsafe { load(groups.add(group * bytes + at)) });
        }
    }
    _mm256_testz_si256(nonzero, nonzero) != 0
}
