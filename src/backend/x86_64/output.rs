//! Where a quantizer's bytes go: straight into the planes, or through a small staging buffer that is written
//! past the caches, a line at a time.
//!
//! A payload far larger than the caches is not read again soon. Stores past the caches then spare the read of
//! every line they fill; inside the caches they are four times slower.

use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
use core::mem::MaybeUninit;

/// Weights that a kernel takes at a time: 2 kB of binary32.
pub(super) const BATCH: usize = 512;
/// Batches that are staged before they are written.
const STAGED: usize = 8;
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
}

/// Room for some batches, one after the other in each plane.
#[derive(Clone, Copy)]
pub(super) struct Rooms {
    pub first: Room,
    pub batches: usize,
}

/// Where bytes wait to be written past the caches.
pub(super) struct Staging {
    base: [MaybeUninit<u8>; 512 * STAGED + LINE],
    high: [MaybeUninit<u8>; 128 * STAGED + LINE],
    scales: [MaybeUninit<u8>; 32 * STAGED + LINE],
}

impl Staging {
    pub(super) const NEW: Self = Self {
        base: [MaybeUninit::uninit(); _],
        high: [MaybeUninit::uninit(); _],
        scales: [MaybeUninit::uninit(); _],
    };
}

/// The three planes, written from the front.
pub(super) struct Output<'a> {
    base: Plane<'a>,
    high: Plane<'a>,
    scales: Plane<'a>,
    batch: PlaneBytes,
}

impl<'a> Output<'a> {
    /// Planes, and the bytes that a batch takes in each; with staging, they are written past the caches.
    pub(super) fn new(
        base: &'a mut [u8],
        high: &'a mut [u8],
        scales: &'a mut [u8],
        batch: PlaneBytes,
        staging: Option<&'a mut Staging>,
    ) -> Self {
        let (for_base, for_high, for_scales): (&'a mut [_], &'a mut [_], &'a mut [_]) = match staging {
            Some(staging) => (&mut staging.base, &mut staging.high, &mut staging.scales),
            None => (&mut [], &mut [], &mut []),
        };
        Self {
            base: Plane::new(base, for_base),
            high: Plane::new(high, for_high),
            scales: Plane::new(scales, for_scales),
            batch,
        }
    }

    /// Bytes that a batch takes in each plane.
    pub(super) fn batch(&self) -> PlaneBytes {
        self.batch
    }

    /// Where the next batches may be written; none if the planes have no room for a whole one.
    pub(super) fn rooms(&mut self) -> Rooms {
        let (base, base_batches) = self.base.rooms(self.batch.base);
        let (high, high_batches) = self.high.rooms(self.batch.high);
        let (scales, scales_batches) = self.scales.rooms(self.batch.scales);
        let batches = base_batches.min(high_batches).min(scales_batches);
        Rooms { first: Room { base, high, scales }, batches }
    }

    /// Takes the batches that were written to the first rooms.
    ///
    /// # Safety
    /// The last call was [`Self::rooms`], it gave at least so many rooms, and all of these are written.
    pub(super) unsafe fn commit(&mut self, batches: usize) {
        // SAFETY: the caller's promise, plane by plane.
        unsafe {
            self.base.commit(batches * self.batch.base);
            self.high.commit(batches * self.batch.high);
            self.scales.commit(batches * self.batch.scales);
        }
    }

    /// Appends less than a batch to each plane.
    pub(super) fn append(&mut self, base: &[u8], high: &[u8], scales: &[u8]) {
        self.base.append(base);
        self.high.append(high);
        self.scales.append(scales);
    }

    /// Writes all that is staged.
    pub(super) fn finish(&mut self) {
        if !self.base.buffer.is_empty() {
            self.base.finish();
            self.high.finish();
            self.scales.finish();
            // Orders the stores past the caches before any later store of this thread.
            // SAFETY: SSE is part of x86-64.
            #[allow(unused_unsafe)]
            unsafe {
                _mm_sfence();
            }
        }
    }
}

/// One plane.
///
/// Invariant: the `staged + left` bytes from `next` on are the rest of the slice that the plane was made of,
/// borrowed for as long as the plane lives; the first `staged` bytes of the buffer are initialised. With an
/// empty buffer nothing is ever staged.
struct Plane<'a> {
    next: *mut u8,
    staged: usize,
    left: usize,
    buffer: &'a mut [MaybeUninit<u8>],
}

impl<'a> Plane<'a> {
    fn new(slice: &'a mut [u8], buffer: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { next: slice.as_mut_ptr(), staged: 0, left: slice.len(), buffer }
    }

    /// A place for the next bytes, and how many times `bytes` bytes fit there.
    fn rooms(&mut self, bytes: usize) -> (*mut u8, usize) {
        if self.buffer.is_empty() {
            return (self.next, self.left.checked_div(bytes).unwrap_or(usize::MAX));
        }
        if bytes > self.buffer.len() - self.staged {
            self.flush();
        }
        match self.buffer.get_mut(self.staged..) {
            Some(free) => {
                let room = free.len().min(self.left);
                (free.as_mut_ptr().cast(), room.checked_div(bytes).unwrap_or(usize::MAX))
            }
            None => (self.next, 0),
        }
    }

    /// # Safety
    /// The last call was [`Self::rooms`], it gave room for this number of bytes, and these are written.
    unsafe fn commit(&mut self, bytes: usize) {
        self.left -= bytes;
        if self.buffer.is_empty() {
            // SAFETY: `rooms` found `bytes <= left`, and nothing is staged, so the new place lies in the slice.
            self.next = unsafe { self.next.add(bytes) };
        } else {
            self.staged += bytes;
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let (room, times) = self.rooms(bytes.len());
        if times > 0 {
            // SAFETY: the room is at least `bytes.len()` bytes long, ours alone, and now written.
            unsafe {
                room.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                self.commit(bytes.len());
            }
        }
    }

    /// Writes the whole lines of what is staged past the caches; less than a line stays.
    #[inline(never)]
    fn flush(&mut self) {
        // Plain stores fill the plane's first line up to its end, so that the others are whole.
        let head = self.next.align_offset(LINE).min(self.staged);
        self.write_staged(head);
        let buffer = self.buffer.as_ptr().cast::<u8>();
        let whole = self.staged - self.staged % LINE;
        for offset in (0..whole).step_by(16) {
            // SAFETY: `offset + 16 <= whole <= staged`: the bytes are initialised in the buffer and lie in the
            // slice. `next` is a multiple of `LINE` if anything is staged still. SSE2 is part of x86-64.
            unsafe {
                let bytes = _mm_loadu_si128(buffer.add(offset).cast::<__m128i>());
                _mm_stream_si128(self.next.add(offset).cast::<__m128i>(), bytes);
            }
        }
        self.drop_staged(whole);
    }

    fn finish(&mut self) {
        self.flush();
        self.write_staged(self.staged);
    }

    /// Writes the first `bytes <= staged` staged bytes by plain stores.
    fn write_staged(&mut self, bytes: usize) {
        // SAFETY: the bytes are initialised, and the slice has room for them at `next`.
        unsafe { self.next.copy_from_nonoverlapping(self.buffer.as_ptr().cast(), bytes) };
        self.drop_staged(bytes);
    }

    /// Forgets the first `bytes <= staged` staged bytes, which are written.
    fn drop_staged(&mut self, bytes: usize) {
        self.staged -= bytes;
        // SAFETY: `bytes + staged` bytes of the buffer are initialised, and `next + bytes` lies in the slice.
        unsafe {
            self.next = self.next.add(bytes);
            let buffer = self.buffer.as_mut_ptr();
            buffer.copy_from(buffer.add(bytes), self.staged);
        }
    }
}
