//! Formats, layouts, shapes and row ranges of any kind: a plan or the refusal that the oracle gives, which
//! computes sizes in 128 bits; and planes that neither overlap nor leave the payload.

#![no_main]

#[path = "input.rs"]
mod input;
#[path = "../../tests/oracle/mod.rs"]
mod oracle;
#[path = "../../tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use ninfer_codec::format::Category;
use ninfer_codec::layout::PlaneKind;
use ninfer_codec::{EncoderProfile, Error, Format, Layout, Plan, ResourceEncoding, ValueType, backend_name};

use input::{Input, assert_line, each_backend};
use support::{assert_same, oracle_format};

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    registry(&mut input);
    let format = input.pick(&Format::ALL);
    let layout = match input.byte() {
        own @ 0..200 if own % 8 != 7 => format.layout(),
        other => Layout::ALL[usize::from(other) % 4],
    };
    let rank = match input.byte() {
        rank @ 0..=18 => usize::from(rank),
        _ => 2,
    };
    let shape: Vec<u64> = (0..rank).map(|_| input.number()).collect();
    let oracle_layout = oracle::Layout::from_name(layout.name().as_bytes()).unwrap();
    let expected = oracle::layout::geometry(oracle_format(format), oracle_layout, &shape);
    let got = Plan::new(format, layout, &shape);
    assert_same(format, &got, &expected);
    match (got, expected) {
        (Ok(plan), Ok(geometry)) => {
            sizes(&plan, &geometry);
            rows(&plan, &shape, &mut input);
        }
        (Err(error), _) => numbers(error, layout, &shape),
        _ => unreachable!("compared above"),
    }
});

/// Names and ids of any kind.
fn registry(input: &mut Input<'_>) {
    let len = usize::from(input.byte() % 64);
    let id = u32::from(input.byte());
    let name = input.bytes(len);
    let known = |of: &str| of.as_bytes() == name;
    assert_eq!(Format::from_name(name).ok(), Format::ALL.into_iter().find(|format| known(format.name())));
    assert_eq!(Layout::from_name(name).ok(), Layout::ALL.into_iter().find(|layout| known(layout.name())));
    assert_eq!(EncoderProfile::from_name(name).is_ok(), known("MAXABS_F16_RECIP_RNE_V1"));
    assert_eq!(ResourceEncoding::from_name(name).is_ok(), known("raw-bytes-v1"));
    if let Err(unknown) = Format::from_name(name) {
        assert_line(&unknown);
    }
    let format = Format::from_id(id);
    assert_eq!(format.map(Format::id), (1..=9).contains(&id).then_some(id));
    assert_eq!(Layout::from_id(id).map(Layout::id), (1..=4).contains(&id).then_some(id));
    assert_eq!(ValueType::from_id(id).map(ValueType::id), (1..=4).contains(&id).then_some(id));
    assert_eq!(EncoderProfile::from_id(id).map(EncoderProfile::id), (id == 1).then_some(id));
    assert_eq!(ResourceEncoding::from_id(id).map(ResourceEncoding::id), (id == 1).then_some(id));
    if let Some(value) = ValueType::from_id(id) {
        let bits =
            |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().unwrap();
        assert_eq!(value.bytes() * 8, bits(value.name()));
    }
    if let Some(format) = format {
        let oracle = oracle_format(format);
        let facts = format.descriptor();
        assert_eq!(format.to_string(), format.name());
        assert_eq!(format.layout().to_string(), oracle.layout().name());
        assert_eq!(facts.code_bits, oracle.code_bits());
        assert_eq!(facts.group.map(u64::from), oracle.group());
        assert_eq!(facts.has_divisor, format == Format::Nvfp4);
        assert_eq!(facts.category == Category::Grouped, format.scheme().is_some());
        let [profile] = EncoderProfile::ALL;
        assert_eq!(profile.formats().contains(&format), format.scheme().is_some());
        assert_eq!(profile.name(), oracle::encode::PROFILE);
    }
    each_backend(|name| assert_eq!(backend_name(), name));
}

/// The plan's numbers are the oracle's; the planes follow one another inside the payload.
fn sizes(plan: &Plan, geometry: &oracle::layout::Geometry) {
    assert_eq!((plan.rows(), plan.columns()), (geometry.rows, geometry.k));
    assert_eq!(plan.elements(), geometry.elements);
    assert_eq!(plan.padded_columns(), geometry.k_pad);
    assert_eq!(plan.logical_groups(), geometry.logical_scales);
    assert_eq!(plan.physical_groups(), geometry.physical_scales);
    assert_eq!(plan.payload_bytes(), geometry.payload_bytes);
    assert_eq!(plan.alignment(), oracle::OBJECT_ALIGNMENT);
    let len = plan.payload_len();
    assert_eq!(len.is_ok(), plan.payload_bytes() <= isize::MAX as u64);
    match len {
        Ok(len) => assert_eq!(len as u64, plan.payload_bytes()),
        Err(error) => assert_eq!(error, Error::TooLarge { size: plan.payload_bytes() }),
    }
    for plane in &geometry.planes {
        let got = match plane.name {
            "word" | "base" | "code" => plan.codes(),
            "high" => plan.high(),
            "scale" => plan.scales(),
            _ => {
                let divisor = plan.divisor();
                assert_eq!((divisor.offset, divisor.bytes), (plane.offset, plane.bytes));
                continue;
            }
        };
        assert_eq!((got.offset, got.bytes), (plane.offset, plane.bytes), "{}", plane.name);
        if let Some(row_bytes) = plane.row_bytes {
            assert_eq!(got.row_bytes, row_bytes, "{}", plane.name);
        }
    }
    let (codes, high, scales, divisor) = (plan.codes(), plan.high(), plan.scales(), plan.divisor());
    let mut end = 0u128;
    let spans = [codes, high, scales].map(|plane| (plane.offset, plane.bytes));
    for (offset, bytes) in spans.into_iter().chain([(divisor.offset, divisor.bytes)]) {
        assert!(u128::from(offset) >= end || bytes == 0);
        end = end.max(u128::from(offset) + u128::from(bytes));
    }
    assert_eq!(end, plan.payload_bytes().into());
    for plane in [codes, high, scales] {
        assert_eq!(u128::from(plane.row_bytes) * u128::from(plan.rows()), plane.bytes.into());
    }
}

/// Row ranges of any kind, and the plans of other row counts.
fn rows(plan: &Plan, shape: &[u64], input: &mut Input<'_>) {
    let format = plan.format();
    let begin = input.number();
    let count = match input.byte() {
        0..64 => plan.rows().wrapping_sub(begin),
        _ => input.number(),
    };
    let expected = oracle::rows::view(oracle_format(format), shape, begin, count);
    let codes = plan.code_rows(begin, count);
    assert_same(format, &codes, &expected);
    let spans = plan.row_spans(begin, count);
    match (spans, &expected) {
        (Err(Error::NoRowView { plane }), Ok(_)) => {
            assert_eq!((format, plane, plane.name()), (Format::Nvfp4, PlaneKind::Scales, "scales"));
            assert_line(&Error::NoRowView { plane });
        }
        _ => {
            assert_same(format, &spans, &expected);
            assert!(format != Format::Nvfp4 || spans.is_err());
        }
    }
    if let Ok(views) = &expected {
        for &(plane, offset, bytes) in views {
            let got = match (plane, spans) {
                ("word" | "base" | "code", _) => codes.unwrap(),
                ("high", Ok(spans)) => spans.high,
                (_, Ok(spans)) => spans.scales,
                (_, Err(_)) => continue,
            };
            assert_eq!((got.offset, got.bytes), (offset, bytes), "{plane}");
        }
    }
    if let Err(error) = codes {
        assert_line(&error);
    }
    let other = plan.with_rows(count);
    if count == 0 {
        return assert_eq!(other, Err(Error::EmptyRows));
    }
    let expected = oracle::layout::geometry(
        oracle_format(format),
        oracle_format(format).layout(),
        &[count, plan.columns()],
    );
    assert_same(format, &other, &expected);
    if let (Ok(other), Ok(geometry)) = (other, expected) {
        sizes(&other, &geometry);
    }
}

/// A refusal names what is wrong.
fn numbers(error: Error, layout: Layout, shape: &[u64]) {
    assert_line(&error);
    match error {
        Error::UnsupportedPair { format, layout: asked } => {
            assert!(asked == layout && format.layout() != layout);
        }
        Error::WrongRank { layout: asked, rank } => {
            assert_eq!((asked, rank), (layout, shape.len() as u64));
        }
        Error::ZeroDimension { axis } => {
            assert_eq!(shape.iter().position(|&dimension| dimension == 0), Some(axis as usize));
        }
        Error::NotMultiple { axis, dimension, multiple } => {
            assert_eq!(shape[axis as usize], dimension);
            assert!([128, 64][axis as usize] == multiple && dimension % multiple != 0);
        }
        Error::Overflow => {}
        other => panic!("no refusal of a plan: {other:?}"),
    }
}
