//! Blocks, the pieces in which tensors are worked on: some rows, or columns of one row where a row is long. They
//! depend on the tensor only, never on the number of threads.

use ninfer_codec::{Format, Plan};
use rayon::prelude::*;

/// Stored elements of a block, about: what a thread needs for one stays in its core's own cache, and what all
/// threads need together stays small. A multiple of every format's group and of the layouts' column padding.
const BLOCK_ELEMENTS: u64 = 1 << 16;

/// A part of a tensor: rows and columns, begin and count of each.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub row: u64,
    pub rows: u64,
    pub column: u64,
    pub columns: u64,
}

/// Rows of a block, at least one; whole tiles for NVFP4.
fn rows_a_block(plan: &Plan) -> u64 {
    let rows = (BLOCK_ELEMENTS / plan.padded_columns()).max(1);
    if plan.format() == Format::Nvfp4 { rows.next_multiple_of(128) } else { rows }
}

/// Columns of a block: all, or else the block has one row. NVFP4's tiles hold 128 rows, which stay whole.
fn columns_a_block(plan: &Plan) -> u64 {
    if plan.format() == Format::Nvfp4 { plan.columns() } else { plan.columns().min(BLOCK_ELEMENTS) }
}

/// Ranges of whole rows, begin and count, that make up a tensor.
pub fn row_blocks(plan: &Plan) -> impl IndexedParallelIterator<Item = (u64, u64)> {
    let (rows, all) = (rows_a_block(plan), plan.rows());
    indexes(all.div_ceil(rows)).into_par_iter().map(move |block| {
        let begin = block as u64 * rows;
        (begin, rows.min(all - begin))
    })
}

/// The blocks of `rows` rows of a tensor of this plan, in the order of their elements.
pub fn blocks(plan: &Plan, rows: u64) -> impl Iterator<Item = Block> + use<> {
    let (step, all) = (columns_a_block(plan), plan.columns());
    let rows_a_block = rows_a_block(plan);
    (0..rows.div_ceil(rows_a_block)).flat_map(move |block| {
        let row = block * rows_a_block;
        let rows = rows_a_block.min(rows - row);
        (0..all.div_ceil(step)).map(move |piece| {
            let column = piece * step;
            Block { row, rows, column, columns: step.min(all - column) }
        })
    })
}

/// The blocks of a tensor, for all threads.
pub fn parallel_blocks(plan: &Plan) -> impl IndexedParallelIterator<Item = Block> {
    let (rows, columns) = (rows_a_block(plan), columns_a_block(plan));
    let (all_rows, all_columns) = (plan.rows(), plan.columns());
    let pieces = all_columns.div_ceil(columns);
    indexes(all_rows.div_ceil(rows).saturating_mul(pieces)).into_par_iter().map(move |block| {
        let (row, column) = (block as u64 / pieces * rows, block as u64 % pieces * columns);
        Block { row, rows: rows.min(all_rows - row), column, columns: columns.min(all_columns - column) }
    })
}

fn indexes(count: u64) -> std::ops::Range<usize> {
    0..usize::try_from(count).unwrap_or(usize::MAX)
}
