//! x86-64: AVX2 and AVX-512 kernels, and the guard against the caller's float mode.

mod avx2_quantize;
mod avx512_quantize;
mod mxcsr;
mod output;
mod quantize;

pub(super) use mxcsr::DefaultMode;
pub(super) use quantize::quantize_rows;
