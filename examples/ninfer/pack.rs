//! `pack`: a checkpoint to an artifact, a table and a report.

use std::path::{Path, PathBuf};

use ninfer_artifact::{Content, FilePlan, Identity};
use rayon::prelude::*;

use crate::assign::{self, Job};
use crate::checkpoint::Checkpoint;
use crate::cli::{Pack, Settings};
use crate::failure::{Failure, Outcome};
use crate::opened::{Mapped, file_name};
use crate::output::{self, OutputFile};
use crate::report::{self, FileEntry, ObjectEntry, Report};
use crate::resource::Resource;
use crate::rules::Rules;
use crate::table::grouped;
use crate::{console, digest, progress, stream, summary};

/// What `pack` does without INPUT; paths are those of the repository.
const BUNDLED_INPUT: &str = "examples/data/minilm-slice.safetensors";
const BUNDLED_OUTPUT: &str = "target/minilm-slice.ninfer";
const BUNDLED_ASSIGN: &str = "embeddings.position_ids=I32";

/// Everything that is known before a weight is read.
struct Work<'c> {
    checkpoint: &'c Checkpoint,
    jobs: Vec<Job<'c>>,
    resources: Vec<Resource>,
    plan: FilePlan,
}

pub fn run(arguments: &Pack, settings: &Settings) -> Outcome<()> {
    progress::start(settings)?;
    let mut arguments = arguments.clone();
    let input = match arguments.input.take() {
        Some(_) if arguments.output.is_none() && !arguments.dry_run => {
            return Err(Failure::usage("name the artifact with -o OUT, or ask for the sizes with --dry-run"));
        }
        Some(input) => input,
        None => bundled(&mut arguments, settings)?,
    };
    let checkpoint = Checkpoint::open(&input)?;
    let jobs = assign::jobs(&checkpoint, &Rules::new(&arguments)?)?;
    let resources = arguments.resource.iter().map(|argument| Resource::open(argument));
    let resources = resources.collect::<Outcome<Vec<_>>>()?;
    let name = model_name(&input);
    let identity = Identity {
        model_id: arguments.model_id.unwrap_or_else(|| name.clone()),
        weights_id: arguments.weights_id.unwrap_or(name),
    };
    let tensors = jobs.iter().map(|job| {
        (job.name.clone(), Content::Tensor { format: job.plan.format(), shape: job.shape.clone() })
    });
    let others = resources
        .iter()
        .map(|resource| (resource.name.clone(), Content::Resource { bytes: resource.file.len() as u64 }));
    let plan = FilePlan::new(identity, tensors.chain(others).collect()).map_err(Failure::refused)?;
    let work = Work { checkpoint: &checkpoint, jobs, resources, plan };
    let Some(output) = arguments.output.filter(|_| !arguments.dry_run) else {
        return work.show_sizes();
    };

    let report_path = report::path_beside(&output);
    for path in [&output, &report_path] {
        let files = work.checkpoint.files.iter().chain(work.resources.iter().map(|resource| &resource.file));
        let inputs = files.map(Mapped::path).chain([input.as_path()]);
        let inputs = inputs.chain(work.checkpoint.index.as_deref()).chain(arguments.recipe.as_deref());
        output::keep_inputs(path, inputs)?;
    }
    [&output, &report_path].into_iter().try_for_each(|path| output::check_place(path))?;
    let file = OutputFile::create(&output, work.plan.file_bytes(), progress::check)?;
    let report = work.convert(&file, settings)?;
    let report_file = report::prepare(&report, &output)?;
    output::commit([file, report_file], progress::check)?;
    if settings.quiet {
        return Ok(());
    }
    let here = std::env::current_dir().unwrap_or_default();
    let shown = output.strip_prefix(here).unwrap_or(&output).display();
    let bytes = grouped(report.artifact.bytes);
    console::print(summary::table(&report.objects, true))
        .and_then(|()| console::line(format_args!("{shown}: {bytes} bytes; {shown}.report.json: the report")))
        .map_err(|failure| failure.after(&output))
}

/// What a model is called unless the user says: the name of its file, or of the folder of its shards.
fn model_name(input: &Path) -> String {
    let input = input.canonicalize().unwrap_or_else(|_| input.into());
    let sharded = input.extension().is_some_and(|extension| extension == "json");
    let name = file_name(input.parent().filter(|_| sharded).unwrap_or(&input));
    name.strip_suffix(".safetensors").unwrap_or(&name).to_string()
}

/// Turns the arguments into those of the bundled checkpoint, and shows them.
fn bundled(arguments: &mut Pack, settings: &Settings) -> Outcome<PathBuf> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let input = root.join(BUNDLED_INPUT);
    if !input.exists() {
        let message = "is not here: name an INPUT, or run this in the repository";
        return Err(Failure::usage(format!("{BUNDLED_INPUT} {message}")));
    }
    let output = arguments.output.get_or_insert_with(|| root.join(BUNDLED_OUTPUT));
    arguments.assign.push(BUNDLED_ASSIGN.into());
    if !settings.quiet {
        let shown = output.strip_prefix(&root).unwrap_or(output).display();
        console::line(format_args!("ninfer pack {BUNDLED_INPUT} -o {shown} --assign '{BUNDLED_ASSIGN}'"))?;
    }
    Ok(input)
}

impl Work<'_> {
    /// Prints the sizes of what would be written.
    fn show_sizes(&self) -> Outcome<()> {
        let objects = self.plan.directory().objects();
        let tensors = self.jobs.iter().zip(objects);
        let entries = tensors.map(|(job, object)| summary::tensor(job, object.offset(), None, String::new()));
        let others = self.resources.iter().zip(&objects[self.jobs.len()..]);
        let others = others.map(|(file, object)| summary::resource(file, object.offset(), String::new()));
        console::print(summary::table(&entries.chain(others).collect::<Vec<_>>(), false))?;
        console::line(format_args!("{} bytes in all; nothing was written", grouped(self.plan.file_bytes())))
    }

    /// Converts everything into the output and reports on it.
    fn convert(&self, file: &OutputFile, settings: &Settings) -> Outcome<Report> {
        let directory = self.plan.directory();
        let objects = directory.objects();
        let offsets: Vec<_> = objects.iter().map(|object| directory.file_offset(object)).collect();
        file.write_at(self.plan.head(), 0)?;
        let bar = progress::bar(settings, self.jobs.iter().map(Job::source_bytes).sum());
        let inputs = &self.checkpoint.files;
        let converted = stream::run(inputs, &self.jobs, &offsets, file, |bytes| bar.inc(bytes))?;
        bar.set_message("digests");
        let tensors = (0..self.jobs.len()).into_par_iter().map(|index| {
            let sha256 = digest::of_output(file, offsets[index], objects[index].bytes())?;
            Ok(summary::tensor(
                &self.jobs[index],
                objects[index].offset(),
                Some(&converted.measures[index]),
                sha256,
            ))
        });
        let others = self.resources.iter().zip(&objects[self.jobs.len()..]);
        for (resource, object) in others.clone() {
            resource.write(file, directory.file_offset(object))?;
        }
        let (entries, whole) = rayon::join(
            || tensors.collect::<Outcome<Vec<ObjectEntry>>>(),
            || digest::of_output(file, 0, self.plan.file_bytes()),
        );
        let mut entries = entries?;
        for (resource, object) in others {
            entries.push(summary::resource(resource, object.offset(), digest::of(&resource.file)?));
        }
        let artifact =
            FileEntry { file: file_name(file.path()), bytes: self.plan.file_bytes(), sha256: whole? };
        bar.finish_and_clear();
        let sources = inputs.iter().zip(converted.digests).map(|(file, sha256)| FileEntry {
            file: file.file_name(),
            bytes: file.len() as u64,
            sha256,
        });
        Ok(Report {
            schema: report::SCHEMA.into(),
            tool: concat!("ninfer ", env!("CARGO_PKG_VERSION")).into(),
            model_id: directory.identity().model_id.clone(),
            weights_id: directory.identity().weights_id.clone(),
            artifact,
            sources: sources.collect(),
            objects: entries,
        })
    }
}
