//! NVFP4: words of the tables are moved, no number is made.

use core::arch::aarch64::*;

use bytemuck::{cast_mut, cast_ref};

use super::lanes::{load8, store_each16};
use crate::backend::nvfp4_tables::{TableWord, Tables};
use crate::format::nvfp4::GROUP;

/// A word that NVFP4 decodes to.
pub(crate) trait Nvfp4Word: TableWord {
    /// Looks the words of a group's codes up.
    ///
    /// # Safety
    /// NEON.
    unsafe fn look_up(words: &[Self; 16], codes: &[u8; GROUP / 2], out: &mut [Self; GROUP]);
}

/// Decodes groups of a row from `first` on; the scales are those of the row from group 0 on, where group `g` is at
/// `g / 4 * 512 + g % 4`.
#[target_feature(enable = "neon")]
pub(super) fn groups<W: Nvfp4Word>(
    codes: &[u8],
    scales: &[u8],
    first: usize,
    tables: &Tables<W>,
    out: &mut [W],
) {
    let (groups, cut) = out.as_chunks_mut();
    let (codes, last_codes) = codes.as_chunks();
    let whole = groups.len();
    let scale = |group: usize| scales.get(group / 4 * 512 + group % 4).copied().unwrap_or(0);
    for (group, (out, codes)) in (first..).zip(groups.iter_mut().zip(codes)) {
        // SAFETY: this function has NEON.
        unsafe { W::look_up(entry(tables, scale(group)), codes, out) };
    }
    if !cut.is_empty() {
        let mut padded = [0; GROUP / 2];
        let last = codes.get(whole).map_or(last_codes, |codes| codes);
        for (byte, code) in padded.iter_mut().zip(last) {
            *byte = *code;
        }
        let mut words = [W::zeroed(); GROUP];
        // SAFETY: as above.
        unsafe { W::look_up(entry(tables, scale(first + whole)), &padded, &mut words) };
        for (word, made) in cut.iter_mut().zip(words) {
            *word = made;
        }
    }
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "a masked index into 128 entries")]
fn entry<W>(tables: &Tables<W>, scale: u8) -> &[W; 16] {
    &tables[usize::from(scale & 0x7f)]
}

/// The codes of a group, one a byte.
#[inline]
#[target_feature(enable = "neon")]
fn codes_of(pairs: &[u8; GROUP / 2]) -> uint8x16_t {
    let pairs = load8(pairs);
    let (low, high) = (vand_u8(pairs, vdup_n_u8(0x0f)), vshr_n_u8::<4>(pairs));
    vcombine_u8(vzip1_u8(low, high), vzip2_u8(low, high))
}

impl Nvfp4Word for u16 {
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn look_up(words: &[Self; 16], codes: &[u8; GROUP / 2], out: &mut [Self; GROUP]) {
        let words: &[u8; 32] = cast_ref(words);
        // SAFETY: the reference is 32 readable bytes; no alignment is asked for.
        let uint8x16x2_t(low, high) = unsafe { vld2q_u8(words.as_ptr()) };
        let codes = codes_of(codes);
        let [low, high] = [low, high].map(|bytes| vqtbl1q_u8(bytes, codes));
        let out: &mut [u8; 32] = cast_mut(out);
        store_each16(out, [vzip1q_u8(low, high), vzip2q_u8(low, high)]);
    }
}

impl Nvfp4Word for u32 {
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn look_up(words: &[Self; 16], codes: &[u8; GROUP / 2], out: &mut [Self; GROUP]) {
        let words: &[u8; 64] = cast_ref(words);
        // SAFETY: the reference is 64 readable bytes; no alignment is asked for.
        let uint8x16x4_t(a, b, c, d) = unsafe { vld4q_u8(words.as_ptr()) };
        let codes = codes_of(codes);
        let [a, b, c, d] = [a, b, c, d].map(|bytes| vqtbl1q_u8(bytes, codes));
        let low = [vzip1q_u8(a, b), vzip2q_u8(a, b)].map(|halves| vreinterpretq_u16_u8(halves));
        let high = [vzip1q_u8(c, d), vzip2q_u8(c, d)].map(|halves| vreinterpretq_u16_u8(halves));
        let out: &mut [u8; 64] = cast_mut(out);
        for ((out, low), high) in out.as_chunks_mut::<32>().0.iter_mut().zip(low).zip(high) {
            let words = [vzip1q_u16(low, high), vzip2q_u16(low, high)];
            store_each16(out, words.map(|words| vreinterpretq_u8_u16(words)));
        }
    }
}

impl Nvfp4Word for u64 {
    /// No vector holds more than two words: they are moved one by one.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn look_up(words: &[Self; 16], codes: &[u8; GROUP / 2], out: &mut [Self; GROUP]) {
        for ([low, high], byte) in out.as_chunks_mut().0.iter_mut().zip(codes) {
            (*low, *high) = (word_of(words, *byte), word_of(words, *byte >> 4));
        }
    }
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "a masked index into 16 entries")]
fn word_of(words: &[u64; 16], code: u8) -> u64 {
    words[usize::from(code & 0xf)]
}
