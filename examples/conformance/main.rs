//! Runs golden vectors against the public API.
//!
//! `cargo run --release --example conformance -- DIR` reads every `*.json` file directly in `DIR` and compares
//! every member of every case. It prints a line per failing check, a line per file, and the two totals. The exit
//! code is 0 only if there was at least one file and no check failed.

mod runner;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(directory), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: conformance DIR");
        return ExitCode::from(2);
    };
    match runner::run_directory(Path::new(&directory)) {
        Ok(reports) => {
            let (mut passed, mut failed) = (0, 0);
            for report in &reports {
                for failure in &report.failures {
                    println!("FAIL {} {failure}", report.file);
                }
                println!("{}: {} cases, {} checks", report.file, report.cases, report.checks());
                passed += report.passed;
                failed += report.failures.len();
            }
            println!("{passed} passed, {failed} failed");
            if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(message) => {
            println!("{message}");
            println!("0 passed, 0 failed");
            ExitCode::FAILURE
        }
    }
}
