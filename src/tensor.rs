//! Checked views: some consecutive rows of one payload, to read ([`Tensor`]) or to write ([`TensorMut`]).
//!
//! A view holds one slice a plane, so that disjoint row ranges of a payload can be worked on at the same
//! time. The operations are methods: `decode` in `decode`, `validate` in `validate`, `slice`, `gather`
//! and `stack` in `rows`, `quantize` in `encode`, `pack` and `unpack` in `words`.

use core::fmt;
use core::ops::Range;

use crate::error::Error;
use crate::layout::{PieceSpans, Plan, Span, blockscale};

/// Some consecutive rows of a payload, to read.
///
/// Row numbers, in arguments and in errors, are those of the whole tensor.
///
/// ```
/// use ninfer_codec::{Format, Layout, Plan, Tensor};
/// let plan = Plan::new(Format::Bf16, Layout::ContiguousLeV1, &[2, 2])?;
/// let payload = [0x80, 0x3f, 0x00, 0x40, 0x40, 0x40, 0x80, 0x40];
/// let mut row = [0.0f32; 2];
/// Tensor::new(plan, &payload)?.rows(1, 1)?.decode(&mut row[..], 2)?;
/// assert_eq!(row, [3.0, 4.0]);
/// # Ok::<(), ninfer_codec::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    pub(crate) plan: Plan,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) codes: &'a [u8],
    pub(crate) codes_gap: &'a [u8],
    pub(crate) high: &'a [u8],
    pub(crate) high_gap: &'a [u8],
    pub(crate) scales: &'a [u8],
    pub(crate) divisor: &'a [u8],
}

/// Some consecutive rows of a payload, to write.
///
/// The gaps between planes, and NVFP4's divisor, belong to the view that holds the last row.
pub struct TensorMut<'a> {
    pub(crate) plan: Plan,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) codes: &'a mut [u8],
    pub(crate) codes_gap: &'a mut [u8],
    pub(crate) high: &'a mut [u8],
    pub(crate) high_gap: &'a mut [u8],
    pub(crate) scales: &'a mut [u8],
    pub(crate) divisor: &'a mut [u8],
}

/// Shows the plan and the rows, not the bytes.
impl fmt::Debug for Tensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, "Tensor", &self.plan, self.begin..self.end)
    }
}

/// Shows the plan and the rows, not the bytes.
impl fmt::Debug for TensorMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, "TensorMut", &self.plan, self.begin..self.end)
    }
}

fn show(f: &mut fmt::Formatter<'_>, name: &str, plan: &Plan, rows: Range<u64>) -> fmt::Result {
    f.debug_struct(name).field("plan", plan).field("rows", &rows).finish_non_exhaustive()
}

impl<'a> Tensor<'a> {
    /// Views a whole payload.
    ///
    /// # Errors
    /// [`Error::PayloadLength`] unless `payload` is exactly as long as the plan says.
    ///
    /// # Panics
    /// Never.
    pub fn new(plan: Plan, payload: &'a [u8]) -> Result<Self, Error> {
        check_length(&plan, payload.len())?;
        Ok(Self::from_spans(plan, 0, plan.rows(), |span| part(payload, span)))
    }

    /// Makes a view of a checked row range out of the slices that `get` gives for the spans it may read.
    pub(crate) fn from_spans(plan: Plan, begin: u64, end: u64, get: impl Fn(Span) -> &'a [u8]) -> Self {
        let spans = plan.piece(begin, end);
        Self {
            plan,
            begin,
            end,
            codes: get(spans.codes),
            codes_gap: get(spans.codes_gap),
            high: get(spans.high),
            high_gap: get(spans.high_gap),
            scales: get(spans.scales),
            divisor: get(plan.divisor()), // every range is read with it
        }
    }

    /// Returns the plan of the whole tensor.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the first row of the view.
    #[must_use]
    pub const fn begin(&self) -> u64 {
        self.begin
    }

    /// Returns the number of rows of the view.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.end - self.begin
    }

    /// Views rows `[begin, begin + count)` of the tensor; they must lie inside this view.
    ///
    /// # Errors
    /// [`Error::EmptyRows`], [`Error::RowOutOfRange`].
    ///
    /// # Panics
    /// Never.
    pub fn rows(&self, begin: u64, count: u64) -> Result<Self, Error> {
        let end = self.plan.check_rows_of(self.begin..self.end, begin, count)?;
        let old = self.plan.piece(self.begin, self.end);
        let new = self.plan.piece(begin, end);
        Ok(Self {
            plan: self.plan,
            begin,
            end,
            codes: within(self.codes, old.codes, new.codes),
            codes_gap: within(self.codes_gap, old.codes_gap, new.codes_gap),
            high: within(self.high, old.high, new.high),
            high_gap: within(self.high_gap, old.high_gap, new.high_gap),
            scales: within(self.scales, old.scales, new.scales),
            divisor: self.divisor,
        })
    }

    /// The codes of a row of the view, by its number in the tensor.
    pub(crate) fn row_codes(&self, row: u64) -> &'a [u8] {
        row_of(self.codes, row - self.begin, self.plan.codes().row_bytes)
    }

    /// The high bits of a row of the view.
    pub(crate) fn row_high(&self, row: u64) -> &'a [u8] {
        row_of(self.high, row - self.begin, self.plan.high().row_bytes)
    }

    /// The scale bytes of a row of the view; not for NVFP4.
    pub(crate) fn row_scales(&self, row: u64) -> &'a [u8] {
        row_of(self.scales, row - self.begin, self.plan.scales().row_bytes)
    }

    /// NVFP4's scale word of a row of the view.
    pub(crate) fn block_scale(&self, row: u64, group: u64) -> u8 {
        let first_row = self.begin - self.begin % self.plan.rows_per_tile();
        let groups = self.plan.logical_groups();
        let offset = blockscale::scale_offset(row - first_row, group, groups);
        usize::try_from(offset).ok().and_then(|offset| self.scales.get(offset)).copied().unwrap_or(0)
    }

    /// The row's only scale word, for FP8 rows.
    pub(crate) fn row_scale(&self, row: u64) -> u16 {
        self.row_scales(row).first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes))
    }

    /// NVFP4's divisor word.
    pub(crate) fn divisor_word(&self) -> u32 {
        self.divisor.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }
}

impl<'a> TensorMut<'a> {
    /// Views a whole payload; its contents do not matter.
    ///
    /// # Errors
    /// [`Error::PayloadLength`] unless `payload` is exactly as long as the plan says.
    ///
    /// # Panics
    /// Never.
    pub fn new(plan: Plan, payload: &'a mut [u8]) -> Result<Self, Error> {
        check_length(&plan, payload.len())?;
        // The spans of all rows follow one another without a hole, so cutting in order gives each its bytes.
        let mut rest = payload;
        Ok(Self::from_spans(plan, 0, plan.rows(), |span| cut(&mut rest, span.bytes)))
    }

    /// Makes a view of a checked row range out of the slices that `get` gives for the spans it may write;
    /// `get` is asked in the order of the bytes.
    pub(crate) fn from_spans(
        plan: Plan,
        begin: u64,
        end: u64,
        mut get: impl FnMut(Span) -> &'a mut [u8],
    ) -> Self {
        let PieceSpans { codes, codes_gap, high, high_gap, scales, divisor } = plan.piece(begin, end);
        Self {
            plan,
            begin,
            end,
            codes: get(codes),
            codes_gap: get(codes_gap),
            high: get(high),
            high_gap: get(high_gap),
            scales: get(scales),
            divisor: get(divisor),
        }
    }

    /// Returns the plan of the whole tensor.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the first row of the view.
    #[must_use]
    pub const fn begin(&self) -> u64 {
        self.begin
    }

    /// Returns the number of rows of the view.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.end - self.begin
    }

    /// Splits the view before `row`, a row of the tensor, into two that can be written at the same time.
    ///
    /// # Errors
    /// [`Error::EmptyRows`] if one side would have no rows, [`Error::RowOutOfRange`],
    /// [`Error::RowsNotTiled`] for NVFP4 unless `row` is a multiple of 128.
    ///
    /// # Panics
    /// Never.
    ///
    /// ```
    /// use ninfer_codec::{Format, Layout, Plan, TensorMut};
    /// let plan = Plan::new(Format::W8G32F16S, Layout::RowSplitK128V1, &[4, 32])?;
    /// let mut payload = vec![0u8; plan.payload_len()?];
    /// let (mut top, mut bottom) = TensorMut::new(plan, &mut payload)?.split_at_row(1)?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(move || top.quantize(&[1.0f32; 32][..], 32));
    ///     scope.spawn(move || bottom.quantize(&[2.0f32; 96][..], 32));
    /// });
    /// # Ok::<(), ninfer_codec::Error>(())
    /// ```
    pub fn split_at_row(self, row: u64) -> Result<(Self, Self), Error> {
        if row < self.begin || row > self.end {
            return Err(Error::RowOutOfRange { row, rows: self.plan.rows() });
        }
        if row == self.begin || row == self.end {
            return Err(Error::EmptyRows);
        }
        self.plan.check_rows_written(self.begin, row - self.begin)?;
        let top = self.plan.piece(self.begin, row);
        let (codes, codes_below) = split(self.codes, top.codes.bytes);
        let (high, high_below) = split(self.high, top.high.bytes);
        let (scales, scales_below) = split(self.scales, top.scales.bytes);
        let plan = self.plan;
        Ok((
            Self {
                plan,
                begin: self.begin,
                end: row,
                codes,
                codes_gap: &mut [],
                high,
                high_gap: &mut [],
                scales,
                divisor: &mut [],
            },
            Self {
                plan,
                begin: row,
                end: self.end,
                codes: codes_below,
                codes_gap: self.codes_gap,
                high: high_below,
                high_gap: self.high_gap,
                scales: scales_below,
                divisor: self.divisor,
            },
        ))
    }

    /// Views rows `[begin, begin + count)` of the tensor; they must lie inside this view.
    ///
    /// # Errors
    /// [`Error::EmptyRows`], [`Error::RowOutOfRange`], [`Error::RowsNotTiled`] for NVFP4 unless `begin` and
    /// `count` are multiples of 128.
    ///
    /// # Panics
    /// Never.
    pub fn rows_mut(&mut self, begin: u64, count: u64) -> Result<TensorMut<'_>, Error> {
        let end = self.plan.check_rows_of(self.begin..self.end, begin, count)?;
        self.plan.check_rows_written(begin, count)?;
        let mut view = self.reborrow();
        if view.begin < begin {
            (_, view) = view.split_at_row(begin)?;
        }
        if end < view.end {
            (view, _) = view.split_at_row(end)?;
        }
        Ok(view)
    }

    /// The same view under a shorter borrow.
    fn reborrow(&mut self) -> TensorMut<'_> {
        TensorMut {
            plan: self.plan,
            begin: self.begin,
            end: self.end,
            codes: self.codes,
            codes_gap: self.codes_gap,
            high: self.high,
            high_gap: self.high_gap,
            scales: self.scales,
            divisor: self.divisor,
        }
    }

    /// Writes what belongs to no row: zeros between the planes.
    pub(crate) fn clear_gaps(&mut self) {
        self.codes_gap.fill(0);
        self.high_gap.fill(0);
    }

    /// The bytes of a row of the view in each plane; the scales not for NVFP4.
    pub(crate) fn row_mut(&mut self, row: u64) -> RowMut<'_> {
        let index = row - self.begin;
        RowMut {
            codes: row_of_mut(self.codes, index, self.plan.codes().row_bytes),
            high: row_of_mut(self.high, index, self.plan.high().row_bytes),
            scales: row_of_mut(self.scales, index, self.plan.scales().row_bytes),
        }
    }

    /// The bytes of a row of the view and of all rows after it in each plane; the scales not for NVFP4.
    pub(crate) fn rest_mut(&mut self, row: u64) -> RowMut<'_> {
        let index = row - self.begin;
        RowMut {
            codes: split(self.codes, index.wrapping_mul(self.plan.codes().row_bytes)).1,
            high: split(self.high, index.wrapping_mul(self.plan.high().row_bytes)).1,
            scales: split(self.scales, index.wrapping_mul(self.plan.scales().row_bytes)).1,
        }
    }

    /// Writes NVFP4's scale word of a row of the view, which begins at a whole tile.
    pub(crate) fn set_block_scale(&mut self, row: u64, group: u64, word: u8) {
        let offset = blockscale::scale_offset(row - self.begin, group, self.plan.logical_groups());
        if let Some(byte) = usize::try_from(offset).ok().and_then(|offset| self.scales.get_mut(offset)) {
            *byte = word;
        }
    }
}

/// The bytes of one row, or some, in each plane, to write.
pub(crate) struct RowMut<'a> {
    pub codes: &'a mut [u8],
    pub high: &'a mut [u8],
    pub scales: &'a mut [u8],
}

fn check_length(plan: &Plan, actual: usize) -> Result<(), Error> {
    let actual = actual as u64;
    let expected = plan.payload_bytes();
    if actual == expected { Ok(()) } else { Err(Error::PayloadLength { expected, actual }) }
}

// The spans below lie inside the slices they cut, as the plan was checked against the payload. Sizes fit
// `usize` for the same reason. The empty slices that the compiler asks for are never taken.

pub(crate) fn part(bytes: &[u8], span: Span) -> &[u8] {
    let begin = usize::try_from(span.offset).unwrap_or(usize::MAX);
    let len = usize::try_from(span.bytes).unwrap_or(usize::MAX);
    bytes.get(begin..).and_then(|rest| rest.get(..len)).unwrap_or(&[])
}

/// The part `new` of a plane, of which `bytes` is the part `old`.
fn within(bytes: &[u8], old: Span, new: Span) -> &[u8] {
    part(bytes, Span { offset: new.offset.wrapping_sub(old.offset), bytes: new.bytes })
}

fn row_of(plane: &[u8], index: u64, row_bytes: u64) -> &[u8] {
    part(plane, Span { offset: index.wrapping_mul(row_bytes), bytes: row_bytes })
}

pub(crate) fn part_mut(bytes: &mut [u8], span: Span) -> &mut [u8] {
    let (_, rest) = split(bytes, span.offset);
    split(rest, span.bytes).0
}

fn row_of_mut(plane: &mut [u8], index: u64, row_bytes: u64) -> &mut [u8] {
    part_mut(plane, Span { offset: index.wrapping_mul(row_bytes), bytes: row_bytes })
}

fn split(bytes: &mut [u8], at: u64) -> (&mut [u8], &mut [u8]) {
    let at = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    bytes.split_at_mut_checked(at).unwrap_or_default()
}

fn cut<'a>(rest: &mut &'a mut [u8], bytes: u64) -> &'a mut [u8] {
    let (head, tail) = split(core::mem::take(rest), bytes);
    *rest = tail;
    head
}
