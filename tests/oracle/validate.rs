//! The first violation of a payload or of a range of it (layouts 7, rules 17).

use super::layout::{Physical, read};
use super::rows::Range;
use super::words::{BF16, F16, divisor_reason, e4m3fn_is_nan, e4m3fn_scale_reason, scale_reason};
use super::{Fault, Format, Layout};

/// The order: the length; then the values; then padding; then gaps (layouts 7). Nothing for a
/// range is the whole tensor.
///
/// Padding belongs to the ranges that hold column K-1, gaps to the range that also holds row N-1.
pub fn validate(format: Format, shape: &[u64], payload: &[u8], range: Option<Range>) -> Result<(), Fault> {
    let physical = read(format, shape, payload)?;
    let g = &physical.geometry;
    let range = range.unwrap_or(Range::all(g));
    range.check(g)?;
    values(&physical, range)?;
    if range.holds_last_column(g) {
        padding(&physical, range)?;
        if range.begin + range.count == g.rows {
            gaps(&physical)?;
        }
    }
    Ok(())
}

/// The divisor; then row by row the scale words, then the codes in rising column.
pub fn values(p: &Physical, r: Range) -> Result<(), Fault> {
    divisor(p)?;
    for row in r.begin..r.begin + r.count {
        scales(p, row, r)?;
        for col in r.col_begin..r.col_begin + r.col_count {
            code(p, row, col)?;
        }
    }
    Ok(())
}

/// The divisor word; every range starts with it (formats 3.3).
pub fn divisor(p: &Physical) -> Result<(), Fault> {
    match p.divisor {
        Some(word) if divisor_reason(word).is_some() => Err(Fault::InvalidDivisor { word }),
        _ => Ok(()),
    }
}

/// The scale words of the groups that a range's columns touch, in one row (formats 3.3, 3.4, 6.1).
pub fn scales(p: &Physical, row: u64, r: Range) -> Result<(), Fault> {
    let (first, last) =
        (p.geometry.scale_of(r.col_begin), p.geometry.scale_of(r.col_begin + r.col_count - 1));
    for index in first..=last {
        let Some(&word) = p.rows[row as usize].scales.get(index as usize) else {
            return Ok(()); // direct formats have no scales
        };
        let reason = match p.geometry.format.layout() {
            Layout::Contiguous => None,
            Layout::RowSplit => scale_reason(word.into(), F16),
            Layout::Blockscale => e4m3fn_scale_reason(word as u8),
            Layout::RowScale => scale_reason(word.into(), BF16),
        };
        if reason.is_some() {
            let group = p.geometry.format.group().map(|_| index);
            return Err(Fault::InvalidScale { row, group, word });
        }
    }
    Ok(())
}

/// One code: illegal by itself, then nonzero under a zero scale (rules 17; formats 3.4, 5, 6.1).
/// NVFP4 has no zero-scale rule (layouts 7), and direct words are all legal (formats 3.1).
fn code(p: &Physical, row: u64, col: u64) -> Result<(), Fault> {
    let (format, stored) = (p.geometry.format, &p.rows[row as usize]);
    let code = stored.codes[col as usize];
    let scale = || stored.scales[p.geometry.scale_of(col) as usize];
    let (legal, zero) = match (format, format.code_range()) {
        (_, Some((low, high))) => (low <= code && code <= high, code == 0),
        (Format::Fp8Row, _) => (!e4m3fn_is_nan(code as u8), code == 0 || code == 0x80),
        _ => return Ok(()),
    };
    let word = shown(format, code);
    if !legal {
        Err(Fault::InvalidCode { row, col, word })
    } else if scale() == 0 && !zero {
        Err(Fault::ZeroScaleNonzeroCode { row, col, word })
    } else {
        Ok(())
    }
}

/// A code as an unsigned word of its width, or of 8 bits when it does not fit its width.
fn shown(format: Format, code: i64) -> u32 {
    let width = format.code_bits();
    let fits = -(1 << (width - 1)) <= code && code < 1 << (width - 1);
    let bits = if format.code_range().is_none() || fits { width } else { 8 };
    code.rem_euclid(1 << bits) as u32
}

/// Row by row: the lanes past K of the last partly logical group; then each wholly physical group,
/// its scale word first, then its lanes (layouts 3).
fn padding(p: &Physical, r: Range) -> Result<(), Fault> {
    let g = &p.geometry;
    let (Layout::RowSplit, Some(size)) = (g.format.layout(), g.format.group()) else {
        return Ok(());
    };
    for row in r.begin..r.begin + r.count {
        let stored = &p.rows[row as usize];
        let lanes = |from: u64, to: u64| match (from..to).find(|&col| stored.codes[col as usize] != 0) {
            Some(col) => {
                let word = shown(g.format, stored.codes[col as usize]);
                Err(Fault::PaddingCodeNotZero { row, col, word })
            }
            None => Ok(()),
        };
        lanes(g.k, g.logical_scales * size)?;
        for group in g.logical_scales..g.physical_scales {
            let word = stored.scales[group as usize];
            if word != 0 {
                return Err(Fault::PaddingScaleNotZero { row, group, word });
            }
            lanes(group * size, (group + 1) * size)?;
        }
    }
    Ok(())
}

/// The bytes between planes, by rising offset (layouts 3 to 5).
fn gaps(p: &Physical) -> Result<(), Fault> {
    match p.gaps.iter().find(|(_, byte)| *byte != 0) {
        Some(&(offset, byte)) => Err(Fault::GapNotZero { offset, word: byte.into() }),
        None => Ok(()),
    }
}
