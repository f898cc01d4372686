//! The conversion: blocks of rows, each read from the mapped source, converted in memory and written to its
//! places in the output. Blocks do not depend on the number of threads, and nothing else does.

use std::cell::RefCell;

use half::bf16;
use ninfer_codec::Words as NaturalWords;
use ninfer_codec::layout::Plane;
use ninfer_codec::{Error, Format, Plan, Source, Tensor, TensorMut, WordsMut, convert};
use rayon::prelude::*;
use safetensors::Dtype;

use crate::assign::{Job, Part};
use crate::blocks::rows_a_block;
use crate::checkpoint::SourceTensor;
use crate::failure::{Failure, Outcome};
use crate::import::Words;
use crate::measure::Measure;
use crate::output::OutputFile;
use crate::progress;
use crate::words::{Integers, Values, direct_twin, words};

/// Blocks that a thread works on between two looks at the results.
const BLOCKS_A_THREAD: usize = 32;

/// Some rows of a part.
#[derive(Clone, Copy)]
struct Block<'j> {
    index: usize,
    job: &'j Job<'j>,
    part: &'j Part<'j>,
    /// First row, counted in the part.
    begin: u64,
    rows: u64,
}

/// Converts every job into its place in the output; `offsets` are the file offsets of the payloads.
pub fn run(
    jobs: &[Job<'_>],
    offsets: &[u64],
    output: &OutputFile,
    done: impl Fn(u64) + Sync,
) -> Outcome<Vec<Measure>> {
    let mut measures = vec![Measure::default(); jobs.len()];
    let blocks: Vec<_> = jobs.iter().enumerate().flat_map(|(index, job)| blocks(index, job)).collect();
    for batch in blocks.chunks(BLOCKS_A_THREAD * rayon::current_num_threads()) {
        let results: Vec<_> = batch
            .par_iter()
            .map(|block| {
                progress::check()?;
                let measure = block.convert(output, offsets[block.index])?;
                done(block.part.words.bytes() * block.rows / block.part.rows);
                Ok(measure)
            })
            .collect();
        // In the order of the rows: sums and the first failure are the same however many threads there are.
        for (block, result) in batch.iter().zip(results) {
            measures[block.index].append(&result?);
        }
    }
    Ok(measures)
}

fn blocks<'j>(index: usize, job: &'j Job<'j>) -> impl Iterator<Item = Block<'j>> {
    let rows = rows_a_block(&job.plan);
    job.parts.iter().flat_map(move |part| {
        (0..part.rows.div_ceil(rows)).map(move |block| {
            let begin = block * rows;
            Block { index, job, part, begin, rows: rows.min(part.rows - begin) }
        })
    })
}

/// Memory that a thread uses again for every block.
#[derive(Default)]
struct Scratch {
    payload: Vec<u8>,
    decoded: Vec<f32>,
    codes: Vec<i8>,
    scales: Vec<u16>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl<'j> Block<'j> {
    /// Converts the block, writes it, and measures it.
    fn convert(&self, output: &OutputFile, offset: u64) -> Outcome<Measure> {
        SCRATCH.with_borrow_mut(|scratch| match self.part.words {
            Words::Values(tensor) => {
                let bytes = self.bytes_of(&tensor);
                match direct_twin(tensor.dtype) {
                    Some(format) if format == self.job.plan.format() => {
                        let row_bytes = self.job.plan.codes().row_bytes;
                        output.write_at(bytes, offset + self.first_row() * row_bytes)?;
                        Ok(Measure::default())
                    }
                    _ => self.convert_values(&tensor, bytes, scratch, output, offset),
                }
            }
            Words::Nvfp4 { codes, scales, divisor } => {
                let codes = self.bytes_of(&codes);
                let divisor = words::<u32>(divisor.bytes)[0];
                let natural = NaturalWords::Nvfp4 { codes, scales: self.bytes_of(&scales), divisor };
                self.pack(natural, scratch, output, offset)?;
                let mut measure = Measure::default();
                measure.add_pairs(codes);
                Ok(measure)
            }
            Words::Fp8Row { codes, scales } => {
                let codes = self.bytes_of(&codes);
                self.row_scales(&scales, &mut scratch.scales)?;
                let scales = std::mem::take(&mut scratch.scales);
                let natural = NaturalWords::Fp8Row { codes, scales: &scales };
                let packed = self.pack(natural, scratch, output, offset);
                let mut measure = Measure { groups: self.rows, ..Measure::default() };
                measure.all_zero = scales.iter().filter(|&&scale| scale == 0).count() as u64;
                scratch.scales = scales;
                measure.add_bytes(codes);
                packed.map(|()| measure)
            }
        })
    }

    fn convert_values(
        &self,
        tensor: &SourceTensor<'j>,
        bytes: &[u8],
        scratch: &mut Scratch,
        output: &OutputFile,
        offset: u64,
    ) -> Outcome<Measure> {
        let plan = &self.job.plan;
        let count = (self.rows * plan.columns()) as usize;
        let inexact = |error| self.failure(tensor, error);
        match (plan.format(), Values::new(tensor.dtype, bytes)) {
            (Format::Bf16, Some(values)) => {
                let mut exact = vec![bf16::ZERO; count];
                convert::to_bf16_exact(values.source(), &mut exact).map_err(inexact)?;
                self.pack(NaturalWords::Bf16(bytemuck::cast_slice(&exact)), scratch, output, offset)?;
            }
            (Format::Fp32, Some(values)) => {
                let mut exact = vec![0.0f32; count];
                convert::to_f32_exact(values.source(), &mut exact).map_err(inexact)?;
                self.pack(NaturalWords::Fp32(bytemuck::cast_slice(&exact)), scratch, output, offset)?;
            }
            (Format::I32, values) => {
                let mut exact = vec![0; count];
                match (values, Integers::new(tensor.dtype, bytes)) {
                    (Some(values), _) => convert::to_i32_exact(values.source(), &mut exact),
                    (None, Some(Integers::Signed(values))) => convert::i64_to_i32_exact(&values, &mut exact),
                    (None, Some(Integers::Unsigned(values))) => {
                        convert::u64_to_i32_exact(&values, &mut exact)
                    }
                    (None, None) => Err(Error::WrongWords { format: Format::I32 }),
                }
                .map_err(inexact)?;
                self.pack(NaturalWords::I32(&exact), scratch, output, offset)?;
            }
            (_, Some(values)) => return self.quantize(tensor, &values.source(), scratch, output, offset),
            (format, None) => return Err(self.failure(tensor, Error::WrongWords { format })),
        }
        Ok(Measure::default())
    }

    fn quantize(
        &self,
        tensor: &SourceTensor<'j>,
        source: &Source<'_>,
        scratch: &mut Scratch,
        output: &OutputFile,
        offset: u64,
    ) -> Outcome<Measure> {
        let fail = |error| self.failure(tensor, error);
        let plan = self.job.plan.with_rows(self.rows).map_err(fail)?;
        let columns = plan.columns() as usize;
        let (elements, groups) = (plan.elements() as usize, plan.logical_groups() as usize);
        scratch.payload.resize(plan.payload_bytes() as usize, 0);
        TensorMut::new(plan, &mut scratch.payload)
            .and_then(|mut target| target.quantize(*source, columns))
            .map_err(fail)?;
        scratch.decoded.resize(elements, 0.0);
        scratch.codes.resize(elements, 0);
        scratch.scales.resize(self.rows as usize * groups, 0);
        let (codes, scales) = (&mut scratch.codes[..], &mut scratch.scales[..]);
        let block = Tensor::new(plan, &scratch.payload).map_err(fail)?;
        block.unpack(WordsMut::Grouped { codes, scales }).map_err(fail)?;
        block.decode(&mut scratch.decoded[..], columns).map_err(fail)?;

        let mut measure = Measure::default();
        measure.add_errors(source, &scratch.decoded, columns, self.first_row());
        measure.add_signed_codes(&scratch.codes, plan.format().descriptor().code_bits);
        let group_lanes = plan.format().descriptor().group.unwrap_or(1) as usize;
        measure.add_scales(plan.format(), &scratch.scales, |group| {
            let begin = group / groups * columns + group % groups * group_lanes;
            let end = (group / groups * columns + columns).min(begin + group_lanes);
            largest_magnitude(source, begin..end)
        });
        self.write_planes(&plan, &scratch.payload, output, offset)?;
        Ok(measure)
    }

    /// Packs natural words and writes them.
    fn pack(
        &self,
        natural: NaturalWords<'_>,
        scratch: &mut Scratch,
        output: &OutputFile,
        offset: u64,
    ) -> Outcome<()> {
        let tensor = &self.part.words.tensors()[0];
        let plan = self.job.plan.with_rows(self.rows).map_err(|error| self.failure(tensor, error))?;
        scratch.payload.resize(plan.payload_bytes() as usize, 0);
        TensorMut::new(plan, &mut scratch.payload)
            .and_then(|mut target| target.pack(natural))
            .map_err(|error| self.failure(tensor, error))?;
        self.write_planes(&plan, &scratch.payload, output, offset)
    }

    /// Writes the planes of the block's own payload to where the whole payload has those rows. What lies
    /// between planes stays as the output was created: zero.
    fn write_planes(&self, block: &Plan, payload: &[u8], output: &OutputFile, offset: u64) -> Outcome<()> {
        let whole = &self.job.plan;
        let write = |from: Plane, to: Plane| {
            let bytes = &payload[from.offset as usize..][..from.bytes as usize];
            output.write_at(bytes, offset + to.offset + self.first_row() * to.row_bytes)
        };
        write(block.codes(), whole.codes())?;
        write(block.high(), whole.high())?;
        write(block.scales(), whole.scales())?;
        let divisor = block.divisor();
        let bytes = &payload[divisor.offset as usize..][..divisor.bytes as usize];
        output.write_at(bytes, offset + whole.divisor().offset)
    }

    /// First row, counted in the object.
    fn first_row(&self) -> u64 {
        self.part.first_row + self.begin
    }

    /// The bytes of the block's rows in a tensor that has a row for each of the part's.
    fn bytes_of(&self, tensor: &SourceTensor<'j>) -> &'j [u8] {
        let row_bytes = tensor.bytes.len() / self.part.rows as usize;
        &tensor.bytes[self.begin as usize * row_bytes..][..self.rows as usize * row_bytes]
    }

    /// BF16 row scales; FP32 ones only where each is exactly a BF16.
    fn row_scales(&self, tensor: &SourceTensor<'j>, scales: &mut Vec<u16>) -> Outcome<()> {
        let bytes = self.bytes_of(tensor);
        scales.resize(self.rows as usize, 0);
        if tensor.dtype == Dtype::BF16 {
            scales.copy_from_slice(&words::<u16>(bytes));
            return Ok(());
        }
        convert::to_bf16_exact(&words::<f32>(bytes)[..], bytemuck::cast_slice_mut(scales)).map_err(|error| {
            let Error::NotExact { index, word } = error else { return self.failure(tensor, error) };
            let value = f32::from_bits(word as u32);
            Failure::refused(format!(
                "tensor {:?}, row {}: scale {value:e} (word {word:#010x}) is not exactly a BF16; \
                 FP8_E4M3FN_ROW_BF16S stores BF16 scales and rounds none; write BF16 scales or leave the weight \
                 out with --skip '{}'",
                tensor.name,
                self.begin + index,
                self.job.name
            ))
        })
    }

    /// Names the tensor and the coordinates in it, and says what to do.
    fn failure(&self, tensor: &SourceTensor<'j>, error: Error) -> Failure {
        let (name, format) = (tensor.name, self.job.plan.format().name());
        let line = match error {
            Error::NotExact { index, word } => {
                let (row, column) = (index / self.job.plan.columns(), index % self.job.plan.columns());
                format!(
                    "row {}, column {column}: {} word {word:#x} is not exact in {format}; assign a format that \
                     holds it or leave the tensor out with --skip '{name}'",
                    self.begin + row,
                    tensor.dtype
                )
            }
            Error::ScaleOverflow { .. } => format!(
                "{}; its values are too large for {format}; keep them with --assign '{name}=FP32'",
                error_in_part(error, self.begin)
            ),
            _ => format!(
                "{}; correct the checkpoint or leave the tensor out with --skip '{name}'",
                error_in_part(error, self.begin)
            ),
        };
        Failure::refused(format!("tensor {name:?}, {line}"))
    }
}

/// The error with rows counted from `begin` rows earlier.
fn error_in_part(mut error: Error, begin: u64) -> Error {
    match &mut error {
        Error::NonFiniteSource { row, .. }
        | Error::SourceNotRepresentable { row, .. }
        | Error::ScaleOverflow { row, .. }
        | Error::InvalidScale { row, .. }
        | Error::InvalidCode { row, .. }
        | Error::ZeroScaleNonzeroCode { row, .. } => *row += begin,
        _ => {}
    }
    error
}

/// The largest magnitude of some values, as binary32.
fn largest_magnitude(source: &Source<'_>, range: std::ops::Range<usize>) -> f32 {
    let largest = |values: &mut dyn Iterator<Item = f32>| {
        values.fold(0.0f32, |largest, value| largest.max(value.abs()))
    };
    match source {
        Source::F32(values) => largest(&mut values[range].iter().copied()),
        Source::Bf16(values) => largest(&mut values[range].iter().map(|value| value.to_f32())),
        Source::F16(values) => largest(&mut values[range].iter().map(|value| value.to_f32())),
        Source::F64(values) => largest(&mut values[range].iter().map(|&value| value as f32)),
    }
}
