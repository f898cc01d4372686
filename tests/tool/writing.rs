//! What is written, and what is left when nothing is: folders, names, stderr, and the limits of the system.

use std::fs::{self, File};
use std::process::Command;

use safetensors::Dtype;

use crate::support::{
    Call, checkpoint, f32_bytes, fail, folder, generate, listing, path, succeed, tool, tool_path,
};

#[test]
fn folders_made_for_an_output_go_away_after_a_refusal() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "there/a/b/out.ninfer"));
    fs::create_dir(folder.path().join("there")).unwrap();
    checkpoint(&input, &[("t", Dtype::F32, &[1, 2], &f32_bytes(&[1.0, f32::NAN]))]);
    assert!(fail(1, &["pack", &input, "-o", &out]).contains("is not finite"));
    assert!(fs::read_dir(folder.path().join("there")).unwrap().next().is_none(), "a folder is left");

    checkpoint(&input, &[("t", Dtype::F32, &[1, 2], &f32_bytes(&[1.0, 2.0]))]);
    succeed(&["pack", &input, "-o", &out, "-q"]);
    succeed(&["verify", &out]);
    let back = path(&folder, "c/d/back.safetensors");
    succeed(&["unpack", &out, "-o", &back, "-q"]);
    assert!(fs::exists(back).unwrap());
    let page = path(&folder, "e/page.html");
    succeed(&["report", &format!("{out}.report.json"), "-o", &page, "-q"]);
    assert_eq!(listing(&folder), ["c", "e", "in.safetensors", "there"]);
}

#[test]
fn no_temporary_name_is_shown() {
    let folder = folder();
    let input = path(&folder, "in.safetensors");
    generate(&input, 1, 1, 1024);
    for out in ["/proc/out.ninfer", "/proc/self/out.ninfer", "/sys/out.ninfer"] {
        let message = fail(3, &["pack", &input, "-o", out]);
        assert!(message.contains(&format!("cannot write {out}: ")), "{message}");
        assert!(!message.contains(".ninfer-"), "{message}");
    }
}

#[test]
fn a_stderr_that_takes_nothing_changes_no_exit_code() {
    let folder = folder();
    let input = path(&folder, "in.safetensors");
    generate(&input, 1, 1, 1024);
    for (code, arguments) in [
        (3, &["verify", "/none/such"][..]),
        (2, &["pack", &input]),
        (1, &["verify", &input]),
        (2, &["pack", "--none"]),
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert_eq!(tool(arguments).stderr(full).status().unwrap().code(), Some(code), "{arguments:?}, full");
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(
            tool(arguments).stderr(closed).status().unwrap().code(),
            Some(code),
            "{arguments:?}, closed"
        );
    }
}

/// Runs the tool in a shell that sets a limit first.
fn limited(limit: &str, arguments: &[&str]) -> Call {
    let script = format!(r#"{limit}; exec "$0" "$@""#);
    Command::new("sh").args(["-c", &script]).arg(tool_path()).args(arguments).output().unwrap().into()
}

#[test]
fn a_thread_that_cannot_start_is_no_usage_error() {
    let folder = folder();
    let input = path(&folder, "in.safetensors");
    generate(&input, 1, 1, 1024);
    // A stack of more addresses than there are.
    let arguments = ["pack", &input, "-o", "x", "--threads", "2"];
    let failed: Call =
        tool(&arguments).env("RUST_MIN_STACK", (1u64 << 50).to_string()).output().unwrap().into();
    assert_eq!(failed.code, Some(3), "{}", failed.stderr);
    assert!(
        failed.stderr.contains("cannot start the threads: ") && failed.stderr.contains("--threads"),
        "{failed:?}"
    );
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "new/out.ninfer"));
    generate(&input, 1, 1024, 1024);
    let failed = limited("ulimit -f 64", &["pack", &input, "-o", &out]);
    assert_eq!(failed.code, Some(3), "{failed:?}");
    assert!(failed.stderr.contains("File too large") && failed.stderr.contains(&out), "{}", failed.stderr);
    assert_eq!(listing(&folder), ["in.safetensors"]);

    succeed(&["pack", &input, "-o", &out, "-q"]);
    let report = format!("{out}.report.json");
    let back = path(&folder, "back");
    for arguments in [["unpack", &out, "-o", &back], ["report", &report, "-o", &back]] {
        let failed = limited("ulimit -f 1", &arguments);
        assert_eq!(failed.code, Some(3), "{failed:?}");
        assert!(failed.stderr.contains("File too large"), "{}", failed.stderr);
    }
    assert_eq!(listing(&folder), ["in.safetensors", "new"]);
}

#[test]
fn the_bytes_are_on_the_disk_before_the_name_is() {
    let folder = folder();
    let (input, out, log) =
        (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"), path(&folder, "log"));
    generate(&input, 1, 1, 1024);
    let traced = Command::new("strace")
        .args(["-f", "-qq", "-o", &log, "-e", "trace=fsync,linkat,rename,renameat,renameat2"])
        .arg(tool_path())
        .args(["pack", &input, "-o", &out, "-q"])
        .status();
    if !traced.as_ref().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: the order of fsync and link: no strace that works here ({traced:?})");
        return;
    }
    let log = fs::read_to_string(&log).unwrap();
    let calls: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.split('(').next())
        .filter(|call| *call != "???") // a thread that the program's end overtook
        .map(|call| if call.starts_with("rename") { "rename" } else { call })
        .collect();
    assert_eq!(calls, ["fsync", "fsync", "linkat", "fsync", "linkat", "fsync"], "{log}");
}

/// Runs the tool under strace, which makes a system call fail; `None`, with a word on stderr, where no strace
/// works.
fn injected(what: &str, fault: &str, arguments: &[&str]) -> Option<Call> {
    let strace = |arguments: &[&str]| {
        let log = ["-f", "-qqq", "-o", "/dev/null", "-e", "trace=fallocate,linkat", "-e", fault];
        Command::new("strace").args(log).args(arguments).output()
    };
    let tool = tool_path();
    let tool = tool.to_str().unwrap();
    let works = strace(&[tool, "--version"]);
    if !works.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: {what}: no strace that works here ({works:?})");
        return None;
    }
    Some(strace(&[&[tool], arguments].concat()).unwrap().into())
}

#[test]
fn a_signal_while_room_is_reserved_is_no_error() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    generate(&input, 1, 1, 1024);
    let arguments = ["pack", &input, "-o", &out, "-q"];
    let what = "a signal while room is reserved";
    // One that does not stop the work, twice; then one that does.
    let Some(call) = injected(what, "inject=fallocate:error=EINTR:when=1..2", &arguments) else { return };
    assert_eq!((call.code, call.stderr.as_str()), (Some(0), ""));
    succeed(&["verify", &out, "-q"]);
    for name in ["out.ninfer", "out.ninfer.report.json"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    let call = injected(what, "inject=fallocate:error=EINTR:signal=INT:when=1", &arguments).unwrap();
    assert_eq!(call.code, Some(130), "{call:?}");
    assert!(call.stderr.contains("interrupted; nothing was left behind"), "{call:?}");
    assert_eq!(listing(&folder), ["in.safetensors"]);
}

#[test]
fn a_report_without_a_name_leaves_an_artifact_that_is_told() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    generate(&input, 1, 1, 1024);
    let arguments = ["pack", &input, "-o", &out, "-q"];
    let fault = |which| format!("inject=linkat:error=EACCES:when={which}");
    let what = "a file that cannot have its name";
    let Some(call) = injected(what, &fault(1), &arguments) else { return };
    assert_eq!(call.code, Some(3), "{call:?}");
    assert!(
        call.stderr.ends_with(&format!("cannot write {out}: Permission denied (os error 13)\n")),
        "{call:?}"
    );
    assert_eq!(listing(&folder), ["in.safetensors"]);

    let call = injected(what, &fault(2), &arguments).unwrap();
    assert_eq!(call.code, Some(3), "{call:?}");
    let said =
        format!("cannot write {out}.report.json: Permission denied (os error 13); {out} is in place\n");
    assert!(call.stderr.ends_with(&said), "{call:?}");
    assert_eq!(listing(&folder), ["in.safetensors", "out.ninfer"]);
    succeed(&["verify", &out, "-q"]);
}
