//! Whether words are legal, as errors with coordinates. Validation, decoding and packing all ask here.

use crate::error::Error;
use crate::format::grouped::Scheme;
use crate::format::{binary16, direct, e4m3fn, nvfp4};

/// A binary16 scale. Spec: tensor-formats §6.1.
pub(crate) fn grouped_scale(row: u64, group: u64, word: u16) -> Result<(), Error> {
    binary16::check_scale(word).map_err(|fault| Error::InvalidScale { row, group, word, fault })
}

/// An E4M3FN block scale. Spec: tensor-formats §3.3.
pub(crate) fn block_scale(row: u64, group: u64, word: u8) -> Result<(), Error> {
    e4m3fn::check_scale(word).map_err(|fault| Error::InvalidScale { row, group, word: word.into(), fault })
}

/// A BF16 row scale. Spec: tensor-formats §3.4.
pub(crate) fn row_scale(row: u64, word: u16) -> Result<(), Error> {
    direct::bf16_check_scale(word).map_err(|fault| Error::InvalidScale { row, group: 0, word, fault })
}

/// NVFP4's divisor. Spec: tensor-formats §3.3.
pub(crate) fn divisor(word: u32) -> Result<(), Error> {
    nvfp4::check_divisor(word).map_err(|fault| Error::InvalidDivisor { word, fault })
}

/// The codes of one group, columns `first..` of a row, under a legal scale. Spec: tensor-formats §5, §6.1.
pub(crate) fn grouped_codes(
    scheme: &Scheme,
    row: u64,
    first: u64,
    codes: &[i8],
    scale: u16,
) -> Result<(), Error> {
    for (column, &code) in (first..).zip(codes) {
        let word = code as u8;
        if !scheme.is_legal_code(code) {
            return Err(Error::InvalidCode { row, column, word });
        }
        if scale == 0 && code != 0 {
            return Err(Error::ZeroScaleNonzeroCode { row, column, word });
        }
    }
    Ok(())
}

/// FP8 codes, columns `first..` of a row, under a legal row scale. Spec: tensor-formats §3.4.
pub(crate) fn fp8_codes(row: u64, first: u64, codes: &[u8], scale: u16) -> Result<(), Error> {
    for (column, &word) in (first..).zip(codes) {
        if !e4m3fn::is_legal_code(word) {
            return Err(Error::InvalidCode { row, column, word });
        }
        if scale == 0 && word & 0x7f != 0 {
            return Err(Error::ZeroScaleNonzeroCode { row, column, word });
        }
    }
    Ok(())
}
