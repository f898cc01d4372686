//! Which tensors become what: the flags, then the recipe, then the default.

use std::cell::Cell;

use globset::{Glob, GlobMatcher};
use ninfer_codec::Format;

use crate::cli::Pack;
use crate::failure::{Failure, Outcome};

/// Ordered rules. For each question about a tensor the first rule that matches and has an answer decides.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
    /// Format of float matrices that no rule decides.
    pub default: Format,
}

#[derive(Debug)]
struct Rule {
    /// How the user wrote it.
    origin: String,
    glob: GlobMatcher,
    action: Action,
    used: Cell<bool>,
}

#[derive(Debug)]
enum Action {
    Skip,
    Assign(Format),
}

/// What the rules say of one tensor.
#[derive(Debug)]
pub enum Decision<'r> {
    Skip,
    Assign(Format, &'r str),
    Nothing,
}

impl Rules {
    /// Rules of the command line. `--skip` comes before `--assign`.
    pub fn new(arguments: &Pack) -> Outcome<Self> {
        let mut rules = Vec::new();
        for glob in &arguments.skip {
            rules.push(Rule::new(format!("--skip '{glob}'"), glob, Action::Skip)?);
        }
        for assign in &arguments.assign {
            let origin = format!("--assign '{assign}'");
            let Some((glob, format)) = assign.rsplit_once('=') else {
                return Err(Failure::usage(format!("{origin}: write GLOB=FORMAT, as in '*.bias=FP32'")));
            };
            let action = Action::Assign(format_named(format, &origin)?);
            rules.push(Rule::new(origin, glob, action)?);
        }
        let default = match &arguments.default {
            Some(name) => format_named(name, "--default")?,
            None => Format::Q4G64F16S,
        };
        if default.scheme().is_none() && !matches!(default, Format::Bf16 | Format::Fp32) {
            let message = "cannot be made from float values: choose BF16, FP32 or one of Q4, Q5, Q6, W8";
            return Err(Failure::usage(format!("--default {}: {message}", default.name())));
        }
        Ok(Self { rules, default })
    }

    /// What becomes of the tensor of this name.
    pub fn decide(&self, name: &str) -> Decision<'_> {
        let Some(rule) = self.rules.iter().find(|rule| rule.glob.is_match(name)) else {
            return Decision::Nothing;
        };
        rule.used.set(true);
        match rule.action {
            Action::Skip => Decision::Skip,
            Action::Assign(format) => Decision::Assign(format, &rule.origin),
        }
    }

    /// Refuses rules that matched nothing: most likely a slip of the pen.
    pub fn check_used(&self) -> Outcome<()> {
        match self.rules.iter().find(|rule| !rule.used.get()) {
            Some(rule) => Err(Failure::usage(format!(
                "{} decides about no tensor: correct the pattern or leave it out",
                rule.origin
            ))),
            None => Ok(()),
        }
    }
}

impl Rule {
    fn new(origin: String, glob: &str, action: Action) -> Outcome<Self> {
        let glob = Glob::new(glob).map_err(|error| Failure::usage(format!("{origin}: {error}")))?;
        Ok(Self { origin, glob: glob.compile_matcher(), action, used: Cell::new(false) })
    }
}

/// The format of this name; `origin` says where the name stands.
pub fn format_named(name: &str, origin: &str) -> Outcome<Format> {
    Format::from_name(name.as_bytes()).map_err(|_| {
        let names = Format::ALL.map(Format::name).join(", ");
        Failure::usage(format!("{origin}: there is no format {name:?}; the formats are {names}"))
    })
}
