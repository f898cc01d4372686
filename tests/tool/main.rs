//! The example tool `ninfer`, as a user runs it: every test starts the built program.

mod assign;
mod bundled;
mod diff;
mod golden;
mod hostile;
mod import;
mod memory;
mod page;
mod places;
mod recipe;
mod refused;
mod robust;
mod shards;
mod support;
mod unpack;
mod wide;
mod writing;

// These files of the tool have tests of their own.
#[path = "../../examples/ninfer/failure.rs"]
#[expect(dead_code, reason = "the rest of the tool uses it")]
mod failure;
#[path = "../../examples/ninfer/output.rs"]
#[expect(dead_code, reason = "the rest of the tool uses it")]
mod output;
