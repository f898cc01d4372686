//! The plan of a tensor: every plane's offset and size, row strides, padded K, payload bytes.

use core::ops::Range;

use super::{Layout, blockscale, contiguous, row_scale, row_split};
use crate::error::Error;
use crate::format::Format;
use crate::geometry::range_end;

/// One plane of a payload, or a part of one. Offsets and sizes are bytes from the payload's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum PlaneKind {
    /// Direct words, base codes, code pairs or code bytes.
    Codes = 1,
    /// The high bits of Q5 and Q6.
    High = 2,
    /// Scale words.
    Scales = 3,
}

impl PlaneKind {
    /// Returns `codes`, `high` or `scales`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Codes => "codes",
            Self::High => "high",
            Self::Scales => "scales",
        }
    }
}

/// Where a plane lies. A plane that the format lacks has zero bytes, at the offset where it would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Plane {
    /// First byte.
    pub offset: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes that a row takes. NVFP4's scale rows take this much too, but interleave in tiles of 128.
    pub row_bytes: u64,
}

impl Plane {
    const fn end(&self) -> u64 {
        self.offset + self.bytes
    }

    const fn rows(&self, begin: u64, end: u64) -> Span {
        Span { offset: self.offset + begin * self.row_bytes, bytes: (end - begin) * self.row_bytes }
    }
}

/// A byte range of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte, from the payload's start.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// The spans of some consecutive rows, one a plane; a plane that the format lacks has a span of zero bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSpans {
    /// Span of the codes plane.
    pub codes: Span,
    /// Span of the high-bits plane.
    pub high: Span,
    /// Span of the scales plane.
    pub scales: Span,
}

/// What one call on some rows may read or write: their planes' spans and, with the last row, what follows
/// each plane: gaps and divisor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PieceSpans {
    pub codes: Span,
    pub codes_gap: Span,
    pub high: Span,
    pub high_gap: Span,
    pub scales: Span,
    pub divisor: Span,
}

/// Every size and offset of one tensor's payload, computed and checked once.
///
/// A tensor is seen as `rows` rows of `columns` elements: the last dimension, and the product of the others.
///
/// ```
/// use ninfer_codec::{Format, Layout, Plan};
/// let plan = Plan::new(Format::Q5G64F16S, Layout::RowSplitK128V1, &[2, 130])?;
/// assert_eq!((plan.padded_columns(), plan.payload_bytes()), (256, 528));
/// # Ok::<(), ninfer_codec::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub(super) format: Format,
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) padded_columns: u64,
    pub(super) codes: Plane,
    pub(super) high: Plane,
    pub(super) scales: Plane,
    pub(super) divisor: Span,
    pub(super) payload_bytes: u64,
}

impl Plan {
    /// Plans a tensor of the given format, layout and dimensions.
    ///
    /// # Errors
    /// In this order: [`Error::UnsupportedPair`], [`Error::WrongRank`], [`Error::ZeroDimension`],
    /// [`Error::NotMultiple`], [`Error::Overflow`].
    ///
    /// # Panics
    /// Never.
    ///
    /// Spec: storage-layouts §1 to §5.
    pub fn new(format: Format, layout: Layout, dimensions: &[u64]) -> Result<Self, Error> {
        if format.layout() != layout {
            return Err(Error::UnsupportedPair { format, layout });
        }
        let descriptor = layout.descriptor();
        let (min, max) = descriptor.rank;
        let rank = dimensions.len() as u64;
        if rank < u64::from(min) || rank > u64::from(max) {
            return Err(Error::WrongRank { layout, rank });
        }
        if let Some((axis, _)) = (0..).zip(dimensions).find(|&(_, &dimension)| dimension == 0) {
            return Err(Error::ZeroDimension { axis });
        }
        if let Some(multiples) = descriptor.multiple_of {
            for ((axis, &dimension), multiple) in (0..).zip(dimensions).zip(multiples) {
                if !dimension.is_multiple_of(multiple) {
                    return Err(Error::NotMultiple { axis, dimension, multiple });
                }
            }
        }
        let (columns, leading) = match dimensions.split_last() {
            Some((&columns, leading)) => (columns, leading),
            None => (1, dimensions),
        };
        let rows = leading
            .iter()
            .try_fold(1u64, |rows, &dimension| rows.checked_mul(dimension))
            .filter(|rows| rows.checked_mul(columns).is_some())
            .ok_or(Error::Overflow)?;
        match format {
            Format::Bf16 | Format::Fp32 | Format::I32 => contiguous::plan(format, rows, columns),
            Format::Q4G64F16S => row_split::plan(format, &row_split::Q4, rows, columns),
            Format::Q5G64F16S => row_split::plan(format, &row_split::Q5, rows, columns),
            Format::Q6G64F16S => row_split::plan(format, &row_split::Q6, rows, columns),
            Format::W8G32F16S => row_split::plan(format, &row_split::W8, rows, columns),
            Format::Nvfp4 => blockscale::plan(rows, columns),
            Format::Fp8E4M3FnRowBf16S => row_scale::plan(rows, columns),
        }
    }

    /// Plans a matrix of the same format and columns with another number of rows, as a slice, gather or
    /// stack makes it.
    ///
    /// # Errors
    /// [`Error::EmptyRows`] for zero rows, [`Error::NotMultiple`], [`Error::Overflow`].
    ///
    /// # Panics
    /// Never.
    pub fn with_rows(&self, rows: u64) -> Result<Self, Error> {
        if rows == 0 {
            return Err(Error::EmptyRows);
        }
        Self::new(self.format, self.layout(), &[rows, self.columns])
    }

    /// Returns the format.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Returns the layout.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.format.layout()
    }

    /// Returns the number of rows: the product of the leading dimensions.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns K, the last dimension.
    #[must_use]
    pub const fn columns(&self) -> u64 {
        self.columns
    }

    /// Returns K as stored: a multiple of 128 for the grouped formats, else K.
    #[must_use]
    pub const fn padded_columns(&self) -> u64 {
        self.padded_columns
    }

    /// Returns the number of elements.
    #[must_use]
    pub const fn elements(&self) -> u64 {
        self.rows * self.columns
    }

    /// Returns the number of logical groups of a row, that is of scale words that mean something: 1 for a
    /// row scale, 0 for direct formats.
    #[must_use]
    pub const fn logical_groups(&self) -> u64 {
        let descriptor = self.format.descriptor();
        match (descriptor.group, descriptor.scale) {
            (Some(_), _) => self.columns.div_ceil(self.format.column_step()),
            (None, Some(_)) => 1,
            (None, None) => 0,
        }
    }

    /// Returns the number of scale words stored for a row, wholly physical groups included.
    #[must_use]
    pub const fn physical_groups(&self) -> u64 {
        match self.format.descriptor().group {
            Some(_) => self.padded_columns / self.format.column_step(),
            None => self.logical_groups(),
        }
    }

    /// Returns the plane of direct words, base codes, code pairs or code bytes.
    #[must_use]
    pub const fn codes(&self) -> Plane {
        self.codes
    }

    /// Returns the plane of high bits.
    #[must_use]
    pub const fn high(&self) -> Plane {
        self.high
    }

    /// Returns the plane of scale words.
    #[must_use]
    pub const fn scales(&self) -> Plane {
        self.scales
    }

    /// Returns the span of the divisor word: 4 bytes for NVFP4, else none.
    #[must_use]
    pub const fn divisor(&self) -> Span {
        self.divisor
    }

    /// Returns the length of the payload in bytes.
    #[must_use]
    pub const fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Returns the length of the payload as a slice's length.
    ///
    /// # Errors
    /// [`Error::TooLarge`] where this target cannot address it.
    ///
    /// # Panics
    /// Never.
    pub fn payload_len(&self) -> Result<usize, Error> {
        let len = isize::try_from(self.payload_bytes);
        len.map(isize::cast_unsigned).map_err(|_| Error::TooLarge { size: self.payload_bytes })
    }

    /// Returns the multiple of bytes at which a payload starts inside a file.
    #[must_use]
    pub const fn alignment(&self) -> u64 {
        self.layout().descriptor().alignment
    }

    /// Returns the spans of rows `[begin, begin + count)` in every plane.
    ///
    /// # Errors
    /// [`Error::EmptyRows`], [`Error::RowOutOfRange`], and [`Error::NoRowView`] for NVFP4, whose scale rows
    /// interleave; its code plane alone has the spans that [`Plan::code_rows`] gives.
    ///
    /// # Panics
    /// Never.
    ///
    /// Spec: storage-layouts §3, Rows.
    pub fn row_spans(&self, begin: u64, count: u64) -> Result<RowSpans, Error> {
        let end = self.check_rows(begin, count)?;
        if self.format == Format::Nvfp4 {
            return Err(Error::NoRowView { plane: PlaneKind::Scales });
        }
        Ok(RowSpans {
            codes: self.codes.rows(begin, end),
            high: self.high.rows(begin, end),
            scales: self.scales.rows(begin, end),
        })
    }

    /// Returns the span of rows `[begin, begin + count)` in the codes plane, of any format.
    ///
    /// # Errors
    /// [`Error::EmptyRows`], [`Error::RowOutOfRange`].
    ///
    /// # Panics
    /// Never.
    pub fn code_rows(&self, begin: u64, count: u64) -> Result<Span, Error> {
        let end = self.check_rows(begin, count)?;
        Ok(self.codes.rows(begin, end))
    }

    /// Bytes of high bits of one group: 8 for Q5, 16 for Q6, else none.
    pub(crate) const fn high_bytes_per_group(&self) -> usize {
        match self.format {
            Format::Q5G64F16S => row_split::Q5_HIGH_BYTES,
            Format::Q6G64F16S => row_split::Q6_HIGH_BYTES,
            _ => 0,
        }
    }

    /// Checks a row range and returns its end.
    pub(crate) fn check_rows(&self, begin: u64, count: u64) -> Result<u64, Error> {
        self.check_rows_of(0..self.rows, begin, count)
    }

    /// Checks a row range of a view of some rows and returns its end.
    pub(crate) fn check_rows_of(&self, view: Range<u64>, begin: u64, count: u64) -> Result<u64, Error> {
        if count == 0 {
            return Err(Error::EmptyRows);
        }
        match range_end(begin, count, view.end) {
            Some(end) if begin >= view.start => Ok(end),
            _ => {
                let row = if begin < view.start { begin } else { begin.max(view.end) };
                Err(Error::RowOutOfRange { row, rows: self.rows })
            }
        }
    }

    /// Checks a row range to be written: NVFP4 goes by whole tiles.
    pub(crate) fn check_rows_written(&self, begin: u64, count: u64) -> Result<u64, Error> {
        let end = self.check_rows(begin, count)?;
        let rows = self.rows_per_tile();
        if begin.is_multiple_of(rows) && count.is_multiple_of(rows) {
            Ok(end)
        } else {
            Err(Error::RowsNotTiled { begin, count })
        }
    }

    /// Rows whose scale words interleave.
    pub(crate) const fn rows_per_tile(&self) -> u64 {
        Self::rows_per_tile_of(self.format)
    }

    /// Rows of a format whose scale words interleave.
    pub(crate) const fn rows_per_tile_of(format: Format) -> u64 {
        match format {
            Format::Nvfp4 => blockscale::TILE_ROWS,
            _ => 1,
        }
    }

    /// What rows `[begin, end)`, a checked range, may touch; a scale span is widened to whole tiles.
    pub(crate) const fn piece(&self, begin: u64, end: u64) -> PieceSpans {
        let tile = self.rows_per_tile();
        let last = end == self.rows;
        PieceSpans {
            codes: self.codes.rows(begin, end),
            codes_gap: gap(&self.codes, self.high.offset, last),
            high: self.high.rows(begin, end),
            high_gap: gap(&self.high, self.scales.offset, last),
            scales: self.scales.rows(begin - begin % tile, end.next_multiple_of(tile)),
            divisor: if last { self.divisor } else { Span { offset: self.divisor.offset, bytes: 0 } },
        }
    }
}

const fn gap(plane: &Plane, next_offset: u64, present: bool) -> Span {
    let bytes = if present { next_offset - plane.end() } else { 0 };
    Span { offset: plane.end(), bytes }
}
