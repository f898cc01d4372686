//! Runs a kernel over an output of any length and address, past the cache where that pays.
//!
//! A kernel makes whole units; the unit that the end of the output cuts short is made aside. A large output
//! is streamed: written in whole cache lines, whatever its address, by stores that do not read the lines first and
//! so save half of the memory traffic. AVX-512 kernels put the lines together themselves; the others' pieces stay
//! in the first-level cache until they are copied out.

use super::Stores;
use super::x86_64::{decode::Simd, stream};
use crate::words::copy;

/// What makes output units out of planes that a value of the type holds.
pub(crate) trait Units {
    /// Bytes of a unit: at most [`MAX_UNIT`].
    fn unit_bytes(&self) -> usize;
    /// Makes the units from `first` on all over `out`, whose length is a multiple of a unit's.
    fn make(&self, first: usize, out: &mut [u8], carry: &mut Carry);
}

/// What a kernel that streams has made and not written yet: the end of its last 64 bytes.
pub(crate) struct Carry {
    pub held: [u8; LINE],
    /// Bytes of `held` that are written.
    pub head: usize,
    streaming: bool,
}

impl Carry {
    /// Units are made right in their places.
    pub(crate) const fn none() -> Self {
        Self { held: [0; LINE], head: 0, streaming: false }
    }

    /// The kernel to run: the second one streams.
    #[inline]
    pub(crate) fn choose<Kernel>(&self, [plain, streaming]: [Kernel; 2]) -> Kernel {
        if self.streaming { streaming } else { plain }
    }

    /// Writes bytes that were made aside, a multiple of 64 of them, as a kernel would.
    pub(crate) fn put(&mut self, out: &mut [u8], made: &[u8]) {
        for (out, made) in out.chunks_mut(LINE).zip(made.as_chunks().0) {
            let held = if self.streaming { self.held.get(self.head..).unwrap_or(&[]) } else { &[] };
            for (byte, made) in out.iter_mut().zip(held.iter().chain(made)) {
                *byte = *made;
            }
            self.held = *made;
        }
    }
}

/// Bytes of the largest unit: 64 words of 64 bits.
pub(crate) const MAX_UNIT: usize = 512;
const LINE: usize = 64;
/// Bytes of output made at a time before they are streamed.
const PIECE: usize = 4096;

#[repr(align(64))]
struct Aligned<const BYTES: usize>([u8; BYTES]);

/// Makes all of `out`.
pub(crate) fn run(units: &dyn Units, out: &mut [u8], stores: &Stores) {
    if let Some(simd) = stores.streaming()
        && out.len() >= 2 * PIECE
    {
        return match simd {
            Simd::Avx512 => run_in_lines(units, out),
            Simd::Avx2 => run_in_pieces(simd, units, out),
        };
    }
    let unit = units.unit_bytes();
    let rest = out.len().checked_rem(unit).unwrap_or(0);
    let whole = out.len() - rest;
    let Some((body, tail)) = out.split_at_mut_checked(whole) else { return };
    if !body.is_empty() {
        units.make(0, body, &mut Carry::none());
    }
    if !tail.is_empty() {
        let mut last = Aligned([0; MAX_UNIT]);
        if let (Some(first), Some(last)) = (whole.checked_div(unit), last.0.get_mut(..unit)) {
            units.make(first, last, &mut Carry::none());
            for (byte, made) in tail.iter_mut().zip(last) {
                *byte = *made;
            }
        }
    }
}

/// The kernel streams. Its first unit, which holds the beginning of the first line, and the cut one are made aside.
fn run_in_lines(units: &dyn Units, out: &mut [u8]) {
    let unit = units.unit_bytes();
    let Some(whole) = out.len().checked_div(unit) else { return };
    let head = out.as_ptr().align_offset(LINE).min(LINE - 1);
    let mut aside = Aligned([0; MAX_UNIT]);
    let Some(made) = aside.0.get_mut(..unit) else { return };
    units.make(0, made, &mut Carry::none());
    let Some((made, held)) = made.split_last_chunk() else { return };
    let mut carry = Carry { held: *held, head, streaming: true };
    // The unit's vectors but the last are written up to where the first line of the kernel begins.
    let Some((first, out)) = out.split_at_mut_checked(made.len() + head) else { return };
    let Some((first, beginning)) = first.split_at_mut_checked(made.len()) else { return };
    copy(first, made);
    copy(beginning, held.get(..head).unwrap_or(&[]));
    let Some((lines, end)) = out.split_at_mut_checked((whole - 1) * unit) else { return };
    // What is stored the plain way would hold up all later stores until its lines are there.
    stream::prefetch_for_writing(end.as_ptr(), end.len() + unit);
    units.make(1, lines, &mut carry);
    let Some((rest, cut)) = end.split_at_mut_checked(LINE - head) else { return };
    copy(rest, carry.held.get(head..).unwrap_or(&[]));
    if !cut.is_empty()
        && let Some(last) = aside.0.get_mut(..unit)
    {
        units.make(whole, last, &mut Carry::none());
        copy(cut, last.get(..cut.len()).unwrap_or(&[]));
    }
}

fn run_in_pieces(simd: Simd, units: &dyn Units, out: &mut [u8]) {
    let unit = units.unit_bytes();
    let Some(units_a_piece) = PIECE.checked_div(unit) else { return };
    // Up to a line that is still to be written lies right before the piece.
    let mut staging = Aligned([0; LINE + PIECE]);
    let head = out.as_ptr().align_offset(LINE).min(LINE);
    let Some((mut head, mut out)) = out.split_at_mut_checked(head) else { return };
    let mut held = 0;
    let mut first = 0;
    loop {
        let left = (head.len() + out.len()).saturating_sub(held);
        if left == 0 {
            break;
        }
        let units_now = left.div_ceil(unit).min(units_a_piece);
        let made = (units_now * unit).min(left);
        let Some(piece) = staging.0.get_mut(LINE..LINE + units_now * unit) else { return };
        units.make(first, piece, &mut Carry::none());
        first += units_now;
        let Some(mut ready) = staging.0.get(LINE - held..LINE + made) else { return };
        if !head.is_empty() {
            // A piece is longer than a line, and the output longer than a piece.
            let Some((bytes, rest)) = ready.split_at_checked(head.len()) else { return };
            copy(head, bytes);
            head = &mut [];
            ready = rest;
        }
        let whole = ready.len() / LINE * LINE;
        let (Some((lines, rest)), Some((target, below))) =
            (ready.split_at_checked(whole), core::mem::take(&mut out).split_at_mut_checked(whole))
        else {
            return;
        };
        stream::copy_lines(simd, lines, target);
        out = below;
        held = rest.len();
        // Move what is held to right before the next piece: with it, all of the last line's length.
        let Some(last) = staging.0.get(..LINE + made).and_then(|made| made.last_chunk::<LINE>()).copied()
        else {
            return;
        };
        if let Some(before) = staging.0.first_chunk_mut() {
            *before = last;
        }
    }
    for (byte, made) in out.iter_mut().zip(staging.0.get(LINE - held..LINE).unwrap_or(&[])) {
        *byte = *made;
    }
}
