//! FP8_E4M3FN_ROW_BF16S: E4M3FN codes, one BF16 multiplier a row. Spec: tensor-formats §3.4.

use super::e4m3fn;
use super::rounding::{f32_bits_from_scaled, f32_split};

/// Returns the binary32 word of `code * scale`, for a legal row scale and any code word.
///
/// The product of a four-bit and an eight-bit significand is exact in binary32, subnormals included, unless
/// it overflows; then it is infinity. A NaN code word gives `0x7fc00000`.
///
/// # Panics
/// Never.
///
/// ```
/// use ninfer_codec::format::fp8_row::product_f32_bits;
/// assert_eq!(product_f32_bits(0x38, 0x3f00), 0.5f32.to_bits()); // 1.0 * 0.5
/// assert_eq!(product_f32_bits(0xfe, 0x7f7f), f32::NEG_INFINITY.to_bits());
/// ```
#[must_use]
pub const fn product_f32_bits(code: u8, scale: u16) -> u32 {
    if !e4m3fn::is_legal_code(code) {
        return e4m3fn::NAN_F32_BITS;
    }
    let sign = ((code & 0x80) as u32) << 24;
    let (code_significand, code_exponent) = e4m3fn::split(code);
    let (scale_significand, scale_exponent) = f32_split((scale as u32) << 16);
    let product = code_significand as u64 * scale_significand as u64;
    sign | f32_bits_from_scaled(product, code_exponent + scale_exponent)
}
