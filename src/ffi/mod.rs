//! The C ABI: pointers to slices, ids, statuses. No arithmetic on values happens here.
//!
//! `include/ninfer_codec.h` is generated from this module by cbindgen; the comments of the functions are the
//! header's, and its opening comment, with the rules that hold for every function, stands in `cbindgen.toml`.
//!
//! | file | what it holds |
//! |---|---|
//! | `status` | statuses, faults, `ninfer_codec_details`, and codec errors in these terms |
//! | `registry` | ids, names, descriptors, versions |
//! | `plan` | the plan of a tensor, where its rows lie |
//! | `encode` | quantize, pack |
//! | `decode` | decode, unpack, validate |
//! | `rows` | slice, gather, stack |
//! | `convert` | explicit conversions |
//! | `values` | value types by id; private: rows of values |
//! | `memory` | private: callers' pointers, checked and turned into slices |
//! | `call` | private: what every function begins and ends with |
//!
//! # Safety
//!
//! Of every function: a pointer that is not null points to as many elements, or to a struct of as many bytes,
//! as the call says; what is `const` is readable, the rest writable; and no other thread writes what a call
//! reads, or touches what it writes, until it returns. Nothing else is taken on trust: null pointers, lengths,
//! alignment, overlap, ids and struct sizes are checked.

#![allow(unsafe_code)] // the crate denies it elsewhere
#![allow(clippy::missing_safety_doc)] // said once, above and at the top of the header
#![allow(clippy::too_many_arguments)] // a C function spells a slice as two

mod call;
mod convert;
mod decode;
mod encode;
mod memory;
mod plan;
mod registry;
mod rows;
mod status;
mod values;

pub use convert::*;
pub use decode::*;
pub use encode::*;
pub use plan::*;
pub use registry::*;
pub use rows::*;
pub use status::*;
pub use values::*;
