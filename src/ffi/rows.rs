//! New payloads out of rows of others: slice, gather, stack.

use core::alloc::Layout as TypeLayout;

use super::call::{Call, Fault, Shape, call};
use super::memory::{Buffer, Used, struct_size};
use super::status::Details;
use crate::error::Error;
use crate::layout::Plan;
use crate::rows::plan_stack;

/// A caller's list of row numbers.
#[derive(Clone, Copy)]
pub(super) struct RowList(Buffer);

impl RowList {
    pub(super) fn new(argument: u64, rows: *const u64, len: u64) -> Result<Self, Fault> {
        Buffer::input(argument, rows, len).map(Self)
    }

    /// Refuses an empty list and a row past the tensor.
    ///
    /// # Safety
    /// The rows are readable, as many as the length says.
    pub(super) unsafe fn check(self, plan: &Plan) -> Result<(), Fault> {
        if self.0.len() == 0 {
            return Err(Error::EmptyRows.into());
        }
        self.0.check_size(TypeLayout::new::<u64>())?;
        for index in 0..self.0.len() {
            // SAFETY: `index` is below the length.
            let row = unsafe { self.get(index) };
            if row >= plan.rows() {
                return Err(Error::RowOutOfRange { row, rows: plan.rows() }.into());
            }
        }
        Ok(())
    }

    /// Reads an entry.
    ///
    /// # Safety
    /// `index` is below the length, whose size was checked.
    pub(super) unsafe fn get(self, index: u64) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.0.read(index) }
    }

    pub(super) fn used(self) -> Used {
        self.0.all::<u64>()
    }
}

/// Writes rows `[row_begin, row_begin + row_count)` as a standalone payload of shape [row_count, K].
///
/// `payload_len` is exactly the plan's `payload_bytes`; `out_len` exactly that of the plan of the same format
/// and layout with dimensions row_count, K. For NVFP4 `row_count` is a multiple of 128; `row_begin` is any row.
/// A failure writes nothing. Words are copied, not checked.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_LAYOUT, UNSUPPORTED_PAIR,
/// WRONG_RANK, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, PAYLOAD_LENGTH (of either), EMPTY_ROWS,
/// ROW_OUT_OF_RANGE, TOO_LARGE, OVERLAP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_tensor_slice(
    format: u32,
    layout: u32,
    dims: *const u64,
    rank: u64,
    payload: *const u8,
    payload_len: u64,
    row_begin: u64,
    row_count: u64,
    out: *mut u8,
    out_len: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let shape = Shape::new(format, layout, dims, rank)?;
        let payload = Buffer::input(4, payload, payload_len)?;
        let out = Buffer::output(8, out, out_len)?;
        // SAFETY: the caller gives `rank` dimensions.
        let plan = unsafe { shape.plan() }?;
        payload.check_payload(&plan)?;
        let row_end = plan.check_rows(row_begin, row_count)?;
        out.check_payload(&plan.with_rows(row_count)?)?;
        call.check_memory(&[shape.dims(), payload.all::<u8>(), out.all::<u8>()])?;
        // SAFETY: checked; the output does not overlap the payload.
        let tensor = unsafe { payload.tensor(plan, row_begin, row_end) };
        // SAFETY: all bytes, checked; they overlap nothing.
        let out = unsafe { out.slice_mut(0, out.len()) };
        tensor.slice(out)?;
        Ok(())
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Writes any rows, in any order, with repeats, as a standalone payload of shape [rows_len, K].
///
/// Lengths as for `ninfer_codec_tensor_slice`; for NVFP4 `rows_len` is a multiple of 128. A failure writes
/// nothing. Words are copied, not checked.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_LAYOUT, UNSUPPORTED_PAIR,
/// WRONG_RANK, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, PAYLOAD_LENGTH (of either), EMPTY_ROWS,
/// ROW_OUT_OF_RANGE, TOO_LARGE, OVERLAP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_tensor_gather(
    format: u32,
    layout: u32,
    dims: *const u64,
    rank: u64,
    payload: *const u8,
    payload_len: u64,
    rows: *const u64,
    rows_len: u64,
    out: *mut u8,
    out_len: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let shape = Shape::new(format, layout, dims, rank)?;
        let payload = Buffer::input(4, payload, payload_len)?;
        let rows = RowList::new(6, rows, rows_len)?;
        let out = Buffer::output(8, out, out_len)?;
        // SAFETY: the caller gives `rank` dimensions.
        let plan = unsafe { shape.plan() }?;
        payload.check_payload(&plan)?;
        // SAFETY: the caller gives `rows_len` rows.
        unsafe { rows.check(&plan) }?;
        let new = plan.with_rows(rows_len)?;
        out.check_payload(&new)?;
        call.check_memory(&[shape.dims(), payload.all::<u8>(), rows.used(), out.all::<u8>()])?;
        // SAFETY: checked; the output overlaps neither payload nor list.
        let mut target = unsafe { out.tensor_mut(new, 0, rows_len) };
        for index in 0..rows_len {
            // SAFETY: `index` is below the length.
            let row = unsafe { rows.get(index) };
            // SAFETY: the row was checked, and nothing writes the payload.
            let tensor = unsafe { payload.tensor(plan, row, row + 1) };
            target.copy_rows(index, &tensor, row..row + 1);
            if index == 0 {
                target.finish(&tensor);
            }
        }
        Ok(())
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// A tensor that `ninfer_codec_tensor_stack` reads.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Bytes of this struct as the caller knows it; the same in every part, and the distance between them.
    pub struct_size: u64,
    /// NINFER_CODEC_FORMAT_.
    pub format: u32,
    /// NINFER_CODEC_LAYOUT_.
    pub layout: u32,
    /// The dimensions, the last of which is K.
    pub dims: *const u64,
    /// Number of dimensions.
    pub rank: u64,
    /// The payload.
    pub payload: *const u8,
    /// Bytes of the payload, exactly its plan's.
    pub payload_len: u64,
}

/// Joins the rows of several tensors into one standalone payload of shape [sum of rows, K].
///
/// `parts[0 .. parts_len]` have one format and K; NVFP4 parts have a multiple of 128 rows each and the same
/// divisor word. `out_len` is exactly what the plan of the joined rows asks for. In `details`, `index` is the
/// number of the part at fault where one is, and `argument` is 0 for all that belongs to a part. Parts are checked one
/// after the other, each whole and its `struct_size` first, then together. A failure writes nothing. Words are copied,
/// not checked.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_LAYOUT, UNSUPPORTED_PAIR,
/// WRONG_RANK, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, PAYLOAD_LENGTH, EMPTY_ROWS (no parts), STACK_MISMATCH,
/// STACK_DIVISOR, TOO_LARGE, OVERLAP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_tensor_stack(
    parts: *const Part,
    parts_len: u64,
    out: *mut u8,
    out_len: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let list = Buffer::input(PARTS, parts, parts_len)?;
        let out = Buffer::output(2, out, out_len)?;
        // SAFETY: the caller's parts.
        let parts = unsafe { Parts::new(parts, list) }?;
        let part = |index| {
            // SAFETY: `index` is below the number of parts.
            unsafe { parts.get(index) }
        };
        for index in 0..parts_len {
            call.at_part(index);
            part(index)?.payload.check_size(TypeLayout::new::<u8>())?;
        }
        call.at_no_part();
        let tensors = || {
            (0..parts_len).filter_map(|index| part(index).ok()).map(|part| {
                // SAFETY: the part was checked, and the payload is long enough for its plan.
                unsafe { part.payload.tensor(part.plan, 0, part.plan.rows()) }
            })
        };
        let plan = plan_stack(tensors())?;
        out.check_payload(&plan)?;
        for index in 0..parts_len {
            let part = part(index)?;
            call.check_memory(&[parts.used()?, part.dims, part.payload.all::<u8>(), out.all::<u8>()])?;
        }
        // SAFETY: checked; the output overlaps no part.
        let mut target = unsafe { out.tensor_mut(plan, 0, plan.rows()) };
        target.write_stack(tensors());
        Ok(())
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Position of `parts` in the list.
const PARTS: u64 = 0;

/// The caller's parts, `stride` bytes apart.
#[derive(Clone, Copy)]
struct Parts {
    buffer: Buffer,
    stride: u64,
}

/// A checked part.
struct PartView {
    plan: Plan,
    dims: Used,
    payload: Buffer,
}

impl Parts {
    /// Refuses no parts, and parts that are not structs of a size; `buffer` is that of the parts.
    ///
    /// # Safety
    /// The first part is readable, as far as its `struct_size` says.
    unsafe fn new(parts: *const Part, buffer: Buffer) -> Result<Self, Fault> {
        if buffer.len() == 0 {
            return Err(Error::EmptyRows.into());
        }
        // SAFETY: not null; a struct of the caller's.
        let stride = unsafe { struct_size(PARTS, parts) }?;
        let expected = size_of::<Part>() as u64;
        if !stride.is_multiple_of(align_of::<Part>() as u64) {
            return Err(Fault::StructSize { argument: PARTS, expected, actual: stride });
        }
        let parts = Self { buffer, stride };
        buffer.check_size(parts.element()?)?;
        Ok(parts)
    }

    /// What takes the place of one part.
    fn element(self) -> Result<TypeLayout, Fault> {
        usize::try_from(self.stride)
            .ok()
            .and_then(|stride| TypeLayout::from_size_align(stride, align_of::<Part>()).ok())
            .ok_or(Fault::TooLarge { argument: PARTS, size: self.stride })
    }

    fn used(self) -> Result<Used, Fault> {
        Ok(self.buffer.first(self.element()?, self.buffer.len()))
    }

    /// Reads and checks a part.
    ///
    /// # Safety
    /// `index` is below the number of parts, and the part's dimensions are readable.
    unsafe fn get(self, index: u64) -> Result<PartView, Fault> {
        // SAFETY: the part lies inside the caller's parts, whose size was checked.
        let part: Part = unsafe { self.buffer.read_at(index.wrapping_mul(self.stride)) };
        if part.struct_size != self.stride {
            let (expected, actual) = (self.stride, part.struct_size);
            return Err(Fault::StructSize { argument: PARTS, expected, actual });
        }
        let shape = Shape::of_argument(PARTS, part.format, part.layout, part.dims, part.rank)?;
        let payload = Buffer::input(PARTS, part.payload, part.payload_len)?;
        // SAFETY: the caller gives `rank` dimensions.
        let plan = unsafe { shape.plan() }?;
        payload.check_payload(&plan)?;
        Ok(PartView { plan, dims: shape.dims(), payload })
    }
}
