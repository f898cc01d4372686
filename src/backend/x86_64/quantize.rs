//! The canonical quantizer on x86-64: rows to batches, for kernels that take batches.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use super::mxcsr::DefaultMode;
use super::output::{BATCH, Output, PlaneBytes, fence};
use super::{avx2_quantize as avx2, avx512_quantize as avx512};
use crate::backend::{Backend, Quantize};
use crate::format::Format;
use crate::layout::row_split::{BASE_BYTES, SCALE_BYTES};
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
type Kernel = unsafe fn(*const u8, usize, &mut Output<'_>) -> usize;

/// Elements of source that are read as bytes.
#[derive(Clone, Copy)]
struct Elements {
    first: *const u8,
    bytes: usize,
}

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
    let batch = batch_of(group, job.high_bytes);
    let physical_groups = (job.columns.div_ceil(128) * 128 / group).max(1);
    // Rows without padding that follow one another are one long row.
    let merged = job.columns.is_multiple_of(128) && job.stride == job.columns;
    let (rows, columns) = if merged { (1, job.rows * job.columns) } else { (job.rows, job.columns) };
    let logical_groups = columns.div_ceil(group);
    if rows == 0 || (rows - 1).checked_mul(job.stride).is_none_or(|start| start + columns > count) {
        return 0;
    }
    let streaming = job.base.len() + job.high.len() + job.scales.len() >= STREAMING_BYTES;
    let mut output = Output::new(job.base, job.high, job.scales, batch, streaming);
    let _mode = DefaultMode::enter();
    let mut groups_done = 0;
    for row in 0..rows {
        // SAFETY: row `row` starts `row * stride` elements on, and the last one ends inside the source.
        let elements = Elements { first: unsafe { source.add(row * job.stride * bytes) }, bytes };
        // SAFETY: as above, `columns` elements follow; the backend was found available and the mode is set.
        let done = unsafe { quantize_run(kernel, elements, columns, group, &mut output) };
        groups_done += done;
        if done < logical_groups {
            break;
        }
        if !merged {
            let padding = physical_groups - logical_groups;
            groups_done += padding;
            append(&mut output, padding, BATCH / group, [&[0; 3 * BASE_BYTES]; 3]);
        }
    }
    if streaming {
        fence();
    }
    groups_done / physical_groups
}

/// Quantizes a row, the last batch of which may be short; returns the groups done.
///
/// # Safety
/// `columns` elements are readable. The kernel runs on this processor, its format is that of the output's batch,
/// and the float mode is the default one.
unsafe fn quantize_run(
    kernel: Kernel,
    elements: Elements,
    columns: usize,
    group: usize,
    output: &mut Output<'_>,
) -> usize {
    let Elements { first, bytes } = elements;
    let batches = columns / BATCH;
    let rest = columns % BATCH;
    // SAFETY: the caller's promise; `batches * BATCH <= columns`.
    let done = unsafe { kernel(first, batches, output) };
    let groups_done = done * (BATCH / group);
    if done < batches || rest == 0 {
        return groups_done;
    }
    // The lanes beyond the row are zeros: they change no maximum, and their codes are zero as padding must be.
    let mut source = [0u8; 4 * BATCH];
    let (mut base, mut high, mut scales) = ([0; 512], [0; 128], [0; 32]);
    let mut last = Output::new(&mut base, &mut high, &mut scales, output.batch(), false);
    // SAFETY: `rest` elements follow the whole batches, and they are fewer than the staged ones, which are a batch.
    let done = unsafe {
        let from = first.add(batches * BATCH * bytes);
        source.as_mut_ptr().copy_from_nonoverlapping(from, rest * bytes);
        kernel(source.as_ptr(), 1, &mut last)
    };
    if done == 0 {
        return groups_done;
    }
    let groups = rest.div_ceil(group);
    append(output, groups, BATCH / group, [&base, &high, &scales]);
    groups_done + groups
}

/// Asks for the lines some way after a quarter of a batch of the source, which a call over much of it will come to. They
/// need not be there: the processor's own prefetching ends with the page.
#[inline(always)]
pub(super) fn prefetch_quarter<const SOURCE: u8>(batch: *const u8, quarter: usize) {
    const AHEAD: usize = 4096;
    let bytes = BATCH / 4 * element_bytes(SOURCE);
    for line in (0..bytes).step_by(64) {
        // SAFETY: a prefetch has no effect on what a program does, whatever the address; the instruction is part
        // of x86-64.
        #[allow(unused_unsafe)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(batch.wrapping_add(AHEAD + quarter * bytes + line).cast());
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
