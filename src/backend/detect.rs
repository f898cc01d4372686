//! Which backend runs: asked of the processor once, then kept. Works in `core`.

use core::sync::atomic::{AtomicU8, Ordering};

/// The backends there are. A target has only some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Backend {
    /// Plain Rust; always there.
    Portable = 1,
    /// x86-64 with AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2 = 2,
    /// x86-64 with AVX-512 F, BW, DQ, VL and VBMI.
    #[cfg(target_arch = "x86_64")]
    Avx512 = 3,
    /// AArch64 with NEON, where every processor of the target has it.
    #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
    Neon = 4,
}

impl Backend {
    /// All backends of this target, the best last.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Portable,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
        Self::Neon,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            Self::Neon => "neon",
        }
    }

    /// Whether this processor can run the backend.
    pub(crate) fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => x86::features().avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => x86::features().avx512,
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            Self::Neon => true,
        }
    }
}

/// The chosen backend's number, or 0 before the first call. Racing first calls store the same number.
static CHOICE: AtomicU8 = AtomicU8::new(0);

/// Returns the backend that runs.
#[inline]
pub(crate) fn active() -> Backend {
    let choice = CHOICE.load(Ordering::Relaxed);
    for &backend in Backend::ALL {
        if backend as u8 == choice {
            return backend;
        }
    }
    detect()
}

#[cold]
pub(super) fn detect() -> Backend {
    let mut best = Backend::Portable;
    // Without an operating system nobody vouches for the vector registers.
    if !cfg!(any(ninfer_codec_force_portable, target_os = "none")) {
        for &backend in Backend::ALL {
            if backend.is_available() {
                best = backend;
            }
        }
    }
    CHOICE.store(best as u8, Ordering::Relaxed);
    best
}

/// Makes a backend run, where the processor can; for tests and benchmarks.
#[cfg(any(test, feature = "internals"))]
pub(crate) fn select(backend: Backend) -> bool {
    let available = backend.is_available();
    if available {
        CHOICE.store(backend as u8, Ordering::Relaxed);
    }
    available
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use core::arch::x86_64::{__cpuid_count, _xgetbv};

    pub(super) struct Features {
        pub avx2: bool,
        pub avx512: bool,
    }

    /// What the processor has and the operating system saves.
    pub(super) fn features() -> Features {
        const NONE: Features = Features { avx2: false, avx512: false };
        const OSXSAVE: u32 = 1 << 27;
        const AVX_FMA_F16C: u32 = 1 << 28 | 1 << 12 | 1 << 29;
        const AVX2: u32 = 1 << 5;
        // Leaf 7: F, DQ, BW, VL in EBX and VBMI in ECX.
        const AVX512_EBX: u32 = 1 << 16 | 1 << 17 | 1 << 30 | 1 << 31;
        const AVX512_VBMI: u32 = 1 << 1;
        // XCR0: SSE and AVX state; opmask and both ZMM halves.
        const YMM_STATE: u64 = 0b110;
        const ZMM_STATE: u64 = 0b1110_0110;
        // SAFETY: every x86-64 processor has CPUID; leaf 7 is asked for only where it exists.
        // Newer toolchains know these intrinsics as safe.
        #[allow(unused_unsafe)]
        let cpuid = |leaf| unsafe { __cpuid_count(leaf, 0) };
        if cpuid(0).eax < 7 {
            return NONE;
        }
        let leaf1 = cpuid(1).ecx;
        if leaf1 & OSXSAVE == 0 || leaf1 & AVX_FMA_F16C != AVX_FMA_F16C {
            return NONE;
        }
        let leaf7 = cpuid(7);
        // SAFETY: OSXSAVE was found set, so the XGETBV instruction exists and XCR0 is readable.
        let saved = unsafe { xcr0() };
        let avx2 = leaf7.ebx & AVX2 != 0 && saved & YMM_STATE == YMM_STATE;
        let avx512 = avx2
            && saved & ZMM_STATE == ZMM_STATE
            && leaf7.ebx & AVX512_EBX == AVX512_EBX
            && leaf7.ecx & AVX512_VBMI != 0;
        Features { avx2, avx512 }
    }

    /// # Safety
    /// CPUID must say OSXSAVE.
    #[target_feature(enable = "xsave")]
    unsafe fn xcr0() -> u64 {
        // SAFETY: the caller has shown that the instruction exists; register 0 always does.
        unsafe { _xgetbv(0) }
    }
}
