//! `bench`: how fast tensors decode, against a loop that only reads their bytes.

use std::hint::black_box;
use std::time::Instant;

use ninfer_artifact::Object;
use ninfer_codec::{Error, Format, Plan, Tensor, WordsMut};

use crate::blocks::blocks;
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
        let mut decoder = Decoder::default();
        let decode = seconds(|| decoder.run(&tensor, payload)).map_err(|error| refused(object, error))?;
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
#[derive(Default)]
struct Decoder {
    values: Vec<f32>,
    words: Vec<i32>,
}

impl Decoder {
    fn run(&mut self, tensor: &Tensor<'_>, payload: &[u8]) -> Result<(), Error> {
        let plan = tensor.plan();
        for block in blocks(plan, plan.rows()) {
            let columns = block.columns as usize;
            let elements = block.rows as usize * columns;
            if plan.format() == Format::I32 {
                // Elements lie one after another, so the block's bytes are a payload of their own.
                let first = (block.row * plan.columns() + block.column) as usize;
                let own = Plan::new(Format::I32, Format::I32.layout(), &[elements as u64])?;
                let bytes = &payload[first * size_of::<i32>()..][..elements * size_of::<i32>()];
                self.words.resize(elements, 0);
                Tensor::new(own, bytes)?.unpack(WordsMut::I32(&mut self.words))?;
            } else {
                self.values.resize(elements, 0.0);
                let rows = tensor.rows(block.row, block.rows)?;
                rows.decode_columns(block.column, block.columns, &mut self.values[..], columns)?;
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
