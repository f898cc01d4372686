//! The generator of the C header, and what the tests of the C interface share.

pub mod ids;
pub mod script;

use std::path::{Path, PathBuf};

/// The sources of the header, in its order.
const SOURCES: [&str; 8] = ["status", "registry", "plan", "values", "encode", "decode", "rows", "convert"];

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a member lies below the root").to_path_buf()
}

/// Where the header is committed.
pub fn header_path() -> PathBuf {
    root().join("include/ninfer_codec.h")
}

/// Generates the header from `src/ffi` and `cbindgen.toml`.
pub fn header() -> String {
    let root = root();
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml is valid");
    let builder = SOURCES.iter().fold(cbindgen::Builder::new().with_config(config), |builder, source| {
        builder.with_src(root.join(format!("src/ffi/{source}.rs")))
    });
    let mut text = Vec::new();
    builder.generate().expect("src/ffi parses").write(&mut text);
    String::from_utf8(text).expect("a header is text")
}
