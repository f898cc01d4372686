//! Writes include/ninfer_codec.h anew: `cargo run -p ninfer-codec-ffi-tests --bin header`.

use ninfer_codec_ffi_tests::{header, header_path};

fn main() -> std::io::Result<()> {
    std::fs::write(header_path(), header())
}
