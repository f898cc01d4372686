//! One variant a failure, each with its numbers.
//!
//! Arguments are checked before the first write, in this order: format and layout pair, rank, zero dimension,
//! multiples, overflow, payload length, empty rows, row out of range, multiple of 128, what the operation asks
//! of the format (output type, canonical encoder), column range, stride, buffer length. The C functions add
//! alignment and overlap. Faults in the data come after.

use core::fmt;

use crate::format::{Format, WordFault};
use crate::layout::{Layout, PlaneKind};
use crate::value::ValueType;

/// Everything that can go wrong, except an unknown name ([`UnknownName`]).
///
/// Rows are numbers of the whole tensor, whatever range was worked on; columns and groups count along K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The layout does not hold the format.
    UnsupportedPair {
        /// The format asked for.
        format: Format,
        /// The layout asked for.
        layout: Layout,
    },
    /// The layout does not take this number of dimensions.
    WrongRank {
        /// The layout asked for.
        layout: Layout,
        /// Number of dimensions given.
        rank: u64,
    },
    /// A dimension is zero.
    ZeroDimension {
        /// Index of the first such dimension.
        axis: u32,
    },
    /// A dimension, or the row count of a slice, gather or stack, is not a multiple of what the layout needs.
    NotMultiple {
        /// Index of the dimension.
        axis: u32,
        /// The dimension.
        dimension: u64,
        /// What it must be a multiple of.
        multiple: u64,
    },
    /// A size, product, sum or alignment exceeds 2^64 - 1.
    Overflow,
    /// A size that this target cannot address.
    TooLarge {
        /// The bytes or elements that were asked for.
        size: u64,
    },
    /// The payload is not exactly as long as the plan says.
    PayloadLength {
        /// Bytes the plan asks for.
        expected: u64,
        /// Bytes given.
        actual: u64,
    },
    /// A range or list of no rows.
    EmptyRows,
    /// A row, or a part of a range, lies outside the view.
    RowOutOfRange {
        /// The first row at fault.
        row: u64,
        /// Rows of the whole tensor.
        rows: u64,
    },
    /// A range written to does not consist of whole 128-row tiles.
    RowsNotTiled {
        /// First row of the range.
        begin: u64,
        /// Rows in the range.
        count: u64,
    },
    /// NVFP4's scale plane, where the rows of a tile interleave, has no row view.
    NoRowView {
        /// The plane.
        plane: PlaneKind,
    },
    /// The format cannot be decoded to this type.
    UnsupportedOutput {
        /// The tensor's format.
        format: Format,
        /// The type asked for.
        output: ValueType,
    },
    /// The contract defines no canonical encoder for the format.
    NoCanonicalEncoder {
        /// The tensor's format.
        format: Format,
    },
    /// The kind of words given does not belong to the format.
    WrongWords {
        /// The tensor's format.
        format: Format,
    },
    /// The columns are none, lie past K, or do not begin at a multiple of the format's group.
    ColumnRange {
        /// First column.
        begin: u64,
        /// Number of columns.
        count: u64,
        /// K.
        columns: u64,
        /// What `begin` must be a multiple of.
        step: u64,
    },
    /// Rows would overlap: the stride is below the row's length.
    Stride {
        /// Elements from one row to the next.
        stride: u64,
        /// Elements of a row.
        columns: u64,
    },
    /// A buffer of values or words is too short, or of the wrong length where lengths are exact.
    BufferLength {
        /// Elements needed; `u64::MAX` also where a stride asks for more than that.
        expected: u64,
        /// Elements given.
        actual: u64,
    },
    /// Tensors to be stacked differ in format or K.
    StackMismatch {
        /// Index of the first part that differs from part 0.
        part: u64,
    },
    /// NVFP4 matrices to be stacked have different divisor words.
    StackDivisor {
        /// Index of the first part that differs from part 0.
        part: u64,
        /// Part 0's divisor word.
        expected: u32,
        /// That part's divisor word.
        actual: u32,
    },
    /// A source value is NaN or infinite.
    NonFiniteSource {
        /// Row of the value.
        row: u64,
        /// Column of the value.
        column: u64,
        /// The word, in the source's own type.
        word: u64,
    },
    /// A finite source value does not round to a finite binary32.
    SourceNotRepresentable {
        /// Row of the value.
        row: u64,
        /// Column of the value.
        column: u64,
        /// The word, in the source's own type.
        word: u64,
    },
    /// A group's scale rounds to binary16 infinity.
    ScaleOverflow {
        /// Row of the group.
        row: u64,
        /// Index of the group in its row.
        group: u64,
        /// The binary32 word of the scale before narrowing.
        raw_scale: u32,
    },
    /// An explicit conversion met a value that the target type does not hold exactly.
    NotExact {
        /// Index of the value.
        index: u64,
        /// The word, in the source's own type.
        word: u64,
    },
    /// A scale word is illegal; the group of a row scale is 0.
    InvalidScale {
        /// Row of the scale.
        row: u64,
        /// Index of the scale's group in its row.
        group: u64,
        /// The word.
        word: u16,
        /// What is wrong with it.
        fault: WordFault,
    },
    /// NVFP4's divisor word is illegal.
    InvalidDivisor {
        /// The word.
        word: u32,
        /// What is wrong with it.
        fault: WordFault,
    },
    /// A code is outside the format's domain: W8 0x80, an E4M3FN NaN, or an integer out of its interval.
    InvalidCode {
        /// Row of the code.
        row: u64,
        /// Column of the code.
        column: u64,
        /// The code's byte.
        word: u8,
    },
    /// A code that is not zero stands under a zero scale.
    ZeroScaleNonzeroCode {
        /// Row of the code.
        row: u64,
        /// Column of the code.
        column: u64,
        /// The code's byte.
        word: u8,
    },
    /// A lane at a column at or past K holds a code that is not zero.
    PaddingCodeNotZero {
        /// Row of the lane.
        row: u64,
        /// Column of the lane, at or past K.
        column: u64,
        /// The code's byte.
        word: u8,
    },
    /// The scale of a wholly physical group is not zero.
    PaddingScaleNotZero {
        /// Row of the group.
        row: u64,
        /// Physical index of the group in its row.
        group: u64,
        /// The word.
        word: u16,
    },
    /// A byte between two planes is not zero.
    GapNotZero {
        /// Offset from the payload's start.
        offset: u64,
        /// The byte.
        word: u8,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UnsupportedPair { format, layout } => {
                write!(f, "layout {} does not hold format {}; {} does", layout, format, format.layout())
            }
            Self::WrongRank { layout, rank } => {
                let (min, max) = layout.descriptor().rank;
                if min == max {
                    write!(f, "layout {layout} takes {min} dimensions, not {rank}")
                } else {
                    write!(f, "layout {layout} takes {min} to {max} dimensions, not {rank}")
                }
            }
            Self::ZeroDimension { axis } => write!(f, "dimension {axis} is zero"),
            Self::NotMultiple { axis, dimension, multiple } => {
                write!(f, "dimension {axis} is {dimension}, not a multiple of {multiple}")
            }
            Self::Overflow => write!(f, "a size exceeds 64 bits"),
            Self::TooLarge { size } => write!(f, "{size} is more than this machine can address"),
            Self::PayloadLength { expected, actual } => {
                write!(f, "the payload has {actual} bytes, not {expected}")
            }
            Self::EmptyRows => write!(f, "no rows were asked for"),
            Self::RowOutOfRange { row, rows } => {
                write!(f, "row {row} is outside the view, of a tensor of {rows} rows")
            }
            Self::RowsNotTiled { begin, count } => {
                write!(f, "rows {begin} and the {count} from there are not whole tiles of 128 rows")
            }
            Self::NoRowView { plane } => write!(f, "the {} plane has no row view", plane.name()),
            Self::UnsupportedOutput { format, output } => {
                write!(f, "{} does not decode to {}", format.name(), output.name())
            }
            Self::NoCanonicalEncoder { format } => write!(f, "{} has no canonical encoder", format.name()),
            Self::WrongWords { format } => write!(f, "these are not the words of {}", format.name()),
            Self::ColumnRange { begin, count, columns, step } => write!(
                f,
                "columns {begin} and the {count} from there are not a range of the {columns} there are that begins at a multiple of {step}"
            ),
            Self::Stride { stride, columns } => {
                write!(f, "a stride of {stride} is below the row's {columns} elements")
            }
            Self::BufferLength { expected, actual } => {
                write!(f, "a buffer has {actual} elements, not {expected}")
            }
            Self::StackMismatch { part } => write!(f, "part {part} differs from part 0 in format or columns"),
            Self::StackDivisor { part, expected, actual } => {
                write!(f, "part {part} has divisor {actual:#010x}, part 0 has {expected:#010x}")
            }
            Self::NonFiniteSource { row, column, word } => {
                write!(f, "row {row}, column {column}: source word {word:#x} is not finite")
            }
            Self::SourceNotRepresentable { row, column, word } => {
                write!(f, "row {row}, column {column}: source word {word:#x} is no finite binary32")
            }
            Self::ScaleOverflow { row, group, raw_scale } => {
                write!(f, "row {row}, group {group}: scale {raw_scale:#010x} overflows binary16")
            }
            Self::NotExact { index, word } => {
                write!(f, "value {index}: word {word:#x} is not exact in the target type")
            }
            Self::InvalidScale { row, group, word, fault } => {
                write!(f, "row {row}, group {group}: scale word {word:#06x} is {}", fault.describe())
            }
            Self::InvalidDivisor { word, fault } => {
                write!(f, "divisor word {word:#010x} is {}", fault.describe())
            }
            Self::InvalidCode { row, column, word } => {
                write!(f, "row {row}, column {column}: code {word:#04x} is not legal")
            }
            Self::ZeroScaleNonzeroCode { row, column, word } => {
                write!(f, "row {row}, column {column}: code {word:#04x} under a zero scale")
            }
            Self::PaddingCodeNotZero { row, column, word } => {
                write!(f, "row {row}, padding column {column}: code {word:#04x} is not zero")
            }
            Self::PaddingScaleNotZero { row, group, word } => {
                write!(f, "row {row}, padding group {group}: scale word {word:#06x} is not zero")
            }
            Self::GapNotZero { offset, word } => {
                write!(f, "byte {offset} between two planes is {word:#04x}, not zero")
            }
        }
    }
}

impl core::error::Error for Error {}

/// A name that the registry asked does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName<'n> {
    /// The name, as it was given.
    pub name: &'n [u8],
}

impl fmt::Display for UnknownName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown name \"{}\"", self.name.escape_ascii())
    }
}

impl core::error::Error for UnknownName<'_> {}
