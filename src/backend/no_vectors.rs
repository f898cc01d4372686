//! What stands in the place of vector kernels on a target that has none: a choice that cannot be made.

/// What vectors ask of an output type: nothing here.
pub(crate) trait Lanes {}
impl<T> Lanes for T {}

/// No mode is set: the portable quantizer asks for it.
pub(crate) struct DefaultMode;

impl DefaultMode {
    pub(crate) const fn enter() -> Self {
        Self
    }
}

pub(crate) mod decode {
    pub(crate) use crate::backend::nvfp4_tables::TableWord as Nvfp4Word;
    use crate::backend::nvfp4_tables::Tables;
    use crate::backend::{Fp8Rows, GroupedRow, Narrow, Nvfp4Rows, Stores};
    use crate::format::Format;

    /// The vector backends: none.
    #[derive(Clone, Copy)]
    pub(crate) enum Simd {}

    pub(crate) fn decode_grouped<N: Narrow>(
        simd: Simd,
        _: Format,
        _: &GroupedRow<'_>,
        _: &mut [N::Word],
        _: &Stores,
    ) {
        match simd {}
    }

    pub(crate) fn decode_fp8<N: Narrow>(simd: Simd, _: &Fp8Rows<'_>, _: &mut [N::Word], _: &Stores) {
        match simd {}
    }

    pub(crate) fn decode_nvfp4<W>(simd: Simd, _: &Nvfp4Rows<'_>, _: &Tables<W>, _: &mut [W], _: &Stores) {
        match simd {}
    }

    pub(crate) fn widen_bf16(simd: Simd, _: &[u8], _: &mut [u32], _: &Stores) {
        match simd {}
    }
}

pub(crate) mod scan {
    pub(crate) fn all(simd: super::decode::Simd, _: crate::backend::Scan, _: &[u8]) -> bool {
        match simd {}
    }
}

pub(crate) mod unpack {
    use crate::backend::{GroupedRow, Stores};
    use crate::format::Format;

    pub(crate) fn codes(simd: super::decode::Simd, _: Format, _: &GroupedRow<'_>, _: &mut [u8], _: &Stores) {
        match simd {}
    }
}
