//! The portable scans: the compiler makes them into this target's vectors as they are.

use super::decode::Simd;
use crate::backend::scan::{self, Scan};

/// Says whether all words are what is looked for.
pub(crate) fn all(_: Simd, scan: Scan, bytes: &[u8]) -> bool {
    scan::all(scan, bytes)
}
