//! The files of `tests/hostile`: each gets its one line, at once, and no memory that it asks for.
//! `NINFER_UPDATE_GOLDEN=1 cargo test --test tool hostile` writes `answers.txt` anew; read the difference.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Call, folder, listing, tool};

/// Generous, for machines that are busy; the time itself is printed.
const MOST: Duration = Duration::from_secs(2);

/// Address space of the tool, in KiB; the files claim from 4 GiB on. A sanitizer reserves terabytes for itself,
/// and refuses allocations of that size by itself.
fn limit() -> &'static str {
    let sanitized = ["ASAN_OPTIONS", "TSAN_OPTIONS"].iter().any(|name| std::env::var_os(name).is_some());
    if sanitized { "unlimited" } else { "262144" }
}

fn hostile() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile")
}

/// Every hostile file by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let artifacts = paths.filter(|path| path.extension().is_some_and(|extension| extension == "ninfer"));
    artifacts
        .map(|path| (path.file_name().unwrap().to_str().unwrap().into(), fs::read(path).unwrap()))
        .collect()
}

/// Runs the tool in the folder of the files, under the limit; gives the time too.
fn limited(arguments: &[&str]) -> (Call, Duration) {
    let tool = tool(arguments);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", r#"ulimit -v "$0" && exec "$@""#, limit()])
        .arg(tool.get_program())
        .args(tool.get_args());
    let begin = Instant::now();
    let output = shell.current_dir(hostile()).output().expect("sh starts");
    (output.into(), begin.elapsed())
}

#[test]
fn hostile_files_are_what_the_script_makes() {
    let made = folder();
    let script = hostile().join("make.py");
    let status = Command::new("python3").arg(script).arg(made.path()).output();
    let output = status.expect("python3 starts; scripts/setup.sh installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (made, committed) = (files(made.path()), files(&hostile()));
    assert!(made.keys().eq(committed.keys()), "{:?}\n{:?}", made.keys(), committed.keys());
    for (name, bytes) in made {
        assert!(committed[&name] == bytes, "{name} is not what make.py makes");
    }
}

#[test]
fn hostile_files_get_one_clear_line() {
    let target = folder();
    let out = target.path().join("out").to_str().unwrap().to_string();
    let (mut answers, mut slowest) = (String::new(), (Duration::ZERO, String::new()));
    let files = files(&hostile());
    for name in files.keys() {
        let legal = name.starts_with("legal");
        let commands: [&[&str]; 4] = [
            &["verify", name],
            &["inspect", name],
            &["inspect", "--json", name],
            &["unpack", name, "-o", &out],
        ];
        for arguments in commands {
            let (call, time) = limited(arguments);
            assert!(time < MOST, "{arguments:?} took {time:?}");
            slowest = slowest.max((time, arguments.join(" ")));
            if legal && arguments[0] != "verify" {
                assert_eq!(call.code, Some(0), "{arguments:?}: {}", call.stderr);
                continue;
            }
            let (code, answer, other) = match legal {
                true => (0, call.stdout, call.stderr),
                false => (1, call.stderr, call.stdout),
            };
            assert_eq!((call.code, other.as_str()), (Some(code), ""), "{arguments:?}: {answer}");
            assert!(answer.ends_with('\n') && answer.lines().count() == 1, "{arguments:?}: {answer}");
            assert!(answer.trim_end().chars().all(|letter| !letter.is_control()), "{arguments:?}: {answer}");
            match arguments[0] {
                "verify" => answers += &answer,
                _ => assert!(answers.ends_with(&answer), "{arguments:?}: {answer}"),
            }
        }
        if legal {
            fs::remove_file(&out).unwrap();
        }
        assert!(listing(&target).is_empty(), "{name}: {:?}", listing(&target));
    }
    eprintln!("{} files; the slowest call took {:?}: {}", files.len(), slowest.0, slowest.1);
    let golden = hostile().join("answers.txt");
    if std::env::var_os("NINFER_UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &answers).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    for (answer, expected) in answers.lines().zip(expected.lines()) {
        assert_eq!(answer, expected);
    }
    assert_eq!(answers.lines().count(), expected.lines().count());
}
