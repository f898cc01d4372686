//! The canonical quantizer with AVX-512.
//!
//! A batch is 512 weights: 8 units of 64, each one group, or two of W8. Eight groups' scales are worked out at
//! a time (sixteen of W8), and while one batch is scaled, rounded and packed the next one's maxima are taken.
//!
//! Every float operation here runs under [`super::mxcsr::DefaultMode`]. How a value that is not finite is found:
//! an infinity is its group's maximum, and makes a scale word that is not finite. So does a NaN among bf16 and f16
//! sources, whose maxima are taken in integers. A NaN among f32 sources may be lost from the maximum, but its
//! product is a NaN, which converts to `i32::MIN` and packs to -128: a code that no finite value has where the
//! scale is normal, as it is less than `qmax * (1 + 2^-11)` scales from zero. That is also why such codes need no
//! clamp. A batch with a subnormal scale takes a slower way that clamps, and looks at the sources themselves.

use core::arch::x86_64::*;
use core::hint::black_box;

use super::avx512_scales::{Kind, MAGNITUDE, UNIT, batch_scales, find_scales, load, pair_maxima};
use super::lanes::{each_lane, words};
use super::output::{BATCH, Lines, Output, Room, batch_bytes};
use super::quantize::{BF16, Batches, F32, code_min, element_bytes};

/// Quantizes up to `batches` batches and returns how many it has done: it stops before one with a value or a
/// scale that is not finite, and when there is no room for one more. What it has written of a batch that is not
/// done lies in the room for it.
///
/// # Safety
/// The processor has AVX-512 F, BW, DQ, VL and VBMI. `source` has so many batches, see [`Batches::next`]. The batch of
/// `output` is that of the format with `BITS` bits. The float mode is the default one.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
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
    let mut stream = Stream::NONE;
    let mut done = 0;
    while scales.kind != Kind::Fault {
        let kind = scales.kind;
        // Where the compiler does not know what is in an array, it broadcasts straight from memory.
        let inverses = scales.inverse;
        let inverses = black_box(inverses_of(&inverses));
        // SAFETY: `batch` is batch `done`, and `next` the one after it, which is left before the last, or the same:
        // the two that `source` keeps readable. The room is one of the output's, and is filled: scale words here,
        // codes by either way.
        unsafe {
            // The last batch is looked at twice, which keeps the loop plain.
            let next = if done == last { batch } else { source.next() };
            store_words::<BITS>(scales.words, room);
            let good;
            if kind == Kind::Plain {
                let p0 = pair_maxima::<BITS, SOURCE>(next, 0);
                let p1 = pair_maxima::<BITS, SOURCE>(next, 1);
                let p2 = pair_maxima::<BITS, SOURCE>(next, 2);
                let p3 = pair_maxima::<BITS, SOURCE>(next, 3);
                let c0 = convert_pair::<BITS, SOURCE, false>(batch, 0, inverses, room, &mut stream);
                scales = find_scales::<BITS, SOURCE>([p0, p1, p2, p3]);
                let c1 = convert_pair::<BITS, SOURCE, false>(batch, 1, inverses, room, &mut stream);
                store_high::<BITS, SOURCE>([c0, c1], 0, room, &mut stream);
                let c2 = convert_pair::<BITS, SOURCE, false>(batch, 2, inverses, room, &mut stream);
                let c3 = convert_pair::<BITS, SOURCE, false>(batch, 3, inverses, room, &mut stream);
                store_high::<BITS, SOURCE>([c2, c3], 1, room, &mut stream);
                let least =
                    _mm512_min_epi8(_mm512_min_epi8(c0.least, c1.least), _mm512_min_epi8(c2.least, c3.least));
                good = SOURCE != F32 || _mm512_cmpeq_epi8_mask(least, _mm512_set1_epi8(i8::MIN)) == 0;
            } else {
                (good, stream) = convert_clamped::<BITS, SOURCE>(batch, inverses, room, stream);
                scales = batch_scales::<BITS, SOURCE>(next);
            }
            if !good {
                break;
            }
            room = room.next(bytes);
            batch = next;
        }
        done += 1;
        if done == batches {
            break;
        }
        if output.streaming() {
            room.prefetch_narrow(bytes, BITS == 5);
            if done == 1 {
                // SAFETY: the first batch has filled more than 64 bytes before the room.
                unsafe { stream.begin::<BITS>(room) };
            }
        }
    }
    // SAFETY: AVX-512 is there.
    unsafe { stream.finish() };
    output.commit(done);
    done
}

/// The planes that are written past the caches.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub base: Option<Lines>,
    pub high: Option<Lines>,
}

impl Stream {
    pub(super) const NONE: Self = Self { base: None, high: None };

    /// Begins with the room.
    ///
    /// # Safety
    /// The processor has AVX-512 F and BW, and the batch before the room is written.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn begin<const BITS: u32>(&mut self, room: Room) {
        // SAFETY: a batch takes more than 64 bytes of the base plane, and of Q6's high plane.
        unsafe {
            self.base = Some(Lines::after(room.base));
            if BITS == 6 {
                self.high = Some(Lines::after(room.high));
            }
        }
    }

    /// Writes what is left.
    ///
    /// # Safety
    /// The processor has AVX-512 F.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn finish(&self) {
        for lines in [self.base, self.high].into_iter().flatten() {
            // SAFETY: the caller's promise.
            unsafe { lines.finish() };
        }
    }
}

/// Writes 64 bytes: to a place in a room, or as the next of the lines, which is the same place.
///
/// # Safety
/// The place has 64 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
pub(super) unsafe fn store(place: *mut u8, lines: &mut Option<Lines>, vector: __m512i) {
    // SAFETY: the caller's promise.
    unsafe {
        match lines {
            Some(lines) => lines.push(vector),
            None => _mm512_storeu_si512(place.cast(), vector),
        }
    }
}

fn inverses_of(vector: &__m512) -> &[f32; 16] {
    // SAFETY: a vector of 16 binary32 has their size, at least their alignment, and no other bytes.
    unsafe { &*core::ptr::from_ref(vector).cast() }
}

/// Quantizes and packs a batch with any finite scales; `false` if it has a value that is not finite.
///
/// # Safety
/// The batch is readable, and the room is one of a batch of the format.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn convert_clamped<const BITS: u32, const SOURCE: u8>(
    batch: *const u8,
    inverses: &[f32; 16],
    room: Room,
    mut stream: Stream,
) -> (bool, Stream) {
    for half in 0..2 {
        // SAFETY: the caller's promise.
        unsafe {
            let first = convert_pair::<BITS, SOURCE, true>(batch, 2 * half, inverses, room, &mut stream);
            let second = convert_pair::<BITS, SOURCE, true>(batch, 2 * half + 1, inverses, room, &mut stream);
            store_high::<BITS, SOURCE>([first, second], half, room, &mut stream);
        }
    }
    if SOURCE != F32 {
        return (true, stream);
    }
    let mut greatest = _mm512_setzero_si512();
    for line in 0..BATCH / 16 {
        // SAFETY: a batch is that many lines.
        let words = unsafe { load(batch.add(64 * line)) };
        greatest = _mm512_max_epu32(greatest, _mm512_and_si512(words, _mm512_set1_epi32(MAGNITUDE)));
    }
    (_mm512_cmpge_epu32_mask(greatest, _mm512_set1_epi32(0x7f80_0000)) == 0, stream)
}

/// # Safety
/// The room is one of a batch of the format.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn store_words<const BITS: u32>(words: __m256i, room: Room) {
    // SAFETY: a batch has 16 scale words of W8, else 8.
    unsafe {
        if BITS == 8 {
            _mm256_storeu_si256(room.scales.cast(), words);
        } else {
            _mm_storeu_si128(room.scales.cast(), _mm256_castsi256_si128(words));
        }
    }
}

/// 16 weights of f32 or f16 as binary32; finite ones are exact.
///
/// # Safety
/// The 16 elements are readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn load_16<const SOURCE: u8>(from: *const u8) -> __m512 {
    // SAFETY: the caller's promise.
    unsafe {
        match SOURCE {
            F32 => _mm512_loadu_ps(from.cast()),
            _ => _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())),
        }
    }
}

/// Tables for the two orders that packing leaves in block `k` of a unit: lanes `4k..`, `16 + 4k..`, `32 + 4k..` and
/// `48 + 4k..`, four of each; or, of bf16, lanes `8k..` and `32 + 8k..`, eight of each.
struct Orders;

impl Orders {
    /// 32-bit parts of the lanes in order.
    const fn lanes(source: u8) -> [u32; 16] {
        if source == BF16 {
            [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]
        } else {
            [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]
        }
    }

    /// Pairs of base bytes of two units in order, of which each block has four of the first, then four of the second.
    const fn base(source: u8) -> [u16; 32] {
        if source == BF16 {
            [
                0, 1, 8, 9, 16, 17, 24, 25, 2, 3, 10, 11, 18, 19, 26, 27, 4, 5, 12, 13, 20, 21, 28, 29, 6, 7,
                14, 15, 22, 23, 30, 31,
            ]
        } else {
            [
                0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27, 4, 12, 20, 28, 5, 13, 21, 29, 6,
                14, 22, 30, 7, 15, 23, 31,
            ]
        }
    }

    /// High bytes of four units of Q6 in order, of which each block has four of each.
    #[rustfmt::skip]
    const fn high(source: u8) -> [u8; 64] {
        if source == BF16 {
            [
                0, 1, 16, 17, 32, 33, 48, 49, 2, 3, 18, 19, 34, 35, 50, 51,
                4, 5, 20, 21, 36, 37, 52, 53, 6, 7, 22, 23, 38, 39, 54, 55,
                8, 9, 24, 25, 40, 41, 56, 57, 10, 11, 26, 27, 42, 43, 58, 59,
                12, 13, 28, 29, 44, 45, 60, 61, 14, 15, 30, 31, 46, 47, 62, 63,
            ]
        } else {
            [
                0, 16, 32, 48, 1, 17, 33, 49, 2, 18, 34, 50, 3, 19, 35, 51,
                4, 20, 36, 52, 5, 21, 37, 53, 6, 22, 38, 54, 7, 23, 39, 55,
                8, 24, 40, 56, 9, 25, 41, 57, 10, 26, 42, 58, 11, 27, 43, 59,
                12, 28, 44, 60, 13, 29, 45, 61, 14, 30, 46, 62, 15, 31, 47, 63,
            ]
        }
    }
}

/// The codes of 32 weights in bf16, as 16-bit numbers: those in the low halves of 32 bits, and those in the high ones.
///
/// # Safety
/// The 32 elements are readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn bf16_codes<const BITS: u32, const CLAMP: bool>(from: *const u8, inverse: &f32) -> __m512i {
    let inverse = each_lane(inverse);
    let code = |words| {
        let code = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(words), inverse));
        if !CLAMP {
            // A finite weight's is at most a little beyond the greatest.
            return code;
        }
        let greatest = if BITS == 8 { i8::MAX } else { -1 - code_min(BITS) };
        let code = _mm512_max_epi32(code, _mm512_set1_epi32(i32::from(code_min(BITS))));
        _mm512_min_epi32(code, _mm512_set1_epi32(i32::from(greatest)))
    };
    // SAFETY: the caller's promise.
    let words = unsafe { load(from) };
    let low = code(_mm512_slli_epi32::<16>(words));
    let high = code(_mm512_and_si512(words, _mm512_set1_epi32(!0xffff)));
    // The low half where the mask has ones.
    _mm512_ternarylogic_epi32::<0b1100_1010>(_mm512_set1_epi32(0xffff), low, _mm512_slli_epi32::<16>(high))
}

/// The codes of a unit as bytes, in the source's order of [`Orders`].
///
/// # Safety
/// The unit is readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn unit_codes<const BITS: u32, const SOURCE: u8, const CLAMP: bool>(
    unit: *const u8,
    inverses: [&f32; 2],
) -> __m512i {
    if SOURCE == BF16 {
        let [low, high] = inverses;
        // SAFETY: a unit is twice 32 elements.
        return unsafe {
            let (low, high) =
                (bf16_codes::<BITS, CLAMP>(unit, low), bf16_codes::<BITS, CLAMP>(unit.add(UNIT), high));
            _mm512_packs_epi16(low, high)
        };
    }
    let step = 16 * element_bytes(SOURCE);
    let [low, high] = inverses.map(|inverse| each_lane(inverse));
    // SAFETY: a unit is four times 16 elements.
    let [a, b, c, d] = unsafe {
        [
            _mm512_mul_ps(load_16::<SOURCE>(unit), low),
            _mm512_mul_ps(load_16::<SOURCE>(unit.add(step)), low),
            _mm512_mul_ps(load_16::<SOURCE>(unit.add(2 * step)), high),
            _mm512_mul_ps(load_16::<SOURCE>(unit.add(3 * step)), high),
        ]
    }
    .map(|x| _mm512_cvtps_epi32(x));
    // Packing saturates, so that a code beyond 8 bits is still beyond the clamp's bounds or at them.
    let codes = _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
    if !CLAMP {
        return codes;
    }
    let codes = _mm512_max_epi8(codes, _mm512_set1_epi8(code_min(BITS)));
    if BITS == 8 { codes } else { _mm512_min_epi8(codes, _mm512_set1_epi8(-1 - code_min(BITS))) }
}

/// What two units leave behind: the least codes of each lane, and the high bytes of Q6 as words: in turn four of the
/// first unit, four of the second.
#[derive(Clone, Copy)]
struct Converted {
    least: __m512i,
    high: __m512i,
}

/// Writes the high bytes of half of a batch of Q6.
///
/// # Safety
/// The room is one of a batch of the format. So is what the stream comes to.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn store_high<const BITS: u32, const SOURCE: u8>(
    pairs: [Converted; 2],
    half: usize,
    room: Room,
    stream: &mut Stream,
) {
    if BITS == 6 {
        let [low, high] = pairs.map(|pair| pair.high);
        let order = const { Orders::high(SOURCE) };
        // SAFETY: the array is 64 bytes.
        let order = unsafe { load(order.as_ptr()) };
        let high = _mm512_permutexvar_epi8(order, _mm512_packus_epi16(low, high));
        // SAFETY: half of a batch has 64 high bytes of Q6.
        unsafe { store(room.high.add(64 * half), &mut stream.high, high) };
    }
}

/// Quantizes units `2 * pair` and `2 * pair + 1`, and packs all but the high bytes of Q6.
///
/// # Safety
/// The batch is readable, and the room is one of a batch of the format.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn convert_pair<const BITS: u32, const SOURCE: u8, const CLAMP: bool>(
    batch: *const u8,
    pair: usize,
    inverses: &[f32; 16],
    room: Room,
    stream: &mut Stream,
) -> Converted {
    let lines = &mut stream.base;
    let unit_bytes = UNIT * element_bytes(SOURCE);
    let inverse = |group: usize| inverses.get(group).unwrap_or(&0.0);
    let ordered = words(&const { Orders::lanes(SOURCE) });
    // SAFETY: both units lie in the batch. Each takes 64 base bytes of W8, else 32; 8 high bytes of Q5, 16 of Q6.
    unsafe {
        let unit = batch.add(2 * pair * unit_bytes);
        if BITS == 8 {
            let at = 4 * pair;
            let first = unit_codes::<BITS, SOURCE, CLAMP>(unit, [inverse(at), inverse(at + 1)]);
            let second =
                unit_codes::<BITS, SOURCE, CLAMP>(unit.add(unit_bytes), [inverse(at + 2), inverse(at + 3)]);
            let base = room.base.add(128 * pair);
            store(base, lines, _mm512_permutexvar_epi32(ordered, first));
            store(base.add(64), lines, _mm512_permutexvar_epi32(ordered, second));
            return Converted { least: _mm512_min_epi8(first, second), high: _mm512_setzero_si512() };
        }
        let first = unit_codes::<BITS, SOURCE, CLAMP>(unit, [inverse(2 * pair); 2]);
        let second = unit_codes::<BITS, SOURCE, CLAMP>(unit.add(unit_bytes), [inverse(2 * pair + 1); 2]);
        let nibbles = _mm512_set1_epi8(15);
        let weights = _mm512_set1_epi16(0x1001);
        let low = _mm512_maddubs_epi16(_mm512_and_si512(first, nibbles), weights);
        let high = _mm512_maddubs_epi16(_mm512_and_si512(second, nibbles), weights);
        let packed = _mm512_packus_epi16(low, high);
        let order = words(&const { Orders::base(SOURCE) });
        let base = room.base.add(64 * pair);
        store(base, lines, _mm512_permutexvar_epi16(order, packed));
        if BITS == 5 {
            let bit = _mm512_set1_epi8(16);
            let first = _mm512_test_epi8_mask(_mm512_permutexvar_epi32(ordered, first), bit);
            let second = _mm512_test_epi8_mask(_mm512_permutexvar_epi32(ordered, second), bit);
            let high = room.high.add(16 * pair).cast::<u64>();
            high.write_unaligned(first);
            high.add(1).write_unaligned(second);
        }
        let mut high = _mm512_setzero_si512();
        if BITS == 6 {
            high = four_high(first, second);
        }
        Converted { least: _mm512_min_epi8(first, second), high }
    }
}

/// The high bytes of Q6 of each four neighbours, as words: in turn 128 bits of `first` and of `second`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn four_high(first: __m512i, second: __m512i) -> __m512i {
    let four = |codes| {
        let pairs =
            _mm512_maddubs_epi16(_mm512_and_si512(codes, _mm512_set1_epi8(0x30)), _mm512_set1_epi16(0x0401));
        // In bits 4 to 11.
        _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x0010_0001))
    };
    _mm512_srli_epi16::<4>(_mm512_packus_epi32(four(first), four(second)))
}
