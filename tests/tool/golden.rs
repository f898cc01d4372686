//! What every subcommand prints, word for word. `NINFER_UPDATE_GOLDEN=1 cargo test --test tool` writes the files
//! in `golden/` anew; read the difference before you commit it.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::{Call, folder, tool};

/// A folder with the bundled checkpoints, both packed.
fn packed() -> TempDir {
    let folder = folder();
    for name in ["minilm-slice", "minilm-nvfp4-fp8"] {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name);
        let input = format!("{name}.safetensors");
        fs::copy(data.with_extension("safetensors"), folder.path().join(&input)).unwrap();
        let out = format!("{name}.ninfer");
        let assign: &[&str] = if name == "minilm-slice" { &["--assign", "*.position_ids=I32"] } else { &[] };
        run(&folder, &[&["pack", &input, "-o", &out, "-q"][..], assign].concat());
    }
    folder
}

fn run(folder: &TempDir, arguments: &[&str]) -> Call {
    tool(arguments).current_dir(folder.path()).output().unwrap().into()
}

/// Compares with `golden/NAME.txt`.
fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tool/golden").join(name);
    if std::env::var_os("NINFER_UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{name} differs; it would be\n{text}");
}

fn assert_call(folder: &TempDir, name: &str, arguments: &[&str]) {
    let Call { code, stdout, stderr } = run(folder, arguments);
    let text = format!("$ ninfer {}\n{stdout}{stderr}exit code {}\n", arguments.join(" "), code.unwrap());
    assert_golden(name, &text);
}

#[test]
fn every_subcommand() {
    let folder = packed();
    for (name, arguments) in [
        ("pack.txt", &["pack", "minilm-slice.safetensors", "-o", "a.ninfer", "--skip", "*.position_ids"][..]),
        ("pack-ready-made.txt", &["pack", "minilm-nvfp4-fp8.safetensors", "-o", "b.ninfer"]),
        ("pack-refused.txt", &["pack", "minilm-slice.safetensors", "-o", "c.ninfer"]),
        (
            "pack-dry-run.txt",
            &["pack", ".", "--dry-run", "--skip", "*.position_ids", "--default", "W8G32_F16S"],
        ),
        ("inspect.txt", &["inspect", "minilm-slice.ninfer"]),
        ("inspect-tree.txt", &["inspect", "minilm-slice.ninfer", "--tree"]),
        ("inspect-json.txt", &["inspect", "minilm-nvfp4-fp8.ninfer", "--json"]),
        ("verify.txt", &["verify", "minilm-slice.ninfer"]),
        ("unpack.txt", &["unpack", "minilm-slice.ninfer", "-o", "a.safetensors", "--type", "bf16"]),
        ("unpack-words.txt", &["unpack", "minilm-nvfp4-fp8.ninfer", "-o", "b.safetensors", "--words"]),
        ("diff.txt", &["diff", "minilm-slice.ninfer", "a.ninfer"]),
        ("diff-same.txt", &["diff", "minilm-nvfp4-fp8.ninfer", "b.ninfer"]),
        ("report.txt", &["report", "minilm-slice.ninfer.report.json", "-o", "a.html"]),
        ("plan.txt", &["plan", "Q5G64_F16S", "2x130"]),
        ("plan-nvfp4.txt", &["plan", "NVFP4", "7168x5120"]),
        ("plan-refused.txt", &["plan", "NVFP4", "100x64"]),
        ("plan-overflow.txt", &["plan", "FP32", "4294967296x4294967296"]),
    ] {
        assert_call(&folder, name, arguments);
    }
    let report = fs::read_to_string(folder.path().join("minilm-slice.ninfer.report.json")).unwrap();
    assert_golden("report.json", &report);
}

#[test]
fn every_help_text() {
    let folder = folder();
    assert_call(&folder, "help.txt", &["--help"]);
    for subcommand in
        ["pack", "report", "inspect", "verify", "unpack", "diff", "plan", "bench", "completions"]
    {
        let call = run(&folder, &[subcommand, "--help"]);
        assert!(call.stdout.contains("Example"), "{subcommand} shows no example");
        assert_call(&folder, &format!("help-{subcommand}.txt"), &[subcommand, "--help"]);
    }
}

#[test]
fn bench_has_a_line_for_each_tensor() {
    let folder = packed();
    let call = run(&folder, &["bench", "minilm-nvfp4-fp8.ninfer"]);
    assert_eq!((call.code, call.stderr.as_str()), (Some(0), ""));
    let lines: Vec<Vec<_>> = call.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..3], ["tensor", "format", "weights"]);
    assert_eq!(lines[1][..3], ["encoder.layer.1.attention.self.query.weight", "NVFP4", "147456"]);
    assert_eq!(lines.len(), 6);
    for line in &lines[1..5] {
        let rates: Vec<f64> = line[3..].iter().map(|cell| cell.parse().unwrap()).collect();
        assert!(rates.len() == 4 && rates.iter().all(|&rate| rate > 0.0), "{line:?}");
    }
}

#[test]
fn completions_know_the_subcommands() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let call = run(&folder, &["completions", shell]);
        assert_eq!(call.code, Some(0));
        for word in ["pack", "unpack", "dry-run"] {
            assert!(call.stdout.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn quiet_is_quiet_and_no_color_is_plain() {
    let folder = packed();
    for arguments in [
        &["pack", "minilm-nvfp4-fp8.safetensors", "-o", "b.ninfer", "--quiet"][..],
        &["verify", "minilm-slice.ninfer", "--quiet"],
        &["unpack", "minilm-slice.ninfer", "-o", "a.safetensors", "-q"],
        &["diff", "minilm-slice.ninfer", "minilm-slice.ninfer", "-q"],
        &["report", "minilm-slice.ninfer.report.json", "-o", "a.html", "-q"],
    ] {
        let call = run(&folder, arguments);
        assert_eq!(
            (call.code, call.stdout.as_str(), call.stderr.as_str()),
            (Some(0), "", ""),
            "{arguments:?}"
        );
    }
    let coloured = |variable: &str| {
        let mut command = tool(&["verify", "none.ninfer"]);
        String::from_utf8(command.env(variable, "1").output().unwrap().stderr).unwrap()
    };
    assert!(coloured("CLICOLOR_FORCE").contains("\x1b["));
    assert!(!coloured("NO_COLOR").contains('\x1b'));
}
