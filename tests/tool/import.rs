//! Ready-made words: taken word for word or refused with the reason.

use safetensors::{Dtype, SafeTensors};

use crate::support::{checkpoint, f32_bytes, fail, folder, listing, path, succeed};

const READY_MADE: &str = "examples/data/minilm-nvfp4-fp8.safetensors";

/// A tensor of a checkpoint.
type Tensor<'a> = (&'a str, Dtype, &'a [usize], &'a [u8]);

/// Packs what must be refused; gives the message.
fn refuse(tensors: &[Tensor<'_>], arguments: &[&str]) -> String {
    let folder = folder();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    checkpoint(&input, tensors);
    let message = fail(1, &[&["pack", &input, "-o", &out][..], arguments].concat());
    assert_eq!(listing(&folder), ["in.safetensors"]);
    message
}

/// Packs, unpacks with `--words`, and compares every tensor.
fn assert_same_words(tensors: &[Tensor<'_>]) {
    let folder = folder();
    let (input, out, back) =
        (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"), path(&folder, "back.safetensors"));
    checkpoint(&input, tensors);
    succeed(&["pack", &input, "-o", &out]);
    succeed(&["verify", &out]);
    succeed(&["unpack", &out, "-o", &back, "--words"]);
    assert_same_tensors(&std::fs::read(input).unwrap(), &std::fs::read(back).unwrap());
}

fn assert_same_tensors(one: &[u8], other: &[u8]) {
    let (one, other) = (SafeTensors::deserialize(one).unwrap(), SafeTensors::deserialize(other).unwrap());
    assert_eq!(one.len(), other.len());
    for (name, view) in one.iter() {
        let back = other.tensor(name).unwrap();
        assert_eq!((view.dtype(), view.shape()), (back.dtype(), back.shape()), "{name}");
        assert!(view.data() == back.data(), "{name}: the words differ");
    }
}

#[test]
fn the_bundled_words_come_back_byte_for_byte() {
    let folder = folder();
    let (out, back) = (path(&folder, "out.ninfer"), path(&folder, "back.safetensors"));
    succeed(&["pack", READY_MADE, "-o", &out]);
    succeed(&["unpack", &out, "-o", &back, "--words"]);
    let (source, back) = (std::fs::read(READY_MADE).unwrap(), std::fs::read(back).unwrap());
    assert_same_tensors(&source, &back);
    // Behind the headers the files are one: the order of the tensors is the library's too.
    let data = |file: &[u8]| file[8 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize..].to_vec();
    assert!(data(&source) == data(&back));
}

#[test]
fn every_word_survives() {
    let codes: Vec<u8> = (0..256 * 32).map(|index: u32| (index * 7 + index / 256) as u8).collect();
    let scales: Vec<u8> = (0..256 * 4).map(|index: u32| (index % 0x7f) as u8).collect(); // every legal word
    let divisor = 0x0000_0001u32.to_le_bytes(); // the least positive FP32
    assert_same_words(&[
        ("a.weight_packed", Dtype::U8, &[256, 32], &codes),
        ("a.weight_scale", Dtype::F8_E4M3, &[256, 4], &scales),
        ("a.weight_global_scale", Dtype::F32, &[1], &divisor),
        ("a.input_global_scale", Dtype::F32, &[1], &divisor),
        ("b.input_scale", Dtype::BF16, &[1], &[1, 2]),
    ]);
    let codes: Vec<u8> = (0..=255u8).filter(|word| word & 0x7f != 0x7f).collect();
    let scales: Vec<u8> = [0x0001u16, 0x7f7f, 0x3f80].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_same_words(&[
        ("weight", Dtype::F8_E4M3, &[3, 254], &[&codes[..], &codes, &codes].concat()),
        ("weight_scale", Dtype::BF16, &[3, 1], &scales),
    ]);
}

#[test]
fn row_scales_may_have_one_dimension_or_be_exact_fp32() {
    let folder = folder();
    let codes = [0x38, 0xb8, 0x01, 0x00];
    let mut files = Vec::new();
    let scales = f32_bytes(&[0.5, 1.5]);
    let words: Vec<u8> = [0x3f00u16, 0x3fc0].iter().flat_map(|word| word.to_le_bytes()).collect();
    for (dtype, shape, scales) in [
        (Dtype::BF16, &[2, 1][..], &words),
        (Dtype::BF16, &[2], &words),
        (Dtype::F32, &[2, 1], &scales),
        (Dtype::F32, &[2], &scales),
    ] {
        let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
        checkpoint(
            &input,
            &[("x.weight", Dtype::F8_E4M3, &[2, 2], &codes), ("x.weight_scale", dtype, shape, scales)],
        );
        succeed(&["pack", &input, "-o", &out]);
        files.push(std::fs::read(out).unwrap());
    }
    assert!(files.windows(2).all(|pair| pair[0] == pair[1]));
    let message = refuse(
        &[
            ("x.weight", Dtype::F8_E4M3, &[2, 2], &codes),
            ("x.weight_scale", Dtype::F32, &[2, 1], &f32_bytes(&[0.5, 0.3])),
        ],
        &[],
    );
    assert!(
        message.contains("\"x.weight_scale\", row 1: scale 3e-1 (word 0x3e99999a) is not exactly a BF16"),
        "{message}"
    );
}

#[test]
fn model_opt_is_explained() {
    let (codes, scales, scale) = ([0; 128 * 32], [0x38; 128 * 4], f32_bytes(&[0.001]));
    let message = refuse(
        &[
            ("x.weight", Dtype::U8, &[128, 32], &codes),
            ("x.weight_scale", Dtype::F8_E4M3, &[128, 4], &scales),
            ("x.weight_scale_2", Dtype::F32, &[], &scale),
        ],
        &[],
    );
    assert!(
        message.contains("\"x.weight_scale_2\": multiplies the block scales, as ModelOpt writes it"),
        "{message}"
    );
    assert!(message.contains("the reciprocal of x.weight_scale_2 is not exact"), "{message}");
}

#[test]
fn words_that_do_not_fit_are_refused() {
    let codes = [0; 130 * 32];
    let scales = [0x38; 130 * 4];
    let one = f32_bytes(&[1.0]);
    let packed = |rows: usize, divisor: &'static [usize]| -> Vec<Tensor<'_>> {
        vec![
            (
                "x.weight_packed",
                Dtype::U8,
                if rows == 130 { &[130, 32] } else { &[128, 32] },
                &codes[..rows * 32],
            ),
            (
                "x.weight_scale",
                Dtype::F8_E4M3,
                if rows == 130 { &[130, 4] } else { &[128, 4] },
                &scales[..rows * 4],
            ),
            ("x.weight_global_scale", Dtype::F32, divisor, &one),
        ]
    };
    let message = refuse(&packed(130, &[1]), &[]);
    assert!(
        message.contains("\"x.weight\"") && message.contains("130") && message.contains("multiple of 128"),
        "{message}"
    );

    let message = refuse(&packed(128, &[1])[..2], &[]);
    assert!(message.contains("needs x.weight_global_scale, which the checkpoint lacks"), "{message}");

    let mut wrong = packed(128, &[1]);
    wrong[1] = ("x.weight_scale", Dtype::F8_E4M3, &[128, 8], &codes[..1024]);
    let message = refuse(&wrong, &[]);
    assert!(message.contains("x.weight_scale is F8_E4M3 [128, 8]; NVFP4 is"), "{message}");

    let mut foreign = packed(128, &[1]);
    foreign.push(("x.weight_zero_point", Dtype::F32, &[1], &one));
    assert!(refuse(&foreign, &[]).contains("x.weight_zero_point changes what the words mean"));

    let message = refuse(&packed(128, &[1]), &["--assign", "x.weight=Q4G64_F16S"]);
    assert!(message.contains("ready-made NVFP4 and is never quantized again"), "{message}");

    let zero = f32_bytes(&[0.0]);
    let mut illegal = packed(128, &[1]);
    illegal[2].3 = &zero;
    assert!(refuse(&illegal, &[]).contains("\"x.weight_packed\", divisor word 0x00000000 is zero"));

    let mut spoiled = scales;
    spoiled[70 * 4 + 2] = 0x80;
    let mut illegal = packed(128, &[1]);
    illegal[1].3 = &spoiled[..128 * 4];
    assert!(refuse(&illegal, &[]).contains("row 70, group 2: scale word 0x0080 is negative zero"));

    let block = [0; 16 * 16];
    for shape in [&[1][..], &[]] {
        let message = refuse(
            &[("x.weight", Dtype::F8_E4M3, &[16, 16], &block), ("x.weight_scale", Dtype::F32, shape, &one)],
            &[],
        );
        assert!(message.contains("one BF16 multiplier for each of the 16 rows, shape [16, 1]"), "{message}");
    }
    let mut codes = vec![0x38; 4000 * 64];
    codes[3999 * 64 + 63] = 0x7f;
    let scales: Vec<u8> = std::iter::repeat_n([0x80, 0x3f], 4000).flatten().collect();
    let message = refuse(
        &[
            ("x.weight", Dtype::F8_E4M3, &[4000, 64], &codes),
            ("x.weight_scale", Dtype::BF16, &[4000, 1], &scales),
        ],
        &[],
    );
    assert!(message.contains("\"x.weight\", row 3999, column 63: code 0x7f is not legal"), "{message}");
}
