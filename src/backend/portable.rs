//! The portable backend: plain Rust, always compiled, the reference that every other backend is compared with.

use core::borrow::Borrow;

use super::nvfp4_tables::Tables;
use super::{GroupedRow, Narrow, Nvfp4Rows};
use crate::format::nvfp4::GROUP;
use crate::format::{Format, direct, e4m3fn, fp8_row, grouped};
use crate::layout::row_split::{unpack_q4, unpack_q5, unpack_q6, unpack_w8};
use crate::words::copy;

/// Decodes a row of one of the four grouped formats; any other format writes nothing.
pub(crate) fn decode_grouped_row<N: Narrow>(format: Format, row: &GroupedRow<'_>, out: &mut [N::Word]) {
    #[cfg(test)]
    super::tests::count_portable();
    let base = row.base.as_chunks().0.iter();
    match format {
        Format::Q4G64F16S => products::<N, 64>(base.map(unpack_q4), row.scales, out),
        Format::Q5G64F16S => {
            let groups = base.zip(row.high.as_chunks().0).map(|(base, high)| unpack_q5(base, high));
            products::<N, 64>(groups, row.scales, out);
        }
        Format::Q6G64F16S => {
            let groups = base.zip(row.high.as_chunks().0).map(|(base, high)| unpack_q6(base, high));
            products::<N, 64>(groups, row.scales, out);
        }
        Format::W8G32F16S => products::<N, 32>(base.map(unpack_w8), row.scales, out),
        _ => {}
    }
}

/// Writes `scale * code`, group by group; the last group may be cut short by the end of `out`.
#[inline]
fn products<N: Narrow, const LANES: usize>(
    codes: impl Iterator<Item = [i8; LANES]>,
    scales: &[u8],
    out: &mut [N::Word],
) {
    let scales = scales.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
    for (out, (codes, scale)) in out.chunks_mut(LANES).zip(codes.zip(scales)) {
        for (word, code) in out.iter_mut().zip(codes) {
            *word = N::narrow(grouped::product_f32_bits(code, scale));
        }
    }
}

/// Unpacks the signed codes of groups, one a byte of `out`.
pub(crate) fn unpack_codes(format: Format, row: &GroupedRow<'_>, out: &mut [u8]) {
    #[cfg(test)]
    super::tests::count_portable();
    let base = row.base.as_chunks().0.iter();
    match format {
        Format::Q4G64F16S => lanes::<64>(base.map(unpack_q4), out),
        Format::Q5G64F16S => {
            lanes::<64>(base.zip(row.high.as_chunks().0).map(|(base, high)| unpack_q5(base, high)), out);
        }
        Format::Q6G64F16S => {
            lanes::<64>(base.zip(row.high.as_chunks().0).map(|(base, high)| unpack_q6(base, high)), out);
        }
        Format::W8G32F16S => copy(out, row.base.get(..out.len()).unwrap_or(&[])),
        _ => {}
    }
}

#[inline]
fn lanes<const LANES: usize>(codes: impl Iterator<Item = [i8; LANES]>, out: &mut [u8]) {
    for (out, codes) in out.chunks_mut(LANES).zip(codes) {
        for (byte, code) in out.iter_mut().zip(codes) {
            *byte = code as u8;
        }
    }
}

/// Decodes a row of FP8 codes under one legal row scale.
pub(crate) fn decode_fp8_row<N: Narrow>(codes: &[u8], scale: u16, out: &mut [N::Word]) {
    #[cfg(test)]
    super::tests::count_portable();
    for (word, &code) in out.iter_mut().zip(codes) {
        *word = N::narrow(fp8_product(code, scale));
    }
}

/// Row scales between 2^-100 and 2^100, and zero: no product is subnormal or overflows, so the host's float
/// modes cannot touch the multiplication.
pub(super) fn is_plain_scale(scale: u16) -> bool {
    const LOW: u16 = (127 - 100) << 7;
    const HIGH: u16 = (127 + 100) << 7;
    scale == 0 || (LOW..HIGH).contains(&scale)
}

#[inline]
fn fp8_product(code: u8, scale: u16) -> u32 {
    if is_plain_scale(scale) && e4m3fn::is_legal_code(code) {
        let scale = f32::from_bits(u32::from(scale) << 16);
        (f32::from_bits(e4m3fn::to_f32_bits(code)) * scale).to_bits()
    } else {
        fp8_row::product_f32_bits(code, scale)
    }
}

/// Decodes rows of NVFP4 under the scales that the tables hold.
pub(crate) fn decode_nvfp4<W: Copy>(rows: &Nvfp4Rows<'_>, tables: &Tables<W>, out: &mut [W]) {
    #[cfg(test)]
    super::tests::count_portable();
    decode_nvfp4_by_group(rows, |scale| entry(tables, scale), out);
}

/// Decodes rows of NVFP4, given the words of all 16 codes under a scale.
pub(crate) fn decode_nvfp4_by_group<W: Copy, Words: Borrow<[W; 16]>>(
    rows: &Nvfp4Rows<'_>,
    words_of: impl Fn(u8) -> Words,
    out: &mut [W],
) {
    let columns = (rows.groups - rows.first_group) * GROUP;
    // Not a second `chunks` beside the first: to pair them divides, by what the compiler may not see to be nonzero.
    let mut codes = rows.codes;
    for (row, out) in out.chunks_mut(columns.max(1)).enumerate() {
        let scales = rows.row_scales(row);
        let groups = codes.chunks(GROUP / 2).zip(out.chunks_mut(GROUP));
        for (group, (codes, out)) in (rows.first_group..).zip(groups) {
            let words = words_of(scales.get(group / 4 * 512 + group % 4).copied().unwrap_or(0));
            for (pair, byte) in out.chunks_mut(2).zip(codes) {
                for (word, code) in pair.iter_mut().zip([byte & 0xf, byte >> 4]) {
                    *word = word_of(words.borrow(), code);
                }
            }
        }
        codes = codes.get(columns / 2..).unwrap_or(&[]);
    }
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "a masked index into 128 entries")]
fn entry<W>(tables: &Tables<W>, scale: u8) -> &[W; 16] {
    &tables[usize::from(scale & 0x7f)]
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "a masked index into 16 entries")]
fn word_of<W: Copy>(words: &[W; 16], code: u8) -> W {
    words[usize::from(code & 0xf)]
}

/// Widens little-endian BF16 words.
pub(crate) fn widen_bf16(source: &[u8], out: &mut [u32]) {
    #[cfg(test)]
    super::tests::count_portable();
    for (word, bytes) in out.iter_mut().zip(source.as_chunks().0) {
        *word = direct::bf16_to_f32_bits(u16::from_le_bytes(*bytes));
    }
}
