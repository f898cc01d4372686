//! `verify`: the directory and every payload, on all cores.

use ninfer_artifact::Object;
use ninfer_codec::{Error, Tensor};
use rayon::prelude::*;

use crate::blocks::row_blocks;
use crate::cli::{Settings, Verify};
use crate::failure::{Code, Failure, Outcome};
use crate::opened::Mapped;
use crate::table::grouped;
use crate::{console, progress};

pub fn run(arguments: &Verify, settings: &Settings) -> Outcome<()> {
    progress::start(settings)?;
    let file = Mapped::open(&arguments.file)?;
    let artifact = file.artifact()?;
    let objects = artifact.directory().objects();
    let tensors: Vec<_> =
        objects.iter().filter_map(|object| Some((object, artifact.tensor(object)?))).collect();
    let bar = progress::bar(settings, objects.iter().map(Object::bytes).sum());
    let violations = tensors
        .par_iter()
        .map(|(object, tensor)| {
            let first = first_violation(tensor, |bytes| bar.inc(bytes))?;
            Ok(first.map(|error| format!("object {:?}: {error}", object.name())))
        })
        .collect::<Outcome<Vec<_>>>()?;
    bar.finish_and_clear();
    let mut lines: Vec<String> = violations.into_iter().flatten().collect();
    if lines.is_empty() {
        if !settings.quiet {
            let (count, bytes) = (objects.len(), grouped(file.len() as u64));
            let path = arguments.file.display();
            console::line(format_args!("{path}: {count} objects, {bytes} bytes: valid"))?;
        }
        return Ok(());
    }
    lines.push(format!(
        "{}: {} of {} objects break their format: write the file again from its source",
        arguments.file.display(),
        lines.len(),
        objects.len()
    ));
    Err(Failure { code: Code::Found, lines })
}

/// The first violation of a tensor in the contract's order, whatever thread meets one first.
fn first_violation(tensor: &Tensor<'_>, done: impl Fn(u64) + Sync) -> Outcome<Option<Error>> {
    let plan = tensor.plan();
    let row_bytes = plan.codes().row_bytes + plan.high().row_bytes + plan.scales().row_bytes;
    let clean = row_blocks(plan)
        .map(|(begin, count)| {
            progress::check()?;
            done(count * row_bytes);
            Ok(tensor.rows(begin, count).and_then(|rows| rows.validate()).is_ok())
        })
        .try_reduce(|| true, |a, b| Ok(a && b))?;
    Ok(if clean { None } else { tensor.validate().err() })
}
