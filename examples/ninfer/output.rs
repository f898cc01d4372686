//! Output files that appear whole or not at all.
//!
//! A file is written without a name (`O_TMPFILE`) and gets its name when it is complete, so whatever ends the
//! process, SIGKILL included, leaves nothing. Where the file system cannot do that, and for the moment in which
//! it takes another file's place, it has a temporary name in the same folder; that goes away on errors and on
//! signals that can be caught.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use tempfile::TempPath;

use crate::failure::{Failure, Outcome};

/// A file on its way.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    file: File,
    /// The temporary name, where there must be one.
    named: Option<TempPath>,
}

impl OutputFile {
    /// Creates a file of `bytes` zero bytes; room for them is reserved at once.
    pub fn create(path: &Path, bytes: u64) -> Outcome<Self> {
        let fail = |error: io::Error| Failure::io("write", path, error);
        if let Ok(there) = path.symlink_metadata() {
            let kind = there.file_type();
            if kind.is_dir() {
                return Err(Failure::io("write", path, "it is a folder; name a file in it"));
            }
            if !kind.is_file() {
                return Err(Failure::io(
                    "write",
                    path,
                    "it is no regular file, and would be replaced; name another",
                ));
            }
        }
        let (file, named) = match unnamed(path) {
            Ok(file) => (file, None),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let (file, named) = named(path).map_err(fail)?;
                (file, Some(named))
            }
            Err(error) => return Err(fail(error.into())),
        };
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes.max(1)) {
            Ok(()) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(bytes).map_err(fail)?,
            Err(error) => {
                let error = io::Error::from(error);
                return Err(Failure::io("write", path, format!("{error}; {bytes} bytes are needed there")));
            }
        }
        Ok(Self { path: path.into(), file, named })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Outcome<()> {
        self.file.write_all_at(bytes, offset).map_err(|error| Failure::io("write", &self.path, error))
    }

    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Outcome<()> {
        self.file.read_exact_at(bytes, offset).map_err(|error| Failure::io("read back", &self.path, error))
    }

    /// Gives the file its name, in place of what had it.
    pub fn commit(self) -> Outcome<()> {
        let Self { path, file, named } = self;
        let fail = |error: io::Error| Failure::io("write", &path, error);
        if let Some(named) = named {
            return named.persist(&path).map_err(|error| fail(error.error));
        }
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        let link = |name: &Path| rustix::fs::linkat(CWD, &*open, CWD, name, AtFlags::SYMLINK_FOLLOW);
        match link(&path) {
            Err(Errno::EXIST) => {
                // Only a rename takes the place of a file at once, and a rename needs a name.
                let name = tempfile::Builder::new()
                    .prefix(".ninfer-")
                    .make_in(folder(&path), |name| link(name).map_err(io::Error::from))
                    .map_err(fail)?;
                name.into_temp_path().persist(&path).map_err(|error| fail(error.error))
            }
            other => other.map_err(|error| fail(error.into())),
        }
    }
}

/// A small file, complete but for its name.
pub fn prepare(path: &Path, bytes: &[u8]) -> Outcome<OutputFile> {
    let output = OutputFile::create(path, bytes.len() as u64)?;
    output.write_at(bytes, 0)?;
    Ok(output)
}

/// Refuses an output that would take the place of something that is read.
pub fn keep_inputs<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Outcome<()> {
    let Ok(there) = output.metadata() else { return Ok(()) };
    for input in inputs {
        if input.metadata().is_ok_and(|input| (input.dev(), input.ino()) == (there.dev(), there.ino())) {
            let (output, input) = (output.display(), input.display());
            return Err(Failure::usage(format!("output {output} is the input {input}: name another output")));
        }
    }
    Ok(())
}

/// Makes the folder of a path, where it is missing.
pub fn make_folder(path: &Path) -> Outcome<()> {
    fs::create_dir_all(folder(path)).map_err(|error| Failure::io("make the folder of", path, error))
}

/// A file without a name, in the folder of the path.
fn unnamed(path: &Path) -> Result<File, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(folder(path), flags, Mode::from_raw_mode(0o666)).map(File::from)
}

/// A file with a temporary name, in the folder of the path; the name goes away with the value.
fn named(path: &Path) -> io::Result<(File, TempPath)> {
    let permissions = fs::Permissions::from_mode(0o666);
    let builder =
        tempfile::Builder::new().prefix(".ninfer-").permissions(permissions).tempfile_in(folder(path))?;
    Ok(builder.into_parts())
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    //! Run by `tests/tool`, which includes this file.

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// The way of file systems without `O_TMPFILE`.
    fn with_a_name(path: &Path) -> OutputFile {
        let (file, named) = named(path).unwrap();
        file.set_len(3).unwrap();
        OutputFile { path: path.into(), file, named: Some(named) }
    }

    #[test]
    fn both_ways_give_the_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let without: fn(&Path) -> OutputFile = |path| OutputFile::create(path, 3).unwrap();
        for (round, create) in [without, with_a_name, with_a_name, without].into_iter().enumerate() {
            let output = create(&path);
            output.write_at(&[round as u8, 7], 1).unwrap();
            let mut back = [0; 3];
            output.read_at(&mut back, 0).unwrap();
            output.commit().unwrap();
            assert_eq!(fs::read(&path).unwrap(), [0, round as u8, 7]);
            assert_eq!(back, [0, round as u8, 7]);
            assert_eq!(names(folder.path()), ["out"]);
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o600, 0o600);
        }
    }

    #[test]
    fn what_is_not_committed_goes_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        drop(OutputFile::create(&path, 3).unwrap());
        drop(with_a_name(&path));
        assert!(names(folder.path()).is_empty());
    }
}
