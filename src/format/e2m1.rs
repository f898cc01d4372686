//! E2M1, the four-bit code of NVFP4. Spec: tensor-formats §3.3.
//!
//! ```text
//! s ee m    0.0 0.5 1.0 1.5 2.0 3.0 4.0 6.0
//! ```

/// Twice the value of each positive code word; every E2M1 value is a whole number of halves.
pub const HALVES: [u8; 8] = [0, 1, 2, 3, 4, 6, 8, 12];

/// The binary32 word of each of the 16 code words.
pub const F32_BITS: [u32; 16] = [
    0x0000_0000,
    0x3f00_0000,
    0x3f80_0000,
    0x3fc0_0000,
    0x4000_0000,
    0x4040_0000,
    0x4080_0000,
    0x40c0_0000,
    0x8000_0000,
    0xbf00_0000,
    0xbf80_0000,
    0xbfc0_0000,
    0xc000_0000,
    0xc040_0000,
    0xc080_0000,
    0xc0c0_0000,
];

/// Returns the binary32 word of an E2M1 code word; bits above the low four are ignored.
///
/// # Panics
/// Never.
///
/// ```
/// assert_eq!(ninfer_codec::format::e2m1::to_f32_bits(0xd), (-3.0f32).to_bits());
/// ```
#[must_use]
#[expect(clippy::indexing_slicing, reason = "a masked index into 16 entries")]
pub const fn to_f32_bits(word: u8) -> u32 {
    F32_BITS[(word & 0xf) as usize]
}
