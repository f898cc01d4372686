//! Checked arithmetic on sizes. Every size, product, sum and alignment of the crate is computed here, in u64.
//!
//! Spec: storage-layouts, opening paragraph.

use crate::error::Error;

/// Planes start at multiples of this many bytes from the payload's start.
pub(crate) const PLANE_ALIGNMENT: u64 = 256;

/// `a * b`, or [`Error::Overflow`].
pub(crate) const fn mul(a: u64, b: u64) -> Result<u64, Error> {
    match a.checked_mul(b) {
        Some(product) => Ok(product),
        None => Err(Error::Overflow),
    }
}

/// `a + b`, or [`Error::Overflow`].
pub(crate) const fn add(a: u64, b: u64) -> Result<u64, Error> {
    match a.checked_add(b) {
        Some(sum) => Ok(sum),
        None => Err(Error::Overflow),
    }
}

/// The smallest multiple of `alignment` (positive) that is not below `value`, or [`Error::Overflow`].
pub(crate) const fn align_up(value: u64, alignment: u64) -> Result<u64, Error> {
    match value.checked_next_multiple_of(alignment) {
        Some(aligned) => Ok(aligned),
        None => Err(Error::Overflow),
    }
}

/// `[begin, begin + count)` as a checked range below `end`: begin and the first number past it.
pub(crate) const fn range_end(begin: u64, count: u64, end: u64) -> Option<u64> {
    match begin.checked_add(count) {
        Some(stop) if stop <= end => Some(stop),
        _ => None,
    }
}

/// Elements that `rows` rows of `columns` elements take when they start `stride` elements apart.
pub(crate) const fn strided_len(rows: u64, columns: u64, stride: u64) -> Result<u64, Error> {
    match mul(rows.saturating_sub(1), stride) {
        Ok(before_last) => add(before_last, columns),
        Err(error) => Err(error),
    }
}
