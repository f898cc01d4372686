//! `nvfp4.json`: words to a payload and back, decoding by hash and sample, and payloads that are patched.

use ninfer_codec::{Format, Plan, Tensor, Words, WordsMut};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Place;
use super::case::{Bad, Case, Outcome, bad, bytes, hex, list, number, string, word, word_hex};
use super::fault;
use super::payloads::{DIRTY, decoded_f32, matrix, pack, plan_of, unpack};

fn sha256(bytes: &[u8]) -> Value {
    hex(&Sha256::digest(bytes))
}

/// A member of an entry of a list.
fn part<'v>(place: &str, entry: &'v Value, member: &str) -> Result<&'v Value, Bad> {
    match entry.get(member) {
        Some(value) => Ok(value),
        None => bad(&format!("{place}.{member}"), "a member of this name", "none"),
    }
}

/// Entries of a list have exactly these members.
fn only(place: &str, entry: &Value, members: &[&str]) -> Outcome {
    let known = |member: &&String| members.contains(&member.as_str());
    match entry.as_object().map(|entry| entry.keys().find(|member| !known(member))) {
        Some(None) => Ok(()),
        Some(Some(member)) => bad(&format!("{place}.{member}"), "no such member", "one"),
        None => bad(place, "an object", entry),
    }
}

pub fn valid(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let shape = case.numbers("shape")?;
    let (_, columns) = matrix(&shape)?;
    let codes = case.bytes("codes")?;
    let scales = case.bytes("scales")?;
    let divisor = case.word("divisor", 8)? as u32;
    let plan = plan_of(case, Format::Nvfp4, &shape)?;
    case.check("payload_bytes", plan.payload_bytes());
    let packed = pack(plan, Words::Nvfp4 { codes: &codes, scales: &scales, divisor })?;
    case.check("payload_sha256", sha256(&packed));
    let payload = if case.value("payload")?.is_null() {
        packed
    } else {
        let payload = case.bytes("payload")?;
        case.check("payload", hex(&packed));
        case.check("payload_sha256", sha256(&payload));
        payload
    };
    windows(case, &payload)?;

    let tensor = case.succeeds("payload", Tensor::new(plan, &payload))?;
    case.succeeds("payload", tensor.validate())?;
    let mut unpacked_codes = vec![DIRTY; plan.codes().bytes as usize];
    let mut unpacked_scales = vec![DIRTY; plan.scales().bytes as usize];
    let mut unpacked_divisor = 0;
    let words = WordsMut::Nvfp4 {
        codes: &mut unpacked_codes,
        scales: &mut unpacked_scales,
        divisor: &mut unpacked_divisor,
    };
    unpack(&tensor, words)?;
    case.check("codes", hex(&unpacked_codes));
    case.check("scales", hex(&unpacked_scales));
    case.check("divisor", word_hex(unpacked_divisor, 8));

    let (whole, blocks) = decoded_f32(case, &tensor)?;
    case.check("f32_sha256", sha256(&whole));
    case.check("f32_sha256", sha256(&blocks));
    let mut wide = vec![f64::NAN; plan.elements() as usize];
    case.succeeds("payload", tensor.decode(&mut wide[..], columns))?;
    let wide: Vec<u8> = wide.iter().flat_map(|value| value.to_bits().to_le_bytes()).collect();
    case.check("f64_sha256", sha256(&wide));
    samples(case, &plan, &whole, &wide)
}

fn windows(case: &mut Case<'_>, payload: &[u8]) -> Outcome {
    for (index, window) in list("windows", &case.value("windows")?)?.iter().enumerate() {
        let place = format!("windows[{index}]");
        only(&place, window, &["offset", "hex"])?;
        let offset = number(&place, part(&place, window, "offset")?)?;
        let expected = part(&place, window, "hex")?;
        let count = bytes(&place, &string(&place, expected)?)?.len();
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        match payload.get(begin..).and_then(|rest| rest.get(..count)) {
            Some(got) => case.compare(&place, Some(expected), &hex(got)),
            None => return bad(&place, "a window inside the payload", offset),
        }
    }
    Ok(())
}

fn samples(case: &mut Case<'_>, plan: &Plan, f32_words: &[u8], f64_words: &[u8]) -> Outcome {
    for (index, sample) in list("samples", &case.value("samples")?)?.iter().enumerate() {
        let place = format!("samples[{index}]");
        only(&place, sample, &["n", "k", "f32", "f64"])?;
        let row = number(&place, part(&place, sample, "n")?)?;
        let column = number(&place, part(&place, sample, "k")?)?;
        if row >= plan.rows() || column >= plan.columns() {
            return bad(&place, "a coordinate inside the matrix", format!("({row}, {column})"));
        }
        let element = (row * plan.columns() + column) as usize;
        let narrow = f32_words.as_chunks().0.get(element).map(|word| u32::from_le_bytes(*word));
        let wide = f64_words.as_chunks().0.get(element).map(|word| u64::from_le_bytes(*word));
        let got = narrow.map_or(Value::Null, |word| word_hex(word, 8));
        case.compare(&format!("{place}.f32"), Some(part(&place, sample, "f32")?), &got);
        let got = wide.map_or(Value::Null, |word| word_hex(word, 16));
        case.compare(&format!("{place}.f64"), Some(part(&place, sample, "f64")?), &got);
    }
    Ok(())
}

pub fn invalid(case: &mut Case<'_>, place: &Place<'_>) -> Outcome {
    let base = case.string("base")?;
    let valid = place.file.get("valid").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let Some(parent) = valid.iter().find(|entry| entry.get("id").is_some_and(|id| *id == base)) else {
        return bad("base", "the id of a valid case", base);
    };
    let shape = part("base", parent, "shape")?;
    let shape: Vec<u64> = list("base", shape)?.iter().map(|n| number("base", n)).collect::<Result<_, _>>()?;
    let plan = plan_of(case, Format::Nvfp4, &shape)?;
    let mut payload = base_payload(plan, parent)?;
    for (index, patch) in list("patches", &case.value("patches")?)?.iter().enumerate() {
        let place = format!("patches[{index}]");
        only(&place, patch, &["offset", "hex"])?;
        let offset = number(&place, part(&place, patch, "offset")?)?;
        let new = bytes(&place, &string(&place, part(&place, patch, "hex")?)?)?;
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        match payload.get_mut(begin..).and_then(|rest| rest.get_mut(..new.len())) {
            Some(old) => old.copy_from_slice(&new),
            None => return bad(&place, "a patch inside the payload", offset),
        }
    }
    if case.has("resize_to") {
        let size = case.number("resize_to")?;
        if size > 2 * plan.payload_bytes() {
            return bad("resize_to", "a size near the payload's", size);
        }
        payload.resize(size as usize, 0);
    }
    case.accept("resize_to");
    let got = Tensor::new(plan, &payload).and_then(|tensor| tensor.validate());
    fault::check(case, Format::Nvfp4, 0, got)
}

/// The payload of a valid case. Its bytes, its hash and its words all say what it is; where one of the three
/// disagrees, which is that case's failure, the other two are followed.
fn base_payload(plan: Plan, parent: &Value) -> Result<Vec<u8>, Bad> {
    let of = |member| string("base", part("base", parent, member)?);
    let given = bytes("base", &of("payload")?)?;
    if part("base", parent, "payload_sha256")? == &sha256(&given) {
        return Ok(given);
    }
    let packed = || {
        let (codes, scales) = (bytes("base", &of("codes")?)?, bytes("base", &of("scales")?)?);
        let divisor = word("base", part("base", parent, "divisor")?, 8)? as u32;
        pack(plan, Words::Nvfp4 { codes: &codes, scales: &scales, divisor })
    };
    Ok(packed().unwrap_or(given))
}
