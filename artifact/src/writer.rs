//! Writing: every offset is known before the first payload byte. The same contents give the same bytes.

use std::io::{self, Write};

use ninfer_codec::{Format, Plan, ResourceEncoding};
use serde::Serialize;

use crate::directory::{Directory, Identity};
use crate::error::{Error, Place};
use crate::{MAGIC, payload_offset};

/// What an object of a new file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A tensor; its layout is the only one that holds the format.
    Tensor {
        /// Its format.
        format: Format,
        /// Its dimensions.
        shape: Vec<u64>,
    },
    /// A byte string.
    Resource {
        /// Its length, positive.
        bytes: u64,
    },
}

/// The plan of a new file: the directory with every offset, and all bytes before the payloads.
#[derive(Clone, Debug)]
pub struct FilePlan {
    directory: Directory,
    head: Vec<u8>,
    file_bytes: u64,
}

#[derive(Serialize)]
struct DirectoryText<'a> {
    identity: &'a Identity,
    objects: &'a [ObjectText<'a>],
}

#[derive(Serialize)]
#[serde(untagged)]
enum ObjectText<'a> {
    Tensor {
        name: &'a str,
        kind: &'static str,
        shape: &'a [u64],
        format: &'static str,
        layout: &'static str,
        offset: u64,
        bytes: u64,
    },
    Resource {
        name: &'a str,
        kind: &'static str,
        encoding: &'static str,
        offset: u64,
        bytes: u64,
    },
}

impl FilePlan {
    /// Plans a file: each object begins at the first offset that its alignment permits.
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::DuplicateName`], [`Error::EmptyResource`], [`Error::Plan`],
    /// [`Error::FileTooLarge`].
    ///
    /// # Panics
    /// Never.
    ///
    /// Spec: storage-layouts §6.
    pub fn new(identity: Identity, contents: Vec<(String, Content)>) -> Result<Self, Error> {
        let mut end = 0u64;
        let mut objects = Vec::with_capacity(contents.len());
        for (index, (name, content)) in contents.iter().enumerate() {
            let place = || Place::Object { index, name: name.clone() };
            let mut locate = |alignment, bytes| {
                let offset = end.checked_next_multiple_of(alignment);
                end = offset
                    .and_then(|offset| offset.checked_add(bytes))
                    .ok_or_else(|| Error::FileTooLarge { place: place() })?;
                Ok::<_, Error>(offset.unwrap_or(0))
            };
            objects.push(match content {
                Content::Tensor { format, shape } => {
                    let plan = Plan::new(*format, format.layout(), shape).map_err(|reason| Error::Plan {
                        place: place(),
                        shape: shape.clone(),
                        reason,
                    })?;
                    ObjectText::Tensor {
                        name,
                        kind: "tensor",
                        shape,
                        format: format.name(),
                        layout: format.layout().name(),
                        offset: locate(plan.alignment(), plan.payload_bytes())?,
                        bytes: plan.payload_bytes(),
                    }
                }
                Content::Resource { bytes } => {
                    let encoding = ResourceEncoding::RawBytesV1;
                    ObjectText::Resource {
                        name,
                        kind: "resource",
                        encoding: encoding.name(),
                        offset: locate(encoding.alignment(), *bytes)?,
                        bytes: *bytes,
                    }
                }
            });
        }
        let text = DirectoryText { identity: &identity, objects: &objects };
        let json = serde_json::to_vec(&text).map_err(io::Error::from)?;
        let payload_offset = payload_offset(json.len() as u64);
        let file_bytes = payload_offset
            .and_then(|offset| offset.checked_add(end))
            .ok_or(Error::FileTooLarge { place: Place::Directory })?;
        // What this crate writes is what it reads: the reader's checks are the writer's.
        let directory = Directory::parse(&json, file_bytes)?;
        let mut head = MAGIC.to_vec();
        head.extend((json.len() as u64).to_le_bytes());
        head.extend(json);
        head.resize(directory.payload_offset() as usize, 0);
        Ok(Self { directory, head, file_bytes })
    }

    /// Returns the directory, with every offset.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the file's bytes up to the payload offset.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the length of the file: the end of the last object.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }
}

/// Writes a planned file from front to back: the payloads in the plan's order, in pieces of any length.
///
/// After an [`Error::Io`] it is not known how much was written; drop the writer, and the file with it.
#[derive(Debug)]
pub struct Writer<W> {
    plan: FilePlan,
    sink: W,
    /// Objects begun so far.
    begun: usize,
    /// Bytes written from the payload offset on.
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Writes everything before the payloads.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Panics
    /// Never.
    pub fn new(plan: FilePlan, mut sink: W) -> Result<Self, Error> {
        sink.write_all(plan.head())?;
        Ok(Self { plan, sink, begun: 0, written: 0 })
    }

    /// Begins the payload of the plan's next object.
    ///
    /// # Errors
    /// [`Error::Sequence`] if the payload before is not complete or another object is next; [`Error::Io`].
    ///
    /// # Panics
    /// Never.
    pub fn begin(&mut self, name: &str) -> Result<(), Error> {
        self.check_complete()?;
        let Some(object) = self.plan.directory.objects().get(self.begun).filter(|next| next.name() == name)
        else {
            let next = self.plan.directory.objects().get(self.begun);
            let expected =
                next.map_or("the end of the file".into(), |next| format!("{:?} next", next.name()));
            return Err(Error::Sequence { found: name.into(), expected });
        };
        // At most one alignment's worth of zeros.
        io::copy(&mut io::Read::take(io::repeat(0), object.offset() - self.written), &mut self.sink)?;
        self.written = object.offset();
        self.begun += 1;
        Ok(())
    }

    /// Appends a piece to the payload begun last.
    ///
    /// # Errors
    /// [`Error::Sequence`] if there is none or it would grow too long, and then nothing is written;
    /// [`Error::Io`].
    ///
    /// # Panics
    /// Never.
    pub fn append(&mut self, piece: &[u8]) -> Result<(), Error> {
        let (name, room) = self.room();
        if piece.len() as u64 > room {
            let (found, given) = (name.into(), piece.len());
            return Err(Error::Sequence { found, expected: format!("{room} bytes more, not {given}") });
        }
        self.sink.write_all(piece)?;
        self.written += piece.len() as u64;
        Ok(())
    }

    /// Ends the file and returns the sink.
    ///
    /// # Errors
    /// [`Error::Sequence`] if payloads or parts of them are missing; [`Error::Io`].
    ///
    /// # Panics
    /// Never.
    pub fn finish(mut self) -> Result<W, Error> {
        self.check_complete()?;
        if let Some(missing) = self.plan.directory.objects().get(self.begun) {
            let expected = format!("{:?} next", missing.name());
            return Err(Error::Sequence { found: String::new(), expected });
        }
        self.sink.flush()?;
        Ok(self.sink)
    }

    /// The object begun last, and how many bytes of it are still to come.
    fn room(&self) -> (&str, u64) {
        match self.begun.checked_sub(1).and_then(|last| self.plan.directory.objects().get(last)) {
            Some(object) => (object.name(), object.offset() + object.bytes() - self.written),
            None => ("", 0),
        }
    }

    fn check_complete(&self) -> Result<(), Error> {
        match self.room() {
            (_, 0) => Ok(()),
            (name, missing) => {
                Err(Error::Sequence { found: name.into(), expected: format!("{missing} bytes more") })
            }
        }
    }
}
