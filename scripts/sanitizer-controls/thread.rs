//! Writes one word from two threads without order: ThreadSanitizer must say so.

static mut WORD: u64 = 0;

fn write_often() {
    for value in 0..1000 {
        // SAFETY: none; this is the fault.
        unsafe { (&raw mut WORD).write_volatile(value) };
    }
}

fn main() {
    std::thread::scope(|scope| {
        scope.spawn(write_often);
        scope.spawn(write_often);
    });
}
