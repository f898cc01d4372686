//! `bench`: how fast tensors decode, against a loop that only reads their bytes.

use std::hint::black_box;
use std::time::Instant;

use ninfer_artifact::Object;
use ninfer_codec::{Error, Format, Tensor, WordsMut};

use crate::blocks::rows_a_block;
use crate::cli::Bench;
use crate::console;
use crate::failure::{Failure, Outcome};
use crate::opened::Mapped;
use crate::table::Table;

/// Runs of which the median is taken.
const RUNS: usize = 5;

pub fn run(arguments: &Bench) -> Outcome<()> {
    let file = Mapped::open(&arguments.file)?;
    let artifact = file.artifact()?;
    let mut table = Table::new(&[
        "tensor",
        "format",
        ">weights",
        ">Mweights/s",
        ">decode GB/s",
        ">read GB/s",
        ">decode/read",
    ]);
    for object in artifact.directory().objects() {
        let Some(tensor) = artifact.tensor(object) else { continue };
        let payload = artifact.payload(object);
        let mut decoder = Decoder::new(&tensor);
        let decode = seconds(|| decoder.run(&tensor)).map_err(|error| refused(object, error))?;
        let read = seconds(|| {
            black_box(sum(black_box(payload)));
            Ok::<_, Error>(())
        })
        .map_err(|error| refused(object, error))?;
        let rate = |seconds: f64| payload.len() as f64 / seconds / 1e9;
        let elements = tensor.plan().elements();
        table.row(vec![
            object.name().into(),
            tensor.plan().format().name().into(),
            elements.to_string(),
            format!("{:.1}", elements as f64 / decode / 1e6),
            format!("{:.3}", rate(decode)),
            format!("{:.3}", rate(read)),
            format!("{:.3}", read / decode),
        ]);
    }
    console::print(table)?;
    console::line("GB/s are of payload bytes; one thread")
}

fn refused(object: &Object, error: Error) -> Failure {
    let name = object.name();
    Failure::refused(format!("object {name:?}: {error}; write the artifact again from its source"))
}

/// The median time of a run.
fn seconds<E>(mut run: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut times = [0.0; RUNS];
    for time in &mut times {
        let start = Instant::now();
        run()?;
        *time = start.elapsed().as_secs_f64();
    }
    times.sort_by(f64::total_cmp);
    Ok(times[RUNS / 2].max(1e-9))
}

/// Room for the values of a block.
struct Decoder {
    rows: u64,
    values: Vec<f32>,
    words: Vec<i32>,
}

impl Decoder {
    fn new(tensor: &Tensor<'_>) -> Self {
        let plan = tensor.plan();
        let rows = rows_a_block(plan).min(plan.rows());
        let elements = (rows * plan.columns()) as usize;
        match plan.format() {
            Format::I32 => Self { rows, values: Vec::new(), words: vec![0; elements] },
            _ => Self { rows, values: vec![0.0; elements], words: Vec::new() },
        }
    }

    fn run(&mut self, tensor: &Tensor<'_>) -> Result<(), Error> {
        let (rows, columns) = (tensor.plan().rows(), tensor.plan().columns() as usize);
        let mut begin = 0;
        while begin < rows {
            let view = tensor.rows(begin, self.rows.min(rows - begin))?;
            begin += view.count();
            let elements = view.count() as usize * columns;
            if self.words.is_empty() {
                view.decode(&mut self.values[..elements], columns)?;
            } else {
                view.unpack(WordsMut::I32(&mut self.words[..elements]))?;
            }
            black_box((&self.values, &self.words));
        }
        Ok(())
    }
}

/// The wrapping sum of the bytes as 64-bit words.
fn sum(bytes: &[u8]) -> u64 {
    const LANES: usize = 8;
    let mut lanes = [0u64; LANES];
    let (words, tail) = bytes.as_chunks::<{ 8 * LANES }>();
    for group in words {
        for (lane, word) in lanes.iter_mut().zip(group.as_chunks().0) {
            *lane = lane.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    let tail = tail.iter().fold(0u64, |sum, &byte| sum.wrapping_add(byte.into()));
    lanes.into_iter().fold(tail, u64::wrapping_add)
}
