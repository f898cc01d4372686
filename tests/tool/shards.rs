//! Checkpoints of several files, and files that are none.

use std::fs;

use safetensors::Dtype;
use sha2::{Digest, Sha256};

use crate::support::{call, checkpoint, fail, folder, listing, path, succeed};

#[test]
fn shards_give_the_bytes_of_one_file() {
    let folder = folder();
    let (a, b) = ([1; 512], [2; 512]);
    let one = path(&folder, "whole.safetensors");
    checkpoint(&one, &[("a", Dtype::F32, &[2, 64], &a), ("b", Dtype::F32, &[2, 64], &b)]);
    let shards = folder.path().join("shards");
    fs::create_dir(&shards).unwrap();
    let shard = |name: &str| shards.join(name).to_str().unwrap().to_string();
    checkpoint(&shard("x-1.safetensors"), &[("b", Dtype::F32, &[2, 64], &b)]);
    checkpoint(&shard("x-2.safetensors"), &[("a", Dtype::F32, &[2, 64], &a)]);
    let ids = ["--model-id", "m", "--weights-id", "w", "-q"];
    let pack = |input: &str, out: &str| {
        let out = path(&folder, out);
        succeed(&[&["pack", input, "-o", &out][..], &ids].concat());
        fs::read(out).unwrap()
    };
    let whole = pack(&one, "whole.ninfer");
    assert!(whole == pack(shards.to_str().unwrap(), "folder.ninfer"), "a folder without an index");
    let index = shard("model.safetensors.index.json");
    fs::write(&index, r#"{"metadata": {}, "weight_map": {"a": "x-2.safetensors", "b": "x-1.safetensors"}}"#)
        .unwrap();
    assert!(whole == pack(&index, "index.ninfer"), "an index");
    assert!(whole == pack(shards.to_str().unwrap(), "both.ninfer"), "a folder with an index");
    let report = fs::read_to_string(path(&folder, "both.ninfer.report.json")).unwrap();
    assert!(report.contains("x-1.safetensors") && report.contains("x-2.safetensors"));

    let out = path(&folder, "refused.ninfer");
    for (text, code, part) in [
        (r#"{"weight_map": {"a": "x-1.safetensors"}}"#, 1, "does not hold \"a\""),
        (r#"{"weight_map": {"a": "x-3.safetensors"}}"#, 3, "x-3.safetensors"),
        (r#"{"weight_map": {"a": "../whole.safetensors"}}"#, 1, "plain names"),
        (r#"{"weight_map": 7}"#, 1, "is no safetensors index"),
        ("{", 1, "is no safetensors index"),
    ] {
        fs::write(&index, text).unwrap();
        assert!(fail(code, &["pack", &index, "-o", &out]).contains(part), "{text}");
    }
    // A shard may hold what the index does not name; that is said.
    fs::write(&index, r#"{"weight_map": {"a": "x-2.safetensors"}}"#).unwrap();
    checkpoint(
        &shard("x-2.safetensors"),
        &[("a", Dtype::F32, &[2, 64], &a), ("c", Dtype::F32, &[2, 64], &a)],
    );
    let call = call(&["pack", &index, "-o", &out, "-q"]);
    assert_eq!(call.code, Some(0));
    assert!(call.stderr.contains("1 tensors are not in the index and are left out"), "{}", call.stderr);
}

#[test]
fn the_index_of_a_folder_is_not_replaced() {
    let folder = folder();
    let values = [1; 512];
    checkpoint(&path(&folder, "x.safetensors"), &[("a", Dtype::F32, &[2, 64], &values)]);
    let (index, link) = (path(&folder, "model.safetensors.index.json"), path(&folder, "link.json"));
    let text = r#"{"weight_map": {"a": "x.safetensors"}}"#;
    fs::write(&index, text).unwrap();
    fs::hard_link(&index, &link).unwrap();
    let input = folder.path().to_str().unwrap();
    for out in [&index, &link] {
        let message = fail(2, &["pack", input, "-o", out]);
        assert!(message.contains(&format!("output {out} is the input {index}")), "{message}");
        assert_eq!(fs::read_to_string(&index).unwrap(), text);
    }
    // So that the report would take its place.
    let report = path(&folder, "out.ninfer.report.json");
    fs::hard_link(&index, &report).unwrap();
    let message = fail(2, &["pack", input, "-o", &path(&folder, "out.ninfer")]);
    assert!(message.contains(&format!("output {report} is the input {index}")), "{message}");
    let names = ["link.json", "model.safetensors.index.json", "out.ninfer.report.json", "x.safetensors"];
    assert_eq!(listing(&folder), names);
}

#[test]
fn two_files_with_one_name_are_refused() {
    let folder = folder();
    for file in ["1.safetensors", "2.safetensors"] {
        checkpoint(&path(&folder, file), &[("a", Dtype::F32, &[1], &[0; 4])]);
    }
    let message = fail(1, &["pack", folder.path().to_str().unwrap(), "-o", &path(&folder, "o.ninfer")]);
    assert!(message.contains("\"a\" is both in") && message.contains("2.safetensors"), "{message}");
}

#[test]
fn what_is_no_checkpoint_is_refused() {
    let folder = folder();
    let out = path(&folder, "out.ninfer");
    let input = path(&folder, "in.safetensors");
    let header = |json: &str, data: usize| {
        let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
        bytes.extend(json.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    };
    let tensor = |shape: &str, end: u64| {
        format!(r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":[0,{end}]}}}}"#)
    };
    for bytes in [
        Vec::new(),
        vec![0; 7],
        u64::MAX.to_le_bytes().to_vec(),
        header("{", 0),
        header("[]", 0),
        header(&tensor("[1]", 4), 3),
        header(&tensor("[1]", 4), 5),
        header(&tensor("[2]", 4), 4),
        header(&tensor("[4611686018427387904,4]", 4), 4),
        header(&tensor("[1]", u64::MAX), 4),
        header(&tensor("[1]", 4).replace("F32", "F31"), 4),
        header(&format!("{}1", "[".repeat(100_000)), 0),
    ] {
        fs::write(&input, &bytes).unwrap();
        let message = fail(1, &["pack", &input, "-o", &out]);
        assert!(message.contains("in.safetensors") && message.lines().count() == 1, "{message}");
    }
    fs::write(&input, header("{}", 0)).unwrap();
    assert!(fail(1, &["pack", &input, "-o", &out]).contains("has no tensors"));
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(fail(1, &["pack", empty.to_str().unwrap(), "-o", &out]).contains("has neither"));
    assert!(fail(3, &["pack", "/none/such", "-o", &out]).contains("/none/such"));
    assert!(fail(2, &["pack", &input]).contains("-o OUT"));
    for subcommand in ["inspect", "verify", "bench"] {
        let message = fail(1, &[subcommand, &input]);
        assert!(message.contains("in.safetensors: the file has 10 bytes"), "{message}");
    }
}

#[test]
fn many_shards_are_read_in_turn() {
    let folder = folder();
    let values = |seed: u32, rows: usize| -> Vec<u8> {
        (0..rows as u32 * 512).flat_map(|index| ((index * (seed + 7)) as f32).sin().to_le_bytes()).collect()
    };
    // Six files of uneven length; the last tensor of each is left out, and one file has no other.
    let names: Vec<String> = (0..6).map(|index| format!("t{index}.weight")).collect();
    let tensors: Vec<_> = (0..6).map(|index| values(index, 100 + 150 * index as usize)).collect();
    let left_out = values(9, 33);
    let shards = folder.path().join("shards");
    fs::create_dir(&shards).unwrap();
    for (index, (name, bytes)) in names.iter().zip(&tensors).enumerate() {
        let skipped = format!("z{index}.skip");
        let own: (&str, _, &[usize], &[u8]) = (name, Dtype::F32, &[bytes.len() / 2048, 512], bytes);
        let other: (&str, _, &[usize], &[u8]) = (&skipped, Dtype::F32, &[33, 512], &left_out);
        let file = shards.join(format!("{index}.safetensors"));
        let both = [own, other];
        checkpoint(file.to_str().unwrap(), if index == 3 { &both[1..] } else { &both });
    }
    let recipe = path(&folder, "r.toml");
    fs::write(
        &recipe,
        "[[rule]]\nmatch = '*.skip'\nskip = true\n[[stack]]\nname = 's'\nsources = ['t5.weight', 't0.weight']\n",
    )
    .unwrap();
    let pack = |input: &str, threads: &str| {
        let out = path(&folder, "out.ninfer");
        let ids = ["--model-id", "m", "--weights-id", "w", "-q", "--recipe", &recipe, "--threads", threads];
        succeed(&[&["pack", input, "-o", &out][..], &ids].concat());
        let report = fs::read_to_string(format!("{out}.report.json")).unwrap();
        (fs::read(out).unwrap(), serde_json::from_str::<serde_json::Value>(&report).unwrap())
    };
    let folder_of_shards = shards.to_str().unwrap();
    let one = pack(folder_of_shards, "1");
    assert!(one == pack(folder_of_shards, "3"), "threads make a difference");
    for (index, source) in one.1["sources"].as_array().unwrap().iter().enumerate() {
        let bytes = fs::read(shards.join(format!("{index}.safetensors"))).unwrap();
        let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(source["sha256"], digest, "{index}");
    }

    let whole = path(&folder, "whole.safetensors");
    let all: Vec<(&str, _, [usize; 2], &[u8])> = (0..6)
        .filter(|&index| index != 3)
        .map(|index| (&*names[index], Dtype::F32, [tensors[index].len() / 2048, 512], &tensors[index][..]))
        .chain([("z.skip", Dtype::F32, [33, 512], &left_out[..])])
        .collect();
    let all: Vec<(&str, _, &[usize], &[u8])> =
        all.iter().map(|(name, dtype, shape, bytes)| (*name, *dtype, &shape[..], *bytes)).collect();
    checkpoint(&whole, &all);
    let whole = pack(&whole, "2");
    assert!(one.0 == whole.0, "shards make a difference");
    assert_eq!(one.1["objects"], whole.1["objects"]);
}
