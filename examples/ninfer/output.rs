//! Output files that appear whole or not at all.
//!
//! A file is written without a name (`O_TMPFILE`) and gets its name when it is complete, so whatever ends the
//! process, SIGKILL included, leaves nothing. Where the file system cannot do that, and for the moment in which
//! it takes another file's place, it has a temporary name in the same folder; that goes away on errors and on
//! signals that can be caught. The bytes are on the disk before the name is.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
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
    /// Dropped last: a folder has to be empty to go away.
    folders: NewFolders,
}

/// Folders that were made for an output, outermost first; they go away with the value, unless it is emptied.
#[derive(Debug, Default)]
struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    /// Makes the folder of a path and those around it, where they are missing.
    fn make(path: &Path) -> io::Result<Self> {
        let missing: Vec<_> = folder(path).ancestors().take_while(|folder| !is_there(folder)).collect();
        let mut made = Self::default();
        for folder in missing.into_iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => made.0.push(folder.into()),
                Err(_) if folder.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // One that others filled meanwhile stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Whether a folder need not be made; the current one has no name.
fn is_there(folder: &Path) -> bool {
    folder == Path::new("") || folder.exists()
}

impl OutputFile {
    /// Creates a file of `bytes` zero bytes, and its folder; room for the bytes is reserved at once. Where a
    /// signal comes meanwhile, `check` says whether it stops the work.
    pub fn create(path: &Path, bytes: u64, check: impl Fn() -> Outcome<()>) -> Outcome<Self> {
        let fail = |error: io::Error| Failure::io("write", path, error);
        check_place(path)?;
        let folders =
            NewFolders::make(path).map_err(|error| Failure::io("make the folder of", path, error))?;
        let (file, named) = match unnamed(path) {
            Ok(file) => (file, None),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let (file, named) = named(path).map_err(fail)?;
                (file, Some(named))
            }
            Err(error) => return Err(fail(error.into())),
        };
        loop {
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes.max(1)) {
                Ok(()) => break,
                Err(Errno::INTR) => check()?,
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => break file.set_len(bytes).map_err(fail)?,
                Err(error) => {
                    let error = io::Error::from(error);
                    let line = format!("{error}; {bytes} bytes are needed there");
                    return Err(Failure::io("write", path, line));
                }
            }
        }
        Ok(Self { path: path.into(), file, named, folders })
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

    /// Waits until the bytes are on the disk.
    fn sync(&self) -> Outcome<()> {
        self.file.sync_all().map_err(|error| Failure::io("write", &self.path, error))
    }

    /// Gives the file its name, in place of what had it.
    fn give_name(self) -> Outcome<()> {
        let Self { path, file, named, mut folders } = self;
        let fail = |error: io::Error| Failure::io("write", &path, error);
        if let Some(named) = named {
            named.persist(&path).map_err(|error| fail(error.error))?;
        } else {
            let open = format!("/proc/self/fd/{}", file.as_raw_fd());
            let link = |name: &Path| rustix::fs::linkat(CWD, &*open, CWD, name, AtFlags::SYMLINK_FOLLOW);
            match link(&path) {
                Err(Errno::EXIST) => {
                    // Only a rename takes the place of a file at once, and a rename needs a name.
                    let (_, name) =
                        temporary(&path, |name| link(name).map_err(io::Error::from)).map_err(fail)?;
                    name.persist(&path).map_err(|error| fail(error.error))?;
                }
                other => other.map_err(|error| fail(error.into()))?,
            }
        }
        let made = std::mem::take(&mut folders.0);
        sync_folders(&path, &made).map_err(|error| {
            Failure::io(
                "make sure of",
                &path,
                format!("{error}; it is complete, but a power cut may undo its name"),
            )
        })
    }
}

/// Gives complete files their names, in their order. All bytes are on the disk before the first has one;
/// `check` has the last word then. A failure says which files are in place already.
pub fn commit(
    files: impl IntoIterator<Item = OutputFile>,
    check: impl FnOnce() -> Outcome<()>,
) -> Outcome<()> {
    let files: Vec<_> = files.into_iter().collect();
    files.iter().try_for_each(OutputFile::sync)?;
    check()?;
    let mut in_place = String::new();
    for file in files {
        let done = format!("; {} is in place", file.path.display());
        file.give_name().map_err(|mut failure| {
            failure.lines.iter_mut().for_each(|line| *line += &in_place);
            failure
        })?;
        in_place += &done;
    }
    Ok(())
}

/// Waits until the name of a path is on the disk, and those of the folders made for it.
fn sync_folders(path: &Path, made: &[PathBuf]) -> io::Result<()> {
    for changed in made.iter().map(PathBuf::as_path).chain([path]).map(folder) {
        // Not every file system does that, and not every folder may be opened.
        let Ok(changed) = File::open(changed) else { continue };
        match rustix::fs::fsync(&changed) {
            Ok(()) | Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::ROFS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A small file, complete but for its name.
pub fn prepare(path: &Path, bytes: &[u8], check: impl Fn() -> Outcome<()>) -> Outcome<OutputFile> {
    let output = OutputFile::create(path, bytes.len() as u64, check)?;
    output.write_at(bytes, 0)?;
    Ok(output)
}

/// Refuses a path that has something else than a regular file, or that no file can have.
pub fn check_place(path: &Path) -> Outcome<()> {
    let last = path.as_os_str().as_encoded_bytes().rsplit(|&byte| byte == b'/').next();
    if let Some(b"" | b"." | b"..") = last {
        return Err(Failure::io("write", path, "it names a folder; name a file in it"));
    }
    let line = match path.symlink_metadata().map(|there| there.file_type()) {
        Err(error) if error.raw_os_error() == Some(Errno::NAMETOOLONG.raw_os_error()) => {
            return Err(Failure::io("write", path, error));
        }
        Ok(kind) if kind.is_dir() => "it is a folder; name a file in it",
        Ok(kind) if !kind.is_file() => "it is no regular file, and would be replaced; name another",
        _ => return Ok(()),
    };
    Err(Failure::io("write", path, line))
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

/// A file without a name, in the folder of the path.
fn unnamed(path: &Path) -> Result<File, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(folder(path), flags, Mode::from_raw_mode(0o666)).map(File::from)
}

/// A file with a temporary name, in the folder of the path; the name goes away with the value.
fn named(path: &Path) -> io::Result<(File, TempPath)> {
    temporary(path, |name| File::options().read(true).write(true).create_new(true).open(name))
}

/// Something with a temporary name; an error is the system's, and says nothing of that name.
fn temporary<T>(path: &Path, mut make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(T, TempPath)> {
    let mut last = None;
    let made = tempfile::Builder::new()
        .prefix(".ninfer-")
        .make_in(folder(path), |name| make(name).inspect_err(|error| last = error.raw_os_error()));
    made.map(tempfile::NamedTempFile::into_parts)
        .map_err(|error| last.map_or(error, io::Error::from_raw_os_error))
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

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// The way of file systems without `O_TMPFILE`.
    fn with_a_name(path: &Path) -> OutputFile {
        let (file, named) = named(path).unwrap();
        file.set_len(3).unwrap();
        OutputFile { path: path.into(), file, named: Some(named), folders: NewFolders::default() }
    }

    #[test]
    fn both_ways_give_the_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let without: fn(&Path) -> OutputFile = |path| OutputFile::create(path, 3, || Ok(())).unwrap();
        for (round, create) in [without, with_a_name, with_a_name, without].into_iter().enumerate() {
            let output = create(&path);
            output.write_at(&[round as u8, 7], 1).unwrap();
            let mut back = [0; 3];
            output.read_at(&mut back, 0).unwrap();
            commit([output], || Ok(())).unwrap();
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
        drop(OutputFile::create(&path, 3, || Ok(())).unwrap());
        drop(with_a_name(&path));
        assert!(names(folder.path()).is_empty());
    }
}
