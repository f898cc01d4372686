//! All golden vectors through the C interface, with as many cases as the Rust runner finds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::runner;
use crate::support::{Build, archive, have, program, scratch, text};
use ninfer_codec_ffi_tests::{root, script};

fn vectors() -> PathBuf {
    root().join("tests/vectors")
}

fn script_file(text: &str, name: &str) -> PathBuf {
    let path = scratch("vectors").join(name);
    fs::write(&path, text).expect("a script");
    path
}

fn script_of_all() -> &'static str {
    static SCRIPT: OnceLock<String> = OnceLock::new();
    SCRIPT.get_or_init(|| script::of_directory(&vectors()))
}

/// Runs a program on a script: whether it ended well, and what it printed.
fn play(command: &mut Command, script: &Path) -> (bool, String) {
    let output = command
        .stdin(fs::File::open(script).expect("the script"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .expect("the program runs");
    (output.status.success(), text(&output))
}

/// Compares the counts that a program printed with those of the Rust runner.
fn check_counts(printed: &str) {
    let reports = runner::run_directory(&vectors()).expect("vectors");
    let mut files = 0;
    for report in &reports {
        assert!(report.failures.is_empty(), "the Rust runner fails: {:?}", report.failures);
        let line = printed
            .lines()
            .find(|line| line.split(' ').next() == Some(&report.file))
            .unwrap_or_else(|| panic!("no line for {}:\n{printed}", report.file));
        let counts: Vec<usize> =
            line.split(' ').skip(1).map(|count| count.parse().expect("a count")).collect();
        assert_eq!(counts[0], report.cases, "cases of {}", report.file);
        assert!(counts[1] >= report.cases, "a check for every case of {}: {line}", report.file);
        assert_eq!(counts[2], 0, "{printed}");
        files += 1;
    }
    assert_eq!(files, printed.lines().count(), "{printed}");
}

#[test]
fn every_vector_holds() {
    if !have(&["gcc"]) {
        return;
    }
    let program = program("gcc", &["-std=c11", "-O1"], "vectors.c", &archive(Build::Plain), "vectors");
    let script = script_file(script_of_all(), "all.txt");
    let (good, printed) = play(&mut Command::new(&program), &script);
    assert!(good, "{printed}");
    check_counts(&printed);

    // Of each operation, a line with another expectation must be found out.
    let mut operations = std::collections::BTreeMap::new();
    let mut file = "";
    for line in script_of_all().lines() {
        let operation = line.split(' ').next().expect("a word");
        if operation == "file" {
            file = line;
        } else if let Some(altered) = altered(operation, line) {
            operations.entry(operation).or_insert((file, altered));
        }
    }
    assert_eq!(operations.len(), 20, "{:?}", operations.keys());
    for (operation, (file, line)) in operations {
        let script = script_file(&format!("{file}\ncase altered\n{line}\n"), "altered.txt");
        let (good, printed) = play(&mut Command::new(&program), &script);
        assert!(!good && printed.contains(" altered "), "{operation}: {printed}");
    }
}

/// The line of an operation with another expectation, if its last word that is looked at can be told.
fn altered(operation: &str, line: &str) -> Option<String> {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let from_last = match operation {
        "case" => return None,
        "validate" | "quantize_fault" => 9, // the status
        _ => 1,
    };
    let at = words.len().checked_sub(from_last)?;
    let word = &mut words[at];
    let counts_windows = operation.ends_with("sha256") && !word.starts_with('x');
    if ["-", "x"].contains(&word.as_str()) || counts_windows {
        return None;
    }
    let other = if word.ends_with('1') { '2' } else { '1' };
    word.pop();
    word.push(other);
    Some(words.join(" "))
}

#[test]
fn every_vector_holds_under_address_sanitizer() {
    if !have(&["clang-19"]) {
        return;
    }
    let flags = ["-std=c11", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let archive = archive(Build::Sanitizer("address"));
    let program = program("clang-19", &flags, "vectors.c", &archive, "vectors-asan");
    let script = script_file(script_of_all(), "all-asan.txt");
    let (good, printed) = play(&mut Command::new(&program), &script);
    assert!(good, "{printed}");
    check_counts(&printed);
}

#[test]
fn every_vector_holds_under_valgrind() {
    if !have(&["gcc", "valgrind"]) {
        return;
    }
    let flags = ["-std=c11", "-g", "-O1"];
    let program = program("gcc", &flags, "vectors.c", &archive(Build::Plain), "vectors-valgrind");
    let script = script_file(script_of_all(), "all-valgrind.txt");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=9"]).arg(&program);
    let (good, printed) = play(&mut valgrind, &script);
    assert!(good, "{printed}");
    check_counts(&printed);
}
