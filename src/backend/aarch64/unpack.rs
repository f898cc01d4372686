//! Unpacking codes by NEON: a group of 64 lanes to 64 signed bytes. Integers only.

use super::decode::{GroupedKernel, Simd, run_groups};
use super::kernels::{q4_codes, q5_codes, q6_codes};
use super::lanes::store_each16;
use crate::backend::GroupedRow;
use crate::backend::Stores;
use crate::format::Format;
use crate::layout::row_split::MAX_LANES;

/// Unpacks the codes of groups that follow one another in every plane.
pub(crate) fn codes(_: Simd, format: Format, row: &GroupedRow<'_>, out: &mut [u8], stores: &Stores) {
    let (kernel, high_bytes): (GroupedKernel, _) = match format {
        Format::Q4G64F16S => (q4, 0),
        Format::Q5G64F16S => (q5, 8),
        Format::Q6G64F16S => (q6, 16),
        Format::W8G32F16S => {
            let base = row.base.get(..out.len()).unwrap_or(row.base);
            return crate::backend::copy(out, base, stores);
        }
        _ => return,
    };
    // SAFETY: the target has NEON, and nothing is rounded.
    unsafe { run_groups(kernel, row, high_bytes, MAX_LANES, out) };
}

#[target_feature(enable = "neon")]
fn q4(row: &GroupedRow<'_>, out: &mut [u8]) {
    for (base, out) in row.base.as_chunks().0.iter().zip(out.as_chunks_mut::<MAX_LANES>().0) {
        store_each16(out, q4_codes(base));
    }
}

#[target_feature(enable = "neon")]
fn q5(row: &GroupedRow<'_>, out: &mut [u8]) {
    let groups = row.base.as_chunks().0.iter().zip(row.high.as_chunks().0);
    for ((base, high), out) in groups.zip(out.as_chunks_mut::<MAX_LANES>().0) {
        store_each16(out, q5_codes(base, high));
    }
}

#[target_feature(enable = "neon")]
fn q6(row: &GroupedRow<'_>, out: &mut [u8]) {
    let groups = row.base.as_chunks().0.iter().zip(row.high.as_chunks().0);
    for ((base, high), out) in groups.zip(out.as_chunks_mut::<MAX_LANES>().0) {
        store_each16(out, q6_codes(base, high));
    }
}
