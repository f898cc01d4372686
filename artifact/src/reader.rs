//! Reading: the frame around the directory, and payloads of a file in memory.

use std::io::{Read, Seek, SeekFrom};

use ninfer_codec::Tensor;

use crate::directory::{Directory, Object};
use crate::error::Error;
use crate::{MAGIC, PREFIX_BYTES};

const PREFIX: usize = PREFIX_BYTES as usize;

impl Directory {
    /// Reads the directory of a file and nothing behind it.
    ///
    /// Stated lengths are held against the file's before anything is allocated.
    ///
    /// # Errors
    /// Every way in which the file is not an artifact of this revision; [`Error::Io`].
    ///
    /// # Panics
    /// Never.
    ///
    /// Spec: storage-layouts §6, §7.
    pub fn read(source: &mut (impl Read + Seek)) -> Result<Self, Error> {
        let file_bytes = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(0))?;
        if file_bytes < PREFIX_BYTES {
            return Err(Error::TooShort { file_bytes });
        }
        let mut prefix = [0; PREFIX];
        source.read_exact(&mut prefix)?;
        let mut json = vec![0; json_bytes(&prefix, file_bytes)?];
        source.read_exact(&mut json)?;
        Self::parse(&json, file_bytes)
    }

    /// Reads the directory of a whole file in memory.
    ///
    /// # Errors
    /// Every way in which the file is not an artifact of this revision.
    ///
    /// # Panics
    /// Never.
    pub fn from_bytes(file: &[u8]) -> Result<Self, Error> {
        let file_bytes = file.len() as u64;
        let Some((prefix, rest)) = file.split_first_chunk::<PREFIX>() else {
            return Err(Error::TooShort { file_bytes });
        };
        let json = &rest[..json_bytes(prefix, file_bytes)?];
        Self::parse(json, file_bytes)
    }
}

/// Checks the first fields of a file; returns the length of the directory, which lies inside the file.
fn json_bytes(prefix: &[u8; PREFIX], file_bytes: u64) -> Result<usize, Error> {
    let (magic, length) = prefix.split_at(MAGIC.len());
    let found: [u8; 8] = std::array::from_fn(|index| magic[index]);
    if found != MAGIC {
        let [mark @ .., revision] = found;
        return Err(match MAGIC.starts_with(&mark) {
            true => Error::UnsupportedRevision { found: revision },
            false => Error::NotAnArtifact { found },
        });
    }
    let json_bytes = u64::from_le_bytes(std::array::from_fn(|index| length[index]));
    if json_bytes == 0 || json_bytes > file_bytes - PREFIX_BYTES {
        return Err(Error::DirectoryLength { json_bytes, file_bytes });
    }
    usize::try_from(json_bytes).map_err(|_| Error::DirectoryLength { json_bytes, file_bytes })
}

/// A whole file in memory or mapped: its directory and payloads. No payload byte is looked at.
#[derive(Clone, Debug)]
pub struct Artifact<'a> {
    directory: Directory,
    payloads: &'a [u8],
}

impl<'a> Artifact<'a> {
    /// Reads the directory of a file.
    ///
    /// # Errors
    /// As for [`Directory::from_bytes`].
    ///
    /// # Panics
    /// Never.
    pub fn new(file: &'a [u8]) -> Result<Self, Error> {
        let directory = Directory::from_bytes(file)?;
        // There is an object, and it lies inside the file, so the payloads begin there too.
        let payloads = &file[directory.payload_offset() as usize..];
        Ok(Self { directory, payloads })
    }

    /// Returns the directory.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the object of this name.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<&Object> {
        self.directory.objects().iter().find(|object| object.name() == name)
    }

    /// Returns the payload of an object of this file's directory.
    ///
    /// # Panics
    /// If the object is of another file's directory and does not fit this one.
    #[must_use]
    pub fn payload(&self, object: &Object) -> &'a [u8] {
        &self.payloads[object.offset() as usize..][..object.bytes() as usize]
    }

    /// Returns a view of an object that is a tensor.
    ///
    /// # Panics
    /// As for [`Artifact::payload`].
    #[must_use]
    pub fn tensor(&self, object: &Object) -> Option<Tensor<'a>> {
        // The directory holds only plans whose size is the object's.
        object.plan().and_then(|&plan| Tensor::new(plan, self.payload(object)).ok())
    }
}
