//! Blocks of rows, the pieces in which tensors are worked on. They depend on the tensor only, never on the
//! number of threads.

use ninfer_codec::{Format, Plan};
use rayon::prelude::*;

/// Stored elements of a block, about: what a thread needs for one stays in its core's own cache, and what all
/// threads need together stays small.
const BLOCK_ELEMENTS: u64 = 1 << 16;

/// Rows of a block, at least one; whole tiles for NVFP4.
pub fn rows_a_block(plan: &Plan) -> u64 {
    let rows = (BLOCK_ELEMENTS / plan.padded_columns()).max(1);
    if plan.format() == Format::Nvfp4 { rows.next_multiple_of(128) } else { rows }
}

/// Ranges of rows, begin and count, that make up a tensor.
pub fn row_blocks(plan: &Plan) -> impl IndexedParallelIterator<Item = (u64, u64)> {
    let (rows, all) = (rows_a_block(plan), plan.rows());
    let count = usize::try_from(all.div_ceil(rows)).unwrap_or(usize::MAX);
    (0..count).into_par_iter().map(move |block| {
        let begin = block as u64 * rows;
        (begin, rows.min(all - begin))
    })
}
