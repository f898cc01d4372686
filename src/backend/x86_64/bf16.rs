//! Whether the processor rounds to bf16 by itself: asked of it once, then kept.

use core::arch::x86_64::__cpuid_count;
use core::sync::atomic::{AtomicU8, Ordering};

const NO: u8 = 1;
const YES: u8 = 2;

/// The answer, or 0 before the first call. Racing first calls store the same one.
static ANSWER: AtomicU8 = AtomicU8::new(0);

/// Says whether AVX-512 BF16 is there, on a processor with AVX-512 whose state the operating system saves.
#[inline]
pub(super) fn is_there() -> bool {
    match ANSWER.load(Ordering::Relaxed) {
        0 => ask(),
        answer => answer == YES,
    }
}

#[cold]
fn ask() -> bool {
    const BF16: u32 = 1 << 5;
    // SAFETY: AVX-512 is found by leaf 7, which is there, and its subleaf 0 says whether it has a subleaf 1.
    // Newer toolchains know the intrinsic as safe.
    #[allow(unused_unsafe)]
    let there = unsafe { __cpuid_count(7, 0).eax >= 1 && __cpuid_count(7, 1).eax & BF16 != 0 };
    ANSWER.store(if there { YES } else { NO }, Ordering::Relaxed);
    there
}

/// Makes calls do without it, or ask again.
#[cfg(test)]
pub(crate) fn hide(hidden: bool) {
    ANSWER.store(if hidden { NO } else { 0 }, Ordering::Relaxed);
}
