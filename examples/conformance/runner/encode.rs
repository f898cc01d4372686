//! `canonical_encode.json`: the encoder, into a payload and row by row.

use half::{bf16, f16};
use ninfer_codec::format::binary16;
use ninfer_codec::{Error, Format, Source, Tensor, TensorMut, quantize_row};

use super::Place;
use super::case::{Bad, Case, Outcome, bad, hex, words_hex};
use super::fault;
use super::payloads::{DIRTY, matrix, pack_grouped, plan_of, unpack_grouped};
use super::registry::format_of;

/// A matrix of source values.
enum Values {
    F32(Vec<f32>),
    Bf16(Vec<bf16>),
    F16(Vec<f16>),
    F64(Vec<f64>),
}

fn typed<T, const BYTES: usize>(bytes: &[u8], from_bytes: impl Fn([u8; BYTES]) -> T) -> Result<Vec<T>, Bad> {
    match bytes.as_chunks() {
        (words, []) => Ok(words.iter().map(|&word| from_bytes(word)).collect()),
        _ => bad("source", "whole words", format!("{} bytes", bytes.len())),
    }
}

impl Values {
    fn read(dtype: &str, bytes: &[u8]) -> Result<Self, Bad> {
        Ok(match dtype {
            "f32" => Self::F32(typed(bytes, |word| f32::from_bits(u32::from_le_bytes(word)))?),
            "bf16" => Self::Bf16(typed(bytes, |word| bf16::from_bits(u16::from_le_bytes(word)))?),
            "f16" => Self::F16(typed(bytes, |word| f16::from_bits(u16::from_le_bytes(word)))?),
            "f64" => Self::F64(typed(bytes, |word| f64::from_bits(u64::from_le_bytes(word)))?),
            dtype => return bad("dtype", "f32, bf16, f16 or f64", dtype),
        })
    }

    fn source(&self) -> Source<'_> {
        match self {
            Self::F32(values) => values.as_slice().into(),
            Self::Bf16(values) => values.as_slice().into(),
            Self::F16(values) => values.as_slice().into(),
            Self::F64(values) => values.as_slice().into(),
        }
    }

    /// Hex digits of one word.
    fn digits(&self) -> usize {
        match self {
            Self::F32(_) => 8,
            Self::Bf16(_) | Self::F16(_) => 4,
            Self::F64(_) => 16,
        }
    }

    /// The same rows further apart, with NaN between them.
    fn spread(&self, columns: usize, stride: usize) -> Self {
        fn rows<T: Copy>(values: &[T], columns: usize, stride: usize, filler: T) -> Vec<T> {
            let mut out = vec![];
            for row in values.chunks(columns) {
                out.extend(row);
                out.resize(out.len() + stride - columns, filler);
            }
            out
        }
        match self {
            Self::F32(values) => Self::F32(rows(values, columns, stride, f32::NAN)),
            Self::Bf16(values) => Self::Bf16(rows(values, columns, stride, bf16::NAN)),
            Self::F16(values) => Self::F16(rows(values, columns, stride, f16::NAN)),
            Self::F64(values) => Self::F64(rows(values, columns, stride, f64::NAN)),
        }
    }

    fn row(&self, row: usize, columns: usize) -> Source<'_> {
        let range = row * columns..(row + 1) * columns;
        match self {
            Self::F32(values) => values[range].into(),
            Self::Bf16(values) => values[range].into(),
            Self::F16(values) => values[range].into(),
            Self::F64(values) => values[range].into(),
        }
    }
}

pub fn case(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let format = format_of(case, "format")?;
    let dtype = case.string("dtype")?;
    let shape = case.numbers("shape")?;
    let source = case.bytes("source")?;
    let values = Values::read(&dtype, &source)?;
    let (rows, columns) = matrix(&shape)?;
    if rows.checked_mul(columns) != Some(values.source().len()) {
        return bad("source", "N * K words", values.source().len());
    }
    let plan = plan_of(case, format, &shape)?;
    let mut payload = vec![DIRTY; plan.payload_bytes() as usize];
    let encoded = TensorMut::new(plan, &mut payload).and_then(|mut t| t.quantize(values.source(), columns));
    let by_row = encode_rows(format, &values, rows, columns);
    if case.has("error") {
        fault::check(case, format, values.digits(), encoded)?;
        return fault::check(case, format, values.digits(), by_row.map(|_| ()));
    }
    case.succeeds("source", encoded)?;
    case.check("payload", hex(&payload));
    let (codes, scales) = case.succeeds("source", by_row)?;
    case.check("codes", codes.clone());
    case.check("scales", words_hex(&scales, 4));
    case.check("payload", hex(&pack_grouped(plan, &codes, &scales)?));
    let tensor = case.succeeds("payload", Tensor::new(plan, &payload))?;
    case.succeeds("payload", tensor.validate())?;
    let (codes, scales) = unpack_grouped(&tensor)?;
    case.check("codes", codes);
    case.check("scales", words_hex(&scales, 4));
    // Once more, with rows that do not follow one another.
    let mut payload = vec![DIRTY; plan.payload_bytes() as usize];
    let (apart, stride) = (values.spread(columns, columns + 3), columns + 3);
    let encoded = TensorMut::new(plan, &mut payload).and_then(|mut t| t.quantize(apart.source(), stride));
    case.succeeds("source", encoded)?;
    case.check("payload", hex(&payload));
    Ok(())
}

fn encode_rows(
    format: Format,
    values: &Values,
    rows: usize,
    columns: usize,
) -> Result<(Vec<i8>, Vec<u16>), Error> {
    let group = format.descriptor().group.unwrap_or(1) as usize;
    let (mut codes, mut scales) = (vec![], vec![]);
    for row in 0..rows {
        let mut row_codes = vec![DIRTY as i8; columns];
        let mut row_scales = vec![binary16::MIN_POSITIVE; columns.div_ceil(group)];
        quantize_row(format, row as u64, values.row(row, columns), &mut row_codes, &mut row_scales)?;
        codes.extend(row_codes);
        scales.extend(row_scales);
    }
    Ok((codes, scales))
}
