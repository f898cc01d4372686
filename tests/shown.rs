//! What the types show of themselves: kinds and numbers, never the values.

use half::{bf16, f16};
use ninfer_codec::layout::PlaneKind;
use ninfer_codec::{Format, Output, Plan, Source, Tensor, TensorMut, Words, WordsMut};

#[test]
fn values_show_their_type_and_number() {
    let (brain, half) = ([bf16::ONE; 3], [f16::ONE; 4]);
    for (source, text, len) in [
        (Source::from(&[1.5f32; 2][..]), "Source(2 x f32)", 2),
        (Source::from(&brain[..]), "Source(3 x bf16)", 3),
        (Source::from(&half[..]), "Source(4 x f16)", 4),
        (Source::from(&[0.0f64; 0][..]), "Source(0 x f64)", 0),
    ] {
        assert_eq!((format!("{source:?}").as_str(), source.len(), source.is_empty()), (text, len, len == 0));
    }
    let (mut brain, mut half) = ([bf16::ONE; 3], [f16::ONE; 4]);
    for (output, text, len) in [
        (Output::from(&mut [1.5f32; 2][..]), "Output(2 x f32)", 2),
        (Output::from(&mut brain[..]), "Output(3 x bf16)", 3),
        (Output::from(&mut half[..]), "Output(4 x f16)", 4),
        (Output::from(&mut [0.0f64; 0][..]), "Output(0 x f64)", 0),
    ] {
        assert_eq!((format!("{output:?}").as_str(), output.len(), output.is_empty()), (text, len, len == 0));
    }
}

#[test]
fn words_show_their_kind_and_numbers() {
    let (mut short, mut long, mut whole, mut divisor) = ([0u16; 2], [0u32; 3], [0i32; 4], 0);
    let (mut bytes, mut scales, mut signed) = ([0u8; 5], [0u8; 1], [0i8; 6]);
    for (words, text) in [
        (Words::Bf16(&short), "Bf16(2 codes, 0 scales)"),
        (Words::Fp32(&long), "Fp32(3 codes, 0 scales)"),
        (Words::I32(&whole), "I32(4 codes, 0 scales)"),
        (Words::Grouped { codes: &signed, scales: &short }, "Grouped(6 codes, 2 scales)"),
        (Words::Nvfp4 { codes: &bytes, scales: &scales, divisor }, "Nvfp4(5 codes, 1 scales)"),
        (Words::Fp8Row { codes: &bytes, scales: &short }, "Fp8Row(5 codes, 2 scales)"),
    ] {
        assert_eq!(format!("{words:?}"), format!("Words::{text}"));
    }
    let shown = |words: WordsMut<'_>| format!("{words:?}");
    assert_eq!(shown(WordsMut::Bf16(&mut short)), "WordsMut::Bf16(2 codes, 0 scales)");
    assert_eq!(shown(WordsMut::Fp32(&mut long)), "WordsMut::Fp32(3 codes, 0 scales)");
    assert_eq!(shown(WordsMut::I32(&mut whole)), "WordsMut::I32(4 codes, 0 scales)");
    let grouped = WordsMut::Grouped { codes: &mut signed, scales: &mut short };
    assert_eq!(shown(grouped), "WordsMut::Grouped(6 codes, 2 scales)");
    let nvfp4 = WordsMut::Nvfp4 { codes: &mut bytes, scales: &mut scales, divisor: &mut divisor };
    assert_eq!(shown(nvfp4), "WordsMut::Nvfp4(5 codes, 1 scales)");
    let fp8 = WordsMut::Fp8Row { codes: &mut bytes, scales: &mut short };
    assert_eq!(shown(fp8), "WordsMut::Fp8Row(5 codes, 2 scales)");
}

#[test]
fn views_show_their_plan_and_rows() {
    let plan = Plan::new(Format::Bf16, Format::Bf16.layout(), &[3, 1]).unwrap();
    let mut payload = [0x5a; 6];
    let tensor = Tensor::new(plan, &payload).unwrap().rows(1, 2).unwrap();
    assert_eq!(format!("{tensor:?}"), format!("Tensor {{ plan: {plan:?}, rows: 1..3, .. }}"));
    assert_eq!(tensor.plan(), &plan);
    let tensor = TensorMut::new(plan, &mut payload).unwrap();
    assert_eq!(format!("{tensor:?}"), format!("TensorMut {{ plan: {plan:?}, rows: 0..3, .. }}"));
    assert_eq!(tensor.plan(), &plan);
    let names = [PlaneKind::Codes, PlaneKind::High, PlaneKind::Scales].map(PlaneKind::name);
    assert_eq!(names, ["codes", "high", "scales"]);
}
