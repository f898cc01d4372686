//! Decoding by the AVX2 and AVX-512 kernels: which kernel, on which bytes.

use bytemuck::cast_slice_mut;

use super::lanes::word_bytes;
use super::mxcsr::DefaultMode;
use super::{Lanes, avx2_decode as avx2, avx512_decode as avx512};
use crate::backend::nvfp4_tables::{TableWord, Tables};
use crate::backend::run::{Stores, Units, run};
use crate::backend::{GroupedRow, Narrow, Nvfp4Row, portable};
use crate::format::Format;
use crate::format::nvfp4::GROUP;
use crate::layout::row_split::{BASE_BYTES, SCALE_BYTES};

/// The instruction sets of the chosen backend. A value is made only where the processor has them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Simd {
    Avx2,
    Avx512,
}

type GroupedKernel = unsafe fn(&GroupedRow<'_>, &mut [u8]);

struct Grouped<'a> {
    kernel: GroupedKernel,
    row: &'a GroupedRow<'a>,
    high_bytes: usize,
    unit: usize,
}

impl Units for Grouped<'_> {
    fn unit_bytes(&self) -> usize {
        self.unit
    }

    fn make(&self, first: usize, out: &mut [u8]) {
        let from = |plane: &'_ [u8], bytes: usize| first * bytes..plane.len();
        let row = GroupedRow {
            base: self.row.base.get(from(self.row.base, BASE_BYTES)).unwrap_or(&[]),
            high: self.row.high.get(from(self.row.high, self.high_bytes)).unwrap_or(&[]),
            scales: self.row.scales.get(from(self.row.scales, SCALE_BYTES)).unwrap_or(&[]),
        };
        // SAFETY: the kernel was taken for a `Simd` value, which exists only where its instructions do. Memory
        // it reaches through slices.
        unsafe { (self.kernel)(&row, out) };
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
    let (kernel, lanes, high_bytes): (GroupedKernel, _, _) = match (simd, format) {
        (Simd::Avx512, Q4G64F16S) => (avx512::q4::<N>, 64, 0),
        (Simd::Avx512, Q5G64F16S) => (avx512::q5::<N>, 64, 8),
        (Simd::Avx512, Q6G64F16S) => (avx512::q6::<N>, 64, 16),
        (Simd::Avx512, W8G32F16S) => (avx512::w8::<N>, 32, 0),
        (Simd::Avx2, Q4G64F16S) => (avx2::q4::<N>, 64, 0),
        (Simd::Avx2, Q5G64F16S) => (avx2::q5::<N>, 64, 8),
        (Simd::Avx2, Q6G64F16S) => (avx2::q6::<N>, 64, 16),
        (Simd::Avx2, W8G32F16S) => (avx2::w8::<N>, 32, 0),
        _ => return,
    };
    let _mode = default_mode::<N>(simd);
    let units = Grouped { kernel, row, high_bytes, unit: lanes * word_bytes::<N>() };
    run(&units, cast_slice_mut(out), stores);
}

/// Where storing could raise an exception, the default mode masks it and the caller's flags come back.
fn default_mode<N: Lanes>(simd: Simd) -> Option<DefaultMode> {
    (simd == Simd::Avx2 && N::RAISES_IN_AVX2).then(DefaultMode::enter)
}

type Fp8Kernel = unsafe fn(&[u8], f32, &mut [u8]);

struct Fp8<'a> {
    kernel: Fp8Kernel,
    codes: &'a [u8],
    scale: f32,
    unit: usize,
}

/// Codes of an FP8 unit.
const FP8_UNIT: usize = 64;

impl Units for Fp8<'_> {
    fn unit_bytes(&self) -> usize {
        self.unit
    }

    fn make(&self, first: usize, out: &mut [u8]) {
        let codes = self.codes.get(first * FP8_UNIT..).unwrap_or(&[]);
        let whole = (codes.len() / FP8_UNIT * self.unit).min(out.len());
        let Some((body, tail)) = out.split_at_mut_checked(whole) else { return };
        // SAFETY: the kernel was taken for a `Simd` value, which exists only where its instructions do. Memory
        // it reaches through slices.
        unsafe { (self.kernel)(codes, self.scale, body) };
        if !tail.is_empty() {
            let mut padded = [0; FP8_UNIT];
            for (code, last) in padded.iter_mut().zip(codes.as_chunks::<FP8_UNIT>().1) {
                *code = *last;
            }
            // SAFETY: as above.
            unsafe { (self.kernel)(&padded, self.scale, tail) };
        }
    }
}

/// Decodes a row of FP8 codes under one legal row scale.
pub(crate) fn decode_fp8<N: Narrow>(
    simd: Simd,
    codes: &[u8],
    scale: u16,
    out: &mut [N::Word],
    stores: &Stores,
) {
    if !portable::is_plain_scale(scale) {
        // A product may be subnormal or infinite here: integers, as everywhere.
        return portable::decode_fp8_row::<N>(codes, scale, out);
    }
    let kernel = match simd {
        Simd::Avx512 => avx512::fp8::<N>,
        Simd::Avx2 => avx2::fp8::<N> as Fp8Kernel,
    };
    let _mode = default_mode::<N>(simd);
    let scale = f32::from_bits(u32::from(scale) << 16);
    let units = Fp8 { kernel, codes, scale, unit: FP8_UNIT * word_bytes::<N>() };
    run(&units, cast_slice_mut(out), stores);
}

/// A kernel that moves words out of tables.
pub(crate) type Nvfp4Kernel<W> = unsafe fn(&[u8], &[u8], &Tables<W>, &mut [u8]);

/// The kernels of a word type.
pub(crate) trait Nvfp4Word: TableWord {
    const AVX512: Nvfp4Kernel<Self>;
    const AVX2: Nvfp4Kernel<Self>;
}

impl Nvfp4Word for u16 {
    const AVX512: Nvfp4Kernel<Self> = avx512::nvfp4_words16;
    const AVX2: Nvfp4Kernel<Self> = avx2::nvfp4_words16;
}

impl Nvfp4Word for u32 {
    const AVX512: Nvfp4Kernel<Self> = avx512::nvfp4_words32;
    const AVX2: Nvfp4Kernel<Self> = avx2::nvfp4_words32;
}

impl Nvfp4Word for u64 {
    const AVX512: Nvfp4Kernel<Self> = avx512::nvfp4_words64;
    const AVX2: Nvfp4Kernel<Self> = avx2::nvfp4_words64;
}

struct Nvfp4<'a, W> {
    kernel: Nvfp4Kernel<W>,
    codes: &'a [u8],
    scales: &'a [u8],
    tables: &'a Tables<W>,
}

/// Codes of an NVFP4 unit: four groups, whose scales lie together.
const NVFP4_UNIT: usize = 64;

impl<W: Nvfp4Word> Units for Nvfp4<'_, W> {
    fn unit_bytes(&self) -> usize {
        NVFP4_UNIT * size_of::<W>()
    }

    fn make(&self, first: usize, out: &mut [u8]) {
        let codes = self.codes.get(first * (NVFP4_UNIT / 2)..).unwrap_or(&[]);
        let scales = self.scales.get(first * 512..).unwrap_or(&[]);
        // SAFETY: the kernel was taken for a `Simd` value, which exists only where its instructions do. Memory
        // it reaches through slices.
        unsafe { (self.kernel)(codes, scales, self.tables, out) };
    }
}

/// Decodes a row of NVFP4 under legal scales.
pub(crate) fn decode_nvfp4<W: Nvfp4Word>(
    simd: Simd,
    row: &Nvfp4Row<'_>,
    tables: &Tables<W>,
    out: &mut [W],
    stores: &Stores,
) {
    let kernel = match simd {
        Simd::Avx512 => W::AVX512,
        Simd::Avx2 => W::AVX2,
    };
    // The columns may begin inside a unit; then that one is made aside.
    let (quad, before) = (row.first_group / 4, row.first_group % 4);
    let head = ((4 - before) % 4 * GROUP).min(out.len());
    let (Some((head, out)), Some((head_codes, codes))) =
        (out.split_at_mut_checked(head), row.codes.split_at_checked(head.div_ceil(2)))
    else {
        return;
    };
    let scales = row.scales.get(quad * 512..).unwrap_or(&[]);
    if !head.is_empty() {
        let mut padded = [0; NVFP4_UNIT / 2];
        for (byte, code) in padded.iter_mut().skip(before * GROUP / 2).zip(head_codes) {
            *byte = *code;
        }
        let mut words = [W::zeroed(); NVFP4_UNIT];
        let unit = Nvfp4 { kernel, codes: &padded, scales, tables };
        unit.make(0, cast_slice_mut(&mut words));
        for (word, made) in head.iter_mut().zip(words.iter().skip(before * GROUP)) {
            *word = *made;
        }
    }
    let scales = if before == 0 { scales } else { scales.get(512..).unwrap_or(&[]) };
    run(&Nvfp4 { kernel, codes, scales, tables }, cast_slice_mut(out), stores);
}

struct Widen<'a> {
    kernel: unsafe fn(&[u8], &mut [u8]),
    source: &'a [u8],
}

/// BF16 words of a unit.
const WIDEN_UNIT: usize = 32;

impl Units for Widen<'_> {
    fn unit_bytes(&self) -> usize {
        WIDEN_UNIT * 4
    }

    fn make(&self, first: usize, out: &mut [u8]) {
        let source = self.source.get(first * (WIDEN_UNIT * 2)..).unwrap_or(&[]);
        let whole = (source.len() / (WIDEN_UNIT * 2) * (WIDEN_UNIT * 4)).min(out.len());
        let Some((body, tail)) = out.split_at_mut_checked(whole) else { return };
        // SAFETY: the kernel was taken for a `Simd` value, which exists only where its instructions do. Memory
        // it reaches through slices.
        unsafe { (self.kernel)(source, body) };
        if !tail.is_empty() {
            let mut padded = [0; WIDEN_UNIT * 2];
            for (byte, last) in padded.iter_mut().zip(source.as_chunks::<{ WIDEN_UNIT * 2 }>().1) {
                *byte = *last;
            }
            // SAFETY: as above.
            unsafe { (self.kernel)(&padded, tail) };
        }
    }
}

/// Widens BF16 words to binary32 words.
pub(crate) fn widen_bf16(simd: Simd, source: &[u8], out: &mut [u32], stores: &Stores) {
    let kernel: unsafe fn(&[u8], &mut [u8]) = match simd {
        Simd::Avx512 => avx512::widen_bf16,
        Simd::Avx2 => avx2::widen_bf16,
    };
    run(&Widen { kernel, source }, cast_slice_mut(out), stores);
}
