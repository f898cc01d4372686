//! What the tests share: compilers and checkers that may be missing, builds of the archive, programs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use ninfer_codec_ffi_tests::root;

/// Where tests put what they make.
pub fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ffi-tests").join(name);
    fs::create_dir_all(&path).expect("a folder for tests");
    path
}

/// Whether all tools are there. One that is missing fails the test where `CI` is `true`; elsewhere it is said
/// aloud, past the capture of test output, that the test was skipped.
pub fn have(tools: &[&str]) -> bool {
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| !is_there(tool)).collect();
    if missing.is_empty() {
        return true;
    }
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "missing: {missing:?}; scripts/setup.sh installs them"
    );
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    writeln!(std::io::stderr(), "SKIPPED {test}: missing {missing:?}; scripts/setup.sh installs them")
        .expect("standard error");
    false
}

fn is_there(tool: &str) -> bool {
    Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Runs a command and returns what it printed, or ends the test with it.
pub fn succeed(command: &mut Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{command:?}\n{}", text(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command.
pub fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// What a command printed, the end of it where it is long.
pub fn text(output: &Output) -> String {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let begin = text.len().saturating_sub(4000);
    text.chars().skip(begin).collect()
}

/// The triple of this machine.
fn host() -> String {
    let version = succeed(Command::new("rustc").arg("-vV"));
    version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host").to_owned()
}

/// How an archive is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Build {
    /// As it is shipped.
    Plain,
    /// With these features of `capi`.
    Features(&'static str),
    /// With a sanitizer: `address` or `thread`.
    Sanitizer(&'static str),
}

/// Builds the libraries, once and one build at a time, and returns the folder that they are in.
pub fn libraries(build: Build) -> PathBuf {
    static BUILT: Mutex<BTreeMap<Build, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    built.entry(build).or_insert_with(|| build_libraries(build)).clone()
}

fn build_libraries(build: Build) -> PathBuf {
    // A target folder of its own, with the triple given: flags then do not reach build scripts and macros.
    let target = scratch("target");
    let host = host();
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(root())
        .args([
            "build",
            "--quiet",
            "--profile",
            "archive",
            "--package",
            "ninfer-codec-capi",
            "--target",
            &host,
        ])
        .arg("--target-dir")
        .arg(&target)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS");
    let name = match build {
        Build::Plain => "plain".to_owned(),
        Build::Features(features) => {
            cargo.args(["--features", features]);
            features.replace(',', "+")
        }
        Build::Sanitizer(sanitizer) => {
            // The standard library's own crates are not built with it; nothing of them is shared with C.
            let mut flags = format!("-Zsanitizer={sanitizer} -Cunsafe-allow-abi-mismatch=sanitizer");
            if sanitizer == "thread" {
                // It sees no access of more than 16 bytes, as those of the vector kernels are.
                flags += " --cfg ninfer_codec_force_portable";
            }
            cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flags);
            sanitizer.to_owned()
        }
    };
    succeed(&mut cargo);
    let folder = scratch(&format!("libraries/{name}"));
    for library in ["libninfer_codec.a", "libninfer_codec.so"] {
        fs::copy(target.join(&host).join("archive").join(library), folder.join(library)).expect("a library");
    }
    folder
}

/// The archive of a build.
pub fn archive(build: Build) -> PathBuf {
    libraries(build).join("libninfer_codec.a")
}

/// Warnings are errors in everything compiled here.
pub const STRICT: [&str; 4] = ["-pedantic", "-Wall", "-Wextra", "-Werror"];

/// Compiles a program of `ffi-tests/c` with an archive and returns its path.
pub fn program(compiler: &str, flags: &[&str], source: &str, archive: &Path, name: &str) -> PathBuf {
    let program = scratch("programs").join(name);
    succeed(
        Command::new(compiler)
            .args(STRICT)
            .args(flags)
            .arg("-I")
            .arg(root().join("include"))
            .arg(root().join("ffi-tests/c").join(source))
            .arg(archive)
            .arg("-o")
            .arg(&program),
    );
    program
}

/// The functions that the header declares, sorted.
pub fn header_functions() -> Vec<String> {
    let header = fs::read_to_string(ninfer_codec_ffi_tests::header_path()).expect("the header");
    let mut names: Vec<String> = header
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .filter_map(|line| {
            let (before, _) = line.split_once('(')?;
            let name = before.rsplit([' ', '*']).next()?;
            name.starts_with("ninfer_codec_").then(|| name.to_owned())
        })
        .collect();
    names.sort();
    assert!(names.len() >= 30, "so few functions: {names:?}");
    names
}
