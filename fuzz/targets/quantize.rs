//! Floating-point bit patterns of any kind: the canonical encoder gives the oracle's payload or its refusal, under
//! every backend, by tensor and by row; and every conversion gives the oracle's words.

#![no_main]

#[path = "input.rs"]
mod input;
#[path = "../../tests/oracle/mod.rs"]
mod oracle;
#[path = "../../tests/support/mod.rs"]
mod support;

use half::{bf16, f16};
use libfuzzer_sys::fuzz_target;
use ninfer_codec::format::{WordClass, binary16, direct, e2m1, e4m3fn, fp8_row, grouped, nvfp4, rounding};
use ninfer_codec::{Error, Format, TensorMut, convert, quantize_row};

use input::{Input, assert_line, each_backend};
use oracle::encode::encode;
use oracle::words::{self, BF16, Class, F16, F32, F64, Kind};
use support::{GROUPED, Guarded, SOURCES, SourceType, Values, assert_same, fault_name, oracle_format, plan};

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let format = input.pick(&GROUPED);
    let source = input.pick(&SOURCES);
    let shape = [1 + u64::from(input.byte() % 4), 1 + u64::from(input.u16() % 320)];
    let style = input.byte();
    let list = source_words(source, shape, style, &mut input);
    if style & 1 == 0 {
        quantize(format, source, shape, style, &list);
    } else {
        let words = &list[..list.len().min(48)];
        nearest(source, words);
        exact(source, words);
        integers(words);
        words_of_formats(words);
    }
});

/// Source words: the bytes as they come, or values near one another so that none of a group is lost.
fn source_words(source: SourceType, [rows, columns]: [u64; 2], style: u8, input: &mut Input<'_>) -> Vec<u64> {
    let count = (rows * columns) as usize;
    let kind = source.kind();
    let width = (1 + kind.exponent_bits + kind.fraction_bits) as usize / 8;
    let (base, spread) = (input.u64(), input.byte());
    let bytes = input.fill(count * width);
    let words = bytes.chunks(width).map(|chunk| {
        let word = chunk.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
        if style & 2 == 0 {
            return word;
        }
        // The exponent of `base`, less a little: groups whose codes are not all zero.
        let fraction = (1u64 << kind.fraction_bits) - 1;
        let most = (1u64 << kind.exponent_bits) - 1;
        let exponent = (base % most).saturating_sub(word >> kind.fraction_bits & u64::from(spread % 8));
        word & (kind.sign_bit() | fraction) | exponent << kind.fraction_bits
    });
    words.collect()
}

fn quantize(format: Format, source: SourceType, shape: [u64; 2], style: u8, list: &[u64]) {
    let [rows, columns] = shape;
    let expected = encode(oracle_format(format), source, rows, columns, list);
    let plan = plan(format, &shape);
    let packed = expected
        .as_ref()
        .ok()
        .map(|words| oracle::layout::pack(oracle_format(format), &shape, words).unwrap());
    // Rows that touch, or with something that is no number between them.
    let stride = columns + u64::from(style >> 2 & 3);
    let apart: Vec<u64> = list
        .chunks(columns as usize)
        .flat_map(|row| {
            let mut row = row.to_vec();
            row.resize(stride as usize, source.kind().infinity());
            row
        })
        .take(((rows - 1) * stride + columns) as usize)
        .collect();
    let values = Values::of(source, &apart);
    let by_row = Values::of(source, list);
    each_backend(|_| {
        let mut payload = Guarded::new(plan.payload_bytes() as usize, 0xa5u8);
        let got = TensorMut::new(plan, payload.get()).unwrap().quantize(values.source(), stride as usize);
        payload.assert_canaries();
        assert_same(format, &got, &expected);
        got.err().inspect(|error| assert_line(error));
        if let Some(packed) = &packed {
            assert_eq!(payload.get(), packed);
        }
        let groups = plan.logical_groups() as usize;
        for row in 0..rows {
            let mut codes = Guarded::new(columns as usize, 99i8);
            let mut scales = Guarded::new(groups, 0xa5a5u16);
            let begin = (row * columns) as usize;
            let one = Values::of(source, &list[begin..begin + columns as usize]);
            let result = quantize_row(format, row, one.source(), codes.get(), scales.get());
            codes.assert_canaries();
            scales.assert_canaries();
            if result.is_err() {
                return assert_eq!(result, got);
            }
            if let Ok(expected) = &expected {
                let own = &expected.codes[begin..begin + columns as usize];
                assert!(codes.get().iter().map(|&code| i64::from(code)).eq(own.iter().copied()));
                let own = &expected.scales[row as usize * groups..(row as usize + 1) * groups];
                assert!(scales.get().iter().map(|&scale| u32::from(scale)).eq(own.iter().copied()));
            }
        }
    });
    // What the contract has no encoder for.
    let direct = support::plan(Format::Fp32, &shape);
    let mut payload = vec![0; direct.payload_bytes() as usize];
    let refusal = Err(Error::NoCanonicalEncoder { format: Format::Fp32 });
    assert_eq!(
        TensorMut::new(direct, &mut payload).unwrap().quantize(by_row.source(), columns as usize),
        refusal
    );
}

/// Rounds once to nearest even; a NaN that is narrowed becomes quiet.
fn nearest(source: SourceType, list: &[u64]) {
    let values = Values::of(source, list);
    let kind = source.kind();
    let mut brain = vec![bf16::ONE; list.len()];
    convert::to_bf16_nearest(values.source(), &mut brain).unwrap();
    let mut half = vec![f16::ONE; list.len()];
    convert::to_f16_nearest(values.source(), &mut half).unwrap();
    let mut wide = vec![1.0f32; list.len()];
    convert::to_f32_nearest(values.source(), &mut wide).unwrap();
    let to = |word, to: Kind| if kind == to { word } else { words::convert(word, kind, to) };
    for (index, &word) in list.iter().enumerate() {
        assert_eq!(u64::from(brain[index].to_bits()), to(word, BF16), "{source:?} {word:x} to bf16");
        assert_eq!(u64::from(wide[index].to_bits()), to(word, F32), "{source:?} {word:x} to f32");
        // BF16 goes by way of binary32, so that a NaN becomes quiet.
        let expected = match source {
            SourceType::Bf16 => words::convert(words::convert(word, BF16, F32), F32, F16),
            _ => to(word, F16),
        };
        assert_eq!(u64::from(half[index].to_bits()), expected, "{source:?} {word:x} to f16");
    }
}

/// The first value that the type does not hold is named, and those before it are written.
fn exact(source: SourceType, list: &[u64]) {
    let values = Values::of(source, list);
    let kind = source.kind();
    let judge = |got: Result<(), Error>, out: Vec<u64>, to: &dyn Fn(u64) -> Option<u64>| {
        for (index, (&word, out)) in list.iter().zip(out).enumerate() {
            match to(word) {
                Some(expected) => assert_eq!(out, expected, "{source:?} {word:x}"),
                None => {
                    assert_eq!(got, Err(Error::NotExact { index: index as u64, word }));
                    got.err().inspect(|error| assert_line(error));
                    return;
                }
            }
        }
        assert_eq!(got, Ok(()));
    };
    let mut brain = vec![bf16::ONE; list.len()];
    let got = convert::to_bf16_exact(values.source(), &mut brain);
    let brain = brain.iter().map(|value| value.to_bits().into()).collect();
    judge(got, brain, &|word| words::exact(word, kind, BF16));
    let mut wide = vec![1.0f32; list.len()];
    let got = convert::to_f32_exact(values.source(), &mut wide);
    let wide = wide.iter().map(|value| value.to_bits().into()).collect();
    judge(got, wide, &|word| words::exact(word, kind, F32));
    let mut whole = vec![1i32; list.len()];
    let got = convert::to_i32_exact(values.source(), &mut whole);
    let whole = whole.iter().map(|&value| i64::from(value) as u64).collect();
    judge(got, whole, &|word| whole_number(word, kind).map(|value| value as u64));
}

/// The integer that a word stands for, where it is one of 32 bits.
fn whole_number(word: u64, kind: Kind) -> Option<i64> {
    if !kind.is_finite(word) {
        return None;
    }
    let value = kind.value(word);
    if value.num == 0 {
        return Some(0);
    }
    let magnitude = match value.exp2 {
        up @ 0..32 => value.num << up,
        32.. => return None,
        down if -down < 64 && value.num % (1 << -down) == 0 => value.num >> -down,
        _ => return None,
    };
    let magnitude = i64::try_from(magnitude).ok()?;
    let signed = if value.negative { -magnitude } else { magnitude };
    i32::try_from(signed).ok().map(i64::from)
}

fn integers(list: &[u64]) {
    let mut out = vec![1i32; list.len()];
    let signed: Vec<i64> = list.iter().map(|&word| word as i64).collect();
    let first = signed.iter().position(|&value| i32::try_from(value).is_err());
    let refusal = |first: Option<usize>| match first {
        Some(index) => Err(Error::NotExact { index: index as u64, word: list[index] }),
        None => Ok(()),
    };
    assert_eq!(convert::i64_to_i32_exact(&signed, &mut out), refusal(first));
    let first = list.iter().position(|&value| i32::try_from(value).is_err());
    assert_eq!(convert::u64_to_i32_exact(list, &mut out), refusal(first));
    for (&value, &out) in list.iter().zip(&out).take(first.unwrap_or(list.len())) {
        assert_eq!(value as i64, i64::from(out));
    }
}

/// What single words mean, in every format that has words of their width.
fn words_of_formats(list: &[u64]) {
    for &word in list {
        let (byte, short, long) = (word as u8, word as u16, word as u32);
        if F16.class(short.into()) != Class::Nan {
            assert_eq!(binary16::to_f32_bits(short), words::f16_to_f32(short));
        }
        assert_class(binary16::classify(short), short.into(), F16);
        assert_eq!(
            binary16::check_scale(short).err().map(fault_name),
            words::scale_reason(short.into(), F16)
        );
        assert_eq!(binary16::from_f32_bits(long), words::f32_to_f16(long));
        assert_eq!(direct::bf16_to_f32_bits(short), words::bf16_to_f32(short));
        assert_eq!(direct::bf16_from_f32_bits(long), words::f32_to_bf16(long));
        assert_class(direct::bf16_classify(short), short.into(), BF16);
        assert_eq!(
            direct::bf16_check_scale(short).err().map(fault_name),
            words::scale_reason(short.into(), BF16)
        );
        assert_eq!(i64::from(direct::i32_value(long)), words::signed(long.into(), 32));
        assert_eq!(e2m1::to_f32_bits(byte % 16), words::e2m1_to_f32(byte % 16));
        assert_eq!(e4m3fn::to_f32_bits(byte), words::e4m3fn_to_f32(byte));
        assert_eq!(e4m3fn::classify(byte) == WordClass::Nan, words::e4m3fn_is_nan(byte));
        assert_eq!(e4m3fn::is_legal_code(byte), !words::e4m3fn_is_nan(byte));
        assert_eq!(e4m3fn::check_scale(byte).err().map(fault_name), words::e4m3fn_scale_reason(byte));
        assert_eq!(nvfp4::check_divisor(long).err().map(fault_name), words::divisor_reason(long));
        assert_eq!(rounding::f32_bits_from_f64_bits(word), words::f64_to_f32(word));
        let (code, scale) = (word as u8, (word >> 8) as u16);
        if words::scale_reason(scale.into(), F16).is_none() {
            let expected = oracle::decode::grouped_weight((code as i8).into(), scale);
            assert_eq!(grouped::product_f32_bits(code as i8, scale), expected);
        }
        if words::scale_reason(scale.into(), BF16).is_none() {
            assert_eq!(fp8_row::product_f32_bits(code, scale), oracle::decode::fp8_weight(code, scale));
        }
        let (scale, divisor) = ((word >> 8) as u8, (word >> 32) as u32);
        if words::e4m3fn_scale_reason(scale).is_none() && words::divisor_reason(divisor).is_none() {
            let weight = oracle::decode::nvfp4_weight(code % 16, scale, divisor);
            let got = nvfp4::quotient_f32_bits(code % 16, scale, divisor);
            assert_eq!(u64::from(got), words::round(weight, F32));
            assert_eq!(nvfp4::quotient_f64_bits(code % 16, scale, divisor), words::round(weight, F64));
        }
    }
}

#[track_caller]
fn assert_class(got: WordClass, word: u64, kind: Kind) {
    let quiet = word & kind.quiet_bit() != 0;
    let expected = match kind.class(word) {
        Class::Zero => WordClass::Zero,
        Class::Subnormal => WordClass::Subnormal,
        Class::Normal => WordClass::Normal,
        Class::Infinite => WordClass::Infinite,
        Class::Nan if quiet => WordClass::QuietNan,
        Class::Nan => WordClass::SignalingNan,
    };
    assert_eq!(got, expected, "{word:x}");
}
