//! Validation: the first violation of the contract, or none.
//!
//! Violations come in this order; a range reports its own first, and the whole tensor's first is the least of
//! its ranges'. Spec: storage-layouts §7.
//!
//! 1. NVFP4's divisor, looked at by every range.
//! 2. Row by row: the scale words by rising group, then the codes by rising column. At one column an illegal
//!    code comes before a nonzero code under a zero scale.
//! 3. Padding, row by row: the lanes of the partly logical group by rising column, then each wholly physical
//!    group: its scale word, then its codes. It belongs to column ranges that hold column K - 1.
//! 4. The gaps between planes, by rising offset. They belong to the range with row N - 1 and column K - 1.

use crate::backend::{self, GroupedRow, Scan};
use crate::check;
use crate::columns::Columns;
use crate::decode::from;
use crate::error::Error;
use crate::format::{Category, Format};
use crate::layout::row_split::{self, BASE_BYTES, SCALE_BYTES};
use crate::tensor::Tensor;

impl Tensor<'_> {
    /// Checks the rows of the view and returns the first violation.
    ///
    /// Direct formats have none: all their words are legal.
    ///
    /// # Errors
    /// [`Error::InvalidDivisor`], [`Error::InvalidScale`], [`Error::InvalidCode`],
    /// [`Error::ZeroScaleNonzeroCode`], [`Error::PaddingCodeNotZero`], [`Error::PaddingScaleNotZero`],
    /// [`Error::GapNotZero`].
    ///
    /// # Panics
    /// Never.
    pub fn validate(&self) -> Result<(), Error> {
        self.validate_checked(Columns::all(&self.plan))
    }

    /// Checks columns `[begin, begin + count)` of the view's rows.
    ///
    /// # Errors
    /// Those of [`Tensor::validate`], and [`Error::ColumnRange`] as for [`Tensor::decode_columns`].
    ///
    /// # Panics
    /// Never.
    pub fn validate_columns(&self, begin: u64, count: u64) -> Result<(), Error> {
        self.validate_checked(Columns::new(&self.plan, begin, count)?)
    }

    fn validate_checked(&self, columns: Columns) -> Result<(), Error> {
        let category = self.plan.format().descriptor().category;
        if category == Category::BlockScaled {
            self.check_divisor()?;
        }
        if !self.is_plainly_clean(columns) {
            for row in self.begin..self.end {
                self.check_row_scales(row, columns)?;
                match category {
                    Category::Grouped => self.check_grouped_codes(row, columns)?,
                    Category::RowScaled => self.check_fp8_codes(row, columns)?,
                    Category::DirectFloat | Category::DirectInteger | Category::BlockScaled => {}
                }
            }
        }
        if columns.reaches_end(&self.plan) {
            if category == Category::Grouped && self.plan.columns() < self.plan.padded_columns() {
                (self.begin..self.end).try_for_each(|row| self.check_padding(row))?;
            }
            self.check_gaps()?;
        }
        Ok(())
    }

    /// Whether no scale or code of whole rows without padding can be at fault: all scales are legal and, where
    /// codes stand under them, none is zero; no code is illegal. Much the quickest for what is in order.
    fn is_plainly_clean(&self, columns: Columns) -> bool {
        let plan = &self.plan;
        if columns.count() != plan.padded_columns() {
            return false;
        }
        match plan.format() {
            Format::Bf16 | Format::Fp32 | Format::I32 => true,
            Format::Q4G64F16S | Format::Q5G64F16S | Format::Q6G64F16S => {
                backend::scan(Scan::NonzeroGroupedScales, self.scales)
            }
            Format::W8G32F16S => {
                backend::scan(Scan::NonzeroGroupedScales, self.scales)
                    && backend::scan(Scan::W8Codes, self.codes)
            }
            Format::Nvfp4 => backend::scan(Scan::BlockScales, self.scales),
            Format::Fp8E4M3FnRowBf16S => {
                backend::scan(Scan::NonzeroRowScales, self.scales)
                    && backend::scan(Scan::Fp8Codes, self.codes)
            }
        }
    }

    /// Whether the codes of a row in the columns' groups, under legal scales, are in order.
    fn are_codes_clean(&self, row: u64, columns: Columns) -> bool {
        let step = self.plan.format().column_step();
        let groups = (columns.end.div_ceil(step) - columns.begin / step) as usize;
        let high_bytes = self.plan.high_bytes_per_group();
        let GroupedRow { base, high, scales } = self.grouped_row(row, columns);
        let base = base.get(..groups * BASE_BYTES).unwrap_or(base);
        if self.plan.format() == Format::W8G32F16S && !backend::scan(Scan::W8Codes, base) {
            return false;
        }
        let scales = scales.get(..groups * SCALE_BYTES).unwrap_or(scales);
        backend::scan(Scan::NonzeroGroupedScales, scales)
            || (0..).zip(base.as_chunks::<BASE_BYTES>().0).zip(scales.as_chunks().0).all(
                |((group, base), scale)| {
                    let high = from(high, group, high_bytes);
                    *scale != [0; SCALE_BYTES]
                        || are_zeros(base) && are_zeros(high.get(..high_bytes).unwrap_or(high))
                },
            )
    }

    /// Calls `check(group, scale, codes)` for the physical groups of a row from `first` to before `end`.
    pub(crate) fn each_group(
        &self,
        row: u64,
        first: u64,
        end: u64,
        mut check: impl FnMut(u64, u16, &[i8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let high_bytes = self.plan.high_bytes_per_group();
        let base = from(self.row_codes(row), first, BASE_BYTES).as_chunks().0;
        let scales = from(self.row_scales(row), first, SCALE_BYTES).as_chunks().0;
        let high = self.row_high(row);
        for ((group, base), scale) in (first..end).zip(base).zip(scales) {
            let high = from(high, group, high_bytes);
            let codes = row_split::unpack_group(self.plan.format(), base, high);
            check(group, u16::from_le_bytes(*scale), codes.as_slice())?;
        }
        Ok(())
    }

    fn check_grouped_codes(&self, row: u64, columns: Columns) -> Result<(), Error> {
        let Some(scheme) = self.plan.format().scheme() else { return Ok(()) };
        if self.are_codes_clean(row, columns) {
            return Ok(());
        }
        let step = self.plan.format().column_step();
        self.each_group(row, columns.begin / step, columns.end.div_ceil(step), |group, scale, codes| {
            let first = group * step;
            let lanes = (columns.end - first).min(step) as usize;
            check::grouped_codes(scheme, row, first, codes.get(..lanes).unwrap_or(codes), scale)
        })
    }

    fn check_fp8_codes(&self, row: u64, columns: Columns) -> Result<(), Error> {
        let codes = from(self.row_codes(row), columns.begin, 1);
        let codes = codes.get(..columns.count() as usize).unwrap_or(codes);
        let scale = self.row_scale(row);
        if scale != 0 && backend::scan(Scan::Fp8Codes, codes) {
            return Ok(());
        }
        check::fp8_codes(row, columns.begin, codes, scale)
    }

    fn check_padding(&self, row: u64) -> Result<(), Error> {
        let step = self.plan.format().column_step();
        let columns = self.plan.columns();
        let logical_groups = self.plan.logical_groups();
        self.each_group(row, columns / step, self.plan.physical_groups(), |group, scale, codes| {
            if group >= logical_groups && scale != 0 {
                return Err(Error::PaddingScaleNotZero { row, group, word: scale });
            }
            for (column, &code) in (group * step..).zip(codes) {
                if column >= columns && code != 0 {
                    return Err(Error::PaddingCodeNotZero { row, column, word: code as u8 });
                }
            }
            Ok(())
        })
    }

    fn check_gaps(&self) -> Result<(), Error> {
        let spans = self.plan.piece(self.begin, self.end);
        for (span, bytes) in [(spans.codes_gap, self.codes_gap), (spans.high_gap, self.high_gap)] {
            if backend::scan(Scan::Zeros, bytes) {
                continue;
            }
            if let Some((offset, &word)) = (span.offset..).zip(bytes).find(|&(_, &byte)| byte != 0) {
                return Err(Error::GapNotZero { offset, word });
            }
        }
        Ok(())
    }
}

/// Whether the bytes of a group are zeros.
fn are_zeros(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |bits, byte| bits | byte) == 0
}
