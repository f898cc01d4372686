//! The canonical encoder `MAXABS_F16_RECIP_RNE_V1`, line for line (formats 7.2).

use super::layout::Logical;
use super::words::{BF16, Class, Exact, F16, F32, F64, Kind, convert, round, round_half_even};
use super::{Fault, Format};
use std::cmp::Ordering;

/// The name of the one profile (formats 7.1).
pub const PROFILE: &str = "MAXABS_F16_RECIP_RNE_V1";

/// The type of a source; a source word is its bit pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    F32,
    Bf16,
    F16,
    F64,
}

impl Source {
    pub fn kind(self) -> Kind {
        match self {
            Source::F32 => F32,
            Source::Bf16 => BF16,
            Source::F16 => F16,
            Source::F64 => F64,
        }
    }
}

/// Encodes an `[n, k]` matrix of source words. The first failing (row, group) is reported; in a
/// group a bad source value, by column, comes before a scale that overflows (layouts 7).
pub fn encode(format: Format, source: Source, n: u64, k: u64, words: &[u64]) -> Result<Logical, Fault> {
    assert_eq!(words.len() as u64, n * k);
    let mut out = Logical { codes: vec![], scales: vec![], divisor: None };
    for row in 0..n {
        let start = (row * k) as usize;
        let (codes, scales) = encode_row(format, source, row, &words[start..start + k as usize])?;
        out.codes.extend(codes);
        out.scales.extend(scales);
    }
    Ok(out)
}

/// Encodes one row; the last group may be partial (formats 4.2). `row` is used in faults only.
pub fn encode_row(
    format: Format,
    source: Source,
    row: u64,
    words: &[u64],
) -> Result<(Vec<i64>, Vec<u32>), Fault> {
    let (Some(size), Some(range)) = (format.group(), format.code_range()) else {
        return Err(Fault::NoCanonicalEncoder);
    };
    let (mut codes, mut scales) = (vec![], vec![]);
    for (group, chunk) in words.chunks(size as usize).enumerate() {
        let group = group as u64;
        let mut x = vec![];
        for (i, &word) in chunk.iter().enumerate() {
            x.push(to_finite_f32(source, row, group * size + i as u64, word)?);
        }
        let (group_codes, scale) = encode_group(&x, range).ok_or(Fault::ScaleOverflow { row, group })?;
        codes.extend(group_codes);
        scales.push(scale);
    }
    Ok((codes, scales))
}

/// Converts one source word to a finite binary32 value or refuses it (formats 7.1).
fn to_finite_f32(source: Source, row: u64, col: u64, word: u64) -> Result<Exact, Fault> {
    if !source.kind().is_finite(word) {
        return Err(Fault::NonFiniteSource { row, col, word });
    }
    let x = convert(word, source.kind(), F32);
    if !F32.is_finite(x) {
        return Err(Fault::SourceNotRepresentable { row, col, word });
    }
    Ok(F32.value(x))
}

/// Encodes one group of finite binary32 values; nothing when the scale overflows (formats 7.2).
fn encode_group(x: &[Exact], (qmin, qmax): (i64, i64)) -> Option<(Vec<i64>, u32)> {
    let mut amax = Exact::integer(0);
    for value in x {
        if value.cmp_magnitude(&amax) == Ordering::Greater {
            amax = Exact { negative: false, ..*value };
        }
    }
    if amax.num == 0 {
        return Some((vec![0; x.len()], 0));
    }
    let raw_scale32 = round(amax.over(Exact::integer(qmax)), F32);
    let mut scale16 = round(F32.value(raw_scale32), F16);
    if scale16 == 0 {
        scale16 = 1; // the rescue, also when raw_scale32 itself is zero (layouts 7)
    }
    if F16.class(scale16) == Class::Infinite {
        return None;
    }
    let inv32 = F32.value(round(Exact::integer(1).over(F16.value(scale16)), F32));
    let mut codes = vec![];
    for value in x {
        let normalized32 = F32.value(round(value.times(inv32), F32));
        let rounded = round_half_even(normalized32);
        codes.push(rounded.clamp(qmin.into(), qmax.into()) as i64);
    }
    Some((codes, scale16 as u32))
}
