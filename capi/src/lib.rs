//! `libninfer_codec.a` and `libninfer_codec.so`: the C functions of `ninfer_codec::ffi`, and the panic handler
//! that a library without `std` needs.
//!
//! `cargo build --profile archive -p ninfer-codec-capi` makes both, under `target/archive/`. No function of the
//! interface can reach a panic, as the tests in `ffi-tests/tests/c_interface/archive.rs` prove. A profile that
//! unwinds builds against `std`, so that the package can be checked with the workspace; what comes of it is not
//! for use.

#![cfg_attr(panic = "abort", no_std)]

pub use ninfer_codec::ffi::*;

/// Never called: see above.
#[cfg(all(panic = "abort", not(feature = "panic-proof")))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Leaves a symbol behind wherever a panic can be reached.
#[cfg(all(panic = "abort", feature = "panic-proof"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        fn ninfer_codec_panic_path_survived() -> !;
    }
    // SAFETY: nothing with this name is ever linked.
    unsafe { ninfer_codec_panic_path_survived() }
}

/// A negative control: its index can be out of bounds, so it can panic.
///
/// # Safety
/// `src[0 .. len]` is readable.
#[cfg(feature = "plant-panic")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_planted(src: *const u8, len: usize, i: usize) -> u8 {
    // SAFETY: the caller's promise.
    let src = unsafe { core::slice::from_raw_parts(src, len) };
    src[i]
}

/// A negative control: a name without the prefix, and a function that no host has.
#[cfg(feature = "plant-symbol")]
#[unsafe(no_mangle)]
pub extern "C" fn planted_symbol() -> u32 {
    unsafe extern "C" {
        fn ninfer_codec_planted_need() -> u32;
    }
    // SAFETY: nothing with this name is ever linked.
    unsafe { ninfer_codec_planted_need() }
}
