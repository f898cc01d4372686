//! Files that go into an artifact as they are.

use std::path::Path;

use crate::failure::{Failure, Outcome};
use crate::opened::Mapped;
use crate::output::OutputFile;
use crate::progress;

/// Bytes written at once.
const STEP: usize = 1 << 20;

/// One `--resource NAME=FILE`.
#[derive(Debug)]
pub struct Resource {
    pub name: String,
    pub file: Mapped,
    /// How the user wrote it.
    pub origin: String,
}

impl Resource {
    pub fn open(argument: &str) -> Outcome<Self> {
        let origin = format!("--resource '{argument}'");
        let Some((name, path)) =
            argument.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty())
        else {
            return Err(Failure::usage(format!("{origin}: write NAME=FILE, as in tokenizer=tokenizer.json")));
        };
        let file = Mapped::open(Path::new(path))?;
        if file.is_empty() {
            return Err(Failure::refused(format!(
                "{origin}: {path} is empty, and a resource is not: leave it out"
            )));
        }
        Ok(Self { name: name.into(), file, origin })
    }

    pub fn write(&self, output: &OutputFile, offset: u64) -> Outcome<()> {
        for (index, piece) in self.file.chunks(STEP).enumerate() {
            progress::check()?;
            output.write_at(piece, offset + (index * STEP) as u64)?;
        }
        Ok(())
    }
}
