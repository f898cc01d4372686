//! Enqueuing the kernels of one operation and waiting for its report.

use std::format;
use std::vec::Vec;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaSlice, DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg, SyncOnDrop};

use super::args::{CopyArgs, DecodeArgs, ExplainArgs, RowArgs};
use super::report::{self, WORDS};
use super::{CudaCodec, CudaError, DeviceRows};
use crate::format::{Category, Format};
use crate::layout::Plan;
use crate::value::ValueType;

/// Warps and threads of a block, and what a thread of the copy kernels takes at once; as in `kernels/common.cuh`.
pub(super) const BLOCK_WARPS: u64 = 8;
pub(super) const BLOCK_THREADS: u64 = 256;
const COPY_BATCH: u64 = 2;

/// One operation under way.
pub(super) struct Queue<'c> {
    codec: &'c CudaCodec,
    report: CudaSlice<u64>,
}

impl<'c> Queue<'c> {
    /// Begins an operation with a clean report.
    pub(super) fn new(codec: &'c CudaCodec) -> Result<Self, CudaError> {
        Ok(Self { codec, report: codec.stream.clone_htod(&[u64::MAX; WORDS])? })
    }

    pub(super) fn report(&self) -> CUdeviceptr {
        self.report.device_ptr(&self.codec.stream).0
    }

    pub(super) fn rows<'a>(&'a self, rows: DeviceRows<'a>) -> (RowArgs, Option<SyncOnDrop<'a>>) {
        match rows {
            DeviceRows::Range { begin, count } => (RowArgs { list: 0, begin, count }, None),
            DeviceRows::List(list) => {
                let (pointer, sync) = list.device_ptr(&self.codec.stream);
                (RowArgs { list: pointer, begin: 0, count: list.len() as u64 }, Some(sync))
            }
        }
    }

    /// Runs a kernel: a block for `items` / `block_items`, and no more blocks than the device holds at once.
    pub(super) fn run<A: DeviceRepr>(
        &self,
        name: &str,
        args: A,
        items: u64,
        block_items: u64,
    ) -> Result<(), CudaError> {
        let kernel = self.codec.module.load_function(&format!("ninfer_codec_{name}"))?;
        let resident =
            kernel.occupancy_max_active_blocks_per_multiprocessor(BLOCK_THREADS as u32, 0, None)?;
        let most = self.codec.processors.saturating_mul(resident.max(1).into());
        let blocks = items.div_ceil(block_items).clamp(1, most);
        let config = LaunchConfig {
            grid_dim: (u32::try_from(blocks).unwrap_or(u32::MAX >> 1), 1, 1),
            block_dim: (BLOCK_THREADS as u32, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the kernel's one parameter is the C twin of `A`; its pointers are device buffers whose lengths the
        // caller checked against the plan. They are borrowed for the whole operation, which ends when `finish` has
        // waited for the stream; after an early error cudarc frees and reuses them in the stream's order.
        unsafe { self.codec.stream.launch_builder(&kernel).arg(&args).launch(config) }?;
        Ok(())
    }

    /// Looks for entries of a row list that are past the end.
    pub(super) fn check_rows(&self, args: DecodeArgs) -> Result<(), CudaError> {
        if args.rows.list == 0 {
            return Ok(());
        }
        self.run("check_rows", args, args.rows.count, BLOCK_THREADS)
    }

    /// Looks at the divisor and the scale words of the rows.
    pub(super) fn check_scales(&self, format: Format, args: DecodeArgs) -> Result<(), CudaError> {
        let k = args.plan.k;
        let (name, items) = match format.descriptor().category {
            Category::DirectFloat | Category::DirectInteger => return Ok(()),
            Category::BlockScaled => ("check_nvfp4", k / 64),
            Category::RowScaled => ("check_fp8", 1),
            Category::Grouped if format == Format::W8G32F16S => ("check_grouped_w8", k.div_ceil(32)),
            Category::Grouped => ("check_grouped_q", k.div_ceil(64)),
        };
        self.run(name, args, args.rows.count * items, BLOCK_THREADS)
    }

    /// Moves rows of bytes; what lies side by side on both sides moves as one row. From null: zeros.
    pub(super) fn copy(&self, mut args: CopyArgs) -> Result<(), CudaError> {
        if args.bytes == 0 {
            return Ok(());
        }
        if args.rows.list == 0 && args.from_row_bytes == args.bytes && args.to_row_bytes == args.bytes {
            if args.from != 0 {
                args.from += args.rows.begin * args.bytes;
            }
            args.bytes *= args.rows.count;
            (args.from_row_bytes, args.to_row_bytes) = (args.bytes, args.bytes);
            args.rows = RowArgs { list: 0, begin: 0, count: 1 };
        }
        let all = args.from | args.to | args.from_row_bytes | args.to_row_bytes | args.bytes;
        let (name, unit) = match all % 16 {
            0 => ("copy_rows_16", 16),
            4 | 8 | 12 => ("copy_rows_4", 4),
            _ => ("copy_rows_1", 1),
        };
        self.run(name, args, args.rows.count * (args.bytes / unit), BLOCK_THREADS * COPY_BATCH)
    }

    /// Writes zeros between the planes of a payload, unless a report that is not null says that something is wrong.
    pub(super) fn clear_gaps(
        &self,
        plan: &Plan,
        payload: CUdeviceptr,
        report: CUdeviceptr,
    ) -> Result<(), CudaError> {
        let (codes, high, scales) = (plan.codes(), plan.high(), plan.scales());
        for (begin, end) in [(codes.bytes, high.offset), (high.offset + high.bytes, scales.offset)] {
            let bytes = end.saturating_sub(begin);
            self.copy(CopyArgs {
                rows: RowArgs { list: 0, begin: 0, count: 1 },
                from: 0,
                to: payload + begin,
                from_row_bytes: bytes,
                to_row_bytes: bytes,
                bytes,
                report,
            })?;
        }
        Ok(())
    }

    /// Has the report explained, waits, and returns the outcome.
    pub(super) fn finish(
        &self,
        operation: u32,
        plan: &Plan,
        rows: RowArgs,
        payload: CUdeviceptr,
        source: Option<(CUdeviceptr, u64, ValueType)>,
    ) -> Result<(), CudaError> {
        let (source, stride, source_type) =
            source.map_or((0, 0, 0), |(p, stride, id)| (p, stride, id as u32));
        let args = ExplainArgs {
            plan: plan.into(),
            rows,
            payload,
            source,
            stride,
            operation,
            format: plan.format() as u32,
            source_type,
            reserved: 0,
            report: self.report(),
        };
        self.run("explain", args, 1, 1)?;
        let words: Vec<u64> = self.codec.stream.clone_dtoh(&self.report)?;
        self.codec.stream.synchronize()?;
        let words = words.first_chunk().copied().unwrap_or([0; WORDS]);
        Ok(report::outcome(words, plan)?)
    }
}
