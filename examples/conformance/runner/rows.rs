//! `rows.json`: views, slices and gathers.

use ninfer_codec::{Error, Format, Layout, Plan, Tensor};
use serde_json::{Value, json};

use super::Place;
use super::case::{Bad, Case, Outcome, bad, bytes, hex, list, number, string};
use super::fault;
use super::payloads::{DIRTY, plan_of};
use super::registry::{format_of, layout_of};

pub fn parent(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let format = format_of(case, "format")?;
    let layout = layout_of(case, "layout")?;
    case.check("layout", format.layout().name());
    let shape = case.numbers("shape")?;
    let payload = case.bytes("payload")?;
    case.succeeds("layout", Plan::new(format, layout, &shape))?;
    let plan = plan_of(case, format, &shape)?;
    let tensor = case.succeeds("payload", Tensor::new(plan, &payload))?;
    case.succeeds("payload", tensor.validate())?;
    Ok(())
}

/// The payload of the parent that a case names, and its plan.
fn parent_of(case: &mut Case<'_>, place: &Place<'_>) -> Result<(Plan, Vec<u8>), Bad> {
    let id = case.string("parent")?;
    let parents = place.file.get("parents").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let Some(parent) = parents.iter().find(|entry| entry.get("id").is_some_and(|other| *other == id)) else {
        return bad("parent", "the id of a parent", id);
    };
    let member = |name: &str| parent.get(name).unwrap_or(&Value::Null);
    let name = string("parent", member("format"))?;
    let Ok(format) = Format::from_name(name.as_bytes()) else {
        return bad("parent", "a registered format", name);
    };
    let shape = list("parent", member("shape"))?;
    let shape: Vec<u64> = shape.iter().map(|n| number("parent", n)).collect::<Result<_, _>>()?;
    let payload = bytes("parent", &string("parent", member("payload"))?)?;
    Ok((plan_of(case, format, &shape)?, payload))
}

pub fn case(case: &mut Case<'_>, place: &Place<'_>) -> Outcome {
    let (plan, payload) = parent_of(case, place)?;
    let tensor = case.succeeds("parent", Tensor::new(plan, &payload))?;
    match case.string("op")?.as_str() {
        "view" => {
            let (begin, count) = (case.number("begin")?, case.number("count")?);
            view(case, &tensor, begin, count)
        }
        "slice" => {
            let (begin, count) = (case.number("begin")?, case.number("count")?);
            let slice = tensor
                .rows(begin, count)
                .and_then(|rows| new_payload(plan, rows.count(), |out| rows.slice(out)));
            result(case, plan.format(), slice)
        }
        "gather" => {
            let rows = case.numbers("rows")?;
            let gather = new_payload(plan, rows.len() as u64, |out| tensor.gather(&rows, out));
            result(case, plan.format(), gather)
        }
        op => bad("op", "view, slice or gather", op),
    }
}

/// Runs an operation with a buffer of the right length, or an empty one where there is no right length.
fn new_payload(
    parent: Plan,
    rows: u64,
    operation: impl FnOnce(&mut [u8]) -> Result<Plan, Error>,
) -> Result<(Plan, Vec<u8>), Error> {
    let length = parent.with_rows(rows).map_or(0, |plan| plan.payload_bytes());
    let mut out = vec![DIRTY; length as usize];
    let plan = operation(&mut out)?;
    Ok((plan, out))
}

fn result(case: &mut Case<'_>, format: Format, got: Result<(Plan, Vec<u8>), Error>) -> Outcome {
    if case.has("error") {
        return fault::check_kind(case, format, got.map(|_| ()));
    }
    let (plan, payload) = case.succeeds("op", got)?;
    case.check("payload", hex(&payload));
    case.check("rows_out", plan.rows());
    let tensor = case.succeeds("payload", Tensor::new(plan, &payload))?;
    case.succeeds("payload", tensor.validate())?;
    Ok(())
}

fn view(case: &mut Case<'_>, tensor: &Tensor<'_>, begin: u64, count: u64) -> Outcome {
    let plan = tensor.plan();
    let spans = plan.row_spans(begin, count);
    let rows = tensor.rows(begin, count);
    if case.has("error") {
        fault::check_kind(case, plan.format(), spans.map(|_| ()))?;
        return fault::check_kind(case, plan.format(), rows.map(|_| ()));
    }
    let spans = case.succeeds("op", spans)?;
    case.succeeds("op", rows)?;
    let planes: &[_] = match plan.layout() {
        Layout::RowSplitK128V1 => &[("base", spans.codes), ("high", spans.high), ("scale", spans.scales)],
        Layout::RowScaleV1 => &[("code", spans.codes), ("scale", spans.scales)],
        Layout::ContiguousLeV1 | Layout::BlockscaleK16M128x4V1 => &[("code", spans.codes)],
    };
    let expected = case.value("spans")?;
    let expected = list("spans", &expected)?;
    // A span of zero bytes may be left out.
    let all = expected.len() == planes.len();
    let got: Vec<Value> = planes
        .iter()
        .filter(|(_, span)| all || span.bytes > 0)
        .map(|(plane, span)| json!({ "plane": plane, "offset": span.offset, "bytes": span.bytes }))
        .collect();
    case.compare("spans", Some(&expected.len().into()), &got.len().into());
    for (index, (expected, got)) in expected.iter().zip(&got).enumerate() {
        case.compare(&format!("spans[{index}]"), Some(expected), got);
    }
    Ok(())
}
