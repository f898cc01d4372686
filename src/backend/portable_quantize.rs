//! The canonical quantizer in plain binary32 arithmetic: what the integer encoder says, several times as fast.
//!
//! Only where the target rounds single operations as IEEE 754 says, and only in the default float mode, which is
//! asked for at run time. Anywhere else it declines, and the integer encoder runs.

use core::hint::black_box;

use half::{bf16, f16};

use super::Quantize;
use crate::format::{Format, binary16, rounding};
use crate::layout::row_split::{self, BASE_BYTES, SCALE_BYTES};
use crate::value::Source;

/// Targets whose binary32 operations round once and to binary32: not x87, not flushing vectors, not emulation.
pub(super) const SINGLE_ROUNDING: bool = cfg!(any(
    target_arch = "x86_64",
    all(target_arch = "x86", target_feature = "sse2"),
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64",
    target_arch = "powerpc64",
    target_arch = "s390x",
    target_arch = "wasm32",
));

const INFINITY: u32 = 0x7f80_0000;
const SIGN: u32 = 1 << 31;

/// Quantizes rows until one is at fault; see the contract in [`super::quantize_rows`].
pub(crate) fn quantize_rows(job: Quantize<'_>) -> usize {
    let _mode = super::vector::DefaultMode::enter();
    #[cfg(all(
        test,
        any(
            target_arch = "x86_64",
            all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
        )
    ))]
    let unasked = super::encode_mode_tests::planted() == super::encode_mode_tests::Planted::NoGuard;
    #[cfg(not(all(
        test,
        any(
            target_arch = "x86_64",
            all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
        )
    )))]
    let unasked = false;
    if !(SINGLE_ROUNDING && (unasked || is_default_float_mode())) {
        return 0;
    }
    match job.source {
        Source::F32(values) => rows_of(job, values, |value| value.to_bits()),
        Source::Bf16(values) => rows_of(job, values, |value: bf16| u32::from(value.to_bits()) << 16),
        Source::F16(values) => rows_of(job, values, widen),
        Source::F64(values) => {
            rows_of(job, values, |value| rounding::f32_bits_from_f64_bits(value.to_bits()))
        }
    }
}

/// Whether binary32 arithmetic rounds to nearest, ties to even, and keeps subnormals.
#[inline(never)]
pub(crate) fn is_default_float_mode() -> bool {
    const HALF_ULP: f32 = f32::EPSILON / 2.0;
    // The compiler may not know the operands, or it would work out the answers itself.
    let sum = |a: f32, b: f32| (black_box(a) + black_box(b)).to_bits();
    let product = |a: f32, b: f32| (black_box(a) * black_box(b)).to_bits();
    let tie_down = sum(1.0, HALF_ULP) == 1.0f32.to_bits();
    let tie_up = sum(1.0 + f32::EPSILON, HALF_ULP) == (1.0 + 2.0 * f32::EPSILON).to_bits();
    let makes_subnormals = product(f32::MIN_POSITIVE, 0.5) == f32::MIN_POSITIVE.to_bits() / 2;
    let takes_subnormals = product(f32::from_bits(1), 8_388_608.0) == f32::MIN_POSITIVE.to_bits();
    tie_down && tie_up && makes_subnormals && takes_subnormals
}

/// The binary32 word of a binary16 value; of one that is not finite, infinity.
#[inline]
fn widen(value: f16) -> u32 {
    const MAGNITUDE: u16 = 0x7fff;
    /// 2^(127 - 15): what is missing where binary16's exponent field is read as binary32's. Exact.
    const REBIAS: f32 = f32::from_bits((127 + 112) << 23);
    let word = value.to_bits();
    let magnitude = word & MAGNITUDE;
    let moved = (f32::from_bits(u32::from(magnitude) << 13) * REBIAS).to_bits();
    let finite = if magnitude < binary16::INFINITY { moved } else { INFINITY };
    finite | u32::from(word & !MAGNITUDE) << 16
}

fn rows_of<T: Copy>(job: Quantize<'_>, values: &[T], to_word: impl Fn(T) -> u32 + Copy) -> usize {
    match job.format {
        Format::Q4G64F16S => rows::<T, 4, 64>(job, values, to_word),
        Format::Q5G64F16S => rows::<T, 5, 64>(job, values, to_word),
        Format::Q6G64F16S => rows::<T, 6, 64>(job, values, to_word),
        Format::W8G32F16S => rows::<T, 8, 32>(job, values, to_word),
        _ => 0,
    }
}

/// Not inlined, so that no operation moves to where the mode is another one.
#[inline(never)]
fn rows<T: Copy, const BITS: u32, const GROUP: usize>(
    job: Quantize<'_>,
    values: &[T],
    to_word: impl Fn(T) -> u32,
) -> usize {
    let high_bytes = job.high_bytes;
    let groups_per_row = job.columns.div_ceil(128) * 128 / GROUP;
    let mut base = job.base.as_chunks_mut::<BASE_BYTES>().0.iter_mut();
    let mut scales = job.scales.as_chunks_mut::<SCALE_BYTES>().0.iter_mut();
    let mut high = job.high;
    for row in 0..job.rows {
        let start = row.wrapping_mul(job.stride);
        let row_values = values.get(start..).and_then(|values| values.get(..job.columns)).unwrap_or(&[]);
        let mut groups = row_values.chunks(GROUP);
        for _ in 0..groups_per_row {
            let mut words = [0; GROUP];
            for (word, &value) in words.iter_mut().zip(groups.next().unwrap_or(&[])) {
                *word = to_word(value);
            }
            let mut codes = [0; 64];
            let Some(scale) = group::<BITS, GROUP>(&words, &mut codes) else { return row };
            let (Some(base), Some(stored)) = (base.next(), scales.next()) else { return row };
            *stored = scale.to_le_bytes();
            let (own, rest) = core::mem::take(&mut high).split_at_mut_checked(high_bytes).unwrap_or_default();
            row_split::pack_group(job.format, &codes, base, own);
            high = rest;
        }
    }
    job.rows
}

/// Quantizes a group of binary32 words; none if a value or the scale is not finite.
#[inline]
fn group<const BITS: u32, const GROUP: usize>(words: &[u32; GROUP], codes: &mut [i8; 64]) -> Option<u16> {
    let code_max = ((1u32 << (BITS - 1)) - 1) as f32;
    let code_min = if BITS == 8 { -code_max } else { -code_max - 1.0 };
    // 1.5 * 2^23: a sum with it has no fraction, and a small integer in its low bits.
    const TO_INTEGER: f32 = 12_582_912.0;
    // Magnitudes fit i32, and vectors compare signed numbers.
    let amax = words.iter().fold(0i32, |amax, &word| amax.max((word & !SIGN) as i32)) as u32;
    if amax >= INFINITY {
        return None;
    }
    if amax == 0 {
        return Some(0);
    }
    let scale = match binary16::from_f32_bits((f32::from_bits(amax) / code_max).to_bits()) {
        0 => binary16::MIN_POSITIVE,
        binary16::INFINITY.. => return None,
        scale => scale,
    };
    let inverse = 1.0 / f32::from_bits(binary16::to_f32_bits(scale));
    for (code, &word) in codes.iter_mut().zip(words) {
        let value = f32::from_bits(word) * inverse;
        // Clamping to integers gives the same before rounding as after it.
        let value = if value > code_min { value } else { code_min };
        let value = if value < code_max { value } else { code_max };
        *code = (value + TO_INTEGER).to_bits() as i8;
    }
    Some(scale)
}
