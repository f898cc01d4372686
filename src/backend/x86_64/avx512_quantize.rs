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

use super::output::{BATCH, Lines, Output, Room, batch_bytes};
use super::quantize::{BF16, F16, F32, code_min, element_bytes};

/// Weights of a unit.
const UNIT: usize = 64;

const MAGNITUDE: i32 = 0x7fff_ffff;

/// `1 / scale` of the groups of a batch, and the scale words; eight groups fill the lower halves.
#[derive(Clone, Copy)]
struct Scales {
    inverse: __m512,
    words: __m256i,
    kind: Kind,
}

/// What the scales of a batch are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Zero or normal.
    Plain,
    /// Some are subnormal.
    Subnormal,
    /// Some are infinite or NaN.
    Fault,
}

/// Quantizes up to `batches` batches and returns how many it has done: it stops before one with a value or a
/// scale that is not finite, and when there is no room for one more. What it has written of a batch that is not
/// done lies in the room for it.
///
/// # Safety
/// The processor has AVX-512 F, BW, DQ, VL and VBMI. `source` points to `batches` times 512 readable elements.
/// The batch of `output` is that of the format with `BITS` bits. The float mode is the default one.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) unsafe fn quantize<const BITS: u32, const SOURCE: u8>(
    source: *const u8,
    batches: usize,
    output: &mut Output<'_>,
) -> usize {
    let rooms = output.rooms();
    let batches = batches.min(rooms.batches);
    let Some(last) = batches.checked_sub(1) else { return 0 };
    let bytes = batch_bytes(BITS);
    // SAFETY: there is a first batch.
    let mut scales = unsafe { batch_scales::<BITS, SOURCE>(source) };
    let mut batch = source;
    let mut room = rooms.first;
    let mut stream = Stream::NONE;
    let mut done = 0;
    while scales.kind != Kind::Fault {
        // The last batch is looked at twice, which keeps the loop plain.
        let step = if done == last { 0 } else { BATCH * element_bytes(SOURCE) };
        let kind = scales.kind;
        // Where the compiler does not know what is in an array, it broadcasts straight from memory.
        let inverses = scales.inverse;
        let inverses = black_box(inverses_of(&inverses));
        // SAFETY: `batch` is batch `done`, and `next` the one after it or the same. The room is one of the
        // output's, and is filled: scale words here, codes by either way.
        unsafe {
            let next = batch.add(step);
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
                store_high::<BITS>([c0, c1], 0, room, &mut stream);
                let c2 = convert_pair::<BITS, SOURCE, false>(batch, 2, inverses, room, &mut stream);
                let c3 = convert_pair::<BITS, SOURCE, false>(batch, 3, inverses, room, &mut stream);
                store_high::<BITS>([c2, c3], 1, room, &mut stream);
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

/// # Safety
/// The batch is readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn batch_scales<const BITS: u32, const SOURCE: u8>(batch: *const u8) -> Scales {
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
            store_high::<BITS>([first, second], half, room, &mut stream);
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
/// 64 bytes are readable.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(from: *const u8) -> __m512i {
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
unsafe fn pair_maxima<const BITS: u32, const SOURCE: u8>(batch: *const u8, pair: usize) -> __m512i {
    let unit_bytes = UNIT * element_bytes(SOURCE);
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
fn find_scales<const BITS: u32, const SOURCE: u8>(pairs: [__m512i; 4]) -> Scales {
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

/// 16 weights as binary32; finite ones of any source are exact.
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
            BF16 => {
                let words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
                _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words))
            }
            _ => _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())),
        }
    }
}

/// The codes of a unit as bytes, in the order that packing leaves: in block `k`, lanes `4k..`, `16 + 4k..`,
/// `32 + 4k..` and `48 + 4k..`, four of each.
///
/// # Safety
/// The unit is readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn unit_codes<const BITS: u32, const SOURCE: u8, const CLAMP: bool>(
    unit: *const u8,
    inverses: [f32; 2],
) -> __m512i {
    let step = 16 * element_bytes(SOURCE);
    let [low, high] = inverses.map(|inverse| _mm512_set1_ps(inverse));
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

/// What two units leave behind: the least codes of each lane, and the high bytes of Q6 as words: word `8k + j` of
/// lanes `16j + 4k..` of the first unit, word `8k + 4 + j` of the second.
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
unsafe fn store_high<const BITS: u32>(pairs: [Converted; 2], half: usize, room: Room, stream: &mut Stream) {
    if BITS == 6 {
        let [low, high] = pairs.map(|pair| pair.high);
        // Byte `16u + 4j + k` comes from byte `16k + 4u + j`.
        #[rustfmt::skip]
        const ORDER: [u8; 64] = [
            0, 16, 32, 48, 1, 17, 33, 49, 2, 18, 34, 50, 3, 19, 35, 51,
            4, 20, 36, 52, 5, 21, 37, 53, 6, 22, 38, 54, 7, 23, 39, 55,
            8, 24, 40, 56, 9, 25, 41, 57, 10, 26, 42, 58, 11, 27, 43, 59,
            12, 28, 44, 60, 13, 29, 45, 61, 14, 30, 46, 62, 15, 31, 47, 63,
        ];
        // SAFETY: the array is 64 bytes.
        let order = unsafe { load(ORDER.as_ptr()) };
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
    let inverse = |group: usize| inverses.get(group).copied().unwrap_or(0.0);
    let ordered = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
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
        // Word `8k + j` holds lanes `16j + 4k..` of the first unit, word `8k + 4 + j` those of the second.
        #[rustfmt::skip]
        let order = _mm512_set_epi16(
            31, 23, 15, 7, 30, 22, 14, 6, 29, 21, 13, 5, 28, 20, 12, 4,
            27, 19, 11, 3, 26, 18, 10, 2, 25, 17, 9, 1, 24, 16, 8, 0,
        );
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
