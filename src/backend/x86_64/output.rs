//! Where a quantizer's bytes go, and how they get past the caches.
//!
//! A payload far larger than the caches is not read again soon. Stores past the caches spare the read of every
//! line they fill, but inside the caches they are four times slower; and they must come one by one between the
//! loads, as a burst of them holds up the reading.

use core::arch::x86_64::*;

use super::lanes::{BYTE_NUMBERS, load64};
use crate::words::copy;

/// Weights that a kernel takes at a time: 2 kB of binary32.
pub(super) const BATCH: usize = 512;
/// A cache line.
const LINE: usize = 64;

/// Bytes of each plane that some weights take.
#[derive(Clone, Copy)]
pub(super) struct PlaneBytes {
    pub base: usize,
    pub high: usize,
    pub scales: usize,
}

/// Bytes of each plane that a batch of the format with so many bits takes.
pub(super) const fn batch_bytes(bits: u32) -> PlaneBytes {
    match bits {
        4 => PlaneBytes { base: 256, high: 0, scales: 16 },
        5 => PlaneBytes { base: 256, high: 64, scales: 16 },
        6 => PlaneBytes { base: 256, high: 128, scales: 16 },
        _ => PlaneBytes { base: 512, high: 0, scales: 32 },
    }
}

/// Room for one batch in each plane.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub base: *mut u8,
    pub high: *mut u8,
    pub scales: *mut u8,
}

impl Room {
    /// The room after this one.
    #[inline]
    pub(super) const fn next(self, bytes: PlaneBytes) -> Self {
        Self {
            base: self.base.wrapping_add(bytes.base),
            high: self.high.wrapping_add(bytes.high),
            scales: self.scales.wrapping_add(bytes.scales),
        }
    }

    /// Asks for the lines of the narrow planes that will be written soon; the addresses need not be ours.
    #[inline]
    pub(super) fn prefetch_narrow(self, bytes: PlaneBytes, high: bool) {
        /// How far ahead, in batches: far enough for memory to answer.
        const AHEAD: usize = 8;
        // SAFETY: a prefetch has no effect on what a program does, whatever the address; the instruction is part
        // of x86-64, or does nothing there.
        #[allow(unused_unsafe)]
        unsafe {
            _mm_prefetch::<_MM_HINT_ET0>(self.scales.wrapping_add(AHEAD * bytes.scales).cast());
            if high {
                _mm_prefetch::<_MM_HINT_ET0>(self.high.wrapping_add(AHEAD * bytes.high).cast());
            }
        }
    }
}

/// Room for some batches, one after the other in each plane.
#[derive(Clone, Copy)]
pub(super) struct Rooms {
    pub first: Room,
    pub batches: usize,
}

/// What is left to write of the three planes.
pub(super) struct Output<'a> {
    base: &'a mut [u8],
    high: &'a mut [u8],
    scales: &'a mut [u8],
    batch: PlaneBytes,
    streaming: bool,
}

impl<'a> Output<'a> {
    /// Planes, and the bytes that a batch takes in each; `streaming` says whether to write past the caches.
    pub(super) fn new(
        base: &'a mut [u8],
        high: &'a mut [u8],
        scales: &'a mut [u8],
        batch: PlaneBytes,
        streaming: bool,
    ) -> Self {
        Self { base, high, scales, batch, streaming }
    }

    /// Bytes that a batch takes in each plane.
    pub(super) fn batch(&self) -> PlaneBytes {
        self.batch
    }

    /// Whether to write past the caches.
    pub(super) fn streaming(&self) -> bool {
        self.streaming
    }

    /// Where the next batches may be written.
    pub(super) fn rooms(&mut self) -> Rooms {
        let times = |plane: &[u8], bytes: usize| plane.len().checked_div(bytes).unwrap_or(usize::MAX);
        let batches = times(self.base, self.batch.base)
            .min(times(self.high, self.batch.high))
            .min(times(self.scales, self.batch.scales));
        let first = Room {
            base: self.base.as_mut_ptr(),
            high: self.high.as_mut_ptr(),
            scales: self.scales.as_mut_ptr(),
        };
        Rooms { first, batches }
    }

    /// Passes over batches that are written.
    pub(super) fn commit(&mut self, batches: usize) {
        let PlaneBytes { base, high, scales } = self.batch;
        take(&mut self.base, base.wrapping_mul(batches));
        take(&mut self.high, high.wrapping_mul(batches));
        take(&mut self.scales, scales.wrapping_mul(batches));
    }

    /// Appends bytes to each plane.
    pub(super) fn append(&mut self, base: &[u8], high: &[u8], scales: &[u8]) {
        copy(take(&mut self.base, base.len()), base);
        copy(take(&mut self.high, high.len()), high);
        copy(take(&mut self.scales, scales.len()), scales);
    }
}

/// The first bytes of a plane, which keeps the others.
fn take<'a>(plane: &mut &'a mut [u8], bytes: usize) -> &'a mut [u8] {
    let (head, tail) = core::mem::take(plane).split_at_mut_checked(bytes).unwrap_or_default();
    *plane = tail;
    head
}

/// Makes stores past the caches visible before any later store of this thread.
pub(super) fn fence() {
    // SAFETY: SSE is part of x86-64.
    #[allow(unused_unsafe)]
    unsafe {
        _mm_sfence();
    }
}

/// Consecutive vectors of one plane, from a place of any alignment on, written past the caches as whole lines.
///
/// A line is the end of the vector before and the beginning of a vector: what is left of the last one is written
/// by [`Lines::finish`].
#[derive(Clone, Copy)]
pub(super) struct Lines {
    /// The next line.
    line: *mut u8,
    /// How much of the vector before belongs to it.
    part: usize,
    before: __m512i,
    /// Where the line's bytes are in `before` and the next vector.
    index: __m512i,
}

impl Lines {
    /// Begins after the 64 bytes before `place`.
    ///
    /// # Safety
    /// The processor has AVX-512 F and BW. The 64 bytes before `place` are initialised, and ours to write.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn after(place: *mut u8) -> Self {
        let part = place.addr() % LINE;
        // SAFETY: the caller's promise; `part < 64`.
        let (line, before) = unsafe { (place.sub(part), _mm512_loadu_si512(place.sub(LINE).cast())) };
        let count = load64(&BYTE_NUMBERS);
        let index = _mm512_add_epi8(count, _mm512_set1_epi8((LINE - part) as i8));
        Self { line, part, before, index }
    }

    /// Appends a vector.
    ///
    /// # Safety
    /// The processor has AVX-512 F and VBMI. The plane has 64 bytes more.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi")]
    pub(super) unsafe fn push(&mut self, vector: __m512i) {
        let line = _mm512_permutex2var_epi8(self.before, self.index, vector);
        self.before = vector;
        // SAFETY: `line` is a multiple of 64. The line begins at most 63 bytes before the new vector's place, in
        // bytes that `after` was promised or an earlier vector took, and ends inside the new one's.
        unsafe {
            _mm512_stream_si512(self.line.cast(), line);
            self.line = self.line.add(LINE);
        }
    }

    /// Writes what is left of the last vector.
    ///
    /// # Safety
    /// The processor has AVX-512 F.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn finish(&self) {
        // SAFETY: the last vector's 64 bytes end `part` bytes into the line that comes next; they were promised to
        // `after` or to `push`. What is written already is written again, the same.
        unsafe { _mm512_storeu_si512(self.line.add(self.part).sub(LINE).cast(), self.before) };
    }
}
