//! What can go wrong on the way to a device.

use core::fmt;

use cudarc::driver::result::DriverError;

use crate::error::Error;

/// A failure of a device operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CudaError {
    /// The CUDA driver's library is not on this machine.
    NoDriver,
    /// The driver has no such device.
    NoDevice,
    /// The driver is older than the kernels' PTX.
    DriverTooOld {
        /// The driver's version, as 1000 * major + 10 * minor.
        driver: i32,
        /// The oldest that would do.
        needed: i32,
    },
    /// The driver refused a call.
    Driver {
        /// Its `CUresult`.
        code: u32,
    },
    /// Memory that belongs to another context than the codec's stream: another device's, most often.
    OtherContext,
    /// A device pointer to values is not aligned to their type.
    Misaligned {
        /// The pointer.
        address: u64,
        /// What it must be a multiple of.
        multiple: u64,
    },
    /// Arguments or data are at fault.
    Codec(Error),
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoDriver => write!(f, "there is no CUDA driver on this machine"),
            Self::NoDevice => write!(f, "there is no such CUDA device"),
            Self::DriverTooOld { driver, needed } => write!(
                f,
                "the CUDA driver is of version {}.{}, the kernels need {}.{}",
                driver / 1000,
                driver % 1000 / 10,
                needed / 1000,
                needed % 1000 / 10
            ),
            Self::Driver { code } => write!(f, "the CUDA driver refused a call with CUresult {code}"),
            Self::OtherContext => write!(f, "the memory belongs to another context than the stream"),
            Self::Misaligned { address, multiple } => {
                write!(f, "the device pointer {address:#x} is not a multiple of {multiple}")
            }
            Self::Codec(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for CudaError {}

impl From<Error> for CudaError {
    fn from(error: Error) -> Self {
        Self::Codec(error)
    }
}

impl From<DriverError> for CudaError {
    fn from(error: DriverError) -> Self {
        Self::Driver { code: error.0 as u32 }
    }
}
