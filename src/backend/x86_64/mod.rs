//! x86-64: AVX2 and AVX-512 kernels, and the guard against the caller's float mode.

#[allow(dead_code, reason = "the guard waits for the first kernel that rounds")]
mod mxcsr;
