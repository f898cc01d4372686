//! Little-endian bytes of a file as typed values, copied only where they are not aligned.

use std::borrow::Cow;

use bytemuck::Pod;
use half::{bf16, f16};
use ninfer_codec::Source;
use safetensors::Dtype;

/// Words of a file.
pub fn words<T: Pod>(bytes: &[u8]) -> Cow<'_, [T]> {
    if cfg!(target_endian = "little")
        && let Ok(words) = bytemuck::try_cast_slice(bytes)
    {
        return Cow::Borrowed(words);
    }
    let mut words = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    let own: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    own.copy_from_slice(bytes);
    swap_on_big_endian::<T>(own);
    Cow::Owned(words)
}

/// Words as the bytes of a file.
pub fn to_little_endian<T: Pod>(words: &[T]) -> Vec<u8> {
    let mut bytes = bytemuck::cast_slice(words).to_vec();
    swap_on_big_endian::<T>(&mut bytes);
    bytes
}

fn swap_on_big_endian<T>(bytes: &mut [u8]) {
    if cfg!(target_endian = "big") {
        bytes.chunks_mut(size_of::<T>()).for_each(<[u8]>::reverse);
    }
}

/// Floating-point values of a file.
pub enum Values<'a> {
    F32(Cow<'a, [f32]>),
    Bf16(Cow<'a, [bf16]>),
    F16(Cow<'a, [f16]>),
    F64(Cow<'a, [f64]>),
}

impl<'a> Values<'a> {
    /// Reads values of a floating-point type that the codec takes; `None` for any other.
    pub fn new(dtype: Dtype, bytes: &'a [u8]) -> Option<Self> {
        Some(match dtype {
            Dtype::F32 => Self::F32(words(bytes)),
            Dtype::BF16 => Self::Bf16(words(bytes)),
            Dtype::F16 => Self::F16(words(bytes)),
            Dtype::F64 => Self::F64(words(bytes)),
            _ => return None,
        })
    }

    pub fn source(&self) -> Source<'_> {
        match self {
            Self::F32(values) => Source::F32(values),
            Self::Bf16(values) => Source::Bf16(values),
            Self::F16(values) => Source::F16(values),
            Self::F64(values) => Source::F64(values),
        }
    }
}

/// Integers of a file, each widened to 64 bits.
pub enum Integers {
    Signed(Vec<i64>),
    Unsigned(Vec<u64>),
}

impl Integers {
    /// Reads values of an integer type; `None` for any other.
    pub fn new(dtype: Dtype, bytes: &[u8]) -> Option<Self> {
        fn widened<T: Pod, U: From<T>>(bytes: &[u8]) -> Vec<U> {
            words::<T>(bytes).iter().map(|&word| word.into()).collect()
        }
        Some(match dtype {
            Dtype::I8 => Self::Signed(widened::<i8, _>(bytes)),
            Dtype::I16 => Self::Signed(widened::<i16, _>(bytes)),
            Dtype::I32 => Self::Signed(widened::<i32, _>(bytes)),
            Dtype::I64 => Self::Signed(widened::<i64, _>(bytes)),
            Dtype::U8 => Self::Unsigned(widened::<u8, _>(bytes)),
            Dtype::U16 => Self::Unsigned(widened::<u16, _>(bytes)),
            Dtype::U32 => Self::Unsigned(widened::<u32, _>(bytes)),
            Dtype::U64 => Self::Unsigned(widened::<u64, _>(bytes)),
            _ => return None,
        })
    }
}

/// Whether the codec takes the type as floating-point values.
pub fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F32 | Dtype::BF16 | Dtype::F16 | Dtype::F64)
}

/// Whether I32 can be made from the type where every value fits.
pub fn is_integer(dtype: Dtype) -> bool {
    Integers::new(dtype, &[]).is_some()
}

/// The direct format whose words are those of the type.
pub fn direct_twin(dtype: Dtype) -> Option<ninfer_codec::Format> {
    match dtype {
        Dtype::BF16 => Some(ninfer_codec::Format::Bf16),
        Dtype::F32 => Some(ninfer_codec::Format::Fp32),
        Dtype::I32 => Some(ninfer_codec::Format::I32),
        _ => None,
    }
}
