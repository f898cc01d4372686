//! All 2^32 binary32 words to binary16 and BF16, beside the `half` crate (and the processor, where it uses that).

use std::time::Instant;

use half::{bf16, f16};
use ninfer_codec::convert::{to_bf16_nearest, to_f16_nearest};

#[test]
#[ignore = "minutes: run it in release, as the file says"]
fn every_binary32_word_narrows_as_half_does() {
    const PIECE: u64 = 1 << 20;
    let begin = Instant::now();
    let mut halves = vec![f16::ZERO; PIECE as usize];
    let mut brains = vec![bf16::ZERO; PIECE as usize];
    let mut words = 0u64;
    for piece in 0..(1u64 << 32) / PIECE {
        let values: Vec<f32> =
            (piece * PIECE..(piece + 1) * PIECE).map(|word| f32::from_bits(word as u32)).collect();
        to_f16_nearest(&values[..], &mut halves).unwrap();
        to_bf16_nearest(&values[..], &mut brains).unwrap();
        for ((value, half), brain) in values.iter().zip(&halves).zip(&brains) {
            let word = value.to_bits();
            assert_eq!(half.to_bits(), f16::from_f32(*value).to_bits(), "{word:08x}");
            assert_eq!(brain.to_bits(), bf16::from_f32(*value).to_bits(), "{word:08x}");
            words += 1;
        }
    }
    assert_eq!(words, 1 << 32);
    println!("{words} words to binary16 and BF16: {:.1} s", begin.elapsed().as_secs_f64());
}
