//! Tables of text: the first column to the left, numbers to the right.

use crate::failure::printable;

/// Rows of cells under a heading.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Which columns hold numbers.
    numbers: Vec<bool>,
}

impl Table {
    /// A table with this heading; a heading that begins with `>` marks a column of numbers.
    pub fn new(heading: &[&str]) -> Self {
        let numbers = heading.iter().map(|title| title.starts_with('>')).collect();
        Self {
            rows: vec![heading.iter().map(|title| title.trim_start_matches('>').into()).collect()],
            numbers,
        }
    }

    /// Adds a row; control characters, which a name may hold, are escaped, and an endless name is cut.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| shortened(&printable(cell))).collect());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.numbers.len()).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), number) in row.iter().zip(&widths).zip(&self.numbers) {
                let width = *width;
                line += &if *number { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A text of at most 240 characters.
pub fn shortened(text: &str) -> String {
    const WIDEST: usize = 240;
    match text.char_indices().nth(WIDEST - 1) {
        Some((cut, last)) if cut + last.len_utf8() < text.len() => format!("{}…", &text[..cut]),
        _ => text.to_string(),
    }
}

/// A shape as `[2, 3]`.
pub fn shape(dimensions: &[u64]) -> String {
    format!("{dimensions:?}")
}

/// A number of bytes with its thousands apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Stored bits for each element.
pub fn bits_per_weight(bytes: u64, elements: u64) -> f64 {
    bytes as f64 * 8.0 / elements as f64
}
