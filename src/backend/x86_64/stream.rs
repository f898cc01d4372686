//! Stores that go past the cache, and the fence that orders them.

use core::arch::x86_64::*;

use super::decode::Simd;
use super::lanes::{load32, load64};
use crate::words::copy;

/// Copies whole 64-byte lines to a target at a multiple of 64 bytes; the slices have one length.
pub(crate) fn copy_lines(simd: Simd, source: &[u8], target: &mut [u8]) {
    if !target.as_ptr().addr().is_multiple_of(64) {
        return copy(target, source);
    }
    let (source, target) = (source.as_chunks().0, target.as_chunks_mut().0);
    match simd {
        // SAFETY: a `Simd` value exists only where its instructions do. The lines lie at multiples of 64 bytes.
        Simd::Avx2 => unsafe { copy_lines_avx2(source, target) },
        // SAFETY: as above.
        Simd::Avx512 => unsafe { copy_lines_avx512(source, target) },
    }
}

/// # Safety
/// AVX2, and the target lies at a multiple of 64 bytes.
#[target_feature(enable = "avx2")]
unsafe fn copy_lines_avx2(source: &[[u8; 64]], target: &mut [[u8; 64]]) {
    for (source, target) in source.iter().zip(target) {
        for (source, target) in source.as_chunks().0.iter().zip(target.as_chunks_mut::<32>().0) {
            // SAFETY: the function has AVX, and `target` is 32 writable bytes at a multiple of 32.
            unsafe { _mm256_stream_si256(target.as_mut_ptr().cast(), load32(source)) };
        }
    }
}

/// # Safety
/// AVX-512F, and the target lies at a multiple of 64 bytes.
#[target_feature(enable = "avx512f")]
unsafe fn copy_lines_avx512(source: &[[u8; 64]], target: &mut [[u8; 64]]) {
    for (source, target) in source.iter().zip(target) {
        // SAFETY: the function has AVX-512F, and `target` is 64 writable bytes at a multiple of 64.
        unsafe { _mm512_stream_si512(target.as_mut_ptr().cast(), load64(source)) };
    }
}

/// Copies between slices of one length at any addresses: whole lines of the target past the cache.
pub(crate) fn copy_streaming(simd: Simd, target: &mut [u8], source: &[u8]) {
    let head = target.as_ptr().align_offset(64).min(target.len());
    let lines = (target.len() - head) / 64 * 64;
    let (Some((head, rest)), Some((head_source, rest_source))) =
        (target.split_at_mut_checked(head), source.split_at_checked(head))
    else {
        return;
    };
    let (Some((lines, tail)), Some((lines_source, tail_source))) =
        (rest.split_at_mut_checked(lines), rest_source.split_at_checked(lines))
    else {
        return;
    };
    copy(head, head_source);
    copy_lines(simd, lines_source, lines);
    copy(tail, tail_source);
}

/// Asks for lines from an address on, to write to them; they need not be ours.
pub(crate) fn prefetch_for_writing(from: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(64) {
        // SAFETY: a prefetch has no effect on what a program does, whatever the address; the instruction is part of
        // x86-64, or does nothing there.
        #[allow(unused_unsafe)]
        unsafe {
            _mm_prefetch::<_MM_HINT_ET0>(from.wrapping_add(line).cast());
        }
    }
}

/// Orders the streamed stores so far before all later stores.
pub(crate) fn fence() {
    // SAFETY: x86-64 has SSE.
    unsafe { _mm_sfence() };
}
