//! What the tests share: the oracle's formats and faults beside the crate's, random legal tensors, guarded buffers.

#![allow(dead_code)]

use std::fmt::Debug;

use half::{bf16, f16};
use ninfer_codec::format::WordFault;
use ninfer_codec::{Error, Format, Output, Plan, Source, Words, WordsMut};

use crate::oracle;
use crate::oracle::layout::{Logical, from_nibble_pairs, nibble_pairs, pack};
use crate::oracle::words::{divisor_reason, e4m3fn_scale_reason, scale_reason};
use crate::oracle::{Fault, words};

/// The oracle's format with the same name.
pub fn oracle_format(format: Format) -> oracle::Format {
    oracle::Format::from_name(format.name().as_bytes()).unwrap()
}

pub const GROUPED: [Format; 4] = [Format::Q4G64F16S, Format::Q5G64F16S, Format::Q6G64F16S, Format::W8G32F16S];

pub const QUANTIZED: [Format; 6] = [
    Format::Q4G64F16S,
    Format::Q5G64F16S,
    Format::Q6G64F16S,
    Format::W8G32F16S,
    Format::Nvfp4,
    Format::Fp8E4M3FnRowBf16S,
];

pub fn plan(format: Format, shape: &[u64]) -> Plan {
    Plan::new(format, format.layout(), shape).unwrap()
}

/// Asserts that the crate refused, or did not, as the oracle did, with the same numbers.
#[track_caller]
pub fn assert_same<T: Debug, U: Debug>(format: Format, got: &Result<T, Error>, expected: &Result<U, Fault>) {
    match (got, expected) {
        (Ok(_), Ok(_)) => {}
        (Err(error), Err(fault)) => {
            assert_eq!(as_fault(format, *error), *fault, "{error:?}");
            assert_reason(format, *error);
        }
        _ => panic!("{}: got {got:?}, expected {expected:?}", format.name()),
    }
}

/// The crate's error as the oracle writes it.
pub fn as_fault(format: Format, error: Error) -> Fault {
    // A code is shown as a word of its own width where it fits.
    let code_word = |word: u8| match format.scheme() {
        Some(scheme) if scheme.signed_code(word) == word as i8 => {
            u32::from(word) & ((1 << scheme.code_bits()) - 1)
        }
        _ => word.into(),
    };
    match error {
        Error::UnsupportedPair { .. } => Fault::UnsupportedPair,
        Error::WrongRank { .. } => Fault::WrongRank,
        Error::ZeroDimension { .. } => Fault::ZeroDimension,
        Error::NotMultiple { .. } => Fault::NotMultiple,
        Error::Overflow => Fault::Overflow,
        Error::PayloadLength { expected, actual } => Fault::PayloadLength { expected, actual },
        Error::EmptyRows => Fault::EmptyRows,
        Error::RowOutOfRange { .. } => Fault::RowOutOfRange,
        Error::ColumnRange { .. } => Fault::BadColumns,
        Error::UnsupportedOutput { .. } => Fault::UnsupportedOutput,
        Error::NoCanonicalEncoder { .. } => Fault::NoCanonicalEncoder,
        Error::StackMismatch { part } => Fault::StackColumns { part: part as usize },
        Error::StackDivisor { part, .. } => Fault::StackDivisor { part: part as usize },
        Error::NonFiniteSource { row, column: col, word } => Fault::NonFiniteSource { row, col, word },
        Error::SourceNotRepresentable { row, column: col, word } => {
            Fault::SourceNotRepresentable { row, col, word }
        }
        Error::ScaleOverflow { row, group, .. } => Fault::ScaleOverflow { row, group },
        Error::InvalidScale { row, group, word, .. } => {
            let group = (format != Format::Fp8E4M3FnRowBf16S).then_some(group);
            Fault::InvalidScale { row, group, word: word.into() }
        }
        Error::InvalidDivisor { word, .. } => Fault::InvalidDivisor { word },
        Error::InvalidCode { row, column: col, word } => {
            Fault::InvalidCode { row, col, word: code_word(word) }
        }
        Error::ZeroScaleNonzeroCode { row, column: col, word } => {
            Fault::ZeroScaleNonzeroCode { row, col, word: code_word(word) }
        }
        Error::PaddingCodeNotZero { row, column: col, word } => {
            Fault::PaddingCodeNotZero { row, col, word: code_word(word) }
        }
        Error::PaddingScaleNotZero { row, group, word } => {
            Fault::PaddingScaleNotZero { row, group, word: word.into() }
        }
        Error::GapNotZero { offset, word } => Fault::GapNotZero { offset, word: word.into() },
        error => panic!("the oracle knows no {error:?}"),
    }
}

/// Asserts that an error names what is wrong with its word as the oracle does.
#[track_caller]
pub fn assert_reason(format: Format, error: Error) {
    match error {
        Error::InvalidScale { word, fault, .. } => {
            let reason = match format {
                Format::Nvfp4 => e4m3fn_scale_reason(word as u8),
                Format::Fp8E4M3FnRowBf16S => scale_reason(word.into(), words::BF16),
                _ => scale_reason(word.into(), words::F16),
            };
            assert_eq!(Some(fault_name(fault)), reason, "{word:04x}");
        }
        Error::InvalidDivisor { word, fault } => {
            assert_eq!(Some(fault_name(fault)), divisor_reason(word), "{word:08x}");
        }
        _ => {}
    }
}

pub fn fault_name(fault: WordFault) -> &'static str {
    match fault {
        WordFault::Nan => "nan",
        WordFault::Infinite => "infinite",
        WordFault::NegativeZero => "negative_zero",
        WordFault::Negative => "negative",
        WordFault::Zero => "zero",
    }
}

/// Numbers that follow from a seed.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Legal natural words of a tensor: zero scales, subnormals and extremes come often.
pub fn legal_words(format: Format, shape: &[u64], random: &mut Random) -> Logical {
    let plan = plan(format, shape);
    let mut words = Logical { codes: vec![], scales: vec![], divisor: None };
    let bits = u64::from(format.descriptor().code_bits);
    for _ in 0..plan.rows() * plan.logical_groups() {
        words.scales.push(match format {
            Format::Nvfp4 => random.below(0x7f) as u32,
            Format::Fp8E4M3FnRowBf16S => {
                let any = random.below(0x7f80) as u32;
                random.pick(&[0, 1, 0x3f80, 0x7f7f, any, any, any, any])
            }
            _ => {
                let any = random.below(0x7c00) as u32;
                random.pick(&[0, 1, 0x03ff, 0x7bff, any, any, any, any])
            }
        });
    }
    for row in 0..plan.rows() {
        for column in 0..plan.columns() {
            let group = column / u64::from(format.descriptor().group.unwrap_or(u32::MAX));
            let scale = words.scales.get((row * plan.logical_groups() + group) as usize);
            words.codes.push(match (format, format.scheme(), scale) {
                (_, Some(_), Some(0)) => 0,
                (_, Some(scheme), _) => {
                    let (min, max) = (i64::from(scheme.code_min()), i64::from(scheme.code_max()));
                    let any = min + random.below((max - min + 1) as u64) as i64;
                    random.pick(&[min, max, any, any, any, any])
                }
                (Format::Fp8E4M3FnRowBf16S, _, Some(0)) => random.pick(&[0, 0x80]),
                (Format::Fp8E4M3FnRowBf16S, ..) => (random.below(0x7f) | random.below(2) << 7) as i64,
                _ => random.below(1 << bits) as i64,
            });
        }
    }
    if format == Format::Nvfp4 {
        let any = 1 + random.below(0x7f7f_ffff) as u32;
        words.divisor = Some(random.pick(&[1, 0x007f_ffff, 0x0080_0000, 0x3f80_0000, 0x7f7f_ffff, any, any]));
    }
    words
}

/// A legal payload and its words, packed by the oracle.
pub fn legal_payload(format: Format, shape: &[u64], random: &mut Random) -> (Logical, Vec<u8>) {
    let words = legal_words(format, shape, random);
    let payload = pack(oracle_format(format), shape, &words).unwrap();
    (words, payload)
}

/// The oracle's words, in buffers of the crate's types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buffers {
    codes_i8: Vec<i8>,
    codes_u8: Vec<u8>,
    codes_u16: Vec<u16>,
    codes_u32: Vec<u32>,
    codes_i32: Vec<i32>,
    scales_u8: Vec<u8>,
    scales_u16: Vec<u16>,
    divisor: u32,
}

impl Buffers {
    pub fn of(format: Format, words: &Logical) -> Self {
        let mut buffers = Self { divisor: words.divisor.unwrap_or(0), ..Self::default() };
        let codes = words.codes.iter();
        match format {
            Format::Bf16 => buffers.codes_u16 = codes.map(|&code| code as u16).collect(),
            Format::Fp32 => buffers.codes_u32 = codes.map(|&code| code as u32).collect(),
            Format::I32 => buffers.codes_i32 = codes.map(|&code| code as u32 as i32).collect(),
            Format::Nvfp4 => buffers.codes_u8 = nibble_pairs(&words.codes),
            Format::Fp8E4M3FnRowBf16S => buffers.codes_u8 = codes.map(|&code| code as u8).collect(),
            _ => buffers.codes_i8 = codes.map(|&code| code as i8).collect(),
        }
        match format {
            Format::Nvfp4 => buffers.scales_u8 = words.scales.iter().map(|&scale| scale as u8).collect(),
            _ => buffers.scales_u16 = words.scales.iter().map(|&scale| scale as u16).collect(),
        }
        buffers
    }

    /// Buffers of the right lengths for rows of a plan, dirty.
    pub fn room(plan: &Plan, rows: u64) -> Self {
        let words = Logical {
            codes: vec![5; (rows * plan.columns()) as usize],
            scales: vec![0x55; (rows * plan.logical_groups()) as usize],
            divisor: None,
        };
        Self::of(plan.format(), &words)
    }

    pub fn words(&self, format: Format) -> Words<'_> {
        match format {
            Format::Bf16 => Words::Bf16(&self.codes_u16),
            Format::Fp32 => Words::Fp32(&self.codes_u32),
            Format::I32 => Words::I32(&self.codes_i32),
            Format::Nvfp4 => {
                Words::Nvfp4 { codes: &self.codes_u8, scales: &self.scales_u8, divisor: self.divisor }
            }
            Format::Fp8E4M3FnRowBf16S => Words::Fp8Row { codes: &self.codes_u8, scales: &self.scales_u16 },
            _ => Words::Grouped { codes: &self.codes_i8, scales: &self.scales_u16 },
        }
    }

    pub fn words_mut(&mut self, format: Format) -> WordsMut<'_> {
        match format {
            Format::Bf16 => WordsMut::Bf16(&mut self.codes_u16),
            Format::Fp32 => WordsMut::Fp32(&mut self.codes_u32),
            Format::I32 => WordsMut::I32(&mut self.codes_i32),
            Format::Nvfp4 => WordsMut::Nvfp4 {
                codes: &mut self.codes_u8,
                scales: &mut self.scales_u8,
                divisor: &mut self.divisor,
            },
            Format::Fp8E4M3FnRowBf16S => {
                WordsMut::Fp8Row { codes: &mut self.codes_u8, scales: &mut self.scales_u16 }
            }
            _ => WordsMut::Grouped { codes: &mut self.codes_i8, scales: &mut self.scales_u16 },
        }
    }

    /// The buffers as the oracle writes words.
    pub fn logical(&self, format: Format) -> Logical {
        let codes = match format {
            Format::Bf16 => self.codes_u16.iter().map(|&code| code.into()).collect(),
            Format::Fp32 => self.codes_u32.iter().map(|&code| code.into()).collect(),
            Format::I32 => self.codes_i32.iter().map(|&code| (code as u32).into()).collect(),
            Format::Nvfp4 => from_nibble_pairs(&self.codes_u8),
            Format::Fp8E4M3FnRowBf16S => self.codes_u8.iter().map(|&code| code.into()).collect(),
            _ => self.codes_i8.iter().map(|&code| code.into()).collect(),
        };
        let scales = match format {
            Format::Nvfp4 => self.scales_u8.iter().map(|&scale| scale.into()).collect(),
            _ => self.scales_u16.iter().map(|&scale| scale.into()).collect(),
        };
        Logical { codes, scales, divisor: (format == Format::Nvfp4).then_some(self.divisor) }
    }
}

/// A dirty buffer between canaries.
#[derive(Debug)]
pub struct Guarded<T> {
    all: Vec<T>,
    dirt: T,
}

const CANARIES: usize = 67;

impl<T: Copy + PartialEq + Debug> Guarded<T> {
    pub fn new(len: usize, dirt: T) -> Self {
        Self { all: vec![dirt; len + 2 * CANARIES], dirt }
    }

    pub fn get(&mut self) -> &mut [T] {
        let end = self.all.len() - CANARIES;
        &mut self.all[CANARIES..end]
    }

    #[track_caller]
    pub fn assert_canaries(&self) {
        let end = self.all.len() - CANARIES;
        let outside = self.all[..CANARIES].iter().chain(&self.all[end..]);
        assert!(outside.into_iter().all(|&value| value == self.dirt), "written outside the buffer");
    }

    #[track_caller]
    pub fn assert_untouched(&self) {
        assert!(self.all.iter().all(|&value| value == self.dirt), "written although refused");
    }
}

/// An output type of the oracle and of the crate.
pub use crate::oracle::decode::Output as OutputType;

pub const OUTPUTS: [OutputType; 4] = [OutputType::F32, OutputType::F64, OutputType::Bf16, OutputType::F16];

/// Calls a decoder with a dirty buffer between canaries and returns the words that are in it afterwards.
///
/// On a refusal the buffer must be as it was.
#[track_caller]
pub fn decoded(
    output: OutputType,
    len: usize,
    decode: impl FnOnce(Output<'_>) -> Result<(), Error>,
) -> Result<Vec<u64>, Error> {
    fn run<T: Copy + PartialEq + Debug>(
        len: usize,
        dirt: T,
        decode: impl FnOnce(&mut [T]) -> Result<(), Error>,
        word: impl Fn(T) -> u64,
    ) -> Result<Vec<u64>, Error> {
        let mut buffer = Guarded::new(len, dirt);
        let result = decode(buffer.get());
        if result.is_err() {
            buffer.assert_untouched();
        }
        buffer.assert_canaries();
        result.map(|()| buffer.get().iter().map(|&value| word(value)).collect())
    }
    let dirt = dirt(output);
    match output {
        OutputType::F32 => {
            run(len, f32::from_bits(dirt as u32), |out| decode(out.into()), |v| v.to_bits().into())
        }
        OutputType::F64 => run(len, f64::from_bits(dirt), |out| decode(out.into()), f64::to_bits),
        OutputType::Bf16 => {
            run(len, bf16::from_bits(dirt as u16), |out| decode(out.into()), |v| v.to_bits().into())
        }
        OutputType::F16 => {
            run(len, f16::from_bits(dirt as u16), |out| decode(out.into()), |v| v.to_bits().into())
        }
    }
}

/// The word that buffers of an output type hold before they are written.
pub fn dirt(output: OutputType) -> u64 {
    const DIRT: u64 = 0xa5a5_a5a5_a5a5_a5a5;
    match output {
        OutputType::F32 => DIRT & 0xffff_ffff,
        OutputType::F64 => DIRT,
        OutputType::Bf16 | OutputType::F16 => DIRT & 0xffff,
    }
}

/// Asserts that rows of `columns` words stand `stride` apart and that nothing was written between them.
#[track_caller]
pub fn assert_rows(got: &[u64], expected: &[u64], columns: usize, stride: usize, output: OutputType) {
    for (row, got) in got.chunks(stride).enumerate() {
        for (column, &got) in got.iter().enumerate() {
            let expected = match expected.get(row * columns + column) {
                Some(&word) if column < columns => word,
                _ => dirt(output),
            };
            assert_eq!(got, expected, "row {row}, column {column}: {got:x}, not {expected:x}");
        }
    }
}

/// A matrix of source values of one of the four types.
#[derive(Clone, Debug)]
pub enum Values {
    F32(Vec<f32>),
    Bf16(Vec<bf16>),
    F16(Vec<f16>),
    F64(Vec<f64>),
}

impl Values {
    /// The values of source words, as the oracle takes them.
    pub fn of(source: SourceType, words: &[u64]) -> Self {
        let words = words.iter();
        match source {
            SourceType::F32 => Self::F32(words.map(|&word| f32::from_bits(word as u32)).collect()),
            SourceType::Bf16 => Self::Bf16(words.map(|&word| bf16::from_bits(word as u16)).collect()),
            SourceType::F16 => Self::F16(words.map(|&word| f16::from_bits(word as u16)).collect()),
            SourceType::F64 => Self::F64(words.map(|&word| f64::from_bits(word)).collect()),
        }
    }

    pub fn source(&self) -> Source<'_> {
        self.from(0)
    }

    /// The values from an index on.
    pub fn from(&self, begin: usize) -> Source<'_> {
        match self {
            Self::F32(values) => values[begin..].into(),
            Self::Bf16(values) => values[begin..].into(),
            Self::F16(values) => values[begin..].into(),
            Self::F64(values) => values[begin..].into(),
        }
    }
}

/// A source type of the oracle and of the crate.
pub use crate::oracle::encode::Source as SourceType;

pub const SOURCES: [SourceType; 4] = [SourceType::F32, SourceType::Bf16, SourceType::F16, SourceType::F64];
