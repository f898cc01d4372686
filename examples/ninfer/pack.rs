//! `pack`: a checkpoint to an artifact, a table and a report.

use std::path::PathBuf;

use anstream::println;
use ninfer_artifact::{Content, FilePlan, Identity};
use rayon::prelude::*;

use crate::assign::{self, Job};
use crate::checkpoint::Checkpoint;
use crate::cli::{Pack, Settings};
use crate::failure::{Failure, Outcome};
use crate::measure::Measure;
use crate::opened::file_name;
use crate::output::{self, OutputFile};
use crate::report::{self, ErrorEntry, FileEntry, GroupEntry, Histogram, ObjectEntry, Report, SourceEntry};
use crate::rules::Rules;
use crate::table::{Table, bits_per_weight, grouped, shape};
use crate::{convert, digest, progress};

/// What `pack` does without INPUT; paths are those of the repository.
const BUNDLED_INPUT: &str = "examples/data/minilm-slice.safetensors";
const BUNDLED_OUTPUT: &str = "target/minilm-slice.ninfer";
const BUNDLED_ASSIGN: &str = "embeddings.position_ids=I32";

pub fn run(arguments: &Pack, settings: &Settings) -> Outcome<()> {
    progress::start(settings)?;
    let mut arguments = arguments.clone();
    let (input, output) = match (arguments.input.take(), arguments.output.take()) {
        (Some(input), Some(output)) => (input, output),
        (_, output) => bundled(&mut arguments, output, settings)?,
    };
    let checkpoint = Checkpoint::open(&input)?;
    let rules = Rules::new(&arguments)?;
    let jobs = assign::jobs(&checkpoint, &rules)?;
    let name = input.canonicalize().map_or_else(|_| file_name(&input), |path| file_name(&path));
    let name = name.strip_suffix(".safetensors").unwrap_or(&name).to_string();
    let identity = Identity {
        model_id: arguments.model_id.unwrap_or_else(|| name.clone()),
        weights_id: arguments.weights_id.unwrap_or(name),
    };
    let contents = jobs
        .iter()
        .map(|job| {
            let content = Content::Tensor { format: job.plan.format(), shape: job.shape.clone() };
            (job.name.clone(), content)
        })
        .collect();
    let plan = FilePlan::new(identity, contents).map_err(Failure::refused)?;

    output::make_folder(&output)?;
    let file = OutputFile::create(&output, plan.file_bytes())?;
    let report = convert_all(&checkpoint, &jobs, &plan, &file, settings)?;
    progress::check()?;
    file.commit()?;
    report::write(&report, &output)?;
    if !settings.quiet {
        print!("{}", table(&report));
        println!("{} bytes in {} and its report", grouped(report.artifact.bytes), output.display());
    }
    Ok(())
}

/// Turns the arguments into those of the bundled checkpoint, and shows them.
fn bundled(
    arguments: &mut Pack,
    output: Option<PathBuf>,
    settings: &Settings,
) -> Outcome<(PathBuf, PathBuf)> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let input = root.join(BUNDLED_INPUT);
    if !input.exists() {
        return Err(Failure::usage(format!(
            "{BUNDLED_INPUT} is not here: name an INPUT, or run this in the repository"
        )));
    }
    let shown = output.clone().unwrap_or_else(|| BUNDLED_OUTPUT.into());
    arguments.assign.push(BUNDLED_ASSIGN.into());
    if !settings.quiet {
        println!("ninfer pack {BUNDLED_INPUT} -o {} --assign '{BUNDLED_ASSIGN}'", shown.display());
    }
    Ok((input, output.unwrap_or_else(|| root.join(BUNDLED_OUTPUT))))
}

/// Converts everything into the output and reports on it.
fn convert_all(
    checkpoint: &Checkpoint,
    jobs: &[Job<'_>],
    plan: &FilePlan,
    file: &OutputFile,
    settings: &Settings,
) -> Outcome<Report> {
    let directory = plan.directory();
    let offsets: Vec<_> = directory.objects().iter().map(|object| directory.file_offset(object)).collect();
    file.write_at(plan.head(), 0)?;
    let bar = progress::bar(settings, jobs.iter().map(Job::source_bytes).sum());
    let mut sources = Vec::new();
    // The sources' digests are taken meanwhile, by whichever thread is free.
    let measures = rayon::scope(|scope| {
        sources = checkpoint.files.iter().map(|_| Ok(String::new())).collect();
        for (file, sha256) in checkpoint.files.iter().zip(&mut sources) {
            scope.spawn(move |_| *sha256 = digest::of(file));
        }
        convert::run(jobs, &offsets, file, |bytes| bar.inc(bytes))
    })?;
    bar.set_message("digests");
    let objects = jobs
        .par_iter()
        .zip(directory.objects())
        .zip(&measures)
        .map(|((job, object), measure)| {
            let sha256 = digest::of_output(file, directory.file_offset(object), object.bytes())?;
            Ok(object_entry(job, object.offset(), measure, sha256))
        })
        .collect::<Outcome<Vec<_>>>()?;
    bar.finish_and_clear();
    let sources = checkpoint.files.iter().zip(sources).map(|(file, sha256)| {
        Ok(FileEntry { file: file.file_name(), bytes: file.len() as u64, sha256: sha256? })
    });
    Ok(Report {
        schema: report::SCHEMA.into(),
        tool: concat!("ninfer ", env!("CARGO_PKG_VERSION")).into(),
        model_id: directory.identity().model_id.clone(),
        weights_id: directory.identity().weights_id.clone(),
        artifact: FileEntry {
            file: file_name(file.path()),
            bytes: plan.file_bytes(),
            sha256: digest::of_output(file, 0, plan.file_bytes())?,
        },
        sources: sources.collect::<Outcome<_>>()?,
        objects,
    })
}

fn object_entry(job: &Job<'_>, offset: u64, measure: &Measure, sha256: String) -> ObjectEntry {
    let format = job.plan.format();
    let quantized = format.scheme().is_some();
    let tensors = job.parts.iter().flat_map(|part| part.words.tensors());
    let first = format.descriptor().code_interval.map_or(0, |_| -(measure.histogram.len() as i32 / 2));
    ObjectEntry {
        name: job.name.clone(),
        sources: tensors
            .map(|tensor| SourceEntry {
                name: tensor.name.into(),
                dtype: tensor.dtype.to_string(),
                shape: tensor.shape.into(),
            })
            .collect(),
        rule: job.rule.clone(),
        encoder: job.encoder().into(),
        shape: job.shape.clone(),
        format: format.name().into(),
        layout: Some(format.layout().name().into()),
        offset,
        bytes: job.plan.payload_bytes(),
        bits_per_weight: Some(bits_per_weight(job.plan.payload_bytes(), job.plan.elements())),
        sha256,
        error: quantized.then(|| ErrorEntry {
            relative_rmse: measure.relative_rmse(),
            snr_db: measure.snr_db(),
            largest: measure.largest,
            largest_at: (measure.largest > 0.0).then_some(measure.largest_at),
        }),
        groups: (measure.groups > 0).then_some(GroupEntry {
            count: measure.groups,
            rescued: measure.rescued,
            all_zero: measure.all_zero,
        }),
        histogram: (!measure.histogram.is_empty())
            .then(|| Histogram { first, counts: measure.histogram.clone() }),
    }
}

/// What was packed, for people.
fn table(report: &Report) -> Table {
    let mut table = Table::new(&[
        "tensor",
        "source",
        ">shape",
        "format",
        "layout",
        ">bytes",
        ">bits/weight",
        ">rel. RMSE",
        ">max. error",
    ]);
    for object in &report.objects {
        let mut types: Vec<_> = object.sources.iter().map(|source| source.dtype.as_str()).collect();
        types.dedup();
        let (rmse, largest) = match &object.error {
            Some(error) => (format!("{:.5}", error.relative_rmse), format!("{:.3e}", error.largest)),
            None => ("0".into(), "0".into()),
        };
        table.row(vec![
            object.name.clone(),
            types.join("+"),
            shape(&object.shape),
            object.format.clone(),
            object.layout.clone().unwrap_or_default(),
            grouped(object.bytes),
            object.bits_per_weight.map_or(String::new(), |bits| format!("{bits:.3}")),
            rmse,
            largest,
        ]);
    }
    table
}
