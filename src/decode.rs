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

use core::ops::Range;

use bytemuck::cast_slice_mut;

use crate::backend::{
    self, Fp8Rows, GroupedRow, LeWord, Narrow, NarrowWord, Nvfp4Rows, Scan, Stores, ToBf16, ToF16, ToF32,
    nvfp4_tables::{self, Nvfp4Tables},
};
use crate::check;
use crate::columns::Columns;
use crate::error::Error;
use crate::format::nvfp4::{self, Quotients, Quotients64};
use crate::format::{Category, Format};
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
        self.decode_each(Rows::List(rows), columns, out, stride);
        Ok(())
    }

    fn decode_checked(&self, columns: Columns, out: Output<'_>, stride: usize) -> Result<(), Error> {
        check_decode(&self.plan, self.count(), columns, out.value_type(), stride as u64, out.len() as u64)?;
        self.check_words(self.begin, self.end, columns)?;
        self.decode_each(Rows::Range(self.begin..self.end), columns, out, stride);
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
            Category::DirectFloat | Category::DirectInteger => return Ok(()),
            Category::BlockScaled => self.check_divisor()?,
            Category::Grouped | Category::RowScaled => {}
        }
        if self.all_scales_legal(begin, end, columns) {
            return Ok(());
        }
        (begin..end).try_for_each(|row| self.check_row_scales(row, columns))
    }

    /// Whether the scales of some whole rows are legal, by a quick look that may take in more of them.
    pub(crate) fn all_scales_legal(&self, begin: u64, end: u64, columns: Columns) -> bool {
        let whole = columns.begin == 0 && columns.reaches_end(&self.plan);
        match self.plan.format().descriptor().category {
            Category::DirectFloat | Category::DirectInteger => true,
            Category::Grouped if whole => {
                let row_bytes = self.plan.scales().row_bytes;
                let bytes = from(self.scales, begin - self.begin, row_bytes as usize);
                backend::scan(
                    Scan::GroupedScales,
                    bytes.get(..((end - begin) * row_bytes) as usize).unwrap_or(bytes),
                )
            }
            // The plane holds the other rows of the view's tiles too.
            Category::BlockScaled if whole && (begin, end) == (self.begin, self.end) && end - begin >= 8 => {
                backend::scan(Scan::BlockScales, self.scales)
            }
            _ => false,
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
                let bytes = from(self.row_scales(row), groups.start, SCALE_BYTES);
                let bytes = bytes.get(..(groups.end - groups.start) as usize * SCALE_BYTES).unwrap_or(bytes);
                if backend::scan(Scan::GroupedScales, bytes) {
                    return Ok(());
                }
                for (group, bytes) in groups.zip(bytes.as_chunks().0) {
                    check::grouped_scale(row, group, u16::from_le_bytes(*bytes))?;
                }
                Ok(())
            }
            Category::BlockScaled => {
                let quads =
                    from(self.nvfp4_rows(row, columns).row_scales(0), groups.start / 4, 512).chunks(512);
                let quads = quads.take((groups.end.div_ceil(4) - groups.start / 4) as usize);
                if quads.fold(true, |legal, quad| legal & quad.get(..4).is_some_and(are_block_scales)) {
                    return Ok(());
                }
                for group in groups {
                    check::block_scale(row, group, self.block_scale(row, group))?;
                }
                Ok(())
            }
            Category::RowScaled => check::row_scale(row, self.row_scale(row)),
        }
    }

    /// Decodes checked rows to a checked buffer.
    fn decode_each(&self, rows: Rows<'_>, columns: Columns, out: Output<'_>, stride: usize) {
        match out {
            Output::F32(out) => self.decode_words::<ToF32>(rows, columns, cast_slice_mut(out), stride),
            Output::Bf16(out) => self.decode_words::<ToBf16>(rows, columns, cast_slice_mut(out), stride),
            Output::F16(out) => self.decode_words::<ToF16>(rows, columns, cast_slice_mut(out), stride),
            Output::F64(out) => {
                let out = cast_slice_mut(out);
                let divisor = self.divisor_word();
                if backend::keeps_nvfp4_words(nvfp4_groups(&rows, columns)) {
                    let tables = || nvfp4_tables::to_f64(divisor);
                    self.decode_nvfp4_by_tables(rows, columns, out, stride, tables);
                } else {
                    let quotients = Quotients64::new(divisor);
                    let words = |scale| quotients.group_bits(scale);
                    self.decode_nvfp4_by_group(rows, columns, out, stride, words);
                }
            }
        }
    }

    /// Decodes NVFP4 by tables of all values. Never inlined: their room on the stack would be every call's.
    #[inline(never)]
    fn decode_nvfp4_by_tables<W: NarrowWord, Make: Fn(u8) -> [W; 16]>(
        &self,
        rows: Rows<'_>,
        columns: Columns,
        out: &mut [W],
        stride: usize,
        tables: impl FnOnce() -> Nvfp4Tables<W, Make>,
    ) {
        let stores = Stores::new(output_bytes::<W>(&rows, columns));
        let mut tables = tables();
        let adjacent = self.are_adjacent(columns, stride);
        for (row, out) in (Runs { rows, adjacent, columns, stride, out }) {
            let rows = self.nvfp4_rows(row, columns);
            backend::decode_nvfp4(&rows, tables.of_rows(&rows, out.len()), out, &stores);
        }
    }

    /// Decodes a little NVFP4, making the words of every group's scale anew.
    #[inline(never)]
    fn decode_nvfp4_by_group<W: NarrowWord>(
        &self,
        rows: Rows<'_>,
        columns: Columns,
        out: &mut [W],
        stride: usize,
        words: impl Fn(u8) -> [W; 16],
    ) {
        for (row, out) in (Runs { rows, adjacent: false, columns, stride, out }) {
            backend::decode_nvfp4_by_group(&self.nvfp4_rows(row, columns), &words, out);
        }
    }

    /// Whether rows follow one another in the output and, without padding between them, in every plane.
    pub(crate) fn are_adjacent(&self, columns: Columns, stride: usize) -> bool {
        let padded = self.plan.padded_columns();
        stride as u64 == padded && columns.count() == padded
    }

    fn decode_words<N: Narrow>(&self, rows: Rows<'_>, columns: Columns, out: &mut [N::Word], stride: usize)
    where
        N::Word: DirectWord,
    {
        let plan = &self.plan;
        let format = plan.format();
        let stores = Stores::new(output_bytes::<N::Word>(&rows, columns));
        let adjacent = self.are_adjacent(columns, stride);
        match format {
            Format::Bf16 | Format::Fp32 | Format::I32 => {
                let word_bytes = format.descriptor().code_bits as usize / 8;
                for (row, out) in (Runs { rows, adjacent, columns, stride, out }) {
                    DirectWord::copy(
                        self.codes_from(row, columns.begin, word_bytes),
                        word_bytes,
                        out,
                        &stores,
                    );
                }
            }
            Format::Q4G64F16S | Format::Q5G64F16S | Format::Q6G64F16S | Format::W8G32F16S => {
                for (row, out) in (Runs { rows, adjacent, columns, stride, out }) {
                    backend::decode_grouped::<N>(format, &self.grouped_row(row, columns), out, &stores);
                }
            }
            Format::Nvfp4 => {
                let groups = nvfp4_groups(&rows, columns);
                let divisor = self.divisor_word();
                if backend::keeps_nvfp4_words(groups) {
                    let tables = || nvfp4_tables::narrowed::<N>(divisor, groups);
                    self.decode_nvfp4_by_tables(rows, columns, out, stride, tables);
                } else {
                    let quotients = Quotients::new(divisor);
                    let words = |scale| quotients.group_f32_bits(scale).map(N::narrow);
                    self.decode_nvfp4_by_group(rows, columns, out, stride, words);
                }
            }
            Format::Fp8E4M3FnRowBf16S => {
                let adjacent = adjacent && plan.columns().is_multiple_of(backend::FP8_UNIT as u64);
                for (row, out) in (Runs { rows, adjacent, columns, stride, out }) {
                    let codes = self.codes_from(row, columns.begin, 1);
                    let rows = Fp8Rows {
                        codes: codes.get(..out.len()).unwrap_or(codes),
                        columns: columns.count() as usize,
                        scales: from(self.scales, row - self.begin, SCALE_BYTES),
                    };
                    backend::decode_fp8::<N>(&rows, out, &stores);
                }
            }
        }
    }

    /// The codes plane from an entry of a row on, to the end of the view.
    fn codes_from(&self, row: u64, first: u64, entry_bytes: usize) -> &[u8] {
        let row_bytes = self.plan.codes().row_bytes;
        from(from(self.codes, row - self.begin, row_bytes as usize), first, entry_bytes)
    }

    pub(crate) fn grouped_row(&self, row: u64, columns: Columns) -> GroupedRow<'_> {
        let plan = &self.plan;
        let first_group = columns.begin / plan.format().column_step();
        let group = (row - self.begin) * plan.physical_groups() + first_group;
        GroupedRow {
            base: from(self.codes, group, BASE_BYTES),
            high: from(self.high, group, plan.high_bytes_per_group()),
            scales: from(self.scales, group, SCALE_BYTES),
        }
    }

    pub(crate) fn nvfp4_rows(&self, row: u64, columns: Columns) -> Nvfp4Rows<'_> {
        let first_row = self.begin - self.begin % blockscale::TILE_ROWS;
        let groups = self.plan.logical_groups();
        let (tile, in_tile) = ((row - first_row) / blockscale::TILE_ROWS, row % blockscale::TILE_ROWS);
        let offset = blockscale::scale_offset(tile * blockscale::TILE_ROWS, 0, groups);
        Nvfp4Rows {
            codes: self.codes_from(row, columns.begin / 2, 1),
            scales: from(self.scales, offset, 1),
            first_row: in_tile as usize,
            first_group: (columns.begin / nvfp4::GROUP as u64) as usize,
            groups: groups as usize,
        }
    }
}

/// Groups that decoding some rows goes through.
fn nvfp4_groups(rows: &Rows<'_>, columns: Columns) -> u64 {
    rows.count() * columns.count().div_ceil(nvfp4::GROUP as u64)
}

/// Rows to decode.
enum Rows<'a> {
    Range(Range<u64>),
    List(&'a [u64]),
}

impl Rows<'_> {
    fn count(&self) -> u64 {
        match self {
            Self::Range(rows) => rows.end - rows.start,
            Self::List(rows) => rows.len() as u64,
        }
    }

    /// Takes the next row and, where asked for, those that follow it by number: the first and how many.
    fn next_run(&mut self, adjacent: bool) -> Option<(u64, u64)> {
        match self {
            Self::Range(rows) => {
                let (first, left) = (rows.start, rows.end - rows.start);
                let count = if adjacent { left } else { left.min(1) };
                rows.start += count;
                (count > 0).then_some((first, count))
            }
            Self::List(rows) => {
                let (&first, mut rest) = rows.split_first()?;
                let mut count = 1;
                while let Some((&row, after)) = rest.split_first()
                    && adjacent
                    && row == first + count
                {
                    (rest, count) = (after, count + 1);
                }
                *rows = rest;
                Some((first, count))
            }
        }
    }
}

/// Cuts a checked buffer into its rows, or into runs of adjacent ones: each run's first row and its output.
struct Runs<'a, 'o, W> {
    rows: Rows<'a>,
    adjacent: bool,
    columns: Columns,
    stride: usize,
    out: &'o mut [W],
}

impl<'o, W> Iterator for Runs<'_, 'o, W> {
    type Item = (u64, &'o mut [W]);

    fn next(&mut self) -> Option<Self::Item> {
        let (first, count) = self.rows.next_run(self.adjacent)?;
        let before_last = self.stride.wrapping_mul((count as usize).wrapping_sub(1));
        let out = core::mem::take(&mut self.out);
        let (run, rest) = out.split_at_mut_checked(before_last + self.columns.count() as usize)?;
        // What lies between two runs is left as it is; past the last there may be less of it.
        let gap = self.stride.wrapping_sub(self.columns.count() as usize).min(rest.len());
        self.out = rest.split_at_mut_checked(gap)?.1;
        Some((first, run))
    }
}

fn output_bytes<W>(rows: &Rows<'_>, columns: Columns) -> usize {
    (rows.count() as usize).wrapping_mul(columns.count() as usize).wrapping_mul(size_of::<W>())
}

/// Whether four NVFP4 scales are legal, or a "no" that must be looked into.
fn are_block_scales(words: &[u8]) -> bool {
    let Some(words) = words.first_chunk().map(|words| u32::from_le_bytes(*words)) else { return false };
    // What is legal lies below the NaN's 0x7f.
    (words | words.wrapping_add(0x0101_0101)) & 0x8080_8080 == 0
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

/// The bytes of a plane's row from entry `first` on.
pub(crate) fn from(bytes: &[u8], first: u64, entry_bytes: usize) -> &[u8] {
    bytes.get((first as usize).wrapping_mul(entry_bytes)..).unwrap_or(&[])
}

/// Words that a direct format's little-endian bytes are decoded to, exactly.
pub(crate) trait DirectWord: LeWord {
    /// Copies words of `word_bytes` bytes, widening BF16 to binary32 where the target is that.
    fn copy(bytes: &[u8], word_bytes: usize, out: &mut [Self], stores: &Stores) {
        let _ = word_bytes;
        backend::copy_words(bytes, out, stores);
    }
}

impl DirectWord for u32 {
    fn copy(bytes: &[u8], word_bytes: usize, out: &mut [Self], stores: &Stores) {
        match word_bytes {
            2 => backend::widen_bf16(bytes, out, stores),
            _ => backend::copy_words(bytes, out, stores),
        }
    }
}

impl DirectWord for u16 {}
