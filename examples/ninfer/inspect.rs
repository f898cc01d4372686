//! `inspect`: what an artifact's directory says. No payload is read.

use std::collections::{BTreeMap, HashSet};

use ninfer_artifact::{Directory, Kind, Object};
use serde::Serialize;

use crate::cli::Inspect;
use crate::console;
use crate::failure::{Failure, Outcome};
use crate::opened::Mapped;
use crate::table::{Table, bits_per_weight, grouped, shape};

/// Parts of a name that the tree tells apart.
const DEEPEST: usize = 16;

#[derive(Serialize)]
struct Listing<'a> {
    model_id: &'a str,
    weights_id: &'a str,
    payload_offset: u64,
    file_bytes: u64,
    objects: Vec<Entry<'a>>,
    totals: Vec<Total>,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<&'a [u64]>,
    /// A numeric format, or the encoding of a resource.
    format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<&'static str>,
    offset: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bits_per_weight: Option<f64>,
}

#[derive(Serialize)]
struct Total {
    format: &'static str,
    objects: u64,
    elements: u64,
    bytes: u64,
}

pub fn run(arguments: &Inspect) -> Outcome<()> {
    let file = Mapped::open(&arguments.file)?;
    let artifact = file.artifact()?;
    let directory = artifact.directory();
    let entries: Vec<_> = directory.objects().iter().map(entry).collect();
    let identity = directory.identity();
    let (model_id, weights_id) = (identity.model_id.as_str(), identity.weights_id.as_str());
    if arguments.json {
        let payload_offset = directory.payload_offset();
        let file_bytes = file.len() as u64;
        let totals = totals(directory);
        let listing = Listing { model_id, weights_id, payload_offset, file_bytes, objects: entries, totals };
        let text = serde_json::to_string_pretty(&listing).map_err(Failure::refused)?;
        return console::print(format_args!("{text}\n"));
    }
    console::line(format_args!("model {model_id:?}, weights {weights_id:?}"))?;
    if arguments.tree {
        return console::print(tree(directory.objects()));
    }
    console::print(objects(&entries))?;
    console::print(format_args!("\n{}", totals_table(&totals(directory))))?;
    let (count, bytes) = (entries.len(), grouped(file.len() as u64));
    console::line(format_args!("{count} objects from byte {} on, {bytes} bytes", directory.payload_offset()))
}

fn entry(object: &Object) -> Entry<'_> {
    let (kind, shape, format, layout, bits) = match object.kind() {
        Kind::Tensor { shape, plan } => {
            let bits = bits_per_weight(object.bytes(), plan.elements());
            ("tensor", Some(&shape[..]), plan.format().name(), Some(plan.layout().name()), Some(bits))
        }
        Kind::Resource { encoding } => ("resource", None, encoding.name(), None, None),
    };
    let (name, offset, bytes) = (object.name(), object.offset(), object.bytes());
    Entry { name, kind, shape, format, layout, offset, bytes, bits_per_weight: bits }
}

fn objects(entries: &[Entry<'_>]) -> Table {
    let mut table =
        Table::new(&["object", ">shape", "format", "layout", ">offset", ">bytes", ">bits/weight"]);
    for entry in entries {
        table.row(vec![
            entry.name.into(),
            entry.shape.map_or(String::new(), shape),
            entry.format.into(),
            entry.layout.unwrap_or_default().into(),
            grouped(entry.offset),
            grouped(entry.bytes),
            entry.bits_per_weight.map_or(String::new(), |bits| format!("{bits:.3}")),
        ]);
    }
    table
}

/// Sums by format, in the order of the registry.
fn totals(directory: &Directory) -> Vec<Total> {
    let mut totals = BTreeMap::<(u32, &'static str), Total>::new();
    for object in directory.objects() {
        let (key, elements) = match object.kind() {
            Kind::Tensor { plan, .. } => ((plan.format().id(), plan.format().name()), plan.elements()),
            Kind::Resource { encoding } => ((u32::MAX, encoding.name()), 0),
        };
        let total = totals.entry(key).or_insert(Total { format: key.1, objects: 0, elements: 0, bytes: 0 });
        total.objects += 1;
        total.elements = total.elements.saturating_add(elements);
        total.bytes += object.bytes();
    }
    totals.into_values().collect()
}

fn totals_table(totals: &[Total]) -> Table {
    let mut table = Table::new(&["format", ">objects", ">elements", ">bytes", ">bits/weight"]);
    for total in totals {
        let bits = (total.elements > 0).then(|| bits_per_weight(total.bytes, total.elements));
        table.row(vec![
            total.format.into(),
            grouped(total.objects),
            grouped(total.elements),
            grouped(total.bytes),
            bits.map_or(String::new(), |bits| format!("{bits:.3}")),
        ]);
    }
    table
}

/// Sizes by name prefix; a prefix that has only one continuation is not shown apart from it.
fn tree(objects: &[Object]) -> Table {
    let mut nodes = BTreeMap::<Vec<&str>, (u64, u64)>::new();
    for object in objects {
        let parts: Vec<_> = object.name().splitn(DEEPEST, '.').collect();
        for length in 1..=parts.len() {
            let (count, bytes) = nodes.entry(parts[..length].to_vec()).or_default();
            *count += 1;
            *bytes += object.bytes();
        }
    }
    let mut children = BTreeMap::<&[&str], u64>::new();
    for path in nodes.keys() {
        *children.entry(&path[..path.len() - 1]).or_default() += 1;
    }
    let mut table = Table::new(&["name", ">objects", ">bytes"]);
    let names: HashSet<_> = objects.iter().map(Object::name).collect();
    let mut shown = Vec::<usize>::new(); // lengths of the prefixes shown above
    for (path, (count, bytes)) in &nodes {
        while shown.last().is_some_and(|&length| length >= path.len()) {
            shown.pop();
        }
        if children.get(&path[..]) == Some(&1) && !names.contains(path.join(".").as_str()) {
            continue;
        }
        let text = path[shown.last().copied().unwrap_or(0)..].join(".");
        table.row(vec![format!("{}{text}", "  ".repeat(shown.len())), grouped(*count), grouped(*bytes)]);
        shown.push(path.len());
    }
    table
}
