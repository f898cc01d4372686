//! `ninfer`: converts checkpoints to `.ninfer` artifacts, and inspects, verifies and unpacks them.
//!
//! | module | what it holds |
//! |---|---|
//! | `cli`, `failure` | the command line; exit codes and messages |
//! | `checkpoint`, `rules`, `import`, `assign` | what is read, and what each tensor becomes |
//! | `pack`, `convert`, `words`, `measure`, `output` | the conversion, block by block |
//! | `report`, `table`, `progress` | what people read |
//! | `inspect`, `verify` | what is asked of an artifact |

#![deny(unsafe_code)]

mod assign;
mod checkpoint;
mod cli;
mod convert;
mod digest;
mod failure;
mod import;
mod inspect;
mod measure;
mod opened;
mod output;
mod pack;
mod progress;
mod report;
mod rules;
mod table;
mod verify;
mod words;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use failure::Outcome;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.print(),
    }
}

fn run(cli: &Cli) -> Outcome<()> {
    let settings = &cli.settings;
    match &cli.command {
        Command::Pack(arguments) => pack::run(arguments, settings),
        Command::Inspect(arguments) => inspect::run(arguments),
        Command::Verify(arguments) => verify::run(arguments, settings),
    }
}
