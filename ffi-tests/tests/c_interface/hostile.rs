//! Arguments that must be refused, through the C interface: plain, under sanitizers, under valgrind; and threads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::support::{Build, archive, have, header_functions, program, run, succeed, text};
use ninfer_codec_ffi_tests::header_path;

const SANITIZED: [&str; 5] =
    ["-std=c11", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Every number that the header gives a status.
fn statuses() -> BTreeMap<String, u32> {
    let header = fs::read_to_string(header_path()).expect("the header");
    header
        .lines()
        .filter_map(|line| line.strip_prefix("#define NINFER_CODEC_STATUS_"))
        .map(|line| {
            let (name, number) = line.split_once(' ').expect("a number");
            (name.to_owned(), number.parse().expect("a number"))
        })
        .collect()
}

/// The statuses that each function's comment lists.
fn listed() -> BTreeMap<String, BTreeSet<u32>> {
    let header = fs::read_to_string(header_path()).expect("the header");
    let numbers = statuses();
    let mut listed = BTreeMap::new();
    let mut comment = String::new();
    for line in header.lines() {
        if let Some(text) = line.strip_prefix("//") {
            comment.push_str(text);
            comment.push(' ');
            continue;
        }
        let name = line.split_once('(').and_then(|(before, _)| before.rsplit([' ', '*']).next());
        if let Some(name) = name.filter(|name| name.starts_with("ninfer_codec_"))
            && let Some((_, list)) = comment.split_once("Status: ")
        {
            let words = list.split(|c: char| !c.is_ascii_uppercase() && c != '_');
            listed.insert(name.to_owned(), words.filter_map(|word| numbers.get(word).copied()).collect());
        }
        comment.clear();
    }
    listed
}

/// Looks at what the program printed: no failure, every function of the header that can refuse, no status that
/// the header does not list.
fn check_printed(printed: &str) {
    assert!(!printed.contains("FAIL"), "{printed}");
    let listed = listed();
    let mut seen: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for line in printed.lines().filter_map(|line| line.strip_prefix("seen ")) {
        let (function, status) = line.split_once(' ').expect("a status");
        seen.entry(function).or_default().insert(status.parse().expect("a number"));
    }
    for (function, statuses) in &seen {
        let allowed = listed.get(*function).unwrap_or_else(|| panic!("{function} lists no statuses"));
        let others: Vec<_> = statuses.difference(allowed).collect();
        assert!(others.is_empty(), "{function} returned {others:?}, which its comment does not list");
    }
    let tested: Vec<_> = seen.keys().map(|name| (*name).to_owned()).collect();
    let refusing: Vec<_> = header_functions().into_iter().filter(|name| listed.contains_key(name)).collect();
    assert_eq!(tested, refusing, "every function that lists statuses is called");
    let last = printed.lines().last().expect("a last line");
    let checks: u64 = last.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a count");
    assert!(checks > 100_000, "{last}");
}

#[test]
fn hostile_arguments_are_refused() {
    if !have(&["gcc"]) {
        return;
    }
    let program = program("gcc", &["-std=c11", "-O1"], "hostile.c", &archive(Build::Plain), "hostile");
    check_printed(&succeed(&mut Command::new(program)));
}

#[test]
fn hostile_arguments_under_address_sanitizer() {
    if !have(&["clang-19"]) {
        return;
    }
    let archive = archive(Build::Sanitizer("address"));
    let program = program("clang-19", &SANITIZED, "hostile.c", &archive, "hostile-asan");
    check_printed(&succeed(&mut Command::new(&program)));
    // What the library itself does is seen.
    let lie = run(Command::new(&program).arg("lie"));
    assert!(!lie.status.success(), "{}", text(&lie));
    let all = String::from_utf8_lossy(&lie.stderr).into_owned();
    assert!(all.contains("heap-buffer-overflow") && all.contains("ninfer_codec"), "{all}");
}

#[test]
fn hostile_arguments_under_valgrind() {
    if !have(&["gcc", "valgrind"]) {
        return;
    }
    let archive = archive(Build::Plain);
    let program = program("gcc", &["-std=c11", "-g", "-O1"], "hostile.c", &archive, "hostile-valgrind");
    let valgrind = |arguments: &[&str]| {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--error-exitcode=9"]).arg(&program).args(arguments);
        command
    };
    check_printed(&succeed(&mut valgrind(&[])));
    let lie = run(&mut valgrind(&["lie"]));
    assert_eq!(lie.status.code(), Some(9), "{}", text(&lie));
    assert!(text(&lie).contains("Invalid write"), "{}", text(&lie));
}

#[test]
fn two_threads_on_disjoint_ranges() {
    if !have(&["clang-19"]) {
        return;
    }
    let archive = archive(Build::Sanitizer("thread"));
    let flags = ["-std=c11", "-g", "-O1", "-fsanitize=thread"];
    let program = program("clang-19", &flags, "threads.c", &archive, "threads");
    assert_eq!(succeed(&mut Command::new(&program)), "the same bytes\n");
    // Ranges that are not disjoint are a race, and it is seen inside the library.
    let race = run(Command::new(&program).arg("race"));
    assert!(!race.status.success(), "{}", text(&race));
    let all = String::from_utf8_lossy(&race.stderr).into_owned();
    assert!(all.contains("data race") && all.contains("ninfer_codec_tensor_quantize"), "{all}");
}
