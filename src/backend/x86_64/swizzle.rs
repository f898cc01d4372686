//! NVFP4's scales between natural order and tiles: 32-bit words, four rows by four tiles at a time. SSE2, which every
//! x86-64 processor has.

use core::arch::x86_64::*;

/// Rows of a tile, and of each of the four bands that lie 16 bytes apart in it.
const ROWS: usize = 128;
const BAND: usize = 32;
/// Bytes of a tile.
const TILE: usize = 512;
/// Groups of four tiles.
const FOUR_TILES: usize = 16;
/// Rows whose words of a tile share a line.
const LINE_ROWS: usize = 4;

/// Places the scales of 128 rows in their tiles; `false`, and nothing done, if they do not come by four tiles.
pub(crate) fn swizzle(natural: &[u8], groups: usize, tiles: &mut [u8]) -> bool {
    let there =
        groups.is_multiple_of(FOUR_TILES) && natural.len() == ROWS * groups && tiles.len() == natural.len();
    if there {
        each(groups, |words, places| {
            // SAFETY: the four places of each are 16 bytes of a row below `ROWS * groups`, or of a tile below
            // `groups / 4 * TILE`, which is as much.
            unsafe {
                let rows = words.map(|at| _mm_loadu_si128(natural.as_ptr().add(at).cast()));
                for (at, words) in places.into_iter().zip(transpose(rows)) {
                    _mm_storeu_si128(tiles.as_mut_ptr().add(at).cast(), words);
                }
            }
        });
    }
    there
}

/// Puts the scales of 128 rows in natural order; `false`, and nothing done, if they do not come by four tiles.
pub(crate) fn unswizzle(tiles: &[u8], groups: usize, natural: &mut [u8]) -> bool {
    let there =
        groups.is_multiple_of(FOUR_TILES) && natural.len() == ROWS * groups && tiles.len() == natural.len();
    if there {
        each(groups, |words, places| {
            // SAFETY: as in `swizzle`.
            unsafe {
                let tiles = places.map(|at| _mm_loadu_si128(tiles.as_ptr().add(at).cast()));
                for (at, words) in words.into_iter().zip(transpose(tiles)) {
                    _mm_storeu_si128(natural.as_mut_ptr().add(at).cast(), words);
                }
            }
        });
    }
    there
}

/// Gives the places of four rows' words of four tiles, in natural order and in the tiles: all of a line after one
/// another.
#[inline(always)]
fn each(groups: usize, mut take: impl FnMut([usize; 4], [usize; 4])) {
    for line in 0..BAND / LINE_ROWS {
        for first in (0..groups).step_by(FOUR_TILES) {
            for row in LINE_ROWS * line..LINE_ROWS * (line + 1) {
                let words = [0, BAND, 2 * BAND, 3 * BAND].map(|band| (band + row) * groups + first);
                take(words, [0, 1, 2, 3].map(|tile| (first / 4 + tile) * TILE + row * 16));
            }
        }
    }
}

/// Columns for rows.
#[inline(always)]
fn transpose([a, b, c, d]: [__m128i; 4]) -> [__m128i; 4] {
    // SAFETY: x86-64 has SSE2.
    #[allow(unused_unsafe)]
    unsafe {
        let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (first, second) = (_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
        let (ab, cd) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        [first, second, _mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd)]
    }
}
