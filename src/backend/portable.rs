//! The portable backend: plain Rust, always compiled, the reference that every other backend is compared with.

use core::borrow::Borrow;

use bytemuck::Zeroable;

use super::nvfp4_tables::Tables;
use super::{GroupedRow, Narrow, Nvfp4Rows};
use crate::format::nvfp4::GROUP;
use crate::format::{Format, binary16, direct, e4m3fn, fp8_row, grouped};
use crate::layout::row_split::{BASE_BYTES, MAX_LANES, Q5_HIGH_BYTES, Q6_HIGH_BYTES, SCALE_BYTES};
use crate::words::copy;

/// Decodes a row of one of the four grouped formats; any other format writes nothing.
pub(crate) fn decode_grouped_row<N: Narrow>(format: Format, row: &GroupedRow<'_>, out: &mut [N::Word]) {
    #[cfg(test)]
    super::tests::count_portable();
    let Some(lanes) = lanes_of(format) else { return };
    let mut codes = [0; BATCH * MAX_LANES];
    let scales = row.scales.chunks(BATCH * SCALE_BYTES);
    for (first, (scales, out)) in (0..).step_by(BATCH).zip(scales.zip(out.chunks_mut(BATCH * lanes))) {
        unpack_groups(
            format,
            row,
            first,
            codes.get_mut(..out.len().next_multiple_of(lanes)).unwrap_or_default(),
        );
        let sign = sign_of(format);
        let groups = codes.chunks(lanes).zip(scales.as_chunks().0);
        for (out, (codes, scale)) in out.chunks_mut(lanes).zip(groups) {
            group_products::<N>(codes, sign, *scale, out);
        }
    }
}

/// Codes of a group, as constants: what divides by a multiple of one is seen to be nonzero.
#[inline]
fn lanes_of(format: Format) -> Option<usize> {
    const LANES: usize = grouped::Q4.group as usize;
    const LANES_W8: usize = grouped::W8.group as usize;
    match format {
        Format::Q4G64F16S | Format::Q5G64F16S | Format::Q6G64F16S => Some(LANES),
        Format::W8G32F16S => Some(LANES_W8),
        _ => None,
    }
}

/// Groups unpacked at a time, so that every loop is a long one.
const BATCH: usize = 8;

/// The sign bit of a code.
#[inline]
fn sign_of(format: Format) -> u8 {
    match format {
        Format::Q5G64F16S => 0x10,
        Format::Q6G64F16S => 0x20,
        Format::W8G32F16S => 0x80,
        _ => 0x08,
    }
}

/// Unpacks the code words of groups from `first` on, as many as `codes` has room for, with zeros above them.
fn unpack_groups(format: Format, row: &GroupedRow<'_>, first: usize, codes: &mut [u8]) {
    let from = |plane: &'_ [u8], bytes: usize| first * bytes..plane.len();
    let base = row.base.get(from(row.base, BASE_BYTES)).unwrap_or(&[]);
    if format == Format::W8G32F16S {
        return copy(codes, base.get(..codes.len()).unwrap_or(&[]));
    }
    for (pair, byte) in codes.as_chunks_mut::<2>().0.iter_mut().zip(base) {
        let byte = u16::from(*byte);
        *pair = ((byte | byte << 4) & 0x0f0f).to_le_bytes();
    }
    match format {
        Format::Q5G64F16S => {
            let high = row.high.get(from(row.high, Q5_HIGH_BYTES)).unwrap_or(&[]);
            for (lanes, byte) in codes.as_chunks_mut::<4>().0.as_chunks_mut::<2>().0.iter_mut().zip(high) {
                // Four bits to bit 4 of four bytes, twice.
                let spread = |bits: u32| (bits << 4 | bits << 11 | bits << 18 | bits << 25) & 0x1010_1010;
                let bits = [u32::from(byte & 0x0f), u32::from(byte >> 4)];
                for (lanes, bits) in lanes.iter_mut().zip(bits) {
                    *lanes = (u32::from_le_bytes(*lanes) | spread(bits)).to_le_bytes();
                }
            }
        }
        Format::Q6G64F16S => {
            let high = row.high.get(from(row.high, Q6_HIGH_BYTES)).unwrap_or(&[]);
            for (lanes, byte) in codes.as_chunks_mut::<4>().0.iter_mut().zip(high) {
                // Two bits each to bits 5 and 4 of four bytes.
                let bits = u32::from(*byte);
                let spread = (bits << 4 | bits << 10 | bits << 16 | bits << 22) & 0x3030_3030;
                *lanes = (u32::from_le_bytes(*lanes) | spread).to_le_bytes();
            }
        }
        _ => {}
    }
}

/// An exact product is normal, or a zero of its sign; see [`grouped::product_f32_bits`]. Under a normal scale it is
/// a zero, normal in every output type, or too large for it.
///
/// Codes are widened as numbers from 0 on, `sign` above their own: with SSE2, compilers widen signed bytes by an
/// instruction that waits for what its target held before.
#[inline]
fn group_products<N: Narrow>(codes: &[u8], sign: u8, scale: [u8; SCALE_BYTES], out: &mut [N::Word]) {
    let word = u16::from_le_bytes(scale);
    let scale = f32::from_bits(binary16::to_f32_bits(word));
    let product = |&code: &u8| (scale * (i32::from(code ^ sign) - i32::from(sign)) as f32).to_bits();
    let products = out.iter_mut().zip(codes.iter().map(product));
    if word < binary16::MIN_NORMAL {
        products.for_each(|(word, product)| *word = N::narrow(product));
    } else {
        products.for_each(|(word, product)| *word = N::narrow_normal(product));
    }
}

/// Unpacks the signed codes of groups, one a byte of `out`.
pub(crate) fn unpack_codes(format: Format, row: &GroupedRow<'_>, out: &mut [u8]) {
    #[cfg(test)]
    super::tests::count_portable();
    let Some(lanes) = lanes_of(format) else { return };
    if format == Format::W8G32F16S {
        return copy(out, row.base.get(..out.len()).unwrap_or(&[]));
    }
    let whole = out.len() / lanes * lanes;
    let Some((body, cut)) = out.split_at_mut_checked(whole) else { return };
    unpack_groups(format, row, 0, body);
    if !cut.is_empty() {
        let mut codes = [0; MAX_LANES];
        unpack_groups(format, row, whole / lanes, codes.get_mut(..lanes).unwrap_or_default());
        for (out, code) in cut.iter_mut().zip(codes) {
            *out = code;
        }
    }
    let sign = sign_of(format);
    for code in out {
        *code = (*code ^ sign).wrapping_sub(sign);
    }
}

/// Decodes a row of FP8 codes under one legal row scale. Never inlined: its table would be on the
/// stack of decoding any format.
#[inline(never)]
pub(crate) fn decode_fp8_row<N: Narrow>(codes: &[u8], scale: u16, out: &mut [N::Word]) {
    #[cfg(test)]
    super::tests::count_portable();
    if codes.len() < CODE_WORDS {
        for (word, &code) in out.iter_mut().zip(codes) {
            *word = N::narrow(fp8_product(code, scale));
        }
        return;
    }
    // What every code stands for in this row.
    let mut words = [N::Word::zeroed(); CODE_WORDS];
    if is_plain_scale(scale) {
        let scale = f32::from_bits(u32::from(scale) << 16);
        for (word, bits) in words.iter_mut().zip(&e4m3fn::F32_BITS) {
            *word = N::narrow((f32::from_bits(*bits) * scale).to_bits());
        }
        // The products of NaNs are NaNs, but not the same on every machine.
        for half in words.as_chunks_mut::<{ CODE_WORDS / 2 }>().0 {
            if let Some(nan) = half.last_mut() {
                *nan = N::narrow(e4m3fn::NAN_F32_BITS);
            }
        }
    } else {
        for (code, word) in (0..=u8::MAX).zip(&mut words) {
            *word = N::narrow(fp8_row::product_f32_bits(code, scale));
        }
    }
    for (word, &code) in out.iter_mut().zip(codes) {
        *word = of_code(&words, code);
    }
}

/// The number of E4M3FN words.
const CODE_WORDS: usize = 256;

#[inline]
#[expect(clippy::indexing_slicing, reason = "a byte into 256 entries")]
fn of_code<W: Copy>(words: &[W; CODE_WORDS], code: u8) -> W {
    words[usize::from(code)]
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
            if let (Some(codes), Some(out)) = (codes.first_chunk(), out.first_chunk_mut()) {
                look_up_group(words.borrow(), codes, out);
                continue;
            }
            for (pair, byte) in out.chunks_mut(2).zip(codes) {
                for (word, code) in pair.iter_mut().zip([byte & 0xf, byte >> 4]) {
                    *word = word_of(words.borrow(), code);
                }
            }
        }
        codes = codes.get(columns / 2..).unwrap_or(&[]);
    }
}

/// A whole group, unrolled.
#[inline]
fn look_up_group<W: Copy>(words: &[W; 16], codes: &[u8; GROUP / 2], out: &mut [W; GROUP]) {
    for ([low, high], byte) in out.as_chunks_mut::<2>().0.iter_mut().zip(codes) {
        (*low, *high) = (word_of(words, *byte), word_of(words, *byte >> 4));
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
