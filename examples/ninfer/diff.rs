//! `diff`: how two artifacts differ, by objects, words and values.

use std::collections::BTreeMap;

use ninfer_artifact::{Artifact, Kind, Object};
use ninfer_codec::{Error, Format, Plan, Tensor, WordsMut};
use rayon::prelude::*;

use crate::blocks::{Block, parallel_blocks};
use crate::cli::{Diff, Settings};
use crate::failure::{Code, Failure, Outcome};
use crate::opened::Mapped;
use crate::table::{grouped, shape};
use crate::words::to_little_endian;
use crate::{console, progress};

pub fn run(arguments: &Diff, settings: &Settings) -> Outcome<()> {
    progress::start(settings)?;
    let (a, b) = (Mapped::open(&arguments.a)?, Mapped::open(&arguments.b)?);
    let (a, b) = (a.artifact()?, b.artifact()?);
    let mut lines = Vec::new();
    let (left, right) = (a.directory().identity(), b.directory().identity());
    if left != right {
        lines.push(format!(
            "identity: model {:?}, weights {:?} / model {:?}, weights {:?}",
            left.model_id, left.weights_id, right.model_id, right.weights_id
        ));
    }
    let (in_a, in_b) = (by_name(&a), by_name(&b));
    let only = |these: &BTreeMap<&str, _>, those: &BTreeMap<&str, _>, path: &std::path::Path| {
        let missing = these.keys().filter(|name| !those.contains_key(*name));
        missing.map(|name| format!("{name:?}: only in {}", path.display())).collect::<Vec<_>>()
    };
    lines.extend(only(&in_a, &in_b, &arguments.a));
    lines.extend(only(&in_b, &in_a, &arguments.b));
    let common: Vec<_> = in_a.iter().filter_map(|(name, left)| Some((name, left, in_b.get(name)?))).collect();
    let bar = progress::bar(settings, common.iter().map(|(_, left, _)| left.bytes()).sum());
    let compared = common
        .par_iter()
        .map(|(name, left, right)| {
            let difference = compare(&a, left, &b, right)?;
            bar.inc(left.bytes());
            Ok(difference.map(|line| format!("{name:?}: {line}")))
        })
        .collect::<Outcome<Vec<_>>>()?;
    bar.finish_and_clear();
    let same = compared.iter().filter(|line| line.is_none()).count();
    lines.extend(compared.into_iter().flatten());
    for line in &lines {
        console::line(line)?;
    }
    match lines.len() {
        0 if settings.quiet => Ok(()),
        0 => console::line(format_args!("all {same} objects are the same")),
        count => {
            let line = format!("differences: {count}; objects that are the same: {same}");
            Err(Failure { code: Code::Found, lines: vec![line] })
        }
    }
}

fn by_name<'a>(artifact: &'a Artifact<'_>) -> BTreeMap<&'a str, &'a Object> {
    artifact.directory().objects().iter().map(|object| (object.name(), object)).collect()
}

/// Says how two objects of one name differ; `None` where they do not.
fn compare(a: &Artifact<'_>, left: &Object, b: &Artifact<'_>, right: &Object) -> Outcome<Option<String>> {
    let describe = |object: &Object| match object.kind() {
        Kind::Tensor { shape: dimensions, plan } => format!("{} {}", plan.format(), shape(dimensions)),
        Kind::Resource { encoding } => format!("{} of {} bytes", encoding.name(), grouped(object.bytes())),
    };
    let same_kind = left.kind() == right.kind() && left.bytes() == right.bytes();
    if same_kind && a.payload(left) == b.payload(right) {
        return Ok(None);
    }
    let header = if same_kind { String::new() } else { format!("{} / {}", describe(left), describe(right)) };
    let (Some(one), Some(other)) = (a.tensor(left), b.tensor(right)) else {
        return Ok(Some(if same_kind { "bytes differ".into() } else { header }));
    };
    if one.plan().rows() != other.plan().rows() || one.plan().columns() != other.plan().columns() {
        return Ok(Some(header));
    }
    let sides = [(&one, a.payload(left)), (&other, b.payload(right))];
    let blocks =
        parallel_blocks(if one.plan().format() == Format::Nvfp4 { one.plan() } else { other.plan() });
    let differences = blocks
        .map(|block| {
            progress::check()?;
            Ok(Difference::of(sides, block))
        })
        .collect::<Outcome<Vec<_>>>()?;
    // The first error is the one that is said, whatever thread meets one first.
    let total = differences.into_iter().collect::<Result<Vec<_>, Error>>().map(|differences| {
        let mut total = differences.into_iter().fold(Difference::default(), Difference::then);
        if total.same_words() {
            total.padding = count(a.payload(left), b.payload(right)).0;
        }
        total.to_string()
    });
    let total = total.unwrap_or_else(|error| format!("cannot be compared: {error}; see what verify says"));
    Ok(Some([header, total].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")))
}

/// How a block of two tensors differs.
#[derive(Default)]
struct Difference {
    /// Words that differ, of how many; absent where the formats are not the same.
    codes: Option<(u64, u64)>,
    scales: Option<(u64, u64)>,
    divisor: bool,
    /// Values that differ, of how many; absent where a side has no float values.
    values: Option<(u64, u64)>,
    /// The largest distance of values that differ, neither a NaN, and where it is first.
    largest: Option<(f64, Place)>,
    /// Values that differ with a NaN on one side or both, and where the first is.
    nans: Option<(u64, Place)>,
    /// Bytes that differ where all words are the same.
    padding: u64,
}

/// Row and column.
type Place = (u64, u64);

impl Difference {
    /// Compares a block of two tensors, each with its payload.
    fn of(sides: [(&Tensor<'_>, &[u8]); 2], block: Block) -> Result<Self, Error> {
        let [(one, one_payload), (other, other_payload)] = sides;
        let (format, other_format) = (one.plan().format(), other.plan().format());
        let mut difference = Self::default();
        if format != Format::I32 && other_format != Format::I32 {
            let (left, right) = (values(one, block)?, values(other, block)?);
            let differ = |(a, b): (&f32, &f32)| a.to_bits() != b.to_bits();
            let number = left.iter().zip(&right).filter(|&pair| differ(pair)).count() as u64;
            difference.values = Some((number, left.len() as u64));
            for (index, (a, b)) in (0..).zip(left.iter().zip(&right)).filter(|&(_, pair)| differ(pair)) {
                let place = (block.row + index / block.columns, block.column + index % block.columns);
                if a.is_nan() || b.is_nan() {
                    difference.nans = more(difference.nans, Some((1, place)));
                } else {
                    let distance = (f64::from(*a) - f64::from(*b)).abs();
                    difference.largest = larger(difference.largest, Some((distance, place)));
                }
            }
        }
        if format == other_format {
            let (one, other) =
                (Words::of_block(one, one_payload, block)?, Words::of_block(other, other_payload, block)?);
            difference.codes = Some(one.codes_that_differ(&other));
            difference.scales = (!one.scales.is_empty()).then(|| count(&one.scales, &other.scales));
            difference.divisor = one.divisor != other.divisor;
        }
        Ok(difference)
    }

    /// Whether the formats are the same, and no word differs.
    fn same_words(&self) -> bool {
        let same = |count: Option<(u64, u64)>| count.is_none_or(|(differ, _)| differ == 0);
        self.codes.is_some() && same(self.codes) && same(self.scales) && !self.divisor
    }

    /// Adds the rows that follow.
    fn then(self, next: Self) -> Self {
        let add = |a: Option<(u64, u64)>, b: Option<(u64, u64)>| match (a, b) {
            (Some(a), Some(b)) => Some((a.0 + b.0, a.1 + b.1)),
            (a, b) => a.or(b),
        };
        Self {
            codes: add(self.codes, next.codes),
            scales: add(self.scales, next.scales),
            divisor: self.divisor || next.divisor,
            values: add(self.values, next.values),
            largest: larger(self.largest, next.largest),
            nans: more(self.nans, next.nans),
            padding: self.padding + next.padding,
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        for (name, count) in [("codes", self.codes), ("scales", self.scales)] {
            if let Some((differ, all)) = count {
                parts.push(format!("{name}: {} of {} differ", grouped(differ), grouped(all)));
            }
        }
        if self.divisor {
            parts.push("the divisors differ".into());
        }
        if self.padding > 0 {
            parts.push(format!("padding bytes differ: {}", grouped(self.padding)));
        } else if let Some((differ, all)) = self.values {
            parts.push(match differ {
                0 => "no value differs".into(),
                _ => format!("values: {} of {} differ{}", grouped(differ), grouped(all), self.sizes()),
            });
        }
        f.write_str(&parts.join("; "))
    }
}

impl Difference {
    /// By how much the values differ, and where.
    fn sizes(&self) -> String {
        let mut text = String::new();
        if let Some((largest, (row, column))) = self.largest {
            text += &format!(", by at most {largest:.3e} at row {row}, column {column}");
        }
        if let Some((number, (row, column))) = self.nans {
            let number = if self.largest.is_some() { grouped(number) } else { "all".into() };
            text += &format!(", {number} with a NaN on a side, the first at row {row}, column {column}");
        }
        text
    }
}

/// The larger distance; the first of two that are as large.
fn larger(a: Option<(f64, Place)>, b: Option<(f64, Place)>) -> Option<(f64, Place)> {
    match (a, b) {
        (Some(first), Some(next)) => Some(if next.0 > first.0 { next } else { first }),
        (a, b) => a.or(b),
    }
}

/// The sum of two numbers, and the first place.
fn more(a: Option<(u64, Place)>, b: Option<(u64, Place)>) -> Option<(u64, Place)> {
    match (a, b) {
        (Some(first), Some(next)) => Some((first.0 + next.0, first.1)),
        (a, b) => a.or(b),
    }
}

/// The natural words of a block.
struct Words {
    codes: Vec<u8>,
    /// Bits of one code word.
    code_bits: u32,
    scales: Vec<u16>,
    divisor: u32,
}

impl Words {
    /// The words of a block of a tensor. A scale a row belongs to the first block of the row.
    fn of_block(tensor: &Tensor<'_>, payload: &[u8], block: Block) -> Result<Self, Error> {
        let whole = tensor.plan();
        if block.columns == whole.columns() {
            return Self::of(&tensor.rows(block.row, block.rows)?);
        }
        // Words are unpacked by rows: a piece of one is a tensor of its own.
        let plan = Plan::new(whole.format(), whole.layout(), &[block.rows, block.columns])?;
        let mut own = vec![0; plan.payload_bytes() as usize];
        let scales_by_column = whole.format() != Format::Fp8E4M3FnRowBf16S;
        for (from, to, by_column) in [
            (whole.codes(), plan.codes(), true),
            (whole.high(), plan.high(), true),
            (whole.scales(), plan.scales(), scales_by_column),
        ] {
            let column = if by_column { block.column } else { 0 };
            let share = u128::from(column) * u128::from(from.row_bytes) / u128::from(whole.padded_columns());
            let begin = (from.offset + block.row * from.row_bytes) as usize + share as usize;
            let bytes = to.bytes as usize;
            own[to.offset as usize..][..bytes].copy_from_slice(&payload[begin..][..bytes]);
        }
        let mut words = Self::of(&Tensor::new(plan, &own)?)?;
        if !scales_by_column && block.column > 0 {
            words.scales.clear();
        }
        Ok(words)
    }

    fn of(view: &Tensor<'_>) -> Result<Self, Error> {
        let plan = view.plan();
        let elements = (view.count() * plan.columns()) as usize;
        let groups = (view.count() * plan.logical_groups()) as usize;
        let mut words = Self {
            codes: Vec::new(),
            code_bits: plan.format().descriptor().code_bits,
            scales: Vec::new(),
            divisor: 0,
        };
        match plan.format() {
            Format::Bf16 => {
                let mut own = vec![0; elements];
                view.unpack(WordsMut::Bf16(&mut own))?;
                words.codes = to_little_endian(&own);
            }
            Format::Fp32 => {
                let mut own = vec![0; elements];
                view.unpack(WordsMut::Fp32(&mut own))?;
                words.codes = to_little_endian(&own);
            }
            Format::I32 => {
                let mut own = vec![0; elements];
                view.unpack(WordsMut::I32(&mut own))?;
                words.codes = to_little_endian(&own);
            }
            Format::Nvfp4 => {
                let mut scales = vec![0u8; groups];
                words.codes = vec![0; elements / 2];
                let divisor = &mut words.divisor;
                view.unpack(WordsMut::Nvfp4 { codes: &mut words.codes, scales: &mut scales, divisor })?;
                words.scales = scales.into_iter().map(u16::from).collect();
            }
            Format::Fp8E4M3FnRowBf16S => {
                words.codes = vec![0; elements];
                words.scales = vec![0; groups];
                view.unpack(WordsMut::Fp8Row { codes: &mut words.codes, scales: &mut words.scales })?;
            }
            Format::Q4G64F16S | Format::Q5G64F16S | Format::Q6G64F16S | Format::W8G32F16S => {
                let mut codes = vec![0i8; elements];
                words.scales = vec![0; groups];
                view.unpack(WordsMut::Grouped { codes: &mut codes, scales: &mut words.scales })?;
                words.codes = to_little_endian(&codes);
                words.code_bits = 8; // unpacked to a byte each
            }
        }
        Ok(words)
    }

    fn codes_that_differ(&self, other: &Self) -> (u64, u64) {
        match self.code_bits {
            4 => {
                let differ =
                    |(a, b): (&u8, &u8)| u64::from((a ^ b) & 0xf != 0) + u64::from((a ^ b) >> 4 != 0);
                (self.codes.iter().zip(&other.codes).map(differ).sum(), self.codes.len() as u64 * 2)
            }
            16 => count(self.codes.as_chunks::<2>().0, other.codes.as_chunks::<2>().0),
            32 => count(self.codes.as_chunks::<4>().0, other.codes.as_chunks::<4>().0),
            _ => count(&self.codes, &other.codes),
        }
    }
}

/// How many words differ, of how many.
fn count<T: PartialEq>(one: &[T], other: &[T]) -> (u64, u64) {
    (one.iter().zip(other).filter(|(a, b)| a != b).count() as u64, one.len() as u64)
}

/// The values of a block.
fn values(tensor: &Tensor<'_>, block: Block) -> Result<Vec<f32>, Error> {
    let mut values = vec![0.0; (block.rows * block.columns) as usize];
    let rows = tensor.rows(block.row, block.rows)?;
    rows.decode_columns(block.column, block.columns, &mut values[..], block.columns as usize)?;
    Ok(values)
}
