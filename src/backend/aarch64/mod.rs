//! AArch64: NEON kernels, and the guard against the caller's float mode.
//!
//! Compiled only where the target has NEON as a matter of course, so no kernel asks for it. Nothing here is written
//! past the caches: these processors see a long run of stores themselves, and stop reading the lines first.
//!
//! Left to the portable code: the swizzle of NVFP4's scales, copies, and quantizing from binary64. The scans are the
//! portable ones: the compiler makes them into these vectors anyway.

pub(super) mod decode;
mod fpcr;
mod kernels;
mod lanes;
mod nvfp4;
mod pack;
mod planes;
mod quantize;
pub(super) mod scan;
pub(super) mod unpack;

pub(super) use fpcr::DefaultMode;
pub(crate) use lanes::Lanes;
pub(super) use pack::pack_rows;
pub(super) use quantize::quantize_rows;
