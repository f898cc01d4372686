//! A second Rust archive, of a crate with `std`, for a program that links two.

use std::collections::HashMap;

/// Uses the heap, threads, formatting and unwinding; returns `n`.
#[unsafe(no_mangle)]
pub extern "C" fn other_archive_work(n: u32) -> u32 {
    let names: HashMap<u32, String> = (0..n).map(|i| (i, format!("name {i}"))).collect();
    let count = std::thread::spawn(move || names.len()).join().unwrap_or(0);
    let caught = std::panic::catch_unwind(|| {
        std::panic::set_hook(Box::new(|_| {}));
        panic!("on purpose");
    });
    if caught.is_err() { count as u32 } else { 0 }
}

/// A negative control: a symbol that the other archive plants too.
#[cfg(planted)]
#[unsafe(no_mangle)]
pub extern "C" fn planted_symbol() -> u32 {
    2
}
