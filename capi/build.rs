//! Gives the shared library its SONAME.

/// NINFER_CODEC_ABI_VERSION; a test compares the two.
const ABI_VERSION: u32 = 1;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if matches!(os.as_str(), "linux" | "android" | "freebsd" | "netbsd" | "openbsd" | "dragonfly") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libninfer_codec.so.{ABI_VERSION}");
    }
}
