//! Enqueuing the kernels of one operation, and its report.

use std::format;
use std::sync::Arc;
use std::vec::Vec;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{
    CudaSlice, CudaStream, DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg, SyncOnDrop, result,
};

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

/// An operation that is enqueued: its results, and what it reports, are there when the stream has reached its end.
///
/// Work on the same stream comes after it by itself, and cudarc orders other streams and the host's copies after it.
/// A `Pending` that is dropped leaves the report unread: the operation runs all the same, and where it refuses its data,
/// nobody is told. Dropping waits for nothing where the device frees memory in stream order, else for the stream. It
/// owns its report and borrows nothing.
#[derive(Debug)]
#[must_use = "a refusal is told by `wait`; drop it where the data is known to be sound"]
pub struct Pending {
    stream: Arc<CudaStream>,
    report: CudaSlice<u64>,
    plan: Plan,
}

impl Pending {
    /// Waits for the stream, and returns what the operation reports.
    ///
    /// # Errors
    /// [`CudaError::Codec`] with the first fault in the data, in the host's order; [`CudaError::Driver`].
    ///
    /// # Panics
    /// Never.
    pub fn wait(self) -> Result<(), CudaError> {
        let words: Vec<u64> = self.stream.clone_dtoh(&self.report)?;
        self.stream.synchronize()?;
        let words = words.first_chunk().copied().unwrap_or([0; WORDS]);
        Ok(report::outcome(words, &self.plan)?)
    }
}

impl CudaCodec {
    /// Rows as a kernel takes them; hold on to the guard until the kernels are enqueued.
    pub(super) fn rows<'a>(&'a self, rows: DeviceRows<'a>) -> (RowArgs, Option<SyncOnDrop<'a>>) {
        match rows {
            DeviceRows::Range { begin, count } => (RowArgs { list: 0, begin, count }, None),
            DeviceRows::List(list) => {
                let (pointer, sync) = list.device_ptr(&self.stream);
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
        self.stream.context().bind_to_thread()?;
        let kernel = self.module.load_function(&format!("ninfer_codec_{name}"))?;
        let resident =
            kernel.occupancy_max_active_blocks_per_multiprocessor(BLOCK_THREADS as u32, 0, None)?;
        let most = self.processors.saturating_mul(resident.max(1).into());
        let blocks = items.div_ceil(block_items).clamp(1, most);
        let config = LaunchConfig {
            grid_dim: (u32::try_from(blocks).unwrap_or(u32::MAX >> 1), 1, 1),
            block_dim: (BLOCK_THREADS as u32, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the kernel's one parameter is the C twin of `A`, and is copied before the call returns. Its pointers
        // are device buffers whose lengths the caller checked against the plan. They are borrowed until the launch is
        // enqueued and their events are recorded; from then on cudarc frees and reuses them in the stream's order.
        unsafe { self.stream.launch_builder(&kernel).arg(&args).launch(config) }?;
        Ok(())
    }
}

/// The kernels of one operation that reports.
pub(super) struct Queue<'c> {
    codec: &'c CudaCodec,
    report: CudaSlice<u64>,
}

impl<'c> Queue<'c> {
    /// Begins an operation with a clean report: all ones.
    pub(super) fn new(codec: &'c CudaCodec) -> Result<Self, CudaError> {
        let stream = &codec.stream;
        // SAFETY: the words are written, here below, before anything reads them.
        let report = unsafe { stream.alloc::<u64>(WORDS) }?;
        let (pointer, written) = report.device_ptr(stream);
        // SAFETY: the pointer is the report's, which is as long as said; the context is current since `alloc`.
        unsafe { result::memset_d8_async(pointer, 0xff, 8 * WORDS, stream.cu_stream()) }?;
        drop(written);
        Ok(Self { codec, report })
    }

    pub(super) fn report(&self) -> CUdeviceptr {
        self.report.device_ptr(&self.codec.stream).0
    }

    /// Looks for entries of a row list that are past the end.
    pub(super) fn check_rows(&self, args: DecodeArgs) -> Result<(), CudaError> {
        if args.rows.list == 0 {
            return Ok(());
        }
        self.codec.run("check_rows", args, args.rows.count, BLOCK_THREADS)
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
        self.codec.run(name, args, args.rows.count * items, BLOCK_THREADS)
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
        self.codec.run(name, args, args.rows.count * (args.bytes / unit), BLOCK_THREADS * COPY_BATCH)
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

    /// Has the report explained.
    pub(super) fn finish(
        self,
        operation: u32,
        plan: &Plan,
        rows: RowArgs,
        payload: CUdeviceptr,
        source: Option<(CUdeviceptr, u64, ValueType)>,
    ) -> Result<Pending, CudaError> {
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
        self.codec.run("explain", args, 1, 1)?;
        Ok(Pending { stream: self.codec.stream.clone(), report: self.report, plan: *plan })
    }
}
