//! x86-64: AVX2 and AVX-512 kernels, and the guard against the caller's float mode.

mod avx2_decode;
mod avx512_decode;
pub(super) mod decode;
mod lanes;
mod mxcsr;
pub(super) mod scan;
pub(super) mod stream;
pub(super) mod unpack;

pub(crate) use lanes::Lanes;
