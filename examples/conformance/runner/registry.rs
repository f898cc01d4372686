//! `registry.json`: the closed tables and the lookup by name.

use ninfer_codec::format::{Category, ScaleType};
use ninfer_codec::{EncoderProfile, Error, Format, Layout, Plan, ResourceEncoding, UnknownName};
use serde_json::{Value, json};

use super::case::{Bad, Case, Outcome, bad};
use super::{Place, Section};

pub const SECTIONS: &[(&str, Section)] = &[
    ("formats", format),
    ("layouts", layout),
    ("resource_encodings", resource_encoding),
    ("encoder_profiles", encoder_profile),
    ("pairs", pair),
    ("accept_format_names", |case, _| accept(case, |name| Format::from_name(name).map(Format::name))),
    ("accept_layout_names", |case, _| accept(case, |name| Layout::from_name(name).map(Layout::name))),
    ("reject_format_names", |case, _| reject(case, |name| Format::from_name(name).map(Format::name))),
    ("reject_layout_names", |case, _| reject(case, |name| Layout::from_name(name).map(Layout::name))),
    ("reject_profile_names", |case, _| {
        reject(case, |name| EncoderProfile::from_name(name).map(EncoderProfile::name))
    }),
];

/// The registered format that a member names.
pub fn format_of(case: &mut Case<'_>, member: &str) -> Result<Format, Bad> {
    let name = case.string(member)?;
    match Format::from_name(name.as_bytes()) {
        Ok(format) => Ok(format),
        Err(_) => bad(member, "a registered format", name),
    }
}

/// The registered layout that a member names.
pub fn layout_of(case: &mut Case<'_>, member: &str) -> Result<Layout, Bad> {
    let name = case.string(member)?;
    match Layout::from_name(name.as_bytes()) {
        Ok(layout) => Ok(layout),
        Err(_) => bad(member, "a registered layout", name),
    }
}

fn format(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let format = format_of(case, "name")?;
    let facts = format.descriptor();
    case.check("name", facts.name);
    let (category, direct_kind) = match facts.category {
        Category::DirectFloat => ("direct", Some("float")),
        Category::DirectInteger => ("direct", Some("integer")),
        Category::Grouped => ("grouped", None),
        Category::BlockScaled => ("block_scaled", None),
        Category::RowScaled => ("row_scaled", None),
    };
    case.check("category", category);
    case.check("direct_kind", direct_kind);
    case.check("code_bits", facts.code_bits);
    case.check("group", facts.group);
    case.check("code_min", facts.code_interval.map(|(min, _)| min));
    case.check("code_max", facts.code_interval.map(|(_, max)| max));
    case.check("qmax", facts.qmax);
    case.check(
        "scale",
        facts.scale.map(|scale| match scale {
            ScaleType::F16 => "f16",
            ScaleType::Bf16 => "bf16",
            ScaleType::E4M3Fn => "e4m3fn",
        }),
    );
    case.check("divisor", facts.has_divisor.then_some("f32"));
    let fraction =
        |ratio: ninfer_codec::format::Ratio| json!({ "num": ratio.numerator, "den": ratio.denominator });
    case.check("bits_per_weight", facts.bits_per_weight.map(fraction));
    case.check("layout", facts.layout.name());
    if let Some(scheme) = format.scheme() {
        case.check("code_bits", scheme.code_bits());
        case.check("group", scheme.group());
        case.check("code_min", scheme.code_min());
        case.check("code_max", scheme.code_max());
    }
    Ok(())
}

fn layout(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let facts = layout_of(case, "name")?.descriptor();
    case.check("name", facts.name);
    case.check("accepts", names(facts.accepts));
    case.check("rank_min", facts.rank.0);
    case.check("rank_max", facts.rank.1);
    case.check("alignment", facts.alignment);
    case.check("multiple_of", facts.multiple_of.map(|multiples| multiples.to_vec()));
    Ok(())
}

fn names(formats: &[Format]) -> Value {
    formats.iter().map(|format| format.name()).collect()
}

fn resource_encoding(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let name = case.string("name")?;
    let encoding = case.succeeds("name", ResourceEncoding::from_name(name.as_bytes()))?;
    case.check("name", encoding.name());
    case.check("alignment", encoding.alignment());
    Ok(())
}

fn encoder_profile(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let name = case.string("name")?;
    let profile = case.succeeds("name", EncoderProfile::from_name(name.as_bytes()))?;
    case.check("name", profile.name());
    case.check("formats", names(profile.formats()));
    Ok(())
}

fn pair(case: &mut Case<'_>, _: &Place<'_>) -> Outcome {
    let format = format_of(case, "format")?;
    let layout = layout_of(case, "layout")?;
    case.check("legal", format.layout() == layout);
    case.check("legal", layout.descriptor().accepts.contains(&format));
    // A shape that every layout takes.
    let planned = match Plan::new(format, layout, &[128, 64]) {
        Ok(_) => json!(true),
        Err(Error::UnsupportedPair { .. }) => json!(false),
        Err(error) => json!(format!("{error:?}")),
    };
    case.check("legal", planned);
    Ok(())
}

type Lookup = fn(&[u8]) -> Result<&'static str, UnknownName<'_>>;

fn accept(case: &mut Case<'_>, lookup: Lookup) -> Outcome {
    let bytes = case.bytes("name_hex")?;
    let name = case.succeeds("name_hex", lookup(&bytes))?;
    case.check("name", name);
    Ok(())
}

fn reject(case: &mut Case<'_>, lookup: Lookup) -> Outcome {
    let bytes = case.bytes("name_hex")?;
    match lookup(&bytes) {
        Err(unknown) => {
            case.check("name_hex", super::case::hex(unknown.name));
            Ok(())
        }
        Ok(name) => bad("name_hex", "no such name", name),
    }
}
