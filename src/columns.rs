//! A checked column range.

use crate::error::Error;
use crate::geometry::range_end;
use crate::layout::Plan;

/// Columns `[begin, end)` of a plan; `begin` is a multiple of the format's group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    pub begin: u64,
    pub end: u64,
}

impl Columns {
    /// All columns.
    pub(crate) const fn all(plan: &Plan) -> Self {
        Self { begin: 0, end: plan.columns() }
    }

    /// Checks a range: not empty, inside K, begin at a multiple of the format's group.
    pub(crate) fn new(plan: &Plan, begin: u64, count: u64) -> Result<Self, Error> {
        let step = plan.format().column_step();
        match range_end(begin, count, plan.columns()) {
            Some(end) if count > 0 && begin.is_multiple_of(step) => Ok(Self { begin, end }),
            _ => Err(Error::ColumnRange { begin, count, columns: plan.columns(), step }),
        }
    }

    pub(crate) const fn count(&self) -> u64 {
        self.end - self.begin
    }

    /// Whether the range holds the last logical column, to which the padding belongs.
    pub(crate) const fn reaches_end(&self, plan: &Plan) -> bool {
        self.end == plan.columns()
    }
}
