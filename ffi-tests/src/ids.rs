//! Numbers of the C interface by the names of the vectors: written out, not taken from the library.

/// Formats by rising id, from 1.
pub const FORMATS: [&str; 9] = [
    "BF16",
    "FP32",
    "I32",
    "Q4G64_F16S",
    "Q5G64_F16S",
    "Q6G64_F16S",
    "W8G32_F16S",
    "NVFP4",
    "FP8_E4M3FN_ROW_BF16S",
];
const LAYOUTS: [&str; 4] =
    ["contiguous-le-v1", "row-split-k128-v1", "blockscale-k16-m128x4-v1", "row-scale-v1"];
const VALUES: [&str; 4] = ["f32", "bf16", "f16", "f64"];
const FAULTS: [&str; 5] = ["nan", "infinite", "negative_zero", "negative", "zero"];
const STATUSES: [(&str, u32); 18] = [
    ("unsupported_pair", 9),
    ("wrong_rank", 10),
    ("zero_dimension", 11),
    ("not_multiple", 12),
    ("overflow", 13),
    ("payload_length", 15),
    ("empty_rows", 16),
    ("row_out_of_range", 17),
    ("non_finite_source", 31),
    ("source_not_representable", 32),
    ("scale_overflow", 33),
    ("invalid_scale", 35),
    ("invalid_divisor", 36),
    ("invalid_code", 37),
    ("zero_scale_nonzero_code", 38),
    ("padding_code_not_zero", 39),
    ("padding_scale_not_zero", 40),
    ("gap_not_zero", 41),
];

/// Members of `ninfer_codec_plan` from `rows` on.
pub const PLAN_MEMBERS: usize = 20;

fn id(names: &[&str], name: &str) -> usize {
    1 + names.iter().position(|known| *known == name).unwrap_or_else(|| panic!("no such name: {name}"))
}

/// The id of a format.
pub fn format(name: &str) -> usize {
    id(&FORMATS, name)
}

/// The id of a layout.
pub fn layout(name: &str) -> usize {
    id(&LAYOUTS, name)
}

/// The id of a value type.
pub fn value_type(name: &str) -> usize {
    id(&VALUES, name)
}

/// The number of a fault.
pub fn fault(reason: &str) -> usize {
    id(&FAULTS, reason)
}

/// The status of a kind of error.
pub fn status(kind: &str) -> u32 {
    match STATUSES.iter().find(|(known, _)| *known == kind) {
        Some((_, status)) => *status,
        None => panic!("no such kind: {kind}"),
    }
}
