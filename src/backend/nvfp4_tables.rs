//! Every value an NVFP4 matrix can hold: 16 codes under each of 127 scales, as output words.
//!
//! With them decoding only moves words. A large call makes all of them first; a small one makes those of the
//! scales that it meets.

use super::{Narrow, Nvfp4Row};
use crate::format::nvfp4::{GROUP, Quotients};

/// A word that NVFP4 decodes to.
pub(crate) trait TableWord: bytemuck::Pod {}
impl TableWord for u16 {}
impl TableWord for u32 {}
impl TableWord for u64 {}

/// One entry a scale word; the last is that of a NaN and never used.
pub(crate) type Tables<W> = [[W; 16]; 128];

/// Groups of a call from which on all words are made first: about twice the number of scales.
const LARGE_CALL: u64 = 256;

/// The words of the scales met so far, and the means to make others.
pub(crate) struct Nvfp4Tables<W> {
    words: Tables<W>,
    /// Bit `s`: the words of scale `s` are made.
    made: u128,
    make: fn(&Quotients, u8) -> [W; 16],
    quotients: Quotients,
}

impl Nvfp4Tables<u64> {
    /// For binary64.
    pub(crate) fn to_f64(divisor: u32, groups: u64) -> Self {
        Self::new(divisor, groups, Quotients::group_f64_bits)
    }
}

impl<W: TableWord> Nvfp4Tables<W> {
    /// For one of the types that are rounded from binary32.
    pub(crate) fn narrowed<N: Narrow<Word = W>>(divisor: u32, groups: u64) -> Self {
        Self::new(divisor, groups, |quotients, scale| quotients.group_f32_bits(scale).map(N::narrow))
    }

    fn new(divisor: u32, groups: u64, make: fn(&Quotients, u8) -> [W; 16]) -> Self {
        let quotients = Quotients::new(divisor);
        let mut tables = Self { words: [[W::zeroed(); 16]; 128], made: 0, make, quotients };
        if groups >= LARGE_CALL {
            (0..0x7f).for_each(|scale| tables.add(scale));
            tables.made = u128::MAX;
        }
        tables
    }

    #[expect(clippy::indexing_slicing, reason = "a masked index into 128 entries")]
    fn add(&mut self, scale: u8) {
        let scale = scale & 0x7f;
        if self.made >> scale & 1 == 0 {
            self.made |= 1 << scale;
            self.words[usize::from(scale)] = (self.make)(&self.quotients, scale);
        }
    }

    /// The words of all scales under which the first `columns` codes of the row stand.
    pub(crate) fn of_row(&mut self, row: &Nvfp4Row<'_>, columns: usize) -> &Tables<W> {
        if self.made != u128::MAX {
            for group in (row.first_group..).take(columns.div_ceil(GROUP)) {
                self.add(row.scale(group));
            }
        }
        &self.words
    }
}
