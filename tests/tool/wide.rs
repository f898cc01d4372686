//! Rows so long that they are worked on in pieces: the bytes are those of whole rows, and faults are placed in
//! the row.

use half::{bf16, f16};
use ninfer_artifact::Artifact;
use ninfer_codec::{Format, Plan, Tensor, TensorMut};
use safetensors::{Dtype, SafeTensors};

use crate::support::{checkpoint, f32_bytes, fail, folder, path, succeed};

/// Columns that are two pieces and a part of a third, which ends inside a group.
const COLUMNS: usize = 2 * 65_536 + 1000 + 7;
const ROWS: usize = 2;

fn values() -> Vec<f32> {
    (0..ROWS * COLUMNS).map(|index| ((index * index % 65_521) as f32 * 0.37).sin()).collect()
}

#[test]
fn pieces_give_the_bytes_of_whole_rows() {
    let folder = folder();
    let (input, out, back) =
        (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"), path(&folder, "back.safetensors"));
    let values = values();
    checkpoint(&input, &[("t", Dtype::F32, &[ROWS, COLUMNS], &f32_bytes(&values))]);
    for format in [Format::Q4G64F16S, Format::Q5G64F16S, Format::Q6G64F16S, Format::W8G32F16S] {
        let mut files = Vec::new();
        for threads in ["1", "3"] {
            succeed(&["pack", &input, "-o", &out, "--default", format.name(), "-q", "--threads", threads]);
            let report = std::fs::read(format!("{out}.report.json")).unwrap();
            files.push((std::fs::read(&out).unwrap(), report));
        }
        assert!(files[0] == files[1], "{format}: threads make a difference");
        let plan = Plan::new(format, format.layout(), &[ROWS as u64, COLUMNS as u64]).unwrap();
        let mut expected = vec![0; plan.payload_bytes() as usize];
        TensorMut::new(plan, &mut expected).unwrap().quantize(&values[..], COLUMNS).unwrap();
        let artifact = Artifact::new(&files[0].0).unwrap();
        assert!(artifact.payload(&artifact.directory().objects()[0]) == expected, "{format}");
        succeed(&["verify", &out]);
        succeed(&["bench", &out]);

        succeed(&["unpack", &out, "-o", &back, "--type", "bf16", "-q"]);
        let mut decoded = vec![bf16::ZERO; ROWS * COLUMNS];
        Tensor::new(plan, &expected).unwrap().decode(&mut decoded[..], COLUMNS).unwrap();
        let unpacked = std::fs::read(&back).unwrap();
        let unpacked = SafeTensors::deserialize(&unpacked).unwrap();
        let expected: Vec<u8> = decoded.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert!(unpacked.tensor("t").unwrap().data() == expected, "{format}");
    }
}

#[test]
fn the_report_sees_the_whole_row() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    let mut values = vec![1.0; ROWS * COLUMNS];
    values[COLUMNS + 70_000] = 7168.0; // row 1, seven times the scale: its neighbours become zero
    checkpoint(&input, &[("t", Dtype::F32, &[ROWS, COLUMNS], &f32_bytes(&values))]);
    succeed(&["pack", &input, "-o", &out, "-q"]);
    let text = std::fs::read_to_string(format!("{out}.report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let object = &report["objects"][0];
    assert_eq!(object["error"]["largest_at"], serde_json::json!([1, 70_000 / 64 * 64]));
    assert_eq!(object["groups"]["count"], ROWS * COLUMNS.div_ceil(64));
    let counts = object["histogram"]["counts"].as_array().unwrap();
    let sum: u64 = counts.iter().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(sum, (ROWS * COLUMNS) as u64);
}

#[test]
fn faults_are_placed_in_the_row() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    let refuse = |column: usize, value: f32, arguments: &[&str]| {
        let mut values = vec![1.0; ROWS * COLUMNS];
        values[COLUMNS + column] = value;
        checkpoint(&input, &[("t", Dtype::F32, &[ROWS, COLUMNS], &f32_bytes(&values))]);
        fail(1, &[&["pack", &input, "-o", &out][..], arguments].concat())
    };
    let message = refuse(131_075, f32::NAN, &[]);
    assert!(message.contains("\"t\", row 1, column 131075: source word 0x7fc00000"), "{message}");
    let message = refuse(131_075, 1e6, &[]);
    assert!(message.contains("row 1, group 2048: scale"), "{message}");
    let message = refuse(70_000, 1.001, &["--assign", "t=BF16"]);
    assert!(message.contains("row 1, column 70000: F32 word 0x3f8020c5 is not exact in BF16"), "{message}");

    let mut codes = vec![0; ROWS * COLUMNS];
    codes[COLUMNS + 70_000] = 0x38;
    let scales: Vec<u8> = [0x3f80u16, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    let scale: (&str, Dtype, &[usize], &[u8]) = ("f.weight_scale", Dtype::BF16, &[ROWS, 1], &scales);
    checkpoint(&input, &[("f.weight", Dtype::F8_E4M3, &[ROWS, COLUMNS], &codes), scale]);
    let message = fail(1, &["pack", &input, "-o", &out]);
    assert!(message.contains("row 1, column 70000"), "{message}");
}

#[test]
fn other_words_come_through() {
    let folder = folder();
    let [input, out, back] =
        ["in.safetensors", "out.ninfer", "back.safetensors"].map(|name| path(&folder, name));
    let codes: Vec<u8> = (0..ROWS * COLUMNS).map(|index| (index % 0x7f) as u8).collect();
    let scales: Vec<u8> = [0x3f80u16, 0x4000].iter().flat_map(|word| word.to_le_bytes()).collect();
    let exact: Vec<u8> =
        (0..COLUMNS).flat_map(|index| f16::from_f32((index % 2000) as f32).to_le_bytes()).collect();
    let whole: Vec<u8> = (0..COLUMNS as u64).flat_map(u64::to_le_bytes).collect();
    let direct = f32_bytes(&values());
    checkpoint(
        &input,
        &[
            ("f.weight", Dtype::F8_E4M3, &[ROWS, COLUMNS], &codes),
            ("f.weight_scale", Dtype::BF16, &[ROWS, 1], &scales),
            ("exact", Dtype::F16, &[COLUMNS], &exact),
            ("whole", Dtype::U64, &[COLUMNS], &whole),
            ("direct", Dtype::F32, &[ROWS, COLUMNS, 1], &direct),
        ],
    );
    succeed(&["pack", &input, "-o", &out, "-q", "--assign", "exact=FP32", "--assign", "whole=I32"]);
    succeed(&["verify", &out]);
    succeed(&["bench", &out]);
    succeed(&["unpack", &out, "-o", &back, "--words", "-q"]);
    let bytes = std::fs::read(&back).unwrap();
    let unpacked = SafeTensors::deserialize(&bytes).unwrap();
    let data = |name: &str| unpacked.tensor(name).unwrap().data();
    assert!(data("f.weight") == codes && data("f.weight_scale") == scales);
    assert!(data("direct") == direct);
    let expected: Vec<f32> = (0..COLUMNS).map(|index| (index % 2000) as f32).collect();
    assert!(data("exact") == f32_bytes(&expected));
    let expected: Vec<u8> = (0..COLUMNS as i32).flat_map(i32::to_le_bytes).collect();
    assert!(data("whole") == expected);
    let text = std::fs::read_to_string(format!("{out}.report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let fp8 =
        report["objects"].as_array().unwrap().iter().find(|object| object["name"] == "f.weight").unwrap();
    assert_eq!(fp8["groups"]["count"], ROWS);
}
