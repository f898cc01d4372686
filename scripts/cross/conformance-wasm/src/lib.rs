//! The conformance runner behind four functions of numbers, so that the module imports nothing.

#[path = "../../../../examples/conformance/runner/mod.rs"]
#[allow(dead_code)] // the part that reads a directory
mod runner;

use std::sync::Mutex;

use serde_json::Value;

/// What the last run printed.
static OUTPUT: Mutex<String> = Mutex::new(String::new());

/// Makes room for a file's text; `run` takes it back.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(bytes: usize) -> *mut u8 {
    Box::leak(vec![0; bytes].into_boxed_slice()).as_mut_ptr()
}

/// Runs one file of vectors, and returns the checks that passed and, in the high half, those that failed.
///
/// # Safety
/// `text` and `bytes` are those of one `allocate`, not yet given to `run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn run(text: *mut u8, bytes: usize) -> u64 {
    // SAFETY: as the caller promises.
    let text = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(text, bytes)) };
    let report = match serde_json::from_slice::<Value>(&text) {
        Ok(value) => runner::run_value("", &value),
        Err(_) => return 1 << 32,
    };
    let lines: Vec<String> = report.failures.iter().map(|failure| format!("FAIL {failure}")).collect();
    if let Ok(mut output) = OUTPUT.lock() {
        *output = lines.join("\n");
    }
    (report.failures.len() as u64) << 32 | report.passed as u64
}

/// Where the last run's output lies; valid until the next run.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    OUTPUT.lock().map_or(std::ptr::null(), |output| output.as_ptr())
}

/// How long the last run's output is.
#[unsafe(no_mangle)]
pub extern "C" fn output_bytes() -> usize {
    OUTPUT.lock().map_or(0, |output| output.len())
}
