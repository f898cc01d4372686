//! Whether a call's output goes past the cache.

#[cfg(target_arch = "x86_64")]
use super::x86_64::{decode::Simd, stream};

/// Outputs from this many bytes on are streamed: so large that they do not stay in the cache anyway.
#[cfg(target_arch = "x86_64")]
const STREAM_BYTES: usize = if cfg!(test) { 64 << 10 } else { 8 << 20 };

/// How one call stores its output. Dropping it orders streamed stores before whatever follows.
pub(crate) struct Stores {
    #[cfg(target_arch = "x86_64")]
    streaming: Option<Simd>,
}

impl Stores {
    /// For an output of so many bytes in all.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn new(bytes: usize) -> Self {
        Self { streaming: super::vectors().filter(|_| bytes >= STREAM_BYTES) }
    }

    /// The backend that streams the output, if it is large.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn streaming(&self) -> Option<Simd> {
        self.streaming
    }

    /// For an output of so many bytes in all.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn new(_: usize) -> Self {
        Self {}
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for Stores {
    fn drop(&mut self) {
        if self.streaming.is_some() {
            stream::fence();
        }
    }
}
