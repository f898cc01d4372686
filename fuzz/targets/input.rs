//! The fuzzer's bytes, taken from front to back. What is missing at the end reads as zero.

#![allow(dead_code)]

pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// A number of any size, small ones in one byte: below 240 as it is, else what a second number says.
    pub fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..240 => small.into(),
            240..=245 => self.u16().into(),
            246..=249 => self.u64(),
            // Around the powers of two, where sums and products overflow.
            250..=252 => (1u64 << (self.byte() % 64)).wrapping_sub(self.byte().into()),
            _ => u64::MAX - u64::from(self.byte()),
        }
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }

    /// At most `most` bytes.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// The rest as `len` bytes: cut, or repeated from its beginning.
    pub fn fill(&mut self, len: usize) -> Vec<u8> {
        let rest = std::mem::take(&mut self.0);
        let rest = if rest.is_empty() { &[0] } else { rest };
        rest.iter().copied().cycle().take(len).collect()
    }
}

/// The backends that the processor has.
pub fn backends() -> Vec<&'static str> {
    let names = ["portable", "avx2", "avx512", "neon"];
    names.into_iter().filter(|name| ninfer_codec::internals::select_backend(name)).collect()
}

/// Runs something under every backend that the processor has.
pub fn each_backend(mut run: impl FnMut(&str)) {
    for name in backends() {
        assert!(ninfer_codec::internals::select_backend(name));
        run(name);
    }
}

/// A refusal says something, in one line.
pub fn assert_line(error: &dyn std::fmt::Display) {
    let line = error.to_string();
    assert!(!line.trim().is_empty() && !line.contains('\n'), "{line:?}");
}
