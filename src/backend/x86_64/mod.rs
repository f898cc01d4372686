//! x86-64: AVX2 and AVX-512 kernels, and the guard against the caller's float mode.

mod avx2_decode;
mod avx512_decode;
pub(super) mod decode;
mod lanes;
#[allow(dead_code, reason = "the guard waits for the first kernel that rounds")]
mod mxcsr;
pub(super) mod stream;

pub(crate) use lanes::Lanes;
