//! Every value an NVFP4 matrix can hold: 16 codes under each of 127 scales, as output words.
//!
//! With them decoding only moves words. A large call makes all of them first; a small one makes those of the
//! scales that it meets.

use super::{Narrow, Nvfp4Rows};
use crate::format::nvfp4::{GROUP, Quotients, Quotients64};

/// A word that NVFP4 decodes to.
pub(crate) trait TableWord: bytemuck::Pod {}
impl TableWord for u16 {}
impl TableWord for u32 {}
impl TableWord for u64 {}

/// One entry a scale word; the last is that of a NaN and never used.
pub(crate) type Tables<W> = [[W; 16]; 128];

/// Groups of a call from which on all words are made first: about twice the number of scales.
pub(crate) const LARGE_CALL: u64 = 256;

/// The words of the scales met so far, and the means to make another scale's. An entry lies in one cache line.
#[repr(C, align(64))]
pub(crate) struct Nvfp4Tables<W, Make> {
    words: Tables<W>,
    /// Bit `s`: the words of scale `s` are made.
    made: u128,
    make: Make,
}

/// For one of the types that are rounded from binary32.
pub(crate) fn narrowed<N: Narrow>(
    divisor: u32,
    groups: u64,
) -> Nvfp4Tables<N::Word, impl Fn(u8) -> [N::Word; 16]> {
    let quotients = Quotients::new(divisor);
    // Filled in its place: it is large to be moved.
    let mut tables = Nvfp4Tables {
        words: [[bytemuck::Zeroable::zeroed(); 16]; 128],
        made: 0,
        make: move |scale| quotients.group_f32_bits(scale).map(N::narrow),
    };
    if groups >= LARGE_CALL {
        let mut words = tables.words.iter_mut();
        quotients.each_scale(|f32_bits| {
            if let Some(words) = words.next() {
                *words = f32_bits.map(N::narrow);
            }
        });
        tables.made = u128::MAX;
    }
    tables
}

/// For binary64.
pub(crate) fn to_f64(divisor: u32) -> Nvfp4Tables<u64, impl Fn(u8) -> [u64; 16]> {
    let quotients = Quotients64::new(divisor);
    Nvfp4Tables { words: [[0; 16]; 128], made: 0, make: move |scale| quotients.group_bits(scale) }
}

impl<W: TableWord, Make: Fn(u8) -> [W; 16]> Nvfp4Tables<W, Make> {
    /// The words of all scales under which the first `columns` codes of some rows stand.
    #[expect(clippy::indexing_slicing, reason = "a masked index into 128 entries")]
    pub(crate) fn of_rows(&mut self, rows: &Nvfp4Rows<'_>, columns: usize) -> &Tables<W> {
        if self.made == u128::MAX {
            return &self.words;
        }
        let groups_of_row = rows.groups - rows.first_group;
        let mut left = columns.div_ceil(GROUP);
        let mut row = 0;
        while left > 0 {
            let scales = rows.row_scales(row);
            for group in (rows.first_group..rows.groups).take(left) {
                let scale = scales.get(group / 4 * 512 + group % 4).copied().unwrap_or(0) & 0x7f;
                if self.made >> scale & 1 == 0 {
                    self.made |= 1 << scale;
                    self.words[usize::from(scale)] = (self.make)(scale);
                }
            }
            left = left.saturating_sub(groups_of_row.max(1));
            row += 1;
        }
        &self.words
    }
}
