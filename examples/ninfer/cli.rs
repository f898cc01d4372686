//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Converts checkpoints to .ninfer artifacts, and inspects, verifies and unpacks them.
#[derive(Debug, Parser)]
#[command(name = "ninfer", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub settings: Settings,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    verify found a violation, or diff a difference
  2    the command line or the recipe is wrong
  3    a checkpoint, tensor, value or artifact was refused
  4    a file could not be read or written
  130  stopped by a signal; no file was left behind

NO_COLOR and the usual variables of that kind turn colours off.";

/// What every subcommand takes.
#[derive(Debug, Args)]
pub struct Settings {
    /// Threads to work with; the bytes written are the same for any number [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print nothing but errors and what was asked for
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Pack(Pack),
    Inspect(Inspect),
    Verify(Verify),
}

/// Convert a safetensors checkpoint to an artifact
///
/// Without INPUT the bundled slice of a real model is packed.
///
/// Every float matrix goes to --default, every other F32, BF16 and I32 tensor is kept as it is, ready-made
/// NVFP4 and FP8 words (compressed-tensors) are copied, and anything else needs an --assign or a --skip.
#[derive(Clone, Debug, Args)]
#[command(after_help = PACK_EXAMPLES)]
pub struct Pack {
    /// A .safetensors file, a model.safetensors.index.json, or a folder with either
    #[arg(value_name = "INPUT", requires = "output")]
    pub input: Option<PathBuf>,
    /// The artifact to write
    #[arg(long, short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Format of the tensors whose names match; the first --assign that matches wins
    #[arg(long, value_name = "GLOB=FORMAT")]
    pub assign: Vec<String>,
    /// Format of float matrices that nothing else decides [default: Q4G64_F16S]
    #[arg(long, value_name = "FORMAT")]
    pub default: Option<String>,
    /// Leave the tensors out whose names match
    #[arg(long, value_name = "GLOB")]
    pub skip: Vec<String>,
    /// The artifact's model id [default: the input's name]
    #[arg(long, value_name = "ID")]
    pub model_id: Option<String>,
    /// The artifact's weights id [default: the input's name]
    #[arg(long, value_name = "ID")]
    pub weights_id: Option<String>,
}

const PACK_EXAMPLES: &str = "\
Examples:
  ninfer pack
  ninfer pack model.safetensors -o model.ninfer
  ninfer pack model.safetensors -o model.ninfer --default Q6G64_F16S --assign '*.embed_tokens.*=W8G32_F16S'
  ninfer pack model.safetensors -o model.ninfer --skip '*.rotary_emb.*' --assign '*.position_ids=I32'";

/// List the objects of an artifact
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ninfer inspect model.ninfer")]
pub struct Inspect {
    /// The artifact
    pub file: PathBuf,
}

/// Check an artifact's directory and every payload
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ninfer verify model.ninfer")]
pub struct Verify {
    /// The artifact
    pub file: PathBuf,
}
