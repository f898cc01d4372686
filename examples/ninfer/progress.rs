//! The progress bar, and the signals that stop the work.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use crate::cli::Settings;
use crate::failure::{Code, Failure, Outcome};

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Sets up threads and signals.
pub fn start(settings: &Settings) -> Outcome<()> {
    catch_signals()?;
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = settings.threads.map_or_else(cores, usize::from);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(|error| {
        refused(
            "start the threads",
            error,
            "ask for fewer with --threads, or raise the limits on threads and memory",
        )
    })
}

/// Makes SIGINT, SIGTERM and SIGHUP stop the work at the next block instead of at once. A file that grows past
/// its limit fails to be written, and SIGXFSZ does not end the process before that is said.
pub fn catch_signals() -> Outcome<()> {
    for (signal, flag) in [
        (SIGINT, Arc::clone(&INTERRUPTED)),
        (SIGTERM, Arc::clone(&INTERRUPTED)),
        (SIGHUP, Arc::clone(&INTERRUPTED)),
        (SIGXFSZ, Arc::default()),
    ] {
        signal_hook::flag::register(signal, flag)
            .map_err(|error| refused("catch signals", error, "try again"))?;
    }
    Ok(())
}

/// Something that the system does not give.
fn refused(what: &str, error: impl Display, next: &str) -> Failure {
    Failure { code: Code::Io, lines: vec![format!("cannot {what}: {error}; {next}")] }
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
