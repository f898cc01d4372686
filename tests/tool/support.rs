//! Running the tool, and checkpoints for it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

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

/// Writes a checkpoint of F32 matrices, piece by piece, of uneven values. `columns` is a multiple of 1024.
pub fn generate(path: &str, tensors: usize, rows: usize, columns: usize) {
    const PIECE: usize = 1024;
    let tensor_bytes = rows * columns * 4;
    let entries: Vec<_> = (0..tensors)
        .map(|index| {
            let (begin, end) = (index * tensor_bytes, (index + 1) * tensor_bytes);
            format!(r#""layer.{index:03}.weight":{{"dtype":"F32","shape":[{rows},{columns}],"data_offsets":[{begin},{end}]}}"#)
        })
        .collect();
    let mut header = format!("{{{}}}", entries.join(","));
    header += &" ".repeat(header.len().next_multiple_of(8) - header.len());
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut piece = [0u8; PIECE * 4];
    for _ in 0..tensors * rows * columns / PIECE {
        for word in piece.as_chunks_mut::<4>().0 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = ((state >> 40) as f32 / (1u64 << 23) as f32 - 1.0).to_le_bytes();
        }
        file.write_all(&piece).unwrap();
    }
    file.flush().unwrap();
}

/// Starts the tool, its output in pipes.
pub fn start(arguments: &[&str]) -> Child {
    tool(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the tool starts")
}
