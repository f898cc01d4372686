//! Inputs and outputs that are links, devices, folders, or each other: no half file, and nothing is lost.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use crate::support::{Call, folder, tool};

/// A folder with a checkpoint, its artifact and report, and links to each of them.
fn places() -> TempDir {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/minilm-nvfp4-fp8.safetensors");
    fs::copy(data, at("in.safetensors")).unwrap();
    let call = run(&folder, &["pack", "in.safetensors", "-o", "a.ninfer", "-q"]);
    assert_eq!((call.code, call.stderr.as_str()), (Some(0), ""));
    fs::rename(at("a.ninfer.report.json"), at("report.json")).unwrap();
    for (to, link) in
        [("in.safetensors", "soft.safetensors"), ("a.ninfer", "soft.ninfer"), ("report.json", "soft.json")]
    {
        symlink(to, at(link)).unwrap();
        fs::hard_link(at(to), at(&link.replace("soft", "hard"))).unwrap();
    }
    symlink("missing", at("dangling")).unwrap();
    symlink("loop", at("loop")).unwrap();
    symlink(".", at("here")).unwrap();
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/file"), "kept").unwrap();
    folder
}

fn run(folder: &TempDir, arguments: &[&str]) -> Call {
    tool(arguments).current_dir(folder.path()).output().unwrap().into()
}

/// What every name in the folder is or points to.
fn state(folder: &TempDir) -> BTreeMap<String, Vec<u8>> {
    let mut state = BTreeMap::new();
    for part in ["", "full"] {
        for entry in fs::read_dir(folder.path().join(part)).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            let content = match kind.is_symlink() {
                true => fs::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes(),
                false if kind.is_dir() => continue,
                false => fs::read(entry.path()).unwrap(),
            };
            state.insert(format!("{part}/{}", entry.file_name().display()), content);
        }
    }
    state
}

/// Each call fails with this code and one line that names the output or input, and changes nothing.
fn refuse(code: i32, calls: &[&[&str]]) {
    let folder = places();
    let before = state(&folder);
    for arguments in calls {
        let call = run(&folder, arguments);
        assert_eq!((call.code, call.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", call.stderr);
        assert_eq!(call.stderr.lines().count(), 1, "{arguments:?}: {}", call.stderr);
        let named = arguments.iter().skip(1).any(|argument| call.stderr.contains(argument));
        assert!(named, "{arguments:?}: {}", call.stderr);
        assert!(state(&folder) == before, "{arguments:?} changed something");
    }
}

#[test]
fn an_output_that_is_the_input_is_refused() {
    refuse(
        2,
        &[
            &["pack", "in.safetensors", "-o", "in.safetensors"],
            &["pack", "in.safetensors", "-o", "./in.safetensors"],
            &["pack", "in.safetensors", "-o", "here/in.safetensors"],
            &["pack", "in.safetensors", "-o", "soft.safetensors"],
            &["pack", "in.safetensors", "-o", "hard.safetensors"],
            &["pack", "soft.safetensors", "-o", "in.safetensors"],
            &["unpack", "a.ninfer", "-o", "a.ninfer"],
            &["unpack", "a.ninfer", "-o", "soft.ninfer"],
            &["unpack", "a.ninfer", "-o", "hard.ninfer"],
            &["unpack", "soft.ninfer", "-o", "a.ninfer"],
            &["report", "report.json", "-o", "report.json"],
            &["report", "report.json", "-o", "soft.json"],
            &["report", "report.json", "-o", "hard.json"],
            &["report", "soft.json", "-o", "report.json"],
        ],
    );
}

#[test]
fn an_output_that_is_a_link_a_device_or_a_folder_is_refused() {
    for out in ["soft.safetensors", "dangling", "loop", "here", "full", ".", "/dev/full", "/dev/null"] {
        refuse(
            3,
            &[
                &["unpack", "a.ninfer", "-o", out],
                &["report", "report.json", "-o", out],
                &["pack", "full/none", "-o", out],
            ],
        );
    }
    for out in ["soft.ninfer", "dangling", "loop", "here", "full", "/dev/full", "/dev/null"] {
        refuse(3, &[&["pack", "in.safetensors", "-o", out]]);
    }
}

#[test]
fn a_file_where_a_folder_should_be_is_refused() {
    refuse(
        3,
        &[
            &["pack", "in.safetensors", "-o", "full/file/out.ninfer"],
            &["pack", "in.safetensors", "-o", "in.safetensors/out.ninfer"],
            &["pack", "in.safetensors", "-o", "dangling/out.ninfer"],
            &["unpack", "a.ninfer", "-o", "a.ninfer/out"],
            &["unpack", "a.ninfer", "-o", "loop/out"],
            &["report", "report.json", "-o", "full/file/out.html"],
            &["pack", "in.safetensors/", "-o", "out.ninfer"],
            &["pack", "full/file/x", "-o", "out.ninfer"],
            &["verify", "a.ninfer/x"],
            &["inspect", "loop"],
            &["inspect", "dangling"],
        ],
    );
}

#[test]
fn a_link_is_followed_to_be_read() {
    let folder = places();
    assert!(run(&folder, &["verify", "soft.ninfer"]).stdout.contains("4 objects"));
    assert_eq!(run(&folder, &["pack", "soft.safetensors", "-o", "b.ninfer", "-q"]).code, Some(0));
    assert_eq!(run(&folder, &["unpack", "soft.ninfer", "-o", "here/b.safetensors", "--words"]).code, Some(0));
    let at = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(at("b.ninfer") == at("a.ninfer"));
    assert!(fs::symlink_metadata(folder.path().join("soft.ninfer")).unwrap().is_symlink());
}

#[test]
fn a_full_stdout_is_said_and_loses_nothing() {
    let folder = places();
    let before = state(&folder);
    let full = |arguments: &[&str]| {
        let mut command = tool(arguments);
        let stdout = File::options().write(true).open("/dev/full").expect("/dev/full");
        let call = Call::from(command.current_dir(folder.path()).stdout(stdout).output().unwrap());
        assert_eq!(call.code, Some(3), "{arguments:?}: {}", call.stderr);
        assert!(call.stderr.contains("stdout") && call.stderr.lines().count() == 1, "{}", call.stderr);
        call.stderr
    };
    for arguments in [
        &["inspect", "a.ninfer"][..],
        &["inspect", "a.ninfer", "--json"],
        &["inspect", "a.ninfer", "--tree"],
        &["verify", "a.ninfer"],
        &["diff", "a.ninfer", "soft.ninfer"],
        &["plan", "NVFP4", "128x64"],
        &["pack", "in.safetensors", "--dry-run"],
        &["completions", "bash"],
    ] {
        full(arguments);
        assert!(state(&folder) == before, "{arguments:?} changed something");
    }
    // What was complete before the last word stays, whole.
    assert!(full(&["pack", "in.safetensors", "-o", "b.ninfer"]).contains("b.ninfer is complete"));
    let unpack = ["unpack", "a.ninfer", "-o", "b.safetensors", "--words"];
    assert!(full(&unpack).contains("b.safetensors is complete"));
    assert!(full(&["report", "report.json", "-o", "b.html"]).contains("b.html is complete"));
    let after = state(&folder);
    assert!(after["/b.ninfer"] == before["/a.ninfer"]);
    let again = folder.path().join("again");
    let arguments = ["unpack", "a.ninfer", "-o", again.to_str().unwrap(), "--words", "-q"];
    assert_eq!(run(&folder, &arguments).code, Some(0));
    assert!(after["/b.safetensors"] == fs::read(&again).unwrap());
    assert!(after["/b.html"].ends_with(b"</html>"));
    let new: Vec<_> = after.keys().filter(|name| !before.contains_key(*name)).collect();
    assert_eq!(new, ["/b.html", "/b.ninfer", "/b.ninfer.report.json", "/b.safetensors"]);
    assert!(before.iter().all(|(name, content)| after[name] == *content));
}
