//! Packing of grouped words on x86-64: rows to batches, for kernels that take batches.

use super::output::{BATCH, Output, PlaneBytes, fence};
use super::quantize::{STREAMING_BYTES, append, batch_of};
use super::{avx2_pack as avx2, avx512_pack as avx512};
use crate::backend::{Backend, Pack};
use crate::format::Format;

/// A packer of batches: see [`avx512::pack`], whose contract all have.
type Kernel = unsafe fn(*const u8, *const u8, usize, &mut Output<'_>) -> usize;

/// Packs rows until one is at fault; see the contract in [`crate::backend`].
pub(crate) fn pack_rows(backend: Backend, job: Pack<'_>) -> usize {
    // Scale words are copied as they lie in memory: x86-64 is little-endian.
    let Some(kernel) = kernel(backend, job.format) else { return 0 };
    let group = (job.format.column_step() as usize).max(1);
    let batch = batch_of(group, job.high_bytes);
    let physical_groups = (job.columns.div_ceil(128) * 128 / group).max(1);
    // Rows without padding are one long row.
    let merged = job.columns.is_multiple_of(128);
    let (rows, columns) = if merged { (1, job.rows * job.columns) } else { (job.rows, job.columns) };
    let logical_groups = columns.div_ceil(group);
    if rows * columns > job.codes.len() || rows * logical_groups > job.scale_words.len() {
        return 0;
    }
    let streaming = job.base.len() + job.high.len() + job.scales.len() >= STREAMING_BYTES;
    let mut output = Output::new(job.base, job.high, job.scales, batch, streaming);
    let mut groups_done = 0;
    for row in 0..rows {
        // SAFETY: `rows * columns` codes and `rows * logical_groups` scale words are there; the backend was found
        // available.
        let done = unsafe {
            let codes = job.codes.as_ptr().add(row * columns).cast();
            let scales = job.scale_words.as_ptr().add(row * logical_groups).cast();
            pack_run(kernel, codes, scales, columns, group, &mut output)
        };
        groups_done += done;
        if done < logical_groups {
            break;
        }
        if !merged {
            let padding = physical_groups - logical_groups;
            groups_done += padding;
            append(&mut output, padding, BATCH / group, [&[0; 96]; 3]);
        }
    }
    if streaming {
        fence();
    }
    groups_done / physical_groups
}

/// Packs a row, the last batch of which may be short; returns the groups done.
///
/// # Safety
/// `columns` codes are readable, and the scale words of their groups. The kernel runs on this processor, and its
/// format is that of the output's batch.
unsafe fn pack_run(
    kernel: Kernel,
    codes: *const u8,
    scales: *const u8,
    columns: usize,
    group: usize,
    output: &mut Output<'_>,
) -> usize {
    let batches = columns / BATCH;
    let rest = columns % BATCH;
    let PlaneBytes { scales: scale_bytes, .. } = output.batch();
    // SAFETY: the caller's promise; `batches * BATCH <= columns`.
    let done = unsafe { kernel(codes, scales, batches, output) };
    let groups_done = done * (BATCH / group);
    if done < batches || rest == 0 {
        return groups_done;
    }
    // Zero codes and scales beyond the row are legal, and what padding must be.
    let (mut last_codes, mut last_scales) = ([0u8; BATCH], [0u8; 32]);
    let (mut base, mut high, mut words) = ([0; 512], [0; 128], [0; 32]);
    let mut last = Output::new(&mut base, &mut high, &mut words, output.batch(), false);
    let groups = rest.div_ceil(group);
    // SAFETY: `rest` codes and the words of their groups follow the whole batches, and are fewer than a batch's.
    let done = unsafe {
        last_codes.as_mut_ptr().copy_from_nonoverlapping(codes.add(batches * BATCH), rest);
        let from = scales.add(batches * scale_bytes);
        last_scales.as_mut_ptr().copy_from_nonoverlapping(from, 2 * groups);
        kernel(last_codes.as_ptr(), last_scales.as_ptr(), 1, &mut last)
    };
    if done == 0 {
        return groups_done;
    }
    append(output, groups, BATCH / group, [&base, &high, &words]);
    groups_done + groups
}

fn kernel(backend: Backend, format: Format) -> Option<Kernel> {
    Some(match (backend, format) {
        (Backend::Avx512, Format::Q4G64F16S) => avx512::pack::<4>,
        (Backend::Avx512, Format::Q5G64F16S) => avx512::pack::<5>,
        (Backend::Avx512, Format::Q6G64F16S) => avx512::pack::<6>,
        (Backend::Avx512, Format::W8G32F16S) => avx512::pack::<8>,
        (Backend::Avx2, Format::Q4G64F16S) => avx2::pack::<4>,
        (Backend::Avx2, Format::Q5G64F16S) => avx2::pack::<5>,
        (Backend::Avx2, Format::Q6G64F16S) => avx2::pack::<6>,
        (Backend::Avx2, Format::W8G32F16S) => avx2::pack::<8>,
        _ => return None,
    })
}
