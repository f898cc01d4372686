//! Decoding by the AVX2 and AVX-512 kernels: which kernel, on which bytes.

use core::marker::PhantomData;
use core::mem;

use bytemuck::{Zeroable, cast_slice, cast_slice_mut};

use super::lanes::word_bytes;
use super::mxcsr::DefaultMode;
use super::{Lanes, avx2_decode as avx2, avx512_decode as avx512};
use crate::backend::nvfp4_tables::{TableWord, Tables};
use crate::backend::run::{Carry, Units, run};
use crate::backend::{FP8_UNIT, Fp8Rows, GroupedRow, Narrow, Nvfp4Rows, Stores, portable};
use crate::format::Format;
use crate::format::nvfp4::GROUP;
use crate::layout::row_split::{BASE_BYTES, SCALE_BYTES};

/// The instruction sets of the chosen backend. A value is made only where the processor has them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Simd {
    Avx2,
    Avx512,
}

/// A kernel that writes to the output, and one that streams.
type Pair<Kernel> = [Kernel; 2];

pub(super) type GroupedKernel = unsafe fn(&GroupedRow<'_>, &mut [u8], &mut Carry);

/// Groups of a grouped format; `unit` is what one makes, in bytes.
pub(super) struct Grouped<'a> {
    pub kernels: Pair<GroupedKernel>,
    pub row: &'a GroupedRow<'a>,
    pub high_bytes: usize,
    pub unit: usize,
}

impl Units for Grouped<'_> {
    fn unit_bytes(&self) -> usize {
        self.unit
    }

    fn make(&self, first: usize, out: &mut [u8], carry: &mut Carry) {
        let from = |plane: &'_ [u8], bytes: usize| first * bytes..plane.len();
        let row = GroupedRow {
            base: self.row.base.get(from(self.row.base, BASE_BYTES)).unwrap_or(&[]),
            high: self.row.high.get(from(self.row.high, self.high_bytes)).unwrap_or(&[]),
            scales: self.row.scales.get(from(self.row.scales, SCALE_BYTES)).unwrap_or(&[]),
        };
        // SAFETY: the kernel was taken for a `Simd` value, which exists only where its instructions do. Memory
        // it reaches through slices.
        unsafe { carry.choose(self.kernels)(&row, out, carry) };
    }
}

/// Decodes groups that follow one another in every plane.
pub(crate) fn decode_grouped<N: Narrow>(
    simd: Simd,
    format: Format,
    row: &GroupedRow<'_>,
    out: &mut [N::Word],
    stores: &Stores,
) {
    use Format::{Q4G64F16S, Q5G64F16S, Q6G64F16S, W8G32F16S};
    let (kernels, lanes, high_bytes): (Pair<GroupedKernel>, _, _) = match (simd, format) {
        (Simd::Avx512, Q4G64F16S) => ([avx512::q4::<N, false>, avx512::q4::<N, true>], 64, 0),
        (Simd::Avx512, Q5G64F16S) => ([avx512::q5::<N, false>, avx512::q5::<N, true>], 64, 8),
        (Simd::Avx512, Q6G64F16S) => ([avx512::q6::<N, false>, avx512::q6::<N, true>], 64, 16),
        (Simd::Avx512, W8G32F16S) => ([avx512::w8::<N, false>, avx512::w8::<N, true>], 32, 0),
        (Simd::Avx2, Q4G64F16S) => ([avx2::q4::<N>; 2], 64, 0),
        (Simd::Avx2, Q5G64F16S) => ([avx2::q5::<N>; 2], 64, 8),
        (Simd::Avx2, Q6G64F16S) => ([avx2::q6::<N>; 2], 64, 16),
        (Simd::Avx2, W8G32F16S) => ([avx2::w8::<N>; 2], 32, 0),
        _ => return,
    };
    let _mode = default_mode::<N>(simd);
    let units = Grouped { kernels, row, high_bytes, unit: lanes * word_bytes::<N>() };
    run(&units, cast_slice_mut(out), stores);
}

/// Where storing could raise an exception, the default mode masks it and the caller's flags come back.
fn default_mode<N: Lanes>(simd: Simd) -> Option<DefaultMode> {
    (simd == Simd::Avx2 && N::RAISES_IN_AVX2).then(DefaultMode::enter)
}

type Fp8Kernel = unsafe fn(&[u8], f32, &mut [u8], &mut Carry);

/// Rows of FP8 codes; one row, or rows of whole units.
struct Fp8<'a, N> {
    kernels: Pair<Fp8Kernel>,
    rows: &'a Fp8Rows<'a>,
    output: PhantomData<N>,
}

impl<N: Narrow> Units for Fp8<'_, N> {
    fn unit_bytes(&self) -> usize {
        FP8_UNIT * word_bytes::<N>()
    }

    fn make(&self, first: usize, out: &mut [u8], carry: &mut Carry) {
        let columns = self.rows.columns;
        let at = first * FP8_UNIT;
        let mut codes = self.rows.codes.get(at..).unwrap_or(&[]);
        let (Some(row), Some(column)) = (at.checked_div(columns), at.checked_rem(columns)) else { return };
        let mut scales = self.rows.scales.as_chunks().0.iter().skip(row);
        let mut left = columns - column;
        let mut out = out;
        while let (false, Some(scale)) = (out.is_empty(), scales.next()) {
            let (row_codes, next_codes) = codes.split_at_checked(left).unwrap_or((codes, &[]));
            let bytes = left.next_multiple_of(FP8_UNIT) * word_bytes::<N>();
            let bytes = bytes.min(out.len());
            let Some((row_out, next_out)) = mem::take(&mut out).split_at_mut_checked(bytes) else { return };
            self.make_row(row_codes, u16::from_le_bytes(*scale), row_out, carry);
            (codes, out, left) = (next_codes, next_out, columns);
        }
    }
}

impl<N: Narrow> Fp8<'_, N> {
    fn make_row(&self, codes: &[u8], scale: u16, out: &mut [u8], carry: &mut Carry) {
        if !portable::is_plain_scale(scale) {
            // A product may be subnormal or infinite here: integers, as everywhere.
            let mut words = [Zeroable::zeroed(); FP8_UNIT];
            for (codes, out) in codes.chunks(FP8_UNIT).zip(out.chunks_mut(self.unit_bytes())) {
                portable::decode_fp8_row::<N>(codes, scale, &mut words);
                carry.put(out, cast_slice(&words));
            }
            return;
        }
        let scale = f32::from_bits(u32::from(scale) << 16);
        let whole = (codes.len() / FP8_UNIT * self.unit_bytes()).min(out.len());
        let Some((body, tail)) = out.split_at_mut_checked(whole) else { return };
        // SAFETY: the kernel was taken for a `Simd` value, which exists only where its instructions do. Memory
        // it reaches through slices.
        unsafe { carry.choose(self.kernels)(codes, scale, body, carry) };
        if !tail.is_empty() {
            let mut padded = [0; FP8_UNIT];
            for (code, last) in padded.iter_mut().zip(codes.as_chunks::<FP8_UNIT>().1) {
                *code = *last;
            }
            // SAFETY: as above.
            unsafe { carry.choose(self.kernels)(&padded, scale, tail, carry) };
        }
    }
}

/// Decodes rows of FP8 codes under legal row scales.
pub(crate) fn decode_fp8<N: Narrow>(simd: Simd, rows: &Fp8Rows<'_>, out: &mut [N::Word], stores: &Stores) {
    let kernels: Pair<Fp8Kernel> = match simd {
        Simd::Avx512 => [avx512::fp8::<N, false>, avx512::fp8::<N, true>],
        Simd::Avx2 => [avx2::fp8::<N>; 2],
    };
    let _mode = default_mode::<N>(simd);
    run(&Fp8::<N> { kernels, rows, output: PhantomData }, cast_slice_mut(out), stores);
}

/// A kernel that moves words out of tables.
pub(crate) type Nvfp4Kernel<W> = unsafe fn(&[u8], &[u8], &Tables<W>, &mut [u8], &mut Carry);

/// The kernels of a word type.
pub(crate) trait Nvfp4Word: TableWord {
    const AVX512: Pair<Nvfp4Kernel<Self>>;
    const AVX2: Pair<Nvfp4Kernel<Self>>;
}

impl Nvfp4Word for u16 {
    const AVX512: Pair<Nvfp4Kernel<Self>> = [avx512::nvfp4_words16::<false>, avx512::nvfp4_words16::<true>];
    const AVX2: Pair<Nvfp4Kernel<Self>> = [avx2::nvfp4_words16; 2];
}

impl Nvfp4Word for u32 {
    const AVX512: Pair<Nvfp4Kernel<Self>> = [avx512::nvfp4_words32::<false>, avx512::nvfp4_words32::<true>];
    const AVX2: Pair<Nvfp4Kernel<Self>> = [avx2::nvfp4_words32; 2];
}

impl Nvfp4Word for u64 {
    const AVX512: Pair<Nvfp4Kernel<Self>> = [avx512::nvfp4_words64::<false>, avx512::nvfp4_words64::<true>];
    const AVX2: Pair<Nvfp4Kernel<Self>> = [avx2::nvfp4_words64; 2];
}

/// Rows of NVFP4 from a whole unit on.
struct Nvfp4<'a, W> {
    kernels: Pair<Nvfp4Kernel<W>>,
    rows: &'a Nvfp4Rows<'a>,
    codes: &'a [u8],
    /// The unit of the first row that the codes begin with.
    first: usize,
    tables: &'a Tables<W>,
}

/// Codes of an NVFP4 unit: four groups, whose scales lie together.
const NVFP4_UNIT: usize = 4 * GROUP;

impl<W: Nvfp4Word> Units for Nvfp4<'_, W> {
    fn unit_bytes(&self) -> usize {
        NVFP4_UNIT * size_of::<W>()
    }

    fn make(&self, first: usize, out: &mut [u8], carry: &mut Carry) {
        let units_a_row = self.rows.groups / 4;
        let mut codes = self.codes.get(first * (NVFP4_UNIT / 2)..).unwrap_or(&[]);
        let at = self.first + first;
        let (Some(mut row), Some(mut unit)) = (at.checked_div(units_a_row), at.checked_rem(units_a_row))
        else {
            return;
        };
        let mut out = out;
        while !out.is_empty() {
            let units = units_a_row - unit;
            let bytes = (units * self.unit_bytes()).min(out.len());
            let Some((row_out, next_out)) = mem::take(&mut out).split_at_mut_checked(bytes) else { return };
            let scales = self.rows.row_scales(row).get(unit * 512..).unwrap_or(&[]);
            // SAFETY: the kernel was taken for a `Simd` value, which exists only where its instructions do.
            // Memory it reaches through slices.
            unsafe { carry.choose(self.kernels)(codes, scales, self.tables, row_out, carry) };
            codes = codes.get(units * (NVFP4_UNIT / 2)..).unwrap_or(&[]);
            (out, row, unit) = (next_out, row + 1, 0);
        }
    }
}

/// Decodes rows of NVFP4 whose scales' words the tables hold.
pub(crate) fn decode_nvfp4<W: Nvfp4Word>(
    simd: Simd,
    rows: &Nvfp4Rows<'_>,
    tables: &Tables<W>,
    out: &mut [W],
    stores: &Stores,
) {
    let kernels = match simd {
        Simd::Avx512 => W::AVX512,
        Simd::Avx2 => W::AVX2,
    };
    // The columns may begin inside a unit; then that one is made aside.
    let (first, before) = (rows.first_group / 4, rows.first_group % 4);
    let head = ((4 - before) % 4 * GROUP).min(out.len());
    let (Some((head, out)), Some((head_codes, codes))) =
        (out.split_at_mut_checked(head), rows.codes.split_at_checked(head.div_ceil(2)))
    else {
        return;
    };
    if !head.is_empty() {
        let mut padded = [0; NVFP4_UNIT / 2];
        for (byte, code) in padded.iter_mut().skip(before * GROUP / 2).zip(head_codes) {
            *byte = *code;
        }
        let mut words = [W::zeroed(); NVFP4_UNIT];
        Nvfp4 { kernels, rows, codes: &padded, first, tables }.make(
            0,
            cast_slice_mut(&mut words),
            &mut Carry::none(),
        );
        for (word, made) in head.iter_mut().zip(words.iter().skip(before * GROUP)) {
            *word = *made;
        }
    }
    let first = if before == 0 { first } else { first + 1 };
    run(&Nvfp4 { kernels, rows, codes, first, tables }, cast_slice_mut(out), stores);
}

type WidenKernel = unsafe fn(&[u8], &mut [u8], &mut Carry);

struct Widen<'a> {
    kernels: Pair<WidenKernel>,
    source: &'a [u8],
}

/// BF16 words of a unit.
const WIDEN_UNIT: usize = 32;

impl Units for Widen<'_> {
    fn unit_bytes(&self) -> usize {
        WIDEN_UNIT * 4
    }

    fn make(&self, first: usize, out: &mut [u8], carry: &mut Carry) {
        let source = self.source.get(first * (WIDEN_UNIT * 2)..).unwrap_or(&[]);
        let whole = (source.len() / (WIDEN_UNIT * 2) * (WIDEN_UNIT * 4)).min(out.len());
        let Some((body, tail)) = out.split_at_mut_checked(whole) else { return };
        // SAFETY: the kernel was taken for a `Simd` value, which exists only where its instructions do. Memory
        // it reaches through slices.
        unsafe { carry.choose(self.kernels)(source, body, carry) };
        if !tail.is_empty() {
            let mut padded = [0; WIDEN_UNIT * 2];
            for (byte, last) in padded.iter_mut().zip(source.as_chunks::<{ WIDEN_UNIT * 2 }>().1) {
                *byte = *last;
            }
            // SAFETY: as above.
            unsafe { carry.choose(self.kernels)(&padded, tail, carry) };
        }
    }
}

/// Widens BF16 words to binary32 words.
pub(crate) fn widen_bf16(simd: Simd, source: &[u8], out: &mut [u32], stores: &Stores) {
    let kernels: Pair<WidenKernel> = match simd {
        Simd::Avx512 => [avx512::widen_bf16::<false>, avx512::widen_bf16::<true>],
        Simd::Avx2 => [avx2::widen_bf16; 2],
    };
    run(&Widen { kernels, source }, cast_slice_mut(out), stores);
}
