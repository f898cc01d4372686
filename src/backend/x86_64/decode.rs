//! Decoding by the AVX2 and AVX-512 kernels: which kernel, on which bytes.

use core::cell::RefCell;
use core::marker::PhantomData;
use core::mem;

use bytemuck::{Zeroable, cast_slice, cast_slice_mut};

use super::lanes::word_bytes;
use super::mxcsr::DefaultMode;
use super::{Lanes, avx2_decode as avx2, avx2_words, avx512_decode as avx512, avx512_nvfp4 as nvfp4};
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
pub(crate) type Pair<Kernel> = [Kernel; 2];

pub(crate) type GroupedKernel = unsafe fn(&GroupedRow<'_>, &mut [u8], &mut Carry);

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
        (Simd::Avx512, Q4G64F16S) => (N::avx512().q4, 64, 0),
        (Simd::Avx512, Q5G64F16S) => (N::avx512().q5, 64, 8),
        (Simd::Avx512, Q6G64F16S) => (N::avx512().q6, 64, 16),
        (Simd::Avx512, W8G32F16S) => (N::avx512().w8, 32, 0),
        (Simd::Avx2, Q4G64F16S) => ([N::Q4_AVX2; 2], 64, 0),
        (Simd::Avx2, Q5G64F16S) => ([N::Q5_AVX2; 2], 64, 8),
        (Simd::Avx2, Q6G64F16S) => ([avx2::q6::<N>; 2], 64, 16),
        (Simd::Avx2, W8G32F16S) => ([avx2::w8::<N>; 2], 32, 0),
        _ => return,
    };
    let _mode = default_mode::<N>(simd);
    let units = Grouped { kernels, row, high_bytes, unit: lanes * word_bytes::<N>() };
    run(&units, cast_slice_mut(out), stores);
}

/// Sets the default mode where storing rounds by it or could raise an exception; dropped, it sets the caller's mode and
/// flags again.
fn default_mode<N: Lanes>(simd: Simd) -> Option<DefaultMode> {
    (simd == Simd::Avx2 && N::GUARDED_IN_AVX2).then(DefaultMode::enter)
}

pub(crate) type Fp8Kernel = unsafe fn(&[u8], f32, &mut [u8], &mut Carry);

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
        Simd::Avx512 => N::avx512().fp8,
        Simd::Avx2 => [N::FP8_AVX2; 2],
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
    const AVX512: Pair<Nvfp4Kernel<Self>> = [nvfp4::nvfp4_words16::<false>, nvfp4::nvfp4_words16::<true>];
    const AVX2: Pair<Nvfp4Kernel<Self>> = [avx2_words::nvfp4; 2];
}

impl Nvfp4Word for u32 {
    const AVX512: Pair<Nvfp4Kernel<Self>> = [nvfp4::nvfp4_words32::<false>, nvfp4::nvfp4_words32::<true>];
    const AVX2: Pair<Nvfp4Kernel<Self>> = [avx2::nvfp4_words32; 2];
}

impl Nvfp4Word for u64 {
    const AVX512: Pair<Nvfp4Kernel<Self>> = [nvfp4::nvfp4_words64::<false>, nvfp4::nvfp4_words64::<true>];
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
    staged: RefCell<StagedScales>,
}

/// Units whose scales are staged at a time.
const STAGED: usize = 256;
/// Bytes from a row's scales of a unit to the next.
const TILE: usize = 512;
/// Neighbouring rows whose scales for a unit lie 16 bytes apart, in one line.
const STAGED_ROWS: usize = 4;

/// Scales of up to four rows, each row's one after another.
///
/// Those of a row lie 512 bytes apart, one unit's in a line: all in a few sets of the first-level cache, which throw
/// one another out before the next row comes. So the rows of a line are read together.
struct StagedScales {
    words: [[[u8; 4]; STAGED]; STAGED_ROWS],
    first_row: usize,
    rows: usize,
    first_unit: usize,
    units: usize,
}

impl StagedScales {
    const fn new() -> Self {
        Self { words: [[[0; 4]; STAGED]; STAGED_ROWS], first_row: 0, rows: 0, first_unit: 0, units: 0 }
    }

    /// The scales of a row's units from one on, as many as are staged; not none, if there are any.
    fn of(&mut self, rows: &Nvfp4Rows<'_>, row: usize, unit: usize) -> &[u8] {
        let has = |first: usize, count: usize, what: usize| (first..first + count).contains(&what);
        if !has(self.first_row, self.rows, row) || !has(self.first_unit, self.units, unit) {
            self.stage(rows, row, unit);
        }
        let words = self.words.get(row - self.first_row).and_then(|row| row.get(..self.units));
        words.and_then(|words| words.get(unit - self.first_unit..)).unwrap_or(&[]).as_flattened()
    }

    fn stage(&mut self, rows: &Nvfp4Rows<'_>, row: usize, unit: usize) {
        let units_a_row = rows.groups / 4;
        (self.first_row, self.first_unit) = (row, unit);
        self.units = (units_a_row - unit).min(STAGED);
        self.rows = 1;
        let tiles = rows.row_scales(row).get(unit * TILE..).unwrap_or(&[]);
        if unit == 0 && units_a_row <= STAGED && (rows.first_row + row).is_multiple_of(STAGED_ROWS) {
            self.rows = STAGED_ROWS;
            let [a, b, c, d] = &mut self.words;
            let rooms = a.iter_mut().zip(b).zip(c).zip(d);
            // The last tile's bytes end with those of its last row.
            for (tile, (((a, b), c), d)) in tiles.chunks(TILE).take(self.units).zip(rooms) {
                let Some(line) = tile.first_chunk::<52>() else { return };
                for (word, place) in [(a, 0), (b, 16), (c, 32), (d, 48)] {
                    if let Some(staged) = line.get(place..).and_then(|bytes| bytes.first_chunk()) {
                        *word = *staged;
                    }
                }
            }
        } else if let Some(words) = self.words.first_mut() {
            for (word, tile) in words.iter_mut().zip(tiles.chunks(TILE).take(self.units)) {
                if let Some(staged) = tile.first_chunk() {
                    *word = *staged;
                }
            }
        }
    }
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
        let Ok(mut staged) = self.staged.try_borrow_mut() else { return };
        let mut out = out;
        while !out.is_empty() {
            let scales = staged.of(self.rows, row, unit);
            let units = scales.len() / 4;
            let bytes = (units * self.unit_bytes()).min(out.len());
            let Some((row_out, next_out)) = mem::take(&mut out).split_at_mut_checked(bytes) else { return };
            // SAFETY: the kernel was taken for a `Simd` value, which exists only where its instructions do.
            // Memory it reaches through slices.
            unsafe { carry.choose(self.kernels)(codes, scales, self.tables, row_out, carry) };
            if units == 0 {
                return;
            }
            codes = codes.get(units * (NVFP4_UNIT / 2)..).unwrap_or(&[]);
            (out, unit) = (next_out, unit + units);
            if unit == units_a_row {
                (row, unit) = (row + 1, 0);
            }
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
        Nvfp4 { kernels, rows, codes: &padded, first, tables, staged: RefCell::new(StagedScales::new()) }
            .make(0, cast_slice_mut(&mut words), &mut Carry::none());
        for (word, made) in head.iter_mut().zip(words.iter().skip(before * GROUP)) {
            *word = *made;
        }
    }
    let first = if before == 0 { first } else { first + 1 };
    run(
        &Nvfp4 { kernels, rows, codes, first, tables, staged: RefCell::new(StagedScales::new()) },
        cast_slice_mut(out),
        stores,
    );
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
