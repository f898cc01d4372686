//! Prints the script of a directory of vectors: `cargo run -p ninfer-codec-ffi-tests --bin script -- DIR`.

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "tests/vectors".to_owned());
    print!("{}", ninfer_codec_ffi_tests::script::of_directory(directory.as_ref()));
}
