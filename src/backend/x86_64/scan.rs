//! The portable scans, compiled for wider vectors.

use super::decode::Simd;
use crate::backend::scan::{self, Scan};

/// Says whether all words are what is looked for.
pub(crate) fn all(simd: Simd, scan: Scan, bytes: &[u8]) -> bool {
    match simd {
        // SAFETY: a `Simd` value exists only where its instructions do.
        Simd::Avx2 => unsafe { avx2(scan, bytes) },
        // SAFETY: as above.
        Simd::Avx512 => unsafe { avx512(scan, bytes) },
    }
}

#[target_feature(enable = "avx2")]
fn avx2(scan: Scan, bytes: &[u8]) -> bool {
    scan::all(scan, bytes)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn avx512(scan: Scan, bytes: &[u8]) -> bool {
    scan::all(scan, bytes)
}
