//! One variant a failure, each with its object and numbers.

use std::fmt;
use std::io;

use crate::{PREFIX_BYTES, REVISION};

/// Everything that reading or writing an artifact can be refused for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file ends inside the first fields.
    #[error("the file has {file_bytes} bytes; an artifact begins with {PREFIX_BYTES}")]
    TooShort {
        /// Length of the file.
        file_bytes: u64,
    },
    /// The file does not begin as an artifact does.
    #[error("the file begins with {found:02x?}: it is not a .ninfer artifact")]
    NotAnArtifact {
        /// The first eight bytes.
        found: [u8; 8],
    },
    /// The file is an artifact of another framing revision.
    #[error("the file has framing revision {found}; this reader knows revision {REVISION} only")]
    UnsupportedRevision {
        /// The revision found.
        found: u8,
    },
    /// The directory is empty or longer than the file.
    #[error(
        "the directory is said to have {json_bytes} bytes; it has at least 1, and the file of {file_bytes} has \
         room for {}",
        file_bytes.saturating_sub(PREFIX_BYTES)
    )]
    DirectoryLength {
        /// Length that the file states.
        json_bytes: u64,
        /// Length of the file.
        file_bytes: u64,
    },
    /// The directory begins with a byte order mark.
    #[error("the directory begins with a byte order mark")]
    ByteOrderMark,
    /// The directory text holds a NUL byte.
    #[error("the directory holds a NUL byte at its byte {offset}")]
    NulByte {
        /// Offset in the directory.
        offset: usize,
    },
    /// The directory is not UTF-8.
    #[error("the directory is not UTF-8 at its byte {offset}")]
    NotUtf8 {
        /// Offset in the directory.
        offset: usize,
    },
    /// An escape stands for half of a surrogate pair, and the other half is not there.
    #[error("the directory holds a lone surrogate escape at its byte {offset}")]
    LoneSurrogate {
        /// Offset in the directory.
        offset: usize,
    },
    /// The directory is not JSON.
    #[error("the directory is not JSON: {message}")]
    Syntax {
        /// What is wrong, with line and column.
        message: String,
    },
    /// Something in the directory nests deeper than the schema.
    #[error("the directory nests deeper than the schema, at line {line}, column {column}")]
    TooDeep {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// A value is of the wrong JSON type, or a number is no unsigned 64-bit integer.
    #[error("{place}{} must be {expected}, not {found}", named(member))]
    WrongType {
        /// Whose member.
        place: Place,
        /// The member; empty for the place itself.
        member: String,
        /// What the schema asks for.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A member is missing.
    #[error("{place}: member \"{member}\" is missing")]
    MissingMember {
        /// Whose member.
        place: Place,
        /// The member.
        member: &'static str,
    },
    /// A member that the schema does not have.
    #[error("{place}: unknown member {member:?}")]
    UnknownMember {
        /// Whose member.
        place: Place,
        /// The member.
        member: String,
    },
    /// A member stands twice, perhaps in two spellings.
    #[error("{place}: member \"{member}\" stands twice")]
    DuplicateMember {
        /// Whose member.
        place: Place,
        /// The member.
        member: &'static str,
    },
    /// An identity, a name, or the list of objects is empty.
    #[error("{place}: \"{member}\" must not be empty")]
    Empty {
        /// Whose member.
        place: Place,
        /// The member.
        member: &'static str,
    },
    /// Two objects have one name.
    #[error("objects {first} and {second} are both named {name:?}")]
    DuplicateName {
        /// The name.
        name: String,
        /// Index of the first.
        first: usize,
        /// Index of the second.
        second: usize,
    },
    /// A kind, format, layout or encoding that the registry does not hold.
    #[error("{place}: unknown {member} {name:?}")]
    UnknownName {
        /// Whose member.
        place: Place,
        /// `kind`, `format`, `layout` or `encoding`.
        member: &'static str,
        /// The name found.
        name: String,
    },
    /// A format, layout and shape that do not go together.
    #[error("{place}: shape {shape:?}: {reason}")]
    Plan {
        /// The object.
        place: Place,
        /// The shape given.
        shape: Vec<u64>,
        /// The codec's reason.
        #[source]
        reason: ninfer_codec::Error,
    },
    /// A tensor's stated size is not its encoded size.
    #[error("{place}: {actual} bytes are stated; its format, layout and shape take {expected}")]
    ObjectBytes {
        /// The object.
        place: Place,
        /// The encoded size.
        expected: u64,
        /// The size stated.
        actual: u64,
    },
    /// A resource has no bytes.
    #[error("{place}: a resource must not be empty")]
    EmptyResource {
        /// The object.
        place: Place,
    },
    /// An offset is not a multiple of the alignment.
    #[error("{place}: offset {offset} is not a multiple of {alignment}")]
    Misaligned {
        /// The object.
        place: Place,
        /// Its offset.
        offset: u64,
        /// The alignment of its layout.
        alignment: u64,
    },
    /// An object begins before the one listed before it ends.
    #[error("{place}: offset {offset} lies before {previous_end}, the end of the object listed before it")]
    Overlap {
        /// The object.
        place: Place,
        /// Its offset.
        offset: u64,
        /// The first offset it may have.
        previous_end: u64,
    },
    /// An object reaches past the end of the file.
    #[error("{place}: {bytes} bytes at offset {offset} reach past the file's {available} bytes of payload")]
    OutsideFile {
        /// The object.
        place: Place,
        /// Its offset.
        offset: u64,
        /// Its length.
        bytes: u64,
        /// Bytes from the payload offset to the end of the file.
        available: u64,
    },
    /// The file to be written would be longer than 64 bits can say.
    #[error("{place}: the file would exceed 2^64 - 1 bytes")]
    FileTooLarge {
        /// The object that does not fit.
        place: Place,
    },
    /// The payloads do not come in the order and length of the plan.
    #[error("payload of {found:?}: expected {expected}")]
    Sequence {
        /// What was begun, continued or finished.
        found: String,
        /// What the plan asks for.
        expected: String,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Which part of the directory an error speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The outermost object.
    Directory,
    /// The identity.
    Identity,
    /// An entry of `objects`.
    Object {
        /// Its index, from 0.
        index: usize,
        /// Its name; empty where that is not known.
        name: String,
    },
}

/// A member as it follows its place; nothing for the place itself.
fn named(member: &str) -> String {
    if member.is_empty() { String::new() } else { format!(": {member:?}") }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory => f.write_str("directory"),
            Self::Identity => f.write_str("identity"),
            Self::Object { index, name } if name.is_empty() => write!(f, "object {index}"),
            Self::Object { index, name } => write!(f, "object {index}, {name:?}"),
        }
    }
}
