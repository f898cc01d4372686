//! How it is made fast. Private: a backend defines no meaning, it only reproduces `portable`'s bytes.
//!
//! Contract of every operation here. The caller has checked every argument: planes and outputs are as long as
//! the columns ask for, scale and divisor words are legal where the operation says so. The callee writes all
//! of its output and nothing else. Quantize and pack return how many rows they completed, and leave the first that
//! they did not, which may hold a fault, to the portable code. No result depends on the host's float mode.

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
#[allow(unsafe_code)]
mod aarch64;
mod detect;
#[cfg(all(
    test,
    any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
    )
))]
mod encode_mode_tests;
#[cfg(test)]
#[allow(unsafe_code)]
mod encode_tests;
#[cfg(all(
    test,
    any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
    )
))]
#[allow(unsafe_code)]
mod host_mode;
/// The vector kernels of a target that has none.
#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
)))]
mod no_vectors;
pub(crate) mod nvfp4_tables;
#[cfg(test)]
mod pack_tests;
mod portable;
mod portable_quantize;
#[cfg(target_arch = "x86_64")]
mod run;
mod scan;
mod stores;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86_64;

#[cfg(any(test, feature = "internals"))]
pub(crate) use detect::select;
pub(crate) use detect::{Backend, active};
pub(crate) use portable::decode_nvfp4_by_group;
pub(crate) use scan::Scan;
pub(crate) use stores::Stores;

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
use aarch64 as vector;
#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
)))]
use no_vectors as vector;
#[cfg(target_arch = "x86_64")]
use x86_64 as vector;

use self::nvfp4_tables::Tables;
use self::vector::decode::{self as simd, Simd};
use crate::format::{Format, binary16, direct};
use crate::layout::blockscale;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
))]
use crate::layout::row_split::{BASE_BYTES, SCALE_BYTES};
use crate::value::Source;

/// Narrows the binary32 word of a decoded value to an output type, rounding once.
pub(crate) trait Narrow: Lanes {
    /// The output type's words.
    type Word: NarrowWord;
    /// Rounds to nearest, ties to even.
    fn narrow(f32_bits: u32) -> Self::Word;
    /// The same for a zero, or a finite word of at least the output type's least normal magnitude: without a branch,
    /// so that compilers make vectors of it.
    fn narrow_normal(f32_bits: u32) -> Self::Word;
}

/// What vectors ask of an output type.
pub(crate) use vector::Lanes;
/// A word that NVFP4 decodes to.
pub(crate) use vector::decode::Nvfp4Word as NarrowWord;

/// To binary32: as it is.
pub(crate) struct ToF32;
/// To bfloat16.
pub(crate) struct ToBf16;
/// To binary16.
pub(crate) struct ToF16;

impl Narrow for ToF32 {
    type Word = u32;
    #[inline]
    fn narrow(f32_bits: u32) -> u32 {
        f32_bits
    }
    #[inline]
    fn narrow_normal(f32_bits: u32) -> u32 {
        f32_bits
    }
}

impl Narrow for ToBf16 {
    type Word = u16;
    #[inline]
    fn narrow(f32_bits: u32) -> u16 {
        direct::bf16_from_f32_bits(f32_bits)
    }
    #[inline]
    fn narrow_normal(f32_bits: u32) -> u16 {
        direct::bf16_from_ordered_f32_bits(f32_bits)
    }
}

impl Narrow for ToF16 {
    type Word = u16;
    #[inline]
    fn narrow(f32_bits: u32) -> u16 {
        binary16::from_f32_bits(f32_bits)
    }
    #[inline]
    fn narrow_normal(f32_bits: u32) -> u16 {
        binary16::from_normal_f32_bits(f32_bits)
    }
}

/// Groups of a grouped tensor: a row's from the first of a column range on, and what follows them.
pub(crate) struct GroupedRow<'a> {
    pub base: &'a [u8],
    pub high: &'a [u8],
    pub scales: &'a [u8],
}

#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
))]
impl<'a> GroupedRow<'a> {
    /// The base bytes and the scales of up to so many groups at a time, for formats without high bits.
    #[inline]
    pub(crate) fn batches(
        &self,
        groups: usize,
    ) -> impl Iterator<Item = (&'a [[u8; BASE_BYTES]], &'a [[u8; SCALE_BYTES]])> + use<'a> {
        self.base.as_chunks().0.chunks(groups).zip(self.scales.as_chunks().0.chunks(groups))
    }

    /// The same with the high bytes, of which a group has `HIGH`.
    #[inline]
    #[expect(clippy::type_complexity, reason = "three planes, by groups")]
    pub(crate) fn batches_with_high<const HIGH: usize>(
        &self,
        groups: usize,
    ) -> impl Iterator<Item = ((&'a [[u8; BASE_BYTES]], &'a [[u8; HIGH]]), &'a [[u8; SCALE_BYTES]])> + use<'a, HIGH>
    {
        let codes = self.base.as_chunks().0.chunks(groups).zip(self.high.as_chunks().0.chunks(groups));
        codes.zip(self.scales.as_chunks().0.chunks(groups))
    }
}

/// FP8 rows of a multiple of this many columns can be decoded as one run.
pub(crate) const FP8_UNIT: usize = 64;

/// Rows of an FP8 tensor: a part of one, or whole ones of a multiple of 64 columns that follow one another.
pub(crate) struct Fp8Rows<'a> {
    pub codes: &'a [u8],
    /// Columns of a row, from the first of a column range on.
    pub columns: usize,
    /// The scale words, from that of the first row on.
    pub scales: &'a [u8],
}

/// Rows of an NVFP4 tensor: a part of one, or whole ones that follow one another.
pub(crate) struct Nvfp4Rows<'a> {
    /// Code pairs from the first column of the range on.
    pub codes: &'a [u8],
    /// The scale plane from the first row's tile on.
    pub scales: &'a [u8],
    /// The first row, counted from the tile's.
    pub first_row: usize,
    /// The range's first group.
    pub first_group: usize,
    /// Groups of a whole row.
    pub groups: usize,
}

impl<'a> Nvfp4Rows<'a> {
    /// The scale plane from group 0 of a row on, by its number after the first: group `g` is at
    /// `g / 4 * 512 + g % 4`.
    #[inline]
    pub(crate) fn row_scales(&self, row: usize) -> &'a [u8] {
        let offset = blockscale::scale_offset((self.first_row + row) as u64, 0, self.groups as u64);
        self.scales.get(offset as usize..).unwrap_or(&[])
    }
}

/// The vector backend that runs, if it is one.
#[inline]
fn vectors() -> Option<Simd> {
    #[cfg(test)]
    tests::count_call();
    match active() {
        Backend::Portable => None,
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 => Some(Simd::Avx2),
        #[cfg(target_arch = "x86_64")]
        Backend::Avx512 => Some(Simd::Avx512),
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Backend::Neon => Some(Simd::Neon),
    }
}

/// Decodes groups of one of the four grouped formats, under legal scales; any other format writes nothing.
/// The last group may be cut short by the end of `out`; the planes hold all of it.
pub(crate) fn decode_grouped<N: Narrow>(
    format: Format,
    row: &GroupedRow<'_>,
    out: &mut [N::Word],
    stores: &Stores,
) {
    if let Some(vectors) = vectors() {
        return simd::decode_grouped::<N>(vectors, format, row, out, stores);
    }
    portable::decode_grouped_row::<N>(format, row, out);
}

/// Decodes FP8 codes, as many as `out` has words, under legal row scales.
pub(crate) fn decode_fp8<N: Narrow>(rows: &Fp8Rows<'_>, out: &mut [N::Word], stores: &Stores) {
    if let Some(vectors) = vectors() {
        return simd::decode_fp8::<N>(vectors, rows, out, stores);
    }
    let codes = rows.codes.chunks(rows.columns.max(1)).zip(out.chunks_mut(rows.columns.max(1)));
    for ((codes, out), scale) in codes.zip(rows.scales.as_chunks().0) {
        portable::decode_fp8_row::<N>(codes, u16::from_le_bytes(*scale), out);
    }
}

/// Says whether to keep the words of the scales met, for a call on so many NVFP4 groups: vectors need them, and
/// portable code is quicker with them from some number on. They take 16 kB of stack, which firmware may not have.
pub(crate) fn keeps_nvfp4_words(groups: u64) -> bool {
    let is_worth_it = groups >= nvfp4_tables::LARGE_CALL && cfg!(not(target_os = "none"));
    active() != Backend::Portable || is_worth_it
}

/// Decodes NVFP4 codes, as many as `out` has words. The codes go to the end of a row at least; the tables hold the
/// words of the scales that stand over them.
pub(crate) fn decode_nvfp4<W: NarrowWord>(
    rows: &Nvfp4Rows<'_>,
    tables: &Tables<W>,
    out: &mut [W],
    stores: &Stores,
) {
    if let Some(vectors) = vectors() {
        return simd::decode_nvfp4(vectors, rows, tables, out, stores);
    }
    portable::decode_nvfp4(rows, tables, out);
}

/// Widens little-endian BF16 words to binary32 words, as many as `out` has.
pub(crate) fn widen_bf16(source: &[u8], out: &mut [u32], stores: &Stores) {
    if let Some(vectors) = vectors() {
        return simd::widen_bf16(vectors, source, out, stores);
    }
    portable::widen_bf16(source, out);
}

/// Says whether all words are what is looked for.
pub(crate) fn scan(scan: Scan, bytes: &[u8]) -> bool {
    if let Some(vectors) = vectors() {
        return vector::scan::all(vectors, scan, bytes);
    }
    scan::all(scan, bytes)
}

/// Copies between slices of one length.
pub(crate) fn copy(target: &mut [u8], source: &[u8], stores: &Stores) {
    #[cfg(target_arch = "x86_64")]
    if let Some(vectors) = stores.streaming() {
        return x86_64::stream::copy_streaming(vectors, target, source);
    }
    let _ = stores;
    crate::words::copy(target, source);
}

/// Copies little-endian words to native ones, as many as `out` has.
pub(crate) fn copy_words<W: LeWord>(source: &[u8], out: &mut [W], stores: &Stores) {
    if cfg!(target_endian = "little") {
        let out: &mut [u8] = bytemuck::cast_slice_mut(out);
        return copy(out, source.get(..out.len()).unwrap_or(source), stores);
    }
    for (word, bytes) in out.iter_mut().zip(source.chunks_exact(size_of::<W>())) {
        *word = W::from_le(bytemuck::pod_read_unaligned(bytes));
    }
}

/// A word as it lies in a payload.
pub(crate) trait LeWord: bytemuck::Pod {
    /// The native word of one whose bytes are little-endian.
    fn from_le(word: Self) -> Self;
}

macro_rules! le_words {
    ($($word:ty),*) => {$(
        impl LeWord for $word {
            fn from_le(word: Self) -> Self {
                Self::from_le(word)
            }
        }
    )*};
}

le_words!(u8, u16, u32, i32);

/// Unpacks the signed codes of groups of one of the four grouped formats, one a byte of `out`; any other format
/// writes nothing. The last group may be cut short by the end of `out`; the planes hold all of it.
pub(crate) fn unpack_codes(format: Format, row: &GroupedRow<'_>, out: &mut [u8], stores: &Stores) {
    if let Some(vectors) = vectors() {
        return vector::unpack::codes(vectors, format, row, out, stores);
    }
    portable::unpack_codes(format, row, out);
}

/// Places the natural scale words of 128 NVFP4 rows, `groups` a row, in their tiles.
pub(crate) fn swizzle(natural: &[u8], groups: usize, tiles: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if vectors().is_some() && x86_64::swizzle::swizzle(natural, groups, tiles) {
        return;
    }
    blockscale::swizzle(natural, groups, tiles);
}

/// Puts the scale words of 128 NVFP4 rows, `groups` a row, in natural order.
pub(crate) fn unswizzle(tiles: &[u8], groups: usize, natural: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if vectors().is_some() && x86_64::swizzle::unswizzle(tiles, groups, natural) {
        return;
    }
    blockscale::unswizzle(tiles, groups, natural);
}

/// Rows to quantize into the planes of a grouped tensor.
pub(crate) struct Quantize<'a> {
    pub format: Format,
    pub source: Source<'a>,
    pub rows: usize,
    pub columns: usize,
    /// Elements from one row's first to the next one's; `(rows - 1) * stride + columns` are there.
    pub stride: usize,
    /// High bytes a group.
    pub high_bytes: usize,
    /// The planes' bytes of these rows, padding included.
    pub base: &'a mut [u8],
    pub high: &'a mut [u8],
    pub scales: &'a mut [u8],
}

/// Quantizes rows with the canonical encoder's bytes, from the first on, and returns how many are complete.
///
/// It stops before a row that it cannot do: one with a value or a scale that is not finite, or any row where the
/// portable backend cannot trust the host's arithmetic. That row and those after it are unspecified then; the
/// integer encoder does the row, or says what is wrong with it.
pub(crate) fn quantize_rows(backend: Backend, job: Quantize<'_>) -> usize {
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 | Backend::Avx512 => x86_64::quantize_rows(backend, job),
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Backend::Neon => aarch64::quantize_rows(job),
        _ => portable_quantize::quantize_rows(job),
    }
}

/// Natural words to pack into the planes of a grouped tensor.
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
))]
pub(crate) struct Pack<'a> {
    pub format: Format,
    /// `columns` codes a row.
    pub codes: &'a [i8],
    /// One scale word a logical group.
    pub scale_words: &'a [u16],
    pub rows: usize,
    pub columns: usize,
    /// High bits a group.
    pub high_bytes: usize,
    /// The planes' bytes of these rows, padding included.
    pub base: &'a mut [u8],
    pub high: &'a mut [u8],
    pub scales: &'a mut [u8],
}

/// Packs rows after checking their words, from the first on, and returns how many are complete.
///
/// It stops before a row with an illegal scale or code, or a code other than zero under a zero scale, or before any
/// row if the backend declines. That row and those after it are unspecified then.
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
))]
pub(crate) fn pack_rows(backend: Backend, job: Pack<'_>) -> usize {
    match backend {
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2 | Backend::Avx512 => x86_64::pack_rows(backend, job),
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Backend::Neon => aarch64::pack_rows(job),
        Backend::Portable => 0,
    }
}
