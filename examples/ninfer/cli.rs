//! The command line.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

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
  1    a checkpoint, tensor, value or artifact was refused; verify found a violation, or diff a
       difference
  2    the command line or the recipe is wrong
  3    a file could not be read or written, or a thread could not be started
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
    Report(Report),
    Inspect(Inspect),
    Verify(Verify),
    Unpack(Unpack),
    Diff(Diff),
    Plan(Plan),
    Bench(Bench),
    Completions(Completions),
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
    #[arg(value_name = "INPUT")]
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
    /// A TOML file of rules, which come after --skip and --assign
    #[arg(long, value_name = "FILE", long_help = RECIPE_HELP)]
    pub recipe: Option<PathBuf>,
    /// Put a file in as it is
    #[arg(long, value_name = "NAME=FILE")]
    pub resource: Vec<String>,
    /// The artifact's model id [default: the input's name]
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub model_id: Option<String>,
    /// The artifact's weights id [default: the input's name]
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub weights_id: Option<String>,
    /// Print the exact sizes and write nothing; no weight is read
    #[arg(long)]
    pub dry_run: bool,
}

const RECIPE_HELP: &str = "\
A TOML file of rules, which come after --skip and --assign. For each question about a tensor
the first rule that matches its name and has an answer decides.

  default = \"Q4G64_F16S\"

  [[rule]]
  match = \"*.embed_tokens.weight\"
  format = \"W8G32_F16S\"

  [[rule]]
  match = \"*.rotary_emb.*\"
  skip = true

  [[rule]]
  match = \"model.*\"
  rename = { from = \"model.\", to = \"\" }

  [[stack]]
  name = \"layers.0.qkv.weight\"
  sources = [\"layers.0.q.weight\", \"layers.0.k.weight\", \"layers.0.v.weight\"]
  format = \"Q5G64_F16S\"";

const PACK_EXAMPLES: &str = "\
Examples:
  ninfer pack
  ninfer pack model.safetensors -o model.ninfer
  ninfer pack folder --dry-run
  ninfer pack folder -o model.ninfer --default Q6G64_F16S --assign '*.lm_head.*=W8G32_F16S'
  ninfer pack folder -o model.ninfer --skip '*.rotary_emb.*' --assign '*.position_ids=I32'
  ninfer pack folder -o model.ninfer --recipe recipe.toml --resource tokenizer=tokenizer.json

Inputs are regular files, and must not change while the tool runs.

The report is written beside the artifact, as OUT.report.json. Both appear when they are complete
and on the disk; before, they have no name, so that even SIGKILL leaves nothing behind. Where a file
system cannot do that (no O_TMPFILE), and for the moment in which an older output is replaced, a
temporary name is used: SIGINT, SIGTERM and SIGHUP remove it, SIGKILL cannot. An output that is an
input, or that is no regular file, is refused.";

/// List the objects of an artifact and its totals by format; no payload is read
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ninfer inspect model.ninfer
  ninfer inspect model.ninfer --tree
  ninfer inspect model.ninfer --json | jq '.objects[].name'")]
pub struct Inspect {
    /// The artifact
    pub file: PathBuf,
    /// Show sizes by the dotted parts of the names instead
    #[arg(long, conflicts_with = "json")]
    pub tree: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Check an artifact's directory and every payload
#[derive(Debug, Args)]
#[command(after_help = "\
Every object that breaks its format is named with its first violation; then the exit code is 1.

Example:
  ninfer verify model.ninfer")]
pub struct Verify {
    /// The artifact
    pub file: PathBuf,
}

/// Make a page out of a conversion report
#[derive(Debug, Args)]
#[command(after_help = "\
The page is one file, with a table that sorts and with plots: error by tensor, bits against SNR,
and how often each code of one tensor is used.

Examples:
  ninfer report model.ninfer.report.json -o model.html
  ninfer report model.ninfer.report.json -o model.html --tensor lm_head.weight")]
pub struct Report {
    /// The report that `pack` wrote
    pub file: PathBuf,
    /// The page to write
    #[arg(long, short, value_name = "OUT")]
    pub output: PathBuf,
    /// The tensor whose codes are shown [default: the one with the largest relative RMSE]
    #[arg(long, value_name = "NAME")]
    pub tensor: Option<String>,
}

/// Decode an artifact to a safetensors file
#[derive(Debug, Args)]
#[command(after_help = "\
Quantized tensors are decoded to --type; BF16, FP32 and I32 tensors keep their own words. With
--words NVFP4 and FP8 tensors are not decoded but written as compressed-tensors spells them:
X.weight_packed, X.weight_scale and X.weight_global_scale; X.weight and X.weight_scale. Resources
have no place in a safetensors file.

Examples:
  ninfer unpack model.ninfer -o model.safetensors --type bf16
  ninfer unpack model.ninfer -o model.safetensors --words")]
pub struct Unpack {
    /// The artifact
    pub file: PathBuf,
    /// The safetensors file to write
    #[arg(long, short, value_name = "OUT")]
    pub output: PathBuf,
    /// Type to decode quantized tensors to
    #[arg(long, value_enum, default_value = "f32", value_name = "TYPE")]
    pub r#type: Float,
    /// Write NVFP4 and FP8 word for word
    #[arg(long)]
    pub words: bool,
}

/// A type to decode to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Float {
    F32,
    Bf16,
    F16,
}

/// Compare two artifacts: objects, words and values
#[derive(Debug, Args)]
#[command(after_help = "\
Where the objects lie in the files makes no difference. The exit code is 1 if anything else differs.

Example:
  ninfer diff old.ninfer new.ninfer")]
pub struct Diff {
    /// One artifact
    pub a: PathBuf,
    /// The other
    pub b: PathBuf,
}

/// Print where the bytes of a tensor lie
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ninfer plan Q4G64_F16S 7168x5120\n  ninfer plan BF16 scalar")]
pub struct Plan {
    /// One of the nine formats
    pub format: String,
    /// Dimensions, as in 7168x5120; `scalar` has none
    pub shape: String,
}

/// Measure how fast an artifact's tensors decode
#[derive(Debug, Args)]
#[command(after_help = "\
One thread decodes each tensor to f32 (I32 to its words), block by block; the read loop sums the
payload's bytes as 64-bit words. Each is the median of five runs.

Example:
  ninfer bench model.ninfer")]
pub struct Bench {
    /// The artifact
    pub file: PathBuf,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  ninfer completions bash > ~/.local/share/bash-completion/completions/ninfer"
)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}
