//! `contiguous-le-v1`: little-endian words in C order, no header, no padding. Spec: storage-layouts §2.

use super::LayoutDescriptor;
use super::plan::{Plan, Plane, Span};
use crate::error::Error;
use crate::format::Format;
use crate::geometry::{PLANE_ALIGNMENT, mul};

pub(super) const DESCRIPTOR: LayoutDescriptor = LayoutDescriptor {
    name: "contiguous-le-v1",
    accepts: &[Format::Bf16, Format::Fp32, Format::I32],
    rank: (0, 16),
    alignment: PLANE_ALIGNMENT,
    multiple_of: None,
};

pub(super) fn plan(format: Format, rows: u64, columns: u64) -> Result<Plan, Error> {
    let word_bytes = u64::from(format.descriptor().code_bits) / 8;
    let row_bytes = mul(columns, word_bytes)?;
    let bytes = mul(rows, row_bytes)?;
    let none = Plane { offset: bytes, bytes: 0, row_bytes: 0 };
    Ok(Plan {
        format,
        rows,
        columns,
        padded_columns: columns,
        codes: Plane { offset: 0, bytes, row_bytes },
        high: none,
        scales: none,
        divisor: Span { offset: bytes, bytes: 0 },
        payload_bytes: bytes,
    })
}
