//! Statuses, faults and the details of a failure.

use core::ffi::{CStr, c_char};

use super::call::Fault;
use crate::error::Error;

/// No failure.
pub const NINFER_CODEC_STATUS_OK: u32 = 0;
/// A pointer is NULL though its length is not 0, or though the argument is needed. Details: `argument`.
pub const NINFER_CODEC_STATUS_NULL_POINTER: u32 = 1;
/// `struct_size` is below what the first version of the struct had; that of a part to be stacked is no multiple of the
/// struct's alignment, or not that of part 0. Details: `argument`, `expected` (the first version's size, or part 0's),
/// `actual`; none where the struct is the details itself.
pub const NINFER_CODEC_STATUS_STRUCT_SIZE: u32 = 2;
/// No format has this id. Details: `actual`.
pub const NINFER_CODEC_STATUS_UNKNOWN_FORMAT: u32 = 3;
/// No layout has this id. Details: `actual`.
pub const NINFER_CODEC_STATUS_UNKNOWN_LAYOUT: u32 = 4;
/// No encoding of resources has this id. Details: `actual`.
pub const NINFER_CODEC_STATUS_UNKNOWN_ENCODING: u32 = 5;
/// No value type has this id. Details: `actual`.
pub const NINFER_CODEC_STATUS_UNKNOWN_VALUE_TYPE: u32 = 6;
/// No plane has this id. Details: `actual`.
pub const NINFER_CODEC_STATUS_UNKNOWN_PLANE: u32 = 7;
/// The registry asked does not hold this name.
pub const NINFER_CODEC_STATUS_UNKNOWN_NAME: u32 = 8;
/// The layout does not hold the format. Details: `expected` (the id of the layout that does), `actual`.
pub const NINFER_CODEC_STATUS_UNSUPPORTED_PAIR: u32 = 9;
/// The layout does not take this number of dimensions. Details: `expected` (the most it takes), `actual`.
pub const NINFER_CODEC_STATUS_WRONG_RANK: u32 = 10;
/// A dimension is zero. Details: `index` (of the first).
pub const NINFER_CODEC_STATUS_ZERO_DIMENSION: u32 = 11;
/// A dimension, or the row count of a slice, gather or stack, is not a multiple of what the layout needs.
/// Details: `index` (of the dimension), `actual`, `multiple`.
pub const NINFER_CODEC_STATUS_NOT_MULTIPLE: u32 = 12;
/// A size, product, sum or alignment exceeds 2^64 - 1.
pub const NINFER_CODEC_STATUS_OVERFLOW: u32 = 13;
/// A size that this machine cannot address. Details: `actual` (bytes or elements), and `argument` where it is
/// the length of one.
pub const NINFER_CODEC_STATUS_TOO_LARGE: u32 = 14;
/// A payload is not exactly as long as its plan says. Details: `expected`, `actual`; for a stack `index` (of
/// the part).
pub const NINFER_CODEC_STATUS_PAYLOAD_LENGTH: u32 = 15;
/// No rows were asked for.
pub const NINFER_CODEC_STATUS_EMPTY_ROWS: u32 = 16;
/// A row, or the end of a range, lies past the tensor. Details: `row` (the first at fault), `expected` (the
/// rows there are).
pub const NINFER_CODEC_STATUS_ROW_OUT_OF_RANGE: u32 = 17;
/// NVFP4 rows to be written are not whole tiles of 128. Details: `row` (the range's first), `actual` (its
/// count), `multiple`.
pub const NINFER_CODEC_STATUS_ROWS_NOT_TILED: u32 = 18;
/// The plane has no row view: NVFP4's scales, whose rows interleave. Details: `actual` (the plane's id).
pub const NINFER_CODEC_STATUS_NO_ROW_VIEW: u32 = 19;
/// The format or conversion has no output of this type. Details: `actual` (the type's id).
pub const NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT: u32 = 20;
/// The operation takes no source of this type. Details: `actual` (the type's id).
pub const NINFER_CODEC_STATUS_UNSUPPORTED_SOURCE: u32 = 21;
/// The contract defines no canonical encoder for the format. Details: `actual` (the format's id).
pub const NINFER_CODEC_STATUS_NO_CANONICAL_ENCODER: u32 = 22;
/// The words given are none of the format's: codes and scales of a format that is not grouped, or a divisor of
/// one that has none. Details: `actual` (the format's id).
pub const NINFER_CODEC_STATUS_WRONG_WORDS: u32 = 23;
/// The columns are none, lie past K, or do not begin at a multiple of the format's group. Details: `column`
/// (the range's first), `actual` (its count), `expected` (K), `multiple`.
pub const NINFER_CODEC_STATUS_COLUMN_RANGE: u32 = 24;
/// The stride is below the row's length. Details: `expected` (the least), `actual`.
pub const NINFER_CODEC_STATUS_STRIDE: u32 = 25;
/// A buffer of values or words is too short, or of the wrong length where lengths are exact. Details:
/// `expected`, `actual`, in elements; `expected` is UINT64_MAX also where a stride asks for more than that.
pub const NINFER_CODEC_STATUS_BUFFER_LENGTH: u32 = 26;
/// A pointer is not aligned for its type. Details: `argument`; none where it is the details pointer itself.
pub const NINFER_CODEC_STATUS_MISALIGNED: u32 = 27;
/// What the call would write overlaps what it would read or write elsewhere; a buffer of rows counts from its first
/// row's first element to its last row's last. Details: `argument` (the later of the two); none, and nothing is written
/// to it, where the details struct is one of the two.
pub const NINFER_CODEC_STATUS_OVERLAP: u32 = 28;
/// Tensors to be stacked differ in format or K. Details: `index` (of the first part that differs from part 0).
pub const NINFER_CODEC_STATUS_STACK_MISMATCH: u32 = 29;
/// NVFP4 matrices to be stacked have different divisor words. Details: `index` (of the part), `expected`,
/// `actual` (the words).
pub const NINFER_CODEC_STATUS_STACK_DIVISOR: u32 = 30;
/// A source value is NaN or infinite. Details: `row`, `column`, `word` (in the source's own type).
pub const NINFER_CODEC_STATUS_NON_FINITE_SOURCE: u32 = 31;
/// A finite source value does not round to a finite binary32. Details: `row`, `column`, `word`.
pub const NINFER_CODEC_STATUS_SOURCE_NOT_REPRESENTABLE: u32 = 32;
/// A group's scale rounds to binary16 infinity. Details: `row`, `group`, `word` (the binary32 scale).
pub const NINFER_CODEC_STATUS_SCALE_OVERFLOW: u32 = 33;
/// The target type does not hold a value exactly. Details: `index` (of the value), `word`.
pub const NINFER_CODEC_STATUS_NOT_EXACT: u32 = 34;
/// A scale word is illegal. Details: `row`, `group` (0 for a row scale), `word`, `fault`.
pub const NINFER_CODEC_STATUS_INVALID_SCALE: u32 = 35;
/// NVFP4's divisor word is illegal. Details: `word`, `fault`.
pub const NINFER_CODEC_STATUS_INVALID_DIVISOR: u32 = 36;
/// A code is outside the format's domain: W8 0x80, an E4M3FN NaN, an integer out of its interval. Details:
/// `row`, `column`, `word` (the code's byte).
pub const NINFER_CODEC_STATUS_INVALID_CODE: u32 = 37;
/// A code that is not zero stands under a zero scale. Details: `row`, `column`, `word` (the code's byte).
pub const NINFER_CODEC_STATUS_ZERO_SCALE_NONZERO_CODE: u32 = 38;
/// A lane at a column at or past K holds a code that is not zero. Details: `row`, `column`, `word`.
pub const NINFER_CODEC_STATUS_PADDING_CODE_NOT_ZERO: u32 = 39;
/// The scale of a wholly physical group is not zero. Details: `row`, `group`, `word`.
pub const NINFER_CODEC_STATUS_PADDING_SCALE_NOT_ZERO: u32 = 40;
/// A byte between two planes is not zero. Details: `offset` (from the payload's start), `word`.
pub const NINFER_CODEC_STATUS_GAP_NOT_ZERO: u32 = 41;

/// The word is a NaN.
pub const NINFER_CODEC_FAULT_NAN: u32 = 1;
/// The word is an infinity.
pub const NINFER_CODEC_FAULT_INFINITE: u32 = 2;
/// The word is zero with the sign bit set.
pub const NINFER_CODEC_FAULT_NEGATIVE_ZERO: u32 = 3;
/// The word is finite, not zero, with the sign bit set.
pub const NINFER_CODEC_FAULT_NEGATIVE: u32 = 4;
/// The word is positive zero where it must be positive.
pub const NINFER_CODEC_FAULT_ZERO: u32 = 5;

/// The numbers of a failure, in a struct of the caller's.
///
/// Set `struct_size` before the call. Every call that accepts the struct fills it, also on success; a number
/// that the status does not have is UINT64_MAX. Where a function takes `details`, NULL means that they are not
/// wanted.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Details {
    /// In: bytes of this struct as the caller knows it. Kept.
    pub struct_size: u64,
    /// The status that the call returned.
    pub status: u32,
    /// NINFER_CODEC_FAULT_: what is wrong with a scale or divisor word, else 0.
    pub fault: u32,
    /// Position of the argument at fault in the function's list, from 0.
    pub argument: u64,
    /// Index of a dimension, a part or a value, from 0.
    pub index: u64,
    /// Row of the whole tensor, or the caller's own number for single rows.
    pub row: u64,
    /// Column.
    pub column: u64,
    /// Group along K.
    pub group: u64,
    /// Bytes from the payload's start.
    pub offset: u64,
    /// The word at fault, in its own type's width, in the low bits.
    pub word: u64,
    /// What would have been right.
    pub expected: u64,
    /// What was given.
    pub actual: u64,
    /// What a number must be a multiple of.
    pub multiple: u64,
}

/// A number that a status does not have.
const ABSENT: u64 = u64::MAX;

impl Details {
    /// The details of a status without numbers.
    pub(super) const fn of(status: u32) -> Self {
        Self {
            struct_size: size_of::<Self>() as u64,
            status,
            fault: 0,
            argument: ABSENT,
            index: ABSENT,
            row: ABSENT,
            column: ABSENT,
            group: ABSENT,
            offset: ABSENT,
            word: ABSENT,
            expected: ABSENT,
            actual: ABSENT,
            multiple: ABSENT,
        }
    }
}

impl From<Fault> for Details {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Codec(error) => error.into(),
            Fault::NullPointer { argument } => {
                Self { argument, ..Self::of(NINFER_CODEC_STATUS_NULL_POINTER) }
            }
            Fault::StructSize { argument, expected, actual } => {
                Self { argument, expected, actual, ..Self::of(NINFER_CODEC_STATUS_STRUCT_SIZE) }
            }
            Fault::Id { status, id } => Self { actual: id.into(), ..Self::of(status) },
            Fault::UnknownName => Self::of(NINFER_CODEC_STATUS_UNKNOWN_NAME),
            Fault::TooLarge { argument, size } => {
                Self { argument, actual: size, ..Self::of(NINFER_CODEC_STATUS_TOO_LARGE) }
            }
            Fault::Misaligned { argument } => Self { argument, ..Self::of(NINFER_CODEC_STATUS_MISALIGNED) },
            Fault::Overlap { argument } => Self { argument, ..Self::of(NINFER_CODEC_STATUS_OVERLAP) },
            Fault::DetailsOverlap => Self::of(NINFER_CODEC_STATUS_OVERLAP),
        }
    }
}

impl From<Error> for Details {
    fn from(error: Error) -> Self {
        match error {
            Error::UnsupportedPair { format, layout } => Self {
                expected: format.layout().id().into(),
                actual: layout.id().into(),
                ..Self::of(NINFER_CODEC_STATUS_UNSUPPORTED_PAIR)
            },
            Error::WrongRank { layout, rank } => Self {
                expected: layout.descriptor().rank.1.into(),
                actual: rank,
                ..Self::of(NINFER_CODEC_STATUS_WRONG_RANK)
            },
            Error::ZeroDimension { axis } => {
                Self { index: axis.into(), ..Self::of(NINFER_CODEC_STATUS_ZERO_DIMENSION) }
            }
            Error::NotMultiple { axis, dimension, multiple } => Self {
                index: axis.into(),
                actual: dimension,
                multiple,
                ..Self::of(NINFER_CODEC_STATUS_NOT_MULTIPLE)
            },
            Error::Overflow => Self::of(NINFER_CODEC_STATUS_OVERFLOW),
            Error::TooLarge { size } => Self { actual: size, ..Self::of(NINFER_CODEC_STATUS_TOO_LARGE) },
            Error::PayloadLength { expected, actual } => {
                Self { expected, actual, ..Self::of(NINFER_CODEC_STATUS_PAYLOAD_LENGTH) }
            }
            Error::EmptyRows => Self::of(NINFER_CODEC_STATUS_EMPTY_ROWS),
            Error::RowOutOfRange { row, rows } => {
                Self { row, expected: rows, ..Self::of(NINFER_CODEC_STATUS_ROW_OUT_OF_RANGE) }
            }
            Error::RowsNotTiled { begin, count } => Self {
                row: begin,
                actual: count,
                multiple: crate::layout::blockscale::TILE_ROWS,
                ..Self::of(NINFER_CODEC_STATUS_ROWS_NOT_TILED)
            },
            Error::NoRowView { plane } => {
                Self { actual: plane as u64, ..Self::of(NINFER_CODEC_STATUS_NO_ROW_VIEW) }
            }
            Error::UnsupportedOutput { output, .. } => {
                Self { actual: output as u64, ..Self::of(NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT) }
            }
            Error::NoCanonicalEncoder { format } => {
                Self { actual: format.id().into(), ..Self::of(NINFER_CODEC_STATUS_NO_CANONICAL_ENCODER) }
            }
            Error::WrongWords { format } => {
                Self { actual: format.id().into(), ..Self::of(NINFER_CODEC_STATUS_WRONG_WORDS) }
            }
            Error::ColumnRange { begin, count, columns, step } => Self {
                column: begin,
                actual: count,
                expected: columns,
                multiple: step,
                ..Self::of(NINFER_CODEC_STATUS_COLUMN_RANGE)
            },
            Error::Stride { stride, columns } => {
                Self { expected: columns, actual: stride, ..Self::of(NINFER_CODEC_STATUS_STRIDE) }
            }
            Error::BufferLength { expected, actual } => {
                Self { expected, actual, ..Self::of(NINFER_CODEC_STATUS_BUFFER_LENGTH) }
            }
            Error::StackMismatch { part } => {
                Self { index: part, ..Self::of(NINFER_CODEC_STATUS_STACK_MISMATCH) }
            }
            Error::StackDivisor { part, expected, actual } => Self {
                index: part,
                expected: expected.into(),
                actual: actual.into(),
                ..Self::of(NINFER_CODEC_STATUS_STACK_DIVISOR)
            },
            Error::NonFiniteSource { row, column, word } => {
                Self { row, column, word, ..Self::of(NINFER_CODEC_STATUS_NON_FINITE_SOURCE) }
            }
            Error::SourceNotRepresentable { row, column, word } => {
                Self { row, column, word, ..Self::of(NINFER_CODEC_STATUS_SOURCE_NOT_REPRESENTABLE) }
            }
            Error::ScaleOverflow { row, group, raw_scale } => {
                Self { row, group, word: raw_scale.into(), ..Self::of(NINFER_CODEC_STATUS_SCALE_OVERFLOW) }
            }
            Error::NotExact { index, word } => {
                Self { index, word, ..Self::of(NINFER_CODEC_STATUS_NOT_EXACT) }
            }
            Error::InvalidScale { row, group, word, fault } => Self {
                fault: fault as u32,
                row,
                group,
                word: word.into(),
                ..Self::of(NINFER_CODEC_STATUS_INVALID_SCALE)
            },
            Error::InvalidDivisor { word, fault } => Self {
                fault: fault as u32,
                word: word.into(),
                ..Self::of(NINFER_CODEC_STATUS_INVALID_DIVISOR)
            },
            Error::InvalidCode { row, column, word } => {
                Self { row, column, word: word.into(), ..Self::of(NINFER_CODEC_STATUS_INVALID_CODE) }
            }
            Error::ZeroScaleNonzeroCode { row, column, word } => Self {
                row,
                column,
                word: word.into(),
                ..Self::of(NINFER_CODEC_STATUS_ZERO_SCALE_NONZERO_CODE)
            },
            Error::PaddingCodeNotZero { row, column, word } => {
                Self { row, column, word: word.into(), ..Self::of(NINFER_CODEC_STATUS_PADDING_CODE_NOT_ZERO) }
            }
            Error::PaddingScaleNotZero { row, group, word } => {
                Self { row, group, word: word.into(), ..Self::of(NINFER_CODEC_STATUS_PADDING_SCALE_NOT_ZERO) }
            }
            Error::GapNotZero { offset, word } => {
                Self { offset, word: word.into(), ..Self::of(NINFER_CODEC_STATUS_GAP_NOT_ZERO) }
            }
        }
    }
}

/// Returns a short English text for a status, without its numbers: static, NUL-terminated, never NULL.
///
/// A number that is no status gives "unknown status".
#[unsafe(no_mangle)]
pub extern "C" fn ninfer_codec_status_message(status: u32) -> *const c_char {
    message(status).as_ptr()
}

const fn message(status: u32) -> &'static CStr {
    match status {
        NINFER_CODEC_STATUS_OK => c"ok",
        NINFER_CODEC_STATUS_NULL_POINTER => c"a needed pointer is NULL",
        NINFER_CODEC_STATUS_STRUCT_SIZE => c"struct_size is too small",
        NINFER_CODEC_STATUS_UNKNOWN_FORMAT => c"unknown format id",
        NINFER_CODEC_STATUS_UNKNOWN_LAYOUT => c"unknown layout id",
        NINFER_CODEC_STATUS_UNKNOWN_ENCODING => c"unknown resource encoding id",
        NINFER_CODEC_STATUS_UNKNOWN_VALUE_TYPE => c"unknown value type id",
        NINFER_CODEC_STATUS_UNKNOWN_PLANE => c"unknown plane id",
        NINFER_CODEC_STATUS_UNKNOWN_NAME => c"unknown name",
        NINFER_CODEC_STATUS_UNSUPPORTED_PAIR => c"the layout does not hold the format",
        NINFER_CODEC_STATUS_WRONG_RANK => c"the layout does not take this number of dimensions",
        NINFER_CODEC_STATUS_ZERO_DIMENSION => c"a dimension is zero",
        NINFER_CODEC_STATUS_NOT_MULTIPLE => c"a dimension is not a multiple of what the layout needs",
        NINFER_CODEC_STATUS_OVERFLOW => c"a size exceeds 64 bits",
        NINFER_CODEC_STATUS_TOO_LARGE => c"a size that this machine cannot address",
        NINFER_CODEC_STATUS_PAYLOAD_LENGTH => c"the payload is not as long as its plan says",
        NINFER_CODEC_STATUS_EMPTY_ROWS => c"no rows were asked for",
        NINFER_CODEC_STATUS_ROW_OUT_OF_RANGE => c"a row is past the rows there are",
        NINFER_CODEC_STATUS_ROWS_NOT_TILED => c"rows to be written are not whole tiles of 128",
        NINFER_CODEC_STATUS_NO_ROW_VIEW => c"the plane has no row view",
        NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT => c"no output of this type",
        NINFER_CODEC_STATUS_UNSUPPORTED_SOURCE => c"no source of this type",
        NINFER_CODEC_STATUS_NO_CANONICAL_ENCODER => c"the format has no canonical encoder",
        NINFER_CODEC_STATUS_WRONG_WORDS => c"these are not the words of the format",
        NINFER_CODEC_STATUS_COLUMN_RANGE => c"not a range of columns that begins at a group",
        NINFER_CODEC_STATUS_STRIDE => c"the stride is below the row's length",
        NINFER_CODEC_STATUS_BUFFER_LENGTH => c"a buffer has the wrong length",
        NINFER_CODEC_STATUS_MISALIGNED => c"a pointer is not aligned for its type",
        NINFER_CODEC_STATUS_OVERLAP => c"what would be written overlaps another buffer",
        NINFER_CODEC_STATUS_STACK_MISMATCH => c"parts differ in format or columns",
        NINFER_CODEC_STATUS_STACK_DIVISOR => c"parts have different divisors",
        NINFER_CODEC_STATUS_NON_FINITE_SOURCE => c"a source value is not finite",
        NINFER_CODEC_STATUS_SOURCE_NOT_REPRESENTABLE => c"a source value is no finite binary32",
        NINFER_CODEC_STATUS_SCALE_OVERFLOW => c"a scale overflows binary16",
        NINFER_CODEC_STATUS_NOT_EXACT => c"a value is not exact in the target type",
        NINFER_CODEC_STATUS_INVALID_SCALE => c"a scale word is illegal",
        NINFER_CODEC_STATUS_INVALID_DIVISOR => c"the divisor word is illegal",
        NINFER_CODEC_STATUS_INVALID_CODE => c"a code is illegal",
        NINFER_CODEC_STATUS_ZERO_SCALE_NONZERO_CODE => c"a nonzero code under a zero scale",
        NINFER_CODEC_STATUS_PADDING_CODE_NOT_ZERO => c"a padding code is not zero",
        NINFER_CODEC_STATUS_PADDING_SCALE_NOT_ZERO => c"the scale of a padding group is not zero",
        NINFER_CODEC_STATUS_GAP_NOT_ZERO => c"a byte between two planes is not zero",
        _ => c"unknown status",
    }
}
