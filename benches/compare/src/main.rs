//! Measures ninfer-codec beside the machine's limits, ggml and candle, in one process on one core.
//!
//! See README.md, beside `src`, for what is measured and how to run it.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;

mod data;
mod goals;
mod limits;
mod machine;
mod memory;
mod peers;
mod plot;
mod report;
mod threads;
mod trial;
mod works;

use goals::Verdict;
use machine::Machine;
use memory::{Buffers, Pages};
use trial::{Effort, Record};

#[derive(Debug, Parser)]
#[command(about = "Measures ninfer-codec beside the machine's limits, ggml and candle")]
struct Arguments {
    /// Few rounds and smaller buffers: to see that it works, not as evidence.
    #[arg(long)]
    quick: bool,
    /// Only works whose name contains one of these, as in `decode Q4 f32 L2 4k`. May be repeated.
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Writes everything as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draws decode and quantize.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// All of a run, as it is written to JSON.
#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    quick: bool,
    rounds: usize,
    memory_bytes: usize,
    records: Vec<Record>,
    goals: Vec<Verdict>,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = Arguments::parse();
    let effort = if arguments.quick {
        Effort { rounds: 5, repeat_seconds: 2e-4, memory_bytes: 64 << 20 }
    } else {
        Effort { rounds: 21, repeat_seconds: 1e-3, memory_bytes: 256 << 20 }
    };
    let mut cores = machine::cores()?;
    cores.reverse(); // the first core has most of the interrupts
    cores.truncate(2);
    machine::pin(cores[0]);
    let mut machine = Machine::new(cores.clone());
    machine.print();
    let chosen =
        |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|part| name.contains(part));
    let mut records = Vec::new();
    for pages in Pages::ALL {
        let single: Vec<_> =
            works::jobs(pages, &effort).into_iter().filter(|job| chosen(&job.work.name())).collect();
        let double: Vec<_> =
            threads::jobs(pages, &effort).into_iter().filter(|job| chosen(&job.work.name())).collect();
        if single.is_empty() && double.is_empty() {
            continue;
        }
        let mut buffers = Buffers::new(effort.memory_bytes, pages)?;
        let (input, output) = (buffers.input.huge_share()?, buffers.output.huge_share()?);
        println!(
            "\n{} pages: huge pages back {input:.2} of the input, {output:.2} of the output",
            pages.name()
        );
        report::print_head();
        for job in single {
            records.push(job.set_up(&mut buffers).run(&mut buffers, &effort));
            records.last().inspect(|record| report::print_row(record));
        }
        if let [first, second] = cores[..] {
            for job in double {
                records.push(job.run(&mut buffers, &effort, (first, second)));
                records.last().inspect(|record| report::print_row(record));
            }
        } else if !double.is_empty() {
            println!("SKIPPED: two threads, as the process may use one core only");
        }
    }
    let goals = goals::judge(&records);
    report::print_baselines(&records);
    report::print_goals(&goals);
    machine.load_after = machine::load();
    println!("load {}, taken off the core {} times", machine.load_after, machine::preemptions());
    if arguments.quick {
        println!(
            "quick: {} rounds, {} MiB from memory; not evidence",
            effort.rounds,
            effort.memory_bytes >> 20
        );
    }
    if let Some(path) = &arguments.svg {
        plot::draw(path, &records)?;
    }
    let same_bytes = records.iter().all(|record| record.same_bytes);
    if let Some(path) = &arguments.json {
        let (rounds, memory_bytes) = (effort.rounds, effort.memory_bytes);
        let report = Report { machine, quick: arguments.quick, rounds, memory_bytes, records, goals };
        fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    Ok(if same_bytes { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
