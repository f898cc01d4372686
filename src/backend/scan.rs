//! Whether many words are legal, at the speed of reading them. A "no" is looked into by the exact checks.
//!
//! Each scan folds all words into one without a branch, which the compiler makes into vectors; it is compiled once
//! more for each backend's instructions. Integers only.

/// What is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// Little-endian binary16 words that are legal scales.
    GroupedScales,
    /// The same, and none is zero.
    NonzeroGroupedScales,
    /// Little-endian BF16 words that are legal row scales, none zero.
    NonzeroRowScales,
    /// E4M3FN words that are legal block scales.
    BlockScales,
    /// W8 codes without 0x80.
    W8Codes,
    /// E4M3FN codes without a NaN.
    Fp8Codes,
    /// Zeros.
    Zeros,
}

/// Says whether all words are what is looked for.
#[inline(always)]
pub(super) fn all(scan: Scan, bytes: &[u8]) -> bool {
    // A legal word keeps its top bit clear, and clear after adding what is missing to the first illegal one.
    const F16_ROOM: u16 = 0x8000 - 0x7c00;
    const BF16_ROOM: u16 = 0x8000 - 0x7f80;
    match scan {
        Scan::GroupedScales => words(bytes, |word| word | word.wrapping_add(F16_ROOM)),
        Scan::NonzeroGroupedScales => {
            words(bytes, |word| word.wrapping_sub(1) | word | word.wrapping_add(F16_ROOM))
        }
        Scan::NonzeroRowScales => {
            words(bytes, |word| word.wrapping_sub(1) | word | word.wrapping_add(BF16_ROOM))
        }
        Scan::BlockScales => top_bits_clear(bytes, |word| word | word.wrapping_add(1)),
        Scan::W8Codes => top_bits_clear(bytes, |word| if word == 0x80 { 0x80 } else { 0 }),
        Scan::Fp8Codes => top_bits_clear(bytes, |word| (word & 0x7f) + 1),
        Scan::Zeros => bytes.iter().fold(0, |bits, &byte| bits | byte) == 0,
    }
}

#[inline(always)]
fn words(bytes: &[u8], marks: impl Fn(u16) -> u16) -> bool {
    let words = bytes.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
    words.fold(0, |all, word| all | marks(word)) & 0x8000 == 0
}

#[inline(always)]
fn top_bits_clear(bytes: &[u8], marks: impl Fn(u8) -> u8) -> bool {
    bytes.iter().fold(0, |all, &byte| all | marks(byte)) & 0x80 == 0
}
