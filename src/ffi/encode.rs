//! Into a payload: quantize and pack; and quantize at the level of single rows.

use core::ffi::c_void;

use super::call::{Call, Fault, Shape, call, format as format_of};
use super::memory::{Buffer, Used, layout_of};
use super::status::{
    Details, NINFER_CODEC_STATUS_NO_CANONICAL_ENCODER, NINFER_CODEC_STATUS_UNSUPPORTED_SOURCE,
};
use super::values::{Rows, Value};
use crate::encode::check_row;
use crate::error::Error;
use crate::format::Format;
use crate::layout::Plan;
use crate::value::Words;
use crate::words::word_lengths;

/// Quantizes rows `[row_begin, row_begin + row_count)` of a tensor into its payload, by the canonical encoder
/// MAXABS_F16_RECIP_RNE_V1.
///
/// Row `row_begin + i` comes from `source[i * source_stride ..][0 .. K]`; `source_len`, in elements, is at
/// least (row_count - 1) * source_stride + K. `source_type`: F32, BF16, F16 or F64. `payload_len` is exactly
/// the plan's `payload_bytes`; padding is written with each row, the gaps between planes with the last row.
///
/// A failure of the arguments writes nothing. Of the data (the last three statuses, of the lowest failing row
/// and group): rows of the range before the failing one are complete, it and later rows of the range are
/// unspecified, nothing else was touched.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_LAYOUT, UNKNOWN_VALUE_TYPE,
/// UNSUPPORTED_PAIR, WRONG_RANK, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, PAYLOAD_LENGTH, EMPTY_ROWS,
/// ROW_OUT_OF_RANGE, ROWS_NOT_TILED, NO_CANONICAL_ENCODER, UNSUPPORTED_SOURCE, STRIDE, BUFFER_LENGTH, TOO_LARGE,
/// OVERLAP, NON_FINITE_SOURCE, SOURCE_NOT_REPRESENTABLE, SCALE_OVERFLOW.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_tensor_quantize(
    format: u32,
    layout: u32,
    dims: *const u64,
    rank: u64,
    row_begin: u64,
    row_count: u64,
    source_type: u32,
    source: *const c_void,
    source_len: u64,
    source_stride: u64,
    payload: *mut u8,
    payload_len: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let shape = Shape::new(format, layout, dims, rank)?;
        let source = Rows::input(7, source, source_len, source_stride)?;
        let payload = Buffer::output(10, payload, payload_len)?;
        let (format, _) = shape.ids()?;
        let value = Value::from_id(source_type)?;
        // SAFETY: the caller gives `rank` dimensions.
        let plan = unsafe { shape.plan() }?;
        payload.check_payload(&plan)?;
        plan.check_rows_written(row_begin, row_count)?;
        check_encoder(format)?;
        let value = value.float(NINFER_CODEC_STATUS_UNSUPPORTED_SOURCE)?;
        let source = source.typed(value, row_count, plan.columns())?;
        call.check_memory(&[shape.dims(), source.used(), payload.all::<u8>()])?;
        let step = source.rows_per_slice(row_count);
        let mut done = 0;
        while done < row_count {
            let begin = row_begin + done;
            // SAFETY: checked; the views of one round are gone before the next.
            let mut tensor = unsafe { payload.tensor_mut(plan, begin, begin + step) };
            // SAFETY: checked; the payload does not overlap the source.
            let values = unsafe { source.source(done, step) };
            tensor.quantize(values, source.slice_stride())?;
            done += step;
        }
        Ok(())
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Packs the natural words of rows `[row_begin, row_begin + row_count)` into a payload, after checking that
/// they are legal.
///
/// The rows follow one another without a stride; lengths are in elements and exact:
///
/// | format | codes | codes_len | scales | scales_len | divisor |
/// |---|---|---|---|---|---|
/// | BF16 | uint16_t | rows * K | NULL | 0 | 0 |
/// | FP32 | uint32_t | rows * K | NULL | 0 | 0 |
/// | I32 | int32_t | rows * K | NULL | 0 | 0 |
/// | Q4, Q5, Q6, W8 | int8_t | rows * K | uint16_t | rows * logical groups | 0 |
/// | NVFP4 | uint8_t, pairs, the smaller k in the low nibble | rows * K / 2 | uint8_t, row by row | rows * K / 16 | binary32 word |
/// | FP8 rows | uint8_t | rows * K | uint16_t | rows | 0 |
///
/// `payload_len` is exactly the plan's `payload_bytes`. NVFP4's divisor is checked by every call and written
/// by the one whose range holds the last row.
///
/// A failure of the arguments, or INVALID_DIVISOR, writes nothing. Another failure of the data (of the lowest
/// failing row): rows of the range before the failing one are complete, it and later rows of the range are
/// unspecified, nothing else was touched.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_LAYOUT, UNSUPPORTED_PAIR,
/// WRONG_RANK, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, PAYLOAD_LENGTH, EMPTY_ROWS, ROW_OUT_OF_RANGE,
/// ROWS_NOT_TILED, WRONG_WORDS, BUFFER_LENGTH, TOO_LARGE, OVERLAP, INVALID_DIVISOR, INVALID_SCALE,
/// INVALID_CODE, ZERO_SCALE_NONZERO_CODE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_tensor_pack(
    format: u32,
    layout: u32,
    dims: *const u64,
    rank: u64,
    row_begin: u64,
    row_count: u64,
    codes: *const c_void,
    codes_len: u64,
    scales: *const c_void,
    scales_len: u64,
    divisor: u32,
    payload: *mut u8,
    payload_len: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let shape = Shape::new(format, layout, dims, rank)?;
        let codes = Buffer::input(6, codes, codes_len)?;
        let scales = Buffer::input(8, scales, scales_len)?;
        let payload = Buffer::output(11, payload, payload_len)?;
        // SAFETY: the caller gives `rank` dimensions.
        let plan = unsafe { shape.plan() }?;
        payload.check_payload(&plan)?;
        let row_end = plan.check_rows_written(row_begin, row_count)?;
        if divisor != 0 && plan.format() != Format::Nvfp4 {
            return Err(Error::WrongWords { format: plan.format() }.into());
        }
        check_words(&plan, row_count, codes.len(), scales.len())?;
        let (used_codes, used_scales) = used_words(&plan, codes, scales);
        call.check_memory(&[shape.dims(), used_codes, used_scales, payload.all::<u8>()])?;
        // SAFETY: all codes, of the format's type, checked; the payload overlaps neither them nor the scales.
        let words = unsafe { words_of(&plan, codes, scales, divisor) };
        // SAFETY: checked; the only view of the payload.
        let mut tensor = unsafe { payload.tensor_mut(plan, row_begin, row_end) };
        Ok(tensor.pack(words)?)
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Quantizes one row of K values to K codes and ceil(K / group) scale words of a grouped format; tensors of
/// any rank are the caller's loop.
///
/// `row` is the number that `details` carries. `source_type`: F32, BF16, F16 or F64. Lengths are in elements:
/// `source_len` is K, `codes_len` exactly K, `scales_len` exactly ceil(K / group).
///
/// A failure of the arguments writes nothing; of the data (the last three statuses), codes and scales are
/// unspecified.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_FORMAT, UNKNOWN_VALUE_TYPE, NO_CANONICAL_ENCODER,
/// UNSUPPORTED_SOURCE, COLUMN_RANGE (K is 0), BUFFER_LENGTH, TOO_LARGE, OVERLAP, NON_FINITE_SOURCE,
/// SOURCE_NOT_REPRESENTABLE, SCALE_OVERFLOW.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_row_quantize(
    format: u32,
    row: u64,
    source_type: u32,
    source: *const c_void,
    source_len: u64,
    codes: *mut i8,
    codes_len: u64,
    scales: *mut u16,
    scales_len: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let source = Buffer::input(3, source, source_len)?;
        let codes = Buffer::output(5, codes, codes_len)?;
        let scales = Buffer::output(7, scales, scales_len)?;
        let format = format_of(format)?;
        let value = Value::from_id(source_type)?;
        check_encoder(format)?;
        let value = value.float(NINFER_CODEC_STATUS_UNSUPPORTED_SOURCE)?;
        check_row(format, source.len(), codes.len(), scales.len())?;
        let used_source = source.first(layout_of(value), source.len());
        call.check_memory(&[used_source, codes.all::<i8>(), scales.all::<u16>()])?;
        // SAFETY: all values, checked; no output overlaps them.
        let source = unsafe { source.source(value, 0, source.len()) };
        // SAFETY: all codes, checked; they overlap nothing.
        let codes = unsafe { codes.slice_mut(0, codes.len()) };
        // SAFETY: all scales, checked; they overlap nothing.
        let scales = unsafe { scales.slice_mut(0, scales.len()) };
        Ok(crate::encode::quantize_row(format, row, source, codes, scales)?)
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

fn check_encoder(format: Format) -> Result<(), Fault> {
    if format.scheme().is_some() {
        return Ok(());
    }
    Err(Fault::Id { status: NINFER_CODEC_STATUS_NO_CANONICAL_ENCODER, id: format.id() })
}

/// Checks the lengths of the natural words of `rows` rows.
pub(super) fn check_words(plan: &Plan, rows: u64, codes: u64, scales: u64) -> Result<(), Error> {
    let expected = word_lengths(plan, rows)?;
    for (expected, actual) in [(expected.0, codes), (expected.1, scales)] {
        if expected != actual {
            return Err(Error::BufferLength { expected, actual });
        }
    }
    Ok(())
}

/// Natural words as used buffers of the format's types.
pub(super) fn used_words(plan: &Plan, codes: Buffer, scales: Buffer) -> (Used, Used) {
    match plan.format() {
        Format::Bf16 => (codes.all::<u16>(), scales.all::<u8>()),
        Format::Fp32 | Format::I32 => (codes.all::<u32>(), scales.all::<u8>()),
        Format::Q4G64F16S | Format::Q5G64F16S | Format::Q6G64F16S | Format::W8G32F16S => {
            (codes.all::<i8>(), scales.all::<u16>())
        }
        Format::Nvfp4 => (codes.all::<u8>(), scales.all::<u8>()),
        Format::Fp8E4M3FnRowBf16S => (codes.all::<u8>(), scales.all::<u16>()),
    }
}

/// The natural words of the plan's format.
///
/// # Safety
/// `check_memory` has passed what `used_words` gives, and nothing writes the buffers while the words live.
unsafe fn words_of<'a>(plan: &Plan, codes: Buffer, scales: Buffer, divisor: u32) -> Words<'a> {
    let (codes_len, scales_len) = (codes.len(), scales.len());
    match plan.format() {
        // SAFETY: the caller's promise: all elements, of the format's type. The same below.
        Format::Bf16 => Words::Bf16(unsafe { codes.slice(0, codes_len) }),
        // SAFETY: as above.
        Format::Fp32 => Words::Fp32(unsafe { codes.slice(0, codes_len) }),
        // SAFETY: as above.
        Format::I32 => Words::I32(unsafe { codes.slice(0, codes_len) }),
        Format::Q4G64F16S | Format::Q5G64F16S | Format::Q6G64F16S | Format::W8G32F16S => Words::Grouped {
            // SAFETY: as above.
            codes: unsafe { codes.slice(0, codes_len) },
            // SAFETY: as above.
            scales: unsafe { scales.slice(0, scales_len) },
        },
        Format::Nvfp4 => Words::Nvfp4 {
            // SAFETY: as above.
            codes: unsafe { codes.slice(0, codes_len) },
            // SAFETY: as above.
            scales: unsafe { scales.slice(0, scales_len) },
            divisor,
        },
        Format::Fp8E4M3FnRowBf16S => Words::Fp8Row {
            // SAFETY: as above.
            codes: unsafe { codes.slice(0, codes_len) },
            // SAFETY: as above.
            scales: unsafe { scales.slice(0, scales_len) },
        },
    }
}
