//! Inputs that cannot be read: each is refused with one line that names the place, the numbers and the remedy.

use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::process::Command;

use safetensors::Dtype;
use tempfile::TempDir;

use crate::support::{call, checkpoint, f32_bytes, fail, folder, listing, path, succeed};

/// A safetensors file of this header and so many zero bytes.
fn file(header: &[u8], data: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header, &vec![0; data]].concat()
}

fn tensor(name: &str, dtype: &str, shape: &str, offsets: &str) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}"#)
}

/// Packs what must be refused with one line; gives it.
fn refuse(folder: &TempDir, bytes: &[u8]) -> String {
    let (input, out) = (path(folder, "in.safetensors"), path(folder, "out.ninfer"));
    fs::write(&input, bytes).unwrap();
    let message = fail(1, &["pack", &input, "-o", &out]);
    assert!(message.lines().count() == 1 && message.contains(&input), "{message}");
    assert_eq!(listing(folder), ["in.safetensors"]);
    message
}

#[test]
fn every_fault_of_a_header_is_named_with_its_numbers() {
    let folder = folder();
    let one = |dtype: &str, shape: &str, offsets: &str| {
        let good = tensor("good", "F32", "[2]", "[0,8]");
        format!("{{{good},{}}}", tensor("bad", dtype, shape, offsets))
    };
    for (bytes, parts) in [
        (vec![0; 7], &["it has 7 bytes", "takes 8", "fetch it again"][..]),
        (u64::MAX.to_le_bytes().into(), &["a header of 18446744073709551615 bytes", "100000000 is the most"]),
        (
            100u64.to_le_bytes().into(),
            &["a header of 100 bytes, and the file has 8 in all", "fetch it again"],
        ),
        (file(b"{\"a\xff\":1}", 0), &["not UTF-8 at byte 3", "fetch it again"]),
        (file(b"{\"a\":", 0), &["its header, EOF while parsing", "line 1 column 5"]),
        (file(b"[]", 0), &["no JSON object of tensors"]),
        (file(br#"{"__metadata__":{"a":1}}"#, 0), &["\"__metadata__\" must be an object of strings"]),
        (
            file(one("F31", "[2]", "[8,16]").as_bytes(), 16),
            &["tensor \"bad\": unknown variant `F31`, expected one of", "write the file again"],
        ),
        (
            file(one("F32", "[2]", "[8]").as_bytes(), 16),
            &["tensor \"bad\": invalid length 1, expected a tuple of size 2"],
        ),
        (file(one("F32", "[-1]", "[8,16]").as_bytes(), 16), &["tensor \"bad\": invalid value: integer `-1`"]),
        (
            file(one("F32", "[2]", "[12,20]").as_bytes(), 20),
            &["tensor \"bad\", F32 [2], has data_offsets [12, 20], and must begin at 8"],
        ),
        (
            file(one("F32", "[2]", "[8,4]").as_bytes(), 16),
            &["tensor \"bad\", F32 [2], has data_offsets [8, 4]", "not end earlier"],
        ),
        (
            file(one("F32", "[3]", "[8,16]").as_bytes(), 16),
            &[
                "tensor \"bad\", F32 [3], takes 12 bytes, and its data_offsets [8, 16] hold 8",
                "write the file again",
            ],
        ),
        (
            file(one("F32", "[4611686018427387904,8]", "[8,16]").as_bytes(), 16),
            &["tensor \"bad\", F32 [4611686018427387904, 8], would have more bits than 64-bit numbers count"],
        ),
        (file(one("F4", "[3]", "[8,10]").as_bytes(), 10), &["tensor \"bad\", F4 [3], has 12 bits"]),
        (
            file(one("F32", "[2]", "[8,16]").as_bytes(), 11),
            &[
                "the last of them \"bad\", take 16 bytes, and 11 follow the header: 5 are missing",
                "fetch it again",
            ],
        ),
        (
            file(one("F32", "[2]", "[8,16]").as_bytes(), 17),
            &["take 16 bytes, and 17 follow the header: 1 are too many"],
        ),
    ] {
        let message = refuse(&folder, &bytes);
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in {message}");
        }
    }
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let folder = folder();
    let (one, two) = (tensor("a", "F32", "[2]", "[0,8]"), tensor("a", "I32", "[2]", "[0,8]"));
    // The spelling of the second is another, its key the same.
    for header in [format!("{{{one},{two}}}"), format!("{{{one},{}}}", two.replace("\"a\"", "\"\\u0061\""))] {
        let message = refuse(&folder, &file(header.as_bytes(), 8));
        assert!(message.contains("key \"a\" stands twice at line 1 column"), "{message}");
    }
    let inner = one.replace("\"shape\":[2]", "\"shape\":[2],\"shape\":[2]");
    let message = refuse(&folder, &file(format!("{{{inner}}}").as_bytes(), 8));
    assert!(message.contains("key \"shape\" stands twice in \"a\""), "{message}");
    let metadata = format!(r#"{{"__metadata__":{{"format":"pt","format":"np"}},{one}}}"#);
    let message = refuse(&folder, &file(metadata.as_bytes(), 8));
    assert!(message.contains("key \"format\" stands twice in \"__metadata__\""), "{message}");

    let (shard, index) = (path(&folder, "in.safetensors"), path(&folder, "model.safetensors.index.json"));
    checkpoint(&shard, &[("a", Dtype::F32, &[1], &[0; 4])]);
    let out = path(&folder, "out.ninfer");
    for (text, part) in [
        (
            r#"{"weight_map": {"a": "in.safetensors", "a": "x.safetensors"}}"#,
            "key \"a\" stands twice in \"weight_map\"",
        ),
        (r#"{"weight_map": {}, "weight_map": {"a": "in.safetensors"}}"#, "key \"weight_map\" stands twice"),
    ] {
        fs::write(&index, text).unwrap();
        let message = fail(1, &["pack", &index, "-o", &out]);
        assert!(message.contains(part) && message.contains(&index), "{message}");
    }
}

#[test]
fn only_regular_files_are_read() {
    let folder = folder();
    let [input, fifo, socket, out, index] =
        ["in.safetensors", "fifo", "socket", "out.ninfer", "x.safetensors.index.json"]
            .map(|name| path(&folder, name));
    checkpoint(&input, &[("a", Dtype::F32, &[1], &[0; 4])]);
    succeed(&["pack", &input, "-o", &out, "-q"]);
    assert!(Command::new("mkfifo").args([&fifo, &index]).status().unwrap().success());
    let _listener = UnixListener::bind(&socket).unwrap();
    let (other, inside) = (path(&folder, "other"), folder.path().to_str().unwrap());
    // Without a writer a tool that opens a FIFO would wait for ever, and this test with it.
    let writer = |path: &str| File::options().read(true).write(true).open(path).unwrap();
    let _writers = [writer(&fifo), writer(&index)];
    for (file, what) in
        [(fifo.as_str(), "a FIFO"), (&socket, "a socket"), ("/dev/zero", "a device"), (inside, "a folder")]
    {
        let resource = format!("r={file}");
        for arguments in [
            &["pack", file, "-o", &other][..],
            &["pack", &input, "-o", &other, "--recipe", file],
            &["pack", &input, "-o", &other, "--resource", &resource],
            &["inspect", file],
            &["verify", file],
            &["unpack", file, "-o", &other],
            &["diff", file, &out],
            &["diff", &out, file],
            &["bench", file],
            &["report", file, "-o", &other],
        ] {
            if arguments[..2] == ["pack", inside] {
                continue; // a folder may be packed
            }
            let message = fail(3, arguments);
            let expected = format!("cannot use {file}: it is {what}, and no regular file; name a file");
            assert!(message.contains(&expected), "{arguments:?}: {message}");
        }
    }
    for arguments in [["pack", &index, "--dry-run"], ["pack", inside, "--dry-run"]] {
        assert!(fail(3, &arguments).contains("x.safetensors.index.json: it is a FIFO"));
    }
    fs::remove_file(&index).unwrap();
    fs::rename(&fifo, path(&folder, "b.safetensors")).unwrap();
    assert!(fail(3, &["pack", inside, "--dry-run"]).contains("b.safetensors: it is a FIFO"));
    assert!(!listing(&folder).contains(&"other".to_string()));
}

#[test]
fn a_recipe_that_is_not_utf_8_is_a_usage_error() {
    let folder = folder();
    let (input, recipe) = (path(&folder, "in.safetensors"), path(&folder, "r.toml"));
    checkpoint(&input, &[("a", Dtype::F32, &[1], &[0; 4])]);
    fs::write(&recipe, b"default = \"Q5G64_F16S\"\n\n# \xe9t\xe9\n").unwrap();
    let message = fail(2, &["pack", &input, "--dry-run", "--recipe", &recipe]);
    assert!(message.contains("r.toml, line 3: this is not UTF-8"), "{message}");
}

#[test]
fn a_directory_that_is_no_object_says_which_place() {
    let folder = folder();
    let input = path(&folder, "in.ninfer");
    let identity = r#""identity":{"model_id":"m","weights_id":"w"}"#;
    for (json, part) in [
        ("7".into(), "directory must be a JSON object, not 7"),
        (format!(r#"{{{identity},"objects":["x"]}}"#), "object 0 must be a JSON object, not \"x\""),
        (r#"{"identity":[],"objects":[]}"#.into(), "identity must be a JSON object, not an array"),
        (format!(r#"{{{identity},"objects":7}}"#), "directory: \"objects\" must be an array, not 7"),
    ] {
        let json: String = json;
        let mut bytes = b"NINFER\0\x02".to_vec();
        bytes.extend((json.len() as u64).to_le_bytes());
        bytes.extend(json.as_bytes());
        bytes.resize(4096, 0);
        fs::write(&input, bytes).unwrap();
        let message = fail(1, &["verify", &input]);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn two_spellings_of_one_weight_are_both_named() {
    let folder = folder();
    let input = path(&folder, "in.safetensors");
    let (codes, scales, one) = ([0; 128 * 32], [0x38; 128 * 4], f32_bytes(&[1.0]));
    checkpoint(
        &input,
        &[
            ("x.weight", Dtype::F32, &[1, 1], &one),
            ("x.weight_packed", Dtype::U8, &[128, 32], &codes),
            ("x.weight_scale", Dtype::F8_E4M3, &[128, 4], &scales),
            ("x.weight_global_scale", Dtype::F32, &[1], &one),
            ("y", Dtype::F32, &[1], &one),
        ],
    );
    let message = fail(1, &["pack", &input, "--dry-run"]);
    for part in [
        "\"x.weight\", from tensors \"x.weight\" and \"x.weight_packed\"",
        "take one of them out of the checkpoint, or leave both out with --skip 'x.weight'",
    ] {
        assert!(message.contains(part), "{message}");
    }
    succeed(&["pack", &input, "--dry-run", "--skip", "x.weight"]);
}

#[test]
fn what_is_advised_against_a_nan_scale_works() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    let (codes, mut scales, one) = ([0; 128 * 32], [0x38; 128 * 4], f32_bytes(&[1.0]));
    scales[5] = 0x7f;
    checkpoint(
        &input,
        &[
            ("x.weight_packed", Dtype::U8, &[128, 32], &codes),
            ("x.weight_scale", Dtype::F8_E4M3, &[128, 4], &scales),
            ("x.weight_global_scale", Dtype::F32, &[1], &one),
            ("y", Dtype::F32, &[1], &one),
        ],
    );
    let message = fail(1, &["pack", &input, "-o", &out]);
    assert!(
        message.contains("row 1, group 1") && message.trim_end().ends_with("--skip 'x.weight'"),
        "{message}"
    );
    succeed(&["pack", &input, "-o", &out, "--skip", "x.weight"]);
}

#[test]
fn control_characters_are_shown_escaped() {
    let folder = folder();
    let (input, out) = (path(&folder, "in\n\x1b[31m.safetensors"), path(&folder, "out\r.ninfer"));
    checkpoint(&input, &[("a\nb", Dtype::F16, &[1], &[0; 2])]);
    let message = fail(1, &["pack", &input, "-o", &out]);
    assert!(message.contains("\"a\\nb\"") && message.contains("--skip 'a\\nb'"), "{message}");
    assert_eq!(message.lines().count(), 1);
    let message = fail(3, &["verify", &path(&folder, "no\nne\x1b[31m")]);
    assert!(message.contains("no\\nne\\u{1b}[31m: No such file"), "{message}");
    let stdout = succeed(&["pack", &input, "-o", &out, "--assign", "a*=FP32"]);
    assert!(stdout.contains("a\\nb") && stdout.contains("out\\r.ninfer: "), "{stdout}");
    assert!(call(&["verify", &out]).stdout.contains("out\\r.ninfer: 1 objects"));
}
