//! What is printed to stdout.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use crate::failure::{Failure, Outcome, printable};

/// Prints text as it is; a reader that has gone away is no failure.
pub fn print(text: impl Display) -> Outcome<()> {
    let mut stdout = io::stdout().lock();
    match write!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::io("write", Path::new("stdout"), error))
        }
        _ => Ok(()),
    }
}

/// Prints a line.
pub fn line(text: impl Display) -> Outcome<()> {
    print(format_args!("{}\n", printable(&text.to_string())))
}
