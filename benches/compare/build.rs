//! Notes what the program and its peers are built with, for the head of its report.

use std::{env, fs, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=CFLAGS");
    println!("cargo:rerun-if-changed=Cargo.lock");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let line = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        output.unwrap_or_default()
    };
    let set = |name: &str, value: &str| println!("cargo:rustc-env=COMPARE_{name}={value}");
    set("RUSTC", line(&variable("RUSTC"), &["--version"]).trim());
    set("RUSTFLAGS", &variable("CARGO_ENCODED_RUSTFLAGS").replace('\x1f', " "));
    set("FEATURES", &variable("CARGO_CFG_TARGET_FEATURE"));
    let cc = if variable("CC").is_empty() { "cc".to_owned() } else { variable("CC") };
    set("CC", line(&cc, &["--version"]).lines().next().unwrap_or_default());
    set("CFLAGS", &variable("CFLAGS"));
    let target = line(&cc, &["-march=native", "-Q", "--help=target"]);
    let march = target.lines().find_map(|line| line.trim().strip_prefix("-march=").map(str::trim));
    set("MARCH", march.unwrap_or_default());
    let enabled = target.lines().filter(|line| line.trim_end().ends_with("[enabled]"));
    let vectors = enabled.filter_map(|line| line.split_whitespace().next());
    let vectors = vectors.filter(|flag| flag.starts_with("-mavx") || matches!(*flag, "-mfma" | "-mf16c"));
    set("CC_FEATURES", &vectors.collect::<Vec<_>>().join(" "));
    let lock = fs::read_to_string("Cargo.lock").unwrap_or_default();
    for (name, package) in [("CANDLE", "candle-core"), ("LLAMA", "llama-cpp-sys-2")] {
        let entry = lock.split_once(&format!("name = \"{package}\"\nversion = \""));
        set(name, entry.and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default());
    }
}
