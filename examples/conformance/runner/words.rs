//! `words.json`: what single words mean.

use half::bf16;
use ninfer_codec::format::{WordClass, WordFault, binary16, direct, e2m1, e4m3fn, grouped, nvfp4, rounding};
use ninfer_codec::{Error, Format, Source, convert, quantize_row};
use serde_json::Value;

use super::case::{Bad, Case, Outcome, bad, word_hex};
use super::fault::reason;
use super::{Place, Section};

pub const SECTIONS: &[(&str, Section)] = &[
    ("e2m1", e2m1_word),
    ("e4m3fn", e4m3fn_word),
    ("bf16", bf16_word),
    ("f16", f16_word),
    ("f32_to_f16", f32_to_f16),
    ("f64_to_f32", f64_to_f32),
    ("i32", i32_word),
    ("signed_codes", signed_code),
    ("scale_validity", scale_validity),
];

fn class_name(class: WordClass) -> &'static str {
    match class {
        WordClass::Zero => "zero",
        WordClass::Subnormal => "subnormal",
        WordClass::Normal => "normal",
        WordClass::Infinite => "infinite",
        WordClass::Nan => "nan",
        WordClass::QuietNan => "nan_quiet",
        WordClass::SignalingNan => "nan_signaling",
    }
}

fn e2m1_word(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let word = case.word("word", 1)? as u8;
    case.check("f32", word_hex(e2m1::to_f32_bits(word), 8));
    Ok(())
}

fn e4m3fn_word(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let word = case.word("word", 2)? as u8;
    let class = e4m3fn::classify(word);
    case.check("sign", word >> 7);
    case.check("class", class_name(class));
    case.check("f32", (class != WordClass::Nan).then(|| word_hex(e4m3fn::to_f32_bits(word), 8)));
    Ok(())
}

fn bf16_word(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let word = case.word("word", 4)? as u16;
    case.check("sign", word >> 15);
    case.check("class", class_name(direct::bf16_classify(word)));
    case.check("f32", word_hex(direct::bf16_to_f32_bits(word), 8));
    let mut out = [0.0f32];
    case.succeeds("word", convert::to_f32_exact(&[bf16::from_bits(word)][..], &mut out))?;
    case.check("f32", word_hex(out[0].to_bits(), 8));
    Ok(())
}

fn f16_word(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let word = case.word("word", 4)? as u16;
    let class = binary16::classify(word);
    let nan = matches!(class, WordClass::QuietNan | WordClass::SignalingNan);
    case.check("sign", word >> 15);
    case.check("class", class_name(class));
    case.check("f32", (!nan).then(|| word_hex(binary16::to_f32_bits(word), 8)));
    Ok(())
}

fn f32_to_f16(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let word = case.word("f32", 8)? as u32;
    case.check("f16", word_hex(binary16::from_f32_bits(word), 4));
    Ok(())
}

fn f64_to_f32(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let word = case.word("f64", 16)?;
    let values = [f64::from_bits(word)];
    // A scale may still overflow: then the value itself was converted.
    let (mut codes, mut scales) = ([0], [0]);
    let error = match quantize_row(Format::W8G32F16S, 0, &values[..], &mut codes, &mut scales) {
        Ok(()) | Err(Error::ScaleOverflow { .. }) => None,
        Err(Error::NonFiniteSource { .. }) => Some("non_finite_source".to_owned()),
        Err(Error::SourceNotRepresentable { .. }) => Some("source_not_representable".to_owned()),
        Err(error) => Some(format!("{error:?}")),
    };
    let converts = error.is_none();
    case.check("error", error);
    case.check("f32", converts.then(|| word_hex(rounding::f32_bits_from_f64_bits(word), 8)));
    let mut out = [0.0f32];
    case.succeeds("f64", convert::to_f32_nearest(Source::F64(&values), &mut out))?;
    case.check("f32", converts.then(|| word_hex(out[0].to_bits(), 8)));
    Ok(())
}

fn i32_word(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let word = case.word("word", 8)? as u32;
    case.check("value", direct::i32_value(word));
    Ok(())
}

fn signed_code(case: &mut Case<'_>, place: &Place<'_>) -> Outcome {
    let scheme = match place.group {
        "4" => grouped::Q4,
        "5" => grouped::Q5,
        "6" => grouped::Q6,
        "8" => grouped::W8,
        bits => return bad("signed_codes", "4, 5, 6 or 8", bits),
    };
    match u8::try_from(place.index) {
        Ok(word) if word >> (scheme.code_bits() - 1) < 2 => {
            case.check("value", scheme.signed_code(word));
            Ok(())
        }
        _ => bad("value", "a word of the code's width", place.index),
    }
}

fn scale_validity(case: &mut Case<'_>, place: &Place<'_>) -> Outcome {
    let fault: Result<(), WordFault> = match place.group {
        "f16" => binary16::check_scale(word16(case)?),
        "bf16" => direct::bf16_check_scale(word16(case)?),
        "e4m3fn" => e4m3fn::check_scale(case.word("word", 2)? as u8),
        "f32_divisor" => nvfp4::check_divisor(case.word("word", 8)? as u32),
        kind => return bad("scale_validity", "f16, bf16, e4m3fn or f32_divisor", kind),
    };
    case.check("valid", fault.is_ok());
    case.check("reason", fault.err().map_or(Value::Null, |fault| reason(fault).into()));
    Ok(())
}

fn word16(case: &mut Case<'_>) -> Result<u16, Bad> {
    case.word("word", 4).map(|word| word as u16)
}
