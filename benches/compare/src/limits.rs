//! The machine's limits: loops of the widest vectors that do nothing but store, read or copy.
//!
//! The loops are compiled for the CPU at hand. Slices must be whole lines of 64 bytes and begin at one.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch, _mm_sfence};
use std::hint::black_box;

use vector::{BYTES, Vector, load, splat, store, stream, xor};

#[cfg(target_feature = "avx512f")]
mod vector {
    use std::arch::x86_64::{
        __m512i, _mm512_load_si512, _mm512_set1_epi32, _mm512_store_si512, _mm512_stream_si512,
        _mm512_xor_si512,
    };

    pub type Vector = __m512i;
    pub const BYTES: usize = 64;

    pub fn splat(word: i32) -> Vector {
        // SAFETY: the whole program is compiled for CPUs that have the instruction.
        unsafe { _mm512_set1_epi32(word) }
    }

    pub fn xor(a: Vector, b: Vector) -> Vector {
        // SAFETY: the whole program is compiled for CPUs that have the instruction.
        unsafe { _mm512_xor_si512(a, b) }
    }

    /// # Safety
    /// `from` is aligned to a vector and readable for one.
    pub unsafe fn load(from: *const u8) -> Vector {
        // SAFETY: the caller's promise.
        unsafe { _mm512_load_si512(from.cast()) }
    }

    /// # Safety
    /// `to` is aligned to a vector and writable for one.
    pub unsafe fn store(to: *mut u8, value: Vector) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_store_si512(to.cast(), value) }
    }

    /// # Safety
    /// `to` is aligned to a vector and writable for one; a fence follows before anyone reads.
    pub unsafe fn stream(to: *mut u8, value: Vector) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_stream_si512(to.cast(), value) }
    }
}

#[cfg(all(target_feature = "avx2", not(target_feature = "avx512f")))]
mod vector {
    use std::arch::x86_64::{
        __m256i, _mm256_load_si256, _mm256_set1_epi32, _mm256_store_si256, _mm256_stream_si256,
        _mm256_xor_si256,
    };

    pub type Vector = __m256i;
    pub const BYTES: usize = 32;

    pub fn splat(word: i32) -> Vector {
        // SAFETY: the whole program is compiled for CPUs that have the instruction.
        unsafe { _mm256_set1_epi32(word) }
    }

    pub fn xor(a: Vector, b: Vector) -> Vector {
        // SAFETY: the whole program is compiled for CPUs that have the instruction.
        unsafe { _mm256_xor_si256(a, b) }
    }

    /// # Safety
    /// `from` is aligned to a vector and readable for one.
    pub unsafe fn load(from: *const u8) -> Vector {
        // SAFETY: the caller's promise.
        unsafe { _mm256_load_si256(from.cast()) }
    }

    /// # Safety
    /// `to` is aligned to a vector and writable for one.
    pub unsafe fn store(to: *mut u8, value: Vector) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_store_si256(to.cast(), value) }
    }

    /// # Safety
    /// `to` is aligned to a vector and writable for one; a fence follows before anyone reads.
    pub unsafe fn stream(to: *mut u8, value: Vector) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_stream_si256(to.cast(), value) }
    }
}

#[cfg(not(target_feature = "avx2"))]
compile_error!("the limits are written for AVX2 and AVX-512: build for such a CPU, from this folder");

/// Vectors a trip of the loops takes, accumulators aside.
const UNROLL: usize = 4;

/// Stores over `out`, plainly.
#[inline(never)]
pub fn store_loop(out: &mut [u8]) {
    let value = splat(black_box(0x5a17_c3e1));
    for block in whole_mut::<UNROLL>(out) {
        for i in 0..UNROLL {
            // SAFETY: the block holds UNROLL aligned vectors, of which this is the i-th.
            unsafe { store(block.as_mut_ptr().add(i * BYTES), value) }
        }
    }
}

/// Stores over `out`, past the caches.
#[inline(never)]
pub fn streaming_store_loop(out: &mut [u8]) {
    let value = splat(black_box(0x5a17_c3e1));
    for block in whole_mut::<UNROLL>(out) {
        for i in 0..UNROLL {
            // SAFETY: the block holds UNROLL aligned vectors, of which this is the i-th; the fence is below.
            unsafe { stream(block.as_mut_ptr().add(i * BYTES), value) }
        }
    }
    fence();
}

/// Reads `from` into four accumulators.
pub fn read_loop_4(from: &[u8]) {
    read::<4, false>(from);
}

/// Reads `from` into eight accumulators.
pub fn read_loop_8(from: &[u8]) {
    read::<8, false>(from);
}

/// Reads `from` into eight accumulators, fetching ahead.
pub fn read_loop_prefetch(from: &[u8]) {
    read::<8, true>(from);
}

#[inline(never)]
fn read<const LANES: usize, const PREFETCH: bool>(from: &[u8]) {
    const AHEAD_BYTES: usize = 4096;
    let mut lanes = [splat(0); LANES];
    for block in whole::<LANES>(from) {
        for (i, lane) in lanes.iter_mut().enumerate() {
            if PREFETCH && (i * BYTES).is_multiple_of(64) {
                let ahead = block.as_ptr().wrapping_add(AHEAD_BYTES + i * BYTES);
                // SAFETY: a prefetch never faults, wherever it points.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.cast()) };
            }
            // SAFETY: the block holds LANES aligned vectors, of which this is the i-th.
            *lane = xor(*lane, unsafe { load(block.as_ptr().add(i * BYTES)) });
        }
    }
    black_box::<[Vector; LANES]>(lanes);
}

/// Copies with streaming stores.
#[inline(never)]
pub fn streaming_copy(from: &[u8], out: &mut [u8]) {
    assert_eq!(from.len(), out.len());
    for (from, out) in whole::<UNROLL>(from).zip(whole_mut::<UNROLL>(out)) {
        for i in 0..UNROLL {
            // SAFETY: both blocks hold UNROLL aligned vectors, of which this is the i-th.
            let value = unsafe { load(from.as_ptr().add(i * BYTES)) };
            // SAFETY: as above; the fence is below.
            unsafe { stream(out.as_mut_ptr().add(i * BYTES), value) }
        }
    }
    fence();
}

/// Ends streaming stores.
fn fence() {
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe { _mm_sfence() }
}

fn whole<const VECTORS: usize>(from: &[u8]) -> impl Iterator<Item = &[u8]> {
    assert!(from.as_ptr().cast::<Vector>().is_aligned() && from.len().is_multiple_of(VECTORS * BYTES));
    from.chunks_exact(VECTORS * BYTES)
}

fn whole_mut<const VECTORS: usize>(out: &mut [u8]) -> impl Iterator<Item = &mut [u8]> {
    assert!(out.as_ptr().cast::<Vector>().is_aligned() && out.len().is_multiple_of(VECTORS * BYTES));
    out.chunks_exact_mut(VECTORS * BYTES)
}
