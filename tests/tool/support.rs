//! Running the tool, and checkpoints for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use tempfile::TempDir;

/// The built example, beside the test's own folder.
pub fn tool_path() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let path = test.parent().and_then(Path::parent).expect("a target folder").join("examples/ninfer");
    assert!(path.exists(), "{} is missing: run `cargo build --example ninfer` first", path.display());
    path
}

/// A call of the tool that does not depend on the user's terminal.
pub fn tool(arguments: &[&str]) -> Command {
    let mut command = Command::new(tool_path());
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    for variable in ["CARGO_MANIFEST_DIR", "COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    command
}

/// What a finished call gave.
#[derive(Debug)]
pub struct Call {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Call {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Runs the tool to its end.
pub fn call(arguments: &[&str]) -> Call {
    tool(arguments).output().expect("the tool starts").into()
}

/// Runs the tool, which must succeed without a word on stderr; returns stdout.
pub fn succeed(arguments: &[&str]) -> String {
    let call = call(arguments);
    assert_eq!((call.code, call.stderr.as_str()), (Some(0), ""), "{arguments:?}\n{}", call.stdout);
    call.stdout
}

/// Runs the tool, which must fail with this code; returns stderr.
pub fn fail(code: i32, arguments: &[&str]) -> String {
    let call = call(arguments);
    assert_eq!(call.code, Some(code), "{arguments:?}\n{}{}", call.stdout, call.stderr);
    call.stderr
}

/// A folder that goes away.
pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A path in a folder, as an argument.
pub fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().expect("UTF-8").into()
}

/// What is in a folder.
pub fn listing(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// Writes a safetensors file of little-endian words.
pub fn checkpoint(path: &str, tensors: &[(&str, Dtype, &[usize], &[u8])]) {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        (*name, TensorView::new(*dtype, shape.to_vec(), bytes).expect("shape and bytes agree"))
    });
    safetensors::serialize_to_file(views, None, Path::new(path)).expect("written");
}

/// The bytes of float values.
pub fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
