//! Where an AVX-512 kernel's vectors go: to the output as they come, or in whole cache lines past the cache.

use core::arch::x86_64::*;

use super::lanes::{BYTE_NUMBERS, load64, store64};
use crate::backend::run::Carry;

/// Takes the vectors of an output one after another, 64 bytes each.
///
/// Streaming, a vector seldom begins where a line does. So each line is made of the end of the last vector and
/// the beginning of this one, and what a kernel is given to write to lies that much before its vectors' own places.
pub(crate) struct Sink<const STREAM: bool> {
    held: __m512i,
    index: __m512i,
}

impl<const STREAM: bool> Sink<STREAM> {
    /// Begins to write to `out` where `carry` left off; `None` if it streams and `out` does not begin with a line.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(crate) fn begin(carry: &Carry, out: &[u8]) -> Option<Self> {
        if STREAM && !out.as_ptr().addr().is_multiple_of(64) {
            return None;
        }
        let index = _mm512_add_epi8(load64(&BYTE_NUMBERS), _mm512_set1_epi8(carry.head as i8));
        Some(Self { held: load64(&carry.held), index })
    }

    /// Writes the next vector. The pieces follow one another from the beginning of what [`Sink::begin`] was given.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(crate) fn put(&mut self, piece: &mut [u8; 64], vector: __m512i) {
        if !STREAM {
            return store64(piece, vector);
        }
        let line = _mm512_permutex2var_epi8(self.held, self.index, vector);
        self.held = vector;
        // SAFETY: the function has AVX-512F, and `piece` is 64 writable bytes. A kernel cuts its output, which
        // `begin` saw begin at a multiple of 64 bytes, into pieces of 64 without a gap, so this is one too.
        unsafe { _mm512_stream_si512(piece.as_mut_ptr().cast(), line) };
    }

    /// Writes the next vectors, as far as there are whole 64-byte pieces.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(crate) fn put_each<const N: usize>(&mut self, bytes: &mut [u8], vectors: [__m512i; N]) {
        for (piece, vector) in bytes.as_chunks_mut().0.iter_mut().zip(vectors) {
            self.put(piece, vector);
        }
    }

    /// Leaves what is not written yet to whoever goes on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(crate) fn end(self, carry: &mut Carry) {
        if STREAM {
            store64(&mut carry.held, self.held);
        }
    }
}
