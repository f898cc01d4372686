//! Vectors in and out of memory, and how decoded values become output words.

use core::arch::x86_64::*;

use super::decode::{Fp8Kernel, GroupedKernel, Pair};
use super::{avx2_decode as avx2, avx2_words, avx512_decode as avx512, avx512_words, bf16};
use crate::backend::nvfp4_tables::Tables;
use crate::backend::{Narrow, ToBf16, ToF16, ToF32};

/// Asks for the line some way after the first of these bytes, which a kernel that streams will come to. It need not
/// be there: the processor's own prefetching ends with the page, and begins anew only after some lines.
#[inline]
pub(crate) fn prefetch<const STREAM: bool>(bytes: &[u8]) {
    const AHEAD: usize = 2048;
    if STREAM {
        // SAFETY: a prefetch has no effect on what a program does, whatever the address; the instruction is part
        // of x86-64.
        #[allow(unused_unsafe)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(AHEAD).cast());
        }
    }
}

/// The numbers of the bytes of a vector.
pub(crate) const BYTE_NUMBERS: [u8; 64] = byte_numbers(0, 1);

/// A number and those that follow it by steps.
pub(crate) const fn byte_numbers(first: u8, step: u8) -> [u8; 64] {
    let mut numbers = [0; 64];
    let mut rest: &mut [u8] = &mut numbers;
    let mut next = first;
    while let Some((number, more)) = rest.split_first_mut() {
        *number = next;
        next = next.wrapping_add(step);
        rest = more;
    }
    numbers
}

/// Q4's codes by their nibbles.
pub(crate) const Q4_CODES: [f32; 16] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0];

/// The 64 bytes as a vector.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load64(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the function has AVX-512F, and the reference is 64 readable bytes; no alignment is asked for.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// The 32 bytes as a vector.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn load32(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the function has AVX, and the reference is 32 readable bytes; no alignment is asked for.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// The 16 bytes as a vector.
#[inline]
#[target_feature(enable = "sse2")]
pub(crate) fn load16(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the function has SSE2, and the reference is 16 readable bytes; no alignment is asked for.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// The 8 bytes as the low half of a vector.
#[inline]
#[target_feature(enable = "sse2")]
pub(crate) fn load8(bytes: &[u8; 8]) -> __m128i {
    // SAFETY: the function has SSE2, and the reference is 8 readable bytes; no alignment is asked for.
    unsafe { _mm_loadl_epi64(bytes.as_ptr().cast()) }
}

/// Writes a vector over the 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store64(bytes: &mut [u8; 64], vector: __m512i) {
    // SAFETY: the function has AVX-512F, and the reference is 64 writable bytes; no alignment is asked for.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) }
}

/// Writes a vector over the 32 bytes.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn store32(bytes: &mut [u8; 32], vector: __m256i) {
    // SAFETY: the function has AVX, and the reference is 32 writable bytes; no alignment is asked for.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
}

/// Writes a vector over the 16 bytes.
#[inline]
#[target_feature(enable = "sse2")]
pub(crate) fn store16(bytes: &mut [u8; 16], vector: __m128i) {
    // SAFETY: the function has SSE2, and the reference is 16 writable bytes; no alignment is asked for.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), vector) }
}

/// Writes the vectors one after another, as far as there are whole 64-byte pieces.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store_each64<const N: usize>(bytes: &mut [u8], vectors: [__m512i; N]) {
    for (bytes, vector) in bytes.as_chunks_mut().0.iter_mut().zip(vectors) {
        store64(bytes, vector);
    }
}

/// Writes the vectors one after another, as far as there are whole 32-byte pieces.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn store_each32<const N: usize>(bytes: &mut [u8], vectors: [__m256i; N]) {
    for (bytes, vector) in bytes.as_chunks_mut().0.iter_mut().zip(vectors) {
        store32(bytes, vector);
    }
}

/// AVX-512 decode kernels of an output type.
pub(crate) struct Kernels {
    pub q4: Pair<GroupedKernel>,
    pub q5: Pair<GroupedKernel>,
    pub q6: Pair<GroupedKernel>,
    pub w8: Pair<GroupedKernel>,
    pub fp8: Pair<Fp8Kernel>,
}

const fn word_kernels<W: Words16>() -> Kernels {
    Kernels {
        q4: [avx512_words::q4::<W, false>, avx512_words::q4::<W, true>],
        q5: [avx512_words::q5::<W, false>, avx512_words::q5::<W, true>],
        q6: [avx512_words::q6::<W, false>, avx512_words::q6::<W, true>],
        w8: [avx512_words::w8::<W, false>, avx512_words::w8::<W, true>],
        fp8: [avx512_words::fp8::<W, false>, avx512_words::fp8::<W, true>],
    }
}

/// An output type as vectors see it.
///
/// Rounding is in integers, or by an instruction that takes the rounding mode from its own bits and ignores
/// flush-to-zero; denormals-are-zero cannot matter to it, because every subnormal binary32 rounds to a zero
/// of its sign. So no result here depends on the float mode, but where [`Lanes::GUARDED_IN_AVX2`] says so.
pub(crate) trait Lanes {
    /// Whether narrowing rounds as the caller's mode says, or may raise an exception that it does not mask: then the
    /// call is guarded.
    const GUARDED_IN_AVX2: bool;

    /// What a code of one is in the integers that [`Lanes::store_products_avx2`] multiplies.
    const CODE_UNITS_AVX2: f32 = 1.0;

    /// The AVX2 kernels of Q4, Q5 and FP8.
    const Q4_AVX2: GroupedKernel;
    const Q5_AVX2: GroupedKernel;
    const FP8_AVX2: Fp8Kernel;

    /// The AVX-512 kernels for this processor.
    fn avx512() -> &'static Kernels;

    /// Multiplies signed codes by a scale over the units of the codes, and writes the words over the first bytes of
    /// `out`.
    ///
    /// # Safety
    /// AVX2, FMA and F16C.
    unsafe fn store_products_avx2(codes: &[u8; 16], scale: __m256, out: &mut [u8]);
}

/// An output type that takes binary32 words as they come.
pub(crate) trait StoreAvx2 {
    /// Narrows 16 binary32 words and writes them over the first bytes of `out`.
    ///
    /// # Safety
    /// AVX2 and F16C.
    unsafe fn store_avx2(low: __m256, high: __m256, out: &mut [u8]);
}

/// [`Lanes::store_products_avx2`] for codes that are units.
///
/// # Safety
/// AVX2 and F16C.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn store_plain_products<N: StoreAvx2>(codes: &[u8; 16], scale: __m256, out: &mut [u8]) {
    let product = |codes| _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load8(codes))), scale);
    if let [low, high] = codes.as_chunks().0 {
        // SAFETY: the caller's promise.
        unsafe { N::store_avx2(product(low), product(high), out) };
    }
}

impl Lanes for ToF32 {
    const GUARDED_IN_AVX2: bool = false;
    const Q4_AVX2: GroupedKernel = avx2::q4;
    const Q5_AVX2: GroupedKernel = avx2::q5;
    const FP8_AVX2: Fp8Kernel = avx2::fp8::<Self>;

    fn avx512() -> &'static Kernels {
        const {
            &Kernels {
                q4: [avx512::q4::<false>, avx512::q4::<true>],
                q5: [avx512::q5::<false>, avx512::q5::<true>],
                q6: [avx512::q6::<false>, avx512::q6::<true>],
                w8: [avx512::w8::<false>, avx512::w8::<true>],
                fp8: [avx512::fp8::<false>, avx512::fp8::<true>],
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn store_products_avx2(codes: &[u8; 16], scale: __m256, out: &mut [u8]) {
        // SAFETY: the caller's promise.
        unsafe { store_plain_products::<Self>(codes, scale, out) };
    }
}

impl StoreAvx2 for ToF32 {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn store_avx2(low: __m256, high: __m256, out: &mut [u8]) {
        store_each32(out, [_mm256_castps_si256(low), _mm256_castps_si256(high)]);
    }
}

/// How words of 16 bits are made with AVX2.
pub(crate) trait Words16Avx2: Lanes {
    /// Narrows 16 binary32 words, rounding once. They are positive zeros, or normal, positive and below 2^111 with a
    /// last bit of zero.
    ///
    /// # Safety
    /// AVX2, FMA and F16C.
    unsafe fn narrow_avx2(low: __m256, high: __m256) -> __m256i;
}

/// How words of 16 bits are made with AVX-512.
pub(crate) trait Words16 {
    /// Narrows 32 binary32 words, rounding once. None is subnormal.
    ///
    /// # Safety
    /// AVX-512 F, BW and VBMI, and what the type says.
    unsafe fn narrow_avx512(low: __m512, high: __m512) -> __m512i;
}

impl Words16 for ToBf16 {
    /// The high halves, plus one where the low half and the last kept bit say so. The carry of
    /// `low + 0x7fff + odd` out of 16 bits is bit 15 of the rounded-up mean of `low` and `0x7ffe + odd`.
    /// No NaN comes here but the quiet `0x7fc00000`, whose low half is zero.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    unsafe fn narrow_avx512(low: __m512, high: __m512) -> __m512i {
        const LOW_HALVES: [u16; 32] = even_numbers(0);
        const HIGH_HALVES: [u16; 32] = even_numbers(1);
        let (low, high) = (_mm512_castps_si512(low), _mm512_castps_si512(high));
        let dropped = _mm512_permutex2var_epi16(low, words(&LOW_HALVES), high);
        let kept = _mm512_permutex2var_epi16(low, words(&HIGH_HALVES), high);
        let (one, bias) = (_mm512_set1_epi16(1), _mm512_set1_epi16(0x7ffe));
        let odd_bias = _mm512_ternarylogic_epi32::<0b1111_1000>(bias, kept, one); // bias | kept & one
        let carry = _mm512_srli_epi16::<15>(average(dropped, odd_bias));
        _mm512_add_epi16(kept, carry)
    }
}

/// bf16 by the instruction for it, which the processor must have.
///
/// It rounds to nearest even, raises nothing and reads no mode. It takes subnormals for zeros and makes none: neither
/// comes here, as bf16 has the exponents of binary32, so that what is normal stays so.
pub(crate) struct Bf16Instruction;

impl Words16 for Bf16Instruction {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn narrow_avx512(low: __m512, high: __m512) -> __m512i {
        let words: __m512i;
        // SAFETY: the processor has AVX-512 BF16, by the caller's promise; only registers are touched. Written out
        // because the kernels are compiled for processors without it, too.
        unsafe {
            core::arch::asm!(
                "vcvtne2ps2bf16 {words}, {high}, {low}",
                words = lateout(zmm_reg) words,
                high = in(zmm_reg) high,
                low = in(zmm_reg) low,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        words
    }
}

impl Lanes for ToBf16 {
    const GUARDED_IN_AVX2: bool = true;
    const CODE_UNITS_AVX2: f32 = 65536.0;
    const Q4_AVX2: GroupedKernel = avx2_words::q4::<Self>;
    const Q5_AVX2: GroupedKernel = avx2_words::q5::<Self>;
    const FP8_AVX2: Fp8Kernel = avx2_words::fp8_to_bf16;

    fn avx512() -> &'static Kernels {
        if bf16::is_there() {
            const { &word_kernels::<Bf16Instruction>() }
        } else {
            const { &word_kernels::<Self>() }
        }
    }

    /// Every second code stays in the upper half of its 32 bits, and so does its word: nothing need be packed.
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn store_products_avx2(codes: &[u8; 16], scale: __m256, out: &mut [u8]) {
        let codes = _mm256_cvtepi8_epi16(load16(codes));
        let (even, odd) = (
            _mm256_slli_epi32::<16>(codes),
            _mm256_and_si256(codes, _mm256_set1_epi32(0xffff_0000u32 as i32)),
        );
        let word = |codes| round_to_bf16(_mm256_mul_ps(_mm256_cvtepi32_ps(codes), scale));
        let words = _mm256_or_si256(_mm256_srli_epi32::<16>(word(even)), word(odd));
        // For the zeros of negative codes.
        let signs = _mm256_and_si256(codes, _mm256_set1_epi16(i16::MIN));
        store_each32(out, [_mm256_or_si256(words, signs)]);
    }
}

impl Words16Avx2 for ToBf16 {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn narrow_avx2(low: __m256, high: __m256) -> __m256i {
        let [low, high] = [low, high].map(|words| _mm256_srli_epi32::<16>(round_to_bf16(words)));
        // The pack works on 128-bit halves; the permutation puts its quarters in order.
        _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(low, high))
    }
}

/// Rounds binary32 to the eight significant bits of bf16, ties to even, by two roundings of the processor's in its
/// default mode.
///
/// For zeros, and for normal `x` of magnitudes below 2^111 with a last bit of zero; products of codes and scales have
/// at most 19 significant bits. Let u be the place of the last bit that bf16 keeps. As a binary32 number, `x * 2^16`
/// is an even multiple of u, and u is its last place. So `x * 65537` is rounded to it plus `x` rounded to u, ties to
/// even, and what is left without it is exact. Where the sum has one binary digit more, its last place is 2u, but
/// then `x` is so near the next power of two that it becomes that. All of this is the same for negative `x`; but
/// every zero becomes positive.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn round_to_bf16(x: __m256) -> __m256i {
    let sum = _mm256_mul_ps(x, _mm256_set1_ps(65537.0));
    _mm256_castps_si256(_mm256_fnmadd_ps(x, _mm256_set1_ps(65536.0), sum))
}

/// A scale in every lane. Written out because the compiler would take the instruction for floats, which takes up a
/// pipe where this one is only a load.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn each_lane(scale: &f32) -> __m512 {
    let lanes: __m512;
    // SAFETY: the function has AVX-512F, and the reference is 4 readable bytes.
    unsafe {
        core::arch::asm!(
            "vpbroadcastd {lanes}, dword ptr [{scale}]",
            lanes = lateout(zmm_reg) lanes,
            scale = in(reg) scale,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    lanes
}

/// The means of unsigned 16-bit lanes, rounded up.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn average(a: __m512i, b: __m512i) -> __m512i {
    let mean: __m512i;
    // SAFETY: the function has AVX-512BW; only registers are touched. Written out because the compiler takes the
    // intrinsic apart and widens it to 32-bit lanes when a shift follows.
    unsafe {
        core::arch::asm!(
            "vpavgw {mean}, {a}, {b}",
            mean = lateout(zmm_reg) mean,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    mean
}

impl Words16 for ToF16 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    unsafe fn narrow_avx512(low: __m512, high: __m512) -> __m512i {
        // To nearest, ties to even, by the instruction's own bits, and raising no exception.
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        let (low, high) = (_mm512_cvt_roundps_ph::<NEAREST>(low), _mm512_cvt_roundps_ph::<NEAREST>(high));
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }
}

impl Lanes for ToF16 {
    const GUARDED_IN_AVX2: bool = true;
    const Q4_AVX2: GroupedKernel = avx2_words::q4::<Self>;
    const Q5_AVX2: GroupedKernel = avx2_words::q5::<Self>;
    const FP8_AVX2: Fp8Kernel = avx2::fp8::<Self>;

    fn avx512() -> &'static Kernels {
        const { &word_kernels::<Self>() }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn store_products_avx2(codes: &[u8; 16], scale: __m256, out: &mut [u8]) {
        // SAFETY: the caller's promise.
        unsafe { store_plain_products::<Self>(codes, scale, out) };
    }
}

impl StoreAvx2 for ToF16 {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn store_avx2(low: __m256, high: __m256, out: &mut [u8]) {
        store_each32(out, [convert_to_f16(low, high)]);
    }
}

impl Words16Avx2 for ToF16 {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn narrow_avx2(low: __m256, high: __m256) -> __m256i {
        convert_to_f16(low, high)
    }
}

/// To nearest, ties to even, by the instruction's own bits.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn convert_to_f16(low: __m256, high: __m256) -> __m256i {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;
    _mm256_set_m128i(_mm256_cvtps_ph::<NEAREST>(high), _mm256_cvtps_ph::<NEAREST>(low))
}

/// The first 64 bytes of a table as a vector; zeros if it is shorter.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn words<T: bytemuck::Pod>(table: &[T]) -> __m512i {
    match bytemuck::cast_slice(table).first_chunk() {
        Some(bytes) => load64(bytes),
        None => _mm512_setzero_si512(),
    }
}

/// The first 32 bytes of a table as a vector; zeros if it is shorter.
#[inline]
#[target_feature(enable = "avx")]
pub(crate) fn words32<T: bytemuck::Pod>(table: &[T]) -> __m256i {
    match bytemuck::cast_slice(table).first_chunk() {
        Some(bytes) => load32(bytes),
        None => _mm256_setzero_si256(),
    }
}

/// The scale words of a quad, taken out of one register.
#[inline]
pub(crate) fn each_scale(scales: [u8; 4]) -> [u32; 4] {
    let scales = u32::from_le_bytes(scales);
    [0, 8, 16, 24].map(|place| scales >> place)
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "a masked index into 128 entries")]
pub(crate) fn table<T>(tables: &Tables<T>, scale: u32) -> &[T; 16] {
    &tables[(scale & 0x7f) as usize]
}

const fn even_numbers(first: u16) -> [u16; 32] {
    let mut numbers = [0; 32];
    let mut rest: &mut [u16] = &mut numbers;
    let mut next = first;
    while let Some((number, more)) = rest.split_first_mut() {
        *number = next;
        next += 2;
        rest = more;
    }
    numbers
}

/// Bytes of one output word.
pub(crate) const fn word_bytes<N: Narrow>() -> usize {
    size_of::<N::Word>()
}
