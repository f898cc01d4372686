//! New payloads out of rows of others: slice, gather, stack. No code is unpacked. Spec: storage-layouts §3 to
//! §5.

use crate::backend::{self, Stores};
use crate::error::Error;
use crate::format::Format;
use crate::layout::blockscale::{TILE_BYTES, TILE_ROWS, scale_offset};
use crate::layout::{Plan, Plane, Span};
use crate::tensor::{Tensor, TensorMut, part, part_mut};
use crate::words::copy;

impl Tensor<'_> {
    /// Writes the rows of the view as a standalone payload and returns its plan: rank 2, the view's rows.
    ///
    /// `out` must be exactly as long as `plan().with_rows(count())` says.
    ///
    /// # Errors
    /// [`Error::NotMultiple`] for NVFP4 unless the rows are a multiple of 128, [`Error::PayloadLength`].
    /// Nothing is written then.
    ///
    /// # Panics
    /// Never.
    pub fn slice(&self, out: &mut [u8]) -> Result<Plan, Error> {
        let plan = self.plan.with_rows(self.count())?;
        let mut target = TensorMut::new(plan, out)?;
        target.copy_rows(0, self, self.begin..self.end);
        target.finish(self);
        Ok(plan)
    }

    /// Writes any rows of the view, in any order, with repeats, as a standalone payload and returns its plan.
    ///
    /// # Errors
    /// [`Error::EmptyRows`], [`Error::RowOutOfRange`], [`Error::NotMultiple`] for NVFP4 unless the rows are a
    /// multiple of 128, [`Error::PayloadLength`]. Nothing is written then.
    ///
    /// # Panics
    /// Never.
    ///
    /// ```
    /// use ninfer_codec::{Format, Layout, Plan, Tensor};
    /// let plan = Plan::new(Format::Bf16, Layout::ContiguousLeV1, &[3, 1])?;
    /// let mut out = [0; 4];
    /// Tensor::new(plan, &[1, 0, 2, 0, 3, 0])?.gather(&[2, 0], &mut out)?;
    /// assert_eq!(out, [3, 0, 1, 0]);
    /// # Ok::<(), ninfer_codec::Error>(())
    /// ```
    pub fn gather(&self, rows: &[u64], out: &mut [u8]) -> Result<Plan, Error> {
        self.check_list(rows)?;
        let plan = self.plan.with_rows(rows.len() as u64)?;
        let mut target = TensorMut::new(plan, out)?;
        target.copy_rows(0, self, rows.iter().copied());
        target.finish(self);
        Ok(plan)
    }
}

/// Joins the rows of several views into one standalone payload and returns its plan.
///
/// All parts have one format and K. NVFP4 parts have a multiple of 128 rows each and the same divisor word.
///
/// # Errors
/// [`Error::EmptyRows`] for no parts, [`Error::StackMismatch`], [`Error::StackDivisor`],
/// [`Error::NotMultiple`], [`Error::Overflow`], [`Error::PayloadLength`]. Nothing is written then.
///
/// # Panics
/// Never.
///
/// Spec: storage-layouts §4.
pub fn stack(parts: &[Tensor<'_>], out: &mut [u8]) -> Result<Plan, Error> {
    let plan = plan_stack(parts.iter().copied())?;
    TensorMut::new(plan, out)?.write_stack(parts.iter().copied());
    Ok(plan)
}

/// Checks that views can be stacked, and plans the result.
pub(crate) fn plan_stack<'a>(parts: impl Iterator<Item = Tensor<'a>>) -> Result<Plan, Error> {
    let mut first: Option<Tensor<'_>> = None;
    let mut rows = 0u64;
    for (part, tensor) in (0..).zip(parts) {
        let first = first.get_or_insert(tensor);
        if (tensor.plan.format(), tensor.plan.columns()) != (first.plan.format(), first.plan.columns()) {
            return Err(Error::StackMismatch { part });
        }
        if tensor.divisor_word() != first.divisor_word() {
            let (expected, actual) = (first.divisor_word(), tensor.divisor_word());
            return Err(Error::StackDivisor { part, expected, actual });
        }
        first.plan.with_rows(tensor.count())?;
        rows = rows.checked_add(tensor.count()).ok_or(Error::Overflow)?;
    }
    first.ok_or(Error::EmptyRows)?.plan.with_rows(rows)
}

impl TensorMut<'_> {
    /// Writes the rows of views that `plan_stack` has checked, to a view of all rows of its plan.
    pub(crate) fn write_stack<'a>(&mut self, parts: impl Iterator<Item = Tensor<'a>>) {
        let mut begin = 0;
        for tensor in parts {
            self.copy_rows(begin, &tensor, tensor.begin..tensor.end);
            self.finish(&tensor);
            begin += tensor.count();
        }
    }

    /// Copies checked rows of `source`, a tensor of the same format and K, to the rows from `begin` on.
    pub(crate) fn copy_rows(&mut self, begin: u64, source: &Tensor<'_>, rows: impl Iterator<Item = u64>) {
        let stores = Stores::new(self.codes.len());
        let mut rows = rows.peekable();
        let mut target = begin;
        while let Some(first) = rows.next() {
            // Rows that follow one another by number do so in every plane too, but for NVFP4's scales.
            let mut count = 1;
            while rows.next_if_eq(&(first + count)).is_some() {
                count += 1;
            }
            self.copy_run(target, source, first, count, &stores);
            target += count;
        }
    }

    fn copy_run(&mut self, target: u64, source: &Tensor<'_>, first: u64, count: u64, stores: &Stores) {
        let (plan, at, from) = (self.plan, target - self.begin, first - source.begin);
        let span =
            |plane: &Plane, row| Span { offset: row * plane.row_bytes, bytes: count * plane.row_bytes };
        let codes = plan.codes();
        backend::copy(part_mut(self.codes, span(&codes, at)), part(source.codes, span(&codes, from)), stores);
        if plan.format() == Format::Nvfp4 {
            return self.copy_block_scales(target, source, first, count);
        }
        for (target, source, plane) in
            [(&mut *self.high, source.high, plan.high()), (&mut *self.scales, source.scales, plan.scales())]
        {
            backend::copy(part_mut(target, span(&plane, at)), part(source, span(&plane, from)), stores);
        }
    }

    /// Copies NVFP4's scale words: whole tiles where both sides have them, else four words at a time.
    fn copy_block_scales(&mut self, target: u64, source: &Tensor<'_>, first: u64, count: u64) {
        let groups = self.plan.logical_groups();
        let source_tile = source.begin - source.begin % TILE_ROWS;
        let mut done = 0;
        while done < count {
            let (to, from) = (target + done - self.begin, first + done - source_tile);
            let rows = if to % TILE_ROWS == 0 && from % TILE_ROWS == 0 {
                (count - done) / TILE_ROWS * TILE_ROWS
            } else {
                0
            };
            if rows > 0 {
                let span = |row| Span { offset: row * groups, bytes: rows * groups };
                copy(part_mut(self.scales, span(to)), part(source.scales, span(from)));
                done += rows;
                continue;
            }
            let tile = TILE_BYTES as usize;
            let target = after_mut(self.scales, scale_offset(to, 0, groups)).chunks_mut(tile);
            let source = after(source.scales, scale_offset(from, 0, groups)).chunks(tile);
            for (target, source) in target.zip(source).take((groups / 4) as usize) {
                if let (Some(target), Some(source)) = (target.first_chunk_mut::<4>(), source.first_chunk()) {
                    *target = *source;
                }
            }
            done += 1;
        }
    }

    /// Writes what belongs to no row.
    pub(crate) fn finish(&mut self, source: &Tensor<'_>) {
        self.clear_gaps();
        copy(self.divisor, source.divisor);
    }
}

fn after(bytes: &[u8], offset: u64) -> &[u8] {
    bytes.get(offset as usize..).unwrap_or(&[])
}

fn after_mut(bytes: &mut [u8], offset: u64) -> &mut [u8] {
    bytes.get_mut(offset as usize..).unwrap_or_default()
}
