//! Which tensors become what: the flags, then the recipe's rules in their order, then the default.

use std::cell::Cell;
use std::path::Path;

use globset::{Glob, GlobMatcher};
use ninfer_codec::Format;
use serde::Deserialize;

use crate::cli::Pack;
use crate::failure::{Failure, Outcome};
use crate::opened::Mapped;

/// Ordered rules. For each question about a tensor the first rule that matches and has an answer decides.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
    pub stacks: Vec<Stack>,
    /// Format of float matrices that no rule decides.
    pub default: Format,
}

#[derive(Debug)]
struct Rule {
    /// How the user wrote it.
    origin: String,
    glob: GlobMatcher,
    fate: Option<Fate>,
    rename: Option<Rename>,
    used: Cell<bool>,
}

/// What becomes of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Skip,
    Assign(Format),
}

/// What the rules say of one tensor.
#[derive(Debug)]
pub struct Decision<'r> {
    /// Its fate and the rule that decided; `None` leaves it to the default.
    pub fate: Option<(Fate, &'r str)>,
    /// The name of the object.
    pub name: String,
}

/// One object from the rows of several tensors.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    pub name: String,
    pub sources: Vec<String>,
    format: Option<String>,
}

/// A recipe file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    default: Option<String>,
    #[serde(default, rename = "rule")]
    rules: Vec<RecipeRule>,
    #[serde(default, rename = "stack")]
    stacks: Vec<Stack>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeRule {
    r#match: String,
    format: Option<String>,
    #[serde(default)]
    skip: bool,
    rename: Option<Rename>,
}

/// The first `from` in the name becomes `to`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rename {
    from: String,
    to: String,
}

impl Rules {
    /// The rules of a command line and its recipe. Flags come first, and `--skip` before `--assign`.
    pub fn new(arguments: &Pack) -> Outcome<Self> {
        let mut rules = Vec::new();
        for glob in &arguments.skip {
            rules.push(Rule::new(format!("--skip '{glob}'"), glob, Some(Fate::Skip), None)?);
        }
        for assign in &arguments.assign {
            let origin = format!("--assign '{assign}'");
            let Some((glob, format)) = assign.rsplit_once('=') else {
                return Err(Failure::usage(format!("{origin}: write GLOB=FORMAT, as in '*.bias=FP32'")));
            };
            let fate = Fate::Assign(format_named(format, &origin)?);
            rules.push(Rule::new(origin, glob, Some(fate), None)?);
        }
        let recipe = match &arguments.recipe {
            Some(path) => read_recipe(path)?,
            None => Recipe::default(),
        };
        for (number, rule) in (1..).zip(recipe.rules) {
            rules.push(Rule::of_recipe(number, rule)?);
        }
        for stack in &recipe.stacks {
            stack.format()?;
        }
        let default = match (&arguments.default, &recipe.default) {
            (Some(name), _) => format_named(name, "--default")?,
            (None, Some(name)) => format_named(name, "recipe, default")?,
            (None, None) => Format::Q4G64F16S,
        };
        if default.scheme().is_none() && !matches!(default, Format::Bf16 | Format::Fp32) {
            let message = "cannot be made from float values: choose BF16, FP32 or one of Q4, Q5, Q6, W8";
            return Err(Failure::usage(format!("--default {default}: {message}")));
        }
        Ok(Self { rules, stacks: recipe.stacks, default })
    }

    /// What becomes of the tensor or stack of this name.
    pub fn decide(&self, name: &str) -> Outcome<Decision<'_>> {
        let mut fate = None;
        let mut rename = None;
        for rule in self.rules.iter().filter(|rule| rule.glob.is_match(name)) {
            rule.used.set(true);
            if let (None, Some(found)) = (fate, rule.fate) {
                fate = Some((found, rule.origin.as_str()));
            }
            if let (None, Some(found)) = (&rename, &rule.rename) {
                rename = Some(found.apply(name, &rule.origin)?);
            }
        }
        Ok(Decision { fate, name: rename.unwrap_or_else(|| name.into()) })
    }

    /// Refuses rules that match nothing: most likely a slip of the pen.
    pub fn check_used(&self) -> Outcome<()> {
        match self.rules.iter().find(|rule| !rule.used.get()) {
            Some(rule) => Err(Failure::usage(format!(
                "{} matches no tensor: correct the pattern, or leave the rule out",
                rule.origin
            ))),
            None => Ok(()),
        }
    }
}

impl Rule {
    fn new(origin: String, glob: &str, fate: Option<Fate>, rename: Option<Rename>) -> Outcome<Self> {
        let glob = Glob::new(glob).map_err(|error| Failure::usage(format!("{origin}: {error}")))?;
        Ok(Self { origin, glob: glob.compile_matcher(), fate, rename, used: Cell::new(false) })
    }

    fn of_recipe(number: usize, rule: RecipeRule) -> Outcome<Self> {
        let origin = format!("recipe, rule {number} ({})", rule.r#match);
        let fate = match (rule.format, rule.skip) {
            (Some(_), true) => {
                return Err(Failure::usage(format!(
                    "{origin}: a rule has either format or skip: leave one out"
                )));
            }
            (Some(name), false) => Some(Fate::Assign(format_named(&name, &origin)?)),
            (None, true) => Some(Fate::Skip),
            (None, false) if rule.rename.is_none() => {
                return Err(Failure::usage(format!(
                    "{origin}: give the rule a format, skip = true or a rename"
                )));
            }
            (None, false) => None,
        };
        Self::new(origin, &rule.r#match, fate, rule.rename)
    }
}

impl Rename {
    fn apply(&self, name: &str, origin: &str) -> Outcome<String> {
        if !name.contains(&self.from) {
            return Err(Failure::usage(format!(
                "{origin}: tensor {name:?} does not contain {:?}, which is to become {:?}: correct the pattern",
                self.from, self.to
            )));
        }
        Ok(name.replacen(&self.from, &self.to, 1))
    }
}

impl Stack {
    /// The format that the recipe asks for.
    pub fn format(&self) -> Outcome<Option<Format>> {
        self.format.as_ref().map(|name| format_named(name, &self.origin())).transpose()
    }

    /// How errors call the stack.
    pub fn origin(&self) -> String {
        format!("recipe, stack {:?}", self.name)
    }
}

fn read_recipe(path: &Path) -> Outcome<Recipe> {
    let file = Mapped::open(path)?;
    let refuse = |offset: usize, reason: &str| {
        let line = file[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1;
        Failure::usage(format!("recipe {}, line {line}: {reason}", path.display()))
    };
    let text = std::str::from_utf8(&file)
        .map_err(|error| refuse(error.valid_up_to(), "this is not UTF-8: write the recipe as UTF-8 text"))?;
    toml::from_str(text).map_err(|error| refuse(error.span().map_or(0, |span| span.start), error.message()))
}

/// The format of this name; `origin` says where the name stands.
pub fn format_named(name: &str, origin: &str) -> Outcome<Format> {
    Format::from_name(name.as_bytes()).map_err(|_| {
        let names = Format::ALL.map(Format::name).join(", ");
        Failure::usage(format!("{origin}: there is no format {name:?}; the formats are {names}"))
    })
}
