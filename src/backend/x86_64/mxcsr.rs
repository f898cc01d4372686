//! The SSE control register: a call that rounds runs in the default mode and leaves the caller's behind.

use core::arch::asm;

/// Round to nearest, no flushing, all exceptions masked.
const DEFAULT: u32 = 0x1f80;
/// The sticky exception flags, which are not a mode.
const FLAGS: u32 = 0x3f;

/// While it lives the default mode is set; dropping it sets the caller's mode again, flags included.
pub(crate) struct DefaultMode {
    caller: u32,
}

impl DefaultMode {
    pub(crate) fn enter() -> Self {
        let caller = read();
        #[cfg(test)]
        if crate::backend::encode_mode_tests::planted() == crate::backend::encode_mode_tests::Planted::NoGuard
        {
            return Self { caller };
        }
        if caller & !FLAGS != DEFAULT {
            write(DEFAULT);
        }
        Self { caller }
    }
}

impl Drop for DefaultMode {
    fn drop(&mut self) {
        write(self.caller);
    }
}

fn read() -> u32 {
    let mut word = 0u32;
    // SAFETY: STMXCSR is part of every x86-64 processor and stores 4 bytes at `word`, which is writable.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
    word
}

fn write(word: u32) {
    // SAFETY: LDMXCSR loads 4 bytes from `word`; the value was read from the register or is the default, so
    // no reserved bit is set. The kernels between two calls are not inlined, so no float operation moves
    // across: the asm block may touch memory as far as the compiler knows.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack)) };
}
