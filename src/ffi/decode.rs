//! Out of a payload: decode, unpack, validate; and dequantize at the level of single rows.

use core::ffi::c_void;

use super::call::{Call, Shape, call, format as format_of};
use super::encode::{check_words, used_words};
use super::memory::Buffer;
use super::rows::RowList;
use super::status::{Details, NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT};
use super::values::{Rows, Value};
use crate::columns::Columns;
use crate::decode::check_output;
use crate::encode::check_row;
use crate::error::Error;
use crate::format::Format;
use crate::layout::Plan;
use crate::value::WordsMut;

/// Decodes columns `[column_begin, column_begin + column_count)` of rows `[row_begin, row_begin + row_count)`.
///
/// Row `row_begin + i` goes to `out[i * out_stride ..][0 .. column_count]`; `out_len`, in elements, is at least
/// (row_count - 1) * out_stride + column_count, and what lies between rows or past the last is left as it is.
/// `column_begin` is a multiple of the format's `column_step`, so that a buffer of one group is enough for any
/// K. `payload_len` is exactly the plan's `payload_bytes`.
///
/// `out_type`: F32 for every format but I32 (the oracle; exact for BF16 and FP32), F64 for NVFP4, BF16 and F16
/// for the quantized formats (rounded once from the binary32 value), BF16 for BF16.
///
/// Codes are total: W8 0x80 counts as -128, an E4M3FN NaN gives the quiet NaN 0x7fc00000. Padding is not looked
/// at. A failure, whichever, writes nothing.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_LAYOUT, UNKNOWN_VALUE_TYPE,
/// UNSUPPORTED_PAIR, WRONG_RANK, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, PAYLOAD_LENGTH, EMPTY_ROWS,
/// ROW_OUT_OF_RANGE, UNSUPPORTED_OUTPUT, COLUMN_RANGE, STRIDE, BUFFER_LENGTH, TOO_LARGE, OVERLAP,
/// INVALID_DIVISOR, INVALID_SCALE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_tensor_decode(
    format: u32,
    layout: u32,
    dims: *const u64,
    rank: u64,
    payload: *const u8,
    payload_len: u64,
    row_begin: u64,
    row_count: u64,
    column_begin: u64,
    column_count: u64,
    out_type: u32,
    out: *mut c_void,
    out_len: u64,
    out_stride: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let shape = Shape::new(format, layout, dims, rank)?;
        let payload = Buffer::input(4, payload, payload_len)?;
        let out = Rows::output(11, out, out_len, out_stride)?;
        shape.ids()?;
        let value = Value::from_id(out_type)?;
        // SAFETY: the caller gives `rank` dimensions.
        let plan = unsafe { shape.plan() }?;
        payload.check_payload(&plan)?;
        let row_end = plan.check_rows(row_begin, row_count)?;
        let value = value.float(NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT)?;
        check_output(&plan, value)?;
        let columns = Columns::new(&plan, column_begin, column_count)?;
        let out = out.typed(value, row_count, column_count)?;
        call.check_memory(&[shape.dims(), payload.all::<u8>(), out.used()])?;
        // SAFETY: checked; the output does not overlap the payload.
        let tensor = unsafe { payload.tensor(plan, row_begin, row_end) };
        tensor.check_words(row_begin, row_end, columns)?;
        let step = out.rows_per_slice(row_count);
        let mut done = 0;
        while done < row_count {
            // SAFETY: checked; one slice at a time.
            let values = unsafe { out.output(done, step) };
            let rows = tensor.rows(row_begin + done, step)?;
            rows.decode_columns(column_begin, column_count, values, out.slice_stride())?;
            done += step;
        }
        Ok(())
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Decodes a list of rows, in any order, with repeats: an embedding look-up.
///
/// Row `rows[i]` goes to `out[i * out_stride ..][0 .. K]`; `out_len`, in elements, is at least
/// (rows_len - 1) * out_stride + K, and what lies between rows or past the last is left as it is.
/// `payload_len`, `out_type` and the values are as for `ninfer_codec_tensor_decode`. A failure, whichever,
/// writes nothing.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_LAYOUT, UNKNOWN_VALUE_TYPE,
/// UNSUPPORTED_PAIR, WRONG_RANK, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, PAYLOAD_LENGTH, EMPTY_ROWS,
/// ROW_OUT_OF_RANGE, UNSUPPORTED_OUTPUT, STRIDE, BUFFER_LENGTH, TOO_LARGE, OVERLAP, INVALID_DIVISOR,
/// INVALID_SCALE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_tensor_decode_rows(
    format: u32,
    layout: u32,
    dims: *const u64,
    rank: u64,
    payload: *const u8,
    payload_len: u64,
    rows: *const u64,
    rows_len: u64,
    out_type: u32,
    out: *mut c_void,
    out_len: u64,
    out_stride: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let shape = Shape::new(format, layout, dims, rank)?;
        let payload = Buffer::input(4, payload, payload_len)?;
        let rows = RowList::new(6, rows, rows_len)?;
        let out = Rows::output(9, out, out_len, out_stride)?;
        shape.ids()?;
        let value = Value::from_id(out_type)?;
        // SAFETY: the caller gives `rank` dimensions.
        let plan = unsafe { shape.plan() }?;
        payload.check_payload(&plan)?;
        // SAFETY: the caller gives `rows_len` rows.
        unsafe { rows.check(&plan) }?;
        let value = value.float(NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT)?;
        check_output(&plan, value)?;
        let columns = Columns::all(&plan);
        let out = out.typed(value, rows_len, plan.columns())?;
        call.check_memory(&[shape.dims(), payload.all::<u8>(), rows.used(), out.used()])?;
        for index in 0..rows_len {
            // SAFETY: `index` is below the length.
            let row = unsafe { rows.get(index) };
            // SAFETY: the row was checked, and nothing writes the payload.
            let tensor = unsafe { payload.tensor(plan, row, row + 1) };
            tensor.check_words(row, row + 1, columns)?;
        }
        for index in 0..rows_len {
            // SAFETY: `index` is below the length.
            let row = unsafe { rows.get(index) };
            // SAFETY: the row was checked, and the output does not overlap the payload.
            let tensor = unsafe { payload.tensor(plan, row, row + 1) };
            // SAFETY: checked; one slice at a time.
            let values = unsafe { out.output(index, 1) };
            tensor.decode(values, out.slice_stride())?;
        }
        Ok(())
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Unpacks the natural words of rows `[row_begin, row_begin + row_count)`; whatever the bytes, the words are
/// given as they are.
///
/// Types and exact lengths of `codes` and `scales` are those of `ninfer_codec_tensor_pack`. `divisor`: for
/// NVFP4 the place of its divisor word; for the other formats not written, and may be NULL. `payload_len` is
/// exactly the plan's `payload_bytes`. A failure writes nothing.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_LAYOUT, UNSUPPORTED_PAIR,
/// WRONG_RANK, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, PAYLOAD_LENGTH, EMPTY_ROWS, ROW_OUT_OF_RANGE,
/// BUFFER_LENGTH, TOO_LARGE, OVERLAP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_tensor_unpack(
    format: u32,
    layout: u32,
    dims: *const u64,
    rank: u64,
    payload: *const u8,
    payload_len: u64,
    row_begin: u64,
    row_count: u64,
    codes: *mut c_void,
    codes_len: u64,
    scales: *mut c_void,
    scales_len: u64,
    divisor: *mut u32,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let shape = Shape::new(format, layout, dims, rank)?;
        let payload = Buffer::input(4, payload, payload_len)?;
        let codes = Buffer::output(8, codes, codes_len)?;
        let scales = Buffer::output(10, scales, scales_len)?;
        let divisor_len = u64::from(format == Format::Nvfp4.id());
        let divisor = Buffer::output(12, divisor, divisor_len)?;
        // SAFETY: the caller gives `rank` dimensions.
        let plan = unsafe { shape.plan() }?;
        payload.check_payload(&plan)?;
        let row_end = plan.check_rows(row_begin, row_count)?;
        check_words(&plan, row_count, codes.len(), scales.len())?;
        let (used_codes, used_scales) = used_words(&plan, codes, scales);
        call.check_memory(&[
            shape.dims(),
            payload.all::<u8>(),
            used_codes,
            used_scales,
            divisor.all::<u32>(),
        ])?;
        // SAFETY: checked; no output overlaps the payload.
        let tensor = unsafe { payload.tensor(plan, row_begin, row_end) };
        // SAFETY: all words, of the format's types, checked; they overlap nothing.
        let words = unsafe { words_of(&plan, codes, scales, divisor) };
        match words {
            Some(words) => Ok(tensor.unpack(words)?),
            None => Err(Error::WrongWords { format: plan.format() }.into()),
        }
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Checks columns `[column_begin, column_begin + column_count)` of rows `[row_begin, row_begin + row_count)`
/// and returns the first violation.
///
/// Violations come in this order: NVFP4's divisor, which every range looks at; row by row the scale words by
/// rising group, then the codes by rising column; padding, row by row, which belongs to ranges with column
/// K - 1; the gaps between planes, which belong to the range with the last row and column. The whole tensor's
/// first violation is the least of its ranges'. `column_begin` is a multiple of the format's `column_step`.
/// `payload_len` is exactly the plan's `payload_bytes`. Nothing but `details` is written.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_LAYOUT, UNSUPPORTED_PAIR,
/// WRONG_RANK, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, PAYLOAD_LENGTH, EMPTY_ROWS, ROW_OUT_OF_RANGE,
/// COLUMN_RANGE, TOO_LARGE, OVERLAP, INVALID_DIVISOR, INVALID_SCALE, INVALID_CODE, ZERO_SCALE_NONZERO_CODE,
/// PADDING_CODE_NOT_ZERO, PADDING_SCALE_NOT_ZERO, GAP_NOT_ZERO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_tensor_validate(
    format: u32,
    layout: u32,
    dims: *const u64,
    rank: u64,
    payload: *const u8,
    payload_len: u64,
    row_begin: u64,
    row_count: u64,
    column_begin: u64,
    column_count: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let shape = Shape::new(format, layout, dims, rank)?;
        let payload = Buffer::input(4, payload, payload_len)?;
        // SAFETY: the caller gives `rank` dimensions.
        let plan = unsafe { shape.plan() }?;
        payload.check_payload(&plan)?;
        let row_end = plan.check_rows(row_begin, row_count)?;
        Columns::new(&plan, column_begin, column_count)?;
        call.check_memory(&[shape.dims(), payload.all::<u8>()])?;
        // SAFETY: checked; the call writes nothing while the view lives.
        let tensor = unsafe { payload.tensor(plan, row_begin, row_end) };
        Ok(tensor.validate_columns(column_begin, column_count)?)
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Decodes one row of K codes and ceil(K / group) scale words of a grouped format to binary32; tensors of any
/// rank are the caller's loop.
///
/// `row` is the number that `details` carries. Lengths are in elements: `codes_len` is K, `scales_len` exactly
/// ceil(K / group), `out_len` exactly K. A failure, whichever, writes nothing.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, WRONG_WORDS, COLUMN_RANGE (K is 0),
/// BUFFER_LENGTH, TOO_LARGE, OVERLAP, INVALID_SCALE, INVALID_CODE (no word of the format stands for the code).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_row_dequantize(
    format: u32,
    row: u64,
    codes: *const i8,
    codes_len: u64,
    scales: *const u16,
    scales_len: u64,
    out: *mut f32,
    out_len: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let codes = Buffer::input(2, codes, codes_len)?;
        let scales = Buffer::input(4, scales, scales_len)?;
        let out = Buffer::output(6, out, out_len)?;
        let format = format_of(format)?;
        if format.scheme().is_none() {
            return Err(Error::WrongWords { format }.into());
        }
        check_row(format, codes.len(), out.len(), scales.len())?;
        call.check_memory(&[codes.all::<i8>(), scales.all::<u16>(), out.all::<f32>()])?;
        // SAFETY: all codes, checked; the output does not overlap them.
        let codes = unsafe { codes.slice(0, codes.len()) };
        // SAFETY: all scales, checked; the output does not overlap them.
        let scales = unsafe { scales.slice(0, scales.len()) };
        // SAFETY: all values, checked; they overlap nothing.
        let out = unsafe { out.slice_mut(0, out.len()) };
        Ok(crate::words::dequantize_row(format, row, codes, scales, out)?)
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Room for the natural words of the plan's format; nothing for NVFP4 without room for the divisor.
///
/// # Safety
/// `check_memory` has passed what `used_words` gives and the divisor, and nothing else touches the buffers
/// while the words live.
unsafe fn words_of<'a>(plan: &Plan, codes: Buffer, scales: Buffer, divisor: Buffer) -> Option<WordsMut<'a>> {
    let (codes_len, scales_len) = (codes.len(), scales.len());
    Some(match plan.format() {
        // SAFETY: the caller's promise: all elements, of the format's type. The same below.
        Format::Bf16 => WordsMut::Bf16(unsafe { codes.slice_mut(0, codes_len) }),
        // SAFETY: as above.
        Format::Fp32 => WordsMut::Fp32(unsafe { codes.slice_mut(0, codes_len) }),
        // SAFETY: as above.
        Format::I32 => WordsMut::I32(unsafe { codes.slice_mut(0, codes_len) }),
        Format::Q4G64F16S | Format::Q5G64F16S | Format::Q6G64F16S | Format::W8G32F16S => WordsMut::Grouped {
            // SAFETY: as above.
            codes: unsafe { codes.slice_mut(0, codes_len) },
            // SAFETY: as above.
            scales: unsafe { scales.slice_mut(0, scales_len) },
        },
        Format::Nvfp4 => WordsMut::Nvfp4 {
            // SAFETY: as above.
            codes: unsafe { codes.slice_mut(0, codes_len) },
            // SAFETY: as above.
            scales: unsafe { scales.slice_mut(0, scales_len) },
            // SAFETY: as above.
            divisor: unsafe { divisor.slice_mut(0, divisor.len()) }.first_mut()?,
        },
        Format::Fp8E4M3FnRowBf16S => WordsMut::Fp8Row {
            // SAFETY: as above.
            codes: unsafe { codes.slice_mut(0, codes_len) },
            // SAFETY: as above.
            scales: unsafe { scales.slice_mut(0, scales_len) },
        },
    })
}
