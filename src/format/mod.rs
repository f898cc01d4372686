//! What a word means. Nothing here knows a byte offset.
//!
//! The registry of formats is closed: nine entries, ids that never change, lookup by exact name.
//! Spec: tensor-formats §1.

pub mod binary16;
pub mod direct;
pub mod e2m1;
pub mod e4m3fn;
pub mod fp8_row;
pub mod grouped;
pub mod nvfp4;
pub mod rounding;

use core::fmt;

use crate::error::UnknownName;
use crate::layout::Layout;
use grouped::Scheme;

/// One of the nine persistent numeric tensor formats. Spec: tensor-formats §1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Format {
    /// bfloat16 words.
    Bf16 = 1,
    /// IEEE-754 binary32 words.
    Fp32 = 2,
    /// 32-bit two's-complement words.
    I32 = 3,
    /// 4-bit signed codes, one binary16 multiplier for 64.
    Q4G64F16S = 4,
    /// 5-bit signed codes, one binary16 multiplier for 64.
    Q5G64F16S = 5,
    /// 6-bit signed codes, one binary16 multiplier for 64.
    Q6G64F16S = 6,
    /// 8-bit signed codes, one binary16 multiplier for 32.
    W8G32F16S = 7,
    /// E2M1 codes, one E4M3FN scale for 16, one FP32 divisor for the matrix.
    Nvfp4 = 8,
    /// E4M3FN codes, one BF16 multiplier a row.
    Fp8E4M3FnRowBf16S = 9,
}

/// How a format represents a weight. Spec: tensor-formats §1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Category {
    /// One floating-point word an element: BF16, FP32.
    DirectFloat = 1,
    /// One integer word an element: I32.
    DirectInteger = 2,
    /// Signed codes and one multiplier a group: Q4, Q5, Q6, W8.
    Grouped = 3,
    /// Floating-point codes, a scale a block and a divisor: NVFP4.
    BlockScaled = 4,
    /// Floating-point codes and a multiplier a row: FP8_E4M3FN_ROW_BF16S.
    RowScaled = 5,
}

/// The type of a format's scale words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ScaleType {
    /// IEEE-754 binary16.
    F16 = 1,
    /// bfloat16.
    Bf16 = 2,
    /// E4M3FN.
    E4M3Fn = 3,
}

/// An exact fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    /// Numerator.
    pub numerator: u32,
    /// Denominator, positive.
    pub denominator: u32,
}

/// The fixed facts of one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatDescriptor {
    /// The canonical name, the only accepted spelling.
    pub name: &'static str,
    /// How the format represents a weight.
    pub category: Category,
    /// Bits of one direct word or code.
    pub code_bits: u32,
    /// Weights along K that share a scale; `None` for direct formats and for a scale a row.
    pub group: Option<u32>,
    /// Least and greatest legal code of an integer format.
    pub code_interval: Option<(i32, i32)>,
    /// Denominator of the canonical encoder, where there is one.
    pub qmax: Option<u32>,
    /// Type of the scale words.
    pub scale: Option<ScaleType>,
    /// Whether the matrix has an FP32 divisor.
    pub has_divisor: bool,
    /// Logical bits a weight, scales included, where the contract states them.
    pub bits_per_weight: Option<Ratio>,
    /// The only layout that holds the format.
    pub layout: Layout,
}

impl Format {
    /// All formats, by rising id.
    pub const ALL: [Self; 9] = [
        Self::Bf16,
        Self::Fp32,
        Self::I32,
        Self::Q4G64F16S,
        Self::Q5G64F16S,
        Self::Q6G64F16S,
        Self::W8G32F16S,
        Self::Nvfp4,
        Self::Fp8E4M3FnRowBf16S,
    ];

    /// Returns the format whose canonical name is exactly `name`.
    ///
    /// # Errors
    /// [`UnknownName`] for everything else: there are no aliases, no case folding, no trimming.
    ///
    /// # Panics
    /// Never.
    ///
    /// ```
    /// use ninfer_codec::Format;
    /// assert_eq!(Format::from_name(b"Q4G64_F16S"), Ok(Format::Q4G64F16S));
    /// assert!(Format::from_name(b"Q4").is_err());
    /// ```
    pub fn from_name(name: &[u8]) -> Result<Self, UnknownName<'_>> {
        find(&Self::ALL, Self::name, name)
    }

    /// Returns the format with this id, 1 to 9.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.id() == id)
    }

    /// Returns the id; ids never change and are never reused.
    #[must_use]
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Returns the canonical name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// Returns the only layout that holds the format.
    #[must_use]
    pub const fn layout(self) -> Layout {
        self.descriptor().layout
    }

    /// Returns the grouped scheme, for the four formats that have one.
    #[must_use]
    pub const fn scheme(self) -> Option<&'static Scheme> {
        match self {
            Self::Q4G64F16S => Some(&grouped::Q4),
            Self::Q5G64F16S => Some(&grouped::Q5),
            Self::Q6G64F16S => Some(&grouped::Q6),
            Self::W8G32F16S => Some(&grouped::W8),
            _ => None,
        }
    }

    /// Returns the fixed facts of the format.
    #[must_use]
    pub const fn descriptor(self) -> &'static FormatDescriptor {
        match self {
            Self::Bf16 => &BF16,
            Self::Fp32 => &FP32,
            Self::I32 => &I32,
            Self::Q4G64F16S => &Q4G64_F16S,
            Self::Q5G64F16S => &Q5G64_F16S,
            Self::Q6G64F16S => &Q6G64_F16S,
            Self::W8G32F16S => &W8G32_F16S,
            Self::Nvfp4 => &NVFP4,
            Self::Fp8E4M3FnRowBf16S => &FP8_E4M3FN_ROW_BF16S,
        }
    }

    /// A column range may begin at any multiple of this: a power of two, written as one, so that the compiler
    /// sees that it is not zero and divides by shifting.
    #[inline(always)]
    pub(crate) const fn column_step(self) -> u64 {
        const MOST: u32 = 15;
        match self.descriptor().group {
            Some(group) => 1 << (group.trailing_zeros() & MOST),
            None => 1,
        }
    }
}

const fn direct(name: &'static str, category: Category, code_bits: u32) -> FormatDescriptor {
    FormatDescriptor {
        name,
        category,
        code_bits,
        group: None,
        code_interval: None,
        qmax: None,
        scale: None,
        has_divisor: false,
        bits_per_weight: Some(Ratio { numerator: code_bits, denominator: 1 }),
        layout: Layout::ContiguousLeV1,
    }
}

const fn grouped(name: &'static str, scheme: &Scheme, numerator: u32, denominator: u32) -> FormatDescriptor {
    // numerator / denominator = code_bits + 16 / group, tensor-formats §6.3
    assert!(numerator * scheme.group == denominator * (scheme.code_bits * scheme.group + 16));
    FormatDescriptor {
        name,
        category: Category::Grouped,
        code_bits: scheme.code_bits,
        group: Some(scheme.group),
        code_interval: Some((scheme.code_min as i32, scheme.code_max as i32)),
        qmax: Some(scheme.code_max as u32),
        scale: Some(ScaleType::F16),
        has_divisor: false,
        bits_per_weight: Some(Ratio { numerator, denominator }),
        layout: Layout::RowSplitK128V1,
    }
}

const BF16: FormatDescriptor = direct("BF16", Category::DirectFloat, 16);
const FP32: FormatDescriptor = direct("FP32", Category::DirectFloat, 32);
const I32: FormatDescriptor = FormatDescriptor {
    code_interval: Some((i32::MIN, i32::MAX)),
    ..direct("I32", Category::DirectInteger, 32)
};
const Q4G64_F16S: FormatDescriptor = grouped("Q4G64_F16S", &grouped::Q4, 17, 4);
const Q5G64_F16S: FormatDescriptor = grouped("Q5G64_F16S", &grouped::Q5, 21, 4);
const Q6G64_F16S: FormatDescriptor = grouped("Q6G64_F16S", &grouped::Q6, 25, 4);
const W8G32_F16S: FormatDescriptor = grouped("W8G32_F16S", &grouped::W8, 17, 2);
const NVFP4: FormatDescriptor = FormatDescriptor {
    name: "NVFP4",
    category: Category::BlockScaled,
    code_bits: 4,
    group: Some(nvfp4::GROUP as u32),
    code_interval: None,
    qmax: None,
    scale: Some(ScaleType::E4M3Fn),
    has_divisor: true,
    bits_per_weight: None,
    layout: Layout::BlockscaleK16M128x4V1,
};
const FP8_E4M3FN_ROW_BF16S: FormatDescriptor = FormatDescriptor {
    name: "FP8_E4M3FN_ROW_BF16S",
    category: Category::RowScaled,
    code_bits: 8,
    group: None,
    code_interval: None,
    qmax: None,
    scale: Some(ScaleType::Bf16),
    has_divisor: false,
    bits_per_weight: None,
    layout: Layout::RowScaleV1,
};

/// The one canonical encoder profile. Spec: tensor-formats §7.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum EncoderProfile {
    /// `MAXABS_F16_RECIP_RNE_V1`, for the four grouped formats.
    MaxabsF16RecipRneV1 = 1,
}

impl EncoderProfile {
    /// All profiles, by rising id.
    pub const ALL: [Self; 1] = [Self::MaxabsF16RecipRneV1];

    /// Returns the profile whose name is exactly `name`.
    ///
    /// # Errors
    /// [`UnknownName`] for everything else.
    ///
    /// # Panics
    /// Never.
    pub fn from_name(name: &[u8]) -> Result<Self, UnknownName<'_>> {
        find(&Self::ALL, Self::name, name)
    }

    /// Returns the profile with this id.
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.id() == id)
    }

    /// Returns the id; ids never change and are never reused.
    #[must_use]
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Returns the profile's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        "MAXABS_F16_RECIP_RNE_V1"
    }

    /// Returns the formats the profile encodes.
    #[must_use]
    pub const fn formats(self) -> &'static [Format] {
        &[Format::Q4G64F16S, Format::Q5G64F16S, Format::Q6G64F16S, Format::W8G32F16S]
    }
}

impl fmt::Display for Format {
    /// Writes the canonical name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Finds the entry of a closed registry whose name is exactly `name`.
pub(crate) fn find<'n, T: Copy>(
    entries: &[T],
    name_of: impl Fn(T) -> &'static str,
    name: &'n [u8],
) -> Result<T, UnknownName<'n>> {
    entries.iter().copied().find(|&entry| name_of(entry).as_bytes() == name).ok_or(UnknownName { name })
}

/// The value class of a floating-point word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WordClass {
    /// Positive or negative zero.
    Zero,
    /// Nonzero, below the least normal magnitude.
    Subnormal,
    /// Finite and normal.
    Normal,
    /// Positive or negative infinity.
    Infinite,
    /// A NaN of a format that has no quiet bit: E4M3FN.
    Nan,
    /// A NaN whose top fraction bit is set.
    QuietNan,
    /// A NaN whose top fraction bit is clear.
    SignalingNan,
}

/// Why a scale or divisor word is illegal. An infinity is `Infinite` and a NaN is `Nan` whatever the sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum WordFault {
    /// A NaN.
    Nan = 1,
    /// An infinity.
    Infinite = 2,
    /// Zero with the sign bit set.
    NegativeZero = 3,
    /// Finite, not zero, with the sign bit set.
    Negative = 4,
    /// Positive zero, where the word must be positive.
    Zero = 5,
}

impl WordFault {
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            Self::Nan => "NaN",
            Self::Infinite => "infinite",
            Self::NegativeZero => "negative zero",
            Self::Negative => "negative",
            Self::Zero => "zero",
        }
    }
}
