//! The canonical quantizer with AVX2, FMA-free, and F16C for the scales.
//!
//! As with AVX-512: batches of 512 weights in units of 64, the scales of eight groups at a time, and the next
//! batch's maxima taken before one batch is scaled, rounded and packed.
//!
//! Every float operation here runs under [`super::mxcsr::DefaultMode`]. Magnitudes are compared as integers, so a
//! NaN or an infinity is its group's maximum, and makes a scale word that is not finite.

use core::arch::x86_64::*;
use core::hint::black_box;

use super::output::{BATCH, Output, Room, batch_bytes};
use super::quantize::{BF16, Batches, F32, code_min, element_bytes, prefetch_quarter};

/// Weights of a unit: one group, or two of W8.
const UNIT: usize = 64;
/// Groups whose scales are worked out together.
const EIGHT: usize = 8;

/// The scales of a batch: of eight groups, or of W8's sixteen.
#[derive(Clone, Copy)]
struct Scales {
    inverse: [__m256; 2],
    words: [__m128i; 2],
    finite: bool,
}

/// Quantizes up to `batches` batches and returns how many it has done: it stops before one with a value or a
/// scale that is not finite, and when there is no room for one more.
///
/// # Safety
/// The processor has AVX2 and F16C. `source` has so many batches, see [`Batches::next`]. The batch of
/// `output` is that of the format with `BITS` bits. The float mode is the default one.
#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn quantize<const BITS: u32, const SOURCE: u8>(
    source: &mut Batches,
    batches: usize,
    output: &mut Output<'_>,
) -> usize {
    let rooms = output.rooms();
    let batches = batches.min(rooms.batches);
    let Some(last) = batches.checked_sub(1) else { return 0 };
    let bytes = batch_bytes(BITS);
    // SAFETY: there is a first batch.
    let mut batch = unsafe { source.next() };
    // SAFETY: as above.
    let mut scales = unsafe { batch_scales::<BITS, SOURCE>(batch) };
    let mut room = rooms.first;
    // Two halves of a vector need their own alignment only; other payloads take the caches' way.
    let streaming = output.streaming() && room.base.addr().is_multiple_of(16);
    let mut done = 0;
    while scales.finite {
        // Where the compiler does not know what is in an array, it broadcasts straight from memory.
        let inverses = scales.inverse;
        let inverses = black_box(inverses_of(&inverses));
        if streaming {
            room.prefetch_narrow(bytes, matches!(BITS, 5 | 6));
        }
        // SAFETY: `batch` is batch `done`, and `next` the one after it, which is left before the last, or the same:
        // the two that `source` keeps readable. The room is one of the output's, and is filled. The base plane's
        // place is a multiple of 16 bytes where it must be.
        unsafe {
            // The last batch is looked at twice, which keeps the loop plain.
            let next = if done == last { batch } else { source.next() };
            store_words::<BITS>(scales.words, room);
            scales = batch_scales::<BITS, SOURCE>(next);
            for pair in 0..BATCH / UNIT / 2 {
                if output.streaming() {
                    prefetch_quarter::<SOURCE>(source.position(), pair);
                }
                convert_pair::<BITS, SOURCE>(batch, pair, inverses, room, streaming);
            }
            room = room.next(bytes);
            batch = next;
        }
        done += 1;
        if done == batches {
            break;
        }
    }
    output.commit(done);
    done
}

/// Writes 32 bytes, past the caches or not.
///
/// # Safety
/// They are ours to write. If streaming, `place` is a multiple of 16.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store(place: *mut u8, streaming: bool, vector: __m256i) {
    // SAFETY: the caller's promise.
    unsafe {
        if streaming {
            _mm_stream_si128(place.cast(), _mm256_castsi256_si128(vector));
            _mm_stream_si128(place.add(16).cast(), _mm256_extracti128_si256::<1>(vector));
        } else {
            _mm256_storeu_si256(place.cast(), vector);
        }
    }
}

fn inverses_of(vectors: &[__m256; 2]) -> &[f32; 16] {
    // SAFETY: two vectors of 8 binary32 have the size of 16, at least their alignment, and no other bytes.
    unsafe { &*core::ptr::from_ref(vectors).cast() }
}

/// # Safety
/// 32 bytes are readable.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load(from: *const u8) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// # Safety
/// The batch is readable.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn batch_scales<const BITS: u32, const SOURCE: u8>(batch: *const u8) -> Scales {
    let group = if BITS == 8 { 32 } else { UNIT };
    let bytes = group * element_bytes(SOURCE);
    // SAFETY: a batch holds eight groups, or sixteen of W8.
    let first = unsafe { eight_maxima::<SOURCE>(batch, bytes) };
    let (inverse, words) = find_scales::<BITS, SOURCE>(first);
    if BITS == 8 {
        // SAFETY: as above.
        let second = unsafe { eight_maxima::<SOURCE>(batch.add(EIGHT * bytes), bytes) };
        let (inverse_2, words_2) = find_scales::<BITS, SOURCE>(second);
        let finite = are_finite(_mm_max_epi16(words, words_2));
        Scales { inverse: [inverse, inverse_2], words: [words, words_2], finite }
    } else {
        Scales { inverse: [inverse; 2], words: [words; 2], finite: are_finite(words) }
    }
}

/// The maxima of eight groups, as words of binary32 or, in their high halves, of binary16.
///
/// # Safety
/// Eight groups of `bytes` bytes are readable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn eight_maxima<const SOURCE: u8>(groups: *const u8, bytes: usize) -> __m256i {
    // SAFETY: group `i` is one of the eight.
    let group = |i: usize| unsafe { group_maxima::<SOURCE>(groups.add(i * bytes), bytes) };
    let halves = |i: usize| {
        let (x, y) = (group(i), group(i + 1));
        let low = _mm256_permute2x128_si256::<0x20>(x, y);
        let high = _mm256_permute2x128_si256::<0x31>(x, y);
        _mm256_max_epu32(low, high)
    };
    let (a, b) = (fold(halves(0), halves(2)), fold(halves(4), halves(6)));
    in_order(fold(a, b))
}

/// Two vectors to one, with half as many lanes of each group.
#[inline]
#[target_feature(enable = "avx2")]
fn fold(x: __m256i, y: __m256i) -> __m256i {
    let (x, y) = (_mm256_castsi256_ps(x), _mm256_castsi256_ps(y));
    let even = _mm256_castps_si256(_mm256_shuffle_ps::<0x88>(x, y));
    let odd = _mm256_castps_si256(_mm256_shuffle_ps::<0xdd>(x, y));
    _mm256_max_epu32(even, odd)
}

/// Takes the dwords of the two halves in turn.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn in_order(x: __m256i) -> __m256i {
    _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// The maxima of a group in eight lanes.
///
/// # Safety
/// The group is readable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn group_maxima<const SOURCE: u8>(group: *const u8, bytes: usize) -> __m256i {
    let mut greatest = _mm256_setzero_si256();
    for at in (0..bytes).step_by(32) {
        // SAFETY: groups are whole vectors.
        let words = unsafe { load(group.add(at)) };
        if SOURCE == F32 {
            let magnitudes = _mm256_and_si256(words, _mm256_set1_epi32(0x7fff_ffff));
            greatest = _mm256_max_epu32(greatest, magnitudes);
        } else {
            let magnitudes = _mm256_and_si256(words, _mm256_set1_epi16(0x7fff));
            greatest = _mm256_max_epu16(greatest, magnitudes);
        }
    }
    if SOURCE == F32 {
        return greatest;
    }
    // The high half of a dword decides which is greater; what is below it is cut off.
    let high = _mm256_max_epu32(greatest, _mm256_slli_epi32::<16>(greatest));
    _mm256_and_si256(high, _mm256_set1_epi32(0x7fff_0000))
}

/// `1 / scale` and the scale word of eight groups.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn find_scales<const BITS: u32, const SOURCE: u8>(maxima: __m256i) -> (__m256, __m128i) {
    let code_max = ((1 << (BITS - 1)) - 1) as f32;
    let zero = _mm256_cmpeq_epi32(maxima, _mm256_setzero_si256());
    let zero_words = _mm_packs_epi32(_mm256_castsi256_si128(zero), _mm256_extracti128_si256::<1>(zero));
    let maxima = if SOURCE == F32 || SOURCE == BF16 {
        _mm256_castsi256_ps(maxima)
    } else {
        let words = _mm256_srli_epi32::<16>(maxima);
        _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words)))
    };
    let raw = _mm256_div_ps(maxima, _mm256_set1_ps(code_max));
    let words = _mm256_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(raw);
    let words = _mm_max_epu16(words, _mm_set1_epi16(1));
    let inverse = _mm256_div_ps(_mm256_set1_ps(1.0), _mm256_cvtph_ps(words));
    (_mm256_andnot_ps(_mm256_castsi256_ps(zero), inverse), _mm_andnot_si128(zero_words, words))
}

/// Whether scale words, none of them negative, are all finite.
#[inline]
#[target_feature(enable = "avx2")]
fn are_finite(words: __m128i) -> bool {
    const GREATEST: i16 = 0x7bff;
    _mm_movemask_epi8(_mm_cmpgt_epi16(words, _mm_set1_epi16(GREATEST))) == 0
}

/// # Safety
/// The room is one of a batch of the format.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_words<const BITS: u32>(words: [__m128i; 2], room: Room) {
    let [first, second] = words;
    // SAFETY: a batch has 16 scale words of W8, else 8.
    unsafe {
        _mm_storeu_si128(room.scales.cast(), first);
        if BITS == 8 {
            _mm_storeu_si128(room.scales.add(16).cast(), second);
        }
    }
}

/// Eight weights as binary32; finite ones of any source are exact.
///
/// # Safety
/// The eight elements are readable.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn load_8<const SOURCE: u8>(from: *const u8) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        match SOURCE {
            F32 => _mm256_loadu_ps(from.cast()),
            BF16 => {
                let words = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words))
            }
            _ => _mm256_cvtph_ps(_mm_loadu_si128(from.cast())),
        }
    }
}

/// The codes of 32 weights as bytes, in order.
///
/// # Safety
/// The 32 elements are readable.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn codes_32<const BITS: u32, const SOURCE: u8>(from: *const u8, inverse: f32) -> __m256i {
    let inverse = _mm256_set1_ps(inverse);
    let step = 8 * element_bytes(SOURCE);
    // SAFETY: there are four times eight elements.
    let [a, b, c, d] = unsafe {
        [
            _mm256_mul_ps(load_8::<SOURCE>(from), inverse),
            _mm256_mul_ps(load_8::<SOURCE>(from.add(step)), inverse),
            _mm256_mul_ps(load_8::<SOURCE>(from.add(2 * step)), inverse),
            _mm256_mul_ps(load_8::<SOURCE>(from.add(3 * step)), inverse),
        ]
    }
    .map(|x| _mm256_cvtps_epi32(x));
    // Packing saturates: a code beyond 8 bits is still beyond the clamp's bounds, or at them. It leaves the dwords
    // of the two halves apart.
    let codes = in_order(_mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d)));
    let codes = _mm256_max_epi8(codes, _mm256_set1_epi8(code_min(BITS)));
    if BITS == 8 { codes } else { _mm256_min_epi8(codes, _mm256_set1_epi8(-1 - code_min(BITS))) }
}

/// Quantizes and packs units `2 * pair` and `2 * pair + 1`.
///
/// # Safety
/// The batch is readable, and the room is one of a batch of the format. If streaming, its base is a multiple of 16.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn convert_pair<const BITS: u32, const SOURCE: u8>(
    batch: *const u8,
    pair: usize,
    inverses: &[f32; 16],
    room: Room,
    streaming: bool,
) {
    let half_bytes = UNIT / 2 * element_bytes(SOURCE);
    let inverse = |half: usize| {
        let group = if BITS == 8 { 4 * pair + half } else { 2 * pair + half / 2 };
        inverses.get(group).copied().unwrap_or(0.0)
    };
    // SAFETY: both units lie in the batch. Each takes 64 base bytes of W8, else 32; 8 high bytes of Q5, 16 of Q6.
    unsafe {
        let from = batch.add(4 * pair * half_bytes);
        let half = |i: usize| codes_32::<BITS, SOURCE>(from.add(i * half_bytes), inverse(i));
        if BITS == 8 {
            for i in 0..4 {
                store(room.base.add(128 * pair + 32 * i), streaming, half(i));
            }
            return;
        }
        let first = pack_unit::<BITS>([half(0), half(1)], 2 * pair, room, streaming);
        let second = pack_unit::<BITS>([half(2), half(3)], 2 * pair + 1, room, streaming);
        if BITS == 6 {
            let high = in_order(_mm256_packus_epi16(first, second));
            _mm256_storeu_si256(room.high.add(32 * pair).cast(), high);
        }
    }
}

/// Packs a unit's codes, 32 and 32, of Q4, Q5 or Q6; returns the high bytes of Q6 as words: of the first 16 lanes of
/// each half, then of the others.
///
/// # Safety
/// The room is one of a batch of the format. If streaming, its base is a multiple of 16.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn pack_unit<const BITS: u32>(
    codes: [__m256i; 2],
    unit: usize,
    room: Room,
    streaming: bool,
) -> __m256i {
    let [a, b] = codes.map(|codes| {
        let low = _mm256_and_si256(codes, _mm256_set1_epi8(15));
        _mm256_maddubs_epi16(low, _mm256_set1_epi16(0x1001))
    });
    let packed = _mm256_permute4x64_epi64::<0xd8>(_mm256_packus_epi16(a, b));
    // SAFETY: a unit takes 32 base bytes, and 8 high bytes of Q5.
    unsafe {
        store(room.base.add(32 * unit), streaming, packed);
        if BITS == 5 {
            // Bit 4 of each byte goes to its bit 7.
            let bits = codes.map(|codes| _mm256_movemask_epi8(_mm256_slli_epi16::<3>(codes)));
            room.high.add(8 * unit).cast::<[i32; 2]>().write_unaligned(bits);
        }
    }
    // A dword is the high byte of four lanes, in bits 4 to 11.
    let [a, b] = codes.map(|codes| {
        let bits = _mm256_and_si256(codes, _mm256_set1_epi8(0x30));
        let pairs = _mm256_maddubs_epi16(bits, _mm256_set1_epi16(0x0401));
        _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0010_0001))
    });
    _mm256_srli_epi16::<4>(_mm256_packus_epi32(a, b))
}
