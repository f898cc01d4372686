//! SHA-256 as hexadecimal text.

use sha2::{Digest, Sha256};

use crate::failure::Outcome;
use crate::opened::Mapped;
use crate::output::OutputFile;
use crate::progress;

/// Bytes between two looks at whether to stop.
const STEP: usize = 1 << 20;

/// The digest of a file that is read by others too, kept about as far as they are: what one of them has read,
/// the other finds in memory.
#[derive(Default)]
pub struct Following {
    hash: Sha256,
    done: usize,
}

impl Following {
    /// Goes on to `end`.
    pub fn advance(&mut self, file: &Mapped, end: usize) -> Outcome<()> {
        let begin = self.done.min(end);
        for piece in file[begin..end].chunks(STEP) {
            progress::check()?;
            self.hash.update(piece);
        }
        self.done = self.done.max(end);
        Ok(())
    }

    /// Goes on to the end of the file.
    pub fn finish(mut self, file: &Mapped) -> Outcome<String> {
        self.advance(file, file.len())?;
        Ok(hex(self.hash))
    }
}

/// The digest of bytes in memory.
pub fn of(bytes: &[u8]) -> Outcome<String> {
    let mut hash = Sha256::new();
    for piece in bytes.chunks(STEP) {
        progress::check()?;
        hash.update(piece);
    }
    Ok(hex(hash))
}

/// The digest of a part of a file that was just written.
pub fn of_output(output: &OutputFile, offset: u64, bytes: u64) -> Outcome<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; (STEP as u64).min(bytes) as usize];
    let mut position = 0;
    while position < bytes {
        progress::check()?;
        let piece = &mut buffer[..(bytes - position).min(STEP as u64) as usize];
        output.read_at(piece, offset + position)?;
        hash.update(&*piece);
        position += piece.len() as u64;
    }
    Ok(hex(hash))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
