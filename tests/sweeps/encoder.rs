//! Every binary16 scale, from every side: the amax values around the one that leads to it exactly and around both ends
//! of the interval that does, through the whole encoder of each format.

use std::time::Instant;

use ninfer_codec::{Error, Format, Tensor, TensorMut, WordsMut};

use crate::each_backend;
use crate::oracle::encode::{Source, encode_row};
use crate::oracle::words::f16_to_f32;
use crate::support::{GROUPED, Random, oracle_format, plan};

/// Values that a group repeats.
const VALUES: usize = 8;
/// Rows that are encoded at a time.
const ROWS: usize = 3000;

/// One group's values, and what the oracle makes of them.
struct Case {
    words: [u32; VALUES],
    expected: Option<([i8; VALUES], u16)>,
}

/// The cases of one scale: around its own amax, and around the midpoints to its neighbours.
fn cases(format: Format, scale: u16, random: &mut Random) -> Vec<Case> {
    let scheme = format.scheme().unwrap();
    let qmax = f64::from(scheme.code_max());
    let value = |word: u16| match word {
        0x7c00 => 65536.0,
        _ => f64::from(f32::from_bits(f16_to_f32(word))),
    };
    let (below, own, above) = (value(scale - 1), value(scale), value(scale + 1));
    let mut cases = vec![];
    for centre in [(below + own) / 2.0, own, (own + above) / 2.0] {
        let centre = ((centre * qmax) as f32).to_bits();
        for amax in centre - 2..=centre + 2 {
            let amax_value = f32::from_bits(amax);
            let sign = |random: &mut Random| (random.below(2) << 31) as u32;
            // Half-way between two codes if the scale is `own`, or a step off.
            let tie = |random: &mut Random, off: i64| {
                let code = random.below(scheme.code_max() as u64) as f32 + 0.5;
                let word = (code * own as f32).min(amax_value).to_bits();
                (i64::from(word) + off).clamp(0, amax.into()) as u32 | sign(random)
            };
            let mut words = [
                amax | sign(random),
                tie(random, 0),
                tie(random, 0),
                tie(random, 1),
                tie(random, -1),
                random.below(u64::from(amax) + 1) as u32 | sign(random),
                1 << 31,
                amax | 1 << 31,
            ];
            words.rotate_left(random.below(VALUES as u64) as usize);
            let source: Vec<u64> = words.iter().map(|&word| word.into()).collect();
            let expected = encode_row(oracle_format(format), Source::F32, 0, &source)
                .ok()
                .map(|(codes, scales)| (std::array::from_fn(|index| codes[index] as i8), scales[0] as u16));
            cases.push(Case { words, expected });
        }
    }
    cases
}

fn check(format: Format, cases: &[Case], backend: &str) {
    let group = format.scheme().unwrap().group() as usize;
    let plan = plan(format, &[cases.len() as u64, group as u64]);
    let values: Vec<f32> = cases
        .iter()
        .flat_map(|case| case.words.iter().cycle().take(group).map(|&word| f32::from_bits(word)))
        .collect();
    let mut payload = vec![0xa5; plan.payload_bytes() as usize];
    TensorMut::new(plan, &mut payload).unwrap().quantize(&values[..], group).unwrap();
    let tensor = Tensor::new(plan, &payload).unwrap();
    tensor.validate().unwrap();
    let (mut codes, mut scales) = (vec![99; values.len()], vec![0; cases.len()]);
    tensor.unpack(WordsMut::Grouped { codes: &mut codes, scales: &mut scales }).unwrap();
    for ((case, codes), scale) in cases.iter().zip(codes.chunks(group)).zip(scales) {
        let (expected, expected_scale) = case.expected.unwrap();
        assert_eq!(scale, expected_scale, "{backend}, {}: {:08x?}", format.name(), case.words);
        for codes in codes.chunks(VALUES) {
            assert_eq!(codes, expected, "{backend}, {}: {:08x?}", format.name(), case.words);
        }
    }
}

fn check_refused(format: Format, case: &Case, backend: &str) {
    let group = format.scheme().unwrap().group() as usize;
    let plan = plan(format, &[1, group as u64]);
    let values: Vec<f32> = case.words.iter().cycle().take(group).map(|&word| f32::from_bits(word)).collect();
    let mut payload = vec![0xa5; plan.payload_bytes() as usize];
    let result = TensorMut::new(plan, &mut payload).unwrap().quantize(&values[..], group);
    assert!(matches!(result, Err(Error::ScaleOverflow { row: 0, group: 0, .. })), "{backend}: {result:?}");
}

#[test]
#[ignore = "minutes: run it in release, as the file says"]
fn every_binary16_scale_through_the_encoder() {
    for format in GROUPED {
        let begin = Instant::now();
        let mut random = Random(7);
        let all: Vec<Case> = (1..0x7c00).flat_map(|scale| cases(format, scale, &mut random)).collect();
        let (legal, refused): (Vec<_>, Vec<_>) = all.into_iter().partition(|case| case.expected.is_some());
        // Each scale there is was reached, and the end of the range passed.
        let mut reached = vec![false; 0x7c00];
        for case in &legal {
            reached[usize::from(case.expected.unwrap().1)] = true;
        }
        assert!(reached[1..].iter().all(|&reached| reached) && !refused.is_empty());
        println!(
            "{}: {} groups, {} of them refused; the oracle: {:.1} s",
            format.name(),
            legal.len() + refused.len(),
            refused.len(),
            begin.elapsed().as_secs_f64()
        );
        each_backend(format.name(), |backend| {
            legal.chunks(ROWS).for_each(|cases| check(format, cases, backend));
            refused.iter().for_each(|case| check_refused(format, case, backend));
        });
    }
}
