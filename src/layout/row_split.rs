//! `row-split-k128-v1`: base codes, high bits, scales; K padded to 128. Spec: storage-layouts §3.
//!
//! ```text
//! base, Q4 Q5 Q6   byte j:  lane 2j+1 bits 3..0 | lane 2j bits 3..0
//! base, W8         byte i:  lane i
//! high, Q5         byte 0:  lane 7 | .. | lane 1 | lane 0         bit 4 of each
//! high, Q6         byte 0:  lane 3 | lane 2 | lane 1 | lane 0     bits 5..4 of each
//! ```

use super::LayoutDescriptor;
use super::plan::{Plan, Plane, Span};
use crate::error::Error;
use crate::format::Format;
use crate::geometry::{PLANE_ALIGNMENT, add, align_up, mul};

/// K is padded to a multiple of this.
pub(crate) const COLUMN_ALIGNMENT: u64 = 128;
/// Lanes of the widest group.
pub(crate) const MAX_LANES: usize = 64;
/// Bytes of base codes of a group, whatever the format.
pub const BASE_BYTES: usize = 32;
/// Bytes of high bits of a Q5 group: 64 lanes of one bit.
pub const Q5_HIGH_BYTES: usize = 8;
/// Bytes of high bits of a Q6 group: 64 lanes of two bits.
pub const Q6_HIGH_BYTES: usize = 16;
/// Bytes of one binary16 scale word.
pub const SCALE_BYTES: usize = 2;

pub(super) const DESCRIPTOR: LayoutDescriptor = LayoutDescriptor {
    name: "row-split-k128-v1",
    accepts: &[Format::Q4G64F16S, Format::Q5G64F16S, Format::Q6G64F16S, Format::W8G32F16S],
    rank: (2, 2),
    alignment: PLANE_ALIGNMENT,
    multiple_of: None,
};

/// What a group takes in the planes.
pub(super) struct GroupBytes {
    lanes: u64,
    high: u64,
}

pub(super) const Q4: GroupBytes = GroupBytes { lanes: 64, high: 0 };
pub(super) const Q5: GroupBytes = GroupBytes { lanes: 64, high: Q5_HIGH_BYTES as u64 };
pub(super) const Q6: GroupBytes = GroupBytes { lanes: 64, high: Q6_HIGH_BYTES as u64 };
pub(super) const W8: GroupBytes = GroupBytes { lanes: 32, high: 0 };

pub(super) fn plan(format: Format, group: &GroupBytes, rows: u64, columns: u64) -> Result<Plan, Error> {
    let padded_columns = align_up(columns, COLUMN_ALIGNMENT)?;
    let groups_per_row = padded_columns / group.lanes;
    let plane = |offset, bytes_per_group| {
        let row_bytes = mul(groups_per_row, bytes_per_group)?;
        Ok(Plane { offset, bytes: mul(rows, row_bytes)?, row_bytes })
    };
    let codes: Plane = plane(0, BASE_BYTES as u64)?;
    let high: Plane = plane(align_up(codes.bytes, PLANE_ALIGNMENT)?, group.high)?;
    let scale_offset = add(high.offset, align_up(high.bytes, PLANE_ALIGNMENT)?)?;
    let scales: Plane = plane(scale_offset, SCALE_BYTES as u64)?;
    let payload_bytes = add(scale_offset, scales.bytes)?;
    Ok(Plan {
        format,
        rows,
        columns,
        padded_columns,
        codes,
        high,
        scales,
        divisor: Span { offset: payload_bytes, bytes: 0 },
        payload_bytes,
    })
}

/// Packs the 64 codes of a Q4 group into its base bytes; bits above the code's width are dropped.
#[inline]
#[must_use]
pub fn pack_q4(codes: &[i8; 64]) -> [u8; BASE_BYTES] {
    let mut base = [0; BASE_BYTES];
    for (byte, [even, odd]) in base.iter_mut().zip(codes.as_chunks::<2>().0) {
        *byte = *even as u8 & 0x0f | (*odd as u8) << 4;
    }
    base
}

/// Packs the 64 codes of a Q5 group into its base and high bytes.
#[inline]
#[must_use]
pub fn pack_q5(codes: &[i8; 64]) -> ([u8; BASE_BYTES], [u8; Q5_HIGH_BYTES]) {
    let mut high = [0; Q5_HIGH_BYTES];
    for (byte, lanes) in high.iter_mut().zip(codes.as_chunks::<8>().0) {
        *byte = (0..).zip(lanes).fold(0, |bits, (lane, &code)| bits | (code as u8 >> 4 & 1) << lane);
    }
    (pack_q4(codes), high)
}

/// Packs the 64 codes of a Q6 group into its base and high bytes.
#[inline]
#[must_use]
pub fn pack_q6(codes: &[i8; 64]) -> ([u8; BASE_BYTES], [u8; Q6_HIGH_BYTES]) {
    let mut high = [0; Q6_HIGH_BYTES];
    for (byte, lanes) in high.iter_mut().zip(codes.as_chunks::<4>().0) {
        *byte = (0..).zip(lanes).fold(0, |bits, (lane, &code)| bits | (code as u8 >> 4 & 3) << (2 * lane));
    }
    (pack_q4(codes), high)
}

/// Packs the 32 codes of a W8 group into its base bytes.
#[inline]
#[must_use]
pub fn pack_w8(codes: &[i8; 32]) -> [u8; BASE_BYTES] {
    codes.map(|code| code as u8)
}

/// Unpacks the 64 signed codes of a Q4 group.
#[inline]
#[must_use]
pub fn unpack_q4(base: &[u8; BASE_BYTES]) -> [i8; 64] {
    let mut codes = [0; 64];
    for ([even, odd], byte) in codes.as_chunks_mut::<2>().0.iter_mut().zip(base) {
        *even = (byte << 4) as i8 >> 4;
        *odd = *byte as i8 >> 4;
    }
    codes
}

/// Unpacks the 64 signed codes of a Q5 group.
#[inline]
#[must_use]
pub fn unpack_q5(base: &[u8; BASE_BYTES], high: &[u8; Q5_HIGH_BYTES]) -> [i8; 64] {
    let mut codes = low_nibbles(base);
    for (lanes, byte) in codes.as_chunks_mut::<8>().0.iter_mut().zip(high) {
        for (lane, code) in (0..).zip(lanes) {
            let word = *code as u8 | (byte >> lane & 1) << 4;
            *code = (word << 3) as i8 >> 3;
        }
    }
    codes
}

/// Unpacks the 64 signed codes of a Q6 group.
#[inline]
#[must_use]
pub fn unpack_q6(base: &[u8; BASE_BYTES], high: &[u8; Q6_HIGH_BYTES]) -> [i8; 64] {
    let mut codes = low_nibbles(base);
    for (lanes, byte) in codes.as_chunks_mut::<4>().0.iter_mut().zip(high) {
        for (lane, code) in (0..).zip(lanes) {
            let word = *code as u8 | (byte >> (2 * lane) & 3) << 4;
            *code = (word << 2) as i8 >> 2;
        }
    }
    codes
}

/// Unpacks the 32 signed codes of a W8 group; 0x80, not a legal code, gives -128.
#[inline]
#[must_use]
pub fn unpack_w8(base: &[u8; BASE_BYTES]) -> [i8; 32] {
    base.map(|byte| byte as i8)
}

/// The unsigned low four bits of 64 lanes.
#[inline]
fn low_nibbles(base: &[u8; BASE_BYTES]) -> [i8; 64] {
    let mut codes = [0; 64];
    for ([even, odd], byte) in codes.as_chunks_mut::<2>().0.iter_mut().zip(base) {
        *even = (byte & 0x0f) as i8;
        *odd = (byte >> 4) as i8;
    }
    codes
}

/// The signed codes of one group, of any of the four formats.
pub(crate) struct GroupCodes {
    lanes: [i8; 64],
    count: usize,
}

impl GroupCodes {
    pub(crate) fn as_slice(&self) -> &[i8] {
        self.lanes.get(..self.count).unwrap_or(&[])
    }
}

/// Unpacks a group of any of the four formats from its base bytes and the high bytes that begin with its own.
/// A format without groups has no codes.
#[inline]
pub(crate) fn unpack_group(format: Format, base: &[u8; BASE_BYTES], high: &[u8]) -> GroupCodes {
    let mut lanes = [0; 64];
    let count = match (format, high.first_chunk(), high.first_chunk()) {
        (Format::Q4G64F16S, ..) => {
            lanes = unpack_q4(base);
            64
        }
        (Format::Q5G64F16S, Some(high), _) => {
            lanes = unpack_q5(base, high);
            64
        }
        (Format::Q6G64F16S, _, Some(high)) => {
            lanes = unpack_q6(base, high);
            64
        }
        (Format::W8G32F16S, ..) => {
            for (lane, code) in lanes.iter_mut().zip(unpack_w8(base)) {
                *lane = code;
            }
            32
        }
        _ => 0,
    };
    GroupCodes { lanes, count }
}

/// Packs a group of any of the four formats into its base bytes and the high bytes that begin with its own.
#[inline]
pub(crate) fn pack_group(format: Format, lanes: &[i8; 64], base: &mut [u8; BASE_BYTES], high: &mut [u8]) {
    match format {
        Format::Q4G64F16S => *base = pack_q4(lanes),
        Format::Q5G64F16S => {
            let (low, top) = pack_q5(lanes);
            *base = low;
            if let Some(high) = high.first_chunk_mut() {
                *high = top;
            }
        }
        Format::Q6G64F16S => {
            let (low, top) = pack_q6(lanes);
            *base = low;
            if let Some(high) = high.first_chunk_mut() {
                *high = top;
            }
        }
        Format::W8G32F16S => {
            if let Some(lanes) = lanes.first_chunk() {
                *base = pack_w8(lanes);
            }
        }
        _ => {}
    }
}
