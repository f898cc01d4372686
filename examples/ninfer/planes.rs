//! `plan`: where the bytes of a tensor lie.

use ninfer_codec::Plan;
use ninfer_codec::layout::Plane;

use crate::cli;
use crate::console;
use crate::failure::{Failure, Outcome};
use crate::rules::format_named;
use crate::table::{Table, bits_per_weight, grouped, shape};

pub fn run(arguments: &cli::Plan) -> Outcome<()> {
    let format = format_named(&arguments.format, "FORMAT")?;
    let dimensions = dimensions(&arguments.shape)?;
    let plan = Plan::new(format, format.layout(), &dimensions).map_err(|error| {
        Failure::refused(format!("{format} {}: {error}; choose another shape or format", shape(&dimensions)))
    })?;

    console::line(format_args!("{format} {} in {}", shape(&dimensions), format.layout()))?;
    let mut table = Table::new(&["plane", ">offset", ">bytes", ">bytes/row"]);
    for (name, plane) in [("codes", plan.codes()), ("high bits", plan.high()), ("scales", plan.scales())] {
        let Plane { offset, bytes, row_bytes } = plane;
        if bytes > 0 {
            table.row(vec![name.into(), grouped(offset), grouped(bytes), grouped(row_bytes)]);
        }
    }
    if plan.divisor().bytes > 0 {
        table.row(vec!["divisor".into(), grouped(plan.divisor().offset), grouped(plan.divisor().bytes)]);
    }
    console::print(table)?;
    if plan.padded_columns() != plan.columns() {
        console::line(format_args!("{} columns are stored as {}", plan.columns(), plan.padded_columns()))?;
    }
    let bits = bits_per_weight(plan.payload_bytes(), plan.elements());
    let (bytes, alignment) = (grouped(plan.payload_bytes()), plan.alignment());
    console::line(format_args!(
        "{bytes} bytes, {bits:.3} bits/weight, at a multiple of {alignment} in a file"
    ))
}

/// Reads `7168x5120`, `7168,5120` or `[7168, 5120]`; `scalar` or `[]` for no dimension.
fn dimensions(text: &str) -> Outcome<Vec<u64>> {
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']').trim();
    if inner.is_empty() || inner == "scalar" {
        return Ok(Vec::new());
    }
    inner
        .split(['x', ','])
        .map(|part| part.trim().parse())
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::usage(format!("shape {text:?}: {error}; write it as 7168x5120")))
}
