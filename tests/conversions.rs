//! The explicit conversions between direct types, against the oracle's exact fractions.

mod oracle;
mod support;

use half::{bf16, f16};
use ninfer_codec::Error;
use ninfer_codec::convert::{
    i64_to_i32_exact, to_bf16_exact, to_bf16_nearest, to_f16_nearest, to_f32_exact, to_f32_nearest,
    to_i32_exact, u64_to_i32_exact,
};

use oracle::words::{self, BF16, F16, F32, F64, convert, exact};
use support::{Guarded, Random, SOURCES, SourceType, Values};

/// Source words where conversions differ: all words of the small types, ends, midpoints and NaNs of the large.
fn sources(source: SourceType) -> Vec<u64> {
    let mut random = Random(11);
    let mut list: Vec<u64> = match source {
        SourceType::Bf16 | SourceType::F16 => return (0..=0xffff).collect(),
        SourceType::F32 => (0..60_000).map(|_| random.next() >> 32).collect(),
        SourceType::F64 => (0..60_000).map(|_| random.next()).collect(),
    };
    let kind = source.kind();
    for round in 0..40_000 {
        // A value of a narrower type or the midpoint of two, and what lies next to it: a value is rounded once,
        // so a little above a midpoint is up, however little.
        let narrow = match (source, round % 3) {
            (SourceType::F64, 0) => F32,
            (_, 1) => F16,
            _ => BF16,
        };
        let word = random.below(narrow.infinity());
        let value = convert(word, narrow, kind);
        let half = 1 << (kind.fraction_bits - narrow.fraction_bits - 1);
        let near = random.pick(&[value, value + half]) + random.below(3);
        list.push((near - random.below(2).min(near)) | (random.below(2) * kind.sign_bit()));
        // NaNs whose payload fits the narrower type, or does not.
        let payload = random.next() % (1 << kind.fraction_bits);
        let fits = payload & !((1 << (kind.fraction_bits - narrow.fraction_bits)) - 1);
        list.push(
            kind.infinity() | random.pick(&[payload, fits, fits | 1]) | (random.below(2) * kind.sign_bit()),
        );
        // Whole numbers and halves around the ends of I32.
        let whole = random.pick(&[0.0, 1.0, 2147483647.0, 2147483648.0, 16777216.0, 12345.0, 4294967296.0]);
        let near = whole + random.below(7) as f64 / 2.0 - 1.5;
        list.push(convert(near.to_bits() | random.below(2) << 63, F64, kind));
    }
    for edge in [0, 1, kind.infinity() - 1, kind.infinity(), kind.infinity() + 1, kind.sign_bit() - 1] {
        list.extend([edge, edge | kind.sign_bit()]);
    }
    list
}

#[test]
fn nearest_rounds_once_to_even() {
    for source in SOURCES {
        let list = sources(source);
        let values = Values::of(source, &list);
        let (mut brain, mut wide) = (vec![bf16::ONE; list.len()], vec![1.0f32; list.len()]);
        let mut half = vec![f16::ONE; list.len()];
        to_f16_nearest(values.source(), &mut half).unwrap();
        for (&word, half) in list.iter().zip(half) {
            let expected = match source {
                SourceType::F16 => word,
                // BF16 goes by way of binary32, which holds all of it, so that a NaN becomes quiet.
                SourceType::Bf16 => convert(convert(word, BF16, F32), F32, F16),
                _ => convert(word, source.kind(), F16),
            };
            assert_eq!(u64::from(half.to_bits()), expected, "{source:?} {word:x} to f16");
        }
        to_bf16_nearest(values.source(), &mut brain).unwrap();
        to_f32_nearest(values.source(), &mut wide).unwrap();
        for ((&word, brain), wide) in list.iter().zip(brain).zip(wide) {
            let expected = match source {
                // What already is of the type stays as it is, signaling NaNs too.
                SourceType::Bf16 => word,
                _ => convert(word, source.kind(), BF16),
            };
            assert_eq!(u64::from(brain.to_bits()), expected, "{source:?} {word:x} to bf16");
            let expected = match source {
                SourceType::F32 => word,
                _ => convert(word, source.kind(), F32),
            };
            assert_eq!(u64::from(wide.to_bits()), expected, "{source:?} {word:x} to f32");
        }
    }
}

#[test]
fn exact_takes_what_the_type_holds_and_nothing_else() {
    for source in SOURCES {
        let (mut taken, mut refused) = (0, 0);
        for word in sources(source) {
            let values = Values::of(source, &[word]);
            let mut brain = [bf16::ONE];
            let expected = exact(word, source.kind(), BF16);
            let got = to_bf16_exact(values.source(), &mut brain);
            assert_eq!(
                got.map(|()| u64::from(brain[0].to_bits())),
                expected.ok_or(Error::NotExact { index: 0, word }),
                "{source:?} {word:x} to bf16"
            );
            if expected.is_some() {
                taken += 1
            } else {
                refused += 1
            }
            let mut wide = [1.0f32];
            let got = to_f32_exact(values.source(), &mut wide);
            assert_eq!(
                got.map(|()| u64::from(wide[0].to_bits())),
                exact(word, source.kind(), F32).ok_or(Error::NotExact { index: 0, word }),
                "{source:?} {word:x} to f32"
            );
        }
        assert!(taken > 1000, "{source:?}: {taken} taken");
        assert!((refused > 1000) == (source != SourceType::Bf16), "{source:?}: {refused} refused");
    }
}

/// Rounding gives infinity for these, but infinity is another value.
#[test]
fn what_overflows_is_not_exact() {
    for value in [2.0f64.powi(128), f64::from(f32::MAX).next_up(), 2.0f64.powi(129), f64::MAX] {
        for value in [value, -value] {
            let refusal = Err(Error::NotExact { index: 0, word: value.to_bits() });
            assert_eq!(to_f32_exact(&[value][..], &mut [0.0]), refusal, "{value:e} to f32");
            assert_eq!(to_bf16_exact(&[value][..], &mut [bf16::ZERO]), refusal, "{value:e} to bf16");
        }
    }
    let mut out = [0.0];
    to_f32_exact(&[f64::from(f32::MAX)][..], &mut out).unwrap();
    assert_eq!(out, [f32::MAX]);
}

#[test]
fn whole_numbers_go_to_i32() {
    for source in SOURCES {
        let mut taken = 0;
        for word in sources(source) {
            let value = match source {
                SourceType::F64 => f64::from_bits(word),
                _ => f64::from(f32::from_bits(convert(word, source.kind(), F32) as u32)),
            };
            let whole = value.is_finite() && value.fract() == 0.0;
            let expected = (whole && (-2147483648.0..=2147483647.0).contains(&value)).then_some(value as i32);
            let mut out = [77];
            let got = to_i32_exact(Values::of(source, &[word]).source(), &mut out);
            assert_eq!(
                got.map(|()| out[0]),
                expected.ok_or(Error::NotExact { index: 0, word }),
                "{source:?} {word:x}"
            );
            taken += usize::from(expected.is_some());
        }
        assert!(taken > 1000, "{source:?}: {taken}");
    }
}

#[test]
fn integers_go_to_i32_inside_its_range() {
    let mut random = Random(5);
    let edges = [0i64, 1, -1, 2147483647, 2147483648, -2147483648, -2147483649, i64::MAX, i64::MIN];
    let any: Vec<i64> = (0..1000).map(|_| random.next() as i64 >> random.below(64)).collect();
    for &value in edges.iter().chain(&any) {
        let mut out = [77];
        let inside = (-2147483648..=2147483647).contains(&value);
        let got = i64_to_i32_exact(&[value], &mut out);
        let expected = inside.then_some(i128::from(value));
        let refusal = Error::NotExact { index: 0, word: value as u64 };
        assert_eq!(got.map(|()| i128::from(out[0])), expected.ok_or(refusal), "{value}");
        let unsigned = value as u64;
        let got = u64_to_i32_exact(&[unsigned], &mut out);
        let expected = (unsigned <= 2147483647).then_some(i128::from(unsigned));
        assert_eq!(got.map(|()| i128::from(out[0])), expected.ok_or(refusal), "{unsigned}");
    }
}

#[test]
fn minus_zero_is_the_integer_zero() {
    let mut out = [9; 4];
    to_i32_exact(&[-0.0f32, 0.0, -1.0, 1.0][..], &mut out).unwrap();
    assert_eq!(out, [0, 0, -1, 1]);
    let mut out = [9; 1];
    to_i32_exact(&[f16::from_bits(0x8000)][..], &mut out).unwrap();
    assert_eq!(out, [0]);
}

/// The first value that does not fit is named, and those before it are written.
#[test]
fn the_first_value_that_does_not_fit_is_named() {
    let source = [1.0f32, -2.5, 0.1, 0.2, f32::NAN];
    let mut out = Guarded::new(5, bf16::from_bits(0xa5a5));
    let refusal = Error::NotExact { index: 2, word: 0.1f32.to_bits().into() };
    assert_eq!(to_bf16_exact(&source[..], out.get()), Err(refusal));
    out.assert_canaries();
    assert_eq!(out.get()[..2], [bf16::from_f32(1.0), bf16::from_f32(-2.5)]);

    let mut out = Guarded::new(5, 77);
    let refusal = Error::NotExact { index: 1, word: (-2.5f32).to_bits().into() };
    assert_eq!(to_i32_exact(&source[..], out.get()), Err(refusal));
    out.assert_canaries();
    assert_eq!(out.get()[0], 1);

    let mut out = Guarded::new(2, 77.0f32);
    let refusal = Error::NotExact { index: 1, word: 0.1f64.to_bits() };
    assert_eq!(to_f32_exact(&[0.5f64, 0.1][..], out.get()), Err(refusal));
    assert_eq!(out.get()[0], 0.5);

    let mut out = Guarded::new(3, 77);
    assert_eq!(
        i64_to_i32_exact(&[5, i64::MIN, 6], out.get()),
        Err(Error::NotExact { index: 1, word: 1 << 63 })
    );
    assert_eq!(out.get()[0], 5);
    assert_eq!(
        u64_to_i32_exact(&[5, 6, u64::MAX], out.get()),
        Err(Error::NotExact { index: 2, word: u64::MAX })
    );
    assert_eq!(out.get()[..2], [5, 6]);
}

#[test]
fn lengths_must_agree() {
    for (expected, actual) in [(3usize, 2usize), (2, 3), (0, 1), (1, 0)] {
        let refusal = Err(Error::BufferLength { expected: expected as u64, actual: actual as u64 });
        for source in SOURCES {
            let values = Values::of(source, &vec![0; expected]);
            let mut brain = Guarded::new(actual, bf16::from_bits(0xa5a5));
            assert_eq!(to_bf16_nearest(values.source(), brain.get()), refusal);
            assert_eq!(to_bf16_exact(values.source(), brain.get()), refusal);
            brain.assert_untouched();
            let mut half = Guarded::new(actual, f16::from_bits(0xa5a5));
            assert_eq!(to_f16_nearest(values.source(), half.get()), refusal);
            half.assert_untouched();
            let mut wide = Guarded::new(actual, 77.0f32);
            assert_eq!(to_f32_nearest(values.source(), wide.get()), refusal);
            assert_eq!(to_f32_exact(values.source(), wide.get()), refusal);
            wide.assert_untouched();
            let mut whole = Guarded::new(actual, 77i32);
            assert_eq!(to_i32_exact(values.source(), whole.get()), refusal);
            whole.assert_untouched();
        }
        let mut whole = Guarded::new(actual, 77i32);
        assert_eq!(i64_to_i32_exact(&vec![0; expected], whole.get()), refusal);
        assert_eq!(u64_to_i32_exact(&vec![0; expected], whole.get()), refusal);
        whole.assert_untouched();
    }
    assert_eq!(to_bf16_nearest(&[0.0f32; 0][..], &mut []), Ok(()));
    assert_eq!(i64_to_i32_exact(&[], &mut []), Ok(()));
}

#[test]
fn binary64_is_rounded_once() {
    // Just above the midpoint of two BF16 values, by less than binary32 can tell.
    let above = f64::from_bits(0x3ff0_1000_0000_0001);
    let mut out = [bf16::ZERO];
    to_bf16_nearest(&[above][..], &mut out).unwrap();
    assert_eq!(out[0].to_bits(), 0x3f81);
    to_bf16_nearest(&[f64::from_bits(0x3ff0_1000_0000_0000)][..], &mut out).unwrap();
    assert_eq!(out[0].to_bits(), 0x3f80);
    assert_eq!(convert(above.to_bits(), F64, words::BF16), 0x3f81);
}
