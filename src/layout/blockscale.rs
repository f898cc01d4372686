//! `blockscale-k16-m128x4-v1`: code pairs, swizzled scales, the divisor. Spec: storage-layouts §4.
//!
//! ```text
//! scale tile of 128 rows x 4 groups, 512 bytes:
//!   byte = (n % 32) * 16 + (n % 128) / 32 * 4 + g % 4
//!   tiles follow one another by rising group, then by rising row
//! ```

use super::LayoutDescriptor;
use super::plan::{Plan, Plane, Span};
use crate::error::Error;
use crate::format::{Format, nvfp4};
use crate::geometry::{PLANE_ALIGNMENT, add, align_up, mul};

/// Rows of one scale tile.
pub(crate) const TILE_ROWS: u64 = 128;
/// Groups, along K, of one scale tile.
const TILE_GROUPS: u64 = 4;
/// Bytes of one scale tile.
pub(crate) const TILE_BYTES: u64 = TILE_ROWS * TILE_GROUPS;
/// Weights along K of one scale tile.
const TILE_COLUMNS: u64 = TILE_GROUPS * nvfp4::GROUP as u64;
/// Rows that lie 16 bytes apart; the four such bands of a tile interleave.
const BAND_ROWS: u64 = 32;
const _: () = assert!(TILE_BYTES == 512 && TILE_COLUMNS == 64);

pub(super) const DESCRIPTOR: LayoutDescriptor = LayoutDescriptor {
    name: "blockscale-k16-m128x4-v1",
    accepts: &[Format::Nvfp4],
    rank: (2, 2),
    alignment: PLANE_ALIGNMENT,
    multiple_of: Some([TILE_ROWS, TILE_COLUMNS]),
};

/// Bytes of the FP32 divisor word.
const DIVISOR_BYTES: u64 = 4;

pub(super) fn plan(rows: u64, columns: u64) -> Result<Plan, Error> {
    // N * K / 2 is a multiple of 128 * 64 / 2 = 4096, so no gap follows the codes.
    let codes = Plane { offset: 0, bytes: mul(rows, columns)? / 2, row_bytes: columns / 2 };
    let scale_offset = align_up(codes.bytes, PLANE_ALIGNMENT)?;
    let group = nvfp4::GROUP as u64;
    let scales =
        Plane { offset: scale_offset, bytes: mul(rows, columns)? / group, row_bytes: columns / group };
    let divisor = Span { offset: add(scale_offset, scales.bytes)?, bytes: DIVISOR_BYTES };
    Ok(Plan {
        format: Format::Nvfp4,
        rows,
        columns,
        padded_columns: columns,
        codes,
        high: Plane { offset: scale_offset, bytes: 0, row_bytes: 0 },
        scales,
        divisor,
        payload_bytes: add(divisor.offset, divisor.bytes)?,
    })
}

/// Returns the offset of a scale word in the scale plane, for a matrix of `groups` groups a row.
///
/// `row` and `group` must lie inside a matrix that a [`Plan`] was made for; other numbers give a number
/// without meaning.
///
/// # Panics
/// Never.
///
/// ```
/// use ninfer_codec::layout::blockscale::scale_offset;
/// assert_eq!(scale_offset(33, 2, 8), 22);
/// assert_eq!(scale_offset(128, 0, 8), 1024);
/// ```
#[inline]
#[must_use]
pub const fn scale_offset(row: u64, group: u64, groups: u64) -> u64 {
    let tiles_before = (row / TILE_ROWS).wrapping_mul(groups / TILE_GROUPS).wrapping_add(group / TILE_GROUPS);
    let in_tile = row % BAND_ROWS * 16 + row % TILE_ROWS / BAND_ROWS * TILE_GROUPS + group % TILE_GROUPS;
    tiles_before.wrapping_mul(TILE_BYTES).wrapping_add(in_tile)
}

/// Places the natural scale words of 128 rows, `groups` a row, a multiple of 4, in their tiles.
///
/// Four words of a row stay together, so the formula is that of whole fours. The rows are taken in the order of the
/// bytes they go to.
pub(crate) fn swizzle(natural: &[u8], groups: usize, tiles: &mut [u8]) {
    const FOURS: usize = TILE_BYTES as usize / TILE_GROUPS as usize;
    for four in 0..FOURS as u64 {
        let bands = TILE_ROWS / BAND_ROWS;
        let row = (four % bands * BAND_ROWS + four / bands) as usize;
        let words = natural.get(row.wrapping_mul(groups)..).unwrap_or(&[]).as_chunks().0;
        let places = tiles.as_chunks_mut().0.iter_mut().skip(four as usize).step_by(FOURS);
        for (place, words) in places.zip(words) {
            let place: &mut [u8; TILE_GROUPS as usize] = place;
            *place = *words;
        }
    }
}

/// Puts the scale words of 128 rows in natural order: [`swizzle`] the other way round.
pub(crate) fn unswizzle(tiles: &[u8], groups: usize, natural: &mut [u8]) {
    for (row, words) in natural.chunks_mut(groups.max(1)).enumerate() {
        let in_tile = scale_offset(row as u64, 0, groups as u64) as usize;
        let tiles = tiles.get(in_tile..).unwrap_or(&[]).chunks(TILE_BYTES as usize);
        for (words, tile) in words.as_chunks_mut::<{ TILE_GROUPS as usize }>().0.iter_mut().zip(tiles) {
            if let Some(four) = tile.first_chunk() {
                *words = *four;
            }
        }
    }
}
