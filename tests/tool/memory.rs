//! How much anonymous memory the tool takes (RssAnon); the mapped input and output are the system's to drop.

use std::fs;
use std::process::Stdio;

use tempfile::TempDir;

use crate::support::{call, folder, generate, path, succeed, tool};

/// Runs the tool to its end, which is a success; gives the largest RssAnon seen, in KiB.
fn peak(arguments: &[&str]) -> u64 {
    peak_of(0, arguments)
}

/// As [`peak`], of a call with this exit code.
fn peak_of(code: i32, arguments: &[&str]) -> u64 {
    // AddressSanitizer, where the tool is built with it, keeps what is freed for a while: not here.
    let mut child = tool(arguments)
        .env("ASAN_OPTIONS", "detect_leaks=0:quarantine_size_mb=1")
        .stdout(Stdio::null())
        .stderr(if code == 0 { Stdio::inherit() } else { Stdio::null() })
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0");
        peak = peak.max(line.split_whitespace().next().unwrap().parse().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert_eq!(child.wait().unwrap().code(), Some(code), "{arguments:?}");
    peak
}

/// 64 MiB, plus the largest block of rows: 256 KiB of F32 here.
const MOST_KIB: u64 = 64 * 1024 + 256;

fn assert_small(what: &str, kib: u64) {
    assert!(kib > 0, "{what}: nothing was seen");
    assert!(kib < MOST_KIB, "{what}: RssAnon reached {kib} KiB");
    eprintln!("peak RssAnon, {what}: {kib} KiB");
}

fn pack(folder: &TempDir, tensors: usize, rows: usize, columns: usize) -> (String, u64) {
    let (input, out) = (path(folder, "in.safetensors"), path(folder, "out.ninfer"));
    generate(&input, tensors, rows, columns);
    let peak = peak(&["pack", &input, "-o", &out, "-q"]);
    succeed(&["verify", &out, "-q"]);
    (out, peak)
}

#[test]
fn memory_stays_small() {
    assert_small("packing 200 MiB", pack(&folder(), 4, 12_800, 1024).1);
}

#[test]
fn one_long_row_takes_no_more() {
    let folder = folder();
    let (out, packing) = pack(&folder, 1, 1, 50 << 20); // 200 MiB
    assert_small("packing one row of 200 MiB", packing);
    let back = path(&folder, "back.safetensors");
    assert_small("unpacking it", peak(&["unpack", &out, "-o", &back, "-q"]));
    assert_small("decoding it", peak(&["bench", &out]));
    let other = path(&folder, "other.ninfer");
    let mut bytes = fs::read(&out).unwrap();
    let middle = bytes.len() / 2; // two codes
    bytes[middle] = if bytes[middle] == 0x11 { 0x12 } else { 0x11 };
    fs::write(&other, bytes).unwrap();
    assert_small("comparing it", peak_of(1, &["diff", &out, &other]));
    assert!(call(&["diff", &out, &other]).stdout.contains(" of 52,428,800 differ, by at most "));
}

#[test]
#[ignore = "on demand: writes 3 GB; run with --ignored, in release"]
fn memory_stays_small_on_three_gigabytes() {
    assert_small("packing 3 GB", pack(&folder(), 12, 64_000, 1024).1);
}

#[test]
#[ignore = "on demand: writes 2 GB; run with --ignored, in release"]
fn one_row_of_two_gigabytes_takes_no_more() {
    assert_small("packing one row of 2 GB", pack(&folder(), 1, 1, 512 << 20).1);
}
