//! Buffers of values and words as callers hold them: native-endian, typed, borrowed.

use core::fmt;

use half::{bf16, f16};

use crate::format::Format;

/// A type that tensors are quantized from or decoded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ValueType {
    /// IEEE-754 binary32.
    F32 = 1,
    /// bfloat16.
    Bf16 = 2,
    /// IEEE-754 binary16.
    F16 = 3,
    /// IEEE-754 binary64.
    F64 = 4,
}

impl ValueType {
    /// All value types, by rising id.
    pub const ALL: [Self; 4] = [Self::F32, Self::Bf16, Self::F16, Self::F64];

    /// Returns the type with this id.
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|value| *value as u32 == id)
    }

    /// Returns the id; ids never change and are never reused.
    #[must_use]
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Returns the usual short name: `f32`, `bf16`, `f16`, `f64`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
            Self::F64 => "f64",
        }
    }

    /// Returns the bytes of one value.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 2,
            Self::F64 => 8,
        }
    }
}

/// Values to read: the source of an encoder or a conversion.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// binary32.
    F32(&'a [f32]),
    /// bfloat16.
    Bf16(&'a [bf16]),
    /// binary16.
    F16(&'a [f16]),
    /// binary64.
    F64(&'a [f64]),
}

/// Room for decoded values.
pub enum Output<'a> {
    /// binary32: every format but I32.
    F32(&'a mut [f32]),
    /// bfloat16: the quantized formats, rounded once from the binary32 value, and BF16 as it is.
    Bf16(&'a mut [bf16]),
    /// binary16: the quantized formats, rounded once from the binary32 value.
    F16(&'a mut [f16]),
    /// binary64: NVFP4 only.
    F64(&'a mut [f64]),
}

impl Source<'_> {
    /// Returns the type of the values.
    #[must_use]
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::F32(_) => ValueType::F32,
            Self::Bf16(_) => ValueType::Bf16,
            Self::F16(_) => ValueType::F16,
            Self::F64(_) => ValueType::F64,
        }
    }

    /// Returns the number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::Bf16(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    /// Says whether there are no values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values from `start` on.
    pub(crate) fn from(&self, start: usize) -> Self {
        match *self {
            Self::F32(values) => Self::F32(values.get(start..).unwrap_or(&[])),
            Self::Bf16(values) => Self::Bf16(values.get(start..).unwrap_or(&[])),
            Self::F16(values) => Self::F16(values.get(start..).unwrap_or(&[])),
            Self::F64(values) => Self::F64(values.get(start..).unwrap_or(&[])),
        }
    }
}

impl Output<'_> {
    /// Returns the type of the values.
    #[must_use]
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::F32(_) => ValueType::F32,
            Self::Bf16(_) => ValueType::Bf16,
            Self::F16(_) => ValueType::F16,
            Self::F64(_) => ValueType::F64,
        }
    }

    /// Returns the number of values there is room for.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::Bf16(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    /// Says whether there is no room at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Shows the type and the number of values, not the values.
impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({} x {})", self.len(), self.value_type().name())
    }
}

/// Shows the type and the number of values, not the values.
impl fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Output({} x {})", self.len(), self.value_type().name())
    }
}

macro_rules! from_slices {
    ($($value:ty => $variant:ident),*) => {$(
        impl<'a> From<&'a [$value]> for Source<'a> {
            fn from(values: &'a [$value]) -> Self {
                Self::$variant(values)
            }
        }

        impl<'a> From<&'a mut [$value]> for Output<'a> {
            fn from(values: &'a mut [$value]) -> Self {
                Self::$variant(values)
            }
        }
    )*};
}

from_slices!(f32 => F32, bf16 => Bf16, f16 => F16, f64 => F64);

/// The natural words of some rows, to be packed.
///
/// Rows follow one another with no stride. Scales are those of logical groups only.
#[derive(Clone, Copy)]
pub enum Words<'a> {
    /// BF16 words.
    Bf16(&'a [u16]),
    /// FP32 words.
    Fp32(&'a [u32]),
    /// I32 words.
    I32(&'a [i32]),
    /// Q4, Q5, Q6 or W8.
    Grouped {
        /// One signed code a weight.
        codes: &'a [i8],
        /// One binary16 word a logical group.
        scales: &'a [u16],
    },
    /// NVFP4.
    Nvfp4 {
        /// E2M1 pairs, the smaller k in the low nibble.
        codes: &'a [u8],
        /// E4M3FN words in natural order: row by row, groups rising.
        scales: &'a [u8],
        /// The matrix divisor, a binary32 word.
        divisor: u32,
    },
    /// FP8_E4M3FN_ROW_BF16S.
    Fp8Row {
        /// One E4M3FN word a weight.
        codes: &'a [u8],
        /// One BF16 word a row.
        scales: &'a [u16],
    },
}

/// Room for the natural words of some rows; see [`Words`].
pub enum WordsMut<'a> {
    /// BF16 words.
    Bf16(&'a mut [u16]),
    /// FP32 words.
    Fp32(&'a mut [u32]),
    /// I32 words.
    I32(&'a mut [i32]),
    /// Q4, Q5, Q6 or W8.
    Grouped {
        /// One signed code a weight.
        codes: &'a mut [i8],
        /// One binary16 word a logical group.
        scales: &'a mut [u16],
    },
    /// NVFP4.
    Nvfp4 {
        /// E2M1 pairs, the smaller k in the low nibble.
        codes: &'a mut [u8],
        /// E4M3FN words in natural order.
        scales: &'a mut [u8],
        /// The matrix divisor, a binary32 word.
        divisor: &'a mut u32,
    },
    /// FP8_E4M3FN_ROW_BF16S.
    Fp8Row {
        /// One E4M3FN word a weight.
        codes: &'a mut [u8],
        /// One BF16 word a row.
        scales: &'a mut [u16],
    },
}

macro_rules! describe_words {
    ($($words:ident),*) => {$(
        impl $words<'_> {
            /// The kind of words, and how many codes (or direct words) and scales there are.
            const fn summary(&self) -> (&'static str, usize, usize) {
                match self {
                    Self::Bf16(words) => ("Bf16", words.len(), 0),
                    Self::Fp32(words) => ("Fp32", words.len(), 0),
                    Self::I32(words) => ("I32", words.len(), 0),
                    Self::Grouped { codes, scales } => ("Grouped", codes.len(), scales.len()),
                    Self::Nvfp4 { codes, scales, .. } => ("Nvfp4", codes.len(), scales.len()),
                    Self::Fp8Row { codes, scales } => ("Fp8Row", codes.len(), scales.len()),
                }
            }

            /// How many codes (or direct words) and scales there are, if a format has this kind of words.
            pub(crate) const fn counts(&self, format: Format) -> Option<(usize, usize)> {
                let fitting = match self {
                    Self::Bf16(_) => matches!(format, Format::Bf16),
                    Self::Fp32(_) => matches!(format, Format::Fp32),
                    Self::I32(_) => matches!(format, Format::I32),
                    Self::Grouped { .. } => format.scheme().is_some(),
                    Self::Nvfp4 { .. } => matches!(format, Format::Nvfp4),
                    Self::Fp8Row { .. } => matches!(format, Format::Fp8E4M3FnRowBf16S),
                };
                let (_, codes, scales) = self.summary();
                if fitting { Some((codes, scales)) } else { None }
            }
        }

        /// Shows the kind and the number of words, not the words.
        impl fmt::Debug for $words<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (kind, codes, scales) = self.summary();
                write!(f, "{}::{kind}({codes} codes, {scales} scales)", stringify!($words))
            }
        }
    )*};
}

describe_words!(Words, WordsMut);
