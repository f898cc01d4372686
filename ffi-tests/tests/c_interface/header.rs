//! The committed header: fresh, alone enough for every language it is for, and of the same layout as the library.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{STRICT, have, header_functions, run, scratch, succeed, text};
use ninfer_codec::ffi;
use ninfer_codec_ffi_tests::{header, header_path, root};

#[test]
fn the_header_is_fresh() {
    let committed = fs::read_to_string(header_path()).expect("the header is committed");
    assert!(
        committed == header(),
        "include/ninfer_codec.h is stale: cargo run -p ninfer-codec-ffi-tests --bin header"
    );
}

#[test]
fn the_header_lists_every_function() {
    // What `src/ffi` exports, by its own words.
    let mut exported = vec![];
    for entry in fs::read_dir(root().join("src/ffi")).expect("src/ffi") {
        let source = fs::read_to_string(entry.expect("an entry").path()).expect("a source");
        for after in source.split("#[unsafe(no_mangle)]").skip(1) {
            let name = after.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).expect("a name");
            exported.push(name.to_owned());
        }
    }
    exported.sort();
    assert_eq!(header_functions(), exported);
}

#[test]
fn the_version_is_the_package_s() {
    let parts = env!("CARGO_PKG_VERSION").split('.');
    // The package of the tests has the version of the library's, or this fails and says so.
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = ")).expect("a version");
    assert_eq!(version.trim_matches('"'), env!("CARGO_PKG_VERSION"));
    let number = parts.fold(0, |number, part| number * 1000 + part.parse::<u32>().expect("a number"));
    assert_eq!(ffi::NINFER_CODEC_VERSION, number);
    assert_eq!(ffi::ninfer_codec_version(), number);
}

/// Compiles a file that only includes the header.
fn compile(compiler: &str, language: &str, flags: &[&str], file: &Path) -> Command {
    let mut command = Command::new(compiler);
    command
        .args(STRICT)
        .args(["-x", language])
        .args(flags)
        .args(["-fsyntax-only", "-I"])
        .arg(root().join("include"))
        .arg(file);
    command
}

#[test]
fn the_header_compiles_alone_in_every_language() {
    if !have(&["gcc", "g++", "clang-19", "clang++-19"]) {
        return;
    }
    // A C standard that a compiler does not know under its own name has an older one.
    let languages = [
        ("gcc", "c", &["c99", "c11", "c17", "c2x"][..]),
        ("clang-19", "c", &["c99", "c11", "c17", "c23"][..]),
        ("g++", "c++", &["c++11", "c++14", "c++17", "c++20"][..]),
        ("clang++-19", "c++", &["c++11", "c++14", "c++17", "c++20", "c++23"][..]),
    ];
    let folder = scratch("header");
    let alone = folder.join("alone.c");
    // Twice, to see the guard; and a use, in the words of both languages.
    let text_alone = "#include <ninfer_codec.h>\n#include <ninfer_codec.h>\n\
        int use(void);\nint use(void) { return NINFER_CODEC_STATUS_OK == 0 ? (int)ninfer_codec_version() : 0; }\n";
    fs::write(&alone, text_alone).expect("a file");
    let broken = folder.join("broken.c");
    fs::write(&broken, format!("{text_alone}int use_too(void) {{ int unused; return 1; }}\n"))
        .expect("a file");
    for (compiler, language, standards) in languages {
        for standard in standards {
            let standard = format!("-std={standard}");
            for more in [&[][..], &["-fshort-enums"], &["-ffreestanding", "-nostdinc++"], &["-Wconversion"]] {
                let flags: Vec<&str> = std::iter::once(standard.as_str())
                    .chain(more.iter().copied().filter(|flag| language == "c++" || *flag != "-nostdinc++"))
                    .collect();
                succeed(&mut compile(compiler, language, &flags, &alone));
            }
            let output = run(&mut compile(compiler, language, &[&standard], &broken));
            assert!(!output.status.success(), "warnings are no errors: {}", text(&output));
        }
    }
}

/// The Rust side of a struct: members with offset and size, and the struct's own size.
macro_rules! layout {
    ($name:literal, $type:ty, [$($member:ident),* $(,)?]) => {{
        let mut members = vec![];
        $(
            let size = {
                const fn size_of_member<S, M>(_: fn(&S) -> &M) -> usize {
                    size_of::<M>()
                }
                size_of_member(|value: &$type| &value.$member)
            };
            members.push((stringify!($member), std::mem::offset_of!($type, $member), size));
        )*
        ($name, size_of::<$type>(), members)
    }};
}

#[test]
fn structs_have_one_layout_on_both_sides() {
    if !have(&["gcc", "clang-19"]) {
        return;
    }
    let structs = [
        layout!(
            "ninfer_codec_details",
            ffi::Details,
            [
                struct_size,
                status,
                fault,
                argument,
                index,
                row,
                column,
                group,
                offset,
                word,
                expected,
                actual,
                multiple
            ]
        ),
        layout!(
            "ninfer_codec_plan",
            ffi::TensorPlan,
            [
                struct_size,
                format,
                layout,
                rows,
                columns,
                padded_columns,
                elements,
                logical_groups,
                physical_groups,
                codes_offset,
                codes_bytes,
                codes_row_bytes,
                high_offset,
                high_bytes,
                high_row_bytes,
                scales_offset,
                scales_bytes,
                scales_row_bytes,
                divisor_offset,
                divisor_bytes,
                payload_bytes,
                alignment,
                code_words_per_row
            ]
        ),
        layout!(
            "ninfer_codec_format_descriptor",
            ffi::FormatDescriptor,
            [
                struct_size,
                format,
                layout,
                category,
                profile,
                code_bits,
                group,
                code_min,
                code_max,
                qmax,
                scale,
                has_divisor,
                bits_per_weight_numerator,
                bits_per_weight_denominator,
                column_step,
                row_step,
                reserved
            ]
        ),
        layout!(
            "ninfer_codec_layout_descriptor",
            ffi::LayoutDescriptor,
            [struct_size, layout, rank_min, rank_max, row_multiple, column_multiple, reserved, alignment]
        ),
        layout!("ninfer_codec_encoding_descriptor", ffi::EncodingDescriptor, [struct_size, alignment]),
        layout!(
            "ninfer_codec_part",
            ffi::Part,
            [struct_size, format, layout, dims, rank, payload, payload_len]
        ),
    ];
    let (mut include, mut expected) = (String::new(), String::new());
    for (name, size, members) in &structs {
        include += &format!("SIZE({name});\n");
        expected += &format!("{name} - 0 {size}\n");
        let mut end = 0;
        for (member, offset, size) in members {
            include += &format!("MEMBER({name}, {member});\n");
            expected += &format!("{name} {member} {offset} {size}\n");
            assert_eq!(*offset, end, "no padding before {name}.{member}");
            end = offset + size;
        }
        assert_eq!(end, *size, "every member of {name} is listed, and no padding follows");
    }
    let folder = scratch("header");
    fs::write(folder.join("members.inc"), include).expect("a file");
    for (compiler, flags) in [("gcc", &[][..]), ("clang-19", &["-fshort-enums"][..])] {
        let program = folder.join(format!("layout-{compiler}"));
        succeed(
            Command::new(compiler)
                .args(STRICT)
                .args(["-std=c11", "-I"])
                .args(flags.iter().map(Path::new).chain([folder.as_path()]).rev())
                .arg("-I")
                .arg(root().join("include"))
                .arg(root().join("ffi-tests/c/layout.c"))
                .arg("-o")
                .arg(&program),
        );
        assert_eq!(succeed(&mut Command::new(program)), expected);
    }
}

#[test]
fn every_id_and_status_has_its_number_for_good() {
    let header = fs::read_to_string(header_path()).expect("the header");
    let defined: Vec<&str> = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define NINFER_CODEC_"))
        .filter(|line| line.contains(' '))
        .collect();
    assert_eq!(
        defined,
        fs::read_to_string(root().join("ffi-tests/numbers.txt"))
            .expect("numbers")
            .lines()
            .collect::<Vec<_>>()
    );
}
