//! One case: its members, read strictly, and the checks made on them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Report;

/// A member that cannot be used as what it should be; the case ends there.
#[derive(Debug)]
pub struct Bad {
    member: String,
    difference: String,
}

pub type Outcome = Result<(), Bad>;

/// Says that a member is not what it should be.
pub fn bad<T>(member: &str, expected: &str, got: impl std::fmt::Display) -> Result<T, Bad> {
    Err(Bad { member: member.to_owned(), difference: format!("expected {expected}, got {got}") })
}

/// The members of a case, or the one value of a case that is no object (then the member is `value`).
pub struct Case<'r> {
    report: &'r mut Report,
    id: String,
    members: Map<String, Value>,
    seen: BTreeSet<String>,
}

/// Runs one case and reports members that nothing asked for.
pub fn run(report: &mut Report, place: String, entry: &Value, body: impl FnOnce(&mut Case<'_>) -> Outcome) {
    let members = match entry {
        Value::Object(members) => members.clone(),
        value => Map::from_iter([("value".to_owned(), value.clone())]),
    };
    let id = match members.get("id") {
        Some(Value::String(id)) => id.clone(),
        _ => place,
    };
    report.cases += 1;
    let seen = BTreeSet::from(["id".to_owned(), "note".to_owned()]);
    let mut case = Case { report, id, members, seen };
    match body(&mut case) {
        Ok(()) => {
            for member in case.members.keys() {
                if !case.seen.contains(member) {
                    case.report.fail(&case.id, member, "expected no such member, got one".to_owned());
                }
            }
        }
        Err(bad) => case.report.fail(&case.id, &bad.member, bad.difference),
    }
}

impl Case<'_> {
    /// Whether the member is there and not null.
    pub fn has(&self, member: &str) -> bool {
        self.members.get(member).is_some_and(|value| !value.is_null())
    }

    /// A member that must be there.
    pub fn value(&mut self, member: &str) -> Result<Value, Bad> {
        self.seen.insert(member.to_owned());
        match self.members.get(member) {
            Some(value) => Ok(value.clone()),
            None => bad(member, "a member of this name", "none"),
        }
    }

    /// Accepts a member without looking at it.
    pub fn accept(&mut self, member: &str) {
        self.seen.insert(member.to_owned());
    }

    pub fn string(&mut self, member: &str) -> Result<String, Bad> {
        string(member, &self.value(member)?)
    }

    pub fn number(&mut self, member: &str) -> Result<u64, Bad> {
        number(member, &self.value(member)?)
    }

    pub fn numbers(&mut self, member: &str) -> Result<Vec<u64>, Bad> {
        list(member, &self.value(member)?)?.iter().map(|value| number(member, value)).collect()
    }

    pub fn bytes(&mut self, member: &str) -> Result<Vec<u8>, Bad> {
        let text = self.string(member)?;
        bytes(member, &text)
    }

    /// A bit pattern of so many digits.
    pub fn word(&mut self, member: &str, digits: usize) -> Result<u64, Bad> {
        word(member, &self.value(member)?, digits)
    }

    pub fn words(&mut self, member: &str, digits: usize) -> Result<Vec<u64>, Bad> {
        list(member, &self.value(member)?)?.iter().map(|value| word(member, value, digits)).collect()
    }

    /// Signed codes of eight bits.
    pub fn codes(&mut self, member: &str) -> Result<Vec<i8>, Bad> {
        let code = |value: &Value| match value.as_i64().map(i8::try_from) {
            Some(Ok(code)) => Ok(code),
            _ => bad(member, "a signed code", value),
        };
        list(member, &self.value(member)?)?.iter().map(code).collect()
    }

    /// One check: what the codec gave is what the member holds.
    pub fn check(&mut self, member: &str, got: impl Into<Value>) {
        let expected = self.members.get(member).cloned();
        self.seen.insert(member.to_owned());
        self.compare(member, expected.as_ref(), &got.into());
    }

    /// One check of a part of a member, or of something that follows from it.
    pub fn compare(&mut self, member: &str, expected: Option<&Value>, got: &Value) {
        if expected == Some(got) {
            self.report.passed += 1;
        } else {
            let expected = expected.unwrap_or(&Value::Null);
            self.report.fail(&self.id, member, difference(expected, got));
        }
    }

    /// One check: a call that must succeed did.
    pub fn succeeds<T, E: std::fmt::Debug>(&mut self, member: &str, result: Result<T, E>) -> Result<T, Bad> {
        match result {
            Ok(value) => {
                self.report.passed += 1;
                Ok(value)
            }
            Err(error) => bad(member, "success", format!("{error:?}")),
        }
    }
}

pub fn string(member: &str, value: &Value) -> Result<String, Bad> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => bad(member, "a string", value),
    }
}

pub fn number(member: &str, value: &Value) -> Result<u64, Bad> {
    match value.as_u64() {
        Some(number) => Ok(number),
        None => bad(member, "an integer of 64 bits without a sign", value),
    }
}

pub fn list<'v>(member: &str, value: &'v Value) -> Result<&'v [Value], Bad> {
    match value.as_array() {
        Some(values) => Ok(values),
        None => bad(member, "a list", value),
    }
}

pub fn word(member: &str, value: &Value, digits: usize) -> Result<u64, Bad> {
    let text = string(member, value)?;
    let is_hex = text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
    match u64::from_str_radix(&text, 16) {
        Ok(word) if is_hex && text.len() == digits => Ok(word),
        _ => bad(member, &format!("{digits} hex digits"), text),
    }
}

pub fn bytes(member: &str, text: &str) -> Result<Vec<u8>, Bad> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return bad(member, "two hex digits a byte", text);
    };
    let byte = |pair: &[u8; 2]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    match pairs.iter().map(byte).collect() {
        Some(bytes) => Ok(bytes),
        None => bad(member, "hex digits", text),
    }
}

/// Bytes as the vectors write them.
pub fn hex(bytes: &[u8]) -> Value {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect::<String>().into()
}

/// A bit pattern as the vectors write it.
pub fn word_hex(word: impl Into<u64>, digits: usize) -> Value {
    format!("{:0digits$x}", word.into()).into()
}

/// Bit patterns as the vectors write them.
pub fn words_hex<T: Copy + Into<u64>>(words: &[T], digits: usize) -> Value {
    words.iter().map(|&word| word_hex(word, digits)).collect()
}

/// What differs, cut down to where it does.
fn difference(expected: &Value, got: &Value) -> String {
    let (expected, got) = (shown(expected), shown(got));
    const AROUND: usize = 48;
    if expected.len().max(got.len()) <= 2 * AROUND {
        return format!("expected {expected}, got {got}");
    }
    let same = expected.bytes().zip(got.bytes()).take_while(|(a, b)| a == b).count();
    let begin = same.saturating_sub(AROUND / 2);
    let part = |text: &str| {
        let bytes = text.as_bytes().iter().skip(begin).take(AROUND);
        bytes.map(|&byte| char::from(byte)).collect::<String>()
    };
    format!(
        "expected …{}… got …{}… (from character {begin} of {} and {})",
        part(&expected),
        part(&got),
        expected.len(),
        got.len()
    )
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "nothing".to_owned(),
        value => json!(value).to_string(),
    }
}
