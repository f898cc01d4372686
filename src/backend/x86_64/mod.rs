//! x86-64: AVX2 and AVX-512 kernels, and the guard against the caller's float mode.

mod avx2_decode;
mod avx2_pack;
mod avx2_quantize;
mod avx2_words;
mod avx512_decode;
mod avx512_nvfp4;
mod avx512_pack;
mod avx512_quantize;
mod avx512_scales;
mod avx512_words;
pub(super) mod bf16;
pub(super) mod decode;
mod lanes;
mod mxcsr;
mod output;
mod pack;
mod quantize;
pub(super) mod scan;
mod sink;
pub(super) mod stream;
pub(super) mod swizzle;
pub(super) mod unpack;

pub(crate) use lanes::Lanes;
pub(super) use mxcsr::DefaultMode;
pub(super) use pack::pack_rows;
pub(super) use quantize::quantize_rows;
