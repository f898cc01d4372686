//! `ninfer`: converts checkpoints to `.ninfer` artifacts, and inspects, verifies and unpacks them.
//!
//! | module | what it holds |
//! |---|---|
//! | `cli`, `failure` | the command line; exit codes and messages |
//! | `checkpoint`, `header`, `json` | what is read |
//! | `rules`, `import`, `assign` | what each tensor becomes |
//! | `pack`, `stream`, `convert`, `words`, `measure`, `output` | the conversion, block by block |
//! | `summary`, `report`, `table`, `console`, `progress` | what people read |
//! | `page`, `plots` | the report as a page |
//! | `inspect`, `verify`, `unpack`, `diff`, `bench` | what is asked of an artifact |
//! | `planes` | what is asked of a format |
//! | `blocks`, `opened`, `digest`, `resource` | pieces that several of them use |

#![deny(unsafe_code)]

mod assign;
mod bench;
mod blocks;
mod checkpoint;
mod cli;
mod console;
mod convert;
mod diff;
mod digest;
mod failure;
mod header;
mod import;
mod inspect;
mod json;
mod measure;
mod opened;
mod output;
mod pack;
mod page;
mod planes;
mod plots;
mod progress;
mod report;
mod resource;
mod rules;
mod stream;
mod summary;
mod table;
mod unpack;
mod verify;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

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
        Command::Report(arguments) => page::run(arguments, settings),
        Command::Inspect(arguments) => inspect::run(arguments),
        Command::Verify(arguments) => verify::run(arguments, settings),
        Command::Unpack(arguments) => unpack::run(arguments, settings),
        Command::Diff(arguments) => diff::run(arguments, settings),
        Command::Plan(arguments) => planes::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Completions(arguments) => {
            let mut script = Vec::new();
            clap_complete::generate(arguments.shell, &mut Cli::command(), "ninfer", &mut script);
            console::print(String::from_utf8_lossy(&script))
        }
    }
}
