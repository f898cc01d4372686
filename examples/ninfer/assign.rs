//! What each tensor becomes: the objects of the artifact, before any weight is read.

use ninfer_codec::{Error, Format, Plan};
use safetensors::Dtype;

use crate::checkpoint::Checkpoint;
use crate::failure::{Code, Failure, Outcome};
use crate::import::{self, Item, Words};
use crate::rules::{Decision, Rules};
use crate::words::{direct_twin, is_float, is_integer};

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
    pub words: Words<'c>,
    pub first_row: u64,
    pub rows: u64,
}

impl Job<'_> {
    /// Bytes to be read.
    pub fn source_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.words.bytes()).sum()
    }

    /// How the words come about.
    pub fn encoder(&self) -> &'static str {
        let copied = |part: &Part| match part.words {
            Words::Values(tensor) => direct_twin(tensor.dtype) == Some(self.plan.format()),
            Words::Nvfp4 { .. } | Words::Fp8Row { .. } => true,
        };
        if self.plan.format().scheme().is_some() {
            ninfer_codec::EncoderProfile::MaxabsF16RecipRneV1.name()
        } else if self.parts.iter().all(copied) {
            "copied"
        } else {
            "exact"
        }
    }
}

/// Decides about every tensor; refuses with a line for each tensor that needs a decision.
pub fn jobs<'c>(checkpoint: &'c Checkpoint, rules: &Rules) -> Outcome<Vec<Job<'c>>> {
    let mut jobs = Vec::new();
    let mut refusals = Vec::new();
    for item in import::items(checkpoint) {
        match job(item, rules) {
            Ok(Some(job)) => jobs.push(job),
            Ok(None) => {}
            Err(line) => refusals.push(line),
        }
    }
    rules.check_used()?;
    if !refusals.is_empty() {
        return Err(Failure { code: Code::Refused, lines: refusals });
    }
    if jobs.is_empty() {
        return Err(Failure::refused("no tensor is left to pack: skip fewer"));
    }
    Ok(jobs)
}

fn job<'c>(item: Item<'c>, rules: &Rules) -> Result<Option<Job<'c>>, String> {
    let (format, rule) = match rules.decide(&item.name) {
        Decision::Skip => return Ok(None),
        Decision::Assign(format, rule) => (format, rule.to_string()),
        Decision::Nothing => (default_format(&item, rules)?, "default".to_string()),
    };
    check_source(&item, format)?;
    let Item { name, shape, words, .. } = item;
    let plan = plan(&name, format, &shape)?;
    let part = Part { words, first_row: 0, rows: plan.rows() };
    Ok(Some(Job { name, shape, plan, parts: vec![part], rule }))
}

/// Plans an object, or says which rule of its layout the shape breaks.
fn plan(name: &str, format: Format, shape: &[u64]) -> Result<Plan, String> {
    Plan::new(format, format.layout(), shape).map_err(|error| {
        let remedy = match error {
            Error::WrongRank { .. } if direct_remedy(shape) => {
                format!("assign a direct format with --assign '{name}=BF16' or '{name}=FP32'")
            }
            _ => format!("leave the tensor out with --skip '{name}'"),
        };
        format!("tensor {name:?}, shape {shape:?}, as {}: {error}; {remedy}", format.name())
    })
}

/// Whether a direct format could hold the shape.
fn direct_remedy(shape: &[u64]) -> bool {
    Plan::new(Format::Fp32, Format::Fp32.layout(), shape).is_ok()
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
        Words::Nvfp4 { .. } => Some(Format::Nvfp4),
        Words::Fp8Row { .. } => Some(Format::Fp8E4M3FnRowBf16S),
        Words::Values(_) => None,
    };
    if let Some(own) = own {
        return if own == format {
            Ok(())
        } else {
            Err(format!(
                "tensor {name:?} is ready-made {} and is never quantized again, to {}: leave the rule out, or the \
                 tensor with --skip '{name}'",
                own.name(),
                format.name()
            ))
        };
    }
    let Words::Values(tensor) = item.words else { return Ok(()) };
    let possible = match format {
        Format::Bf16 | Format::Fp32 => is_float(tensor.dtype),
        Format::I32 => is_float(tensor.dtype) || is_integer(tensor.dtype),
        Format::Nvfp4 | Format::Fp8E4M3FnRowBf16S => false,
        _ => is_float(tensor.dtype),
    };
    if possible {
        return Ok(());
    }
    let reason = match format {
        Format::Nvfp4 | Format::Fp8E4M3FnRowBf16S => {
            "has no canonical encoder and takes only ready-made words (compressed-tensors)"
        }
        _ => "cannot be made from such words",
    };
    let other = match tensor.dtype {
        dtype if is_float(dtype) => "Q4G64_F16S, Q5G64_F16S, Q6G64_F16S, W8G32_F16S, BF16 or FP32",
        dtype if is_integer(dtype) => "I32",
        Dtype::BOOL => "nothing: leave it out with --skip",
        _ => "nothing: leave it out with --skip",
    };
    let format = format.name();
    Err(format!("tensor {name:?}, {} {:?}: {format} {reason}; assign {other}", tensor.dtype, tensor.shape))
}
