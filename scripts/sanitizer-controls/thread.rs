//! Writes one word from two threads without order: ThreadSanitizer must say so.

use std::sync::Barrier;

static mut WORD: u64 = 0;

fn write_often(both_run: &Barrier) {
    both_run.wait();
    for value in 0..1000 {
        // SAFETY: none; this is the fault.
        unsafe { (&raw mut WORD).write_volatile(value) };
    }
}

fn main() {
    let both_run = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| write_often(&both_run));
        scope.spawn(|| write_often(&both_run));
    });
}
