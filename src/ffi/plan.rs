//! The plan of a tensor, and where its rows lie.

use super::call::{Call, Fault, Shape, call};
use super::memory::{Buffer, fill_struct, struct_size};
use super::status::{Details, NINFER_CODEC_STATUS_UNKNOWN_PLANE};
use crate::error::Error;
use crate::format::Format;
use crate::layout::{PlaneKind, Span};

/// Plane of direct words, base codes, code pairs or code bytes.
pub const NINFER_CODEC_PLANE_CODES: u32 = 1;
/// Plane of the high bits of Q5 and Q6; the other formats have none, of zero bytes.
pub const NINFER_CODEC_PLANE_HIGH: u32 = 2;
/// Plane of scale words; direct formats have none, of zero bytes.
pub const NINFER_CODEC_PLANE_SCALES: u32 = 3;

/// Every size and offset of a tensor's payload. Offsets and sizes are bytes from the payload's start.
///
/// Output only: no function takes it back. Set `struct_size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorPlan {
    /// In: bytes of this struct as the caller knows it. Kept.
    pub struct_size: u64,
    /// NINFER_CODEC_FORMAT_.
    pub format: u32,
    /// NINFER_CODEC_LAYOUT_.
    pub layout: u32,
    /// Rows: the product of the leading dimensions.
    pub rows: u64,
    /// K, the last dimension.
    pub columns: u64,
    /// K as stored: a multiple of 128 for the grouped formats, else K.
    pub padded_columns: u64,
    /// Elements: rows times K.
    pub elements: u64,
    /// Scale words of a row that mean something: 1 for a row scale, 0 for direct formats.
    pub logical_groups: u64,
    /// Scale words stored for a row, wholly physical groups included.
    pub physical_groups: u64,
    /// First byte of the codes plane.
    pub codes_offset: u64,
    /// Bytes of the codes plane.
    pub codes_bytes: u64,
    /// Bytes of a row in the codes plane.
    pub codes_row_bytes: u64,
    /// First byte of the high-bits plane, or where it would be.
    pub high_offset: u64,
    /// Bytes of the high-bits plane, 0 if the format has none.
    pub high_bytes: u64,
    /// Bytes of a row in the high-bits plane.
    pub high_row_bytes: u64,
    /// First byte of the scales plane, or where it would be.
    pub scales_offset: u64,
    /// Bytes of the scales plane, 0 if the format has none.
    pub scales_bytes: u64,
    /// Bytes of a row in the scales plane; NVFP4's rows take this much but interleave in tiles of 128.
    pub scales_row_bytes: u64,
    /// First byte of NVFP4's divisor word.
    pub divisor_offset: u64,
    /// Bytes of the divisor word: 4 for NVFP4, else 0.
    pub divisor_bytes: u64,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    /// What the payload's offset in a file is a multiple of, in bytes.
    pub alignment: u64,
    /// Elements of codes that pack and unpack take for a row: K, or K / 2 for NVFP4's pairs.
    pub code_words_per_row: u64,
}

/// Computes every size and offset of a tensor's payload.
///
/// `format`, `layout`: ids. `dims[0 .. rank]`: the dimensions, the last of which is K. `plan`: written on
/// success only.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_LAYOUT, UNSUPPORTED_PAIR,
/// WRONG_RANK, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, OVERLAP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_tensor_plan(
    format: u32,
    layout: u32,
    dims: *const u64,
    rank: u64,
    plan: *mut TensorPlan,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let shape = Shape::new(format, layout, dims, rank)?;
        let out = Buffer::output(4, plan, 1)?;
        // SAFETY: not null; a struct of the caller's.
        let struct_size = unsafe { struct_size(4, plan) }?;
        // SAFETY: the caller gives `rank` dimensions.
        let p = unsafe { shape.plan() }?;
        call.check_memory(&[shape.dims(), out.all::<TensorPlan>()])?;
        let (codes, high, scales) = (p.codes(), p.high(), p.scales());
        let value = TensorPlan {
            struct_size,
            format,
            layout,
            rows: p.rows(),
            columns: p.columns(),
            padded_columns: p.padded_columns(),
            elements: p.elements(),
            logical_groups: p.logical_groups(),
            physical_groups: p.physical_groups(),
            codes_offset: codes.offset,
            codes_bytes: codes.bytes,
            codes_row_bytes: codes.row_bytes,
            high_offset: high.offset,
            high_bytes: high.bytes,
            high_row_bytes: high.row_bytes,
            scales_offset: scales.offset,
            scales_bytes: scales.bytes,
            scales_row_bytes: scales.row_bytes,
            divisor_offset: p.divisor().offset,
            divisor_bytes: p.divisor().bytes,
            payload_bytes: p.payload_bytes(),
            alignment: p.alignment(),
            code_words_per_row: crate::words::word_lengths(&p, 1)?.0,
        };
        // SAFETY: aligned and long enough, as checked; numbers without padding.
        unsafe { fill_struct(plan, &value) };
        Ok(())
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Finds the bytes of rows `[row_begin, row_begin + row_count)` in one plane of a payload.
///
/// `plane`: an id. `*offset`, in bytes from the payload's start, and `*bytes` are written on success only. A
/// plane that the format lacks gives zero bytes. The rows of NVFP4's scales interleave and have no such span;
/// the gaps between planes and NVFP4's divisor belong to no row.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_LAYOUT, UNKNOWN_PLANE,
/// UNSUPPORTED_PAIR, WRONG_RANK, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, EMPTY_ROWS, ROW_OUT_OF_RANGE,
/// NO_ROW_VIEW, TOO_LARGE, OVERLAP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_tensor_row_span(
    format: u32,
    layout: u32,
    dims: *const u64,
    rank: u64,
    row_begin: u64,
    row_count: u64,
    plane: u32,
    offset: *mut u64,
    bytes: *mut u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let shape = Shape::new(format, layout, dims, rank)?;
        let offset = Buffer::output(7, offset, 1)?;
        let bytes = Buffer::output(8, bytes, 1)?;
        let (format, _) = shape.ids()?;
        let plane = match plane {
            NINFER_CODEC_PLANE_CODES => PlaneKind::Codes,
            NINFER_CODEC_PLANE_HIGH => PlaneKind::High,
            NINFER_CODEC_PLANE_SCALES => PlaneKind::Scales,
            id => return Err(Fault::Id { status: NINFER_CODEC_STATUS_UNKNOWN_PLANE, id }),
        };
        // SAFETY: the caller gives `rank` dimensions.
        let plan = unsafe { shape.plan() }?;
        let codes = plan.code_rows(row_begin, row_count)?;
        let span = match (plane, format) {
            (PlaneKind::Codes, _) => codes,
            (PlaneKind::High, Format::Nvfp4) => Span { offset: plan.high().offset, bytes: 0 },
            (PlaneKind::Scales, Format::Nvfp4) => return Err(Error::NoRowView { plane }.into()),
            (PlaneKind::High, _) => plan.row_spans(row_begin, row_count)?.high,
            (PlaneKind::Scales, _) => plan.row_spans(row_begin, row_count)?.scales,
        };
        call.check_memory(&[shape.dims(), offset.all::<u64>(), bytes.all::<u64>()])?;
        // SAFETY: one u64 of the caller's, checked above.
        unsafe { offset.write(span.offset) };
        // SAFETY: as above.
        unsafe { bytes.write(span.bytes) };
        Ok(())
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}
