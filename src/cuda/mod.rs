//! The codec on CUDA devices, for Rust programs: the kernels of `kernels/`, loaded as PTX through cudarc.
//!
//! Payloads, values and row lists lie in device memory that the caller allocated with cudarc. Each operation
//! checks its arguments as the host does and in the same order, enqueues its kernels on the codec's stream and returns
//! at once. The bytes written are the host's.
//!
//! Faults in the data are found on the device. An operation that can meet one gives a [`Pending`]: its
//! [`wait`](Pending::wait) waits for the stream and returns the outcome. Wait where the data may be at fault, or where
//! the host goes on with the result. There is no need to where what follows is work on the same stream and the payload
//! is known to be sound, as after [`CudaCodec::validate`]: drop the `Pending` and read nothing back.
//!
//! ```no_run
//! use ninfer_codec::cuda::{CudaCodec, CudaError, DeviceRows};
//! use ninfer_codec::{Format, Plan, bf16};
//!
//! fn first_rows(payload: &[u8], rows: u64, columns: u64) -> Result<Vec<bf16>, CudaError> {
//!     let plan = Plan::new(Format::Q4G64F16S, Format::Q4G64F16S.layout(), &[rows, columns])?;
//!     let codec = CudaCodec::open(0)?;
//!     let payload = codec.stream().clone_htod(payload)?;
//!     let mut out = codec.stream().alloc_zeros::<bf16>(4 * columns as usize)?;
//!     let range = DeviceRows::Range { begin: 0, count: 4 };
//!     codec.decode(&plan, &payload, range, &mut out, columns)?.wait()?;
//!     Ok(codec.stream().clone_dtoh(&out)?)
//! }
//! ```
//!
//! C and C++ engines use `include/ninfer_codec_cuda.h` and the CMake target in `kernels/` instead; there is no Rust
//! in those.

#![allow(unsafe_code)] // the crate denies it elsewhere

mod args;
mod check;
mod error;
mod launch;
mod report;

use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{
    CudaContext, CudaModule, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut,
    DeviceSlice, result, sys,
};
use cudarc::nvrtc::Ptx;
use half::{bf16, f16};

use self::args::{CopyArgs, DecodeArgs, QuantizeArgs, RowArgs, SwizzleArgs};
use self::check::{Asked, DecodeKernel, short_name};
pub use self::error::CudaError;
pub use self::launch::Pending;
use self::launch::Queue;
use self::report::{DECODE, QUANTIZE, VALIDATE};
use crate::format::Format;
use crate::layout::Plan;
use crate::value::ValueType;

/// The kernels, compiled by NVRTC 12.9 for compute capability 8.0 and later.
static PTX: &str = include_str!("kernels.ptx");
/// The oldest driver that takes this PTX, as the driver numbers itself: CUDA 12.9.
const DRIVER_NEEDED: i32 = 12090;

/// A type of values on the device.
pub trait DeviceValue: sealed::Sealed {
    /// The type's id.
    const TYPE: ValueType;
}

/// Memory of a device to read: a slice of cudarc's or a view of one.
///
/// Sealed, since only cudarc's own types vouch for what they point to.
pub trait DeviceMemory<T>: DevicePtr<T> + sealed::Sealed {}

/// Memory of a device to write: a slice of cudarc's or a mutable view of one. Sealed as [`DeviceMemory`].
pub trait DeviceMemoryMut<T>: DevicePtrMut<T> + sealed::Sealed {}

impl<T> sealed::Sealed for CudaSlice<T> {}
impl<T> sealed::Sealed for CudaView<'_, T> {}
impl<T> sealed::Sealed for CudaViewMut<'_, T> {}
impl<T> DeviceMemory<T> for CudaSlice<T> {}
impl<T> DeviceMemory<T> for CudaView<'_, T> {}
impl<T> DeviceMemory<T> for CudaViewMut<'_, T> {}
impl<T> DeviceMemoryMut<T> for CudaSlice<T> {}
impl<T> DeviceMemoryMut<T> for CudaViewMut<'_, T> {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! device_values {
    ($($value:ty => $id:ident),*) => {$(
        impl sealed::Sealed for $value {}
        impl DeviceValue for $value {
            const TYPE: ValueType = ValueType::$id;
        }
    )*};
}

device_values!(f32 => F32, bf16 => Bf16, f16 => F16, f64 => F64);

/// The rows of a tensor to decode or copy.
#[derive(Clone, Copy, Debug)]
pub enum DeviceRows<'a> {
    /// Rows `[begin, begin + count)`.
    Range {
        /// The first row.
        begin: u64,
        /// How many rows.
        count: u64,
    },
    /// Any rows, in any order, with repeats.
    List(&'a CudaSlice<u64>),
}

impl DeviceRows<'_> {
    fn asked(self) -> Asked {
        match self {
            Self::Range { begin, count } => Asked::Range { begin, count },
            Self::List(list) => Asked::List { len: list.len() as u64 },
        }
    }
}

/// The kernels on one stream of one device.
#[derive(Clone, Debug)]
pub struct CudaCodec {
    stream: Arc<CudaStream>,
    module: Arc<CudaModule>,
    processors: u64,
}

impl CudaCodec {
    /// Loads the kernels on the default stream of a device.
    ///
    /// # Errors
    /// [`CudaError::NoDriver`], [`CudaError::NoDevice`], [`CudaError::DriverTooOld`], [`CudaError::Driver`].
    ///
    /// # Panics
    /// Never.
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        // SAFETY: only looks for the driver's library; cudarc itself would panic where there is none.
        if !unsafe { sys::is_culib_present() } {
            return Err(CudaError::NoDriver);
        }
        result::init().map_err(no_device)?;
        let driver = driver_version()?;
        if driver < DRIVER_NEEDED {
            return Err(CudaError::DriverTooOld { driver, needed: DRIVER_NEEDED });
        }
        let devices = CudaContext::device_count().map_err(no_device)?;
        if usize::try_from(devices).is_ok_and(|devices| ordinal >= devices) {
            return Err(CudaError::NoDevice);
        }
        Self::on_stream(&CudaContext::new(ordinal)?.default_stream())
    }

    /// Loads the kernels for a stream of the caller's.
    ///
    /// # Errors
    /// [`CudaError::DriverTooOld`], [`CudaError::Driver`].
    ///
    /// # Panics
    /// Never.
    pub fn on_stream(stream: &Arc<CudaStream>) -> Result<Self, CudaError> {
        let driver = driver_version()?;
        if driver < DRIVER_NEEDED {
            return Err(CudaError::DriverTooOld { driver, needed: DRIVER_NEEDED });
        }
        let context = stream.context();
        let module = context.load_module(Ptx::from_src(PTX))?;
        let processors = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        Ok(Self { stream: stream.clone(), module, processors: u64::try_from(processors).unwrap_or(1) })
    }

    /// Returns the stream, to allocate and copy on.
    #[must_use]
    pub const fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Decodes rows of a payload; as [`Tensor::decode`](crate::Tensor::decode), on the device.
    ///
    /// # Errors
    /// [`CudaError::Codec`] with the host's errors for arguments, [`CudaError::OtherContext`],
    /// [`CudaError::Misaligned`], [`CudaError::Driver`]. From [`Pending::wait`], an illegal scale or divisor word or an
    /// entry of the list past the end. On any error nothing is written to `out`.
    ///
    /// # Panics
    /// Never.
    pub fn decode<T: DeviceValue>(
        &self,
        plan: &Plan,
        payload: &impl DeviceMemory<u8>,
        rows: DeviceRows<'_>,
        out: &mut impl DeviceMemoryMut<T>,
        stride: u64,
    ) -> Result<Pending, CudaError> {
        let (count, kernel) =
            check::decode(plan, payload.len(), rows.asked(), T::TYPE, stride, out.len() as u64)?;
        self.check_context(payload)?;
        self.check_context(out)?;
        self.check_list_context(rows)?;
        let (payload, _payload) = payload.device_ptr(&self.stream);
        let (out, _out) = out.device_ptr_mut(&self.stream);
        check::aligned(out, align_of::<T>())?;

        let queue = Queue::new(self)?;
        let (rows, _list) = self.rows(rows);
        let args = DecodeArgs { plan: plan.into(), rows, payload, out, stride, report: queue.report() };
        queue.check_rows(args)?;
        queue.check_scales(plan.format(), args)?;
        match kernel {
            DecodeKernel::Words { bytes } => {
                let row_bytes = plan.codes().row_bytes;
                queue.copy(CopyArgs {
                    rows,
                    from: payload,
                    to: out,
                    from_row_bytes: row_bytes,
                    to_row_bytes: stride.wrapping_mul(bytes), // of one row alone it does not matter
                    bytes: row_bytes,
                    report: queue.report(),
                })?;
            }
            DecodeKernel::Named(name, tile_columns) => {
                let items = count * plan.columns().div_ceil(tile_columns);
                self.run(&name, args, items, launch::BLOCK_WARPS)?;
            }
        }
        queue.finish(DECODE, plan, rows, payload, None)
    }

    /// Quantizes `count` rows of values into rows `[begin, begin + count)` of a payload, padding included; as
    /// [`TensorMut::quantize`](crate::TensorMut::quantize), on the device. The call with the last row clears the gaps
    /// between planes.
    ///
    /// # Errors
    /// [`CudaError::Codec`] with the host's errors for arguments, and [`Error::UnsupportedOutput`](crate::Error) for
    /// binary64 sources; [`CudaError::OtherContext`], [`CudaError::Misaligned`], [`CudaError::Driver`]. From
    /// [`Pending::wait`], the first fault in the source; what it may have spoilt is as on the host.
    ///
    /// # Panics
    /// Never.
    pub fn quantize<T: DeviceValue>(
        &self,
        plan: &Plan,
        source: &impl DeviceMemory<T>,
        stride: u64,
        begin: u64,
        count: u64,
        payload: &mut impl DeviceMemoryMut<u8>,
    ) -> Result<Pending, CudaError> {
        let name = check::quantize(plan, payload.len(), begin, count, T::TYPE, stride, source.len() as u64)?;
        self.check_context(source)?;
        self.check_context(payload)?;
        let (source, _source) = source.device_ptr(&self.stream);
        let (payload, _payload) = payload.device_ptr_mut(&self.stream);
        check::aligned(source, align_of::<T>())?;

        let queue = Queue::new(self)?;
        let rows = RowArgs { list: 0, begin, count };
        let args = QuantizeArgs { plan: plan.into(), rows, source, stride, payload, report: queue.report() };
        let kernel = std::format!("quantize_{name}_{}", T::TYPE.name());
        self.run(&kernel, args, count * plan.columns().div_ceil(256), launch::BLOCK_WARPS)?;
        if begin + count == plan.rows() {
            queue.clear_gaps(plan, payload, 0)?;
        }
        queue.finish(QUANTIZE, plan, rows, payload, Some((source, stride, T::TYPE)))
    }

    /// Looks for the first violation in rows `[begin, begin + count)`; as
    /// [`Tensor::validate`](crate::Tensor::validate), on the device. [`Pending::wait`] tells it.
    ///
    /// # Errors
    /// [`CudaError::Codec`] with the host's errors for arguments, [`CudaError::OtherContext`], [`CudaError::Driver`].
    ///
    /// # Panics
    /// Never.
    pub fn validate(
        &self,
        plan: &Plan,
        payload: &impl DeviceMemory<u8>,
        begin: u64,
        count: u64,
    ) -> Result<Pending, CudaError> {
        check::rows(plan, payload.len(), Asked::Range { begin, count })?;
        check::size(plan, count)?;
        self.check_context(payload)?;
        let (payload, _payload) = payload.device_ptr(&self.stream);
        let queue = Queue::new(self)?;
        let rows = RowArgs { list: 0, begin, count };
        let args = DecodeArgs { plan: plan.into(), rows, payload, out: 0, stride: 0, report: queue.report() };
        if let Some(name) = short_name(plan.format()) {
            let items = match plan.format() {
                Format::Nvfp4 => plan.columns() / 64,
                _ => plan.codes().row_bytes.div_ceil(16),
            };
            self.run(&std::format!("validate_{name}"), args, count * items, launch::BLOCK_THREADS)?;
        }
        queue.finish(VALIDATE, plan, rows, payload, None)
    }

    /// Copies rows of a payload into a new one, whose plan is `plan.with_rows(count)`; as
    /// [`Tensor::gather`](crate::Tensor::gather), on the device.
    ///
    /// # Errors
    /// [`CudaError::Codec`] with the host's errors for arguments, [`CudaError::OtherContext`], [`CudaError::Driver`].
    /// From [`Pending::wait`], an entry of the list past the end. On any error nothing is written to `out`.
    ///
    /// # Panics
    /// Never.
    pub fn gather(
        &self,
        plan: &Plan,
        payload: &impl DeviceMemory<u8>,
        rows: DeviceRows<'_>,
        out: &mut impl DeviceMemoryMut<u8>,
    ) -> Result<Pending, CudaError> {
        let to_plan = check::gather(plan, payload.len(), rows.asked(), out.len())?;
        self.check_context(payload)?;
        self.check_context(out)?;
        self.check_list_context(rows)?;
        let (payload, _payload) = payload.device_ptr(&self.stream);
        let (out, _out) = out.device_ptr_mut(&self.stream);

        let queue = Queue::new(self)?;
        let (rows, _list) = self.rows(rows);
        let report = queue.report();
        queue.check_rows(DecodeArgs { plan: plan.into(), rows, payload, out: 0, stride: 0, report })?;
        let planes = [
            (plan.codes(), to_plan.codes()),
            (plan.high(), to_plan.high()),
            (plan.scales(), to_plan.scales()),
        ];
        for (from, to) in planes.into_iter().take(if plan.format() == Format::Nvfp4 { 2 } else { 3 }) {
            queue.copy(CopyArgs {
                rows,
                from: payload + from.offset,
                to: out + to.offset,
                from_row_bytes: from.row_bytes,
                to_row_bytes: from.row_bytes,
                bytes: from.row_bytes,
                report,
            })?;
        }
        if plan.format() == Format::Nvfp4 {
            let k_tiles = plan.columns() / 64;
            let (from, to) = (payload + plan.scales().offset, out + to_plan.scales().offset);
            let args = SwizzleArgs { rows, from, to, k_tiles, report };
            self.run("gather_scales", args, to_plan.rows() / 4 * k_tiles, launch::BLOCK_THREADS)?;
            let divisor = RowArgs { list: 0, begin: 0, count: 1 };
            queue.copy(CopyArgs {
                rows: divisor,
                from: payload + plan.divisor().offset,
                to: out + to_plan.divisor().offset,
                from_row_bytes: 4,
                to_row_bytes: 4,
                bytes: 4,
                report,
            })?;
        }
        queue.clear_gaps(&to_plan, out, report)?;
        queue.finish(DECODE, plan, rows, payload, None)
    }

    /// Brings the NVFP4 scales of a `[rows, columns]` matrix from natural order, row by row, into the order of a
    /// payload's scale plane. Both buffers hold `rows * columns / 16` bytes. No word is looked at, so nothing is
    /// reported: the work is enqueued, and that is all.
    ///
    /// # Errors
    /// [`CudaError::Codec`] with `ZeroDimension`, `NotMultiple`, `Overflow`, `BufferLength` or `TooLarge`;
    /// [`CudaError::OtherContext`], [`CudaError::Driver`].
    ///
    /// # Panics
    /// Never.
    ///
    /// Spec: storage-layouts section 4.
    pub fn swizzle_scales(
        &self,
        rows: u64,
        columns: u64,
        natural: &impl DeviceMemory<u8>,
        plane: &mut impl DeviceMemoryMut<u8>,
    ) -> Result<(), CudaError> {
        self.reorder("swizzle_scales", rows, columns, natural, plane)
    }

    /// Brings the NVFP4 scales of a `[rows, columns]` matrix from the order of a payload's scale plane into natural
    /// order; the inverse of [`swizzle_scales`](Self::swizzle_scales), with the same lengths and errors.
    ///
    /// # Errors
    /// As [`swizzle_scales`](Self::swizzle_scales).
    ///
    /// # Panics
    /// Never.
    ///
    /// Spec: storage-layouts section 4.
    pub fn unswizzle_scales(
        &self,
        rows: u64,
        columns: u64,
        plane: &impl DeviceMemory<u8>,
        natural: &mut impl DeviceMemoryMut<u8>,
    ) -> Result<(), CudaError> {
        self.reorder("unswizzle_scales", rows, columns, plane, natural)
    }

    fn reorder(
        &self,
        kernel: &str,
        rows: u64,
        columns: u64,
        from: &impl DeviceMemory<u8>,
        to: &mut impl DeviceMemoryMut<u8>,
    ) -> Result<(), CudaError> {
        check::swizzle(rows, columns, from.len() as u64, to.len() as u64)?;
        self.check_context(from)?;
        self.check_context(to)?;
        let (from, _from) = from.device_ptr(&self.stream);
        let (to, _to) = to.device_ptr_mut(&self.stream);
        let k_tiles = columns / 64;
        let args =
            SwizzleArgs { rows: RowArgs { list: 0, begin: 0, count: rows }, from, to, k_tiles, report: 0 };
        self.run(kernel, args, rows / 4 * k_tiles.div_ceil(4), launch::BLOCK_THREADS)
    }

    /// Checks that memory belongs to the stream's context: kernels could not reach it elsewhere.
    fn check_context<T>(&self, memory: &impl DeviceSlice<T>) -> Result<(), CudaError> {
        let same = memory.stream().context() == self.stream.context();
        if same { Ok(()) } else { Err(CudaError::OtherContext) }
    }

    fn check_list_context(&self, rows: DeviceRows<'_>) -> Result<(), CudaError> {
        match rows {
            DeviceRows::Range { .. } => Ok(()),
            DeviceRows::List(list) => self.check_context(list),
        }
    }
}

fn no_device(error: result::DriverError) -> CudaError {
    match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => CudaError::NoDevice,
        _ => error.into(),
    }
}

fn driver_version() -> Result<i32, CudaError> {
    // SAFETY: as in `open`; a stream of the caller's proves it too, but asking again costs nothing.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    let mut version = 0;
    // SAFETY: the call writes one integer through a valid pointer.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
    Ok(version)
}
