//! Loops too long for every run: all words, all products, every rounding boundary, on every backend of this processor.
//!
//! Built only with feature `internals`, and ignored unless asked for, as it takes minutes:
//!
//!     cargo test --release --features internals --test sweeps -- --ignored --show-output --test-threads=1
//!
//! One thread, because the backend that runs is chosen for the whole process.

#[path = "../oracle/mod.rs"]
mod oracle;
#[path = "../support/mod.rs"]
mod support;

mod encoder;
mod narrowing;
mod products;

use std::time::Instant;

/// Runs a check once for each backend that this processor has, and says how long each took.
fn each_backend(what: &str, mut check: impl FnMut(&str)) {
    let mut ran = 0;
    for backend in ["portable", "avx2", "avx512", "neon"] {
        if !ninfer_codec::internals::select_backend(backend) {
            continue;
        }
        assert_eq!(ninfer_codec::backend_name(), backend);
        let begin = Instant::now();
        check(backend);
        println!("{what}, {backend}: {:.1} s", begin.elapsed().as_secs_f64());
        ran += 1;
    }
    assert!(ran > 0);
}
