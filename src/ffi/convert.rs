//! Explicit conversions between value types. Nothing converts implicitly.

use core::ffi::c_void;

use half::{bf16, f16};

use super::call::{Call, Fault, call};
use super::memory::Buffer;
use super::status::{
    Details, NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT, NINFER_CODEC_STATUS_UNSUPPORTED_SOURCE,
};
use super::values::Value;
use crate::convert;
use crate::error::Error;
use crate::value::ValueType;

/// Rounds values to the nearest of another type: once, ties to even, overflow to infinity.
///
/// A NaN keeps its sign and top payload bits and becomes quiet where it is narrowed; widening, and a value of
/// the same type, keep all bits. `source_type`: F32, BF16, F16 or F64; `out_type`: F32, BF16 or F16. Both have
/// the same length, in elements; of no elements nothing is done. A failure writes nothing.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_VALUE_TYPE, UNSUPPORTED_SOURCE,
/// UNSUPPORTED_OUTPUT, BUFFER_LENGTH, TOO_LARGE, OVERLAP.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_values_round(
    source_type: u32,
    source: *const c_void,
    source_len: u64,
    out_type: u32,
    out: *mut c_void,
    out_len: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let pair = Pair::new(source_type, source, source_len, out_type, out, out_len)?;
        let from = pair.source_type.float(NINFER_CODEC_STATUS_UNSUPPORTED_SOURCE)?;
        let to = pair.out_type.float(NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT)?;
        if to == ValueType::F64 {
            return Err(pair.unsupported_output());
        }
        pair.check(call)?;
        let len = pair.out.len();
        // SAFETY: all values, checked; the output does not overlap them.
        let source = unsafe { pair.source.source(from, 0, len) };
        Ok(match to {
            // SAFETY: all values, checked; they overlap nothing.
            ValueType::Bf16 => {
                convert::to_bf16_nearest(source, unsafe { pair.out.slice_mut::<bf16>(0, len) })
            }
            // SAFETY: as above.
            ValueType::F16 => convert::to_f16_nearest(source, unsafe { pair.out.slice_mut::<f16>(0, len) }),
            // SAFETY: as above.
            _ => convert::to_f32_nearest(source, unsafe { pair.out.slice_mut::<f32>(0, len) }),
        }?)
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Converts values that another type holds exactly, and refuses the first that it does not.
///
/// `source_type`: F32, BF16, F16, F64 to `out_type` F32, BF16 or I32; I64 and U64 to I32. NaN payloads count as
/// part of a value; -0 is taken as the integer 0. Both have the same length, in elements; of no elements
/// nothing is done. A failure of the arguments writes nothing; NOT_EXACT leaves what stands before the value
/// at fault converted, and the rest as it was.
///
/// Status: OK, MISALIGNED, STRUCT_SIZE, NULL_POINTER, UNKNOWN_VALUE_TYPE, UNSUPPORTED_SOURCE,
/// UNSUPPORTED_OUTPUT, BUFFER_LENGTH, TOO_LARGE, OVERLAP, NOT_EXACT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_values_convert(
    source_type: u32,
    source: *const c_void,
    source_len: u64,
    out_type: u32,
    out: *mut c_void,
    out_len: u64,
    details: *mut Details,
) -> u32 {
    let body = |call: &Call| {
        let pair = Pair::new(source_type, source, source_len, out_type, out, out_len)?;
        let from = pair.source_type;
        let to = pair.out_type;
        match (from, to) {
            (Value::I32, _) => from.float(NINFER_CODEC_STATUS_UNSUPPORTED_SOURCE).map(|_| ())?,
            (_, Value::I32) | (Value::Float(_), Value::Float(ValueType::F32 | ValueType::Bf16)) => {}
            _ => return Err(pair.unsupported_output()),
        }
        pair.check(call)?;
        // SAFETY: checked, and the types are a pair that the operation takes.
        Ok(unsafe { pair.convert_exactly() }?)
    };
    // SAFETY: the caller's details.
    unsafe { call(details, body) }
}

/// Source and output of a conversion.
struct Pair {
    source_type: Value,
    source: Buffer,
    out_type: Value,
    out: Buffer,
}

impl Pair {
    fn new(
        source_type: u32,
        source: *const c_void,
        source_len: u64,
        out_type: u32,
        out: *mut c_void,
        out_len: u64,
    ) -> Result<Self, Fault> {
        let source = Buffer::input(1, source, source_len)?;
        let out = Buffer::output(4, out, out_len)?;
        Ok(Self {
            source_type: Value::from_id(source_type)?,
            source,
            out_type: Value::from_id(out_type)?,
            out,
        })
    }

    fn unsupported_output(&self) -> Fault {
        Fault::Id { status: NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT, id: self.out_type.id() }
    }

    /// Checks the lengths and the memory.
    fn check(&self, call: &Call) -> Result<(), Fault> {
        let (expected, actual) = (self.source.len(), self.out.len());
        if expected != actual {
            return Err(Error::BufferLength { expected, actual }.into());
        }
        call.check_memory(&[
            self.source.first(self.source_type.layout(), expected),
            self.out.first(self.out_type.layout(), actual),
        ])
    }

    /// # Safety
    /// `check` has passed, and nothing else touches the buffers meanwhile.
    unsafe fn convert_exactly(&self) -> Result<(), Error> {
        let len = self.out.len();
        match (self.source_type, self.out_type) {
            (Value::Float(from), Value::I32) => {
                // SAFETY: all values, checked; the output does not overlap them. The same below.
                let source = unsafe { self.source.source(from, 0, len) };
                // SAFETY: all values, checked; they overlap nothing. The same below.
                convert::to_i32_exact(source, unsafe { self.out.slice_mut(0, len) })
            }
            (Value::I64, _) => {
                // SAFETY: as above.
                let source = unsafe { self.source.slice(0, len) };
                // SAFETY: as above.
                convert::i64_to_i32_exact(source, unsafe { self.out.slice_mut(0, len) })
            }
            (Value::U64, _) => {
                // SAFETY: as above.
                let source = unsafe { self.source.slice(0, len) };
                // SAFETY: as above.
                convert::u64_to_i32_exact(source, unsafe { self.out.slice_mut(0, len) })
            }
            (Value::Float(from), Value::Float(ValueType::Bf16)) => {
                // SAFETY: as above.
                let source = unsafe { self.source.source(from, 0, len) };
                // SAFETY: as above.
                convert::to_bf16_exact(source, unsafe { self.out.slice_mut(0, len) })
            }
            (Value::Float(from), _) => {
                // SAFETY: as above.
                let source = unsafe { self.source.source(from, 0, len) };
                // SAFETY: as above.
                convert::to_f32_exact(source, unsafe { self.out.slice_mut(0, len) })
            }
            (Value::I32, _) => Ok(()), // refused before
        }
    }
}
