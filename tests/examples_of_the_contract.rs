//! Worked numbers: sizes, offsets and words that are easy to get wrong, each with what must come out.

use ninfer_codec::layout::blockscale::scale_offset;
use ninfer_codec::{Error, Format, Layout, Plan, Tensor, TensorMut, Words, quantize_row};

fn plan(format: Format, shape: &[u64]) -> Plan {
    Plan::new(format, format.layout(), shape).unwrap()
}

/// Encodes one group of binary32 words by both ways in; returns its scale and codes.
fn encode(format: Format, words: &[u32]) -> (u16, Vec<i8>) {
    let values: Vec<f32> = words.iter().map(|&word| f32::from_bits(word)).collect();
    let (mut codes, mut scales) = (vec![99; values.len()], [0xa5a5]);
    quantize_row(format, 0, &values[..], &mut codes, &mut scales).unwrap();

    let plan = plan(format, &[1, values.len() as u64]);
    let mut payload = vec![0xa5; plan.payload_bytes() as usize];
    TensorMut::new(plan, &mut payload).unwrap().quantize(&values[..], values.len()).unwrap();
    let mut packed = vec![0x5a; plan.payload_bytes() as usize];
    let words = Words::Grouped { codes: &codes, scales: &scales };
    TensorMut::new(plan, &mut packed).unwrap().pack(words).unwrap();
    assert_eq!(payload, packed);
    (scales[0], codes)
}

#[test]
fn the_reciprocal_is_multiplied() {
    let mut group = [0; 64];
    group[..2].copy_from_slice(&[0x3ff6_8800, 0x3f76_87ff]);
    let (scale, codes) = encode(Format::Q4G64F16S, &group);
    assert_eq!(scale, 0x3467);
    assert_eq!(codes[1], 4); // division would give 3
    assert_eq!(codes[2..], [0; 62]);
}

#[test]
fn codes_are_chosen_by_the_rounded_scale() {
    let (scale, codes) = encode(Format::Q4G64F16S, &[0x3f05_5bee, 0x3e3e_7bb1]);
    assert_eq!((scale, codes[1]), (0x2cc3, 3)); // the unrounded scale would give 2
}

#[test]
fn a_scale_that_rounds_to_zero_is_rescued() {
    let tiny = [0x3460_0000, 0x3300_0000, 0xb3c0_0000];
    assert_eq!(encode(Format::Q4G64F16S, &tiny), (0x0001, vec![4, 0, -2]));
    for format in [Format::Q4G64F16S, Format::Q5G64F16S, Format::Q6G64F16S, Format::W8G32F16S] {
        assert_eq!(encode(format, &[0x0000_0001]), (0x0001, vec![0]));
        assert_eq!(encode(format, &[0x8000_0000, 0]), (0x0000, vec![0, 0]));
    }
}

#[test]
fn integral_rounding_goes_to_even() {
    let values = [7.0f32, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5].map(f32::to_bits);
    assert_eq!(encode(Format::Q4G64F16S, &values), (0x3c00, vec![7, 0, 0, 2, -2, 2, -2]));
}

#[test]
fn w8_rows_are_padded_to_128_columns() {
    let plan = plan(Format::W8G32F16S, &[3, 32]);
    let codes: Vec<i8> = (0..3).flat_map(|row| [row + 1; 32]).collect();
    let scales = [0x3c00, 0x4000, 0x4200];
    let mut payload = vec![0xa5; plan.payload_bytes() as usize];
    TensorMut::new(plan, &mut payload)
        .unwrap()
        .pack(Words::Grouped { codes: &codes, scales: &scales })
        .unwrap();
    assert_eq!(payload.len(), 536);
    let mut expected = vec![0; 536];
    for (row, word) in [(0, 1), (128, 2), (256, 3)] {
        expected[row..row + 32].fill(word);
    }
    for (at, scale) in [(512, 0x3c), (520, 0x40), (528, 0x42)] {
        expected[at + 1] = scale;
    }
    assert_eq!(payload, expected);
}

#[test]
fn nvfp4_divides_by_the_divisor() {
    let plan = plan(Format::Nvfp4, &[128, 64]);
    let words = Words::Nvfp4 { codes: &[0x22; 4096], scales: &[0x38; 512], divisor: 2.0f32.to_bits() };
    let mut payload = vec![0xa5; plan.payload_bytes() as usize];
    TensorMut::new(plan, &mut payload).unwrap().pack(words).unwrap();
    let tensor = Tensor::new(plan, &payload).unwrap();
    let (mut narrow, mut wide) = (vec![0.0f32; 8192], vec![0.0f64; 8192]);
    tensor.decode(&mut narrow[..], 64).unwrap();
    tensor.decode(&mut wide[..], 64).unwrap();
    assert!(narrow.iter().all(|&weight| weight == 0.5));
    assert!(wide.iter().all(|&weight| weight == 0.5));
}

#[test]
fn nvfp4_scales_lie_in_tiles() {
    const GROUPS: u64 = 128 / 16;
    let known = [((1, 0), 16), ((32, 0), 4), ((33, 2), 22), ((127, 3), 511), ((0, 4), 512), ((128, 0), 1024)];
    let plan = plan(Format::Nvfp4, &[256, 128]);
    for ((row, group), offset) in known {
        assert_eq!(scale_offset(row, group, GROUPS), offset);
        let mut scales = vec![0u8; 256 * GROUPS as usize];
        scales[(row * GROUPS + group) as usize] = 0x5a;
        let mut payload = vec![0xa5; plan.payload_bytes() as usize];
        let words = Words::Nvfp4 { codes: &[0; 256 * 64], scales: &scales, divisor: 1 };
        TensorMut::new(plan, &mut payload).unwrap().pack(words).unwrap();
        let plane = &payload[plan.scales().offset as usize..plan.divisor().offset as usize];
        assert_eq!(plane.iter().position(|&byte| byte != 0), Some(offset as usize));
    }
}

#[test]
fn the_swizzle_is_a_permutation() {
    for (rows, groups) in [(128, 4), (256, 12), (384, 8)] {
        let mut seen = vec![false; rows * groups];
        for row in 0..rows {
            for group in 0..groups {
                let offset = scale_offset(row as u64, group as u64, groups as u64) as usize;
                assert!(!std::mem::replace(&mut seen[offset], true), "({row}, {group})");
            }
        }
    }
}

#[test]
fn sizes_past_64_bits_overflow() {
    const ROWS: u64 = 1 << 32;
    assert_eq!(Plan::new(Format::Fp32, Layout::ContiguousLeV1, &[ROWS, ROWS]), Err(Error::Overflow));
    assert_eq!(Plan::new(Format::Nvfp4, Layout::BlockscaleK16M128x4V1, &[ROWS, ROWS]), Err(Error::Overflow));
    let format = Format::Q4G64F16S;
    assert_eq!(Plan::new(format, Layout::RowSplitK128V1, &[(1 << 58) - 1, 1]), Err(Error::Overflow));
    assert_eq!(Plan::new(Format::Bf16, Layout::ContiguousLeV1, &[1 << 63, 1]), Err(Error::Overflow));
    assert!(Plan::new(Format::Bf16, Layout::ContiguousLeV1, &[(1 << 63) - 1, 1]).is_ok());
    // The elements of every layout must fit, even where the bytes would.
    assert_eq!(Plan::new(format, Layout::RowSplitK128V1, &[ROWS, ROWS]), Err(Error::Overflow));
}

#[test]
fn worked_sizes() {
    let q5 = plan(Format::Q5G64F16S, &[2, 130]);
    assert_eq!((q5.padded_columns(), q5.physical_groups(), q5.logical_groups()), (256, 4, 3));
    assert_eq!((q5.codes().bytes, q5.high().bytes, q5.scales().bytes), (256, 64, 16));
    assert_eq!((q5.high().offset, q5.scales().offset, q5.payload_bytes()), (256, 512, 528));
    assert_eq!(plan(Format::Q4G64F16S, &[7168, 5120]).payload_bytes(), 19_496_960);
    assert_eq!(plan(Format::Bf16, &[]).payload_bytes(), 2);
    assert_eq!(plan(Format::I32, &[2, 3, 4]).payload_bytes(), 96);
}

#[test]
fn products_may_overflow_to_infinity() {
    let plan = plan(Format::Fp8E4M3FnRowBf16S, &[1, 4]);
    let mut payload = vec![0; plan.payload_bytes() as usize];
    let words = Words::Fp8Row { codes: &[0x7e, 0xfe, 0x80, 0x01], scales: &[0x7f7f] };
    TensorMut::new(plan, &mut payload).unwrap().pack(words).unwrap();
    let mut out = [0.0f32; 4];
    Tensor::new(plan, &payload).unwrap().decode(&mut out[..], 4).unwrap();
    assert_eq!(out[..2], [f32::INFINITY, f32::NEG_INFINITY]);
    assert_eq!(out[2].to_bits(), 0x8000_0000);
    assert!(out[3].is_finite());
}

/// Gaps, and NVFP4's divisor, are written with the last row and by no other range.
#[test]
fn only_the_last_row_brings_the_gaps() {
    let q5 = Plan::new(Format::Q5G64F16S, Layout::RowSplitK128V1, &[3, 64]).unwrap();
    let fp8 = Plan::new(Format::Fp8E4M3FnRowBf16S, Layout::RowScaleV1, &[3, 64]).unwrap();
    let nvfp4 = Plan::new(Format::Nvfp4, Layout::BlockscaleK16M128x4V1, &[256, 64]).unwrap();
    let write = |plan: Plan, begin: u64, count: u64, payload: &mut [u8]| {
        let mut whole = TensorMut::new(plan, payload).unwrap();
        let mut rows = whole.rows_mut(begin, count).unwrap();
        let n = count as usize;
        match plan.format() {
            Format::Q5G64F16S => rows.quantize(&vec![1.0f32; n * 64][..], 64).unwrap(),
            Format::Nvfp4 => {
                let (codes, scales) = (vec![0x22; n * 32], vec![0x38; n * 4]);
                rows.pack(Words::Nvfp4 { codes: &codes, scales: &scales, divisor: 0x3f80_0000 }).unwrap();
            }
            _ => rows.pack(Words::Fp8Row { codes: &vec![0x38; n * 64], scales: &vec![0x3f80; n] }).unwrap(),
        }
    };
    for (plan, last) in [(q5, 2), (fp8, 2), (nvfp4, 128)] {
        let mut payload = vec![0xa5; plan.payload_len().unwrap()];
        let mut shared = vec![true; payload.len()];
        for plane in [plan.codes(), plan.high(), plan.scales()] {
            shared[plane.offset as usize..][..plane.bytes as usize].fill(false);
        }
        assert!(shared.contains(&true), "{plan:?}");
        write(plan, 0, last, &mut payload);
        assert!(payload.iter().zip(&shared).all(|(&byte, &shared)| !shared || byte == 0xa5), "{plan:?}");
        write(plan, last, plan.rows() - last, &mut payload);
        assert!(payload.iter().zip(&shared).all(|(&byte, &shared)| !shared || byte != 0xa5), "{plan:?}");
        Tensor::new(plan, &payload).unwrap().validate().unwrap();
    }
}
