//! Where the bits lie. Nothing here does arithmetic on values.
//!
//! Four layouts, and the one support matrix: a format has exactly one layout ([`Format::layout`]), and every
//! other pair is refused. Spec: storage-layouts §1.

pub mod blockscale;
mod contiguous;
mod plan;
mod row_scale;
pub mod row_split;

pub(crate) use plan::PieceSpans;
pub use plan::{Plan, Plane, PlaneKind, RowSpans, Span};

use core::fmt;

use crate::error::UnknownName;
use crate::format::{Format, find};

/// One of the four tensor layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Layout {
    /// Words in C order, no padding: BF16, FP32, I32.
    ContiguousLeV1 = 1,
    /// Base codes, high bits, scales; K padded to 128: Q4, Q5, Q6, W8.
    RowSplitK128V1 = 2,
    /// Code pairs, swizzled scales, divisor: NVFP4.
    BlockscaleK16M128x4V1 = 3,
    /// Codes, then a scale a row: FP8_E4M3FN_ROW_BF16S.
    RowScaleV1 = 4,
}

/// The fixed facts of one layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutDescriptor {
    /// The canonical name, the only accepted spelling.
    pub name: &'static str,
    /// The formats it holds.
    pub accepts: &'static [Format],
    /// Least and greatest number of dimensions.
    pub rank: (u32, u32),
    /// Bytes whose multiple the payload's offset in a file is.
    pub alignment: u64,
    /// What each dimension must be a multiple of, where the layout asks for it.
    pub multiple_of: Option<[u64; 2]>,
}

impl Layout {
    /// All layouts, by rising id.
    pub const ALL: [Self; 4] =
        [Self::ContiguousLeV1, Self::RowSplitK128V1, Self::BlockscaleK16M128x4V1, Self::RowScaleV1];

    /// Returns the layout whose canonical name is exactly `name`.
    ///
    /// # Errors
    /// [`UnknownName`] for everything else.
    ///
    /// # Panics
    /// Never.
    ///
    /// ```
    /// use ninfer_codec::Layout;
    /// assert_eq!(Layout::from_name(b"row-scale-v1"), Ok(Layout::RowScaleV1));
    /// ```
    pub fn from_name(name: &[u8]) -> Result<Self, UnknownName<'_>> {
        find(&Self::ALL, Self::name, name)
    }

    /// Returns the layout with this id, 1 to 4.
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.id() == id)
    }

    /// Returns the id; ids never change and are never reused.
    #[must_use]
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Returns the canonical name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.descriptor().name
    }

    /// Returns the fixed facts of the layout.
    #[must_use]
    pub const fn descriptor(self) -> &'static LayoutDescriptor {
        match self {
            Self::ContiguousLeV1 => &contiguous::DESCRIPTOR,
            Self::RowSplitK128V1 => &row_split::DESCRIPTOR,
            Self::BlockscaleK16M128x4V1 => &blockscale::DESCRIPTOR,
            Self::RowScaleV1 => &row_scale::DESCRIPTOR,
        }
    }
}

impl fmt::Display for Layout {
    /// Writes the canonical name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The one encoding of a resource that is not a tensor. Spec: storage-layouts §1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ResourceEncoding {
    /// A nonempty byte string as it is.
    RawBytesV1 = 1,
}

impl ResourceEncoding {
    /// All resource encodings, by rising id.
    pub const ALL: [Self; 1] = [Self::RawBytesV1];

    /// Returns the encoding whose name is exactly `name`.
    ///
    /// # Errors
    /// [`UnknownName`] for everything else.
    ///
    /// # Panics
    /// Never.
    pub fn from_name(name: &[u8]) -> Result<Self, UnknownName<'_>> {
        find(&Self::ALL, Self::name, name)
    }

    /// Returns the encoding with this id.
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|encoding| encoding.id() == id)
    }

    /// Returns the id; ids never change and are never reused.
    #[must_use]
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Returns the canonical name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        "raw-bytes-v1"
    }

    /// Returns the alignment of a resource's offset in a file, in bytes.
    #[must_use]
    pub const fn alignment(self) -> u64 {
        1
    }
}
