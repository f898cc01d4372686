//! What becomes of each tensor: defaults, flags, and refusals.

use ninfer_artifact::Artifact;
use safetensors::Dtype;

use crate::support::{checkpoint, f32_bytes, fail, folder, listing, path, succeed};

/// Packs one tensor `t` with more arguments; gives the format it got.
fn pack(dtype: Dtype, shape: &[usize], bytes: &[u8], arguments: &[&str]) -> &'static str {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    checkpoint(&input, &[("t", dtype, shape, bytes)]);
    succeed(&[&["pack", &input, "-o", &out][..], arguments].concat());
    succeed(&["verify", &out]);
    let bytes = std::fs::read(out).unwrap();
    Artifact::new(&bytes).unwrap().directory().objects()[0].plan().unwrap().format().name()
}

/// Packs one tensor `t`, which must be refused without leaving a file; gives the message.
fn refuse(code: i32, dtype: Dtype, shape: &[usize], bytes: &[u8], arguments: &[&str]) -> String {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    checkpoint(&input, &[("t", dtype, shape, bytes)]);
    let stderr = fail(code, &[&["pack", &input, "-o", &out][..], arguments].concat());
    assert_eq!(listing(&folder), ["in.safetensors"]);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

#[test]
fn defaults() {
    assert_eq!(pack(Dtype::F32, &[2, 2], &[0; 16], &[]), "Q4G64_F16S");
    assert_eq!(pack(Dtype::F64, &[2, 2], &[0; 32], &[]), "Q4G64_F16S");
    assert_eq!(pack(Dtype::F16, &[2, 2], &[0; 8], &["--default", "Q6G64_F16S"]), "Q6G64_F16S");
    assert_eq!(pack(Dtype::BF16, &[2, 2], &[0; 8], &["--default", "BF16"]), "BF16");
    assert_eq!(pack(Dtype::BF16, &[4], &[0; 8], &[]), "BF16");
    assert_eq!(pack(Dtype::F32, &[1, 2, 2], &[0; 16], &[]), "FP32");
    assert_eq!(pack(Dtype::F32, &[], &[0; 4], &[]), "FP32");
    assert_eq!(pack(Dtype::I32, &[2, 2], &[0; 16], &[]), "I32");
}

#[test]
fn what_needs_a_decision() {
    for (dtype, shape, bytes, flag) in [
        (Dtype::F16, &[4][..], &[0; 8][..], "--assign 't=FP32'"),
        (Dtype::F64, &[1], &[0; 8], "--assign 't=FP32'"),
        (Dtype::I64, &[1, 1], &[0; 8], "--assign 't=I32'"),
        (Dtype::U8, &[8], &[0; 8], "--assign 't=I32'"),
        (Dtype::BOOL, &[8], &[0; 8], "--skip 't'"),
        (Dtype::F8_E4M3, &[2, 4], &[0; 8], "--skip 't'"),
    ] {
        let message = refuse(1, dtype, shape, bytes, &[]);
        assert!(message.contains("\"t\"") && message.contains(flag), "{message}");
        if let Some(assign) = flag.strip_prefix("--assign ") {
            pack(dtype, shape, bytes, &["--assign", assign.trim_matches('\'')]);
        }
    }
}

#[test]
fn only_exact_values_change_their_type() {
    let exact = f32_bytes(&[1.0, -0.5, f32::INFINITY]);
    assert_eq!(pack(Dtype::F32, &[1, 3], &exact, &["--assign", "t=BF16"]), "BF16");
    let inexact = f32_bytes(&[1.0, 2.0, 1.0, 1.001]);
    let message = refuse(1, Dtype::F32, &[2, 2], &inexact, &["--assign", "t=BF16"]);
    assert!(
        message.contains("\"t\", row 1, column 1: F32 word 0x3f8020c5 is not exact in BF16"),
        "{message}"
    );
    let whole = f32_bytes(&[1.0, -7.0]);
    assert_eq!(pack(Dtype::F32, &[2], &whole, &["--assign", "t=I32"]), "I32");
    let large = (1i64 << 31).to_le_bytes();
    let message = refuse(1, Dtype::I64, &[1], &large, &["--assign", "t=I32"]);
    assert!(message.contains("row 0, column 0: I64 word 0x80000000 is not exact in I32"), "{message}");
}

#[test]
fn faults_in_the_data_are_placed() {
    let mut values = vec![0.25f32; 3 * 3000];
    values[2 * 3000 + 2999] = f32::NAN;
    let message = refuse(1, Dtype::F32, &[3, 3000], &f32_bytes(&values), &[]);
    assert!(message.contains("\"t\", row 2, column 2999: source word 0x7fc00000 is not finite"), "{message}");
    let message = refuse(1, Dtype::F32, &[1, 2], &f32_bytes(&[0.0, 1e6]), &["--assign", "t=Q4G64_F16S"]);
    assert!(message.contains("row 0, group 0: scale") && message.contains("--assign 't=FP32'"), "{message}");
}

#[test]
fn impossible_assignments() {
    let zeros = [0; 16];
    for (shape, format, part) in [
        (&[4][..], "Q4G64_F16S", "--assign 't=BF16'"),
        (&[2, 2], "NVFP4", "no canonical encoder"),
        (&[2, 2], "FP8_E4M3FN_ROW_BF16S", "no canonical encoder"),
    ] {
        let message = refuse(1, Dtype::F32, shape, &zeros, &["--assign", &format!("t={format}")]);
        assert!(message.contains(part), "{message}");
    }
    let message = refuse(1, Dtype::I32, &[2, 2], &zeros, &["--assign", "t=Q4G64_F16S"]);
    assert!(message.contains("assign I32"), "{message}");
    let message = refuse(1, Dtype::F32, &[0, 2], &[], &[]);
    assert!(message.contains("dimension 0 is zero") && message.contains("--skip 't'"), "{message}");
}

#[test]
fn slips_of_the_pen_are_usage_errors() {
    let zeros = [0; 16];
    for (arguments, part) in [
        (["--assign", "t"], "write GLOB=FORMAT"),
        (["--assign", "t=Q4"], "there is no format \"Q4\"; the formats are BF16, FP32"),
        (["--assign", "x*=BF16"], "matches no tensor"),
        (["--skip", "[a"], "--skip '[a'"),
        (["--default", "NVFP4"], "cannot be made from float values"),
        (["--default", "q4g64_f16s"], "there is no format"),
    ] {
        let message = refuse(2, Dtype::F32, &[2, 2], &zeros, &arguments);
        assert!(message.contains(part), "{message}");
    }
}
