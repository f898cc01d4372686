//! `report`: a conversion report as one page that needs nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::cli;
use crate::console;
use crate::failure::{Failure, Outcome};
use crate::opened::Mapped;
use crate::output;
use crate::plots;
use crate::progress;
use crate::report::{Histogram, ObjectEntry, Report, SCHEMA};
use crate::table::{grouped, shape};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub fn run(arguments: &cli::Report, settings: &cli::Settings) -> Outcome<()> {
    let path = &arguments.file;
    progress::catch_signals()?;
    let text = Mapped::open(path)?;
    let refuse = |line: String| Failure::refused(format!("{}: {line}", path.display()));
    let report: Report = serde_json::from_slice(&text)
        .map_err(|error| refuse(format!("{error}; give a report that `ninfer pack` wrote")))?;
    if report.schema != SCHEMA {
        return Err(refuse(format!(
            "schema {:?} is not {SCHEMA:?}: pack again with this version",
            report.schema
        )));
    }
    for object in &report.objects {
        if let Some(number) = impossible(object) {
            return Err(refuse(format!("{:?} cannot have {number}: pack again", object.name)));
        }
    }
    let chosen = match &arguments.tensor {
        Some(name) => Some(
            report
                .objects
                .iter()
                .find(|object| object.name == *name && object.histogram.is_some())
                .ok_or_else(|| {
                    refuse(format!("{name:?} is no quantized tensor of it: choose another --tensor"))
                })?,
        ),
        None => worst(&report),
    };
    let page = page(&report, chosen).map_err(|error| refuse(error.to_string()))?;
    output::keep_inputs(&arguments.output, [path.as_path()])?;
    let file = output::prepare(&arguments.output, page.into_string().as_bytes(), progress::check)?;
    output::commit([file], progress::check)?;
    if settings.quiet {
        return Ok(());
    }
    console::line(format_args!("{}: {} objects", arguments.output.display(), report.objects.len()))
        .map_err(|failure| failure.after(&arguments.output))
}

/// The first number that `pack` cannot have written, with its name. The others can be drawn.
fn impossible(object: &ObjectEntry) -> Option<String> {
    let error = object.error.as_ref();
    let magnitude = 0.0..=1e12;
    let real = [
        ("bits_per_weight", object.bits_per_weight, &magnitude),
        ("relative_rmse", error.map(|error| error.relative_rmse), &magnitude),
        ("snr_db", error.and_then(|error| error.snr_db), &(-1e12..=1e12)),
        ("largest", error.map(|error| error.largest), &(0.0..=f64::from(f32::MAX))),
    ];
    for (name, value, range) in real {
        if let Some(value) = value.filter(|value| !range.contains(value)) {
            return Some(format!("{name} {value}"));
        }
    }
    if let Some(groups) = &object.groups {
        for (name, part) in [("rescued", groups.rescued), ("all_zero", groups.all_zero)] {
            if part > groups.count {
                return Some(format!("{name} {part} of {} groups", groups.count));
            }
        }
    }
    let Histogram { first, counts } = object.histogram.as_ref()?;
    if !(1..=256).contains(&counts.len()) {
        return Some(format!("{} counts of codes", counts.len()));
    }
    if !(-128..=0).contains(first) {
        return Some(format!("a first code of {first}"));
    }
    counts.iter().find(|&&count| count >= 1 << 62).map(|count| format!("a code {count} times"))
}

/// The tensor with the largest relative error, or else the first with codes.
fn worst(report: &Report) -> Option<&ObjectEntry> {
    let rmse = |object: &&ObjectEntry| object.error.as_ref().map_or(-1.0, |error| error.relative_rmse);
    let with_codes = report.objects.iter().filter(|object| object.histogram.is_some());
    with_codes.reduce(|worst, object| if rmse(&object) > rmse(&worst) { object } else { worst })
}

/// A part of something, if there is any of it.
fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

fn page(report: &Report, chosen: Option<&ObjectEntry>) -> Result<Markup, Box<dyn std::error::Error>> {
    let quantized: Vec<_> = report.objects.iter().filter(|object| object.error.is_some()).collect();
    let tensors: u64 = report.objects.iter().filter(|object| object.layout.is_some()).count() as u64;
    let source_bytes: u64 =
        report.sources.iter().fold(0, |sum: u64, source| sum.saturating_add(source.bytes));
    Ok(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (report.artifact.file) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (report.artifact.file) }
                p {
                    "Model " b { (report.model_id) } ", weights " b { (report.weights_id) } ", written by "
                    (report.tool) ". " (grouped(tensors)) " tensors, " (grouped(report.artifact.bytes)) " bytes from "
                    (grouped(source_bytes))
                    @if let Some(share) = share(report.artifact.bytes, source_bytes) {
                        ": " (format!("{:.1}", 100.0 * share)) " %"
                    }
                    "."
                }
                @if !quantized.is_empty() {
                    h2 { "Error by tensor" }
                    @if quantized.len() > plots::BARS {
                        p { "The " (plots::BARS) " with the largest relative RMSE of " (quantized.len()) "." }
                    }
                    figure id="errors" { (PreEscaped(plots::errors(&quantized)?)) }
                    h2 { "Bits against signal-to-noise ratio" }
                    figure id="snr" { (PreEscaped(plots::bits_against_snr(&quantized)?)) }
                }
                @if let Some(object) = chosen {
                    @if let Some(histogram) = &object.histogram {
                        h2 { "Codes of " code { (object.name) } ", " (object.format) }
                        figure id="codes" { (PreEscaped(plots::codes(&object.format, histogram)?)) }
                    }
                }
                h2 { "Objects" }
                p { "A click on a heading sorts." }
                (objects(report))
                h2 { "Files" }
                (files(report))
                script { (PreEscaped(SCRIPT)) }
            }
        }
    })
}

/// A cell of a number: what is shown, and what is sorted by.
fn number(value: Option<f64>, text: impl Fn(f64) -> String) -> Markup {
    html! {
        @match value {
            Some(value) => td.number data-value=(value) { (text(value)) },
            None => td.number data-value="" {},
        }
    }
}

fn objects(report: &Report) -> Markup {
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    html! {
        table id="objects" {
            thead { tr {
                @for title in [
                    "object", "source", "shape", "format", "bytes", "bits/weight", "rel. RMSE",
                    "SNR, dB", "max. error", "at", "rescued groups", "all-zero groups", "encoder", "rule",
                ] {
                    th { button type="button" { (title) } }
                }
            } }
            tbody {
                @for object in &report.objects {
                    @let error = object.error.as_ref();
                    @let groups = object.groups.as_ref();
                    @let types: Vec<_> = object.sources.iter().map(|source| source.dtype.as_str()).collect();
                    tr {
                        td title=(format!("SHA-256 {}", object.sha256)) { code { (object.name) } }
                        td { (types.join(" + ")) }
                        td { @if object.layout.is_some() { (shape(&object.shape)) } }
                        td { (object.format) }
                        (number(Some(object.bytes as f64), |_| grouped(object.bytes)))
                        (number(object.bits_per_weight, |bits| format!("{bits:.3}")))
                        (number(error.map(|error| error.relative_rmse), |rmse| format!("{rmse:.5}")))
                        (number(error.and_then(|error| error.snr_db), |snr| format!("{snr:.2}")))
                        (number(error.map(|error| error.largest), |largest| format!("{largest:.3e}")))
                        td { @if let Some((row, column)) = error.and_then(|error| error.largest_at) { (row) ", " (column) } }
                        (number(groups.and_then(|groups| share(groups.rescued, groups.count)), percent))
                        (number(groups.and_then(|groups| share(groups.all_zero, groups.count)), percent))
                        td { (object.encoder) }
                        td { (object.rule) }
                    }
                }
            }
        }
    }
}

fn files(report: &Report) -> Markup {
    html! {
        table {
            thead { tr { th { "file" } th { "bytes" } th { "SHA-256" } } }
            tbody {
                @for file in std::iter::once(&report.artifact).chain(&report.sources) {
                    tr {
                        td { code { (file.file) } }
                        td.number { (grouped(file.bytes)) }
                        td { code { (file.sha256) } }
                    }
                }
            }
        }
    }
}
