//! `geometry.json`: plans and refusals of shapes.

use ninfer_codec::{Layout, Plan};
use serde_json::{Map, Value, json};

use super::Place;
use super::case::{Case, Outcome, bad};
use super::fault;
use super::registry::{format_of, layout_of};

pub fn case(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let format = format_of(case, "format")?;
    let layout = layout_of(case, "layout")?;
    let shape = case.numbers("shape")?;
    let planned = Plan::new(format, layout, &shape);
    if case.has("error") {
        return fault::check(case, format, 0, planned.map(|_| ()));
    }
    let expected = case.value("geometry")?;
    let Some(expected) = expected.as_object() else { return bad("geometry", "an object", expected) };
    let got = members(&case.succeeds("geometry", planned)?);
    for (member, value) in expected {
        match got.get(member) {
            Some(got) => case.compare(&format!("geometry.{member}"), Some(value), got),
            None => return bad(&format!("geometry.{member}"), "no such member", "one"),
        }
    }
    for (member, value) in &got {
        if !expected.contains_key(member) {
            case.compare(&format!("geometry.{member}"), None, value);
        }
    }
    Ok(())
}

/// The plan as the vectors write it.
fn members(plan: &Plan) -> Map<String, Value> {
    let (codes, high, scales) = (plan.codes(), plan.high(), plan.scales());
    let own = match plan.layout() {
        Layout::ContiguousLeV1 => json!({
            "elements": plan.elements(),
            "word_bytes": plan.format().descriptor().code_bits / 8,
        }),
        Layout::RowSplitK128V1 => json!({
            "k_pad": plan.padded_columns(),
            "groups_per_row": plan.physical_groups(),
            "logical_groups": plan.logical_groups(),
            "base_offset": codes.offset,
            "base_bytes": codes.bytes,
            "base_row_bytes": codes.row_bytes,
            "high_offset": high.offset,
            "high_bytes": high.bytes,
            "high_row_bytes": high.row_bytes,
            "scale_offset": scales.offset,
            "scale_bytes": scales.bytes,
            "scale_row_bytes": scales.row_bytes,
        }),
        Layout::BlockscaleK16M128x4V1 => json!({
            // A tile is four groups wide.
            "k_tiles": plan.logical_groups() / 4,
            "code_offset": codes.offset,
            "code_bytes": codes.bytes,
            "scale_offset": scales.offset,
            "scale_bytes": scales.bytes,
            "divisor_offset": plan.divisor().offset,
        }),
        Layout::RowScaleV1 => json!({
            "code_offset": codes.offset,
            "code_bytes": codes.bytes,
            "scale_offset": scales.offset,
            "scale_bytes": scales.bytes,
        }),
    };
    let mut members = own.as_object().cloned().unwrap_or_default();
    members.insert("alignment".to_owned(), plan.alignment().into());
    members.insert("payload_bytes".to_owned(), plan.payload_bytes().into());
    members
}
