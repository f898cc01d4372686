//! New payloads out of rows of others: slice, gather, stack. No code is unpacked. Spec: storage-layouts §3 to
//! §5.

use crate::error::Error;
use crate::format::Format;
use crate::layout::Plan;
use crate::tensor::{Tensor, TensorMut};
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
        let blockscale = self.plan.format() == Format::Nvfp4;
        for (row, from) in (begin..).zip(rows) {
            let target = self.row_mut(row);
            copy(target.codes, source.row_codes(from));
            if blockscale {
                for group in 0..source.plan.logical_groups() {
                    self.set_block_scale(row, group, source.block_scale(from, group));
                }
            } else {
                copy(target.high, source.row_high(from));
                copy(target.scales, source.row_scales(from));
            }
        }
    }

    /// Writes what belongs to no row.
    pub(crate) fn finish(&mut self, source: &Tensor<'_>) {
        self.clear_gaps();
        copy(self.divisor, source.divisor);
    }
}
