//! Packing of grouped codes with AVX-512: 512 codes at a time, checked on the way.

use core::arch::x86_64::*;

use super::avx512_quantize::{Stream, four_high, store};
use super::output::{BATCH, Output, batch_bytes};
use super::quantize::code_min;

/// Packs up to `batches` batches of 512 codes and returns how many it has done: it stops before one with an illegal
/// scale or code, or a code other than zero under a zero scale, and when there is no room for one more.
///
/// # Safety
/// The processor has AVX-512 F, BW, DQ, VL and VBMI. `codes` points to `batches` times 512 readable bytes, `scales`
/// to 8 scale words a batch, or 16 of W8. The batch of `output` is that of the format with `BITS` bits.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) unsafe fn pack<const BITS: u32>(
    codes: *const u8,
    scales: *const u8,
    batches: usize,
    output: &mut Output<'_>,
) -> usize {
    const INFINITY: i16 = 0x7c00;
    let rooms = output.rooms();
    let batches = batches.min(rooms.batches);
    let bytes = batch_bytes(BITS);
    let mut room = rooms.first;
    let mut stream = Stream::NONE;
    for done in 0..batches {
        // SAFETY: batch `done` is readable, and the room is one of the output's.
        let good = unsafe {
            let batch = codes.add(done * BATCH);
            let words = scales.add(done * bytes.scales);
            let words = if BITS == 8 {
                _mm256_loadu_si256(words.cast())
            } else {
                _mm256_zextsi128_si256(_mm_loadu_si128(words.cast()))
            };
            let finite = _mm256_cmpge_epu16_mask(words, _mm256_set1_epi16(INFINITY)) == 0;
            let zero = _mm256_cmpeq_epi16_mask(words, _mm256_setzero_si256());
            let zero = if BITS == 8 { zero } else { zero & 0xff };
            if BITS == 8 {
                _mm256_storeu_si256(room.scales.cast(), words);
            } else {
                _mm_storeu_si128(room.scales.cast(), _mm256_castsi256_si128(words));
            }
            let mut range = Range { least: _mm512_setzero_si512(), greatest: _mm512_setzero_si512() };
            let p0 = pack_pair::<BITS>(batch, 0, room.base, room.high, &mut range, &mut stream);
            let p1 = pack_pair::<BITS>(batch, 1, room.base, room.high, &mut range, &mut stream);
            let p2 = pack_pair::<BITS>(batch, 2, room.base, room.high, &mut range, &mut stream);
            let p3 = pack_pair::<BITS>(batch, 3, room.base, room.high, &mut range, &mut stream);
            if BITS == 6 {
                store(room.high, &mut stream.high, order_quads(p0, p1));
                store(room.high.add(64), &mut stream.high, order_quads(p2, p3));
            }
            finite && range.is_legal::<BITS>() && (zero == 0 || zeros_are_zeros::<BITS>(batch, zero))
        };
        if !good {
            return finish(done, &stream, output);
        }
        room = room.next(bytes);
        if output.streaming() && done + 1 < batches {
            room.prefetch_narrow(bytes, BITS == 5);
            if done == 0 {
                // SAFETY: the first batch has filled more than 64 bytes before the room.
                unsafe { stream.begin::<BITS>(room) };
            }
        }
    }
    finish(batches, &stream, output)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn finish(done: usize, stream: &Stream, output: &mut Output<'_>) -> usize {
    // SAFETY: AVX-512 is there.
    unsafe { stream.finish() };
    output.commit(done);
    done
}

/// The least and the greatest codes of each lane.
struct Range {
    least: __m512i,
    greatest: __m512i,
}

impl Range {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn is_legal<const BITS: u32>(&self) -> bool {
        let low = _mm512_cmplt_epi8_mask(self.least, _mm512_set1_epi8(code_min(BITS)));
        // -1 - (-127) is 126, but 127 is the greatest of W8, and there is no greater one.
        let high = _mm512_cmpgt_epi8_mask(self.greatest, _mm512_set1_epi8(-1 - code_min(BITS)));
        low == 0 && (BITS == 8 || high == 0)
    }
}

/// Packs units `2 * pair` and `2 * pair + 1`, 64 codes each, and returns the high bytes of Q6 as words.
///
/// # Safety
/// The batch is readable; `base` and `high` are room for one of the format. So is what the stream comes to.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn pack_pair<const BITS: u32>(
    batch: *const u8,
    pair: usize,
    base: *mut u8,
    high: *mut u8,
    range: &mut Range,
    stream: &mut Stream,
) -> __m512i {
    let none = _mm512_setzero_si512();
    // SAFETY: both units lie in the batch. Each takes 64 base bytes of W8, else 32; 8 high bytes of Q5.
    unsafe {
        let from = batch.add(128 * pair);
        let (first, second) = (_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(from.add(64).cast()));
        range.least = _mm512_min_epi8(range.least, _mm512_min_epi8(first, second));
        range.greatest = _mm512_max_epi8(range.greatest, _mm512_max_epi8(first, second));
        if BITS == 8 {
            store(base.add(128 * pair), &mut stream.base, first);
            store(base.add(128 * pair + 64), &mut stream.base, second);
            return none;
        }
        let nibbles = |codes| {
            _mm512_maddubs_epi16(_mm512_and_si512(codes, _mm512_set1_epi8(15)), _mm512_set1_epi16(0x1001))
        };
        // Packing takes 128 bits of each in turn.
        let order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
        let packed = _mm512_packus_epi16(nibbles(first), nibbles(second));
        store(base.add(64 * pair), &mut stream.base, _mm512_permutexvar_epi64(order, packed));
        if BITS == 5 {
            let bit = _mm512_set1_epi8(16);
            let high = high.add(16 * pair).cast::<u64>();
            high.write_unaligned(_mm512_test_epi8_mask(first, bit));
            high.add(1).write_unaligned(_mm512_test_epi8_mask(second, bit));
        }
        if BITS == 6 { four_high(first, second) } else { none }
    }
}

/// The 64 high bytes of four units of Q6.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn order_quads(first: __m512i, second: __m512i) -> __m512i {
    // Dword `4k + u` is block `k` of unit `u`.
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second))
}

/// Whether all codes under the zero scales, one bit each, are zero.
///
/// # Safety
/// The batch is readable.
#[cold]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn zeros_are_zeros<const BITS: u32>(batch: *const u8, zero: u16) -> bool {
    let mut good = true;
    for unit in 0..BATCH / 64 {
        // SAFETY: the unit lies in the batch.
        let codes = unsafe { _mm512_loadu_si512(batch.add(64 * unit).cast()) };
        let nonzero = _mm512_test_epi8_mask(codes, codes);
        let under_zero = if BITS == 8 {
            let bits = zero >> (2 * unit);
            (u64::from(bits & 1) * 0xffff_ffff) | (u64::from(bits >> 1 & 1) * (0xffff_ffff << 32))
        } else {
            u64::from(zero >> unit & 1).wrapping_neg()
        };
        good &= nonzero & under_zero == 0;
    }
    good
}
