//! Natural words in and out of a payload: pack and unpack. Nothing is converted.
//!
//! Spec: tensor-formats §8.1 (what a producer must not emit), storage-layouts §2 to §5.

use crate::backend::{self, Backend, LeWord, Scan, Stores};
use crate::check;
use crate::columns::Columns;
use crate::error::Error;
use crate::format::{Format, grouped};
use crate::geometry::mul;
use crate::layout::row_split::{self, BASE_BYTES, MAX_LANES, SCALE_BYTES};
use crate::layout::{Plan, blockscale};
use crate::tensor::{Tensor, TensorMut};
use crate::value::{Words, WordsMut};

impl TensorMut<'_> {
    /// Packs the natural words of the view's rows, after checking that they are legal.
    ///
    /// Every buffer is exactly as long as the view's rows ask for. NVFP4's divisor is written by the view that
    /// holds the last row; every view checks it.
    ///
    /// # Errors
    /// [`Error::WrongWords`], [`Error::BufferLength`], [`Error::InvalidDivisor`]: nothing is written.
    /// [`Error::InvalidScale`], [`Error::InvalidCode`], [`Error::ZeroScaleNonzeroCode`]: of the lowest failing
    /// row, in the order of validation; rows before it are complete, it and later rows are unspecified.
    ///
    /// # Panics
    /// Never.
    ///
    /// ```
    /// use ninfer_codec::{Format, Layout, Plan, TensorMut, Words};
    /// let plan = Plan::new(Format::Fp8E4M3FnRowBf16S, Layout::RowScaleV1, &[1, 2])?;
    /// let mut payload = [0xa5; 258];
    /// let words = Words::Fp8Row { codes: &[0x38, 0xb8], scales: &[0x3f80] };
    /// TensorMut::new(plan, &mut payload)?.pack(words)?;
    /// assert_eq!(payload[..3], [0x38, 0xb8, 0]);
    /// assert_eq!(payload[256..], [0x80, 0x3f]);
    /// # Ok::<(), ninfer_codec::Error>(())
    /// ```
    pub fn pack(&mut self, words: Words<'_>) -> Result<(), Error> {
        self.pack_with(Some(backend::active()), words)
    }

    /// Packs with a backend that the processor can run, or with none.
    pub(crate) fn pack_with(&mut self, backend: Option<Backend>, words: Words<'_>) -> Result<(), Error> {
        check_words(&self.plan, self.count(), words.counts(self.plan.format()))?;
        let plan = self.plan;
        let rows = self.begin..self.end;
        match words {
            Words::Bf16(words) => store(self.codes, words, u16::to_le_bytes),
            Words::Fp32(words) => store(self.codes, words, u32::to_le_bytes),
            Words::I32(words) => store(self.codes, words, i32::to_le_bytes),
            Words::Grouped { codes, scales } => self.pack_grouped(backend, codes, scales)?,
            Words::Nvfp4 { codes, scales, divisor } => {
                check::divisor(divisor)?;
                self.pack_nvfp4(codes, scales)?;
                if let Some(bytes) = self.divisor.first_chunk_mut() {
                    *bytes = divisor.to_le_bytes();
                }
            }
            Words::Fp8Row { codes, scales } => {
                let stores = Stores::new(codes.len());
                let codes = codes.chunks(at_least_one(plan.columns()));
                for ((row, codes), &scale) in rows.zip(codes).zip(scales) {
                    check::row_scale(row, scale)?;
                    if scale == 0 || !backend::scan(Scan::Fp8Codes, codes) {
                        check::fp8_codes(row, 0, codes, scale)?;
                    }
                    let target = self.row_mut(row);
                    backend::copy(target.codes, codes, &stores);
                    copy(target.scales, &scale.to_le_bytes());
                }
            }
        }
        self.clear_gaps();
        Ok(())
    }

    /// Packs NVFP4 codes and natural scales, 128 rows at a time; views begin and end at such blocks.
    fn pack_nvfp4(&mut self, codes: &[u8], scales: &[u8]) -> Result<(), Error> {
        const ROWS: usize = blockscale::TILE_ROWS as usize;
        let code_row = at_least_one(self.plan.codes().row_bytes);
        let groups = at_least_one(self.plan.logical_groups());
        let stores = Stores::new(codes.len());
        let blocks = (self.begin..self.end).step_by(ROWS);
        let words = codes
            .chunks(at_least_one((ROWS as u64).wrapping_mul(code_row as u64)))
            .zip(scales.chunks(at_least_one((ROWS as u64).wrapping_mul(groups as u64))));
        for (begin, (codes, scales)) in blocks.zip(words) {
            if !backend::scan(Scan::BlockScales, scales) {
                for (row, (codes, scales)) in (begin..).zip(codes.chunks(code_row).zip(scales.chunks(groups)))
                {
                    for (group, &word) in (0..).zip(scales) {
                        check::block_scale(row, group, word)?;
                        self.set_block_scale(row, group, word);
                    }
                    copy(self.row_mut(row).codes, codes);
                }
                continue;
            }
            let target = self.rest_mut(begin);
            backend::copy(target.codes.get_mut(..codes.len()).unwrap_or_default(), codes, &stores);
            backend::swizzle(scales, groups, target.scales.get_mut(..scales.len()).unwrap_or_default());
        }
        Ok(())
    }

    fn pack_grouped(
        &mut self,
        backend: Option<Backend>,
        mut codes: &[i8],
        mut scales: &[u16],
    ) -> Result<(), Error> {
        let columns = self.plan.columns() as usize;
        let groups = self.plan.logical_groups() as usize;
        let mut row = self.begin;
        while row < self.end {
            let done: usize = match backend {
                #[cfg(any(
                    target_arch = "x86_64",
                    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
                ))]
                Some(backend) => self.pack_grouped_rows(backend, row, codes, scales),
                _ => 0,
            };
            row = row.saturating_add(done as u64);
            codes = codes.get(done.wrapping_mul(columns)..).unwrap_or(&[]);
            scales = scales.get(done.wrapping_mul(groups)..).unwrap_or(&[]);
            let (Some((own_codes, other_codes)), Some((own_scales, other_scales))) =
                (codes.split_at_checked(columns), scales.split_at_checked(groups))
            else {
                break;
            };
            if row < self.end {
                self.pack_grouped_row(row, own_codes, own_scales)?;
                (codes, scales) = (other_codes, other_scales);
                row += 1;
            }
        }
        Ok(())
    }

    /// Packs rows from `row` on with a backend, and returns how many it has done.
    #[cfg(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
    ))]
    pub(crate) fn pack_grouped_rows(
        &mut self,
        backend: Backend,
        row: u64,
        codes: &[i8],
        scale_words: &[u16],
    ) -> usize {
        let plan = self.plan;
        let rows = (self.end - row) as usize;
        let rest = self.rest_mut(row);
        let job = backend::Pack {
            format: plan.format(),
            codes,
            scale_words,
            rows,
            columns: plan.columns() as usize,
            high_bytes: plan.high_bytes_per_group(),
            base: rest.codes,
            high: rest.high,
            scales: rest.scales,
        };
        backend::pack_rows(backend, job)
    }

    fn pack_grouped_row(&mut self, row: u64, codes: &[i8], scales: &[u16]) -> Result<(), Error> {
        let plan = self.plan;
        let format = plan.format();
        let Some(scheme) = format.scheme() else { return Err(Error::WrongWords { format }) };
        for (group, &word) in (0..).zip(scales) {
            check::grouped_scale(row, group, word)?;
        }
        let logical = codes.chunks(format.column_step() as usize).zip(scales);
        for (first, (codes, &scale)) in (0u64..).step_by(format.column_step() as usize).zip(logical) {
            check::grouped_codes(scheme, row, first, codes, scale)?;
        }
        let high_bytes = plan.high_bytes_per_group();
        let target = self.row_mut(row);
        let mut groups = codes.chunks(format.column_step() as usize);
        let mut scales = scales.iter();
        let mut high = target.high;
        let stored = target.scales.as_chunks_mut::<SCALE_BYTES>().0;
        for (base, stored) in target.codes.as_chunks_mut::<BASE_BYTES>().0.iter_mut().zip(stored) {
            let mut lanes = [0; MAX_LANES];
            for (lane, &code) in lanes.iter_mut().zip(groups.next().unwrap_or(&[])) {
                *lane = code;
            }
            *stored = scales.next().copied().unwrap_or(0).to_le_bytes();
            let (own, rest) = core::mem::take(&mut high).split_at_mut_checked(high_bytes).unwrap_or_default();
            row_split::pack_group(format, &lanes, base, own);
            high = rest;
        }
        Ok(())
    }
}

impl Tensor<'_> {
    /// Unpacks the natural words of the view's rows; whatever the bytes, the words are given as they are.
    ///
    /// Every buffer is exactly as long as the view's rows ask for.
    ///
    /// # Errors
    /// [`Error::WrongWords`], [`Error::BufferLength`]: nothing is written.
    ///
    /// # Panics
    /// Never.
    pub fn unpack(&self, words: WordsMut<'_>) -> Result<(), Error> {
        check_words(&self.plan, self.count(), words.counts(self.plan.format()))?;
        match words {
            WordsMut::Bf16(words) => load(self.codes, words),
            WordsMut::Fp32(words) => load(self.codes, words),
            WordsMut::I32(words) => load(self.codes, words),
            WordsMut::Grouped { codes, scales } => {
                self.unpack_grouped(bytemuck::cast_slice_mut(codes), scales);
            }
            WordsMut::Nvfp4 { codes, scales, divisor } => {
                load(self.codes, codes);
                self.unpack_block_scales(scales);
                *divisor = self.divisor_word();
            }
            WordsMut::Fp8Row { codes, scales } => {
                load(self.codes, codes);
                load(self.scales, scales);
            }
        }
        Ok(())
    }

    fn unpack_grouped(&self, codes: &mut [u8], scales: &mut [u16]) {
        let plan = &self.plan;
        let columns = Columns::all(plan);
        let stores = Stores::new(codes.len());
        if plan.columns() == plan.padded_columns() {
            backend::unpack_codes(plan.format(), &self.grouped_row(self.begin, columns), codes, &stores);
            return backend::copy_words(self.scales, scales, &stores);
        }
        let codes = codes.chunks_mut(at_least_one(plan.columns()));
        let scales = scales.chunks_mut(at_least_one(plan.logical_groups()));
        for ((row, codes), scales) in (self.begin..self.end).zip(codes).zip(scales) {
            let row = self.grouped_row(row, columns);
            backend::unpack_codes(plan.format(), &row, codes, &stores);
            backend::copy_words(row.scales, scales, &stores);
        }
    }

    /// Puts NVFP4's scale words in natural order: whole tiles at once, the rows of others one by one.
    fn unpack_block_scales(&self, mut scales: &mut [u8]) {
        const ROWS: usize = blockscale::TILE_ROWS as usize;
        let columns = Columns::all(&self.plan);
        let groups = at_least_one(self.plan.logical_groups());
        let mut row = self.begin;
        while row < self.end {
            let is_whole = row.is_multiple_of(ROWS as u64) && self.end - row >= ROWS as u64;
            let rows = if is_whole { ROWS } else { 1 };
            let bytes = groups.wrapping_mul(rows).min(scales.len());
            let Some((these, rest)) = core::mem::take(&mut scales).split_at_mut_checked(bytes) else {
                return;
            };
            let tiles = self.nvfp4_rows(row, columns);
            if is_whole {
                let tile_scales = tiles.row_scales(0);
                let tile_scales = tile_scales.get(..these.len()).unwrap_or(tile_scales);
                backend::unswizzle(tile_scales, groups, these);
            } else {
                // Four words lie together; the next four are a tile further on.
                let tiles = tiles.row_scales(0).chunks(blockscale::TILE_BYTES as usize);
                for (words, tile) in these.as_chunks_mut::<4>().0.iter_mut().zip(tiles) {
                    if let Some(four) = tile.first_chunk() {
                        *words = *four;
                    }
                }
            }
            scales = rest;
            row += rows as u64;
        }
    }
}

/// Elements of codes and scales that the natural words of `rows` rows take.
pub(crate) fn word_lengths(plan: &Plan, rows: u64) -> Result<(u64, u64), Error> {
    let codes = match plan.format() {
        Format::Nvfp4 => plan.codes().row_bytes,
        _ => plan.columns(),
    };
    Ok((mul(rows, codes)?, mul(rows, plan.logical_groups())?))
}

/// Refuses words of another format, and buffers that are not exactly as long as `rows` rows ask for.
fn check_words(plan: &Plan, rows: u64, counts: Option<(usize, usize)>) -> Result<(), Error> {
    let Some((codes, scales)) = counts else { return Err(Error::WrongWords { format: plan.format() }) };
    let expected = word_lengths(plan, rows)?;
    for (expected, actual) in [(expected.0, codes as u64), (expected.1, scales as u64)] {
        if expected != actual {
            return Err(Error::BufferLength { expected, actual });
        }
    }
    Ok(())
}

/// Decodes one row of K codes and `ceil(K / G)` scale words of a grouped format to binary32; the rank is the
/// caller's loop.
///
/// `row` is the number that errors carry.
///
/// # Errors
/// [`Error::WrongWords`] for a format that is not grouped, [`Error::ColumnRange`] for an empty row,
/// [`Error::BufferLength`] unless `scales` and `out` are exactly as long as `codes` asks for,
/// [`Error::InvalidScale`], [`Error::InvalidCode`] for a code that no word of the format stands for; W8 -128
/// counts as itself. Nothing is written.
///
/// # Panics
/// Never.
///
/// Spec: tensor-formats §4.1, §6.2.
///
/// ```
/// use ninfer_codec::{Format, dequantize_row};
/// let mut weights = [0.0; 2];
/// dequantize_row(Format::Q6G64F16S, 0, &[-32, 31], &[0x3800], &mut weights)?;
/// assert_eq!(weights, [-16.0, 15.5]);
/// # Ok::<(), ninfer_codec::Error>(())
/// ```
pub fn dequantize_row(
    format: Format,
    row: u64,
    codes: &[i8],
    scales: &[u16],
    out: &mut [f32],
) -> Result<(), Error> {
    let Some(scheme) = format.scheme() else { return Err(Error::WrongWords { format }) };
    crate::encode::check_row(format, codes.len() as u64, out.len() as u64, scales.len() as u64)?;
    for (group, &word) in (0..).zip(scales) {
        check::grouped_scale(row, group, word)?;
    }
    if let Some((column, &code)) = (0..).zip(codes).find(|&(_, &code)| !scheme.is_signed_code(code)) {
        return Err(Error::InvalidCode { row, column, word: code as u8 });
    }
    let group = format.column_step() as usize;
    for ((out, codes), &scale) in out.chunks_mut(group).zip(codes.chunks(group)).zip(scales) {
        for (value, &code) in out.iter_mut().zip(codes) {
            *value = f32::from_bits(grouped::product_f32_bits(code, scale));
        }
    }
    Ok(())
}

fn store<T: bytemuck::NoUninit, const BYTES: usize>(
    bytes: &mut [u8],
    words: &[T],
    to_bytes: impl Fn(T) -> [u8; BYTES],
) {
    if cfg!(target_endian = "little") {
        backend::copy(bytes, bytemuck::cast_slice(words), &Stores::new(bytes.len()));
        return;
    }
    for (bytes, &word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = to_bytes(word);
    }
}

fn load<W: LeWord>(bytes: &[u8], words: &mut [W]) {
    backend::copy_words(bytes, words, &Stores::new(bytes.len()));
}

/// Elements of a row, which are never none: said again, because a chunk of none would be a panic.
fn at_least_one(elements: u64) -> usize {
    (elements as usize).max(1)
}

/// Copies between slices of one length; the check keeps a panic path out.
pub(crate) fn copy(target: &mut [u8], source: &[u8]) {
    if target.len() == source.len() {
        target.copy_from_slice(source);
    }
}
