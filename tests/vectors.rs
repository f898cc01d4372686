//! The golden vectors pass, and the runner notices every altered, missing or unknown member.

#[path = "../examples/conformance/runner/mod.rs"]
mod runner;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use runner::{Report, run_directory, run_value};
use serde_json::{Value, json};

fn directory() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors"))
}

const TOPICS: [&str; 9] = [
    "canonical_encode",
    "direct",
    "fp8_row",
    "geometry",
    "grouped_decode",
    "nvfp4",
    "registry",
    "rows",
    "words",
];

fn load(topic: &str) -> Value {
    let bytes = fs::read(directory().join(topic).with_extension("json")).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// The members of a case that hold results. What is left out is input: names, shapes, sources, and payloads that
/// are to be refused.
fn results(topic: &str, section: &str) -> &'static [&'static str] {
    match (topic, section) {
        ("registry", "formats") => &[
            "category",
            "direct_kind",
            "code_bits",
            "group",
            "code_min",
            "code_max",
            "qmax",
            "scale",
            "divisor",
            "bits_per_weight",
            "layout",
        ],
        ("registry", "layouts") => &["accepts", "rank_min", "rank_max", "alignment", "multiple_of"],
        ("registry", "resource_encodings") => &["alignment"],
        ("registry", "encoder_profiles") => &["formats"],
        ("registry", "pairs") => &["legal"],
        ("registry", "accept_format_names" | "accept_layout_names") => &["name_hex", "name"],
        ("registry", _) => &[],
        ("words", "f32_to_f16") => &["f16"],
        ("words", "f64_to_f32") => &["f32", "error"],
        ("words", "i32") => &["value"],
        ("words", "scale_validity") => &["valid", "reason"],
        ("words", "e2m1") => &["f32"],
        ("words", _) => &["sign", "class", "f32"],
        ("canonical_encode", _) => &["scales", "codes", "payload", "error"],
        ("geometry", _) => &["geometry", "error"],
        ("rows", "parents") => &[],
        ("rows", _) => &["spans", "payload", "rows_out", "error"],
        (_, "invalid") => &["error"],
        ("nvfp4", _) => &[
            "codes",
            "scales",
            "divisor",
            "payload_bytes",
            "payload",
            "payload_sha256",
            "f32_sha256",
            "f64_sha256",
            "windows",
            "samples",
        ],
        ("direct", _) => &["words", "values", "payload"],
        _ => &["codes", "scales", "payload", "f32"],
    }
}

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}

/// A case of a file: its section's pointer and what a failure calls it.
#[derive(Clone, Debug)]
struct Place {
    pointer: String,
    id: String,
    results: &'static [&'static str],
}

fn cases(topic: &str, file: &Value) -> Vec<Place> {
    let mut places = vec![];
    for (section, content) in file.as_object().unwrap() {
        let lists: Vec<(String, String, &Value)> = match content {
            Value::Array(_) => vec![(format!("/{section}"), section.clone(), content)],
            Value::Object(lists) => {
                let list =
                    |(group, list)| (format!("/{section}/{group}"), format!("{section}.{group}"), list);
                lists.iter().map(list).collect()
            }
            _ => continue,
        };
        for (pointer, name, list) in lists {
            for (index, case) in list.as_array().unwrap().iter().enumerate() {
                let id = case.get("id").and_then(Value::as_str).map(str::to_owned);
                places.push(Place {
                    pointer: format!("{pointer}/{index}"),
                    id: id.unwrap_or_else(|| format!("{name}[{index}]")),
                    results: results(topic, section),
                });
            }
        }
    }
    places
}

/// Pointers to the single results of a case; of a long list, its ends and one between.
fn leaves(file: &Value, place: &Place, random: &mut Random) -> Vec<String> {
    fn walk(value: &Value, pointer: String, random: &mut Random, out: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    // Where a window or sample lies is no result.
                    let input = pointer.contains("/windows/") || pointer.contains("/samples/");
                    if !(input && ["offset", "n", "k"].contains(&name.as_str())) {
                        walk(member, format!("{pointer}/{name}"), random, out);
                    }
                }
            }
            Value::Array(list) => {
                let last = list.len().wrapping_sub(1);
                let picked = match list.len() {
                    0 => BTreeSet::new(),
                    _ => BTreeSet::from([0, random.below(list.len()), last]),
                };
                for index in picked {
                    walk(&list[index], format!("{pointer}/{index}"), random, out);
                }
            }
            _ => out.push(pointer),
        }
    }
    let case = file.pointer(&place.pointer).unwrap();
    let mut out = vec![];
    if !case.is_object() {
        out.push(place.pointer.clone());
    }
    for result in place.results {
        // What is null because it lies elsewhere has no digit to alter.
        let inline = |value: &&Value| !(value.is_null() && *result == "payload");
        if let Some(member) = case.get(result).filter(inline) {
            walk(member, format!("{}/{result}", place.pointer), random, &mut out);
        }
    }
    out
}

/// Changes a value a little: one hex digit, one unit, one truth.
fn alter(value: &mut Value, random: &mut Random) {
    *value = match &*value {
        Value::Bool(truth) => json!(!truth),
        Value::Null => json!("00000000"),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => json!(if number % 2 == 0 { number + 1 } else { number - 1 }),
            (_, Some(number)) => json!(number + 1),
            _ => panic!("{number} is no integer"),
        },
        Value::String(text) if text.is_empty() => json!("00"),
        Value::String(text) if text.bytes().all(|c| c.is_ascii_hexdigit()) => {
            let mut digits = text.clone().into_bytes();
            let at = random.below(digits.len());
            let old = char::from(digits[at]).to_digit(16).unwrap() as usize;
            digits[at] = b"0123456789abcdef"[(old + 1 + random.below(15)) % 16];
            json!(String::from_utf8(digits).unwrap())
        }
        Value::String(text) if text == "negative" => json!("nan"),
        Value::String(text) if text == "overflow" => json!("not_multiple"),
        Value::String(_) => json!("overflow"),
        value => panic!("{value} is no single value"),
    };
}

fn failing(report: &Report) -> BTreeSet<String> {
    report.failures.iter().map(|failure| failure.case.clone()).collect()
}

#[test]
fn the_vectors_pass() {
    let reports = run_directory(directory()).unwrap();
    let files: Vec<&str> = reports.iter().map(|report| report.file.trim_end_matches(".json")).collect();
    assert_eq!(files, TOPICS);
    for report in &reports {
        let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
        assert_eq!(failures, [""; 0], "{}", report.file);
        assert!(report.passed >= report.cases, "{}: {report:?}", report.file);
    }
}

/// One result of every third case is altered at a time, until every result has been: exactly the altered cases
/// fail.
fn altered_cases_fail(topic: &str) {
    let file = load(topic);
    let mut random = Random(1);
    let places = cases(topic, &file);
    let leaves: Vec<Vec<String>> = places.iter().map(|place| leaves(&file, place, &mut random)).collect();
    let rounds = leaves.iter().map(Vec::len).max().unwrap();
    let mut altered = 0;
    for round in 0..rounds {
        for third in 0..3 {
            let mut content = file.clone();
            let mut expected = BTreeSet::new();
            for (place, leaves) in places.iter().zip(&leaves).skip(third).step_by(3) {
                if let Some(leaf) = leaves.get(round) {
                    alter(content.pointer_mut(leaf).unwrap(), &mut random);
                    expected.insert(place.id.clone());
                }
            }
            if !expected.is_empty() {
                altered += expected.len();
                assert_eq!(failing(&run_value(topic, &content)), expected, "{topic}, round {round}");
            }
        }
    }
    assert_eq!(altered, leaves.iter().map(Vec::len).sum::<usize>());
    assert!(altered >= places.iter().filter(|place| !place.results.is_empty()).count(), "{topic}");
}

#[test]
fn altered_results_fail_their_case_encode() {
    altered_cases_fail("canonical_encode");
}

#[test]
fn altered_results_fail_their_case_decode() {
    for topic in ["grouped_decode", "fp8_row", "direct"] {
        altered_cases_fail(topic);
    }
}

#[test]
fn altered_results_fail_their_case_nvfp4() {
    altered_cases_fail("nvfp4");
}

#[test]
fn altered_results_fail_their_case_tables() {
    for topic in ["registry", "words", "geometry", "rows"] {
        altered_cases_fail(topic);
    }
}

/// One digit of one result of one case: that case fails and no other.
#[test]
fn one_altered_digit_fails_one_case() {
    for topic in TOPICS {
        let file = load(topic);
        let mut random = Random(7);
        let places = cases(topic, &file);
        let with_results: Vec<&Place> = places.iter().filter(|place| !place.results.is_empty()).collect();
        for _ in 0..12 {
            let place = with_results[random.below(with_results.len())];
            let leaves = leaves(&file, place, &mut random);
            let mut content = file.clone();
            let leaf = &leaves[random.below(leaves.len())];
            alter(content.pointer_mut(leaf).unwrap(), &mut random);
            let report = run_value(topic, &content);
            assert_eq!(failing(&report), BTreeSet::from([place.id.clone()]), "{topic} {leaf}");
        }
    }
}

/// The member is a name that the schema does not hold, in every object of a case.
#[test]
fn unknown_members_fail_their_case() {
    fn objects(value: &Value, pointer: String, out: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                out.push(pointer.clone());
                members.iter().for_each(|(name, value)| objects(value, format!("{pointer}/{name}"), out));
            }
            Value::Array(list) if list.first().is_some_and(Value::is_object) => {
                objects(&list[list.len() - 1], format!("{pointer}/{}", list.len() - 1), out);
            }
            _ => {}
        }
    }
    for topic in TOPICS {
        let file = load(topic);
        let mut random = Random(3);
        let places = cases(topic, &file);
        for _ in 0..12 {
            let place = &places[random.below(places.len())];
            let mut pointers = vec![];
            objects(file.pointer(&place.pointer).unwrap(), place.pointer.clone(), &mut pointers);
            for pointer in pointers {
                let mut content = file.clone();
                content.pointer_mut(&pointer).unwrap()["surprise"] = json!(1);
                let report = run_value(topic, &content);
                assert_eq!(failing(&report), BTreeSet::from([place.id.clone()]), "{topic} {pointer}");
            }
        }
        let mut content = file.clone();
        content["surprise"] = json!([]);
        assert_eq!(run_value(topic, &content).failures.len(), 1, "{topic}");
    }
}

/// Without one of its results a case fails; what is given for information may be left out.
#[test]
fn missing_members_fail_their_case() {
    for topic in TOPICS {
        let file = load(topic);
        let mut random = Random(5);
        let places = cases(topic, &file);
        for _ in 0..12 {
            let place = &places[random.below(places.len())];
            let case = file.pointer(&place.pointer).unwrap();
            for result in place.results.iter().filter(|result| case.get(result).is_some()) {
                let mut content = file.clone();
                content.pointer_mut(&place.pointer).unwrap().as_object_mut().unwrap().remove(*result);
                // The payload of a valid case is also what another case patches.
                let failing = failing(&run_value(topic, &content));
                assert!(failing.contains(&place.id), "{topic} {} {result}", place.id);
                assert!(topic == "nvfp4" || failing.len() == 1, "{topic} {} {result}: {failing:?}", place.id);
            }
            for (member, needed) in [
                ("kind", true),
                ("row", true),
                ("col", true),
                ("group", true),
                ("offset", true),
                ("word", false),
            ] {
                let mut content = file.clone();
                let error = content.pointer_mut(&format!("{}/error", place.pointer));
                let Some(error) = error.and_then(Value::as_object_mut) else { continue };
                // Under a zero scale the column says it all.
                let needed = needed
                    && !(member == "group" && error.get("kind") == Some(&json!("zero_scale_nonzero_code")));
                if error.remove(member).is_some() {
                    let expected = needed.then(|| place.id.clone());
                    let failing = failing(&run_value(topic, &content));
                    assert_eq!(failing, expected.into_iter().collect(), "{topic} {} {member}", place.id);
                }
            }
        }
    }
}

#[test]
fn other_files_fail() {
    let runs = |content: Value| run_value("file", &content).failures.len();
    let file = |topic: &str| json!({ "schema": "ninfer-vectors/1", "topic": topic, "set": "x", "seed": 1 });
    for topic in TOPICS {
        assert_eq!(runs(file(topic)), 1, "{topic} without cases");
    }
    for topic in ["", "Words", "words ", "decode"] {
        assert_eq!(runs(file(topic)), 1, "{topic}");
    }
    let mut other = load("direct");
    for schema in [json!("ninfer-vectors/2"), json!(1), Value::Null] {
        other["schema"] = schema;
        assert_eq!(runs(other.clone()), 1);
    }
    assert_eq!(runs(json!([])), 1);
    assert_eq!(runs(json!({ "schema": "ninfer-vectors/1" })), 1);
    assert_eq!(runs(json!({ "schema": "ninfer-vectors/1", "topic": "words", "e2m1": 3 })), 1);
}

#[test]
fn numbers_are_not_read_through_a_double() {
    let geometry = |elements: &str| {
        let text = r#"{"schema":"ninfer-vectors/1","topic":"geometry","cases":[{"id":"a","format":"BF16",
            "layout":"contiguous-le-v1","shape":[9223372036854775807],"geometry":{"alignment":256,
            "payload_bytes":18446744073709551614,"elements":ELEMENTS,"word_bytes":2}}]}"#;
        run_value("file", &serde_json::from_str(&text.replace("ELEMENTS", elements)).unwrap())
    };
    assert_eq!(geometry("9223372036854775807").failures.len(), 0);
    for other in
        ["9223372036854775808", "9223372036854775806", "9223372036854775807.0", "9.223372036854775807e18"]
    {
        assert_eq!(geometry(other).failures.len(), 1, "{other}");
    }
}

#[test]
fn directories_without_vectors_are_refused() {
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-vectors");
    fs::create_dir_all(empty.join("below.json")).unwrap();
    fs::write(empty.join("words.txt"), "{}").unwrap();
    assert!(run_directory(&empty).is_err());
    assert!(run_directory(&empty.join("missing")).is_err());
    let broken = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken-vectors");
    fs::create_dir_all(&broken).unwrap();
    fs::write(broken.join("words.json"), "{\"schema\":").unwrap();
    assert_eq!(run_directory(&broken).unwrap()[0].failures.len(), 1);
}
