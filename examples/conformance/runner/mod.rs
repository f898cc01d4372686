//! Golden vectors of schema `ninfer-vectors/1`, run against the public API of the codec.
//!
//! * `case`: the members of one case, read strictly, and the checks made on them
//! * `fault`: an error of the codec in the words of the vectors
//! * the rest: one file a topic, or a few topics that read alike
//!
//! Every comparison is a check of one member: what the codec gave is written as the JSON the vectors would hold,
//! and must equal it. A member that is missing, unknown or not of its type is a failed check of its case, and so
//! is an unknown topic of its file.

mod case;
mod fault;

mod encode;
mod geometry;
mod nvfp4;
mod payloads;
mod registry;
mod rows;
mod words;

use std::fmt;
use std::fs;
use std::path::Path;

use serde_json::Value;

pub use case::Case;

const SCHEMA: &str = "ninfer-vectors/1";

/// A check that did not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The case's `id`, or what stands for it where cases have none.
    pub case: String,
    /// The member that was compared.
    pub member: String,
    /// What was expected and what was got.
    pub difference: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.case, self.member, self.difference)
    }
}

/// What came of one file.
#[derive(Debug)]
pub struct Report {
    pub file: String,
    pub cases: usize,
    pub passed: usize,
    pub failures: Vec<Failure>,
}

impl Report {
    fn new(file: &str) -> Self {
        Self { file: file.to_owned(), cases: 0, passed: 0, failures: vec![] }
    }

    /// The number of checks made.
    pub fn checks(&self) -> usize {
        self.passed + self.failures.len()
    }

    fn fail(&mut self, case: &str, member: &str, difference: String) {
        self.failures.push(Failure { case: case.to_owned(), member: member.to_owned(), difference });
    }
}

/// Runs every `*.json` file that lies directly in a directory, by name.
///
/// # Errors
/// A message when the directory cannot be read or holds no such file.
pub fn run_directory(directory: &Path) -> Result<Vec<Report>, String> {
    let unreadable = |error| format!("{}: {error}", directory.display());
    let mut paths = vec![];
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "json") && path.is_file() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(format!("{}: no vectors here", directory.display()));
    }
    paths.sort();
    Ok(paths.iter().map(|path| run_file(path)).collect())
}

fn run_file(path: &Path) -> Report {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let parsed = fs::read(path)
        .map_err(|error| error.to_string())
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
    match parsed {
        Ok(value) => run_value(&name, &value),
        Err(error) => {
            let mut report = Report::new(&name);
            report.fail("-", "-", format!("expected a JSON file, got {error}"));
            report
        }
    }
}

/// Where a case stands in its file.
pub struct Place<'v> {
    /// The whole file.
    pub file: &'v Value,
    /// The member of the section, for sections that are objects of lists; else empty.
    pub group: &'v str,
    /// The index in its list.
    pub index: usize,
}

type Section = fn(&mut Case<'_>, &Place<'_>) -> case::Outcome;

/// Runs one file's content.
pub fn run_value(file: &str, content: &Value) -> Report {
    let mut report = Report::new(file);
    let Some(object) = content.as_object() else {
        report.fail("-", "-", "expected an object, got something else".to_owned());
        return report;
    };
    for (member, value) in [("schema", Some(SCHEMA)), ("topic", None)] {
        let got = object.get(member).and_then(Value::as_str);
        if got.is_none() || value.is_some_and(|value| Some(value) != got) {
            let expected = value.unwrap_or("a string");
            report.fail("-", member, format!("expected {expected}, got {:?}", object.get(member)));
            return report;
        }
    }
    let sections: &[(&str, Section)] = match object.get("topic").and_then(Value::as_str).unwrap_or("") {
        "registry" => registry::SECTIONS,
        "words" => words::SECTIONS,
        "canonical_encode" => &[("cases", encode::case)],
        "grouped_decode" => &[("valid", payloads::grouped_valid), ("invalid", payloads::grouped_invalid)],
        "nvfp4" => &[("valid", nvfp4::valid), ("invalid", nvfp4::invalid)],
        "fp8_row" => &[("valid", payloads::fp8_valid), ("invalid", payloads::fp8_invalid)],
        "direct" => &[("valid", payloads::direct_valid), ("invalid", payloads::direct_invalid)],
        "geometry" => &[("cases", geometry::case)],
        "rows" => &[("parents", rows::parent), ("cases", rows::case)],
        topic => {
            report.fail("-", "topic", format!("expected a topic of the schema, got {topic}"));
            return report;
        }
    };
    for (member, section) in object {
        if ["schema", "topic", "set", "seed"].contains(&member.as_str()) {
            continue;
        }
        match sections.iter().find(|(name, _)| name == member) {
            Some((_, run)) => run_section(&mut report, content, member, section, *run),
            None => report.fail("-", member, "expected no such member, got one".to_owned()),
        }
    }
    if report.checks() == 0 {
        report.fail("-", "-", "expected at least one case, got none".to_owned());
    }
    report
}

/// Runs the entries of a section: a list, or an object of lists.
fn run_section(report: &mut Report, file: &Value, section: &str, entries: &Value, run: Section) {
    let lists: Vec<(&str, &Value)> = match entries {
        Value::Object(lists) => lists.iter().map(|(group, list)| (group.as_str(), list)).collect(),
        list => vec![("", list)],
    };
    for (group, list) in lists {
        let name = if group.is_empty() { section.to_owned() } else { format!("{section}.{group}") };
        let Value::Array(entries) = list else {
            report.fail("-", &name, "expected a list, got something else".to_owned());
            continue;
        };
        for (index, entry) in entries.iter().enumerate() {
            let place = Place { file, group, index };
            case::run(report, format!("{name}[{index}]"), entry, |case| run(case, &place));
        }
    }
}
