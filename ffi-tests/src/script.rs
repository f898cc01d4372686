//! Golden vectors as the script that `c/vectors.c` runs.
//!
//! A member that is missing or not of its type ends the program: whether vectors are well formed is the business
//! of the `conformance` example.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use crate::ids::{self, status};

/// Makes the script of all `*.json` files of a directory.
pub fn of_directory(directory: &Path) -> String {
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .expect("a directory of vectors")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    let mut script = Script::default();
    for path in paths {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let file = serde_json::from_slice(&std::fs::read(&path).expect("readable vectors")).expect("JSON");
        script.line(format_args!("file {name}"));
        script.file(&file);
    }
    script.0
}

#[derive(Default)]
struct Script(String);

impl Script {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("a string grows");
    }

    fn file(&mut self, file: &Value) {
        let topic = text(&file["topic"]);
        for (section, entries) in file.as_object().expect("an object") {
            if ["schema", "topic", "set", "seed"].contains(&section.as_str()) {
                continue;
            }
            let lists: Vec<(&str, &Value)> = match entries {
                Value::Object(lists) => lists.iter().map(|(group, list)| (group.as_str(), list)).collect(),
                list => vec![("", list)],
            };
            for (group, entries) in lists {
                for (index, entry) in list(entries).iter().enumerate() {
                    let place = format!("{section}.{group}[{index}]");
                    let id = entry.get("id").and_then(Value::as_str).unwrap_or(&place).replace(' ', "_");
                    self.line(format_args!("case {id}"));
                    match topic {
                        "registry" => self.registry(section, entry),
                        "words" => self.word(section, group, index, entry),
                        "canonical_encode" => self.encode(entry),
                        "grouped_decode" => self.grouped(section, entry),
                        "fp8_row" => self.fp8(section, entry),
                        "nvfp4" => self.nvfp4(section, entry, file),
                        "direct" => self.direct(section, entry),
                        "geometry" => self.geometry(entry),
                        "rows" => self.rows(section, entry, file),
                        topic => panic!("no such topic: {topic}"),
                    }
                }
            }
        }
    }

    fn registry(&mut self, section: &str, e: &Value) {
        match section {
            "formats" => {
                let name = text(&e["name"]);
                self.line(format_args!("find format x{} {name}", hex_of(name.as_bytes())));
                let category = match (text(&e["category"]), e["direct_kind"].as_str()) {
                    ("direct", Some("float")) => 1,
                    ("direct", Some("integer")) => 2,
                    ("grouped", None) => 3,
                    ("block_scaled", None) => 4,
                    ("row_scaled", None) => 5,
                    other => panic!("no such category: {other:?}"),
                };
                let scale = match e["scale"].as_str() {
                    None => 0,
                    Some("f16") => 1,
                    Some("bf16") => 2,
                    Some("e4m3fn") => 3,
                    Some(other) => panic!("no such scale: {other}"),
                };
                let number = |value: &Value| value.as_u64().unwrap_or(0);
                let code = |member: &str| e[member].as_i64().unwrap_or(0) as i32 as u32;
                let profile = u32::from(!e["qmax"].is_null());
                let bits = &e["bits_per_weight"];
                self.line(format_args!(
                    "format {} {} {category} {profile} {} {} {} {} {} {scale} {} {} {}",
                    ids::format(name),
                    ids::layout(text(&e["layout"])),
                    number(&e["code_bits"]),
                    number(&e["group"]),
                    code("code_min"),
                    code("code_max"),
                    number(&e["qmax"]),
                    u32::from(e["divisor"] == "f32"),
                    number(&bits["num"]),
                    number(&bits["den"]),
                ));
            }
            "layouts" => {
                let name = text(&e["name"]);
                self.line(format_args!("find layout x{} {name}", hex_of(name.as_bytes())));
                let multiples =
                    e["multiple_of"].as_array().map_or(vec![1, 1], |m| m.iter().map(number).collect());
                self.line(format_args!(
                    "layout {} {} {} {} {} {}",
                    ids::layout(name),
                    number(&e["rank_min"]),
                    number(&e["rank_max"]),
                    number(&e["alignment"]),
                    multiples[0],
                    multiples[1]
                ));
                // A shape that every layout takes: the plan says which formats it accepts.
                let accepted: Vec<&str> = list(&e["accepts"]).iter().map(text).collect();
                for format in ids::FORMATS {
                    self.pair(format, name, accepted.contains(&format));
                }
            }
            "resource_encodings" => {
                let name = text(&e["name"]);
                self.line(format_args!("find encoding x{} {name}", hex_of(name.as_bytes())));
                self.line(format_args!("encoding 1 {}", number(&e["alignment"])));
            }
            "encoder_profiles" => {
                let name = text(&e["name"]);
                self.line(format_args!("find profile x{} {name}", hex_of(name.as_bytes())));
            }
            "pairs" => self.pair(text(&e["format"]), text(&e["layout"]), e["legal"] == true),
            "accept_format_names" => {
                self.line(format_args!("find format x{} {}", text(&e["name_hex"]), text(&e["name"])));
            }
            "accept_layout_names" => {
                self.line(format_args!("find layout x{} {}", text(&e["name_hex"]), text(&e["name"])));
            }
            "reject_format_names" => self.line(format_args!("find format x{} -", text(&e["name_hex"]))),
            "reject_layout_names" => self.line(format_args!("find layout x{} -", text(&e["name_hex"]))),
            "reject_profile_names" => self.line(format_args!("find profile x{} -", text(&e["name_hex"]))),
            section => panic!("no such section: {section}"),
        }
    }

    fn pair(&mut self, format: &str, layout: &str, legal: bool) {
        let status = if legal { 0 } else { status("unsupported_pair") };
        let skip = " -".repeat(if legal { ids::PLAN_MEMBERS } else { 0 });
        self.line(format_args!(
            "plan {} {} 2 128 64 {status}{skip}",
            ids::format(format),
            ids::layout(layout)
        ));
    }

    fn word(&mut self, section: &str, group: &str, index: usize, e: &Value) {
        let word = |member: &str| little_endian(text(&e[member]));
        match section {
            "e2m1" => {
                // Both codes of every pair of a matrix under scale and divisor 1.
                let code = text(&e["word"]);
                self.line(format_args!(
                    "decode {} x{}{}0000803f 1 x{}",
                    tensor("NVFP4", &[128, 64]),
                    code.repeat(128 * 64),
                    "38".repeat(128 * 4),
                    word("f32").repeat(128 * 64)
                ));
            }
            "e4m3fn" => {
                // One code under row scale 1; a NaN decodes to the quiet NaN.
                let value = e["f32"].as_str().map_or("0000c07f".to_owned(), little_endian);
                let payload = format!("{}{}803f", text(&e["word"]), "00".repeat(255));
                let tensor = tensor("FP8_E4M3FN_ROW_BF16S", &[1, 1]);
                self.line(format_args!("decode {tensor} x{payload} 1 x{value}"));
            }
            "bf16" => {
                let (source, value) = (word("word"), word("f32"));
                self.line(format_args!("decode {} x{source} 1 x{value}", tensor("BF16", &[1])));
                self.line(format_args!("decode {} x{source} 2 x{source}", tensor("BF16", &[1])));
                self.line(format_args!("round 2 x{source} 1 x{value}"));
                self.line(format_args!("convert 2 x{source} 1 x{value}"));
                self.line(format_args!("convert 1 x{value} 2 x{source}"));
            }
            "f16" => match e["f32"].as_str() {
                Some(value) => {
                    let (source, value) = (word("word"), little_endian(value));
                    self.line(format_args!("round 3 x{source} 1 x{value}"));
                    self.line(format_args!("round 1 x{value} 3 x{source}"));
                }
                // No value is defined; the word itself passes.
                None => self.line(format_args!("round 3 x{0} 3 x{0}", word("word"))),
            },
            "f32_to_f16" => self.line(format_args!("round 1 x{} 3 x{}", word("f32"), word("f16"))),
            "f64_to_f32" => {
                self.line(format_args!("source x{} {}", word("f64"), e["error"].as_str().map_or(0, status)));
                if e["error"].is_null() {
                    self.line(format_args!("round 4 x{} 1 x{}", word("f64"), word("f32")));
                }
            }
            "i32" => {
                let value = e["value"].as_i64().expect("a value") as i32;
                let native = hex_of(&value.to_le_bytes());
                self.line(format_args!("unpack {} x{} x{native} x 0", tensor("I32", &[1]), word("word")));
            }
            "signed_codes" => {
                let (format, columns) = match group {
                    "4" => ("Q4G64_F16S", 64),
                    "5" => ("Q5G64_F16S", 64),
                    "6" => ("Q6G64_F16S", 64),
                    "8" => ("W8G32_F16S", 32),
                    bits => panic!("no such width: {bits}"),
                };
                let code = e.as_i64().expect("a code") as i8;
                let payload = lane_zero(format, index as u8);
                let codes = format!("{:02x}{}", code as u8, "00".repeat(columns - 1));
                self.line(format_args!(
                    "unpack {} x{payload} x{codes} x0100 0",
                    tensor(format, &[1, columns as u64])
                ));
            }
            "scale_validity" => {
                let word_text = text(&e["word"]);
                let (tensor, payload, kind, row_group) = match group {
                    "f16" => (
                        tensor("Q4G64_F16S", &[1, 64]),
                        format!("{}{}0000", "00".repeat(256), word("word")),
                        "invalid_scale",
                        "0 - 0",
                    ),
                    "bf16" => (
                        tensor("FP8_E4M3FN_ROW_BF16S", &[1, 1]),
                        format!("{}{}", "00".repeat(256), word("word")),
                        "invalid_scale",
                        "0 - 0",
                    ),
                    "e4m3fn" => (
                        tensor("NVFP4", &[128, 64]),
                        format!("{}{word_text}{}0000803f", "00".repeat(4096), "00".repeat(511)),
                        "invalid_scale",
                        "0 - 0",
                    ),
                    "f32_divisor" => (
                        tensor("NVFP4", &[128, 64]),
                        format!("{}{}", "00".repeat(4096 + 512), word("word")),
                        "invalid_divisor",
                        "- - -",
                    ),
                    group => panic!("no such kind: {group}"),
                };
                if e["valid"] == true {
                    self.line(format_args!("validate {tensor} x{payload} 0{}", " -".repeat(8)));
                } else {
                    let word = u64::from_str_radix(word_text, 16).expect("hex");
                    let fault = ids::fault(text(&e["reason"]));
                    let status = status(kind);
                    self.line(format_args!(
                        "validate {tensor} x{payload} {status} {row_group} - {word} - - {fault}"
                    ));
                }
            }
            section => panic!("no such section: {section}"),
        }
    }

    fn encode(&mut self, e: &Value) {
        let format = text(&e["format"]);
        let tensor = tensor(format, &numbers(&e["shape"]));
        let value_type = ids::value_type(text(&e["dtype"]));
        let source = text(&e["source"]);
        if e.get("error").is_some() {
            let fault = fault(&e["error"], format);
            self.line(format_args!("quantize_fault {tensor} {value_type} x{source} {fault}"));
            return;
        }
        let (codes, scales) = (codes(&e["codes"]), words(&e["scales"]));
        let payload = text(&e["payload"]);
        self.line(format_args!("quantize {tensor} {value_type} x{source} x{payload} x{codes} x{scales}"));
        self.line(format_args!("pack {tensor} x{codes} x{scales} 0 x{payload}"));
        self.line(format_args!("unpack {tensor} x{payload} x{codes} x{scales} 0"));
        self.clean(&tensor, payload);
    }

    /// Validation finds nothing.
    fn clean(&mut self, tensor: &str, payload: &str) {
        self.line(format_args!("validate {tensor} x{payload} 0{}", " -".repeat(8)));
    }

    fn invalid(&mut self, format: &str, shape: &Value, payload: &str, error: &Value) {
        let tensor = tensor(format, &numbers(shape));
        self.line(format_args!("validate {tensor} x{payload} {}", fault(error, format)));
    }

    fn grouped(&mut self, section: &str, e: &Value) {
        let format = text(&e["format"]);
        if section == "invalid" {
            return self.invalid(format, &e["shape"], text(&e["payload"]), &e["error"]);
        }
        let tensor = tensor(format, &numbers(&e["shape"]));
        let (codes, scales) = (codes(&e["codes"]), words(&e["scales"]));
        self.values(&tensor, &codes, &scales, 0, e);
        self.line(format_args!("dequantize {tensor} x{codes} x{scales} x{}", text(&e["f32"])));
    }

    /// Words to a payload and back, and the payload's values.
    fn values(&mut self, tensor: &str, codes: &str, scales: &str, divisor: u32, e: &Value) {
        let payload = text(&e["payload"]);
        self.line(format_args!("pack {tensor} x{codes} x{scales} {divisor} x{payload}"));
        self.line(format_args!("unpack {tensor} x{payload} x{codes} x{scales} {divisor}"));
        self.clean(tensor, payload);
        if let Some(values) = e.get("f32") {
            self.line(format_args!("decode {tensor} x{payload} 1 x{}", text(values)));
        }
    }

    fn fp8(&mut self, section: &str, e: &Value) {
        let format = "FP8_E4M3FN_ROW_BF16S";
        if section == "invalid" {
            return self.invalid(format, &e["shape"], text(&e["payload"]), &e["error"]);
        }
        let tensor = tensor(format, &numbers(&e["shape"]));
        self.values(&tensor, text(&e["codes"]), &words(&e["scales"]), 0, e);
    }

    fn direct(&mut self, section: &str, e: &Value) {
        let format = text(&e["format"]);
        if section == "invalid" {
            return self.invalid(format, &e["shape"], text(&e["payload"]), &e["error"]);
        }
        let tensor = tensor(format, &numbers(&e["shape"]));
        let native = words(&e["words"]);
        self.values(&tensor, &native, "", 0, e);
        if format == "FP32" {
            self.line(format_args!("decode {tensor} x{0} 1 x{0}", text(&e["payload"])));
        }
        if let Some(values) = e.get("values") {
            let values: String = list(values)
                .iter()
                .map(|value| hex_of(&(value.as_i64().expect("a value") as i32).to_le_bytes()))
                .collect();
            self.line(format_args!("unpack {tensor} x{} x{values} x 0", text(&e["payload"])));
        }
    }

    fn nvfp4(&mut self, section: &str, e: &Value, file: &Value) {
        if section == "invalid" {
            let base = list(&file["valid"]).iter().find(|valid| valid["id"] == e["base"]).expect("a base");
            let mut payload = text(&base["payload"]).to_owned();
            for patch in list(&e["patches"]) {
                let begin = 2 * number(&patch["offset"]) as usize;
                let new = text(&patch["hex"]);
                payload.replace_range(begin..begin + new.len(), new);
            }
            if let Some(size) = e["resize_to"].as_u64() {
                let digits = 2 * size as usize;
                payload.truncate(digits);
                payload.extend(std::iter::repeat_n('0', digits - payload.len()));
            }
            return self.invalid("NVFP4", &base["shape"], &payload, &e["error"]);
        }
        let tensor = tensor("NVFP4", &numbers(&e["shape"]));
        let (codes, scales) = (text(&e["codes"]), text(&e["scales"]));
        let divisor = u32::from_str_radix(text(&e["divisor"]), 16).expect("hex");
        let windows: String = list(&e["windows"])
            .iter()
            .map(|window| format!(" {} x{}", number(&window["offset"]), text(&window["hex"])))
            .collect();
        self.line(format_args!(
            "pack_sha256 {tensor} x{codes} x{scales} {divisor} x{} {}{windows}",
            text(&e["payload_sha256"]),
            list(&e["windows"]).len()
        ));
        if !e["payload"].is_null() {
            self.values(&tensor, codes, scales, divisor, e);
        }
        for (member, value_type) in [("f32", 1), ("f64", 4)] {
            let samples: String = list(&e["samples"])
                .iter()
                .map(|sample| {
                    let word = little_endian(text(&sample[member]));
                    format!(" {} {} x{word}", number(&sample["n"]), number(&sample["k"]))
                })
                .collect();
            self.line(format_args!(
                "decode_sha256 {tensor} x{codes} x{scales} {divisor} {value_type} x{} {}{samples}",
                text(&e[format!("{member}_sha256")]),
                list(&e["samples"]).len()
            ));
        }
    }

    fn geometry(&mut self, e: &Value) {
        let shape = numbers(&e["shape"]);
        let dims: String = shape.iter().map(|dim| format!(" {dim}")).collect();
        let (format, layout) = (text(&e["format"]), text(&e["layout"]));
        let plan = format!("plan {} {} {}{dims}", ids::format(format), ids::layout(layout), shape.len());
        if let Some(error) = e.get("error") {
            return self.line(format_args!("{plan} {}", status(text(&error["kind"]))));
        }
        let geometry = &e["geometry"];
        let elements: u64 = shape.iter().product();
        let member = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| geometry.get(name))
                .map_or("-".to_owned(), |value| number(value).to_string())
        };
        let scaled = |name: &str, factor: u64| {
            geometry.get(name).map_or("-".to_owned(), |value| (number(value) * factor).to_string())
        };
        let codes_row_bytes = match geometry.get("word_bytes") {
            Some(bytes) => (shape.last().copied().unwrap_or(1) * number(bytes)).to_string(),
            None => member(&["base_row_bytes"]),
        };
        let columns = shape.last().copied().unwrap_or(1);
        let members = [
            (elements / columns).to_string(),
            columns.to_string(),
            member(&["k_pad"]),
            geometry.get("elements").map_or(elements, number).to_string(),
            match geometry.get("k_tiles") {
                Some(_) => scaled("k_tiles", 4),
                None => member(&["logical_groups"]),
            },
            member(&["groups_per_row"]),
            member(&["base_offset", "code_offset"]),
            member(&["base_bytes", "code_bytes"]),
            codes_row_bytes,
            member(&["high_offset"]),
            member(&["high_bytes"]),
            member(&["high_row_bytes"]),
            member(&["scale_offset"]),
            member(&["scale_bytes"]),
            member(&["scale_row_bytes"]),
            member(&["divisor_offset"]),
            "-".to_owned(),
            member(&["payload_bytes"]),
            member(&["alignment"]),
            "-".to_owned(),
        ];
        assert_eq!(members.len(), ids::PLAN_MEMBERS);
        self.line(format_args!("{plan} 0 {}", members.join(" ")));
    }

    fn rows(&mut self, section: &str, e: &Value, file: &Value) {
        if section == "parents" {
            let tensor = tensor(text(&e["format"]), &numbers(&e["shape"]));
            return self.clean(&tensor, text(&e["payload"]));
        }
        let parent =
            list(&file["parents"]).iter().find(|parent| parent["id"] == e["parent"]).expect("a parent");
        let (format, payload) = (text(&parent["format"]), text(&parent["payload"]));
        let tensor = tensor(format, &numbers(&parent["shape"]));
        let status = e.get("error").map_or(0, |error| status(text(&error["kind"])));
        let result = e.get("payload").map_or("", text);
        match text(&e["op"]) {
            "view" => {
                let range = format!("{} {}", number(&e["begin"]), number(&e["count"]));
                if status != 0 {
                    return self.line(format_args!("span {tensor} {range} {status} 1"));
                }
                for span in list(&e["spans"]) {
                    let plane = match text(&span["plane"]) {
                        "base" | "code" => 1,
                        "high" => 2,
                        "scale" => 3,
                        plane => panic!("no such plane: {plane}"),
                    };
                    self.line(format_args!(
                        "span {tensor} {range} 0 {plane} {} {}",
                        number(&span["offset"]),
                        number(&span["bytes"])
                    ));
                }
            }
            "slice" => {
                self.line(format_args!(
                    "slice {tensor} x{payload} {} {} {status} x{result}",
                    number(&e["begin"]),
                    number(&e["count"])
                ));
                self.result(format, &parent["shape"], e);
            }
            "gather" => {
                let rows: String =
                    list(&e["rows"]).iter().map(|row| hex_of(&number(row).to_le_bytes())).collect();
                self.line(format_args!("gather {tensor} x{payload} x{rows} {status} x{result}"));
                self.result(format, &parent["shape"], e);
            }
            op => panic!("no such operation: {op}"),
        }
    }

    /// A new payload is valid, and has the rows that the case says.
    fn result(&mut self, format: &str, parent: &Value, e: &Value) {
        if let Some(payload) = e.get("payload") {
            let columns = *numbers(parent).last().expect("columns");
            self.clean(&tensor(format, &[number(&e["rows_out"]), columns]), text(payload));
        }
    }
}

/// The tokens of a tensor.
fn tensor(format: &str, shape: &[u64]) -> String {
    let dims: String = shape.iter().map(|dim| format!(" {dim}")).collect();
    format!("{} {}{dims}", ids::format(format), shape.len())
}

/// A row of one group whose first lane has a code word, under scale 2^-24.
fn lane_zero(format: &str, word: u8) -> String {
    let mut payload = vec![0u8; 256];
    let base = if format == "W8G32_F16S" { word } else { word & 0xf };
    payload[0] = base;
    let (high_bytes, groups) = match format {
        "Q5G64_F16S" => (16, 2),
        "Q6G64_F16S" => (32, 2),
        "W8G32_F16S" => (0, 4),
        _ => (0, 2),
    };
    if high_bytes > 0 {
        payload.push(word >> 4);
        payload.resize(512, 0);
    }
    payload.extend([1, 0]);
    payload.resize(payload.len() + 2 * (groups - 1), 0);
    hex_of(&payload)
}

/// The tokens of a failure: status, row, column, group, offset, word, expected, actual, fault.
fn fault(error: &Value, format: &str) -> String {
    let kind = text(&error["kind"]);
    let member = |name: &str| error.get(name).map_or("-".to_owned(), |value| number(value).to_string());
    let hex = |name: &str| {
        let word = error.get(name)?;
        u64::from_str_radix(text(word), 16).ok()
    };
    // The code of a grouped format may be given as a word of its own width; details hold its whole byte.
    let is_code = ["zero_scale_nonzero_code", "padding_code_not_zero"].contains(&kind);
    let word = match hex("word").or(hex("raw_scale32")) {
        Some(_) if is_code && ids::format(format) <= 7 => "-".to_owned(),
        Some(word) => word.to_string(),
        None => "-".to_owned(),
    };
    // Details name no group beside a column.
    let group = if error.get("col").is_some() { "-".to_owned() } else { member("group") };
    let reason = match error.get("reason").map(text) {
        Some(reason) if kind != "invalid_code" => ids::fault(reason).to_string(),
        _ => "-".to_owned(),
    };
    format!(
        "{} {} {} {group} {} {word} {} {} {reason}",
        status(kind),
        member("row"),
        member("col"),
        member("offset"),
        member("expected"),
        member("actual"),
    )
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("an unsigned integer")
}

fn numbers(value: &Value) -> Vec<u64> {
    list(value).iter().map(number).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Word hex, most significant digit first, as the bytes of a little-endian word.
fn little_endian(word: &str) -> String {
    (0..word.len()).step_by(2).rev().map(|at| &word[at..at + 2]).collect()
}

/// A list of word hex as little-endian bytes.
fn words(value: &Value) -> String {
    list(value).iter().map(|word| little_endian(text(word))).collect()
}

/// A list of signed codes as bytes.
fn codes(value: &Value) -> String {
    list(value).iter().map(|code| format!("{:02x}", code.as_i64().expect("a code") as i8)).collect()
}
