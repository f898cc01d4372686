//! The float control register: a call that rounds runs in the default mode and leaves the caller's behind.

use core::arch::asm;

/// Round to nearest, no flushing, IEEE binary16, NaNs as they come, nothing trapped.
const DEFAULT: u64 = 0;

/// While it lives the default mode is set; dropping it sets the caller's mode again, and the exception flags as they
/// were.
pub(crate) struct DefaultMode {
    control: u64,
    status: u64,
}

impl DefaultMode {
    pub(crate) fn enter() -> Self {
        let caller = Self { control: control(), status: status() };
        #[cfg(test)]
        if crate::backend::encode_mode_tests::planted() == crate::backend::encode_mode_tests::Planted::NoGuard
        {
            return caller;
        }
        if caller.control != DEFAULT {
            set_control(DEFAULT);
        }
        caller
    }
}

impl Drop for DefaultMode {
    fn drop(&mut self) {
        // The register is slow to write.
        if self.control != DEFAULT {
            set_control(self.control);
        }
        set_status(self.status);
    }
}

fn control() -> u64 {
    let word;
    // SAFETY: programs may read FPCR, and nothing else is touched.
    unsafe { asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack, preserves_flags)) };
    word
}

fn set_control(word: u64) {
    // SAFETY: programs may write FPCR; the word was read from it or is the default. The kernels between two calls are
    // not inlined, so no float operation moves across: the asm block may touch memory as far as the compiler knows.
    unsafe { asm!("msr fpcr, {}", in(reg) word, options(nostack)) };
}

fn status() -> u64 {
    let word;
    // SAFETY: programs may read FPSR, and nothing else is touched.
    unsafe { asm!("mrs {}, fpsr", out(reg) word, options(nomem, nostack, preserves_flags)) };
    word
}

fn set_status(word: u64) {
    // SAFETY: programs may write FPSR, and the word was read from it. For the order see `set_control`.
    unsafe { asm!("msr fpsr, {}", in(reg) word, options(nostack)) };
}
