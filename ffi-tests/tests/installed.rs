//! What a user does with an installed library: pkg-config, CMake, the examples, Python, the README's minutes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ninfer_artifact::{Content, FilePlan, Identity, Writer};
use ninfer_codec::{Format, Plan, Tensor, TensorMut, Words};
use ninfer_codec_ffi_tests::root;

/// What every program of the minute prints.
const MINUTE: &str = "0.25195312 1.9998779\n";
/// Rows and columns of every tensor of the artifact: three chunks of the C loader, not all full.
const SHAPE: [u64; 2] = [384, 192];

fn scratch() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("installed");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a command and gives what it prints, or stops the test with all it said.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Whether a program is there. One that is missing fails the test in CI, and is said aloud elsewhere.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{program} is missing; scripts/setup.sh installs it");
        eprintln!("SKIPPED: {program} is missing; scripts/setup.sh installs it");
    }
    found
}

/// The prefix that scripts/install.sh lays down, made once.
fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = scratch().join("prefix");
        run(Command::new(root().join("scripts/install.sh")).arg(&prefix).env("CARGO_TARGET_DIR", target()));
        prefix
    })
}

/// The target folder that this test was built in.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().to_path_buf()
}

fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let text = run(Command::new("pkg-config")
        .args(arguments)
        .arg("ninfer_codec")
        .env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig")));
    text.split_whitespace().map(String::from).collect()
}

/// Compiles a program by what pkg-config says, which links the shared library.
fn compile(compiler: &str, standard: &str, source: &str, name: &str) -> Command {
    let program = scratch().join(name);
    run(Command::new(compiler)
        .args([standard, "-pedantic", "-Wall", "-Wextra", "-Werror"])
        .arg(root().join(source))
        .args(pkg_config(&["--cflags", "--libs"]))
        .arg("-o")
        .arg(&program));
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", prefix().join("lib"));
    command
}

/// One tensor of each quantized format, of mixed words.
fn artifact() -> &'static Path {
    static ARTIFACT: OnceLock<PathBuf> = OnceLock::new();
    ARTIFACT.get_or_init(|| {
        let formats = Format::ALL.into_iter().filter(|format| format.descriptor().scale.is_some());
        let contents = formats
            .clone()
            .map(|format| (format.name().to_string(), Content::Tensor { format, shape: SHAPE.to_vec() }))
            .collect();
        let identity = Identity { model_id: "clients".into(), weights_id: "1".into() };
        let file_plan = FilePlan::new(identity, contents).unwrap();
        let path = scratch().join("clients.ninfer");
        let mut writer = Writer::new(file_plan, fs::File::create(&path).unwrap()).unwrap();
        for format in formats {
            writer.begin(format.name()).unwrap();
            writer.append(&payload(format)).unwrap();
        }
        writer.finish().unwrap();
        path
    })
}

fn payload(format: Format) -> Vec<u8> {
    let plan = Plan::new(format, format.layout(), &SHAPE).unwrap();
    let mut payload = vec![0xa5; plan.payload_bytes() as usize];
    let mut tensor = TensorMut::new(plan, &mut payload).unwrap();
    let elements = plan.elements() as usize;
    let mixed = |index: usize| (index.wrapping_mul(0x9e37_79b9) >> 11) as u32;
    match format {
        Format::Nvfp4 => {
            let codes: Vec<u8> = (0..elements / 2).map(|index| mixed(index) as u8).collect();
            let scales: Vec<u8> = (0..elements / 16).map(|index| (mixed(index) % 0x7f) as u8).collect();
            tensor.pack(Words::Nvfp4 { codes: &codes, scales: &scales, divisor: 3.0f32.to_bits() }).unwrap();
        }
        Format::Fp8E4M3FnRowBf16S => {
            let codes: Vec<u8> = (0..elements).map(|index| (mixed(index) % 0x7f) as u8).collect();
            let scales: Vec<u16> = (0..SHAPE[0] as u16).map(|row| 0x3c00 + row).collect();
            tensor.pack(Words::Fp8Row { codes: &codes, scales: &scales }).unwrap();
        }
        _ => {
            let source: Vec<f32> = (0..elements).map(|index| mixed(index) as f32 / 1e6 - 1000.0).collect();
            tensor.quantize(&source[..], SHAPE[1] as usize).unwrap();
        }
    }
    payload
}

fn decoded(format: Format) -> Vec<f32> {
    let plan = Plan::new(format, format.layout(), &SHAPE).unwrap();
    let mut values = vec![0.0f32; plan.elements() as usize];
    Tensor::new(plan, &payload(format)).unwrap().decode(&mut values[..], SHAPE[1] as usize).unwrap();
    values
}

fn quantized() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|format| format.descriptor().scale.is_some())
}

/// A block of the README, by its heading and language.
fn readme_block(heading: &str, language: &str) -> String {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let section = readme.split_once(&format!("\n## {heading}\n")).expect(heading).1;
    let block = section.split_once(&format!("```{language}\n")).expect(language).1;
    block.split_once("```").unwrap().0.to_string()
}

fn source(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn c_in_a_minute() {
    assert_eq!(readme_block("C in a minute", "c"), source("ffi-tests/minute/minute.c"));
    for compiler in ["gcc", "clang-19"] {
        if has(compiler) && has("pkg-config") {
            let name = format!("minute-{compiler}");
            assert_eq!(run(&mut compile(compiler, "-std=c99", "ffi-tests/minute/minute.c", &name)), MINUTE);
        }
    }
}

#[test]
fn the_installed_archive_leaves_a_compiler_its_own_runtime() {
    for compiler in ["gcc", "clang-19"] {
        if has(compiler) {
            let program = scratch().join(format!("wide-integers-{compiler}"));
            run(Command::new(compiler)
                .arg(root().join("ffi-tests/c/wide_integers.c"))
                .arg(format!("-I{}", prefix().join("include").display()))
                .arg(prefix().join("lib/libninfer_codec.a"))
                .arg("-o")
                .arg(&program));
            run(&mut Command::new(program));
        }
    }
}

#[test]
fn cpp_in_a_minute() {
    assert_eq!(readme_block("C++ in a minute", "cpp"), source("ffi-tests/minute/minute.cpp"));
    for compiler in ["g++", "clang++-19"] {
        if has(compiler) && has("pkg-config") {
            let name = format!("minute-{compiler}");
            let mut program = compile(compiler, "-std=c++20", "ffi-tests/minute/minute.cpp", &name);
            assert_eq!(run(&mut program), MINUTE);
        }
    }
}

#[test]
fn python_in_a_minute() {
    assert_eq!(readme_block("Python in a minute", "python"), source("ffi-tests/minute/minute.py"));
    assert_eq!(run(python().arg(root().join("ffi-tests/minute/minute.py"))), MINUTE);
}

#[test]
fn the_python_client_passes_its_tests() {
    let text = run(python()
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(root().join("ffi-tests/python")));
    assert!(text.contains(" passed") && !text.contains("skipped"), "{text}");
}

/// Python of the environment that scripts/setup.sh makes, or else the machine's own, with the client on its path.
fn python() -> Command {
    let environment = root().join("target/python/bin/python");
    let mut command = Command::new(if environment.exists() { environment } else { "python3".into() });
    command.env("NINFER_CODEC_LIBRARY", prefix().join("lib/libninfer_codec.so"));
    command.env("PYTHONPATH", root().join("ffi-tests/python")).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// The digest that the C loader prints.
fn fnv1a(values: &[f32]) -> u64 {
    values.iter().flat_map(|value| value.to_ne_bytes()).fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[test]
fn the_c_loader_streams_every_format() {
    let file = fs::read(artifact()).unwrap();
    let artifact_read = ninfer_artifact::Artifact::new(&file).unwrap();
    let directory = artifact_read.directory();
    for format in quantized() {
        let object = artifact_read.object(format.name()).unwrap();
        let offset = directory.payload_offset() + object.offset();
        let mut loader =
            compile("gcc", "-std=c11", "examples/c-loader/loader.c", &format!("loader-{}", format.id()));
        let [rows, columns] = SHAPE.map(|size| size.to_string());
        let text = run(loader.arg(artifact()).args([&offset.to_string(), format.name(), &rows, &columns]));
        assert!(text.contains(&format!("digest {:016x}", fnv1a(&decoded(format)))), "{format}: {text}");
    }
}

#[test]
fn the_cpp_engine_builds_by_cmake_and_looks_rows_up() {
    if !has("cmake") {
        return;
    }
    let build = scratch().join("cpp-engine");
    run(Command::new("cmake")
        .arg("-S")
        .arg(root().join("examples/cpp-engine"))
        .arg("-B")
        .arg(&build)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())));
    run(Command::new("cmake").arg("--build").arg(&build));
    for format in quantized() {
        let values = decoded(format);
        let columns = SHAPE[1] as usize;
        let text =
            run(Command::new(build.join("engine")).arg(artifact()).args([format.name(), "7", "300", "7"]));
        let expected: Vec<String> = [7, 300, 7]
            .into_iter()
            .map(|row| {
                let printed = |value: f32| {
                    run(Command::new("printf").args(["%.9g", &format!("{:e}", f64::from(value))]))
                };
                let [first, second] = [0, 1].map(|column| printed(values[row * columns + column]));
                format!("row {row}: {first} {second} ...")
            })
            .collect();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], expected[..], "{format}");
        assert!(lines[3].starts_with("row sums: "), "{text}");
    }
}
