//! Reads one byte past the end of a heap block: AddressSanitizer must say so.

fn main() {
    let block = vec![0u8; std::env::args().count() + 7];
    // SAFETY: none; this is the fault.
    let past = unsafe { block.as_ptr().add(block.len()).read_volatile() };
    println!("{past}");
}
