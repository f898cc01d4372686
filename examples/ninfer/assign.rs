//! What each tensor becomes: the objects of the artifact, before any weight is read.

use std::collections::{BTreeMap, HashMap, HashSet};

use ninfer_codec::{EncoderProfile, Error, Format, Plan};

use crate::checkpoint::Checkpoint;
use crate::failure::{Code, Failure, Outcome};
use crate::import::{self, Item, Words};
use crate::rules::{Fate, Rules, Stack};
use crate::words::{direct_twin, is_float, is_integer, words};

/// One tensor object to be written.
#[derive(Debug)]
pub struct Job<'c> {
    pub name: String,
    pub shape: Vec<u64>,
    pub plan: Plan,
    /// What the rows come from, in their order.
    pub parts: Vec<Part<'c>>,
    /// The rule that decided.
    pub rule: String,
}

/// Some consecutive rows of an object and what they come from.
#[derive(Debug)]
pub struct Part<'c> {
    /// The name that rules know the part by.
    pub name: String,
    pub words: Words<'c>,
    pub first_row: u64,
    pub rows: u64,
}

impl Job<'_> {
    /// Bytes to be read.
    pub fn source_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.words.bytes()).sum()
    }

    /// The tensor that the first row comes from.
    fn first_source(&self) -> String {
        let first = self.parts.first().and_then(|part| part.words.tensors().first().copied());
        first.map_or(String::new(), |tensor| tensor.name.into())
    }

    /// How the words come about.
    pub fn encoder(&self) -> &'static str {
        let copied = |part: &Part| match part.words {
            Words::Values(tensor) => direct_twin(tensor.dtype) == Some(self.plan.format()),
            Words::Nvfp4 { .. } | Words::Fp8Row { .. } => true,
        };
        if self.plan.format().scheme().is_some() {
            EncoderProfile::MaxabsF16RecipRneV1.name()
        } else if self.parts.iter().all(copied) {
            "copied"
        } else {
            "exact"
        }
    }
}

/// Decides about every tensor, in the order of the objects' names; refuses with a line for each tensor that
/// needs a decision.
pub fn jobs<'c>(checkpoint: &'c Checkpoint, rules: &Rules) -> Outcome<Vec<Job<'c>>> {
    let items = import::items(checkpoint);
    let by_name: HashMap<_, _> = items.iter().map(|item| (item.name.as_str(), item)).collect();
    let mut stacked = HashSet::new();
    let mut found = Vec::new();
    for stack in &rules.stacks {
        for source in &stack.sources {
            if !stacked.insert(source.as_str()) {
                let origin = stack.origin();
                return Err(Failure::usage(format!("{origin}: {source:?} is stacked twice: leave one out")));
            }
        }
        found.push(stack_job(stack, &by_name, rules)?);
    }
    for item in items.iter().filter(|item| !stacked.contains(item.name.as_str())) {
        found.push(item_job(item, rules)?);
    }
    rules.check_used()?;

    let mut jobs = BTreeMap::<String, Job<'c>>::new();
    let mut refusals = Vec::new();
    for job in found {
        match job {
            Err(line) => refusals.push(line),
            Ok(None) => {}
            Ok(Some(job)) => {
                let first = job.first_source();
                if let Some(other) = jobs.insert(job.name.clone(), job) {
                    refusals.push(two_of_one_name(&other, &first));
                }
            }
        }
    }
    if !refusals.is_empty() {
        return Err(Failure { code: Code::Refused, lines: refusals });
    }
    if items.is_empty() {
        return Err(Failure::refused("the checkpoint has no tensors: nothing can be packed"));
    }
    if jobs.is_empty() {
        return Err(Failure::refused("no tensor is left to pack: skip fewer"));
    }
    Ok(jobs.into_values().collect())
}

/// What is said of a job and another's first source, which give objects of one name.
fn two_of_one_name(job: &Job<'_>, other: &str) -> String {
    let (own, name) = (job.first_source(), &job.name);
    let (one, other) = if *own < *other { (&*own, other) } else { (other, &*own) };
    let same_to_rules = |source: &str| source == name || source.strip_suffix("_packed") == Some(name);
    let remedy = match same_to_rules(one) && same_to_rules(other) {
        true => format!("take one of them out of the checkpoint, or leave both out with --skip '{name}'"),
        false => "rename one of them, or leave one out with --skip".into(),
    };
    format!("two objects are named {name:?}, from tensors {one:?} and {other:?}: {remedy}")
}

/// A job; none where it is skipped; a line where it is refused.
type Found<'c> = Result<Option<Job<'c>>, String>;

fn item_job<'c>(item: &Item<'c>, rules: &Rules) -> Outcome<Found<'c>> {
    let decision = rules.decide(&item.name)?;
    let (format, rule) = match decision.fate {
        Some((Fate::Skip, _)) => return Ok(Ok(None)),
        Some((Fate::Assign(format), rule)) => (Ok(format), rule),
        None => (default_format(item, rules), "default"),
    };
    let plan = format.and_then(|format| {
        check_source(item, format)?;
        plan(&item.name, format, &item.shape)
    });
    Ok(plan.map(|plan| {
        let name = item.name.clone();
        let part = Part { name, words: item.words.clone(), first_row: 0, rows: plan.rows() };
        let shape = item.shape.clone();
        Some(Job { name: decision.name, shape, plan, parts: vec![part], rule: rule.into() })
    }))
}

/// Stacks matrices of one K by their rows.
fn stack_job<'c>(stack: &Stack, items: &HashMap<&str, &Item<'c>>, rules: &Rules) -> Outcome<Found<'c>> {
    let origin = stack.origin();
    let mut sources = Vec::new();
    for name in &stack.sources {
        let Some(&item) = items.get(name.as_str()) else {
            return Err(Failure::usage(format!("{origin}: there is no tensor {name:?}: correct the name")));
        };
        sources.push(item);
    }
    let Some(&first) = sources.first() else {
        return Err(Failure::usage(format!("{origin}: name at least one source")));
    };
    let (format, rule) = match (stack.format()?, rules.decide(&stack.name)?.fate) {
        (Some(format), _) => (Ok(format), origin.clone()),
        (None, Some((Fate::Assign(format), rule))) => (Ok(format), rule.into()),
        (None, Some((Fate::Skip, _))) => return Ok(Ok(None)),
        (None, None) => (default_format(first, rules), origin.clone()),
    };
    Ok(format
        .and_then(|format| stacked(stack, &sources, format))
        .map(|(shape, plan, parts)| Some(Job { name: stack.name.clone(), shape, plan, parts, rule })))
}

type Stacked<'c> = (Vec<u64>, Plan, Vec<Part<'c>>);

fn stacked<'c>(stack: &Stack, sources: &[&Item<'c>], format: Format) -> Result<Stacked<'c>, String> {
    let origin = stack.origin();
    let mut parts = Vec::new();
    let mut rows = 0u64;
    let mut first: Option<(&Item<'_>, u64)> = None;
    for &item in sources {
        check_source(item, format)?;
        let [part_rows, columns] = item.shape[..] else {
            return Err(format!(
                "{origin}: {:?} has shape {:?}; only matrices are stacked: leave it out",
                item.name, item.shape
            ));
        };
        let (other, expected) = *first.get_or_insert((item, columns));
        if columns != expected {
            return Err(format!(
                "{origin}: {:?} has {columns} columns, {:?} has {expected}: stack matrices of one width",
                item.name, other.name
            ));
        }
        if let (Some(own), Some(divisor)) = (divisor(item), divisor(other))
            && own != divisor
        {
            return Err(format!(
                "{origin}: {:?} has divisor word {own:#010x}, {:?} has {divisor:#010x}; an NVFP4 object has one: \
                 keep them apart",
                item.name, other.name
            ));
        }
        plan(&item.name, format, &item.shape)?;
        let name = item.name.clone();
        parts.push(Part { name, words: item.words.clone(), first_row: rows, rows: part_rows });
        rows = rows.saturating_add(part_rows);
    }
    let shape = vec![rows, first.map_or(0, |(_, columns)| columns)];
    let plan = plan(&stack.name, format, &shape)?;
    Ok((shape, plan, parts))
}

/// NVFP4's divisor word of ready-made words.
fn divisor(item: &Item<'_>) -> Option<u32> {
    match item.words {
        Words::Nvfp4 { divisor, .. } => words(divisor.bytes).first().copied(),
        _ => None,
    }
}

/// Plans an object, or says which rule of its layout the shape breaks.
fn plan(name: &str, format: Format, shape: &[u64]) -> Result<Plan, String> {
    Plan::new(format, format.layout(), shape).map_err(|error| {
        let direct = Plan::new(Format::Fp32, Format::Fp32.layout(), shape).is_ok();
        let remedy = match error {
            Error::WrongRank { .. } if direct => {
                format!("assign a direct format with --assign '{name}=BF16' or '{name}=FP32'")
            }
            _ => format!("leave the tensor out with --skip '{name}'"),
        };
        format!("tensor {name:?}, shape {shape:?}, as {format}: {error}; {remedy}")
    })
}

/// The format of an item that no rule decides.
fn default_format(item: &Item<'_>, rules: &Rules) -> Result<Format, String> {
    let name = &item.name;
    let tensor = match (&item.refusal, &item.words) {
        (Some(refusal), _) => return Err(format!("tensor {name:?}: {refusal}")),
        (None, Words::Nvfp4 { .. }) => return Ok(Format::Nvfp4),
        (None, Words::Fp8Row { .. }) => return Ok(Format::Fp8E4M3FnRowBf16S),
        (None, Words::Values(tensor)) => tensor,
    };
    if is_float(tensor.dtype) && tensor.shape.len() == 2 {
        return Ok(rules.default);
    }
    if let Some(format) = direct_twin(tensor.dtype) {
        return Ok(format);
    }
    let way = if is_float(tensor.dtype) {
        format!(
            "--assign '{name}=FP32' takes its values where FP32 holds them exactly, --skip '{name}' leaves it out"
        )
    } else if is_integer(tensor.dtype) {
        format!("--assign '{name}=I32' takes its values where I32 holds them, --skip '{name}' leaves it out")
    } else {
        format!("no format holds such words; --skip '{name}' leaves it out")
    };
    Err(format!("tensor {name:?}, {} {:?}, needs a decision: {way}", tensor.dtype, tensor.shape))
}

/// Whether the format can be made from the item's words.
fn check_source(item: &Item<'_>, format: Format) -> Result<(), String> {
    let name = &item.name;
    if let Some(refusal) = &item.refusal {
        return Err(format!("tensor {name:?}: {refusal}"));
    }
    let own = match item.words {
        Words::Nvfp4 { .. } => Format::Nvfp4,
        Words::Fp8Row { .. } => Format::Fp8E4M3FnRowBf16S,
        Words::Values(tensor) => return check_values(name, &tensor, format),
    };
    if own == format {
        return Ok(());
    }
    Err(format!(
        "tensor {name:?} is ready-made {own} and is never quantized again, to {format}: leave the rule out, or \
         the tensor with --skip '{name}'"
    ))
}

/// Whether the format can be made from plain values.
fn check_values(
    name: &str,
    tensor: &crate::checkpoint::SourceTensor<'_>,
    format: Format,
) -> Result<(), String> {
    let (float, integer) = (is_float(tensor.dtype), is_integer(tensor.dtype));
    let ready_made_only = matches!(format, Format::Nvfp4 | Format::Fp8E4M3FnRowBf16S);
    if !ready_made_only && (float || integer && format == Format::I32) {
        return Ok(());
    }
    let reason = match ready_made_only {
        true => "has no canonical encoder and takes only ready-made words (compressed-tensors)",
        false => "cannot be made from such words",
    };
    let remedy = if float {
        "assign Q4G64_F16S, Q5G64_F16S, Q6G64_F16S, W8G32_F16S, BF16 or FP32".into()
    } else if integer {
        "assign I32".into()
    } else {
        format!("leave it out with --skip '{name}'")
    };
    Err(format!("tensor {name:?}, {} {:?}: {format} {reason}; {remedy}", tensor.dtype, tensor.shape))
}
