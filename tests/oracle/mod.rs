//! The slow oracle: the formats and layouts once more, written to be checked by eye.
//!
//! Nothing here uses a floating-point type or the crate under test. A value is an exact fraction
//! (`words::Exact`); rounding walks the bit patterns of the target; a payload is a list of bit
//! fields in order (`layout::fields`). Results are bit patterns in `u32` or `u64`.
//!
//! * `words`: what a word means, conversions and rounding, validity of scales and divisors
//! * `encode`: the canonical encoder `MAXABS_F16_RECIP_RNE_V1`
//! * `layout`: geometry, packing, unpacking
//! * `rows`: ranges and lists of rows, views, slices, gathers, stacks
//! * `decode`: decoding to binary32, binary64, bfloat16 and binary16 words
//! * `validate`: the first violation in a payload or a range of it
//!
//! The clauses cited are those of the tensor format contract ("formats"), the storage layout
//! registry ("layouts") and the API rules ("rules").

#![allow(dead_code)]
#![deny(clippy::float_arithmetic)]

pub mod decode;
pub mod encode;
pub mod layout;
pub mod rows;
pub mod validate;
pub mod words;

/// Where a payload may start inside a file: a multiple of this, for every layout (layouts 1).
pub const OBJECT_ALIGNMENT: u64 = 256;

/// The nine formats (formats 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Bf16,
    Fp32,
    I32,
    Q4,
    Q5,
    Q6,
    W8,
    Nvfp4,
    Fp8Row,
}

/// The four layouts (layouts 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    Contiguous,
    RowSplit,
    Blockscale,
    RowScale,
}

impl Format {
    pub const ALL: [Format; 9] = {
        use Format::*;
        [Bf16, Fp32, I32, Q4, Q5, Q6, W8, Nvfp4, Fp8Row]
    };

    /// The canonical name; there are no aliases (formats 1, 3.2).
    pub fn name(self) -> &'static str {
        match self {
            Format::Bf16 => "BF16",
            Format::Fp32 => "FP32",
            Format::I32 => "I32",
            Format::Q4 => "Q4G64_F16S",
            Format::Q5 => "Q5G64_F16S",
            Format::Q6 => "Q6G64_F16S",
            Format::W8 => "W8G32_F16S",
            Format::Nvfp4 => "NVFP4",
            Format::Fp8Row => "FP8_E4M3FN_ROW_BF16S",
        }
    }

    /// The format with exactly this name (formats 3.2: compare, never parse).
    pub fn from_name(name: &[u8]) -> Option<Format> {
        Format::ALL.into_iter().find(|f| f.name().as_bytes() == name)
    }

    /// The one layout that accepts the format (layouts 1).
    pub fn layout(self) -> Layout {
        match self {
            Format::Bf16 | Format::Fp32 | Format::I32 => Layout::Contiguous,
            Format::Q4 | Format::Q5 | Format::Q6 | Format::W8 => Layout::RowSplit,
            Format::Nvfp4 => Layout::Blockscale,
            Format::Fp8Row => Layout::RowScale,
        }
    }

    /// Bits of one code or direct word (formats 1).
    pub fn code_bits(self) -> u32 {
        match self {
            Format::Q4 | Format::Nvfp4 => 4,
            Format::Q5 => 5,
            Format::Q6 => 6,
            Format::W8 | Format::Fp8Row => 8,
            Format::Bf16 => 16,
            Format::Fp32 | Format::I32 => 32,
        }
    }

    /// Columns that share a scale word; none for direct formats and for one scale a row.
    pub fn group(self) -> Option<u64> {
        match self {
            Format::Q4 | Format::Q5 | Format::Q6 => Some(64),
            Format::W8 => Some(32),
            Format::Nvfp4 => Some(16),
            _ => None,
        }
    }

    /// Bits of one scale word; 0 where there are no scales.
    pub fn scale_bits(self) -> u32 {
        match self.layout() {
            Layout::Contiguous => 0,
            Layout::Blockscale => 8,
            Layout::RowSplit | Layout::RowScale => 16,
        }
    }

    /// The legal signed codes of a grouped format (formats 5.1, 5.2).
    pub fn code_range(self) -> Option<(i64, i64)> {
        match self {
            Format::Q4 => Some((-8, 7)),
            Format::Q5 => Some((-16, 15)),
            Format::Q6 => Some((-32, 31)),
            Format::W8 => Some((-127, 127)),
            _ => None,
        }
    }
}

impl Layout {
    pub const ALL: [Layout; 4] = {
        use Layout::*;
        [Contiguous, RowSplit, Blockscale, RowScale]
    };

    pub fn name(self) -> &'static str {
        match self {
            Layout::Contiguous => "contiguous-le-v1",
            Layout::RowSplit => "row-split-k128-v1",
            Layout::Blockscale => "blockscale-k16-m128x4-v1",
            Layout::RowScale => "row-scale-v1",
        }
    }

    pub fn from_name(name: &[u8]) -> Option<Layout> {
        Layout::ALL.into_iter().find(|l| l.name().as_bytes() == name)
    }
}

/// Every refusal the oracle can report. `word` is the offending word as it is stored or given; a
/// signed code is shown as the unsigned word of its width (of 8 bits when it does not fit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    UnsupportedPair,
    WrongRank,
    ZeroDimension,
    NotMultiple,
    Overflow,
    PayloadLength {
        expected: u64,
        actual: u64,
    },
    EmptyRows,
    RowOutOfRange,
    BadColumns,
    UnsupportedOutput,
    NoCanonicalEncoder,
    /// Stacked parts differ in K; `part` is the first that differs from part 0.
    StackColumns {
        part: usize,
    },
    /// Stacked NVFP4 parts differ in their divisor words.
    StackDivisor {
        part: usize,
    },
    /// `group` is absent for one scale a row.
    InvalidScale {
        row: u64,
        group: Option<u64>,
        word: u32,
    },
    InvalidDivisor {
        word: u32,
    },
    InvalidCode {
        row: u64,
        col: u64,
        word: u32,
    },
    ZeroScaleNonzeroCode {
        row: u64,
        col: u64,
        word: u32,
    },
    PaddingScaleNotZero {
        row: u64,
        group: u64,
        word: u32,
    },
    PaddingCodeNotZero {
        row: u64,
        col: u64,
        word: u32,
    },
    GapNotZero {
        offset: u64,
        word: u32,
    },
    NonFiniteSource {
        row: u64,
        col: u64,
        word: u64,
    },
    SourceNotRepresentable {
        row: u64,
        col: u64,
        word: u64,
    },
    ScaleOverflow {
        row: u64,
        group: u64,
    },
}
