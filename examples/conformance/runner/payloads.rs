//! `grouped_decode.json`, `fp8_row.json` and `direct.json`: words to a payload, and a payload to words and values.

use ninfer_codec::{Format, Plan, Tensor, TensorMut, Words, WordsMut, dequantize_row};
use serde_json::Value;

use super::Place;
use super::case::{Bad, Case, Outcome, bad, hex, words_hex};
use super::fault;
use super::registry::format_of;

/// What a buffer holds before it is written.
pub const DIRTY: u8 = 0xa5;

/// Payloads beyond this are no test vectors.
const MOST_BYTES: u64 = 1 << 30;

/// The plan of a tensor that must be a legal one, of a size that fits in memory.
pub fn plan_of(case: &mut Case<'_>, format: Format, shape: &[u64]) -> Result<Plan, Bad> {
    let plan = case.succeeds("shape", Plan::new(format, format.layout(), shape))?;
    if plan.payload_bytes() > MOST_BYTES {
        return bad("shape", "a payload that fits in memory", plan.payload_bytes());
    }
    Ok(plan)
}

/// N and K of a matrix.
pub fn matrix(shape: &[u64]) -> Result<(usize, usize), Bad> {
    match shape.iter().map(|&n| usize::try_from(n).unwrap_or(usize::MAX)).collect::<Vec<_>>()[..] {
        [rows, columns] if rows > 0 && columns > 0 => Ok((rows, columns)),
        _ => bad("shape", "two positive dimensions", format!("{shape:?}")),
    }
}

/// Packs words and returns the payload.
pub fn pack(plan: Plan, words: Words<'_>) -> Result<Vec<u8>, Bad> {
    let mut payload = vec![DIRTY; plan.payload_bytes() as usize];
    match TensorMut::new(plan, &mut payload).and_then(|mut tensor| tensor.pack(words)) {
        Ok(()) => Ok(payload),
        Err(error) => bad("payload", "words that can be packed", format!("{error:?}")),
    }
}

pub fn pack_grouped(plan: Plan, codes: &[i8], scales: &[u16]) -> Result<Vec<u8>, Bad> {
    pack(plan, Words::Grouped { codes, scales })
}

pub fn unpack_grouped(tensor: &Tensor<'_>) -> Result<(Vec<i8>, Vec<u16>), Bad> {
    let plan = tensor.plan();
    let mut codes = vec![DIRTY as i8; plan.elements() as usize];
    let mut scales = vec![0xa5a5; (plan.rows() * plan.logical_groups()) as usize];
    unpack(tensor, WordsMut::Grouped { codes: &mut codes, scales: &mut scales })?;
    Ok((codes, scales))
}

pub fn unpack(tensor: &Tensor<'_>, words: WordsMut<'_>) -> Outcome {
    match tensor.unpack(words) {
        Ok(()) => Ok(()),
        Err(error) => bad("payload", "words that can be unpacked", format!("{error:?}")),
    }
}

/// The whole matrix as little-endian binary32 words: in one call, and column block by column block.
pub fn decoded_f32(case: &mut Case<'_>, tensor: &Tensor<'_>) -> Result<(Vec<u8>, Vec<u8>), Bad> {
    let plan = tensor.plan();
    let columns = plan.columns() as usize;
    let mut whole = vec![f32::NAN; plan.elements() as usize];
    case.succeeds("payload", tensor.decode(&mut whole[..], columns))?;
    let mut blocks = vec![f32::NAN; plan.elements() as usize];
    let block = plan.format().descriptor().group.map_or(columns, |group| group as usize);
    for begin in (0..columns).step_by(block) {
        let count = block.min(columns - begin);
        let decoded = tensor.decode_columns(begin as u64, count as u64, &mut blocks[begin..], columns);
        case.succeeds("payload", decoded)?;
    }
    Ok((f32_bytes(&whole), f32_bytes(&blocks)))
}

pub fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_bits().to_le_bytes()).collect()
}

/// The payload member as a tensor; its length must be right.
fn tensor_of<'p>(case: &mut Case<'_>, plan: Plan, payload: &'p [u8]) -> Result<Tensor<'p>, Bad> {
    let tensor = case.succeeds("payload", Tensor::new(plan, payload))?;
    case.succeeds("payload", tensor.validate())?;
    Ok(tensor)
}

/// What validation says of bytes that are not legal.
fn invalid(case: &mut Case<'_>, format: Format) -> Outcome {
    let shape = case.numbers("shape")?;
    let payload = case.bytes("payload")?;
    let plan = plan_of(case, format, &shape)?;
    let got = Tensor::new(plan, &payload).and_then(|tensor| tensor.validate());
    fault::check(case, format, 0, got)
}

pub fn grouped_valid(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let format = format_of(case, "format")?;
    let Some(scheme) = format.scheme() else { return bad("format", "a grouped format", format.name()) };
    let shape = case.numbers("shape")?;
    let (_, columns) = matrix(&shape)?;
    let codes = case.codes("codes")?;
    let scales: Vec<u16> = case.words("scales", 4)?.iter().map(|&word| word as u16).collect();
    let payload = case.bytes("payload")?;
    let plan = plan_of(case, format, &shape)?;
    case.check("payload", hex(&pack_grouped(plan, &codes, &scales)?));
    let tensor = tensor_of(case, plan, &payload)?;
    let (unpacked_codes, unpacked_scales) = unpack_grouped(&tensor)?;
    case.check("codes", unpacked_codes);
    case.check("scales", words_hex(&unpacked_scales, 4));
    let (whole, blocks) = decoded_f32(case, &tensor)?;
    case.check("f32", hex(&whole));
    case.check("f32", hex(&blocks));
    let mut rows = vec![0.0f32; codes.len()];
    let groups = columns.div_ceil(scheme.group() as usize);
    let by_row = rows.chunks_mut(columns).zip(codes.chunks(columns)).zip(scales.chunks(groups));
    for (row, ((out, codes), scales)) in (0..).zip(by_row) {
        case.succeeds("codes", dequantize_row(format, row, codes, scales, out))?;
    }
    case.check("f32", hex(&f32_bytes(&rows)));
    Ok(())
}

pub fn grouped_invalid(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let format = format_of(case, "format")?;
    invalid(case, format)
}

pub fn fp8_valid(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let format = Format::Fp8E4M3FnRowBf16S;
    let shape = case.numbers("shape")?;
    let codes = case.bytes("codes")?;
    let scales: Vec<u16> = case.words("scales", 4)?.iter().map(|&word| word as u16).collect();
    let payload = case.bytes("payload")?;
    let plan = plan_of(case, format, &shape)?;
    case.check("payload", hex(&pack(plan, Words::Fp8Row { codes: &codes, scales: &scales })?));
    let tensor = tensor_of(case, plan, &payload)?;
    let mut unpacked_codes = vec![DIRTY; plan.elements() as usize];
    let mut unpacked_scales = vec![0xa5a5u16; plan.rows() as usize];
    unpack(&tensor, WordsMut::Fp8Row { codes: &mut unpacked_codes, scales: &mut unpacked_scales })?;
    case.check("codes", hex(&unpacked_codes));
    case.check("scales", words_hex(&unpacked_scales, 4));
    let (whole, blocks) = decoded_f32(case, &tensor)?;
    case.check("f32", hex(&whole));
    case.check("f32", hex(&blocks));
    Ok(())
}

pub fn fp8_invalid(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    invalid(case, Format::Fp8E4M3FnRowBf16S)
}

pub fn direct_valid(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let format = format_of(case, "format")?;
    let shape = case.numbers("shape")?;
    let payload = case.bytes("payload")?;
    let digits = format.descriptor().code_bits as usize / 4;
    let words = case.words("words", digits)?;
    let plan = plan_of(case, format, &shape)?;
    let tensor = tensor_of(case, plan, &payload)?;
    let elements = plan.elements() as usize;
    match format {
        Format::Bf16 => {
            let words: Vec<u16> = words.iter().map(|&word| word as u16).collect();
            case.check("payload", hex(&pack(plan, Words::Bf16(&words))?));
            let mut unpacked = vec![0xa5a5; elements];
            unpack(&tensor, WordsMut::Bf16(&mut unpacked))?;
            case.check("words", words_hex(&unpacked, digits));
        }
        Format::Fp32 => {
            let words: Vec<u32> = words.iter().map(|&word| word as u32).collect();
            case.check("payload", hex(&pack(plan, Words::Fp32(&words))?));
            let mut unpacked = vec![0xa5a5_a5a5; elements];
            unpack(&tensor, WordsMut::Fp32(&mut unpacked))?;
            case.check("words", words_hex(&unpacked, digits));
            let (whole, _) = decoded_f32(case, &tensor)?;
            case.check("payload", hex(&whole));
        }
        Format::I32 => {
            let words: Vec<i32> = words.iter().map(|&word| word as u32 as i32).collect();
            case.check("payload", hex(&pack(plan, Words::I32(&words))?));
            let mut unpacked = vec![DIRTY.into(); elements];
            unpack(&tensor, WordsMut::I32(&mut unpacked))?;
            let unsigned: Vec<u32> = unpacked.iter().map(|&value| value as u32).collect();
            case.check("words", words_hex(&unsigned, digits));
            case.check("values", Value::from(unpacked));
        }
        format => return bad("format", "a direct format", format.name()),
    }
    Ok(())
}

pub fn direct_invalid(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let format = format_of(case, "format")?;
    invalid(case, format)
}
