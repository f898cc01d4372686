//! Decoding by the NEON kernels: which kernel, on which bytes.

use bytemuck::{Zeroable, cast_slice_mut};

use super::fpcr::DefaultMode;
use super::kernels::{self, WIDEN_UNIT};
use super::lanes::word_bytes;
pub(crate) use super::nvfp4::Nvfp4Word;
use super::{Lanes, nvfp4};
use crate::backend::Stores;
use crate::backend::nvfp4_tables::Tables;
use crate::backend::{FP8_UNIT, Fp8Rows, GroupedRow, Narrow, Nvfp4Rows, portable};
use crate::format::nvfp4::GROUP;
use crate::format::{Format, direct};
use crate::layout::row_split::{BASE_BYTES, MAX_LANES, SCALE_BYTES};

/// The vector instructions of the chosen backend.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Simd {
    Neon,
}

/// A kernel that makes whole groups.
pub(super) type GroupedKernel = unsafe fn(&GroupedRow<'_>, &mut [u8]);

/// Bytes of the largest unit: 64 words of 32 bits.
const MAX_UNIT: usize = MAX_LANES * 4;

/// Runs a kernel over groups: whole ones into the output, one that its end cuts short aside.
///
/// # Safety
/// What the kernel asks for.
pub(super) unsafe fn run_groups(
    kernel: GroupedKernel,
    row: &GroupedRow<'_>,
    high_bytes: usize,
    unit: usize,
    out: &mut [u8],
) {
    let rest = out.len().checked_rem(unit).unwrap_or(0);
    let Some((whole, cut)) = out.split_at_mut_checked(out.len() - rest) else { return };
    // SAFETY: the caller's promise.
    unsafe { kernel(row, whole) };
    let mut aside = [0; MAX_UNIT];
    if let (false, Some(groups), Some(last)) =
        (cut.is_empty(), whole.len().checked_div(unit), aside.get_mut(..unit))
    {
        let from = |plane: &'_ [u8], bytes: usize| groups * bytes..plane.len();
        let row = GroupedRow {
            base: row.base.get(from(row.base, BASE_BYTES)).unwrap_or(&[]),
            high: row.high.get(from(row.high, high_bytes)).unwrap_or(&[]),
            scales: row.scales.get(from(row.scales, SCALE_BYTES)).unwrap_or(&[]),
        };
        // SAFETY: as above.
        unsafe { kernel(&row, last) };
        for (byte, made) in cut.iter_mut().zip(last) {
            *byte = *made;
        }
    }
}

/// Where storing rounds, the default mode is set, and the caller's comes back.
fn default_mode<N: Lanes>() -> Option<DefaultMode> {
    N::ROUNDS_BY_MODE.then(DefaultMode::enter)
}

/// Decodes groups that follow one another in every plane.
pub(crate) fn decode_grouped<N: Narrow>(
    _: Simd,
    format: Format,
    row: &GroupedRow<'_>,
    out: &mut [N::Word],
    _: &Stores,
) {
    let (kernel, lanes, high_bytes): (GroupedKernel, _, _) = match format {
        Format::Q4G64F16S => (kernels::q4::<N>, 64, 0),
        Format::Q5G64F16S => (kernels::q5::<N>, 64, 8),
        Format::Q6G64F16S => (kernels::q6::<N>, 64, 16),
        Format::W8G32F16S => (kernels::w8::<N>, 32, 0),
        _ => return,
    };
    let _mode = default_mode::<N>();
    // SAFETY: the target has NEON; the mode is set where storing asks for it.
    unsafe { run_groups(kernel, row, high_bytes, lanes * word_bytes::<N>(), cast_slice_mut(out)) };
}

/// Decodes rows of FP8 codes under legal row scales.
pub(crate) fn decode_fp8<N: Narrow>(_: Simd, rows: &Fp8Rows<'_>, out: &mut [N::Word], _: &Stores) {
    let _mode = default_mode::<N>();
    let columns = rows.columns.max(1);
    let codes = rows.codes.chunks(columns).zip(out.chunks_mut(columns));
    for ((codes, out), scale) in codes.zip(rows.scales.as_chunks().0) {
        fp8_row::<N>(codes, u16::from_le_bytes(*scale), out);
    }
}

/// One row, under the mode that storing asks for.
fn fp8_row<N: Narrow>(codes: &[u8], scale: u16, out: &mut [N::Word]) {
    if !portable::is_plain_scale(scale) {
        // A product may be subnormal or infinite here: integers, as everywhere.
        return portable::decode_fp8_row::<N>(codes, scale, out);
    }
    let scale = f32::from_bits(u32::from(scale) << 16);
    let Some((whole, cut)) = out.split_at_mut_checked(out.len() / FP8_UNIT * FP8_UNIT) else { return };
    // SAFETY: the target has NEON; the caller has set the mode where storing asks for it.
    unsafe { kernels::fp8::<N>(codes, scale, cast_slice_mut(whole)) };
    if !cut.is_empty() {
        let mut padded = [0; FP8_UNIT];
        for (code, last) in padded.iter_mut().zip(codes.get(whole.len()..).unwrap_or(&[])) {
            *code = *last;
        }
        let mut words = [N::Word::zeroed(); FP8_UNIT];
        // SAFETY: as above.
        unsafe { kernels::fp8::<N>(&padded, scale, cast_slice_mut(&mut words)) };
        for (word, made) in cut.iter_mut().zip(words) {
            *word = made;
        }
    }
}

/// Decodes rows of NVFP4 whose scales' words the tables hold.
pub(crate) fn decode_nvfp4<W: Nvfp4Word>(
    _: Simd,
    rows: &Nvfp4Rows<'_>,
    tables: &Tables<W>,
    out: &mut [W],
    _: &Stores,
) {
    let columns = (rows.groups - rows.first_group) * GROUP;
    let mut codes = rows.codes;
    for (row, out) in out.chunks_mut(columns.max(1)).enumerate() {
        // SAFETY: the target has NEON.
        unsafe { nvfp4::groups(codes, rows.row_scales(row), rows.first_group, tables, out) };
        codes = codes.get(columns / 2..).unwrap_or(&[]);
    }
}

/// Widens BF16 words to binary32 words.
pub(crate) fn widen_bf16(_: Simd, source: &[u8], out: &mut [u32], _: &Stores) {
    let (words, cut_words) = source.as_chunks::<{ 2 * WIDEN_UNIT }>();
    let (units, cut) = out.as_chunks_mut::<WIDEN_UNIT>();
    // SAFETY: the target has NEON.
    unsafe { kernels::widen_bf16(words, units) };
    // Where the source has a whole unit more, the cut one lies in it.
    let cut_words = words.get(units.len()).map_or(cut_words, |unit| unit);
    for (word, bytes) in cut.iter_mut().zip(cut_words.as_chunks().0) {
        *word = direct::bf16_to_f32_bits(u16::from_le_bytes(*bytes));
    }
}
