//! Checkpoints of any kind for the tool's reader: files, shards, indexes, folders. What it takes lies inside the
//! files and is as long as its shape says; ready-made words that it lets pass fit their format.

#![no_main]

#[path = "../../examples/ninfer/checkpoint.rs"]
#[allow(dead_code)]
mod checkpoint;
#[path = "../../examples/ninfer/failure.rs"]
#[allow(dead_code)]
mod failure;
#[path = "../../examples/ninfer/header.rs"]
#[allow(dead_code)]
mod header;
#[path = "../../examples/ninfer/import.rs"]
#[allow(dead_code)]
mod import;
#[path = "input.rs"]
mod input;
#[path = "../../examples/ninfer/json.rs"]
#[allow(dead_code)]
mod json;
#[path = "../../examples/ninfer/opened.rs"]
#[allow(dead_code)]
mod opened;
#[path = "../../examples/ninfer/words.rs"]
#[allow(dead_code)]
mod words;

use std::fs;
use std::ops::Range;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use ninfer_codec::{Format, Plan};
use safetensors::Dtype;
use serde_json::Value;
use tempfile::TempDir;

use checkpoint::Checkpoint;
use failure::{Code, Failure};
use import::Words;
use input::Input;
use words::{Integers, Values, direct_twin, is_float, is_integer};

fuzz_target!(|data: &[u8]| {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    open(folder.expect("a folder of its own").path(), &mut Input(data));
});

fn open(folder: &Path, input: &mut Input<'_>) {
    let how = input.byte() % 6;
    let add = |name: &str, contents: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, contents).expect("room for a small file");
        path
    };
    let path = match how {
        // The bytes as they are, and with a length before the header that fits.
        0 => add("a.safetensors", input.0),
        1 => add("a.safetensors", &safetensors(input)),
        // An index and two shards.
        2 | 3 => {
            let len = usize::from(input.u16() % 1000);
            let index = input.bytes(len);
            let index = add("model.safetensors.index.json", index);
            let len = usize::from(input.u16());
            add("a.safetensors", &safetensors(&mut Input(input.bytes(len))));
            add("b.safetensors", &safetensors(input));
            if how == 2 { index } else { folder.to_path_buf() }
        }
        // Shards without an index.
        _ => {
            let len = usize::from(input.u16());
            add("a.safetensors", &safetensors(&mut Input(input.bytes(len))));
            add("b.safetensors", &safetensors(input));
            folder.to_path_buf()
        }
    };
    match Checkpoint::open(&path) {
        Ok(checkpoint) => taken(&checkpoint),
        Err(failure) => refused(&failure),
    }
}

/// A header and data behind it; the length before the header is right, or off by some.
fn safetensors(input: &mut Input<'_>) -> Vec<u8> {
    let (wrong, header_bytes) = (input.byte(), input.u16());
    // What stands for data is not wanted in the corpus: a length and a byte to repeat.
    let (data_bytes, data) = (usize::from(input.u16() % 3000), input.byte());
    let header = input.bytes(header_bytes.into());
    let mut length = header.len() as u64;
    if wrong >= 240 {
        length = length.wrapping_add(input.number());
    }
    let mut file = length.to_le_bytes().to_vec();
    file.extend(header);
    file.resize(file.len() + data_bytes, data);
    file
}

fn refused(failure: &Failure) {
    assert!(matches!(failure.code, Code::Refused | Code::Io), "{failure:?}");
    assert!(!failure.lines.is_empty());
    assert!(failure.lines.iter().all(|line| !line.trim().is_empty()), "{failure:?}");
}

/// Bytes of so many values of a type; nothing where that is no whole number.
fn bytes_of(dtype: Dtype, shape: &[u64]) -> Option<u128> {
    let bits =
        shape.iter().try_fold(dtype.bitsize() as u128, |bits, &dimension| bits.checked_mul(dimension.into()));
    bits.filter(|bits| bits % 8 == 0).map(|bits| bits / 8)
}

/// What the header of a file says of a tensor, by another reader, and where its bytes are.
fn in_header(file: &[u8], name: &str) -> Option<(Value, Range<*const u8>)> {
    let (length, rest) = file.split_first_chunk().expect("a length");
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let mut header: Value = serde_json::from_slice(header).expect("JSON");
    let entry = header.as_object_mut().expect("an object").remove(name)?;
    let offset = |index: usize| entry["data_offsets"][index].as_u64().expect("a number") as usize;
    let bytes = &data[offset(0)..offset(1)];
    Some((entry, bytes.as_ptr_range()))
}

fn taken(checkpoint: &Checkpoint) {
    for tensor in checkpoint.tensors() {
        assert_eq!(bytes_of(tensor.dtype, tensor.shape), Some(tensor.bytes.len() as u128));
        let found = checkpoint.files.iter().filter_map(|file| in_header(file, tensor.name));
        let found = found.filter(|(entry, place)| {
            let dtype = serde_json::to_value(tensor.dtype).expect("a name");
            let shape = serde_json::to_value(tensor.shape).expect("numbers");
            entry["dtype"] == dtype && entry["shape"] == shape && *place == tensor.bytes.as_ptr_range()
        });
        assert!(found.count() >= 1, "{}: not what a header says", tensor.name);
        assert_eq!(
            checkpoint.tensor(tensor.name).map(|same| same.bytes.as_ptr()),
            Some(tensor.bytes.as_ptr())
        );
        let count = tensor.shape.iter().product::<u64>() as usize;
        if let Some(values) = Values::new(tensor.dtype, tensor.bytes) {
            assert!(is_float(tensor.dtype) && values.source().len() == count);
        }
        if let Some(integers) = Integers::new(tensor.dtype, tensor.bytes) {
            assert!(is_integer(tensor.dtype));
            let len = match integers {
                Integers::Signed(list) => list.len(),
                Integers::Unsigned(list) => list.len(),
            };
            assert_eq!(len, count);
        }
        if let Some(format) = direct_twin(tensor.dtype) {
            let plan = Plan::new(format, format.layout(), tensor.shape);
            assert!(
                plan.is_err() || plan.is_ok_and(|plan| plan.payload_bytes() == tensor.bytes.len() as u64)
            );
        }
    }
    let items = import::items(checkpoint);
    assert!(items.is_sorted_by(|a, b| a.name <= b.name));
    for item in &items {
        assert_eq!(
            item.words.bytes(),
            item.words.tensors().iter().map(|tensor| tensor.bytes.len() as u64).sum::<u64>()
        );
        if let Some(refusal) = &item.refusal {
            assert!(!refusal.is_empty());
            continue;
        }
        match &item.words {
            Words::Values(tensor) => {
                assert_eq!((tensor.name, tensor.shape), (&item.name[..], &item.shape[..]))
            }
            Words::Nvfp4 { codes, scales, divisor } => {
                let [rows, columns] = item.shape[..] else { panic!("{item:?}") };
                let elements = u128::from(rows) * u128::from(columns);
                assert_eq!(codes.bytes.len() as u128 * 2, elements);
                assert_eq!(scales.bytes.len() as u128 * 16, elements);
                assert_eq!(divisor.bytes.len(), 4);
            }
            Words::Fp8Row { codes, scales } => {
                let rows = item.shape.first().copied().unwrap_or(1);
                assert_eq!(scales.shape.iter().product::<u64>(), rows);
                assert_eq!(Some(codes.bytes.len() as u128), bytes_of(Dtype::U8, &item.shape));
                if let Ok(plan) =
                    Plan::new(Format::Fp8E4M3FnRowBf16S, Format::Fp8E4M3FnRowBf16S.layout(), &item.shape)
                {
                    assert_eq!(plan.elements(), codes.bytes.len() as u64);
                }
            }
        }
    }
}
