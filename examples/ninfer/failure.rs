//! Why the tool stops: an exit code, and one line for each thing that is wrong.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// What an operation gives.
pub type Outcome<T> = Result<T, Failure>;

/// The exit codes, as `--help` states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// `verify` found a violation, or `diff` a difference.
    Found,
    /// A checkpoint, tensor, value or artifact was refused.
    Refused,
    /// The command line or a recipe is wrong; clap's own code.
    Usage,
    /// A file could not be read or written, or the system gave no thread.
    Io,
    /// Stopped by a signal.
    Interrupted,
}

impl Code {
    fn exit(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Found | Self::Refused => 1,
            Self::Usage => 2,
            Self::Io => 3,
            Self::Interrupted => 130,
        })
    }
}

/// A reason to stop. Each line names the thing, the numbers, and what to do next.
#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub lines: Vec<String>,
}

impl Failure {
    pub fn usage(line: impl Display) -> Self {
        Self { code: Code::Usage, lines: vec![line.to_string()] }
    }

    pub fn refused(line: impl Display) -> Self {
        Self { code: Code::Refused, lines: vec![line.to_string()] }
    }

    pub fn interrupted() -> Self {
        Self { code: Code::Interrupted, lines: vec!["interrupted; nothing was left behind".into()] }
    }

    /// A file that cannot be read or written.
    pub fn io(action: &str, path: &Path, error: impl Display) -> Self {
        let next = if matches!(action, "open" | "read") { "; check the path" } else { "" };
        Self { code: Code::Io, lines: vec![format!("cannot {action} {}: {error}{next}", path.display())] }
    }

    /// Adds that the work was done nevertheless.
    pub fn after(mut self, output: &Path) -> Self {
        if let Some(line) = self.lines.last_mut() {
            line.push_str(&format!("; {} is complete", output.display()));
        }
        self
    }

    /// Prints every line to stderr and gives the exit code.
    pub fn print(&self) -> ExitCode {
        for line in &self.lines {
            // A name out of a hostile file may be endless.
            let line = shortened_middle(line);
            match self.code {
                Code::Found => say("", &line),
                _ => say("\x1b[1;31merror\x1b[0m: ", &line),
            }
        }
        self.code.exit()
    }
}

/// A line of at most 2,000 characters: the beginning and the end of a longer one.
fn shortened_middle(line: &str) -> String {
    const HALF: usize = 1000;
    let length = line.chars().count();
    if length <= 2 * HALF {
        return line.to_string();
    }
    let head: String = line.chars().take(HALF).collect();
    let tail: String = line.chars().skip(length - HALF).collect();
    format!("{head} … {tail}")
}

/// Prints something that does not stop the work.
pub fn note(line: impl Display) {
    say("\x1b[1;33mnote\x1b[0m: ", &line.to_string());
}

/// Prints a line to stderr. Where that is closed or full, the exit code has to say enough.
fn say(mark: &str, line: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{mark}{}", printable(line));
}

/// A text that stays on its line: whatever moves a terminal's cursor or turns its text around is escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    let moves = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(moves) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match moves(c) {
            true => escaped.extend(c.escape_default()),
            false => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}
