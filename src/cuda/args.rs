//! The kernels' arguments: the structs of `kernels/common.cuh`, member by member. Device pointers are numbers here.

use cudarc::driver::DeviceRepr;
use cudarc::driver::sys::CUdeviceptr;

use crate::layout;

macro_rules! kernel_args {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        pub(super) struct $name { $(pub $field: $type),* }

        // SAFETY: a C struct of integers and structs of such, copied by value into a kernel's parameter.
        unsafe impl DeviceRepr for $name {}
    )*};
}

kernel_args! {
    /// Where a payload's rows lie.
    PlanArgs {
        n: u64,
        k: u64,
        base_row_bytes: u64,
        high_offset: u64,
        high_row_bytes: u64,
        scale_offset: u64,
        scale_row_bytes: u64,
        payload_bytes: u64,
    }
    /// A list of rows, or with a null list a range.
    RowArgs { list: CUdeviceptr, begin: u64, count: u64 }
    DecodeArgs {
        plan: PlanArgs,
        rows: RowArgs,
        payload: CUdeviceptr,
        out: CUdeviceptr,
        stride: u64,
        report: CUdeviceptr,
    }
    QuantizeArgs {
        plan: PlanArgs,
        rows: RowArgs,
        source: CUdeviceptr,
        stride: u64,
        payload: CUdeviceptr,
        report: CUdeviceptr,
    }
    CopyArgs {
        rows: RowArgs,
        from: CUdeviceptr,
        to: CUdeviceptr,
        from_row_bytes: u64,
        to_row_bytes: u64,
        bytes: u64,
        report: CUdeviceptr,
    }
    SwizzleArgs { rows: RowArgs, from: CUdeviceptr, to: CUdeviceptr, k_tiles: u64, report: CUdeviceptr }
    ExplainArgs {
        plan: PlanArgs,
        rows: RowArgs,
        payload: CUdeviceptr,
        source: CUdeviceptr,
        stride: u64,
        operation: u32,
        format: u32,
        source_type: u32,
        reserved: u32,
        report: CUdeviceptr,
    }
}

impl From<&layout::Plan> for PlanArgs {
    fn from(plan: &layout::Plan) -> Self {
        Self {
            n: plan.rows(),
            k: plan.columns(),
            base_row_bytes: plan.codes().row_bytes,
            high_offset: plan.high().offset,
            high_row_bytes: plan.high().row_bytes,
            scale_offset: plan.scales().offset,
            scale_row_bytes: plan.scales().row_bytes,
            payload_bytes: plan.payload_bytes(),
        }
    }
}
