//! `row-scale-v1`: E4M3FN bytes row by row, a gap, one BF16 word a row. Spec: storage-layouts §5.

use super::LayoutDescriptor;
use super::plan::{Plan, Plane, Span};
use crate::error::Error;
use crate::format::Format;
use crate::geometry::{PLANE_ALIGNMENT, add, align_up, mul};

/// Bytes of one BF16 scale word.
const SCALE_BYTES: u64 = 2;

pub(super) const DESCRIPTOR: LayoutDescriptor = LayoutDescriptor {
    name: "row-scale-v1",
    accepts: &[Format::Fp8E4M3FnRowBf16S],
    rank: (2, 2),
    alignment: PLANE_ALIGNMENT,
    multiple_of: None,
};

pub(super) fn plan(rows: u64, columns: u64) -> Result<Plan, Error> {
    let codes = Plane { offset: 0, bytes: mul(rows, columns)?, row_bytes: columns };
    let scale_offset = align_up(codes.bytes, PLANE_ALIGNMENT)?;
    let scales = Plane { offset: scale_offset, bytes: mul(rows, SCALE_BYTES)?, row_bytes: SCALE_BYTES };
    let payload_bytes = add(scale_offset, scales.bytes)?;
    Ok(Plan {
        format: Format::Fp8E4M3FnRowBf16S,
        rows,
        columns,
        padded_columns: columns,
        codes,
        high: Plane { offset: scale_offset, bytes: 0, row_bytes: 0 },
        scales,
        divisor: Span { offset: payload_bytes, bytes: 0 },
        payload_bytes,
    })
}
