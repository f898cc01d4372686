//! The canonical encoder `MAXABS_F16_RECIP_RNE_V1`, for the four grouped formats. Spec: tensor-formats §7.
//!
//! Straight into a payload ([`TensorMut::quantize`](crate::TensorMut::quantize)) or, for tensors of any rank,
//! row by row to codes and scales ([`quantize_row`]).

mod canonical;

use bytemuck::cast_slice;

use crate::backend::{self, Backend, Quantize};
use crate::decode::check_strided;
use crate::error::Error;
use crate::format::{Format, binary16, direct, rounding};
use crate::layout::row_split::{BASE_BYTES, MAX_LANES, SCALE_BYTES, pack_group};
use crate::tensor::TensorMut;
use crate::value::Source;

impl TensorMut<'_> {
    /// Quantizes `count()` rows of values into the rows of the view, padding included.
    ///
    /// Row `i` of the view comes from `source[i * stride..][..K]`; `source` needs
    /// `(rows - 1) * stride + K` elements. The source is read once.
    ///
    /// # Errors
    /// [`Error::NoCanonicalEncoder`], [`Error::Stride`], [`Error::BufferLength`]: nothing is written.
    /// [`Error::NonFiniteSource`], [`Error::SourceNotRepresentable`], [`Error::ScaleOverflow`]: of the lowest
    /// failing row and group; rows before it are complete, it and later rows of the view are unspecified.
    ///
    /// # Panics
    /// Never.
    ///
    /// ```
    /// use ninfer_codec::{Format, Layout, Plan, TensorMut};
    /// let plan = Plan::new(Format::Q4G64F16S, Layout::RowSplitK128V1, &[1, 2])?;
    /// let mut payload = [0xa5; 260];
    /// TensorMut::new(plan, &mut payload)?.quantize(&[7.0f32, -1.0][..], 2)?;
    /// assert_eq!(payload[0], 0xf7); // codes 7 and -1
    /// assert_eq!(payload[256..], [0x00, 0x3c, 0, 0]); // scale 1.0, then a physical group
    /// # Ok::<(), ninfer_codec::Error>(())
    /// ```
    pub fn quantize<'s>(&mut self, source: impl Into<Source<'s>>, stride: usize) -> Result<(), Error> {
        self.quantize_with(Some(backend::active()), source.into(), stride)
    }

    /// Quantizes with a backend that the processor can run, or with the integer encoder alone.
    pub(crate) fn quantize_with(
        &mut self,
        backend: Option<Backend>,
        source: Source<'_>,
        stride: usize,
    ) -> Result<(), Error> {
        let format = self.plan.format();
        if format.scheme().is_none() {
            return Err(Error::NoCanonicalEncoder { format });
        }
        let columns = self.plan.columns();
        check_strided(self.count(), columns, stride as u64, source.len() as u64)?;
        let mut row = self.begin;
        let mut start = 0usize;
        while row < self.end {
            let done = match backend {
                Some(backend) => self.quantize_rows(backend, row, &source, start, stride),
                None => 0,
            };
            row = row.saturating_add(done as u64);
            start = start.wrapping_add(done.wrapping_mul(stride));
            if row < self.end {
                self.quantize_row(row, &source, start)?;
                row += 1;
                start = start.wrapping_add(stride);
            }
        }
        self.clear_gaps();
        Ok(())
    }

    /// Quantizes rows from `row` on with a backend, and returns how many it has done.
    pub(crate) fn quantize_rows(
        &mut self,
        backend: Backend,
        row: u64,
        source: &Source<'_>,
        start: usize,
        stride: usize,
    ) -> usize {
        let plan = self.plan;
        let rows = (self.end - row) as usize;
        let rest = self.rest_mut(row);
        let job = Quantize {
            format: plan.format(),
            source: source.from(start),
            rows,
            columns: plan.columns() as usize,
            stride,
            high_bytes: plan.high_bytes_per_group(),
            base: rest.codes,
            high: rest.high,
            scales: rest.scales,
        };
        backend::quantize_rows(backend, job)
    }

    fn quantize_row(&mut self, row: u64, source: &Source<'_>, start: usize) -> Result<(), Error> {
        let format = self.plan.format();
        let columns = self.plan.columns() as usize;
        let high_bytes = self.plan.high_bytes_per_group();
        let group_lanes = format.column_step() as usize;
        let target = self.row_mut(row);
        let mut high = target.high;
        let base = target.codes.as_chunks_mut::<BASE_BYTES>().0;
        let scales = target.scales.as_chunks_mut::<SCALE_BYTES>().0;
        let mut column = 0usize;
        for ((group, base), scale) in (0..).zip(base).zip(scales) {
            let mut codes = [0; MAX_LANES];
            let lanes = columns.saturating_sub(column).min(group_lanes);
            let word = quantize_group(
                format,
                row,
                group,
                source,
                start.wrapping_add(column),
                column,
                lanes,
                &mut codes,
            )?;
            *scale = word.to_le_bytes();
            let (own, rest) = core::mem::take(&mut high).split_at_mut_checked(high_bytes).unwrap_or_default();
            pack_group(format, &codes, base, own);
            high = rest;
            column = column.wrapping_add(group_lanes);
        }
        Ok(())
    }
}

/// Quantizes one row of K values to K codes and `ceil(K / G)` scale words; the rank is the caller's loop.
///
/// `row` is the number that errors carry.
///
/// # Errors
/// [`Error::NoCanonicalEncoder`], [`Error::ColumnRange`] for an empty row, [`Error::BufferLength`] unless
/// `codes` and `scales` are exactly as long as K asks for: nothing is written. Source faults as for
/// [`TensorMut::quantize`](crate::TensorMut::quantize): both buffers are unspecified.
///
/// # Panics
/// Never.
///
/// Spec: tensor-formats §4.1, §7.
///
/// ```
/// use ninfer_codec::{Format, quantize_row};
/// let (mut codes, mut scales) = ([0; 3], [0; 1]);
/// quantize_row(Format::W8G32F16S, 0, &[127.0f32, -2.5, 0.5][..], &mut codes, &mut scales)?;
/// assert_eq!((codes, scales), ([127, -2, 0], [0x3c00]));
/// # Ok::<(), ninfer_codec::Error>(())
/// ```
pub fn quantize_row<'s>(
    format: Format,
    row: u64,
    source: impl Into<Source<'s>>,
    codes: &mut [i8],
    scales: &mut [u16],
) -> Result<(), Error> {
    let source = source.into();
    if format.scheme().is_none() {
        return Err(Error::NoCanonicalEncoder { format });
    }
    let group_lanes = format.column_step() as usize;
    check_row(format, source.len() as u64, codes.len() as u64, scales.len() as u64)?;
    let mut column = 0usize;
    for ((group, codes), scale) in (0..).zip(codes.chunks_mut(group_lanes.max(1))).zip(scales) {
        let mut lanes = [0; MAX_LANES];
        *scale = quantize_group(format, row, group, &source, column, column, codes.len(), &mut lanes)?;
        for (code, lane) in codes.iter_mut().zip(lanes) {
            *code = lane;
        }
        column = column.wrapping_add(group_lanes);
    }
    Ok(())
}

/// Checks the buffers of a scheme-level row of `columns` elements: the one that takes as many, then the scales.
pub(crate) fn check_row(format: Format, columns: u64, elements: u64, scales: u64) -> Result<(), Error> {
    let step = format.column_step();
    if columns == 0 {
        return Err(Error::ColumnRange { begin: 0, count: 0, columns, step });
    }
    for (expected, actual) in [(columns, elements), (columns.div_ceil(step), scales)] {
        if expected != actual {
            return Err(Error::BufferLength { expected, actual });
        }
    }
    Ok(())
}

/// Quantizes `lanes` values from `start` on, which are columns `column..` of a row; no lanes give a zero scale.
#[expect(clippy::too_many_arguments, reason = "where the values lie, and where errors say they lie")]
fn quantize_group(
    format: Format,
    row: u64,
    group: u64,
    source: &Source<'_>,
    start: usize,
    column: usize,
    lanes: usize,
    codes: &mut [i8; MAX_LANES],
) -> Result<u16, Error> {
    let Some(scheme) = format.scheme() else { return Err(Error::NoCanonicalEncoder { format }) };
    let mut words = [0; MAX_LANES];
    let words = words.get_mut(..lanes).unwrap_or_default();
    load(source, start, words).map_err(|fault| {
        let column = column.wrapping_add(fault.index) as u64;
        let word = fault.word;
        if fault.finite {
            Error::SourceNotRepresentable { row, column, word }
        } else {
            Error::NonFiniteSource { row, column, word }
        }
    })?;
    canonical::quantize_group(scheme, words, codes).map_err(|raw_scale| Error::ScaleOverflow {
        row,
        group,
        raw_scale,
    })
}

/// The first source value that is no finite binary32.
struct SourceFault {
    index: usize,
    word: u64,
    finite: bool,
}

/// Reads values from `start` on as finite binary32 words, rounding binary64 to nearest, ties to even.
fn load(source: &Source<'_>, start: usize, words: &mut [u32]) -> Result<(), SourceFault> {
    const EXPONENT: u64 = 0x7ff << 52;
    let same = |word| word & EXPONENT != EXPONENT;
    match source {
        Source::F32(values) => convert(cast_slice::<_, u32>(values), start, words, |word| word, |_| false),
        Source::Bf16(values) => {
            convert(cast_slice::<_, u16>(values), start, words, direct::bf16_to_f32_bits, |_| false)
        }
        Source::F16(values) => {
            convert(cast_slice::<_, u16>(values), start, words, binary16::to_f32_bits, |_| false)
        }
        Source::F64(values) => {
            convert(cast_slice::<_, u64>(values), start, words, rounding::f32_bits_from_f64_bits, same)
        }
    }
}

/// Converts words; `finite` says of one whose binary32 is not finite whether it was itself.
#[inline]
fn convert<T: Copy + Into<u64>>(
    values: &[T],
    start: usize,
    words: &mut [u32],
    to_f32_bits: impl Fn(T) -> u32,
    finite: impl Fn(u64) -> bool,
) -> Result<(), SourceFault> {
    const EXPONENT: u32 = 0xff << 23;
    let values = values.get(start..).unwrap_or(&[]);
    for ((index, word), &value) in words.iter_mut().enumerate().zip(values) {
        *word = to_f32_bits(value);
        if *word & EXPONENT == EXPONENT {
            let word = value.into();
            return Err(SourceFault { index, word, finite: finite(word) });
        }
    }
    Ok(())
}
