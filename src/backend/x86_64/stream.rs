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

/// Orders the streamed stores so far before all later stores.
pub(crate) fn fence() {
    // SAFETY: x86-64 has SSE.
    unsafe { _mm_sfence() };
}
