//! Ranges and lists of rows: views, slices, gathers, stacks.

use super::layout::{Geometry, Row, geometry, read, write};
use super::{Fault, Format};

/// Rows `[begin, begin + count)` and columns `[col_begin, col_begin + col_count)` (rules 2, 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub begin: u64,
    pub count: u64,
    pub col_begin: u64,
    pub col_count: u64,
}

impl Range {
    pub fn all(g: &Geometry) -> Range {
        Range { begin: 0, count: g.rows, col_begin: 0, col_count: g.k }
    }

    /// Checks a range: empty rows, row out of range, then columns (rules 14). The columns are not
    /// empty, lie inside K and begin at a multiple of the group.
    pub fn check(&self, g: &Geometry) -> Result<(), Fault> {
        check_rows(g, self.begin, self.count)?;
        let end = u128::from(self.col_begin) + u128::from(self.col_count);
        let step = g.format.group().unwrap_or(1);
        if self.col_count == 0 || end > g.k.into() || !self.col_begin.is_multiple_of(step) {
            return Err(Fault::BadColumns);
        }
        Ok(())
    }

    /// Whether the range holds column K-1.
    pub fn holds_last_column(&self, g: &Geometry) -> bool {
        self.col_begin + self.col_count == g.k
    }
}

fn check_rows(g: &Geometry, begin: u64, count: u64) -> Result<(), Fault> {
    if count == 0 {
        Err(Fault::EmptyRows)
    } else if u128::from(begin) + u128::from(count) > g.rows.into() {
        Err(Fault::RowOutOfRange)
    } else {
        Ok(())
    }
}

/// Every row of a list must exist; the list must not be empty (rules 2).
pub fn check_list(g: &Geometry, rows: &[u64]) -> Result<(), Fault> {
    if rows.is_empty() {
        return Err(Fault::EmptyRows);
    }
    rows.iter().try_for_each(|&row| check_rows(g, row, 1))
}

/// The spans of a row view as (plane, offset, bytes), one a plane whose rows lie apart (layouts 3,
/// rules 8: of NVFP4 the code plane only). The high plane is listed even where it is empty.
pub fn view(
    format: Format,
    shape: &[u64],
    begin: u64,
    count: u64,
) -> Result<Vec<(&'static str, u64, u64)>, Fault> {
    let g = geometry(format, format.layout(), shape)?;
    check_rows(&g, begin, count)?;
    let with_rows = g.planes.iter().filter_map(|p| p.row_bytes.map(|row| (p, row)));
    Ok(with_rows.map(|(p, row)| (p.name, p.offset + begin * row, count * row)).collect())
}

/// The rows of a list as a tensor of their own, with its row count (layouts 3 to 5). Stored rows
/// move as they are, padding included. Direct tensors become rank 2 (rules 1).
pub fn gather(format: Format, shape: &[u64], payload: &[u8], rows: &[u64]) -> Result<(u64, Vec<u8>), Fault> {
    let parent = read(format, shape, payload)?;
    check_list(&parent.geometry, rows)?;
    let count = rows.len() as u64;
    let g = geometry(format, format.layout(), &[count, parent.geometry.k])?;
    let moved: Vec<Row> = rows.iter().map(|&row| parent.rows[row as usize].clone()).collect();
    Ok((count, write(&g, &moved, parent.divisor)))
}

/// Rows `[begin, begin + count)` as a tensor of their own; see `gather`.
pub fn slice(
    format: Format,
    shape: &[u64],
    payload: &[u8],
    begin: u64,
    count: u64,
) -> Result<(u64, Vec<u8>), Fault> {
    let parent = read(format, shape, payload)?;
    check_rows(&parent.geometry, begin, count)?;
    let rows: Vec<u64> = (begin..begin + count).collect();
    gather(format, shape, payload, &rows)
}

/// Tensors of one format and K joined by rows; NVFP4 divisors must be equal bit for bit (layouts
/// 4, rules 7). Each part is read first, then K compared, then the divisors.
pub fn stack(format: Format, parts: &[(&[u64], &[u8])]) -> Result<(u64, Vec<u8>), Fault> {
    let mut read_parts = vec![];
    for (shape, payload) in parts {
        read_parts.push(read(format, shape, payload)?);
    }
    let first = read_parts.first().ok_or(Fault::EmptyRows)?;
    let (k, divisor) = (first.geometry.k, first.divisor);
    if let Some(part) = read_parts.iter().position(|p| p.geometry.k != k) {
        return Err(Fault::StackColumns { part });
    }
    if let Some(part) = read_parts.iter().position(|p| p.divisor != divisor) {
        return Err(Fault::StackDivisor { part });
    }
    let rows: Vec<Row> = read_parts.iter().flat_map(|p| p.rows.clone()).collect();
    let count = rows.len() as u64;
    let g = geometry(format, format.layout(), &[count, k])?;
    Ok((count, write(&g, &rows, divisor)))
}
