//! The canonical quantizer on x86-64: rows to batches, for kernels that take batches.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::mem::MaybeUninit;

use super::mxcsr::DefaultMode;
use super::output::{BATCH, Output, PlaneBytes, fence};
use super::{avx2_quantize as avx2, avx512_quantize as avx512};
use crate::backend::{Backend, Quantize};
use crate::format::Format;
use crate::layout::row_split::{BASE_BYTES, COLUMN_ALIGNMENT, SCALE_BYTES};
use crate::value::Source;

/// Source types, as numbers that a kernel can be made for.
pub(super) const F32: u8 = 0;
pub(super) const BF16: u8 = 1;
pub(super) const F16: u8 = 2;

/// Bytes of an element of the source.
pub(super) const fn element_bytes(source: u8) -> usize {
    if source == F32 { 4 } else { 2 }
}

/// The least code of the format with so many bits.
pub(super) const fn code_min(bits: u32) -> i8 {
    if bits == 8 { -127 } else { -1 << (bits - 1) }
}

/// A quantizer of batches: see [`avx512::quantize`], whose contract all have.
type Kernel = unsafe fn(&mut Batches, usize, &mut Output<'_>) -> usize;

/// Payloads from this size on are written past the caches.
pub(super) const STREAMING_BYTES: usize = 1 << 20;

/// Quantizes rows until one is at fault; see the contract in [`crate::backend`].
pub(crate) fn quantize_rows(backend: Backend, job: Quantize<'_>) -> usize {
    let (source, bytes, count) = match job.source {
        Source::F32(values) => (values.as_ptr().cast::<u8>(), 4, values.len()),
        Source::Bf16(values) => (values.as_ptr().cast(), 2, values.len()),
        Source::F16(values) => (values.as_ptr().cast(), 2, values.len()),
        // No converter's inner loop: weights come in 16 and 32 bits.
        Source::F64(_) => return crate::backend::portable_quantize::quantize_rows(job),
    };
    let Some(kernel) = kernel(backend, job.format, &job.source) else { return 0 };
    let group = (job.format.column_step() as usize).max(1);
    if job.rows == 0 || (job.rows - 1).checked_mul(job.stride).is_none_or(|start| start + job.columns > count)
    {
        return 0;
    }
    let batch = batch_of(group, job.high_bytes);
    let physical = job.columns.div_ceil(ALIGNMENT) * ALIGNMENT;
    let streaming = job.base.len() + job.high.len() + job.scales.len() >= STREAMING_BYTES;
    let mut output = Output::new(job.base, job.high, job.scales, batch, streaming);
    let mut staging = [const { MaybeUninit::<[u8; 4 * BATCH]>::uninit() }; 2];
    let mut batches = Batches {
        row: source,
        rows: job.rows,
        columns: job.columns,
        physical,
        column: 0,
        // One row has no next: its stride may be any number.
        stride_bytes: job.stride.wrapping_mul(bytes),
        element_bytes: bytes,
        staging: staging.each_mut().map(|buffer| buffer.as_mut_ptr().cast()),
    };
    // Rows without padding that follow one another are one long row.
    if job.columns == physical && job.stride == physical {
        batches.columns = job.rows * physical;
        batches.physical = batches.columns;
        batches.rows = 1;
    }
    let weights = job.rows * physical;
    let (whole, rest) = (weights / BATCH, weights % BATCH);
    let _mode = DefaultMode::enter();
    // SAFETY: that many batches are there to be taken, and the staging outlives them. The backend was found
    // available, and the mode is set.
    let mut done = BATCH * unsafe { kernel(&mut batches, whole, &mut output) };
    if done == BATCH * whole && rest != 0 {
        // The last batch of all is padded with zeros, and so is what it is written to.
        let (mut base, mut high, mut scales) = ([0; 512], [0; 128], [0; 32]);
        let mut last = Output::new(&mut base, &mut high, &mut scales, batch, false);
        // SAFETY: as above; a part of a batch is left.
        if unsafe { kernel(&mut batches, 1, &mut last) } == 1 {
            append(&mut output, rest / group, BATCH / group, [&base, &high, &scales]);
            done = weights;
        }
    }
    if streaming {
        fence();
    }
    done / physical.max(1)
}

/// Columns that rows are padded to a multiple of, of which a batch holds some.
const ALIGNMENT: usize = COLUMN_ALIGNMENT as usize;
const _: () = assert!(BATCH.is_multiple_of(ALIGNMENT));

/// The batches of some rows, in the order of the payload: a row's padding is followed by the next row.
pub(super) struct Batches {
    /// The row that the next batch begins in, and how many are left with it.
    row: *const u8,
    rows: usize,
    /// Elements of a row, and with its padding.
    columns: usize,
    physical: usize,
    /// Where in the row the next batch begins.
    column: usize,
    stride_bytes: usize,
    element_bytes: usize,
    /// Room for two batches that no row holds whole: one is in use when the next is taken.
    staging: [*mut u8; 2],
}

impl Batches {
    /// The next batch, readable until the next but one is taken. What is past the columns of a row, or past the last
    /// row, is zeros: they change no maximum, and their codes are zero as padding must be.
    ///
    /// # Safety
    /// `rows` rows of `columns` elements are readable, and a batch or a part of one is left. Both buffers of
    /// the staging are ours.
    #[inline]
    pub(super) unsafe fn next(&mut self) -> *const u8 {
        if self.column == self.physical {
            self.next_row();
        }
        if self.column + BATCH > self.columns {
            // SAFETY: the caller's promise.
            return unsafe { self.stage() };
        }
        let batch = self.row.wrapping_add(self.column * self.element_bytes);
        self.column += BATCH;
        batch
    }

    /// About where the batch after the one taken last is.
    #[inline]
    pub(super) fn position(&self) -> *const u8 {
        self.row.wrapping_add(self.column * self.element_bytes)
    }

    fn next_row(&mut self) {
        self.row = self.row.wrapping_add(self.stride_bytes);
        self.rows -= 1;
        self.column = 0;
    }

    /// Puts a batch together of pieces of one or more rows.
    ///
    /// # Safety
    /// As for [`Batches::next`].
    #[inline(never)]
    unsafe fn stage(&mut self) -> *const u8 {
        self.staging.swap(0, 1);
        let [batch, _] = self.staging;
        let bytes = self.element_bytes;
        for piece in 0..BATCH / ALIGNMENT {
            if self.column == self.physical && self.rows > 1 {
                self.next_row();
            }
            let elements = self.columns.saturating_sub(self.column).min(ALIGNMENT);
            // SAFETY: the row has so many elements from its column on. The buffer is ours and takes a batch of
            // binary32, of which this is a piece.
            unsafe {
                let to = batch.add(piece * ALIGNMENT * bytes);
                let from = self.row.wrapping_add(self.column * bytes);
                to.copy_from_nonoverlapping(from, elements * bytes);
                to.add(elements * bytes).write_bytes(0, (ALIGNMENT - elements) * bytes);
            }
            self.column = (self.column + ALIGNMENT).min(self.physical);
        }
        batch
    }
}

/// Asks for the lines some way after a quarter of the batch at `position`, which a call over much of the source will
/// come to. They need not be there: the processor's own prefetching ends with the page.
#[inline(always)]
pub(super) fn prefetch_quarter<const SOURCE: u8>(position: *const u8, quarter: usize) {
    const AHEAD: usize = 2048;
    let bytes = BATCH / 4 * element_bytes(SOURCE);
    for line in (0..bytes).step_by(64) {
        // SAFETY: a prefetch has no effect on what a program does, whatever the address; the instruction is part
        // of x86-64.
        #[allow(unused_unsafe)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(position.wrapping_add(AHEAD + quarter * bytes + line).cast());
        }
    }
}

/// Bytes that a batch takes, of groups of `group` weights with `high` high bytes each.
pub(super) const fn batch_of(group: usize, high: usize) -> PlaneBytes {
    let groups = BATCH / group;
    PlaneBytes { base: groups * BASE_BYTES, high: groups * high, scales: groups * SCALE_BYTES }
}

/// Appends the first groups of a batch.
pub(super) fn append(output: &mut Output<'_>, groups: usize, batch_groups: usize, planes: [&[u8]; 3]) {
    let PlaneBytes { base, high, scales } = output.batch();
    let [base_bytes, high_bytes, scale_bytes] = planes;
    let part = |batch_bytes: usize| ..batch_bytes / batch_groups.max(1) * groups;
    output.append(
        base_bytes.get(part(base)).unwrap_or(&[]),
        high_bytes.get(part(high)).unwrap_or(&[]),
        scale_bytes.get(part(scales)).unwrap_or(&[]),
    );
}

macro_rules! kernels {
    ($backend:ident, $format:expr, $source:expr) => {
        match ($format, $source) {
            (Format::Q4G64F16S, Source::F32(_)) => $backend::quantize::<4, F32>,
            (Format::Q4G64F16S, Source::Bf16(_)) => $backend::quantize::<4, BF16>,
            (Format::Q4G64F16S, Source::F16(_)) => $backend::quantize::<4, F16>,
            (Format::Q5G64F16S, Source::F32(_)) => $backend::quantize::<5, F32>,
            (Format::Q5G64F16S, Source::Bf16(_)) => $backend::quantize::<5, BF16>,
            (Format::Q5G64F16S, Source::F16(_)) => $backend::quantize::<5, F16>,
            (Format::Q6G64F16S, Source::F32(_)) => $backend::quantize::<6, F32>,
            (Format::Q6G64F16S, Source::Bf16(_)) => $backend::quantize::<6, BF16>,
            (Format::Q6G64F16S, Source::F16(_)) => $backend::quantize::<6, F16>,
            (Format::W8G32F16S, Source::F32(_)) => $backend::quantize::<8, F32>,
            (Format::W8G32F16S, Source::Bf16(_)) => $backend::quantize::<8, BF16>,
            (Format::W8G32F16S, Source::F16(_)) => $backend::quantize::<8, F16>,
            _ => return None,
        }
    };
}

fn kernel(backend: Backend, format: Format, source: &Source<'_>) -> Option<Kernel> {
    match backend {
        Backend::Avx512 => Some(kernels!(avx512, format, source)),
        Backend::Avx2 => Some(kernels!(avx2, format, source)),
        Backend::Portable => None,
    }
}
