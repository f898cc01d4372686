//! The processor's float mode, for tests that set it: a word of control bits and exception flags.

pub(super) use arch::{CHANGES, DEFAULT, FLAGS, FLUSHES, OTHERS, ROUNDINGS, read, write};

/// Four roundings and every way to flush subnormals; the first is the default mode.
pub(super) fn modes() -> impl Iterator<Item = u64> {
    ROUNDINGS.into_iter().flat_map(|rounding| FLUSHES.iter().map(move |flush| DEFAULT ^ rounding ^ flush))
}

/// [`modes`], each also with every other setting that a caller may have.
pub(super) fn all_modes() -> impl Iterator<Item = u64> {
    modes().flat_map(|mode| OTHERS.iter().map(move |other| mode ^ other))
}

/// Runs in a mode, which the processor may not have all bits of; returns the mode before and after, too.
pub(super) fn run_in<R>(mode: u64, run: impl FnOnce() -> R) -> (R, [u64; 2]) {
    let caller = read();
    write(mode);
    let before = read();
    let result = run();
    let after = read();
    write(caller);
    (result, [before, after])
}

/// MXCSR.
#[cfg(target_arch = "x86_64")]
mod arch {
    use core::arch::asm;

    pub(crate) const DEFAULT: u64 = ALL_MASKED;
    pub(crate) const ROUNDINGS: [u64; 4] = [0x0000, 0x2000, 0x4000, 0x6000];
    const FLUSH_TO_ZERO: u64 = 0x8000;
    const DENORMALS_ARE_ZERO: u64 = 0x0040;
    pub(crate) const FLUSHES: [u64; 4] =
        [0, FLUSH_TO_ZERO, DENORMALS_ARE_ZERO, FLUSH_TO_ZERO | DENORMALS_ARE_ZERO];
    const ALL_MASKED: u64 = 0x1f80;
    /// No exception masked.
    pub(crate) const OTHERS: [u64; 2] = [0, ALL_MASKED];
    pub(crate) const FLAGS: u64 = 0x3f;
    /// Changes to the default mode: raised flags, and exceptions that are wanted.
    pub(crate) const CHANGES: [u64; 5] = [0x3f, 0x01, 0x20, ALL_MASKED, 0x0100];

    pub(crate) fn read() -> u64 {
        let mut word = 0u32;
        // SAFETY: STMXCSR stores 4 bytes.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word.into()
    }

    pub(crate) fn write(word: u64) {
        let word = word as u32;
        // SAFETY: LDMXCSR loads 4 bytes; no reserved bit is set in any mode used here.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack)) };
    }
}

/// FPCR, and above it the exception flags of FPSR.
#[cfg(target_arch = "aarch64")]
mod arch {
    use core::arch::asm;

    pub(crate) const DEFAULT: u64 = 0;
    pub(crate) const ROUNDINGS: [u64; 4] = [0, 1 << 22, 2 << 22, 3 << 22];
    const FLUSH_TO_ZERO: u64 = 1 << 24;
    pub(crate) const FLUSHES: [u64; 2] = [0, FLUSH_TO_ZERO];
    /// Binary16 without subnormals, and with numbers for infinities and NaNs; NaNs without payloads.
    const HALVES: u64 = 1 << 19 | 1 << 26 | 1 << 25;
    /// Every exception trapped, where the processor can.
    const TRAPS: u64 = 0x9f00;
    pub(crate) const OTHERS: [u64; 2] = [0, HALVES | TRAPS];
    pub(crate) const FLAGS: u64 = 0x9f << 32;
    /// Changes to the default mode: raised flags, and exceptions that are wanted.
    pub(crate) const CHANGES: [u64; 5] = [FLAGS, 0x01 << 32, 0x10 << 32, TRAPS, HALVES | 0x02 << 32];

    pub(crate) fn read() -> u64 {
        let (control, status): (u64, u64);
        // SAFETY: programs may read both registers.
        unsafe {
            asm!("mrs {}, fpcr", out(reg) control, options(nostack, preserves_flags));
            asm!("mrs {}, fpsr", out(reg) status, options(nostack, preserves_flags));
        }
        control | status << 32 & FLAGS
    }

    pub(crate) fn write(word: u64) {
        // SAFETY: programs may write both registers; no reserved bit is set in any mode used here.
        unsafe {
            asm!("msr fpcr, {}", in(reg) word & 0xffff_ffff, options(nostack));
            asm!("msr fpsr, {}", in(reg) word >> 32, options(nostack));
        }
    }
}
