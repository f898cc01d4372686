//! The codec on CUDA devices, for Rust programs: the kernels of `kernels/`, loaded as PTX through cudarc.
//!
//! Payloads, values and row lists lie in device memory that the caller allocated with cudarc. Each operation
//! checks its arguments as the host does and in the same order, enqueues its kernels on the codec's stream, waits for
//! them and returns what they report. The bytes written are the host's.
//!
//! C and C++ engines use `include/ninfer_codec_cuda.h` and the CMake target in `kernels/` instead; there is no Rust
//! in those.

#![allow(unsafe_code)] // the crate denies it elsewhere

mod args;
mod error;
mod launch;
mod report;

use std::string::String;
use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{CudaContext, CudaModule, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, result, sys};
use cudarc::nvrtc::Ptx;
use half::{bf16, f16};

use self::args::{CopyArgs, DecodeArgs, QuantizeArgs, RowArgs, SwizzleArgs};
pub use self::error::CudaError;
use self::launch::Queue;
use self::report::{DECODE, QUANTIZE, VALIDATE};
use crate::decode::check_strided;
use crate::error::Error;
use crate::format::{Category, Format};
use crate::layout::Plan;
use crate::value::ValueType;

/// The kernels, compiled by NVRTC 12.9 for compute capability 8.0 and later.
static PTX: &str = include_str!("kernels.ptx");
/// The oldest driver that takes this PTX, as the driver numbers itself: CUDA 12.9.
const DRIVER_NEEDED: i32 = 12090;
/// Above this many elements, the keys by which kernels report faults would not fit a word.
const MOST_ELEMENTS: u64 = 1 << 54;

/// A type of values on the device.
pub trait DeviceValue: sealed::Sealed {
    /// The type's id.
    const TYPE: ValueType;
}

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
    /// [`CudaError::Codec`] with the host's errors, [`CudaError::Driver`]. On any error nothing is written to `out`.
    ///
    /// # Panics
    /// Never.
    pub fn decode<T: DeviceValue>(
        &self,
        plan: &Plan,
        payload: &impl DevicePtr<u8>,
        rows: DeviceRows<'_>,
        out: &mut impl DevicePtrMut<T>,
        stride: u64,
    ) -> Result<(), CudaError> {
        let count = check_rows(plan, payload.len(), rows)?;
        let format = plan.format();
        let kernel =
            decode_kernel(format, T::TYPE).ok_or(Error::UnsupportedOutput { format, output: T::TYPE })?;
        check_strided(count, plan.columns(), stride, out.len() as u64)?;
        check_size(plan, count)?;

        let queue = Queue::new(self)?;
        let (payload, _payload) = payload.device_ptr(&self.stream);
        let (out, _out) = out.device_ptr_mut(&self.stream);
        let (rows, _list) = queue.rows(rows);
        let args = DecodeArgs { plan: plan.into(), rows, payload, out, stride, report: queue.report() };
        queue.check_rows(args)?;
        queue.check_scales(format, args)?;
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
                queue.run(&name, args, count * plan.columns().div_ceil(tile_columns), launch::BLOCK_WARPS)?;
            }
        }
        queue.finish(DECODE, plan, rows, payload, None)
    }

    /// Quantizes `count` rows of values into rows `[begin, begin + count)` of a payload, padding included; as
    /// [`TensorMut::quantize`](crate::TensorMut::quantize), on the device. The call with the last row clears the gaps
    /// between planes.
    ///
    /// # Errors
    /// [`CudaError::Codec`] with the host's errors; binary64 sources are [`Error::UnsupportedOutput`] here.
    /// [`CudaError::Driver`]. What a fault in the source may have spoilt is as on the host.
    ///
    /// # Panics
    /// Never.
    pub fn quantize<T: DeviceValue>(
        &self,
        plan: &Plan,
        source: &impl DevicePtr<T>,
        stride: u64,
        begin: u64,
        count: u64,
        payload: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), CudaError> {
        check_rows(plan, payload.len(), DeviceRows::Range { begin, count })?;
        let format = plan.format();
        let Some(name) = short_name(format).filter(|_| format.scheme().is_some()) else {
            return Err(Error::NoCanonicalEncoder { format }.into());
        };
        if T::TYPE == ValueType::F64 {
            return Err(Error::UnsupportedOutput { format, output: T::TYPE }.into());
        }
        check_strided(count, plan.columns(), stride, source.len() as u64)?;
        check_size(plan, count)?;

        let queue = Queue::new(self)?;
        let (source, _source) = source.device_ptr(&self.stream);
        let (payload, _payload) = payload.device_ptr_mut(&self.stream);
        let rows = RowArgs { list: 0, begin, count };
        let args = QuantizeArgs { plan: plan.into(), rows, source, stride, payload, report: queue.report() };
        let kernel = std::format!("quantize_{name}_{}", T::TYPE.name());
        queue.run(&kernel, args, count * plan.columns().div_ceil(256), launch::BLOCK_WARPS)?;
        if begin + count == plan.rows() {
            queue.clear_gaps(plan, payload, 0)?;
        }
        queue.finish(QUANTIZE, plan, rows, payload, Some((source, stride, T::TYPE)))
    }

    /// Reports the first violation in rows `[begin, begin + count)`; as
    /// [`Tensor::validate`](crate::Tensor::validate), on the device.
    ///
    /// # Errors
    /// [`CudaError::Codec`] with the violation or the host's errors, [`CudaError::Driver`].
    ///
    /// # Panics
    /// Never.
    pub fn validate(
        &self,
        plan: &Plan,
        payload: &impl DevicePtr<u8>,
        begin: u64,
        count: u64,
    ) -> Result<(), CudaError> {
        check_rows(plan, payload.len(), DeviceRows::Range { begin, count })?;
        check_size(plan, count)?;
        let queue = Queue::new(self)?;
        let (payload, _payload) = payload.device_ptr(&self.stream);
        let rows = RowArgs { list: 0, begin, count };
        let args = DecodeArgs { plan: plan.into(), rows, payload, out: 0, stride: 0, report: queue.report() };
        if let Some(name) = short_name(plan.format()) {
            let items = match plan.format() {
                Format::Nvfp4 => plan.columns() / 64,
                _ => plan.codes().row_bytes.div_ceil(16),
            };
            queue.run(&std::format!("validate_{name}"), args, count * items, launch::BLOCK_THREADS)?;
        }
        queue.finish(VALIDATE, plan, rows, payload, None)
    }

    /// Copies rows of a payload into a new one; as [`Tensor::gather`](crate::Tensor::gather), on the device.
    ///
    /// # Errors
    /// [`CudaError::Codec`] with the host's errors, [`CudaError::Driver`]. On any error nothing is written to `out`.
    ///
    /// # Panics
    /// Never.
    pub fn gather(
        &self,
        plan: &Plan,
        payload: &impl DevicePtr<u8>,
        rows: DeviceRows<'_>,
        out: &mut impl DevicePtrMut<u8>,
    ) -> Result<Plan, CudaError> {
        let count = check_rows(plan, payload.len(), rows)?;
        let to_plan = plan.with_rows(count)?;
        check_length(&to_plan, out.len())?;
        check_size(plan, count)?;

        let queue = Queue::new(self)?;
        let (payload, _payload) = payload.device_ptr(&self.stream);
        let (out, _out) = out.device_ptr_mut(&self.stream);
        let (rows, _list) = queue.rows(rows);
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
            queue.run("gather_scales", args, count / 4 * k_tiles, launch::BLOCK_THREADS)?;
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
        queue.finish(DECODE, plan, rows, payload, None)?;
        Ok(to_plan)
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

/// Checks payload length and rows, and returns how many rows there are. Entries of a list are checked on the device.
fn check_rows(plan: &Plan, payload: usize, rows: DeviceRows<'_>) -> Result<u64, Error> {
    check_length(plan, payload)?;
    match rows {
        DeviceRows::Range { begin, count } => plan.check_rows(begin, count).map(|_| count),
        DeviceRows::List(list) if list.is_empty() => Err(Error::EmptyRows),
        DeviceRows::List(list) => Ok(list.len() as u64),
    }
}

fn check_length(plan: &Plan, actual: usize) -> Result<(), Error> {
    let (expected, actual) = (plan.payload_bytes(), actual as u64);
    if actual == expected { Ok(()) } else { Err(Error::PayloadLength { expected, actual }) }
}

fn check_size(plan: &Plan, count: u64) -> Result<(), Error> {
    let size = count.max(plan.rows()).saturating_mul(plan.columns());
    if size > MOST_ELEMENTS { Err(Error::TooLarge { size }) } else { Ok(()) }
}

/// The format in the names of kernels; none for direct formats.
fn short_name(format: Format) -> Option<&'static str> {
    match format {
        Format::Q4G64F16S => Some("q4"),
        Format::Q5G64F16S => Some("q5"),
        Format::Q6G64F16S => Some("q6"),
        Format::W8G32F16S => Some("w8"),
        Format::Nvfp4 => Some("nvfp4"),
        Format::Fp8E4M3FnRowBf16S => Some("fp8"),
        Format::Bf16 | Format::Fp32 | Format::I32 => None,
    }
}

enum DecodeKernel {
    /// Words as they are, of so many bytes.
    Words { bytes: u64 },
    /// A kernel, and the columns that a warp takes at once.
    Named(String, u64),
}

fn decode_kernel(format: Format, output: ValueType) -> Option<DecodeKernel> {
    match (format, output) {
        (Format::Bf16, ValueType::Bf16) => return Some(DecodeKernel::Words { bytes: 2 }),
        (Format::Fp32, ValueType::F32) => return Some(DecodeKernel::Words { bytes: 4 }),
        (Format::Bf16, ValueType::F32) => return Some(DecodeKernel::Named("decode_bf16_f32".into(), 256)),
        (Format::Nvfp4, _) => {}
        (_, ValueType::F64) => return None,
        _ => {}
    }
    let name = std::format!("decode_{}_{}", short_name(format)?, output.name());
    let eight_bits = format.descriptor().category == Category::RowScaled || format == Format::W8G32F16S;
    Some(DecodeKernel::Named(name, if eight_bits { 512 } else { 1024 }))
}
