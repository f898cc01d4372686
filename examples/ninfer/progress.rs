//! The progress bar, and the signals that stop the work.

use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use crate::cli::Settings;
use crate::failure::{Failure, Outcome};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Sets up threads, and makes SIGINT, SIGTERM and SIGHUP stop the work at the next block instead of at once.
pub fn start(settings: &Settings) -> Outcome<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed)).map_err(Failure::usage)?;
    let threads = settings.threads.map_or(0, usize::from); // 0: all cores
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(Failure::usage)
}

/// Stops if a signal came.
pub fn check() -> Outcome<()> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(Failure::interrupted()) } else { Ok(()) }
}

/// A bar over `bytes` bytes with rate and time left; shown on a terminal only, and gone when the work ends.
pub fn bar(settings: &Settings, bytes: u64) -> ProgressBar {
    let target = if settings.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let template = "{bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} left {wide_msg}";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(bytes), target).with_style(style).with_finish(ProgressFinish::AndClear)
}
