//! Files mapped to be read.

use std::fs::{self, File, FileType};
use std::ops::Deref;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use ninfer_artifact::Artifact;

use crate::failure::{Failure, Outcome};

/// A whole file, as the system pages it in.
#[derive(Debug)]
pub struct Mapped {
    path: PathBuf,
    map: memmap2::Mmap,
}

impl Mapped {
    /// Maps a regular file. Anything else is refused before it is opened: that might wait for ever, or do
    /// something.
    #[expect(unsafe_code, reason = "a mapping is sound only while nobody cuts or rewrites the file")]
    pub fn open(path: &Path) -> Outcome<Self> {
        let fail = |error| Failure::io("open", path, error);
        let kind = fs::metadata(path).map_err(fail)?.file_type();
        if !kind.is_file() {
            let line = format!("it is {}, and no regular file; name a file", described(kind));
            return Err(Failure::io("use", path, line));
        }
        let file = File::open(path).map_err(fail)?;
        // SAFETY: The bytes are only read. Whoever changes the file meanwhile breaks what `--help` asks for:
        // inputs stay as they are while the tool runs. A file that is cut ends the process (SIGBUS).
        let map = unsafe { memmap2::Mmap::map(&file) };
        let map = map.map_err(|error| Failure::io("map", path, error))?;
        Ok(Self { path: path.into(), map })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last part of the path.
    pub fn file_name(&self) -> String {
        file_name(&self.path)
    }

    /// Reads the file as an artifact.
    pub fn artifact(&self) -> Outcome<Artifact<'_>> {
        Artifact::new(&self.map).map_err(|error| {
            let path = self.path.display();
            Failure::refused(format!("{path}: {error}; give an artifact, or write it again from its source"))
        })
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

fn described(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_block_device() || kind.is_char_device() => "a device",
        _ => "something else",
    }
}

/// The last part of a path.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
