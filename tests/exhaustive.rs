//! Every word there is, against the oracle.

mod oracle;
mod support;

use half::{bf16, f16};
use ninfer_codec::format::{WordClass, WordFault, binary16, direct, e2m1, e4m3fn, fp8_row, grouped, nvfp4};
use ninfer_codec::{Format, Tensor, TensorMut, Words};

use oracle::decode::{fp8_weight, grouped_weight, nvfp4_weight};
use oracle::words::{
    self, Class, Kind, e2m1_to_f32, e4m3fn_is_nan, e4m3fn_scale_reason, e4m3fn_to_f32, f16_to_f32,
    f32_to_bf16, f32_to_f16, round, scale_reason,
};
use support::{GROUPED, Random, fault_name, plan};

fn class_of(kind: Kind, word: u64) -> WordClass {
    match kind.class(word) {
        Class::Zero => WordClass::Zero,
        Class::Subnormal => WordClass::Subnormal,
        Class::Normal => WordClass::Normal,
        Class::Infinite => WordClass::Infinite,
        Class::Nan if word & kind.quiet_bit() != 0 => WordClass::QuietNan,
        Class::Nan => WordClass::SignalingNan,
    }
}

fn reason(check: Result<(), WordFault>) -> Option<&'static str> {
    check.err().map(fault_name)
}

#[test]
fn every_bf16_word() {
    for word in 0..=u16::MAX {
        assert_eq!(direct::bf16_to_f32_bits(word), words::bf16_to_f32(word), "{word:04x}");
        assert_eq!(direct::bf16_classify(word), class_of(words::BF16, word.into()), "{word:04x}");
        assert_eq!(
            reason(direct::bf16_check_scale(word)),
            scale_reason(word.into(), words::BF16),
            "{word:04x}"
        );
    }
    // As a tensor: packed, unpacked and decoded as they are, NaN payloads and quiet bits included.
    let all: Vec<u16> = (0..=u16::MAX).collect();
    let plan = plan(Format::Bf16, &[256, 256]);
    let mut payload = vec![0xa5; plan.payload_bytes() as usize];
    TensorMut::new(plan, &mut payload).unwrap().pack(Words::Bf16(&all)).unwrap();
    let expected: Vec<u8> = all.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(payload, expected);
    let tensor = Tensor::new(plan, &payload).unwrap();
    tensor.validate().unwrap();
    let mut narrow = vec![bf16::ZERO; all.len()];
    tensor.decode(&mut narrow[..], 256).unwrap();
    assert!(narrow.iter().zip(&all).all(|(value, word)| value.to_bits() == *word));
    let mut wide = vec![0.0f32; all.len()];
    tensor.decode(&mut wide[..], 256).unwrap();
    assert!(wide.iter().zip(&all).all(|(value, word)| value.to_bits() == words::bf16_to_f32(*word)));
}

#[test]
fn every_binary16_word() {
    for word in 0..=u16::MAX {
        assert_eq!(binary16::to_f32_bits(word), f16_to_f32(word), "{word:04x}");
        assert_eq!(binary16::classify(word), class_of(words::F16, word.into()), "{word:04x}");
        assert_eq!(reason(binary16::check_scale(word)), scale_reason(word.into(), words::F16), "{word:04x}");
        let back = binary16::from_f32_bits(binary16::to_f32_bits(word));
        let quiet = if words::F16.class(word.into()) == Class::Nan { 0x0200 } else { 0 };
        assert_eq!(back, word | quiet, "{word:04x}");
    }
}

#[test]
fn every_e2m1_and_e4m3fn_word() {
    for word in 0..=u8::MAX {
        // Bits above the low four are not part of an E2M1 word.
        assert_eq!(e2m1::to_f32_bits(word), e2m1_to_f32(word & 0xf), "{word:02x}");
        assert_eq!(e4m3fn::to_f32_bits(word), e4m3fn_to_f32(word), "{word:02x}");
        assert_eq!(reason(e4m3fn::check_scale(word)), e4m3fn_scale_reason(word), "{word:02x}");
        assert_eq!(e4m3fn::is_legal_code(word), !e4m3fn_is_nan(word), "{word:02x}");
        let class = match word & 0x7f {
            0 => WordClass::Zero,
            1..8 => WordClass::Subnormal,
            0x7f => WordClass::Nan,
            _ => WordClass::Normal,
        };
        assert_eq!(e4m3fn::classify(word), class, "{word:02x}");
    }
}

/// The binary32 words at and around every value of a narrower type, and around every midpoint of two neighbours.
fn boundaries(kind: Kind) -> impl Iterator<Item = u32> {
    // Where infinity stands, the midpoint to it is that to the next power of two.
    let past_the_end =
        f64::from(kind.exponent_bits == 5) * 65536.0 + f64::from(kind.exponent_bits == 8) * 2.0f64.powi(128);
    let value = move |word: u64| match kind.class(word) {
        Class::Infinite => past_the_end,
        _ => f64::from(f32::from_bits(words::convert(word, kind, words::F32) as u32)),
    };
    let around = |word: u32| [word.saturating_sub(1), word, word + 1];
    (0..kind.infinity())
        .flat_map(move |word| {
            let middle = (value(word) + value(word + 1)) / 2.0;
            [value(word) as f32, middle as f32]
        })
        .chain([f32::INFINITY])
        .flat_map(move |value| around(value.to_bits()))
        .flat_map(|word| [word, word | 1 << 31])
}

#[test]
fn narrowing_to_binary16_at_every_boundary() {
    for word in boundaries(words::F16) {
        assert_eq!(binary16::from_f32_bits(word), f32_to_f16(word), "{word:08x}");
    }
}

#[test]
fn narrowing_to_bf16_at_every_boundary() {
    for word in boundaries(words::BF16) {
        assert_eq!(direct::bf16_from_f32_bits(word), f32_to_bf16(word), "{word:08x}");
    }
}

#[test]
fn narrowing_of_random_words_and_nans() {
    let mut random = Random(1);
    for round in 0..200_000 {
        let mut word = random.next() as u32;
        if round % 4 == 0 {
            word |= 0x7f80_0000;
        }
        assert_eq!(binary16::from_f32_bits(word), f32_to_f16(word), "{word:08x}");
        assert_eq!(direct::bf16_from_f32_bits(word), f32_to_bf16(word), "{word:08x}");
    }
}

/// All legal scales, one a row, each with all codes of the format.
fn all_products(format: Format) -> (ninfer_codec::Plan, Vec<u8>, Vec<i8>) {
    const SCALES: u64 = 0x7c00;
    let scheme = format.scheme().unwrap();
    // W8 0x80 is not legal, but decodes as -128.
    let codes: Vec<i8> = match scheme.code_bits() {
        8 => (i8::MIN..=i8::MAX).collect(),
        _ => (0..64).map(|lane: u8| scheme.signed_code(lane)).collect(),
    };
    let plan = plan(format, &[SCALES, codes.len() as u64]);
    let mut payload = vec![0; plan.payload_bytes() as usize];
    let (base, high, scales) = (plan.codes(), plan.high(), plan.scales());
    for row in 0..SCALES {
        for (lane, &code) in codes.iter().enumerate() {
            let word = code as u8;
            let start = (row * base.row_bytes) as usize;
            match scheme.code_bits() {
                8 => payload[start + lane] = word,
                _ => payload[start + lane / 2] |= (word & 0xf) << (lane % 2 * 4),
            }
            let start = (high.offset + row * high.row_bytes) as usize;
            match scheme.code_bits() {
                5 => payload[start + lane / 8] |= (word >> 4 & 1) << (lane % 8),
                6 => payload[start + lane / 4] |= (word >> 4 & 3) << (lane % 4 * 2),
                _ => {}
            }
        }
        for group in 0..plan.physical_groups() {
            let at = (scales.offset + row * scales.row_bytes + group * 2) as usize;
            payload[at..at + 2].copy_from_slice(&(row as u16).to_le_bytes());
        }
    }
    (plan, payload, codes)
}

fn every_product(format: Format) {
    let (plan, payload, codes) = all_products(format);
    let tensor = Tensor::new(plan, &payload).unwrap();
    let columns = codes.len();
    let elements = plan.elements() as usize;
    let mut wide = vec![f32::NAN; elements];
    let (mut brain, mut half) = (vec![bf16::NAN; elements], vec![f16::NAN; elements]);
    tensor.decode(&mut wide[..], columns).unwrap();
    tensor.decode(&mut brain[..], columns).unwrap();
    tensor.decode(&mut half[..], columns).unwrap();
    for scale in 0..0x7c00u16 {
        for (lane, &code) in codes.iter().enumerate() {
            let at = usize::from(scale) * columns + lane;
            let word = wide[at].to_bits();
            // Repeated codes and, of the smaller formats, codes that W8 has too are the same products.
            if format == Format::W8G32F16S || scale % 16 == lane as u16 % 16 {
                assert_eq!(word, grouped_weight(code.into(), scale), "{code} * {scale:04x}");
            }
            assert_eq!(word, grouped::product_f32_bits(code, scale), "{code} * {scale:04x}");
            if scale % 16 == lane as u16 % 16 {
                assert_eq!(brain[at].to_bits(), f32_to_bf16(word), "{code} * {scale:04x}");
                assert_eq!(half[at].to_bits(), f32_to_f16(word), "{code} * {scale:04x}");
            }
        }
    }
}

#[test]
fn every_product_of_q4_q5_q6() {
    for format in &GROUPED[..3] {
        every_product(*format);
    }
}

#[test]
fn every_product_of_w8() {
    every_product(Format::W8G32F16S);
}

#[test]
fn every_quotient_of_nvfp4() {
    const DIVISORS: [u32; 20] = [
        0x0000_0001, // the least subnormal
        0x0000_0003,
        0x0000_5555,
        0x007f_ffff, // the greatest subnormal
        0x0080_0000, // the least normal
        0x00ff_ffff,
        0x0d7f_ffff, // around 2^-100, where the table of quotients begins
        0x0d80_0000,
        0x3dcc_cccd,
        0x3f7f_ffff,
        0x3f80_0000,
        0x3fc0_0000,
        0x4040_0000,
        0x4528_0000,
        0x4b7f_ffff,
        0x7175_5555, // around 2^100, where the table ends
        0x7180_0000,
        0x7e80_0000,
        0x7f00_0001,
        0x7f7f_ffff, // the greatest
    ];
    // Row r has scale r in every group (row 127 repeats scale 0) and every code.
    let plan = plan(Format::Nvfp4, &[128, 64]);
    let codes: Vec<u8> = (0..128 * 32)
        .map(|byte: u32| [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe][byte as usize % 8])
        .collect();
    let scales: Vec<u8> = (0..128u8).flat_map(|row| [row % 127; 4]).collect();
    for divisor in DIVISORS {
        let mut payload = vec![0xa5; plan.payload_bytes() as usize];
        let words = Words::Nvfp4 { codes: &codes, scales: &scales, divisor };
        TensorMut::new(plan, &mut payload).unwrap().pack(words).unwrap();
        let tensor = Tensor::new(plan, &payload).unwrap();
        let (mut f32s, mut f64s) = (vec![f32::NAN; 128 * 64], vec![f64::NAN; 128 * 64]);
        let (mut brain, mut half) = (vec![bf16::NAN; 128 * 64], vec![f16::NAN; 128 * 64]);
        tensor.decode(&mut f32s[..], 64).unwrap();
        tensor.decode(&mut f64s[..], 64).unwrap();
        tensor.decode(&mut brain[..], 64).unwrap();
        tensor.decode(&mut half[..], 64).unwrap();
        for row in 0..128usize {
            let scale = row as u8 % 127;
            for column in 0..64usize {
                let (code, at) = (column as u8 % 16, row * 64 + column);
                let quotient = nvfp4_weight(code, scale, divisor);
                let name = || format!("{code:x} * {scale:02x} / {divisor:08x}");
                let narrow = round(quotient, words::F32) as u32;
                assert_eq!(f32s[at].to_bits(), narrow, "{}", name());
                assert_eq!(nvfp4::quotient_f32_bits(code, scale, divisor), narrow, "{}", name());
                assert_eq!(brain[at].to_bits(), f32_to_bf16(narrow), "{}", name());
                assert_eq!(half[at].to_bits(), f32_to_f16(narrow), "{}", name());
                if column < 16 {
                    let wide = round(quotient, words::F64);
                    assert_eq!(f64s[at].to_bits(), wide, "{}", name());
                    assert_eq!(nvfp4::quotient_f64_bits(code, scale, divisor), wide, "{}", name());
                } else {
                    assert_eq!(f64s[at].to_bits(), f64s[at - 16].to_bits(), "{}", name());
                }
            }
        }
    }
}

/// All legal row scales, one a row, times all 256 codes.
#[test]
fn every_product_of_fp8_rows() {
    const SCALES: u64 = 0x7f80;
    let plan = plan(Format::Fp8E4M3FnRowBf16S, &[SCALES, 256]);
    let mut payload: Vec<u8> = (0..SCALES).flat_map(|_| 0..=255).collect();
    assert_eq!(payload.len() as u64, plan.scales().offset);
    payload.extend((0..SCALES as u16).flat_map(u16::to_le_bytes));
    let tensor = Tensor::new(plan, &payload).unwrap();
    let elements = plan.elements() as usize;
    let mut wide = vec![0.0f32; elements];
    let (mut brains, mut halves) = (vec![bf16::ZERO; elements], vec![f16::ZERO; elements]);
    tensor.decode(&mut wide[..], 256).unwrap();
    tensor.decode(&mut brains[..], 256).unwrap();
    tensor.decode(&mut halves[..], 256).unwrap();
    for scale in 0..SCALES as u16 {
        for code in 0..=255u8 {
            let at = usize::from(scale) * 256 + usize::from(code);
            let (word, brain, half) = (wide[at].to_bits(), brains[at].to_bits(), halves[at].to_bits());
            let name = || format!("{code:02x} * {scale:04x}");
            assert_eq!(word, fp8_row::product_f32_bits(code, scale), "{}", name());
            if code & 0x7f == 0x7f {
                assert_eq!((word, brain, half), (0x7fc0_0000, 0x7fc0, 0x7e00), "{}", name());
            } else if code < 0x80 {
                assert_eq!(word, fp8_weight(code, scale), "{}", name());
                assert_eq!(brain, f32_to_bf16(word), "{}", name());
                assert_eq!(half, f32_to_f16(word), "{}", name());
            } else {
                // The negative codes are the mirror image, zeros included.
                let mirror = at - 0x80;
                assert_eq!(word, wide[mirror].to_bits() | 1 << 31, "{}", name());
                assert_eq!(brain, brains[mirror].to_bits() | 1 << 15, "{}", name());
                assert_eq!(half, halves[mirror].to_bits() | 1 << 15, "{}", name());
            }
        }
    }
}
