//! The bundled checkpoints.

use ninfer_artifact::{Artifact, Content, FilePlan, Writer};
use ninfer_codec::{Format, Layout, Plan, TensorMut};
use safetensors::SafeTensors;

use crate::support::{call, fail, folder, path, succeed};

const SLICE: &str = "examples/data/minilm-slice.safetensors";
const READY_MADE: &str = "examples/data/minilm-nvfp4-fp8.safetensors";

#[test]
fn the_bundled_slice_is_packed_and_the_flags_are_shown() {
    let folder = folder();
    let out = path(&folder, "slice.ninfer");
    let stdout = succeed(&["pack", "-o", &out]);
    let (first, rest) = stdout.split_once('\n').unwrap();
    assert_eq!(first, format!("ninfer pack {SLICE} -o {out} --assign 'embeddings.position_ids=I32'"));
    let heading = rest.lines().next().unwrap();
    for title in
        ["tensor", "source", "shape", "format", "layout", "bytes", "bits/weight", "rel. RMSE", "max. error"]
    {
        assert!(heading.contains(title), "{heading}");
    }

    // The command that was shown gives the same bytes.
    let again = path(&folder, "again.ninfer");
    succeed(&["pack", SLICE, "-o", &again, "--assign", "embeddings.position_ids=I32", "--quiet"]);
    assert!(std::fs::read(&out).unwrap() == std::fs::read(again).unwrap());
    assert_eq!(succeed(&["verify", &out]), format!("{out}: 9 objects, 261,504 bytes: valid\n"));
    assert!(succeed(&["inspect", &out]).contains("9 objects from byte 4096 on, 261,504 bytes\n"));
}

#[test]
fn the_artifact_is_what_the_codec_and_the_writer_give() {
    let folder = folder();
    let out = path(&folder, "slice.ninfer");
    succeed(&["pack", "-o", &out]);
    let packed = std::fs::read(&out).unwrap();
    let source = std::fs::read(SLICE).unwrap();
    let source = SafeTensors::deserialize(&source).unwrap();
    let mut names = source.names();
    names.sort();

    let mut contents = Vec::new();
    let mut payloads = Vec::new();
    for name in names {
        let view = source.tensor(name).unwrap();
        let shape: Vec<u64> = view.shape().iter().map(|&dimension| dimension as u64).collect();
        let words = |size: usize| view.data().chunks(size);
        let f32s = |value: &[u8]| f32::from_le_bytes(value.try_into().unwrap());
        let (format, payload) = match view.dtype() {
            safetensors::Dtype::I64 => {
                let words = words(8).map(|word| i64::from_le_bytes(word.try_into().unwrap()) as i32);
                (Format::I32, words.flat_map(i32::to_le_bytes).collect())
            }
            safetensors::Dtype::F32 if shape.len() == 1 => (Format::Fp32, view.data().to_vec()),
            dtype => {
                let values: Vec<f32> = match dtype {
                    safetensors::Dtype::F32 => words(4).map(f32s).collect(),
                    safetensors::Dtype::BF16 => words(2)
                        .map(|word| half::bf16::from_le_bytes(word.try_into().unwrap()).to_f32())
                        .collect(),
                    _ => words(2)
                        .map(|word| half::f16::from_le_bytes(word.try_into().unwrap()).to_f32())
                        .collect(),
                };
                let plan = Plan::new(Format::Q4G64F16S, Layout::RowSplitK128V1, &shape).unwrap();
                let mut payload = vec![0xa5; plan.payload_bytes() as usize];
                let columns = plan.columns() as usize;
                TensorMut::new(plan, &mut payload).unwrap().quantize(&values[..], columns).unwrap();
                (Format::Q4G64F16S, payload)
            }
        };
        contents.push((name.to_string(), Content::Tensor { format, shape }));
        payloads.push(payload);
    }
    let identity = Artifact::new(&packed).unwrap().directory().identity().clone();
    let mut writer = Writer::new(FilePlan::new(identity, contents.clone()).unwrap(), Vec::new()).unwrap();
    for ((name, _), payload) in contents.iter().zip(&payloads) {
        writer.begin(name).unwrap();
        writer.append(payload).unwrap();
    }
    assert!(writer.finish().unwrap() == packed);
}

#[test]
fn ready_made_words_are_copied() {
    let folder = folder();
    let out = path(&folder, "ready.ninfer");
    succeed(&["pack", READY_MADE, "-o", &out]);
    let formats: Vec<_> = Artifact::new(&std::fs::read(&out).unwrap())
        .unwrap()
        .directory()
        .objects()
        .iter()
        .map(|object| (object.name().to_string(), object.plan().unwrap().format().name()))
        .collect();
    let expected = [
        ("encoder.layer.1.attention.self.query.weight", "NVFP4"),
        ("encoder.layer.1.intermediate.dense.weight", "NVFP4"),
        ("encoder.layer.1.output.LayerNorm.weight", "BF16"),
        ("encoder.layer.1.output.dense.weight", "FP8_E4M3FN_ROW_BF16S"),
    ];
    assert_eq!(formats, expected.map(|(name, format)| (name.to_string(), format)));
    succeed(&["verify", &out]);
}

#[test]
fn a_tensor_that_needs_a_decision_is_named_with_the_flags() {
    let folder = folder();
    let out = path(&folder, "slice.ninfer");
    assert_eq!(
        fail(1, &["pack", SLICE, "-o", &out]),
        "error: tensor \"embeddings.position_ids\", I64 [1, 512], needs a decision: --assign \
         'embeddings.position_ids=I32' takes its values where I32 holds them, --skip 'embeddings.position_ids' \
         leaves it out\n"
    );
    assert!(!std::path::Path::new(&out).exists());
    succeed(&["pack", SLICE, "-o", &out, "--skip", "*.position_ids", "--default", "W8G32_F16S", "-q"]);
    succeed(&["verify", &out]);
}

#[test]
fn a_spoiled_payload_is_found() {
    let folder = folder();
    let out = path(&folder, "slice.ninfer");
    succeed(&["pack", "-o", &out, "-q"]);
    let mut bytes = std::fs::read(&out).unwrap();
    let (offset, plan) = {
        let artifact = Artifact::new(&bytes).unwrap();
        let object = artifact.object("embeddings.word_embeddings.weight").unwrap();
        (artifact.directory().file_offset(object), *object.plan().unwrap())
    };
    // The scale of row 33, group 2 becomes a NaN.
    let at = offset + plan.scales().offset + 33 * plan.scales().row_bytes + 2 * 2;
    bytes[at as usize..][..2].copy_from_slice(&0x7e00u16.to_le_bytes());
    std::fs::write(&out, &bytes).unwrap();
    let call = call(&["verify", &out]);
    assert_eq!(call.code, Some(1));
    let expected = "object \"embeddings.word_embeddings.weight\": row 33, group 2: scale word 0x7e00 is NaN";
    assert!(call.stderr.contains(expected), "{}", call.stderr);
}
