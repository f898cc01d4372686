//! An error of the codec in the words of the vectors.

use ninfer_codec::format::WordFault;
use ninfer_codec::{Error, Format};
use serde_json::{Map, Value};

use super::case::{Case, Outcome, bad, word_hex};

/// Which members of an error object must be there: the kind's coordinates.
fn coordinates(kind: &str) -> &'static [&'static str] {
    match kind {
        "gap_not_zero" => &["offset"],
        "padding_scale_not_zero" | "scale_overflow" => &["row", "group"],
        "padding_code_not_zero"
        | "invalid_code"
        | "zero_scale_nonzero_code"
        | "non_finite_source"
        | "source_not_representable" => &["row", "col"],
        "invalid_scale" => &["row"],
        _ => &[],
    }
}

/// Compares the case's `error` with what the codec reported: the kind, every coordinate, and every member given
/// for information. `source_digits` is the width of a source word.
pub fn check(case: &mut Case<'_>, format: Format, source_digits: usize, got: Result<(), Error>) -> Outcome {
    let expected = case.value("error")?;
    let Some(expected) = expected.as_object() else { return bad("error", "an object", expected) };
    let Err(error) = got else {
        return bad("error", &Value::from(expected.clone()).to_string(), "success");
    };
    let got = describe(format, source_digits, error);
    let kind = got.get("kind").and_then(Value::as_str).unwrap_or("");
    for (member, value) in expected {
        let place = format!("error.{member}");
        match got.get(member) {
            Some(got) => {
                // A negative code may be written as a word of its own width or of a whole byte.
                let narrow = narrow_code(format, kind, value, got).filter(|_| member == "word");
                case.compare(&place, Some(value), narrow.as_ref().unwrap_or(got));
            }
            None => case.compare(&place, Some(value), &Value::Null),
        }
    }
    let needed = ["kind"].iter().chain(coordinates(kind));
    let group = (kind == "invalid_scale" && format != Format::Fp8E4M3FnRowBf16S).then_some(&"group");
    for &member in needed.chain(group) {
        if !expected.contains_key(member) {
            case.compare(&format!("error.{member}"), None, &got[member]);
        }
    }
    Ok(())
}

/// Compares only the kind, which may be written in one of two ways.
pub fn check_kind(case: &mut Case<'_>, format: Format, got: Result<(), Error>) -> Outcome {
    let overflow_is_as_good = matches!(got, Err(Error::Overflow))
        && case.value("error")?.get("kind").is_some_and(|kind| kind == "row_out_of_range");
    let got = if overflow_is_as_good { Err(Error::RowOutOfRange { row: 0, rows: 0 }) } else { got };
    check(case, format, 0, got)
}

fn narrow_code(format: Format, kind: &str, expected: &Value, got: &Value) -> Option<Value> {
    let bits = format.scheme()?.code_bits();
    let of_code = ["zero_scale_nonzero_code", "padding_code_not_zero"].contains(&kind);
    let word = u64::from_str_radix(got.as_str()?, 16).ok()? & ((1 << bits) - 1);
    let narrow = word_hex(word, 2);
    (of_code && *expected == narrow).then_some(narrow)
}

/// Every member that an error object of the vectors may have, from the codec's error.
fn describe(format: Format, source_digits: usize, error: Error) -> Map<String, Value> {
    let mut members = Map::new();
    let mut put = |member: &str, value: Value| members.insert(member.to_owned(), value);
    let scale_digits = if format == Format::Nvfp4 { 2 } else { 4 };
    let kind = match error {
        Error::UnsupportedPair { .. } => "unsupported_pair",
        Error::WrongRank { .. } => "wrong_rank",
        Error::ZeroDimension { .. } => "zero_dimension",
        Error::NotMultiple { .. } => "not_multiple",
        Error::Overflow => "overflow",
        Error::PayloadLength { expected, actual } => {
            put("expected", expected.into());
            put("actual", actual.into());
            "payload_length"
        }
        Error::EmptyRows => "empty_rows",
        Error::RowOutOfRange { .. } => "row_out_of_range",
        Error::NonFiniteSource { row, column, word } => {
            put("row", row.into());
            put("col", column.into());
            put("word", word_hex(word, source_digits));
            "non_finite_source"
        }
        Error::SourceNotRepresentable { row, column, word } => {
            put("row", row.into());
            put("col", column.into());
            put("word", word_hex(word, source_digits));
            "source_not_representable"
        }
        Error::ScaleOverflow { row, group, raw_scale } => {
            put("row", row.into());
            put("group", group.into());
            put("raw_scale32", word_hex(raw_scale, 8));
            "scale_overflow"
        }
        Error::InvalidScale { row, group, word, fault } => {
            put("row", row.into());
            put("group", group.into());
            put("word", word_hex(word, scale_digits));
            put("reason", reason(fault).into());
            "invalid_scale"
        }
        Error::InvalidDivisor { word, fault } => {
            put("word", word_hex(word, 8));
            put("reason", reason(fault).into());
            "invalid_divisor"
        }
        Error::InvalidCode { row, column, word } => {
            put("row", row.into());
            put("col", column.into());
            put("word", word_hex(word, 2));
            put("reason", if format.scheme().is_some() { "out_of_range" } else { "nan" }.into());
            "invalid_code"
        }
        Error::ZeroScaleNonzeroCode { row, column, word } => {
            put("row", row.into());
            put("col", column.into());
            put("group", (column / u64::from(format.descriptor().group.unwrap_or(u32::MAX))).into());
            put("word", word_hex(word, 2));
            "zero_scale_nonzero_code"
        }
        Error::PaddingCodeNotZero { row, column, word } => {
            put("row", row.into());
            put("col", column.into());
            put("word", word_hex(word, 2));
            "padding_code_not_zero"
        }
        Error::PaddingScaleNotZero { row, group, word } => {
            put("row", row.into());
            put("group", group.into());
            put("word", word_hex(word, 4));
            "padding_scale_not_zero"
        }
        Error::GapNotZero { offset, word } => {
            put("offset", offset.into());
            put("word", word_hex(word, 2));
            "gap_not_zero"
        }
        _ => "another kind",
    };
    put("kind", kind.into());
    members
}

/// The vectors' name for what is wrong with a word.
pub fn reason(fault: WordFault) -> &'static str {
    match fault {
        WordFault::Nan => "nan",
        WordFault::Infinite => "infinite",
        WordFault::NegativeZero => "negative_zero",
        WordFault::Negative => "negative",
        WordFault::Zero => "zero",
    }
}
