//! The example tool `ninfer`, as a user runs it: every test starts the built program.

mod assign;
mod bundled;
mod golden;
mod import;
mod page;
mod recipe;
mod robust;
mod shards;
mod support;
