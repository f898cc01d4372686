//! Validation: flipped bytes are reported where the oracle reports them, whole and by ranges.

mod oracle;
mod support;

use ninfer_codec::{Error, Format, Tensor};

use oracle::rows::Range;
use oracle::{Fault, validate};
use support::{Random, as_fault, assert_reason, assert_same, legal_payload, oracle_format, plan};

/// Shapes with and without padding lanes, physical groups and gaps.
fn shapes(format: Format) -> &'static [&'static [u64]] {
    match format {
        Format::Bf16 | Format::Fp32 | Format::I32 => &[&[], &[7], &[3, 5], &[2, 3, 4]],
        Format::Nvfp4 => &[&[128, 64], &[256, 64], &[128, 192]],
        Format::Fp8E4M3FnRowBf16S => &[&[1, 1], &[3, 7], &[4, 64], &[5, 67]],
        _ => &[&[1, 1], &[3, 33], &[2, 64], &[3, 70], &[4, 128], &[2, 130], &[1, 193]],
    }
}

const FLIPS: usize = 500;

/// Flips of bits of one byte, spread over the payload but for the first rounds, which look at its ends.
fn flips(format: Format) {
    let mut random = Random(u64::from(format.id()));
    let (mut illegal, mut clean) = (0, 0);
    let shapes = shapes(format);
    for round in 0..FLIPS {
        let shape = shapes[round % shapes.len()];
        // Codes and scales differ from one payload to the next; zero scales come often.
        let (_, mut payload) = legal_payload(format, shape, &mut random);
        let plan = plan(format, shape);
        let tensor = Tensor::new(plan, &payload).unwrap();
        assert_eq!(tensor.validate(), Ok(()), "{} {shape:?}", format.name());
        let planes = [plan.codes(), plan.high(), plan.scales()];
        let at = match round % 5 {
            // Scales and the divisor are few bytes; without this they would seldom be hit.
            0 if plan.scales().bytes > 0 => plan.scales().offset + random.below(plan.scales().bytes),
            1 if plan.divisor().bytes > 0 => plan.divisor().offset + random.below(4),
            // The gaps: where a plane ends and the next has not begun.
            2 => planes.iter().map(|plane| plane.offset + plane.bytes).nth(random.below(2) as usize).unwrap(),
            _ => random.below(plan.payload_bytes()),
        };
        let at = at.min(plan.payload_bytes() - 1) as usize;
        let mask = if random.one_in(2) { 1 << random.below(8) } else { 1 + random.below(255) as u8 };
        payload[at] ^= mask;
        let tensor = Tensor::new(plan, &payload).unwrap();
        let expected = validate::validate(oracle_format(format), shape, &payload, None);
        let got = tensor.validate();
        assert_same(format, &got, &expected);
        if got.is_ok() {
            clean += 1;
        } else {
            illegal += 1;
        }
        if round % 4 == 0 {
            ranges(format, shape, &payload, &tensor, &mut random);
        }
    }
    assert_eq!(illegal + clean, FLIPS);
    match format {
        Format::Bf16 | Format::Fp32 | Format::I32 => assert_eq!(illegal, 0),
        _ => assert!(illegal > 50 && clean > 50, "{}: {illegal} illegal, {clean} clean", format.name()),
    }
}

/// Every range of a split reports its own first violation, and the least of them is the whole's.
fn ranges(format: Format, shape: &[u64], payload: &[u8], whole: &Tensor<'_>, random: &mut Random) {
    let plan = whole.plan();
    let step = u64::from(format.descriptor().group.unwrap_or(1));
    let row_cuts = cuts(plan.rows(), 1, random);
    let column_cuts = cuts(plan.columns(), step, random);
    let mut least: Option<Error> = None;
    for rows in row_cuts.windows(2) {
        let (begin, count) = (rows[0], rows[1] - rows[0]);
        let view = whole.rows(begin, count).unwrap();
        for columns in column_cuts.windows(2) {
            let (col_begin, col_count) = (columns[0], columns[1] - columns[0]);
            let got = view.validate_columns(col_begin, col_count);
            let range = Range { begin, count, col_begin, col_count };
            let expected = validate::validate(oracle_format(format), shape, payload, Some(range));
            assert_same(format, &got, &expected);
            if let Err(error) = got {
                least = Some(match least {
                    Some(other) if order(other) <= order(error) => other,
                    _ => error,
                });
            }
        }
    }
    assert_eq!(least, whole.validate().err(), "{} {shape:?}", format.name());
}

/// Ends of random ranges that cover `0..end`.
fn cuts(end: u64, step: u64, random: &mut Random) -> Vec<u64> {
    let mut cuts = vec![0, end];
    for _ in 0..3 {
        cuts.push(random.below(end.div_ceil(step)) * step);
    }
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Where a violation stands among all: phase, row, scale words before codes, group or column, kind at one column.
fn order(error: Error) -> (u8, u64, u8, u64, u8) {
    match error {
        Error::InvalidDivisor { .. } => (0, 0, 0, 0, 0),
        Error::InvalidScale { row, group, .. } => (1, row, 0, group, 0),
        Error::InvalidCode { row, column, .. } => (1, row, 1, column, 0),
        Error::ZeroScaleNonzeroCode { row, column, .. } => (1, row, 1, column, 1),
        // Only one padding violation at most comes of one flip, so their order among themselves is not asked.
        Error::PaddingCodeNotZero { row, column, .. } => (2, row, 0, column, 0),
        Error::PaddingScaleNotZero { row, group, .. } => (2, row, 0, group, 0),
        Error::GapNotZero { offset, .. } => (3, offset, 0, 0, 0),
        error => panic!("{error:?} is no violation"),
    }
}

#[test]
fn flips_of_direct_formats_are_clean() {
    for format in [Format::Bf16, Format::Fp32, Format::I32] {
        flips(format);
    }
}

#[test]
fn flips_of_q4() {
    flips(Format::Q4G64F16S);
}

#[test]
fn flips_of_q5() {
    flips(Format::Q5G64F16S);
}

#[test]
fn flips_of_q6() {
    flips(Format::Q6G64F16S);
}

#[test]
fn flips_of_w8() {
    flips(Format::W8G32F16S);
}

#[test]
fn flips_of_nvfp4() {
    flips(Format::Nvfp4);
}

#[test]
fn flips_of_fp8_rows() {
    flips(Format::Fp8E4M3FnRowBf16S);
}

/// Many faults in one payload: the first in the contract's order is reported, by every range too.
#[test]
fn the_first_of_many_violations_is_reported() {
    for format in support::QUANTIZED {
        let mut random = Random(99);
        for round in 0..60 {
            let shape = shapes(format)[round % shapes(format).len()];
            let (_, mut payload) = legal_payload(format, shape, &mut random);
            for _ in 0..2 + random.below(12) {
                let at = random.below(payload.len() as u64) as usize;
                payload[at] = random.next() as u8;
            }
            if format == Format::Nvfp4 && round % 3 != 0 {
                // A wrong divisor hides everything else.
                let end = payload.len();
                payload[end - 4..].copy_from_slice(&1.0f32.to_le_bytes());
            }
            let tensor = Tensor::new(plan(format, shape), &payload).unwrap();
            let expected = validate::validate(oracle_format(format), shape, &payload, None);
            assert_same(format, &tensor.validate(), &expected);
        }
    }
}

/// Every byte of two small payloads, flipped one bit at a time: nothing is overlooked.
#[test]
fn every_bit_of_a_small_payload() {
    for (format, shape) in
        [(Format::Q5G64F16S, &[1, 70]), (Format::W8G32F16S, &[2, 33]), (Format::Fp8E4M3FnRowBf16S, &[2, 3])]
    {
        let (_, payload) = legal_payload(format, shape, &mut Random(4));
        for bit in 0..payload.len() * 8 {
            let mut flipped = payload.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let expected = validate::validate(oracle_format(format), shape, &flipped, None);
            let got = Tensor::new(plan(format, shape), &flipped).unwrap().validate();
            assert_same(format, &got, &expected);
        }
    }
}

#[test]
fn nvfp4_faults_have_the_matrix_s_coordinates() {
    let plan = plan(Format::Nvfp4, &[256, 128]);
    let (_, payload) = legal_payload(Format::Nvfp4, &[256, 128], &mut Random(8));
    // Offsets in the scale plane and what stands there.
    for (offset, row, group) in
        [(0, 0, 0), (16, 1, 0), (4, 32, 0), (22, 33, 2), (511, 127, 3), (512, 0, 4), (1024, 128, 0)]
    {
        let mut broken = payload.clone();
        broken[(plan.scales().offset + offset) as usize] = 0x80;
        let error = Tensor::new(plan, &broken).unwrap().validate().unwrap_err();
        assert_eq!(
            as_fault(Format::Nvfp4, error),
            Fault::InvalidScale { row, group: Some(group), word: 0x80 }
        );
        assert_reason(Format::Nvfp4, error);
    }
}

#[test]
fn an_illegal_code_comes_before_the_zero_scale_rule() {
    let plan = plan(Format::W8G32F16S, &[1, 32]);
    let mut payload = vec![0; plan.payload_bytes() as usize];
    payload[3] = 0x80;
    let tensor = Tensor::new(plan, &payload).unwrap();
    assert_eq!(tensor.validate(), Err(Error::InvalidCode { row: 0, column: 3, word: 0x80 }));
    payload[2] = 1;
    let tensor = Tensor::new(plan, &payload).unwrap();
    assert_eq!(tensor.validate(), Err(Error::ZeroScaleNonzeroCode { row: 0, column: 2, word: 1 }));
}
