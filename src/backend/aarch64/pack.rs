//! Packing of grouped codes with NEON: four groups at a time, checked on the way. Integers only.

use core::arch::aarch64::*;

use super::lanes::{load8, load16, store8};
use super::planes::{
    BATCH, Batch, MAX_WEIGHTS, Planes, Shape, code_min, fill, group, high_bytes, make_aside,
};
use super::quantize::pack_group;
use crate::backend::Pack;
use crate::format::{Format, binary16};

/// Packs rows until one is at fault; see the contract in [`crate::backend`].
pub(crate) fn pack_rows(job: Pack<'_>) -> usize {
    match job.format {
        Format::Q4G64F16S => rows::<4>(job),
        Format::Q5G64F16S => rows::<5>(job),
        Format::Q6G64F16S => rows::<6>(job),
        Format::W8G32F16S => rows::<8>(job),
        _ => 0,
    }
}

fn rows<const BITS: u32>(job: Pack<'_>) -> usize {
    let Pack { rows, columns, high_bytes, base, high, scales, .. } = job;
    let codes: &[u8] = bytemuck::cast_slice(job.codes);
    let shape = Shape { rows, columns, stride: columns, group: group(BITS), high_bytes };
    fill(&shape, Planes { base, high, scales }, |elements, first_group, planes| {
        match (codes.get(elements), job.scale_words.get(first_group..)) {
            (Some(codes), Some(words)) => row::<BITS>(codes, words, planes),
            _ => 0,
        }
    })
}

/// Packs a row, the last batch of which may be short; returns the groups done.
fn row<const BITS: u32>(codes: &[u8], words: &[u16], planes: &mut Planes<'_>) -> usize {
    let batch = BATCH * group(BITS);
    // SAFETY: the target has NEON.
    let done = unsafe { batches::<BITS>(codes, words, planes) };
    let rest = codes.get(done * group(BITS)..).unwrap_or(&[]);
    if rest.is_empty() || rest.len() >= batch {
        return done;
    }
    // Zero codes and scales beyond the row are legal, and what padding must be.
    let (mut padded, mut padded_words) = ([0; MAX_WEIGHTS], [0; BATCH]);
    for (padded, code) in padded.iter_mut().zip(rest) {
        *padded = *code;
    }
    let groups = rest.len().div_ceil(group(BITS));
    for (padded, word) in padded_words.iter_mut().zip(words.get(done..).unwrap_or(&[])).take(groups) {
        *padded = *word;
    }
    done + make_aside(planes, done, groups, high_bytes(BITS), |planes| {
        // SAFETY: as above.
        unsafe { batches::<BITS>(padded.get(..batch).unwrap_or(&[]), &padded_words, planes) }
    })
}

/// Packs the whole batches of `codes` and returns how many groups it has done: it stops before a batch with a word
/// that is not legal, and when there is no room for one more.
#[target_feature(enable = "neon")]
fn batches<const BITS: u32>(codes: &[u8], words: &[u16], planes: &mut Planes<'_>) -> usize {
    let mut done = 0;
    let batches = codes.chunks_exact(BATCH * group(BITS)).zip(words.as_chunks::<BATCH>().0);
    for ((codes, words), Batch { base, high, scales }) in batches.zip(planes.batches(high_bytes(BITS))) {
        let words = vreinterpret_u16_u8(load8(bytemuck::cast_ref(words)));
        if vmaxv_u16(words) >= binary16::INFINITY {
            break;
        }
        if vminv_u16(words) == 0 && !zeros_are_zeros(codes, words) {
            break;
        }
        store8(scales, vreinterpret_u8_u16(words));
        let mut least = vdupq_n_s8(0);
        let mut greatest = vdupq_n_s8(0);
        let mut high = high.chunks_exact_mut(high_bytes(BITS).max(1));
        for (codes, base) in codes.chunks_exact(group(BITS)).zip(base) {
            let mut all = [vdupq_n_u8(0); 4];
            for (vector, codes) in all.iter_mut().zip(codes.as_chunks().0) {
                *vector = load16(codes);
                let codes = vreinterpretq_s8_u8(*vector);
                least = vminq_s8(least, codes);
                greatest = vmaxq_s8(greatest, codes);
            }
            pack_group::<BITS>(all, base, high.next().unwrap_or_default());
        }
        if vminvq_s8(least) < code_min(BITS) || vmaxvq_s8(greatest) > code_max(BITS) {
            break;
        }
        done += BATCH;
    }
    done
}

/// The greatest code of the format with so many bits.
const fn code_max(bits: u32) -> i8 {
    if bits == 8 { 127 } else { -1 - code_min(bits) }
}

/// Whether all codes of the groups under zero scales are zero.
#[cold]
#[target_feature(enable = "neon")]
fn zeros_are_zeros(codes: &[u8], words: uint16x4_t) -> bool {
    let mut of_group = [0u16; BATCH];
    // SAFETY: the reference is four writable words.
    unsafe { vst1_u16(of_group.as_mut_ptr(), words) };
    let groups = codes.chunks_exact((codes.len() / BATCH).max(1)).zip(of_group);
    groups.filter(|(_, word)| *word == 0).all(|(codes, _)| codes.iter().fold(0, |any, code| any | code) == 0)
}
