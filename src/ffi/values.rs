//! Value types by id, and rows of values. Private.

use core::alloc::Layout as TypeLayout;
use core::ffi::c_void;

use super::call::Fault;
use super::memory::{Buffer, Used, layout_of};
use super::status::NINFER_CODEC_STATUS_UNKNOWN_VALUE_TYPE;
use crate::decode::check_strided;
use crate::error::Error;
use crate::geometry::strided_len;
use crate::value::{Output, Source, ValueType};

/// IEEE-754 binary32.
pub const NINFER_CODEC_VALUE_F32: u32 = 1;
/// bfloat16, as uint16_t words.
pub const NINFER_CODEC_VALUE_BF16: u32 = 2;
/// IEEE-754 binary16, as uint16_t words.
pub const NINFER_CODEC_VALUE_F16: u32 = 3;
/// IEEE-754 binary64.
pub const NINFER_CODEC_VALUE_F64: u32 = 4;
/// int32_t; of conversions only.
pub const NINFER_CODEC_VALUE_I32: u32 = 5;
/// int64_t; of conversions only.
pub const NINFER_CODEC_VALUE_I64: u32 = 6;
/// uint64_t; of conversions only.
pub const NINFER_CODEC_VALUE_U64: u32 = 7;

/// A type that has an id.
#[derive(Clone, Copy)]
pub(super) enum Value {
    Float(ValueType),
    I32,
    I64,
    U64,
}

impl Value {
    /// The type with an id.
    pub(super) fn from_id(id: u32) -> Result<Self, Fault> {
        match (ValueType::from_id(id), id) {
            (Some(float), _) => Ok(Self::Float(float)),
            (None, NINFER_CODEC_VALUE_I32) => Ok(Self::I32),
            (None, NINFER_CODEC_VALUE_I64) => Ok(Self::I64),
            (None, NINFER_CODEC_VALUE_U64) => Ok(Self::U64),
            _ => Err(Fault::Id { status: NINFER_CODEC_STATUS_UNKNOWN_VALUE_TYPE, id }),
        }
    }

    /// The floating-point type, or the failure that `status` names.
    pub(super) fn float(self, status: u32) -> Result<ValueType, Fault> {
        match self {
            Self::Float(float) => Ok(float),
            other => Err(Fault::Id { status, id: other.id() }),
        }
    }

    pub(super) const fn id(self) -> u32 {
        match self {
            Self::Float(float) => float as u32,
            Self::I32 => NINFER_CODEC_VALUE_I32,
            Self::I64 => NINFER_CODEC_VALUE_I64,
            Self::U64 => NINFER_CODEC_VALUE_U64,
        }
    }

    pub(super) const fn layout(self) -> TypeLayout {
        match self {
            Self::Float(float) => layout_of(float),
            Self::I32 => TypeLayout::new::<i32>(),
            Self::I64 => TypeLayout::new::<i64>(),
            Self::U64 => TypeLayout::new::<u64>(),
        }
    }
}

/// Rows of values, `stride` elements apart, as yet without a type.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    buffer: Buffer,
    stride: u64,
}

/// Checked rows of values of a type.
#[derive(Clone, Copy)]
pub(super) struct TypedRows {
    buffer: Buffer,
    stride: u64,
    value: ValueType,
    columns: u64,
    elements: u64,
}

impl Rows {
    pub(super) fn input(argument: u64, pointer: *const c_void, len: u64, stride: u64) -> Result<Self, Fault> {
        Ok(Self { buffer: Buffer::input(argument, pointer, len)?, stride })
    }

    pub(super) fn output(argument: u64, pointer: *mut c_void, len: u64, stride: u64) -> Result<Self, Fault> {
        Ok(Self { buffer: Buffer::output(argument, pointer, len)?, stride })
    }

    /// Checks the stride and the length for `rows` rows of `columns` values.
    pub(super) fn typed(self, value: ValueType, rows: u64, columns: u64) -> Result<TypedRows, Error> {
        let Self { buffer, stride } = self;
        check_strided(rows, columns, stride, buffer.len())?;
        let elements = strided_len(rows, columns, stride)?;
        Ok(TypedRows { buffer, stride, value, columns, elements })
    }
}

impl TypedRows {
    /// What a call uses of the buffer.
    pub(super) fn used(&self) -> Used {
        self.buffer.first(layout_of(self.value), self.elements)
    }

    /// How many rows go into one slice that covers nothing but rows: all where they touch, else one.
    pub(super) fn rows_per_slice(&self, rows: u64) -> u64 {
        if self.stride == self.columns { rows } else { 1 }
    }

    /// Rows `[first, first + rows)` to read, where `rows` is at most `rows_per_slice`.
    ///
    /// # Safety
    /// `check_memory` has passed the buffer, the rows are among those checked, and nothing writes them while
    /// the slice lives.
    pub(super) unsafe fn source<'a>(&self, first: u64, rows: u64) -> Source<'a> {
        // SAFETY: `first * stride + rows * columns` is at most the elements that were checked.
        unsafe {
            self.buffer.source(self.value, first.wrapping_mul(self.stride), rows.wrapping_mul(self.columns))
        }
    }

    /// Rows `[first, first + rows)` to write, where `rows` is at most `rows_per_slice`.
    ///
    /// # Safety
    /// As for `source`, the buffer is an output, and nothing else touches the rows while the slice lives.
    pub(super) unsafe fn output<'a>(&self, first: u64, rows: u64) -> Output<'a> {
        // SAFETY: `first * stride + rows * columns` is at most the elements that were checked.
        unsafe {
            self.buffer.values(self.value, first.wrapping_mul(self.stride), rows.wrapping_mul(self.columns))
        }
    }

    /// Elements from one row of a slice to the next.
    pub(super) const fn slice_stride(&self) -> usize {
        self.columns as usize
    }
}
