//! From stored words to the words of decoded values.

use super::layout::{Physical, read};
use super::rows::{Range, check_list};
use super::validate;
use super::words::{
    BF16, Exact, F16, F32, F64, bf16_to_f32, e2m1_value, e4m3fn_is_nan, e4m3fn_value, f32_to_bf16,
    f32_to_f16, round,
};
use super::{Fault, Format, Layout};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    F32,
    F64,
    Bf16,
    F16,
}

/// Which outputs a format has (rules 11).
pub fn has_output(format: Format, output: Output) -> bool {
    match (format.layout(), output) {
        (Layout::Contiguous, Output::F32) => format != Format::I32,
        (Layout::Contiguous, Output::Bf16) => format == Format::Bf16,
        (Layout::Contiguous, _) => false,
        (_, Output::F64) => format == Format::Nvfp4,
        _ => true,
    }
}

/// The words of a range, row-major; nothing for a range is the whole tensor. The range's divisor
/// and scale words must be legal, and nothing else is judged (rules 15).
pub fn decode(
    format: Format,
    shape: &[u64],
    payload: &[u8],
    range: Option<Range>,
    output: Output,
) -> Result<Vec<u64>, Fault> {
    let physical = read(format, shape, payload)?;
    let range = range.unwrap_or(Range::all(&physical.geometry));
    range.check(&physical.geometry)?;
    let rows: Vec<u64> = (range.begin..range.begin + range.count).collect();
    decode_list(&physical, &rows, range, output)
}

/// The words of the rows of a list, in the list's order (rules 7).
pub fn decode_rows(
    format: Format,
    shape: &[u64],
    payload: &[u8],
    rows: &[u64],
    output: Output,
) -> Result<Vec<u64>, Fault> {
    let physical = read(format, shape, payload)?;
    check_list(&physical.geometry, rows)?;
    decode_list(&physical, rows, Range::all(&physical.geometry), output)
}

fn decode_list(p: &Physical, rows: &[u64], r: Range, output: Output) -> Result<Vec<u64>, Fault> {
    let format = p.geometry.format;
    if !has_output(format, output) {
        return Err(Fault::UnsupportedOutput);
    }
    validate::divisor(p)?;
    for &row in rows {
        validate::scales(p, row, r)?;
    }
    let mut out = vec![];
    for &row in rows {
        let stored = &p.rows[row as usize];
        for col in r.col_begin..r.col_begin + r.col_count {
            let scale = stored.scales.get(p.geometry.scale_of(col) as usize).copied();
            let (scale, divisor) = (scale.unwrap_or(0), p.divisor.unwrap_or(0));
            out.push(element(format, stored.codes[col as usize], scale, divisor, output));
        }
    }
    Ok(out)
}

/// One decoded word. bfloat16 and binary16 are rounded once from the binary32 word (rules 11).
pub fn element(format: Format, code: i64, scale: u32, divisor: u32, output: Output) -> u64 {
    assert!(has_output(format, output));
    if format == Format::Bf16 && output == Output::Bf16 {
        return code as u64;
    }
    let f32_word = || element_f32(format, code, scale, divisor);
    match output {
        Output::F32 => f32_word().into(),
        Output::Bf16 => f32_to_bf16(f32_word()).into(),
        Output::F16 => f32_to_f16(f32_word()).into(),
        Output::F64 => round(nvfp4_weight(code as u8, scale as u8, divisor), F64),
    }
}

/// The binary32 oracle of every floating-point format.
pub fn element_f32(format: Format, code: i64, scale: u32, divisor: u32) -> u32 {
    match format {
        Format::Bf16 => bf16_to_f32(code as u16),
        Format::Fp32 => code as u32,
        Format::I32 => panic!("I32 is not decoded to a float"),
        Format::Q4 | Format::Q5 | Format::Q6 | Format::W8 => grouped_weight(code, scale as u16),
        Format::Nvfp4 => round(nvfp4_weight(code as u8, scale as u8, divisor), F32) as u32,
        Format::Fp8Row => fp8_weight(code as u8, scale as u16),
    }
}

/// `binary32(s32 * binary32(q))` (formats 6.2); code 0 gives +0, a negative code under a zero
/// scale gives -0 as IEEE does (layouts 7).
pub fn grouped_weight(code: i64, scale: u16) -> u32 {
    round(F16.value(scale.into()).times(Exact::integer(code)), F32) as u32
}

/// The exact quotient `e2m1 * e4m3fn / divisor` (formats 3.3, layouts 7).
pub fn nvfp4_weight(code: u8, scale: u8, divisor: u32) -> Exact {
    e2m1_value(code).times(e4m3fn_value(scale)).over(F32.value(divisor.into()))
}

/// `binary32(c32 * s32)` (formats 3.4); a NaN code gives 0x7fc00000 (rules 15).
pub fn fp8_weight(code: u8, scale: u16) -> u32 {
    if e4m3fn_is_nan(code) {
        return 0x7fc0_0000;
    }
    round(e4m3fn_value(code).times(BF16.value(scale.into())), F32) as u32
}
