//! Vectors in and out of memory, and how decoded values become output words.

use core::arch::aarch64::*;
use core::arch::asm;

use crate::backend::{Narrow, ToBf16, ToF16, ToF32};

/// The 16 bytes as a vector.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load16(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the reference is 16 readable bytes; no alignment is asked for.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// The 8 bytes as a short vector.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load8(bytes: &[u8; 8]) -> uint8x8_t {
    // SAFETY: the reference is 8 readable bytes; no alignment is asked for.
    unsafe { vld1_u8(bytes.as_ptr()) }
}

/// Writes a vector over the 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn store16(bytes: &mut [u8; 16], vector: uint8x16_t) {
    // SAFETY: the reference is 16 writable bytes; no alignment is asked for.
    unsafe { vst1q_u8(bytes.as_mut_ptr(), vector) }
}

/// Writes a short vector over the 8 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn store8(bytes: &mut [u8; 8], vector: uint8x8_t) {
    // SAFETY: the reference is 8 writable bytes; no alignment is asked for.
    unsafe { vst1_u8(bytes.as_mut_ptr(), vector) }
}

/// Writes the vectors one after another, as far as there are whole 16-byte pieces.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn store_each16<const N: usize>(bytes: &mut [u8], vectors: [uint8x16_t; N]) {
    for (bytes, vector) in bytes.as_chunks_mut().0.iter_mut().zip(vectors) {
        store16(bytes, vector);
    }
}

/// The nibbles of 16 bytes, one a byte, the low one of each byte first.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn nibbles(bytes: &[u8; 16]) -> [uint8x16_t; 2] {
    let bytes = load16(bytes);
    let (low, high) = (vandq_u8(bytes, vdupq_n_u8(0x0f)), vshrq_n_u8::<4>(bytes));
    [vzip1q_u8(low, high), vzip2q_u8(low, high)]
}

/// The binary32 values of binary16 words.
///
/// Exact for finite words and infinities in any mode but that of alternative binary16, where an infinity is a number:
/// the instruction never flushes, neither what it takes nor what it gives, which is not subnormal.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn widen_f16(words: uint16x4_t) -> float32x4_t {
    let values;
    // SAFETY: the instruction is part of every NEON; only registers are touched. Written out because the intrinsic
    // is not in all supported compilers.
    unsafe {
        asm!("fcvtl {:v}.4s, {:v}.4h", out(vreg) values, in(vreg) words, options(pure, nomem, nostack));
    }
    values
}

/// Rounds to binary16 as the float mode says: to be called in the default one.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn narrow_f16(values: float32x4_t) -> uint16x4_t {
    let words;
    // SAFETY: as in `widen_f16`. It depends on the mode, which is no operand: the kernels are not inlined where the mode
    // is set, so that it is one mode as far as the compiler can move this.
    unsafe {
        asm!("fcvtn {:v}.4h, {:v}.4s", out(vreg) words, in(vreg) values, options(pure, nomem, nostack));
    }
    words
}

/// An output type as vectors see it.
pub(crate) trait Lanes {
    /// Whether storing rounds as the float mode says: then the call is guarded.
    const ROUNDS_BY_MODE: bool;

    /// Narrows 16 binary32 words and writes them over the first bytes of `out`.
    ///
    /// # Safety
    /// NEON; the default float mode, if [`Lanes::ROUNDS_BY_MODE`].
    unsafe fn store(values: [float32x4_t; 4], out: &mut [u8]);

    /// The low bytes of 16 narrowed words and their high bytes; none if words have not two bytes.
    ///
    /// # Safety
    /// As of [`Lanes::store`].
    unsafe fn byte_planes(values: [float32x4_t; 4]) -> Option<[uint8x16_t; 2]>;
}

impl Lanes for ToF32 {
    const ROUNDS_BY_MODE: bool = false;

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store(values: [float32x4_t; 4], out: &mut [u8]) {
        store_each16(out, values.map(|values| vreinterpretq_u8_f32(values)));
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn byte_planes(_: [float32x4_t; 4]) -> Option<[uint8x16_t; 2]> {
        None
    }
}

impl Lanes for ToBf16 {
    const ROUNDS_BY_MODE: bool = false;

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store([a, b, c, d]: [float32x4_t; 4], out: &mut [u8]) {
        store_each16(out, [bf16_of(a, b), bf16_of(c, d)]);
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn byte_planes([a, b, c, d]: [float32x4_t; 4]) -> Option<[uint8x16_t; 2]> {
        Some(planes(bf16_of(a, b), bf16_of(c, d)))
    }
}

/// Rounded in integers: the high halves, plus one where the low half and the last kept bit say so. The carry of
/// `low + 0x7fff + odd` out of 16 bits is bit 15 of the rounded-up mean of `low` and `0x7ffe + odd`.
/// No NaN comes here but the quiet `0x7fc00000`, whose low half is zero.
#[inline]
#[target_feature(enable = "neon")]
fn bf16_of(low: float32x4_t, high: float32x4_t) -> uint8x16_t {
    let (low, high) = (vreinterpretq_u16_f32(low), vreinterpretq_u16_f32(high));
    let (dropped, kept) = (vuzp1q_u16(low, high), vuzp2q_u16(low, high));
    let odd_bias = vbslq_u16(vdupq_n_u16(1), kept, vdupq_n_u16(0x7ffe));
    vreinterpretq_u8_u16(vsraq_n_u16::<15>(kept, vrhaddq_u16(dropped, odd_bias)))
}

impl Lanes for ToF16 {
    const ROUNDS_BY_MODE: bool = true;

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn store([a, b, c, d]: [float32x4_t; 4], out: &mut [u8]) {
        store_each16(out, [f16_of(a, b), f16_of(c, d)]);
    }

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn byte_planes([a, b, c, d]: [float32x4_t; 4]) -> Option<[uint8x16_t; 2]> {
        Some(planes(f16_of(a, b), f16_of(c, d)))
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn f16_of(low: float32x4_t, high: float32x4_t) -> uint8x16_t {
    vreinterpretq_u8_u16(vcombine_u16(narrow_f16(low), narrow_f16(high)))
}

/// The low bytes and the high bytes of 16 words.
#[inline]
#[target_feature(enable = "neon")]
fn planes(low: uint8x16_t, high: uint8x16_t) -> [uint8x16_t; 2] {
    [vuzp1q_u8(low, high), vuzp2q_u8(low, high)]
}

/// Bytes of one output word.
pub(super) const fn word_bytes<N: Narrow>() -> usize {
    size_of::<N::Word>()
}
