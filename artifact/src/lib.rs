//! The `.ninfer` artifact file, framing revision 2: a strict reader and a deterministic writer.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 8 | `json_bytes`, u64, little-endian, positive |
//! | 16 | `json_bytes` | the directory, UTF-8 JSON |
//! | ... | | zero bytes up to a multiple of [`PAYLOAD_ALIGNMENT`] |
//! | [`Directory::payload_offset`] | | payloads |
//!
//! Read with [`Artifact`] (a whole file in memory or mapped) or [`Directory::read`] (only the directory).
//! Write with [`FilePlan`], which knows every offset before the first payload byte, and [`Writer`].
//!
//! ```
//! use ninfer_artifact::{Artifact, Content, FilePlan, Identity, Writer};
//! use ninfer_codec::Format;
//!
//! let identity = Identity { model_id: "demo".into(), weights_id: "1".into() };
//! let bias = Content::Tensor { format: Format::I32, shape: vec![2] };
//! let plan = FilePlan::new(identity, vec![("bias".into(), bias)])?;
//! let mut writer = Writer::new(plan, Vec::new())?;
//! writer.begin("bias")?;
//! writer.append(&[1, 0, 0, 0, 2, 0, 0, 0])?;
//! let file = writer.finish()?;
//!
//! let artifact = Artifact::new(&file)?;
//! let object = &artifact.directory().objects()[0];
//! assert_eq!((object.name(), artifact.payload(object).len()), ("bias", 8));
//! # Ok::<(), ninfer_artifact::Error>(())
//! ```
//!
//! Spec: storage-layouts §6, §7.

#![forbid(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations)]

mod directory;
mod error;
mod reader;
mod tree;
mod writer;

pub use directory::{Directory, Identity, Kind, Object};
pub use error::{Error, Place};
pub use reader::Artifact;
pub use writer::{Content, FilePlan, Writer};

/// The framing revision that is read and written.
pub const REVISION: u8 = 2;

/// The first eight bytes of a file: "NINFER", zero, the revision.
pub const MAGIC: [u8; 8] = [b'N', b'I', b'N', b'F', b'E', b'R', 0, REVISION];

/// Bytes before the directory: the magic and `json_bytes`.
pub const PREFIX_BYTES: u64 = MAGIC.len() as u64 + 8;

/// The multiple of bytes at which the payloads begin.
pub const PAYLOAD_ALIGNMENT: u64 = 4096;

/// Where the payloads begin after a directory of `json_bytes` bytes; `None` if that exceeds 64 bits.
fn payload_offset(json_bytes: u64) -> Option<u64> {
    PREFIX_BYTES.checked_add(json_bytes)?.checked_next_multiple_of(PAYLOAD_ALIGNMENT)
}
