//! Exact codec for the nine numeric formats of NInfer artifacts. No allocation, no `std`, caller-owned slices.
//!
//! # The map
//!
//! | layer | what it holds |
//! |---|---|
//! | [`Error`], `geometry` | every refusal with its numbers; checked size arithmetic |
//! | [`mod@format`] | what a word means: [`Format`], [`EncoderProfile`], words to binary32 and back |
//! | [`layout`] | where the bits lie: [`Layout`], [`Plan`] |
//! | [`Tensor`], [`TensorMut`] | checked views of a payload's rows |
//! | `backend` | how it is made fast; private |
//! | `decode`, `validate`, `words`, `rows`, `encode` | the operations, as methods of the views |
//! | [`convert`] | explicit conversions between direct types |
//!
//! # Six operations
//!
//! | operation | call |
//! |---|---|
//! | plan | [`Plan::new`] |
//! | quantize | [`TensorMut::quantize`], [`quantize_row`] |
//! | pack, unpack | [`TensorMut::pack`], [`Tensor::unpack`] |
//! | decode | [`Tensor::decode`], [`Tensor::decode_columns`], [`Tensor::decode_rows`], [`dequantize_row`] |
//! | validate | [`Tensor::validate`], [`Tensor::validate_columns`] |
//! | rows | [`Tensor::rows`], [`Plan::row_spans`], [`Tensor::slice`], [`Tensor::gather`], [`stack`] |
//!
//! # Promises
//!
//! The same bytes on every machine and in every float mode of the host. No input makes a call panic, read or
//! write outside the slices given, allocate, or loop without bound. Arguments are checked before the first
//! write. Disjoint row ranges may be worked on at the same time ([`TensorMut::split_at_row`]).
//!
//! # In a minute
//!
//! ```
//! use ninfer_codec::{Format, Layout, Plan, Tensor, TensorMut};
//!
//! let weights = [0.5f32, -1.0, 0.25, 2.0];
//! let plan = Plan::new(Format::W8G32F16S, Layout::RowSplitK128V1, &[2, 2])?;
//! let mut payload = vec![0; plan.payload_len()?];
//! TensorMut::new(plan, &mut payload)?.quantize(&weights[..], 2)?;
//!
//! let tensor = Tensor::new(plan, &payload)?;
//! tensor.validate()?;
//! let mut row = [0.0f32; 2];
//! tensor.rows(1, 1)?.decode(&mut row[..], 2)?;
//! assert_eq!(row, [0.25195313, 1.9998779]);
//! # Ok::<(), ninfer_codec::Error>(())
//! ```

#![no_std]
#![deny(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations)]
#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

#[cfg(any(test, feature = "cuda"))]
extern crate std;

// The README's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod backend;
mod check;
mod columns;
pub mod convert;
#[cfg(feature = "cuda")]
pub mod cuda;
mod decode;
mod encode;
mod error;
#[cfg(feature = "capi")]
pub mod ffi;
pub mod format;
mod geometry;
pub mod layout;
mod rows;
mod tensor;
mod validate;
mod value;
mod words;

/// Returns the name of the backend that runs: `portable`, `avx2`, `avx512` or `neon`.
///
/// The choice is made once, by what the processor has; building with `--cfg ninfer_codec_force_portable`
/// forces `portable`, as does a target without an operating system.
///
/// # Panics
/// Never.
#[must_use]
pub fn backend_name() -> &'static str {
    backend::active().name()
}

/// What this crate's own benchmarks and tests need; no promise is made about it.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    use crate::backend::{Backend, select};

    /// Makes the named backend run, if there is one of this name and the processor can.
    #[must_use]
    pub fn select_backend(name: &str) -> bool {
        Backend::ALL.iter().any(|&backend| backend.name() == name && select(backend))
    }
}

pub use encode::quantize_row;
pub use error::{Error, UnknownName};
pub use format::{EncoderProfile, Format};
pub use half::{bf16, f16};
pub use layout::{Layout, Plan, ResourceEncoding};
pub use rows::stack;
pub use tensor::{Tensor, TensorMut};
pub use value::{Output, Source, ValueType, Words, WordsMut};
pub use words::dequantize_row;
