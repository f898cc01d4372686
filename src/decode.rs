//! Decoding: values out of a view. Spec: tensor-formats §3.3, §3.4, §6.2.
//!
//! | format | f32 | bf16, f16 | f64 |
//! |---|---|---|---|
//! | BF16 | exact | bf16: as it is | |
//! | FP32 | as it is | | |
//! | I32 | | | |
//! | Q4, Q5, Q6, W8, FP8 rows | the oracle | rounded once from f32 | |
//! | NVFP4 | the quotient rounded once | rounded once from f32 | the quotient rounded once |
//!
//! Scale and divisor words of the range are checked before the first write. Codes are total: W8 0x80 counts
//! as -128, an E4M3FN NaN gives the quiet NaN `0x7fc00000`. Padding is not looked at.

use bytemuck::cast_slice_mut;

use crate::backend::{self, GroupedRow, Narrow, Nvfp4Row, ToBf16, ToF16, ToF32};
use crate::check;
use crate::columns::Columns;
use crate::error::Error;
use crate::format::nvfp4::{self, Quotients};
use crate::format::{Category, Format, direct};
use crate::geometry::strided_len;
use crate::layout::row_split::{BASE_BYTES, SCALE_BYTES};
use crate::layout::{Plan, blockscale};
use crate::tensor::Tensor;
use crate::value::{Output, ValueType};

impl Tensor<'_> {
    /// Decodes every row of the view.
    ///
    /// Row `i` of the view goes to `out[i * stride..][..K]`; `out` needs `(rows - 1) * stride + K` elements,
    /// and what lies between rows or past the last is left as it is.
    ///
    /// # Errors
    /// Nothing is written on any of them: [`Error::UnsupportedOutput`], [`Error::Stride`],
    /// [`Error::BufferLength`], [`Error::InvalidDivisor`], [`Error::InvalidScale`].
    ///
    /// # Panics
    /// Never.
    ///
    /// ```
    /// use ninfer_codec::{Format, Layout, Plan, Tensor, TensorMut};
    /// let plan = Plan::new(Format::Q4G64F16S, Layout::RowSplitK128V1, &[1, 3])?;
    /// let mut payload = [0; 260];
    /// TensorMut::new(plan, &mut payload)?.quantize(&[7.0f32, -3.0, 0.0][..], 3)?;
    /// let mut weights = [0.0f32; 3];
    /// Tensor::new(plan, &payload)?.decode(&mut weights[..], 3)?;
    /// assert_eq!(weights, [7.0, -3.0, 0.0]);
    /// # Ok::<(), ninfer_codec::Error>(())
    /// ```
    pub fn decode<'o>(&self, out: impl Into<Output<'o>>, stride: usize) -> Result<(), Error> {
        self.decode_checked(Columns::all(&self.plan), out.into(), stride)
    }

    /// Decodes columns `[begin, begin + count)` of every row of the view; a buffer of one group is enough
    /// for any K.
    ///
    /// # Errors
    /// Those of [`Tensor::decode`], and [`Error::ColumnRange`] unless `begin` is a multiple of the format's
    /// group: 64 for Q4, Q5, Q6, 32 for W8, 16 for NVFP4, else 1.
    ///
    /// # Panics
    /// Never.
    pub fn decode_columns<'o>(
        &self,
        begin: u64,
        count: u64,
        out: impl Into<Output<'o>>,
        stride: usize,
    ) -> Result<(), Error> {
        let out = out.into();
        check_output(&self.plan, out.value_type())?;
        self.decode_checked(Columns::new(&self.plan, begin, count)?, out, stride)
    }

    /// Decodes a list of rows of the view, in any order, with repeats: an embedding look-up.
    ///
    /// Row `rows[i]` goes to `out[i * stride..][..K]`.
    ///
    /// # Errors
    /// Those of [`Tensor::decode`], [`Error::EmptyRows`] and [`Error::RowOutOfRange`].
    ///
    /// # Panics
    /// Never.
    pub fn decode_rows<'o>(
        &self,
        rows: &[u64],
        out: impl Into<Output<'o>>,
        stride: usize,
    ) -> Result<(), Error> {
        let out = out.into();
        self.check_list(rows)?;
        let columns = Columns::all(&self.plan);
        check_decode(
            &self.plan,
            rows.len() as u64,
            columns,
            out.value_type(),
            stride as u64,
            out.len() as u64,
        )?;
        for &row in rows {
            self.check_words(row, row + 1, columns)?;
        }
        self.decode_each(rows.iter().copied(), columns, out, stride);
        Ok(())
    }

    fn decode_checked(&self, columns: Columns, out: Output<'_>, stride: usize) -> Result<(), Error> {
        check_decode(&self.plan, self.count(), columns, out.value_type(), stride as u64, out.len() as u64)?;
        self.check_words(self.begin, self.end, columns)?;
        self.decode_each(self.begin..self.end, columns, out, stride);
        Ok(())
    }

    /// Checks that a list names rows of the view, and at least one.
    pub(crate) fn check_list(&self, rows: &[u64]) -> Result<(), Error> {
        if rows.is_empty() {
            return Err(Error::EmptyRows);
        }
        match rows.iter().find(|&&row| row < self.begin || row >= self.end) {
            Some(&row) => Err(Error::RowOutOfRange { row, rows: self.plan.rows() }),
            None => Ok(()),
        }
    }

    /// Checks the divisor and the scale words that decoding rows `[begin, end)` would use.
    pub(crate) fn check_words(&self, begin: u64, end: u64, columns: Columns) -> Result<(), Error> {
        match self.plan.format().descriptor().category {
            Category::DirectFloat | Category::DirectInteger => Ok(()),
            Category::BlockScaled => {
                self.check_divisor()?;
                (begin..end).try_for_each(|row| self.check_row_scales(row, columns))
            }
            Category::Grouped | Category::RowScaled => {
                (begin..end).try_for_each(|row| self.check_row_scales(row, columns))
            }
        }
    }

    /// Checks NVFP4's divisor word.
    pub(crate) fn check_divisor(&self) -> Result<(), Error> {
        check::divisor(self.divisor_word())
    }

    /// Checks the scale words of one row that the columns use.
    pub(crate) fn check_row_scales(&self, row: u64, columns: Columns) -> Result<(), Error> {
        let step = self.plan.format().column_step();
        let groups = columns.begin / step..columns.end.div_ceil(step);
        match self.plan.format().descriptor().category {
            Category::DirectFloat | Category::DirectInteger => Ok(()),
            Category::Grouped => {
                let words = from(self.row_scales(row), groups.start, SCALE_BYTES).as_chunks().0;
                for (group, bytes) in groups.zip(words) {
                    check::grouped_scale(row, group, u16::from_le_bytes(*bytes))?;
                }
                Ok(())
            }
            Category::BlockScaled => {
                for group in groups {
                    check::block_scale(row, group, self.block_scale(row, group))?;
                }
                Ok(())
            }
            Category::RowScaled => check::row_scale(row, self.row_scale(row)),
        }
    }

    /// Decodes checked rows to a checked buffer.
    fn decode_each(&self, rows: impl Iterator<Item = u64>, columns: Columns, out: Output<'_>, stride: usize) {
        match out {
            Output::F32(out) => self.decode_words::<ToF32>(rows, columns, cast_slice_mut(out), stride),
            Output::Bf16(out) => self.decode_words::<ToBf16>(rows, columns, cast_slice_mut(out), stride),
            Output::F16(out) => self.decode_words::<ToF16>(rows, columns, cast_slice_mut(out), stride),
            Output::F64(out) => {
                let quotients = Quotients::new(self.divisor_word());
                for (row, out) in rows.zip(strided(cast_slice_mut(out), columns, stride)) {
                    backend::decode_nvfp4_row_f64(&self.nvfp4_row(row, columns), &quotients, out);
                }
            }
        }
    }

    fn decode_words<N: Narrow>(
        &self,
        rows: impl Iterator<Item = u64>,
        columns: Columns,
        out: &mut [N::Word],
        stride: usize,
    ) where
        N::Word: DirectWord,
    {
        let rows = rows.zip(strided(out, columns, stride));
        match self.plan.format() {
            Format::Bf16 | Format::Fp32 | Format::I32 => {
                for (row, out) in rows {
                    let word_bytes = self.plan.format().descriptor().code_bits as usize / 8;
                    DirectWord::copy(from(self.row_codes(row), columns.begin, word_bytes), word_bytes, out);
                }
            }
            Format::Q4G64F16S | Format::Q5G64F16S | Format::Q6G64F16S | Format::W8G32F16S => {
                for (row, out) in rows {
                    let row = self.grouped_row(row, columns);
                    backend::decode_grouped_row::<N>(self.plan.format(), &row, out);
                }
            }
            Format::Nvfp4 => {
                let quotients = Quotients::new(self.divisor_word());
                for (row, out) in rows {
                    backend::decode_nvfp4_row::<N>(&self.nvfp4_row(row, columns), &quotients, out);
                }
            }
            Format::Fp8E4M3FnRowBf16S => {
                for (row, out) in rows {
                    let codes = from(self.row_codes(row), columns.begin, 1);
                    backend::decode_fp8_row::<N>(codes, self.row_scale(row), out);
                }
            }
        }
    }

    fn grouped_row(&self, row: u64, columns: Columns) -> GroupedRow<'_> {
        let plan = &self.plan;
        let first_group = columns.begin / plan.format().column_step();
        let high_bytes = plan.high_bytes_per_group();
        GroupedRow {
            base: from(self.row_codes(row), first_group, BASE_BYTES),
            high: from(self.row_high(row), first_group, high_bytes),
            scales: from(self.row_scales(row), first_group, SCALE_BYTES),
        }
    }

    fn nvfp4_row(&self, row: u64, columns: Columns) -> Nvfp4Row<'_> {
        let first_row = self.begin - self.begin % blockscale::TILE_ROWS;
        let offset = blockscale::scale_offset(row - first_row, 0, self.plan.logical_groups());
        Nvfp4Row {
            codes: from(self.row_codes(row), columns.begin / 2, 1),
            scales: from(self.scales, offset, 1),
            first_group: (columns.begin / nvfp4::GROUP as u64) as usize,
        }
    }
}

/// Checks everything about a decode call that does not depend on the payload's bytes.
pub(crate) fn check_decode(
    plan: &Plan,
    rows: u64,
    columns: Columns,
    output: ValueType,
    stride: u64,
    len: u64,
) -> Result<(), Error> {
    check_output(plan, output)?;
    check_strided(rows, columns.count(), stride, len)
}

/// Checks that the format decodes to the type.
pub(crate) fn check_output(plan: &Plan, output: ValueType) -> Result<(), Error> {
    let format = plan.format();
    let supported = match (format, output) {
        (Format::I32, _) => false,
        (Format::Bf16, ValueType::Bf16) | (_, ValueType::F32) | (Format::Nvfp4, _) => true,
        (Format::Bf16 | Format::Fp32, _) | (_, ValueType::F64) => false,
        (_, ValueType::Bf16 | ValueType::F16) => true,
    };
    if supported { Ok(()) } else { Err(Error::UnsupportedOutput { format, output }) }
}

/// Checks the stride and length of a buffer of rows.
pub(crate) fn check_strided(rows: u64, columns: u64, stride: u64, len: u64) -> Result<(), Error> {
    if stride < columns {
        return Err(Error::Stride { stride, columns });
    }
    match strided_len(rows, columns, stride) {
        Ok(expected) if expected <= len => Ok(()),
        Ok(expected) => Err(Error::BufferLength { expected, actual: len }),
        Err(_) => Err(Error::BufferLength { expected: u64::MAX, actual: len }),
    }
}

/// Cuts a checked buffer into its rows.
pub(crate) fn strided<T>(out: &mut [T], columns: Columns, stride: usize) -> impl Iterator<Item = &mut [T]> {
    let columns = columns.count() as usize;
    out.chunks_mut(stride.max(1)).filter_map(move |row| row.get_mut(..columns))
}

/// The bytes of a plane's row from entry `first` on.
pub(crate) fn from(bytes: &[u8], first: u64, entry_bytes: usize) -> &[u8] {
    bytes.get((first as usize).wrapping_mul(entry_bytes)..).unwrap_or(&[])
}

/// Words that a direct format's little-endian bytes are decoded to, exactly.
pub(crate) trait DirectWord: Sized {
    /// Copies words of `word_bytes` bytes, widening BF16 to binary32 where the target is that.
    fn copy(bytes: &[u8], word_bytes: usize, out: &mut [Self]);
}

impl DirectWord for u32 {
    fn copy(bytes: &[u8], word_bytes: usize, out: &mut [Self]) {
        if word_bytes == 2 {
            for (word, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
                *word = direct::bf16_to_f32_bits(u16::from_le_bytes(*bytes));
            }
        } else {
            for (word, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
                *word = Self::from_le_bytes(*bytes);
            }
        }
    }
}

impl DirectWord for u16 {
    fn copy(bytes: &[u8], _: usize, out: &mut [Self]) {
        for (word, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
            *word = Self::from_le_bytes(*bytes);
        }
    }
}
