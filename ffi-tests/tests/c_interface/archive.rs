//! What is promised of the archive and the shared library, each check with a fault that it must find.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{
    Build, STRICT, archive, have, header_functions, libraries, run, scratch, succeed, text,
};
use ninfer_codec_ffi_tests::{header_path, root};

/// All that the archive may need of its host.
const NEEDS: [&str; 5] = ["memcpy", "memmove", "memset", "memcmp", "bcmp"];
/// What the panic handler leaves behind.
const PANIC: &str = "ninfer_codec_panic_path_survived";
const TOOLS: [&str; 4] = ["readelf", "nm", "ld", "gcc"];

type Names = BTreeSet<String>;

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> Names {
    names.into_iter().map(str::to_owned).collect()
}

/// Symbols that the objects of an archive define for everybody: global or weak, and not hidden.
fn exports(archive: &Path) -> Names {
    let printed = succeed(Command::new("readelf").args(["--symbols", "--wide"]).arg(archive));
    let mut found = Names::new();
    for line in printed.lines() {
        let columns: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, _, _, "GLOBAL" | "WEAK", "DEFAULT", section, name, ..] = columns[..]
            && section != "UND"
        {
            found.insert(name.to_owned());
        }
    }
    found
}

/// What stays undefined when everything is thrown away that the given functions do not reach.
fn undefined(archive: &Path, functions: &Names) -> Names {
    let object = scratch("objects").join("part.o");
    let mut ld = Command::new("ld");
    ld.args(["-r", "--gc-sections", "-o"]).arg(&object);
    for function in functions {
        ld.args(["-u", function]);
    }
    succeed(ld.arg(archive));
    let printed =
        succeed(Command::new("nm").args(["--undefined-only", "--format=just-symbols"]).arg(&object));
    names(printed.lines())
}

fn header_names() -> Names {
    header_functions().into_iter().collect()
}

#[test]
fn the_archive_exports_the_header_and_nothing_else() {
    if !have(&TOOLS) {
        return;
    }
    assert_eq!(exports(&archive(Build::Plain)), header_names());
    let mut planted = header_names();
    planted.insert("planted_symbol".to_owned());
    assert_eq!(exports(&archive(Build::Features("plant-symbol"))), planted);
}

#[test]
fn the_archive_needs_no_more_than_five_functions() {
    if !have(&TOOLS) {
        return;
    }
    let needs = names(NEEDS);
    let found = undefined(&archive(Build::Plain), &header_names());
    assert!(found.is_subset(&needs), "{found:?}");
    assert!(!found.is_empty(), "a library that moves bytes needs one of them");
    let planted = archive(Build::Features("plant-symbol"));
    let found = undefined(&planted, &exports(&planted));
    assert!(found.contains("ninfer_codec_planted_need"), "{found:?}");
}

#[test]
fn no_function_of_the_header_can_panic() {
    if !have(&TOOLS) {
        return;
    }
    let proof = archive(Build::Features("panic-proof"));
    for function in header_names() {
        let found = undefined(&proof, &names([function.as_str()]));
        assert!(!found.contains(PANIC), "{function} can panic");
    }
    // One index that can be out of bounds is enough to be found.
    let planted = archive(Build::Features("panic-proof,plant-panic"));
    let found = undefined(&planted, &names(["ninfer_codec_planted"]));
    assert!(found.contains(PANIC), "the planted panic is not found: {found:?}");
    assert!(!exports(&planted).is_subset(&header_names()));
}

fn freestanding(archive: &Path, compiler: &str, name: &str) -> (Command, PathBuf) {
    let program = scratch("programs").join(name);
    let mut command = Command::new(compiler);
    command
        .args(STRICT)
        .args(["-std=c11", "-O2", "-ffreestanding", "-fno-builtin", "-nostdlib", "-static", "-I"])
        .arg(root().join("include"))
        .arg(root().join("ffi-tests/c/freestanding.c"))
        .arg(archive)
        .arg("-o")
        .arg(&program);
    (command, program)
}

#[test]
fn the_archive_links_without_a_c_library() {
    if !have(&["gcc", "clang-19"]) {
        return;
    }
    let plain = archive(Build::Plain);
    for compiler in ["gcc", "clang-19"] {
        let (mut link, program) = freestanding(&plain, compiler, &format!("freestanding-{compiler}"));
        succeed(&mut link);
        succeed(&mut Command::new(program));
    }
    let (mut link, _) =
        freestanding(&archive(Build::Features("plant-symbol")), "gcc", "freestanding-planted");
    let output = run(&mut link);
    assert!(
        !output.status.success() && text(&output).contains("ninfer_codec_planted_need"),
        "{}",
        text(&output)
    );
}

/// The archive of a crate with `std`.
fn other_archive(flags: &[&str], name: &str) -> PathBuf {
    let other = scratch("programs").join(name);
    succeed(
        Command::new("rustc")
            .args(["--edition", "2024", "-O", "--crate-type", "staticlib"])
            .args(flags)
            .arg(root().join("ffi-tests/c/other.rs"))
            .arg("-o")
            .arg(&other),
    );
    other
}

/// Links a program with two archives in the given order.
fn link_two(linker: &str, first: &Path, second: &Path, name: &str) -> (Command, PathBuf) {
    let program = scratch("programs").join(name);
    let mut command = Command::new("clang++-19");
    command
        .args(STRICT)
        .arg("-std=c++17")
        .arg(format!("-fuse-ld={linker}"))
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join("ffi-tests/c/two_archives.cpp"))
        .args([first, second])
        .args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-o"])
        .arg(&program);
    (command, program)
}

#[test]
fn the_archive_links_beside_another_rust_archive() {
    if !have(&["clang++-19", "ld", "ld.lld-19"]) {
        return;
    }
    let (ours, other) = (archive(Build::Plain), other_archive(&[], "libother.a"));
    let planted = archive(Build::Features("plant-symbol"));
    let clashing = other_archive(&["--cfg", "planted"], "libclashing.a");
    for linker in ["bfd", "lld"] {
        for (order, first, second) in [("ours-first", &ours, &other), ("ours-last", &other, &ours)] {
            let (mut link, program) = link_two(linker, first, second, &format!("two-{linker}-{order}"));
            succeed(&mut link);
            assert_eq!(succeed(&mut Command::new(program)), "both\n");
        }
        // Both archives with one more symbol of the same name: that must not link.
        let (mut link, _) = link_two(linker, &planted, &clashing, "two-planted");
        let output = run(&mut link);
        let said = text(&output);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("multiple definition") || said.contains("duplicate symbol"), "{said}");
    }
}

#[test]
fn the_shared_library_has_its_name_and_exports_the_header() {
    if !have(&TOOLS) {
        return;
    }
    let exported = |library: &Path| {
        let printed =
            succeed(Command::new("nm").args(["-D", "--defined-only", "--format=just-symbols"]).arg(library));
        names(printed.lines())
    };
    let library = libraries(Build::Plain).join("libninfer_codec.so");
    assert_eq!(exported(&library), header_names());
    let header = fs::read_to_string(header_path()).expect("the header");
    let abi = header
        .lines()
        .find_map(|line| line.strip_prefix("#define NINFER_CODEC_ABI_VERSION "))
        .expect("an ABI version");
    let dynamic = succeed(Command::new("readelf").args(["--dynamic", "--wide"]).arg(&library));
    assert!(dynamic.contains(&format!("soname: [libninfer_codec.so.{abi}]")), "{dynamic}");
    let planted = libraries(Build::Features("plant-symbol")).join("libninfer_codec.so");
    assert!(exported(&planted).contains("planted_symbol"));
}
