//! Unpacking codes by AVX2 and AVX-512: a group of 64 lanes to 64 signed bytes. Integers only.

use super::decode::{Grouped, GroupedKernel, Simd};
use super::{avx2_decode as avx2, avx512_decode as avx512};
use crate::backend::run::run;
use crate::backend::{GroupedRow, Stores};
use crate::format::Format;

/// Unpacks the codes of groups that follow one another in every plane.
pub(crate) fn codes(simd: Simd, format: Format, row: &GroupedRow<'_>, out: &mut [u8], stores: &Stores) {
    use Format::{Q4G64F16S, Q5G64F16S, Q6G64F16S, W8G32F16S};
    let (kernels, high_bytes): ([GroupedKernel; 2], _) = match (simd, format) {
        (Simd::Avx512, Q4G64F16S) => ([avx512::unpack_q4::<false>, avx512::unpack_q4::<true>], 0),
        (Simd::Avx512, Q5G64F16S) => ([avx512::unpack_q5::<false>, avx512::unpack_q5::<true>], 8),
        (Simd::Avx512, Q6G64F16S) => ([avx512::unpack_q6::<false>, avx512::unpack_q6::<true>], 16),
        (Simd::Avx2, Q4G64F16S) => ([avx2::unpack_q4; 2], 0),
        (Simd::Avx2, Q5G64F16S) => ([avx2::unpack_q5; 2], 8),
        (Simd::Avx2, Q6G64F16S) => ([avx2::unpack_q6; 2], 16),
        (_, W8G32F16S) => {
            let base = row.base.get(..out.len()).unwrap_or(row.base);
            return crate::backend::copy(out, base, stores);
        }
        _ => return,
    };
    run(&Grouped { kernels, row, high_bytes, unit: 64 }, out, stores);
}
