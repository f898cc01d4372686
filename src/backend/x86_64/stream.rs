//! Stores that go past the cache, and the fence that orders them.

use core::arch::x86_64::*;

use crate::words::copy;

/// Copies whole 64-byte lines to a target at a multiple of 64 bytes; the slices have one length.
pub(crate) fn copy_lines(source: &[u8], target: &mut [u8]) {
    if !target.as_ptr().addr().is_multiple_of(64) {
        return copy(target, source);
    }
    for (source, target) in source.as_chunks::<64>().0.iter().zip(target.as_chunks_mut::<64>().0) {
        let (source, target) = (source.as_ptr().cast::<__m128i>(), target.as_mut_ptr().cast::<__m128i>());
        for quarter in 0..4 {
            // SAFETY: x86-64 has SSE2. `source` and `target` are 64 bytes, of which quarters 0 to 3 are read and
            // written; the first target lies at a multiple of 64 and the others 64 bytes apart.
            unsafe { _mm_stream_si128(target.add(quarter), _mm_loadu_si128(source.add(quarter))) };
        }
    }
}

/// Copies between slices of one length at any addresses: whole lines of the target past the cache.
pub(crate) fn copy_streaming(target: &mut [u8], source: &[u8]) {
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
    copy_lines(lines_source, lines);
    copy(tail, tail_source);
}

/// Orders the streamed stores so far before all later stores.
pub(crate) fn fence() {
    // SAFETY: x86-64 has SSE.
    unsafe { _mm_sfence() };
}
