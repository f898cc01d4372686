//! What large inputs, many threads, signals and full disks do to a conversion.

use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use safetensors::Dtype;

use crate::support::{
    Call, call, checkpoint, f32_bytes, fail, folder, generate, listing, path, start, succeed, tool_path,
};

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let folder = folder();
    let input = path(&folder, "in.safetensors");
    generate(&input, 3, 1500, 1024);
    let pack = |threads: &str| {
        let out = path(&folder, "out.ninfer");
        succeed(&["pack", &input, "-o", &out, "--threads", threads, "--assign", "*.001.*=Q6G64_F16S", "-q"]);
        let report = fs::read(format!("{out}.report.json")).unwrap();
        (fs::read(out).unwrap(), report)
    };
    let one = pack("1");
    for threads in ["2", "3", "7"] {
        assert!(pack(threads) == one, "{threads} threads give other bytes than one");
    }
    assert!(call(&["pack", &input, "-o", "x", "--threads", "0"]).code == Some(2));
}

#[test]
fn a_kill_at_any_moment_leaves_nothing_or_everything() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    generate(&input, 8, 1024, 1024);
    let arguments = ["pack", &input, "-o", &out, "-q"];
    let begin = Instant::now();
    succeed(&arguments);
    let whole = begin.elapsed();
    let complete = fs::read(&out).unwrap();
    let mut state = 0x9e37_79b9u64;
    let (mut cut_short, mut stopped) = (0, 0);
    for round in 0..20u32 {
        // Half of the rounds replace a file that is there.
        let before = round % 2 == 1;
        for name in listing(&folder).iter().filter(|name| *name != "in.safetensors") {
            fs::remove_file(folder.path().join(name)).unwrap();
        }
        if before {
            fs::write(&out, b"what was there before").unwrap();
        }
        let signal = [Signal::KILL, Signal::INT, Signal::TERM, Signal::HUP][round as usize % 4];
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = whole.mul_f64((state >> 33) as f64 / (1u64 << 31) as f64);
        let mut child = start(&arguments);
        std::thread::sleep(moment);
        let _ = kill_process(Pid::from_child(&child), signal);
        let status = child.wait().unwrap();
        let found = fs::read(&out).ok();
        let context = format!("round {round}, {signal:?} after {moment:?}, {status}");
        if status.success() {
            assert!(found.as_deref() == Some(&complete[..]), "{context}");
            continue;
        }
        cut_short += 1;
        if found.as_deref() == Some(&complete[..]) {
            continue; // SIGKILL after the artifact got its name
        }
        match before {
            true => assert!(found.as_deref() == Some(b"what was there before"), "{context}"),
            false => assert!(found.is_none(), "{context}"),
        }
        let left: Vec<_> = listing(&folder);
        assert_eq!(left.len(), 1 + usize::from(before), "{context}: {left:?}");
        // A signal that comes before the tool can catch it ends it at once.
        assert!(matches!(status.code(), Some(130) | None), "{context}");
        stopped += u32::from(status.code() == Some(130));
    }
    assert!(stopped >= 3, "only {stopped} conversions stopped by themselves");
    assert!(cut_short >= 5, "only {cut_short} of 20 conversions were cut short");
}

#[test]
fn a_full_disk_leaves_nothing() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    generate(&input, 1, 1024, 1024);
    // A limit on the size of files, in blocks of 512 or 1024 bytes, stands for a full disk.
    let script = r#"ulimit -f 64; exec "$0" pack "$1" -o "$2""#;
    let output =
        Command::new("sh").args(["-c", script]).arg(tool_path()).args([&input, &out]).output().unwrap();
    let limited = Call::from(output);
    assert_eq!(limited.code, Some(3), "{}", limited.stderr);
    assert!(
        limited.stderr.contains(&out) && limited.stderr.contains("bytes are needed there"),
        "{}",
        limited.stderr
    );
    assert_eq!(listing(&folder), ["in.safetensors"]);

    // A real one: a file system of its own, where this user may mount one.
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = r#"mount -t tmpfs -o size=200k tmpfs "$3" || exit 99; echo mounted; "$0" pack "$1" -o "$2"; code=$?; ls -A "$3" >&2; exit $code"#;
    let small = disk.join("out.ninfer");
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .arg(tool_path())
        .args([&input, small.to_str().unwrap(), disk.to_str().unwrap()])
        .output();
    match output.map(Call::from) {
        Ok(full) if full.stdout.starts_with("mounted\n") => {
            assert_eq!(full.code, Some(3), "{}", full.stderr);
            assert!(full.stderr.contains("No space left on device"), "{}", full.stderr);
            assert_eq!(full.stderr.lines().count(), 1, "something was left: {}", full.stderr);
        }
        other => eprintln!("SKIPPED: a full tmpfs: this user may not mount one here ({other:?})"),
    }
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let folder = folder();
    let input = path(&folder, "in.safetensors");
    generate(&input, 1, 1, 1024);
    let long = |letters| path(&folder, &"x".repeat(letters));
    for (out, part) in [
        (folder.path().to_str().unwrap(), "it is a folder"),
        ("/proc/none/out", "/proc/none/out"),
        (&path(&folder, "new/."), "it names a folder"),
        (&path(&folder, "new/"), "it names a folder"),
        (&long(256), "File name too long"),
        // Too long for the report only.
        (&long(250), ".report.json: File name too long"),
    ] {
        let failed = call(&["pack", &input, "-o", out]);
        assert_eq!(failed.code, Some(3));
        assert!(failed.stderr.contains(part), "{}", failed.stderr);
        assert_eq!(listing(&folder), ["in.safetensors"]);
    }
}

#[test]
fn an_output_takes_the_place_of_nothing_that_is_read() {
    let folder = folder();
    let [input, out, recipe, resource] =
        ["in.safetensors", "out.ninfer", "recipe.toml", "out.ninfer.report.json"]
            .map(|name| path(&folder, name));
    generate(&input, 1, 1, 1024);
    fs::write(&recipe, "default = \"Q5G64_F16S\"\n").unwrap();
    fs::write(&resource, "{}").unwrap();
    let named = format!("notes={resource}");
    for arguments in [
        &["pack", &input, "-o", &input][..],
        &["pack", &input, "-o", &recipe, "--recipe", &recipe],
        &["pack", &input, "-o", &out, "--resource", &named],
        &["report", &resource, "-o", &resource],
    ] {
        let before = fs::read(arguments[1]).unwrap();
        assert_ne!(call(arguments).code, Some(0), "{arguments:?}");
        assert_eq!(fs::read(arguments[1]).unwrap(), before);
    }
    assert!(fail(2, &["pack", &input, "-o", &input]).contains("name another output"));
    assert_eq!(fs::read_to_string(&resource).unwrap(), "{}");

    let other = path(&folder, "other.ninfer");
    succeed(&["pack", &input, "-o", &other, "-q"]);
    assert!(fail(2, &["unpack", &other, "-o", &other]).contains("name another output"));
    let link = path(&folder, "link.ninfer");
    std::os::unix::fs::symlink(&other, &link).unwrap();
    assert!(fail(3, &["pack", &input, "-o", &link]).contains("no regular file"));
    assert!(fail(3, &["pack", &input, "-o", "/dev/full"]).contains("no regular file"));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn an_artifact_appears_with_its_report_or_not_at_all() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    generate(&input, 1, 1, 1024);
    fs::create_dir(format!("{out}.report.json")).unwrap();
    assert!(fail(3, &["pack", &input, "-o", &out]).contains("it is a folder"));
    assert_eq!(listing(&folder), ["in.safetensors", "out.ninfer.report.json"]);

    // Said before a weight is read, as of the artifact: this one would be refused.
    checkpoint(&input, &[("t", Dtype::F32, &[1, 2], &f32_bytes(&[1.0, f32::NAN]))]);
    let other = path(&folder, "other.ninfer");
    assert!(fail(1, &["pack", &input, "-o", &other]).contains("is not finite"));
    let message = fail(3, &["pack", &input, "-o", &out]);
    assert!(message.contains(&format!("{out}.report.json: it is a folder")), "{message}");
    std::os::unix::fs::symlink(&input, format!("{other}.report.json")).unwrap();
    assert!(fail(2, &["pack", &input, "-o", &other]).contains("name another output"));
    fs::remove_file(format!("{other}.report.json")).unwrap();
    std::os::unix::fs::symlink("/none", format!("{other}.report.json")).unwrap();
    let message = fail(3, &["pack", &input, "-o", &other]);
    assert!(message.contains(&format!("{other}.report.json: it is no regular file")), "{message}");
}

#[test]
fn endless_names_are_cut() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    let name = "n".repeat(70_000);
    checkpoint(&input, &[(&name, Dtype::F32, &[1], &f32_bytes(&[1.0]))]);
    assert!(succeed(&["pack", &input, "-o", &out]).len() < 2000);
    assert!(succeed(&["inspect", &out]).len() < 2000);
    assert!(succeed(&["verify", &out]).contains("valid"));
    let reserved = path(&folder, "reserved.ninfer");
    let recipe = path(&folder, "recipe.toml");
    fs::write(&recipe, "[[rule]]\nmatch = '*'\nrename = { from = 'weight', to = '__metadata__' }\n").unwrap();
    checkpoint(&input, &[("weight", Dtype::F32, &[1], &f32_bytes(&[1.0]))]);
    succeed(&["pack", &input, "-o", &reserved, "--recipe", &recipe, "-q"]);
    assert!(fail(1, &["unpack", &reserved, "-o", &path(&folder, "x")]).contains("__metadata__"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    generate(&input, 1, 1, 1024);
    succeed(&["pack", &input, "-o", &out, "-q"]);
    let mut child = start(&["inspect", &out]);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_dry_run_reads_no_weights() {
    let folder = folder();
    let input = path(&folder, "in.safetensors");
    // 1 TiB that was never written.
    let bytes = 1u64 << 40;
    let header = format!(r#"{{"a":{{"dtype":"F32","shape":[262144,1048576],"data_offsets":[0,{bytes}]}}}}"#);
    fs::write(&input, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat()).unwrap();
    let file = File::options().write(true).open(&input).unwrap();
    if let Err(error) = file.set_len(8 + header.len() as u64 + bytes) {
        eprintln!("SKIPPED: a sparse file of 1 TiB: {error}");
        return;
    }
    let begin = Instant::now();
    let stdout = succeed(&["pack", &input, "--dry-run"]);
    assert!(stdout.contains("146,028,892,160"), "{stdout}");
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(listing(&folder), ["in.safetensors"]);
}
