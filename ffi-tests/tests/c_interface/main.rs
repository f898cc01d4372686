//! Tests of the C interface, by programs in C and C++ (`ffi-tests/c`) that are compiled and run here.
//!
//! | module | what it tests |
//! |---|---|
//! | `header` | the committed header is fresh, compiles alone, and lays out structs as the library does |
//! | `vectors` | all golden vectors, plain, under sanitizers and under valgrind |
//! | `hostile` | arguments that must be refused, likewise; two threads under a checker of races |
//! | `archive` | what the archive and the shared library export, need, and link with |
//!
//! One program, so that each build of the archive is made once.

mod archive;
mod header;
mod hostile;
#[allow(dead_code)]
#[path = "../../../examples/conformance/runner/mod.rs"]
mod runner;
mod support;
mod vectors;
