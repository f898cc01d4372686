//! `unpack`, and the counts of `diff`: values and words.

use std::fs;

use half::{bf16, f16};
use ninfer_artifact::{Artifact, Content, FilePlan, Identity, Writer};
use ninfer_codec::{Format, Layout, Plan, TensorMut, Words};
use safetensors::{Dtype, SafeTensors};

use crate::support::{call, fail, folder, path, succeed};

/// Writes an artifact of these tensors.
pub fn artifact(path: &str, tensors: &[(&str, Format, &[u64], Vec<u8>)]) {
    let identity = Identity { model_id: "m".into(), weights_id: "w".into() };
    let contents = tensors.iter().map(|(name, format, shape, _)| {
        ((*name).into(), Content::Tensor { format: *format, shape: shape.to_vec() })
    });
    let plan = FilePlan::new(identity, contents.collect()).unwrap();
    let mut writer = Writer::new(plan, Vec::new()).unwrap();
    for (name, _, _, payload) in tensors {
        writer.begin(name).unwrap();
        writer.append(payload).unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

/// A quantized payload of uneven values.
pub fn quantized(format: Format, rows: u64, columns: u64) -> Vec<u8> {
    let values: Vec<f32> = (0..rows * columns).map(|index| ((index * index) as f32 * 0.37).sin()).collect();
    let plan = Plan::new(format, format.layout(), &[rows, columns]).unwrap();
    let mut payload = vec![0; plan.payload_bytes() as usize];
    TensorMut::new(plan, &mut payload).unwrap().quantize(&values[..], columns as usize).unwrap();
    payload
}

fn nvfp4() -> Vec<u8> {
    let plan = Plan::new(Format::Nvfp4, Layout::BlockscaleK16M128x4V1, &[256, 64]).unwrap();
    let codes: Vec<u8> = (0..256 * 32).map(|index: u32| (index * 11) as u8).collect();
    let scales: Vec<u8> = (0..256 * 4).map(|index: u32| (index % 0x7f) as u8).collect();
    let mut payload = vec![0; plan.payload_bytes() as usize];
    let words = Words::Nvfp4 { codes: &codes, scales: &scales, divisor: 3.0f32.to_bits() };
    TensorMut::new(plan, &mut payload).unwrap().pack(words).unwrap();
    payload
}

/// One object of every kind, several blocks of rows long where that is cheap.
fn every_kind(path: &str) {
    let fp8 = [vec![0x38, 0xb9, 0x01, 0x7e], vec![0; 252], vec![0x40, 0x3f, 0x80, 0x3f]].concat();
    artifact(
        path,
        &[
            ("bf16", Format::Bf16, &[3], vec![0x80, 0x3f, 0x01, 0x7f, 0xff, 0xff]),
            ("fp32", Format::Fp32, &[], vec![1, 0, 0x80, 0x7f]),
            ("i32", Format::I32, &[1, 1, 1], vec![0xff; 4]),
            ("q4", Format::Q4G64F16S, &[700, 300], quantized(Format::Q4G64F16S, 700, 300)),
            ("q5", Format::Q5G64F16S, &[3, 130], quantized(Format::Q5G64F16S, 3, 130)),
            ("q6", Format::Q6G64F16S, &[3, 64], quantized(Format::Q6G64F16S, 3, 64)),
            ("w8", Format::W8G32F16S, &[3, 33], quantized(Format::W8G32F16S, 3, 33)),
            ("nvfp4", Format::Nvfp4, &[256, 64], nvfp4()),
            ("fp8", Format::Fp8E4M3FnRowBf16S, &[2, 2], fp8),
        ],
    );
}

#[test]
fn values_are_those_of_the_codec() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.ninfer"), path(&folder, "out.safetensors"));
    every_kind(&input);
    succeed(&["verify", &input, "-q"]);
    let file = fs::read(&input).unwrap();
    let artifact = Artifact::new(&file).unwrap();
    for name in ["f32", "bf16", "f16"] {
        succeed(&["unpack", &input, "-o", &out, "--type", name, "-q"]);
        let bytes = fs::read(&out).unwrap();
        let unpacked = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(unpacked.len(), 9);
        for object in artifact.directory().objects() {
            let tensor = artifact.tensor(object).unwrap();
            let columns = tensor.plan().columns() as usize;
            let elements = tensor.plan().elements() as usize;
            let direct = tensor.plan().layout() == Layout::ContiguousLeV1;
            let expected = match name {
                _ if direct => artifact.payload(object).to_vec(),
                "f32" => {
                    let mut values = vec![0.0f32; elements];
                    tensor.decode(&mut values[..], columns).unwrap();
                    values.iter().flat_map(|value| value.to_le_bytes()).collect()
                }
                "bf16" => {
                    let mut values = vec![bf16::ZERO; elements];
                    tensor.decode(&mut values[..], columns).unwrap();
                    values.iter().flat_map(|value| value.to_le_bytes()).collect()
                }
                _ => {
                    let mut values = vec![f16::ZERO; elements];
                    tensor.decode(&mut values[..], columns).unwrap();
                    values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()
                }
            };
            let view = unpacked.tensor(object.name()).unwrap();
            assert!(view.data() == expected, "{} as {name}", object.name());
            let shape: Vec<_> = view.shape().iter().map(|&dimension| dimension as u64).collect();
            let ninfer_artifact::Kind::Tensor { shape: own, .. } = object.kind() else { panic!() };
            assert_eq!(&shape, own);
        }
        let dtype = unpacked.tensor("q4").unwrap().dtype();
        assert_eq!(
            dtype,
            [Dtype::F32, Dtype::BF16, Dtype::F16]
                [["f32", "bf16", "f16"].iter().position(|n| *n == name).unwrap()]
        );
    }
}

#[test]
fn what_cannot_be_decoded_is_named() {
    let folder = folder();
    let (input, out) = (path(&folder, "in.ninfer"), path(&folder, "out.safetensors"));
    let mut payload = quantized(Format::Q4G64F16S, 700, 300);
    let scale = payload.len() - 2 * 3; // row 699, group 3; 3 physical groups follow it
    payload[scale - 2..scale].copy_from_slice(&[0x00, 0xbc]);
    artifact(&input, &[("spoiled", Format::Q4G64F16S, &[700, 300], payload)]);
    let message = fail(1, &["unpack", &input, "-o", &out]);
    assert!(message.contains("object \"spoiled\": row 699, group"), "{message}");
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn differences_are_counted_and_placed() {
    let folder = folder();
    let (a, b) = (path(&folder, "a.ninfer"), path(&folder, "b.ninfer"));
    let q4 = quantized(Format::Q4G64F16S, 700, 300);
    let mut other = q4.clone();
    other[300 * 192 + 17] ^= 0x10; // row 300, column 35
    let mut i32s = vec![0; 8];
    artifact(
        &a,
        &[
            ("i", Format::I32, &[2], i32s.clone()),
            ("q", Format::Q4G64F16S, &[700, 300], q4.clone()),
            ("same", Format::I32, &[1], vec![1; 4]),
        ],
    );
    i32s[4] = 1;
    artifact(
        &b,
        &[
            ("same", Format::I32, &[1], vec![1; 4]),
            ("i", Format::I32, &[2], i32s),
            ("q", Format::Q4G64F16S, &[700, 300], other),
        ],
    );
    let found = call(&["diff", &a, &b]);
    assert_eq!(found.code, Some(1));
    let lines: Vec<_> = found.stdout.lines().collect();
    assert_eq!(lines[0], "\"i\": codes: 1 of 2 differ");
    assert!(lines[1].starts_with("\"q\": codes: 1 of 210,000 differ; scales: 0 of 3,500 differ; values: 1 of 210,000 differ, by at most "), "{}", lines[1]);
    assert!(lines[1].ends_with(" at row 300, column 35"), "{}", lines[1]);
    assert_eq!(found.stderr, "differences: 2; objects that are the same: 1\n");

    // Another format or shape of one name.
    artifact(&a, &[("q", Format::W8G32F16S, &[3, 130], quantized(Format::W8G32F16S, 3, 130))]);
    artifact(&b, &[("q", Format::Q5G64F16S, &[3, 130], quantized(Format::Q5G64F16S, 3, 130))]);
    let found = call(&["diff", &a, &b]).stdout;
    assert!(found.starts_with("\"q\": W8G32_F16S [3, 130] / Q5G64_F16S [3, 130]; values: "), "{found}");
    artifact(&b, &[("q", Format::Bf16, &[390], vec![0; 780])]);
    assert_eq!(call(&["diff", &a, &b]).stdout, "\"q\": W8G32_F16S [3, 130] / BF16 [390]\n");
    every_kind(&a);
    assert_eq!(succeed(&["diff", &a, &a]), "all 9 objects are the same\n");
}
