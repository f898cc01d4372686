//! A report as the kernels leave it, and the host's error for it.

use crate::error::Error;
use crate::format::WordFault;
use crate::layout::Plan;

/// The `operation` of `ExplainArgs`.
pub(super) const DECODE: u32 = 1;
pub(super) const QUANTIZE: u32 = 2;
pub(super) const VALIDATE: u32 = 3;

/// `u64` words of a report: key, status and fault, row, column, group, offset, word.
pub(super) const WORDS: usize = 7;

/// Reads a report. Its numbers are those of `kernels/status.cuh`, which are the C interface's.
pub(super) fn outcome(report: [u64; WORDS], plan: &Plan) -> Result<(), Error> {
    let [_, status_and_fault, row, column, group, offset, word] = report;
    let fault = fault((status_and_fault >> 32) as u32);
    Err(match status_and_fault as u32 {
        0 => return Ok(()),
        31 => Error::NonFiniteSource { row, column, word },
        33 => Error::ScaleOverflow { row, group, raw_scale: word as u32 },
        35 => Error::InvalidScale { row, group, word: word as u16, fault },
        36 => Error::InvalidDivisor { word: word as u32, fault },
        37 => Error::InvalidCode { row, column, word: word as u8 },
        38 => Error::ZeroScaleNonzeroCode { row, column, word: word as u8 },
        39 => Error::PaddingCodeNotZero { row, column, word: word as u8 },
        40 => Error::PaddingScaleNotZero { row, group, word: word as u16 },
        41 => Error::GapNotZero { offset, word: word as u8 },
        _ => Error::RowOutOfRange { row, rows: plan.rows() }, // 17, the only one left
    })
}

fn fault(number: u32) -> WordFault {
    match number {
        1 => WordFault::Nan,
        2 => WordFault::Infinite,
        3 => WordFault::NegativeZero,
        4 => WordFault::Negative,
        _ => WordFault::Zero,
    }
}
