//! What every function begins and ends with: its details, its plan, its ids. Private.

use core::cell::Cell;

use super::memory::{self, Buffer, Used};
use super::status::{
    Details, NINFER_CODEC_STATUS_MISALIGNED, NINFER_CODEC_STATUS_OK, NINFER_CODEC_STATUS_STRUCT_SIZE,
    NINFER_CODEC_STATUS_UNKNOWN_FORMAT, NINFER_CODEC_STATUS_UNKNOWN_LAYOUT,
};
use crate::error::Error;
use crate::format::Format;
use crate::layout::{Layout, Plan};

/// Why a call failed.
#[derive(Clone, Copy)]
pub(super) enum Fault {
    /// The codec refuses.
    Codec(Error),
    /// A needed pointer is null.
    NullPointer { argument: u64 },
    /// A struct is smaller than the first version of it.
    StructSize { argument: u64, expected: u64, actual: u64 },
    /// An id that is unknown, or of no use here, as the status says.
    Id { status: u32, id: u32 },
    /// A registry does not hold a name.
    UnknownName,
    /// A buffer that no machine of this kind can have.
    TooLarge { argument: u64, size: u64 },
    /// A pointer is not aligned for its type.
    Misaligned { argument: u64 },
    /// What is written overlaps another buffer.
    Overlap { argument: u64 },
    /// The details struct overlaps another buffer.
    DetailsOverlap,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Codec(error)
    }
}

/// What a running call knows of its details struct.
pub(super) struct Call {
    details: Option<Used>,
    part: Cell<Option<u64>>,
}

impl Call {
    /// Says that what fails from now on belongs to a part of a stack.
    pub(super) fn at_part(&self, part: u64) {
        self.part.set(Some(part));
    }

    /// Says that what fails from now on belongs to no part.
    pub(super) fn at_no_part(&self) {
        self.part.set(None);
    }

    /// Checks the sizes, the alignment and the overlap of what the call uses.
    pub(super) fn check_memory(&self, used: &[Used]) -> Result<(), Fault> {
        memory::check_memory(used, self.details.as_ref())
    }
}

/// Runs a call and returns its status, with details where they are wanted.
///
/// # Safety
/// `details` is null or points to a struct of the caller's whose `struct_size` says how long it is.
pub(super) unsafe fn call(details: *mut Details, body: impl FnOnce(&Call) -> Result<(), Fault>) -> u32 {
    let part = Cell::new(None);
    if details.is_null() {
        return match body(&Call { details: None, part }) {
            Ok(()) => NINFER_CODEC_STATUS_OK,
            Err(fault) => Details::from(fault).status,
        };
    }
    if !details.is_aligned() {
        return NINFER_CODEC_STATUS_MISALIGNED;
    }
    // SAFETY: not null, and readable as the caller promises.
    if unsafe { memory::struct_size(0, details) }.is_err() {
        return NINFER_CODEC_STATUS_STRUCT_SIZE;
    }
    let used = Buffer::output(0, details, 1).map(Buffer::all::<Details>).ok();
    let call = Call { details: used, part };
    let value = match (body(&call), call.part.get()) {
        (Ok(()), _) => Details::of(NINFER_CODEC_STATUS_OK),
        (Err(Fault::DetailsOverlap), _) => return Details::from(Fault::DetailsOverlap).status,
        (Err(fault), Some(part)) => Details { index: part, ..fault.into() },
        (Err(fault), None) => fault.into(),
    };
    // SAFETY: aligned, and long enough as its `struct_size` says; twelve numbers without padding.
    unsafe { memory::fill_struct(details, &value) };
    value.status
}

/// The format with an id.
pub(super) fn format(id: u32) -> Result<Format, Fault> {
    Format::from_id(id).ok_or(Fault::Id { status: NINFER_CODEC_STATUS_UNKNOWN_FORMAT, id })
}

/// The layout with an id.
pub(super) fn layout(id: u32) -> Result<Layout, Fault> {
    Layout::from_id(id).ok_or(Fault::Id { status: NINFER_CODEC_STATUS_UNKNOWN_LAYOUT, id })
}

/// The tensor that a call speaks of: ids, and dimensions that are read only when the ids are known.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    format: u32,
    layout: u32,
    dims: Buffer,
}

/// Position of `dims` in the list of every function that takes a tensor.
const DIMS: u64 = 2;
/// No layout takes more dimensions.
const MAX_RANK: usize = Layout::ContiguousLeV1.descriptor().rank.1 as usize;

impl Shape {
    /// The first four arguments of a function that takes a tensor.
    pub(super) fn new(format: u32, layout: u32, dims: *const u64, rank: u64) -> Result<Self, Fault> {
        Self::of_argument(DIMS, format, layout, dims, rank)
    }

    /// A tensor whose dimensions came by way of another argument.
    pub(super) fn of_argument(
        argument: u64,
        format: u32,
        layout: u32,
        dims: *const u64,
        rank: u64,
    ) -> Result<Self, Fault> {
        Ok(Self { format, layout, dims: Buffer::input(argument, dims, rank)? })
    }

    /// Refuses unknown ids.
    pub(super) fn ids(&self) -> Result<(Format, Layout), Fault> {
        Ok((format(self.format)?, layout(self.layout)?))
    }

    /// The dimensions as a used buffer, once a plan was made of them.
    pub(super) fn dims(&self) -> Used {
        self.dims.all::<u64>()
    }

    /// Plans the tensor.
    ///
    /// # Safety
    /// The dimensions are readable, as many as the rank says.
    pub(super) unsafe fn plan(&self) -> Result<Plan, Fault> {
        let (format, layout) = self.ids()?;
        if format.layout() != layout {
            return Err(Error::UnsupportedPair { format, layout }.into());
        }
        let rank = self.dims.len();
        let mut dims = [0; MAX_RANK];
        let Some(dims) = usize::try_from(rank).ok().and_then(|rank| dims.get_mut(..rank)) else {
            return Err(Error::WrongRank { layout, rank }.into());
        };
        for (index, dim) in (0..).zip(dims.iter_mut()) {
            // SAFETY: `index` is below the rank, which is at most 16.
            *dim = unsafe { self.dims.read(index) };
        }
        Ok(Plan::new(format, layout, dims)?)
    }
}
