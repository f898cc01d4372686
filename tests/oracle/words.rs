//! What a word means, and rounding of exact values to words.

use std::cmp::Ordering;

/// The exact value `(-1)^negative * num / den * 2^exp2`. Zero keeps its sign.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    pub negative: bool,
    pub num: u128,
    pub den: u128,
    pub exp2: i64,
}

impl Exact {
    pub fn new(negative: bool, num: u128, exp2: i64) -> Exact {
        Exact { negative, num, den: 1, exp2 }
    }

    pub fn integer(value: i64) -> Exact {
        Exact::new(value < 0, u128::from(value.unsigned_abs()), 0)
    }

    /// The product; its sign is the exclusive or, also for zero (layouts 7, sign of zero).
    pub fn times(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative != other.negative,
            num: product(self.num, other.num),
            den: product(self.den, other.den),
            exp2: self.exp2 + other.exp2,
        }
    }

    /// The quotient by a value that is not zero.
    pub fn over(self, other: Exact) -> Exact {
        assert_ne!(other.num, 0);
        let inverse = Exact { num: other.den, den: other.num, exp2: -other.exp2, ..other };
        self.times(inverse)
    }

    /// Compares magnitudes, without rounding and without leaving 128 bits.
    pub fn cmp_magnitude(&self, other: &Exact) -> Ordering {
        // self = a * 2^self.exp2 and other = b * 2^other.exp2, both over the common denominator.
        let (a, b) = (product(self.num, other.den), product(other.num, self.den));
        if a == 0 || b == 0 {
            return a.cmp(&b);
        }
        let bits = |x: u128| 128 - i64::from(x.leading_zeros());
        let top = (bits(a) + self.exp2).cmp(&(bits(b) + other.exp2));
        if top != Ordering::Equal {
            return top;
        }
        // Same top bit: the shifted number has as many bits as the other one, so it fits.
        let shift = self.exp2 - other.exp2;
        if shift >= 0 { (a << shift).cmp(&b) } else { a.cmp(&(b << -shift)) }
    }
}

fn product(a: u128, b: u128) -> u128 {
    a.checked_mul(b).expect("the oracle's fractions fit 128 bits")
}

/// An IEEE binary interchange form: sign, exponent, fraction (formats 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub exponent_bits: u32,
    pub fraction_bits: u32,
}

pub const F16: Kind = Kind { exponent_bits: 5, fraction_bits: 10 };
pub const BF16: Kind = Kind { exponent_bits: 8, fraction_bits: 7 };
pub const F32: Kind = Kind { exponent_bits: 8, fraction_bits: 23 };
pub const F64: Kind = Kind { exponent_bits: 11, fraction_bits: 52 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Zero,
    Subnormal,
    Normal,
    Infinite,
    Nan,
}

impl Kind {
    pub fn sign_bit(self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    /// The positive infinity: exponent all ones, fraction zero.
    pub fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    pub fn quiet_bit(self) -> u64 {
        1 << (self.fraction_bits - 1)
    }

    pub fn is_negative(self, word: u64) -> bool {
        word & self.sign_bit() != 0
    }

    fn exponent(self, word: u64) -> u64 {
        (word >> self.fraction_bits) % (1 << self.exponent_bits)
    }

    pub fn fraction(self, word: u64) -> u64 {
        word % (1 << self.fraction_bits)
    }

    pub fn class(self, word: u64) -> Class {
        let all_ones = (1 << self.exponent_bits) - 1;
        match (self.exponent(word), self.fraction(word)) {
            (0, 0) => Class::Zero,
            (0, _) => Class::Subnormal,
            (e, 0) if e == all_ones => Class::Infinite,
            (e, _) if e == all_ones => Class::Nan,
            _ => Class::Normal,
        }
    }

    pub fn is_finite(self, word: u64) -> bool {
        !matches!(self.class(word), Class::Infinite | Class::Nan)
    }

    /// The value of a finite word (formats 3.1). Infinity's pattern gives the power of two that
    /// would follow the largest finite value; `round` relies on it.
    pub fn value(self, word: u64) -> Exact {
        let (e, f) = (self.exponent(word), self.fraction(word));
        let bias = (1i64 << (self.exponent_bits - 1)) - 1;
        let (significand, e) = match e {
            0 => (f, 1),
            _ => ((1 << self.fraction_bits) + f, e),
        };
        let exp2 = e as i64 - bias - i64::from(self.fraction_bits);
        Exact::new(self.is_negative(word), u128::from(significand), exp2)
    }
}

/// Rounds to nearest, ties to even; past the largest finite value to infinity.
///
/// Positive patterns rise with their values. So the largest pattern not above `x` is found bit by
/// bit from the top, and the midpoint between it and its successor decides.
pub fn round(x: Exact, to: Kind) -> u64 {
    let mut below = 0u64;
    for bit in (0..to.exponent_bits + to.fraction_bits).rev() {
        let candidate = below | 1 << bit;
        if candidate <= to.infinity() && to.value(candidate).cmp_magnitude(&x) != Ordering::Greater {
            below = candidate;
        }
    }
    let mut nearest = below;
    if below != to.infinity() {
        let low = to.value(below);
        let midpoint = Exact::new(false, 2 * low.num + 1, low.exp2 - 1);
        nearest += match x.cmp_magnitude(&midpoint) {
            Ordering::Less => 0,
            Ordering::Equal => below % 2,
            Ordering::Greater => 1,
        };
    }
    if x.negative { to.sign_bit() | nearest } else { nearest }
}

/// Converts a word between two IEEE forms. Finite values round; infinities stay; a NaN keeps its
/// sign; narrowing keeps its top fraction bits and sets the quiet bit, widening appends zero bits
/// The word of `to` that holds a word of `from` exactly, if there is one.
pub fn exact(word: u64, from: Kind, to: Kind) -> Option<u64> {
    let sign = if from.is_negative(word) { to.sign_bit() } else { 0 };
    match from.class(word) {
        Class::Infinite => Some(sign | to.infinity()),
        Class::Nan => {
            // The payload, quiet bit and all, aligned at the top.
            let payload = from.fraction(word) << (63 - from.fraction_bits);
            let kept = payload >> (63 - to.fraction_bits);
            (kept << (63 - to.fraction_bits) == payload).then_some(sign | to.infinity() | kept)
        }
        _ => {
            let nearest = round(from.value(word), to);
            let same = to.is_finite(nearest) && to.value(nearest).cmp_magnitude(&from.value(word)).is_eq();
            same.then_some(nearest)
        }
    }
}

/// and changes nothing else (rules 12).
pub fn convert(word: u64, from: Kind, to: Kind) -> u64 {
    let sign = if from.is_negative(word) { to.sign_bit() } else { 0 };
    match from.class(word) {
        Class::Infinite => sign | to.infinity(),
        Class::Nan if to.fraction_bits < from.fraction_bits => {
            let top = from.fraction(word) >> (from.fraction_bits - to.fraction_bits);
            sign | to.infinity() | top | to.quiet_bit()
        }
        Class::Nan => {
            let fraction = from.fraction(word) << (to.fraction_bits - from.fraction_bits);
            sign | to.infinity() | fraction
        }
        _ => round(from.value(word), to),
    }
}

pub fn f32_to_f16(word: u32) -> u16 {
    convert(word.into(), F32, F16) as u16
}

pub fn f32_to_bf16(word: u32) -> u16 {
    convert(word.into(), F32, BF16) as u16
}

pub fn f64_to_f32(word: u64) -> u32 {
    convert(word, F64, F32) as u32
}

pub fn f16_to_f32(word: u16) -> u32 {
    convert(word.into(), F16, F32) as u32
}

/// The word in the high half, sixteen zero bits below (formats 3.1), NaNs included.
pub fn bf16_to_f32(word: u16) -> u32 {
    u32::from(word) * 65536
}

/// The sixteen E2M1 words: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives (formats 3.3).
pub fn e2m1_value(word: u8) -> Exact {
    const HALVES: [u128; 8] = [0, 1, 2, 3, 4, 6, 8, 12];
    assert!(word < 16);
    Exact::new(word >= 8, HALVES[usize::from(word % 8)], -1)
}

pub fn e2m1_to_f32(word: u8) -> u32 {
    round(e2m1_value(word), F32) as u32
}

pub fn e4m3fn_is_nan(word: u8) -> bool {
    word == 0x7f || word == 0xff
}

/// The value of an E4M3FN word that is not NaN, clause by clause (formats 3.3).
pub fn e4m3fn_value(word: u8) -> Exact {
    assert!(!e4m3fn_is_nan(word));
    let (negative, e, m) = (word >= 128, word / 8 % 16, u128::from(word % 8));
    if e == 0 { Exact::new(negative, m, -9) } else { Exact::new(negative, 8 + m, i64::from(e) - 7 - 3) }
}

/// Exact expansion; both NaN words give 0x7fc00000 (rules 15).
pub fn e4m3fn_to_f32(word: u8) -> u32 {
    if e4m3fn_is_nan(word) { 0x7fc0_0000 } else { round(e4m3fn_value(word), F32) as u32 }
}

/// Two's complement: the signed value of a logical word of `bits` bits (formats 3.1, 5.1).
pub fn signed(word: u64, bits: u32) -> i64 {
    let word = i64::try_from(word).expect("at most 32 bits");
    if word < 1 << (bits - 1) { word } else { word - (1 << bits) }
}

/// Rounds to an integer, ties to even (formats 7.2).
pub fn round_half_even(x: Exact) -> i128 {
    let half = Exact::new(false, 1, -1);
    if x.cmp_magnitude(&half) != Ordering::Greater {
        return 0; // also keeps the shift below in range
    }
    let (num, den) = if x.exp2 >= 0 { (x.num << x.exp2, x.den) } else { (x.num, x.den << -x.exp2) };
    let (floor, rest) = (num / den, num % den);
    let up = match (2 * rest).cmp(&den) {
        Ordering::Less => 0,
        Ordering::Equal => floor % 2,
        Ordering::Greater => 1,
    };
    let magnitude = i128::try_from(floor + up).expect("far below 2^127");
    if x.negative { -magnitude } else { magnitude }
}

/// Why a binary16 group scale or a bfloat16 row scale is illegal, or nothing (formats 3.4, 6.1).
pub fn scale_reason(word: u64, kind: Kind) -> Option<&'static str> {
    match (kind.class(word), kind.is_negative(word)) {
        (Class::Nan, _) => Some("nan"),
        (Class::Infinite, _) => Some("infinite"),
        (Class::Zero, true) => Some("negative_zero"),
        (_, true) => Some("negative"),
        _ => None,
    }
}

/// Why an NVFP4 scale word is illegal, or nothing (formats 3.3).
pub fn e4m3fn_scale_reason(word: u8) -> Option<&'static str> {
    match word {
        0x7f | 0xff => Some("nan"),
        0x80 => Some("negative_zero"),
        0x81..=0xfe => Some("negative"),
        _ => None,
    }
}

/// Why an NVFP4 divisor word is illegal, or nothing: it is finite and above zero (formats 3.3).
pub fn divisor_reason(word: u32) -> Option<&'static str> {
    if word == 0 { Some("zero") } else { scale_reason(word.into(), F32) }
}
