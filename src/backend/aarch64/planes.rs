//! Rows to runs of groups, for kernels that fill planes: the quantizer and the packer.

use core::mem;
use core::ops::Range;

use crate::layout::row_split::{BASE_BYTES, Q5_HIGH_BYTES, Q6_HIGH_BYTES, SCALE_BYTES};
use crate::words::copy;

/// Groups that a kernel takes at a time.
pub(super) const BATCH: usize = 4;
/// Weights of the largest batch.
pub(super) const MAX_WEIGHTS: usize = 64 * BATCH;

/// Weights of a group of the format with so many bits.
pub(super) const fn group(bits: u32) -> usize {
    if bits == 8 { 32 } else { 64 }
}

/// High bytes of a group of the format with so many bits.
pub(super) const fn high_bytes(bits: u32) -> usize {
    match bits {
        5 => Q5_HIGH_BYTES,
        6 => Q6_HIGH_BYTES,
        _ => 0,
    }
}

/// The least code of the format with so many bits.
pub(super) const fn code_min(bits: u32) -> i8 {
    if bits == 8 { -127 } else { -1 << (bits - 1) }
}

/// Groups of the three planes, or room for them.
pub(super) struct Planes<'a> {
    pub base: &'a mut [u8],
    pub high: &'a mut [u8],
    pub scales: &'a mut [u8],
}

/// One batch of them.
pub(super) struct Batch<'a> {
    pub base: &'a mut [[u8; BASE_BYTES]; BATCH],
    /// Empty where the format has none.
    pub high: &'a mut [u8],
    pub scales: &'a mut [u8; BATCH * SCALE_BYTES],
}

impl Planes<'_> {
    /// The whole batches, of a format with so many high bytes a group.
    #[inline]
    pub(super) fn batches(&mut self, high_bytes: usize) -> impl Iterator<Item = Batch<'_>> {
        let base = self.base.as_chunks_mut().0.as_chunks_mut().0.iter_mut();
        let scales = self.scales.as_chunks_mut().0.iter_mut();
        let mut high = self.high.chunks_exact_mut((BATCH * high_bytes).max(1));
        base.zip(scales).map(move |(base, scales)| Batch {
            base,
            high: high.next().unwrap_or_default(),
            scales,
        })
    }

    /// What comes after so many groups.
    fn after(&mut self, groups: usize, high_bytes: usize) -> Planes<'_> {
        Planes {
            base: self.base.get_mut(groups * BASE_BYTES..).unwrap_or_default(),
            high: self.high.get_mut(groups * high_bytes..).unwrap_or_default(),
            scales: self.scales.get_mut(groups * SCALE_BYTES..).unwrap_or_default(),
        }
    }
}

/// Room for a batch that is made aside.
struct Aside {
    base: [u8; BATCH * BASE_BYTES],
    high: [u8; BATCH * Q6_HIGH_BYTES],
    scales: [u8; BATCH * SCALE_BYTES],
}

/// Fills planes after whole batches with the first groups of one more, if `make` can make it; returns the groups.
pub(super) fn make_aside(
    planes: &mut Planes<'_>,
    whole: usize,
    groups: usize,
    high_bytes: usize,
    make: impl FnOnce(&mut Planes<'_>) -> usize,
) -> usize {
    let mut aside = Aside { base: [0; _], high: [0; _], scales: [0; _] };
    let Aside { base, high, scales } = &mut aside;
    if make(&mut Planes { base, high, scales }) == 0 {
        return 0;
    }
    let Planes { base, high, scales } = planes.after(whole, high_bytes);
    copy_first(base, &aside.base, groups * BASE_BYTES);
    copy_first(high, &aside.high, groups * high_bytes);
    copy_first(scales, &aside.scales, groups * SCALE_BYTES);
    groups
}

fn copy_first(target: &mut [u8], source: &[u8], bytes: usize) {
    if let (Some(target), Some(source)) = (target.get_mut(..bytes), source.get(..bytes)) {
        copy(target, source);
    }
}

/// Where the elements of rows lie, and what their groups take.
pub(super) struct Shape {
    pub rows: usize,
    pub columns: usize,
    /// Elements from one row's first to the next one's.
    pub stride: usize,
    /// Weights of a group: 32 or 64.
    pub group: usize,
    pub high_bytes: usize,
}

/// Fills rows, padding included, until one is at fault, and returns how many are complete.
///
/// `make` fills the groups of the elements of one row, or of many that follow one another without padding, given
/// their number and that of the first one's group; it returns how many groups it has made.
pub(super) fn fill(
    shape: &Shape,
    planes: Planes<'_>,
    mut make: impl FnMut(Range<usize>, usize, &mut Planes<'_>) -> usize,
) -> usize {
    let &Shape { rows, columns, stride, group, high_bytes } = shape;
    let group = group.max(1);
    let physical_groups = columns.next_multiple_of(128) / group;
    let mut planes = planes;
    if columns.is_multiple_of(128) && stride == columns {
        let done = make(0..rows * columns, 0, &mut planes);
        return done.checked_div(physical_groups).unwrap_or(0);
    }
    let logical_groups = columns.div_ceil(group);
    for row in 0..rows {
        let Some(mut own) = take(&mut planes, physical_groups, high_bytes) else { return row };
        let first = row * stride;
        if make(first..first + columns, row * logical_groups, &mut own) < logical_groups {
            return row;
        }
        let Planes { base, high, scales } = own.after(logical_groups, high_bytes);
        base.fill(0);
        high.fill(0);
        scales.fill(0);
    }
    rows
}

/// The first groups of planes, which keep the others.
fn take<'a>(planes: &mut Planes<'a>, groups: usize, high_bytes: usize) -> Option<Planes<'a>> {
    let first = |plane: &mut &'a mut [u8], bytes: usize| {
        let (first, rest) = mem::take(plane).split_at_mut_checked(groups * bytes)?;
        *plane = rest;
        Some(first)
    };
    Some(Planes {
        base: first(&mut planes.base, BASE_BYTES)?,
        high: first(&mut planes.high, high_bytes)?,
        scales: first(&mut planes.scales, SCALE_BYTES)?,
    })
}
