//! Where the bits lie: geometry, packing and unpacking.
//!
//! Every payload is one string of bit fields, the least significant bit of the first byte first.
//! `fields` lists them in order; reading and writing both follow that list.

use super::rows::Range;
use super::validate;
use super::words::signed;
use super::{Fault, Format, Layout};

/// A plane of a payload; `row_bytes` is absent where the rows of a plane do not lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plane {
    pub name: &'static str,
    pub offset: u64,
    pub bytes: u64,
    pub row_bytes: Option<u64>,
}

/// The sizes of a tensor. Rows are flattened leading coordinates, `k` the last dimension (rules 1).
/// Scale counts are a row's; they are 0 for direct formats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub format: Format,
    pub rows: u64,
    pub k: u64,
    pub elements: u64,
    pub k_pad: u64,
    pub logical_scales: u64,
    pub physical_scales: u64,
    pub planes: Vec<Plane>,
    pub payload_bytes: u64,
}

impl Geometry {
    pub fn plane(&self, name: &str) -> Plane {
        *self.planes.iter().find(|p| p.name == name).expect("a plane of this layout")
    }

    /// The scale a column belongs to (formats 3.3, 3.4, 4.1).
    pub fn scale_of(&self, col: u64) -> u64 {
        self.format.group().map_or(0, |size| col / size)
    }
}

/// A size must fit 64 bits (layouts, introduction).
fn fit(size: u128) -> Result<u64, Fault> {
    u64::try_from(size).map_err(|_| Fault::Overflow)
}

fn align_up(size: u128, multiple: u128) -> u128 {
    size.div_ceil(multiple) * multiple
}

/// Checks in the order pair, rank, zero dimension, multiples, overflow (layouts 7), then computes
/// the sizes of layouts 2 to 5. Sizes are computed in 128 bits from numbers known to fit 64.
pub fn geometry(format: Format, layout: Layout, shape: &[u64]) -> Result<Geometry, Fault> {
    if format.layout() != layout {
        return Err(Fault::UnsupportedPair);
    }
    let rank_is_accepted = match layout {
        Layout::Contiguous => shape.len() <= 16,
        _ => shape.len() == 2,
    };
    if !rank_is_accepted {
        return Err(Fault::WrongRank);
    }
    if shape.contains(&0) {
        return Err(Fault::ZeroDimension);
    }
    if layout == Layout::Blockscale && (!shape[0].is_multiple_of(128) || !shape[1].is_multiple_of(64)) {
        return Err(Fault::NotMultiple);
    }
    let mut elements = 1u64;
    for &dimension in shape {
        elements = fit(u128::from(elements) * u128::from(dimension))?;
    }
    let k = *shape.last().unwrap_or(&1);
    let rows = elements / k;
    let (n, wide_k) = (u128::from(rows), u128::from(k));

    let mut g = Geometry {
        format,
        rows,
        k,
        elements,
        k_pad: k,
        logical_scales: 0,
        physical_scales: 0,
        planes: vec![],
        payload_bytes: 0,
    };
    // A plane of `row` bytes a row, starting where the last one ended, rounded up to `start`.
    let mut end = 0u128;
    let mut add = |name, row: Option<u128>, bytes: u128, start: u128| -> Result<(), Fault> {
        let offset = fit(align_up(end, start))?;
        let row_bytes = row.map(fit).transpose()?;
        let bytes = fit(bytes)?;
        g.planes.push(Plane { name, offset, bytes, row_bytes });
        g.payload_bytes = fit(u128::from(offset) + u128::from(bytes))?;
        end = g.payload_bytes.into();
        Ok(())
    };
    match layout {
        // layouts 2
        Layout::Contiguous => {
            let row = wide_k * u128::from(format.code_bits() / 8);
            add("word", Some(row), n * row, 1)?;
        }
        // layouts 3
        Layout::RowSplit => {
            let (group, high_group) = match format {
                Format::Q4 => (64, 0),
                Format::Q5 => (64, 8),
                Format::Q6 => (64, 16),
                _ => (32, 0),
            };
            g.k_pad = fit(align_up(wide_k, 128))?;
            g.physical_scales = g.k_pad / group;
            g.logical_scales = k.div_ceil(group);
            let groups = u128::from(g.physical_scales);
            let (base, high, scale) = (groups * 32, groups * high_group, groups * 2);
            add("base", Some(base), n * base, 1)?;
            add("high", Some(high), n * high, 256)?;
            add("scale", Some(scale), n * scale, 256)?;
        }
        // layouts 4
        Layout::Blockscale => {
            g.logical_scales = k / 16;
            g.physical_scales = k / 16;
            add("code", Some(wide_k / 2), n * wide_k / 2, 1)?;
            add("scale", None, n * wide_k / 16, 256)?;
            add("divisor", None, 4, 1)?;
        }
        // layouts 5
        Layout::RowScale => {
            g.logical_scales = 1;
            g.physical_scales = 1;
            add("code", Some(wide_k), n * wide_k, 1)?;
            add("scale", Some(2), n * 2, 256)?;
        }
    }
    Ok(g)
}

/// What a bit field holds: bits of a code from `low` up, a scale, the divisor, or a gap byte.
#[derive(Clone, Copy, Debug)]
enum Holds {
    Code { row: u64, col: u64, low: u32 },
    Scale { row: u64, group: u64 },
    Divisor,
    Gap,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    at: u64,
    bits: u32,
    holds: Holds,
}

/// The fields of a payload, first to last.
fn fields(g: &Geometry) -> Vec<Field> {
    let mut list = vec![];
    let mut at = 0u64;
    let mut push = |holds, bits| {
        list.push(Field { at, bits, holds });
        at += u64::from(bits);
        at
    };
    let (code_bits, scale_bits) = (g.format.code_bits(), g.format.scale_bits());
    // Pushes gap bytes up to the next multiple of 256 bytes.
    fn gap(mut at: u64, push: &mut impl FnMut(Holds, u32) -> u64) {
        while !at.is_multiple_of(256 * 8) {
            at = push(Holds::Gap, 8);
        }
    }
    let mut end = 0;
    // Base plane: whole codes, but only the low four bits of Q5 and Q6 (layouts 3).
    let base_bits = if matches!(g.format, Format::Q5 | Format::Q6) { 4 } else { code_bits };
    for row in 0..g.rows {
        for col in 0..g.k_pad {
            end = push(Holds::Code { row, col, low: 0 }, base_bits);
        }
    }
    if g.format.layout() != Layout::Contiguous {
        gap(end, &mut push);
    }
    // High plane: the bits above, lane after lane (layouts 3).
    if base_bits != code_bits {
        for row in 0..g.rows {
            for col in 0..g.k_pad {
                end = push(Holds::Code { row, col, low: 4 }, code_bits - 4);
            }
        }
        gap(end, &mut push);
    }
    if g.format.layout() == Layout::Blockscale {
        // Tiles of 128 rows by 4 groups. A tile's 512 bytes: for each of 32 rows, the four rows
        // that lie 32 apart, four neighbouring groups each (layouts 4).
        for row_tile in 0..g.rows / 128 {
            for group_tile in 0..g.physical_scales / 4 {
                for r in 0..32 {
                    for band in 0..4 {
                        for column in 0..4 {
                            let row = row_tile * 128 + band * 32 + r;
                            let group = group_tile * 4 + column;
                            push(Holds::Scale { row, group }, scale_bits);
                        }
                    }
                }
            }
        }
        push(Holds::Divisor, 32);
    } else {
        for row in 0..g.rows {
            for group in 0..g.physical_scales {
                push(Holds::Scale { row, group }, scale_bits);
            }
        }
    }
    assert_eq!(at, g.payload_bytes * 8, "the fields fill the payload");
    list
}

/// One stored row, padding lanes and wholly physical groups included. A grouped code is signed,
/// every other code or direct word is its unsigned pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub codes: Vec<i64>,
    pub scales: Vec<u32>,
}

/// Everything a payload holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Physical {
    pub geometry: Geometry,
    pub rows: Vec<Row>,
    pub divisor: Option<u32>,
    /// Offset and content of every byte between planes.
    pub gaps: Vec<(u64, u8)>,
}

/// The natural words of a tensor, row-major, logical elements and groups only (rules 10); NVFP4
/// codes one an entry (`nibble_pairs` packs them).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logical {
    pub codes: Vec<i64>,
    pub scales: Vec<u32>,
    pub divisor: Option<u32>,
}

/// Reads a payload. Its length must be exact (layouts 1); nothing else is judged.
pub fn read(format: Format, shape: &[u64], payload: &[u8]) -> Result<Physical, Fault> {
    let g = geometry(format, format.layout(), shape)?;
    if payload.len() as u64 != g.payload_bytes {
        return Err(Fault::PayloadLength { expected: g.payload_bytes, actual: payload.len() as u64 });
    }
    let row = Row { codes: vec![0; g.k_pad as usize], scales: vec![0; g.physical_scales as usize] };
    let mut rows = vec![row; g.rows as usize];
    let (mut divisor, mut gaps) = (None, vec![]);
    for field in fields(&g) {
        let mut value = 0u32;
        for i in 0..field.bits {
            let bit = field.at + u64::from(i);
            value |= u32::from(payload[(bit / 8) as usize] >> (bit % 8) & 1) << i;
        }
        match field.holds {
            Holds::Code { row, col, low } => {
                rows[row as usize].codes[col as usize] |= i64::from(value) << low;
            }
            Holds::Scale { row, group } => rows[row as usize].scales[group as usize] = value,
            Holds::Divisor => divisor = Some(value),
            Holds::Gap => gaps.push((field.at / 8, value as u8)),
        }
    }
    if format.code_range().is_some() {
        for code in rows.iter_mut().flat_map(|row| &mut row.codes) {
            *code = signed(*code as u64, format.code_bits());
        }
    }
    Ok(Physical { geometry: g, rows, divisor, gaps })
}

/// Writes stored rows as a payload of their own, with zero gaps.
pub fn write(g: &Geometry, rows: &[Row], divisor: Option<u32>) -> Vec<u8> {
    assert_eq!(rows.len() as u64, g.rows);
    let mut payload = vec![0u8; g.payload_bytes as usize];
    for field in fields(g) {
        let value = match field.holds {
            Holds::Code { row, col, low } => rows[row as usize].codes[col as usize] >> low,
            Holds::Scale { row, group } => rows[row as usize].scales[group as usize].into(),
            Holds::Divisor => divisor.expect("NVFP4 has a divisor").into(),
            Holds::Gap => 0,
        };
        for i in 0..field.bits {
            let bit = field.at + u64::from(i);
            payload[(bit / 8) as usize] |= ((value >> i & 1) as u8) << (bit % 8);
        }
    }
    payload
}

/// Packs natural words after checking them; padding gets its canonical contents (layouts 3).
pub fn pack(format: Format, shape: &[u64], words: &Logical) -> Result<Vec<u8>, Fault> {
    let geometry = geometry(format, format.layout(), shape)?;
    assert_eq!(words.codes.len() as u64, geometry.elements);
    assert_eq!(words.scales.len() as u64, geometry.rows * geometry.logical_scales);
    let mut rows = vec![];
    for n in 0..geometry.rows as usize {
        let (k, s) = (geometry.k as usize, geometry.logical_scales as usize);
        let mut codes = words.codes[n * k..(n + 1) * k].to_vec();
        let mut scales = words.scales[n * s..(n + 1) * s].to_vec();
        codes.resize(geometry.k_pad as usize, 0);
        scales.resize(geometry.physical_scales as usize, 0);
        rows.push(Row { codes, scales });
    }
    let physical = Physical { geometry, rows, divisor: words.divisor, gaps: vec![] };
    validate::values(&physical, Range::all(&physical.geometry))?;
    Ok(write(&physical.geometry, &physical.rows, physical.divisor))
}

/// The natural words of a payload; padding is ignored and values are not judged.
pub fn unpack(format: Format, shape: &[u64], payload: &[u8]) -> Result<Logical, Fault> {
    let physical = read(format, shape, payload)?;
    let mut words = Logical { codes: vec![], scales: vec![], divisor: physical.divisor };
    for row in &physical.rows {
        words.codes.extend(&row.codes[..physical.geometry.k as usize]);
        words.scales.extend(&row.scales[..physical.geometry.logical_scales as usize]);
    }
    Ok(words)
}

/// Four-bit codes to bytes, the first of a pair in the low nibble (layouts 4, rules 10).
pub fn nibble_pairs(codes: &[i64]) -> Vec<u8> {
    codes.chunks(2).map(|pair| (pair[0] + 16 * pair[1]) as u8).collect()
}

pub fn from_nibble_pairs(bytes: &[u8]) -> Vec<i64> {
    bytes.iter().flat_map(|&b| [i64::from(b % 16), i64::from(b / 16)]).collect()
}
