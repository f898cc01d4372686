//! The conversion: blocks of rows, each read from the mapped source, converted in memory and written to its
//! places in the output. Blocks do not depend on the number of threads, and nothing else does.

use std::cell::RefCell;
use std::ops::Range;

use half::bf16;
use ninfer_codec::Words as NaturalWords;
use ninfer_codec::layout::Plane;
use ninfer_codec::{Error, Format, Plan, Source, Tensor, TensorMut, WordsMut, convert};
use safetensors::Dtype;

use crate::assign::{Job, Part};
use crate::blocks;
use crate::checkpoint::SourceTensor;
use crate::failure::{Failure, Outcome};
use crate::import::Words;
use crate::measure::Measure;
use crate::output::OutputFile;
use crate::words::{Integers, Values, direct_twin, words};

/// Some rows of a part, or some columns of one row.
#[derive(Clone, Copy)]
pub struct Block<'j> {
    pub job: &'j Job<'j>,
    part: &'j Part<'j>,
    /// Rows are counted in the part.
    place: blocks::Block,
}

/// The blocks of a part, in the order of their bytes.
pub fn blocks_of<'j>(job: &'j Job<'j>, part: &'j Part<'j>) -> impl Iterator<Item = Block<'j>> + use<'j> {
    blocks::blocks(&job.plan, part.rows).map(move |place| Block { job, part, place })
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
    /// Bytes of the part that are the block's share.
    pub fn source_bytes(&self) -> u64 {
        let elements = u128::from(self.part.rows) * u128::from(self.job.plan.columns());
        let own = u128::from(self.place.rows) * u128::from(self.place.columns);
        (u128::from(self.part.words.bytes()) * own / elements) as u64
    }

    /// Where the block's share of its first tensor ends in the tensor's file.
    pub fn source_end(&self) -> usize {
        let first = self.part.words.tensors()[0];
        first.begin + self.range_in(&first).end
    }

    /// Converts the block, writes it, and measures it.
    pub fn convert(&self, output: &OutputFile, offset: u64) -> Outcome<Measure> {
        SCRATCH.with_borrow_mut(|scratch| match self.part.words {
            Words::Values(tensor) => {
                let bytes = self.bytes_of(&tensor);
                match direct_twin(tensor.dtype) {
                    Some(format) if format == self.job.plan.format() => {
                        output.write_at(bytes, offset + self.position(self.job.plan.codes(), true))?;
                        Ok(Measure::default())
                    }
                    _ => self.convert_values(&tensor, bytes, scratch, output, offset),
                }
            }
            Words::Nvfp4 { codes, scales, divisor } => {
                let codes = self.bytes_of(&codes);
                let divisor = words::<u32>(divisor.bytes)[0];
                let natural = NaturalWords::Nvfp4 { codes, scales: self.row_bytes_of(&scales), divisor };
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
                let mut measure = Measure::default();
                if self.place.column == 0 {
                    measure.groups = self.place.rows;
                    measure.all_zero = scales.iter().filter(|&&scale| scale == 0).count() as u64;
                }
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
        let count = (self.place.rows * self.place.columns) as usize;
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
        let plan = self.plan().map_err(fail)?;
        let columns = plan.columns() as usize;
        let (elements, groups) = (plan.elements() as usize, plan.logical_groups() as usize);
        scratch.payload.resize(plan.payload_bytes() as usize, 0);
        TensorMut::new(plan, &mut scratch.payload)
            .and_then(|mut target| target.quantize(*source, columns))
            .map_err(fail)?;
        scratch.decoded.resize(elements, 0.0);
        scratch.codes.resize(elements, 0);
        scratch.scales.resize(self.place.rows as usize * groups, 0);
        let (codes, scales) = (&mut scratch.codes[..], &mut scratch.scales[..]);
        let block = Tensor::new(plan, &scratch.payload).map_err(fail)?;
        block.unpack(WordsMut::Grouped { codes, scales }).map_err(fail)?;
        block.decode(&mut scratch.decoded[..], columns).map_err(fail)?;

        let mut measure = Measure::default();
        measure.add_errors(source, &scratch.decoded, columns, (self.first_row(), self.place.column));
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
        let plan = self.plan().map_err(|error| self.failure(tensor, error))?;
        scratch.payload.resize(plan.payload_bytes() as usize, 0);
        TensorMut::new(plan, &mut scratch.payload)
            .and_then(|mut target| target.pack(natural))
            .map_err(|error| self.failure(tensor, error))?;
        self.write_planes(&plan, &scratch.payload, output, offset)
    }

    /// Writes the planes of the block's own payload to where the whole payload has those rows and columns. What
    /// lies between planes stays as the output was created: zero.
    fn write_planes(&self, block: &Plan, payload: &[u8], output: &OutputFile, offset: u64) -> Outcome<()> {
        let whole = &self.job.plan;
        let write = |from: Plane, to: Plane, by_column| {
            let bytes = &payload[from.offset as usize..][..from.bytes as usize];
            output.write_at(bytes, offset + self.position(to, by_column))
        };
        write(block.codes(), whole.codes(), true)?;
        write(block.high(), whole.high(), true)?;
        // A scale a row is written again for all columns.
        write(block.scales(), whole.scales(), whole.format() != Format::Fp8E4M3FnRowBf16S)?;
        let divisor = block.divisor();
        let bytes = &payload[divisor.offset as usize..][..divisor.bytes as usize];
        output.write_at(bytes, offset + whole.divisor().offset)
    }

    /// Where the block begins in a plane of the whole payload. A block that begins inside a row has that row
    /// only, and begins where groups and padding do.
    fn position(&self, plane: Plane, by_column: bool) -> u64 {
        let row = plane.offset + self.first_row() * plane.row_bytes;
        let share = u128::from(self.place.column) * u128::from(plane.row_bytes);
        row + if by_column { (share / u128::from(self.job.plan.padded_columns())) as u64 } else { 0 }
    }

    /// The plan of the block alone.
    fn plan(&self) -> Result<Plan, Error> {
        let format = self.job.plan.format();
        Plan::new(format, format.layout(), &[self.place.rows, self.place.columns])
    }

    /// First row, counted in the object.
    fn first_row(&self) -> u64 {
        self.part.first_row + self.place.row
    }

    /// The bytes of the block in a tensor that has a row for each of the part's, of all its columns.
    fn bytes_of(&self, tensor: &SourceTensor<'j>) -> &'j [u8] {
        &tensor.bytes[self.range_in(tensor)]
    }

    fn range_in(&self, tensor: &SourceTensor<'j>) -> Range<usize> {
        let row_bytes = tensor.bytes.len() / self.part.rows as usize;
        let row = self.place.row as usize * row_bytes;
        let all = self.job.plan.columns();
        if self.place.columns == all {
            return row..row + self.place.rows as usize * row_bytes;
        }
        let element = row_bytes / all as usize;
        let begin = row + self.place.column as usize * element;
        begin..begin + self.place.columns as usize * element
    }

    /// The bytes of the block's rows in a tensor that has a row for each of the part's.
    fn row_bytes_of(&self, tensor: &SourceTensor<'j>) -> &'j [u8] {
        let row_bytes = tensor.bytes.len() / self.part.rows as usize;
        &tensor.bytes[self.place.row as usize * row_bytes..][..self.place.rows as usize * row_bytes]
    }

    /// BF16 row scales; FP32 ones only where each is exactly a BF16.
    fn row_scales(&self, tensor: &SourceTensor<'j>, scales: &mut Vec<u16>) -> Outcome<()> {
        let bytes = self.row_bytes_of(tensor);
        scales.resize(self.place.rows as usize, 0);
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
                self.place.row + index,
                self.part.name
            ))
        })
    }

    /// Names the tensor and the coordinates in it, and says what to do.
    fn failure(&self, tensor: &SourceTensor<'j>, error: Error) -> Failure {
        let (name, format) = (&self.part.name, self.job.plan.format().name());
        let line = match error {
            Error::NotExact { index, word } => {
                let (row, column) = (index / self.place.columns, index % self.place.columns);
                format!(
                    "row {}, column {}: {} word {word:#x} is not exact in {format}; assign a format that holds it \
                     or leave the tensor out with --skip '{name}'",
                    self.place.row + row,
                    self.place.column + column,
                    tensor.dtype
                )
            }
            Error::ScaleOverflow { .. } => format!(
                "{}; its values are too large for {format}; keep them with --assign '{name}=FP32'",
                self.in_part(error)
            ),
            _ => format!(
                "{}; correct the checkpoint or leave the tensor out with --skip '{name}'",
                self.in_part(error)
            ),
        };
        Failure::refused(format!("tensor {:?}, {line}", tensor.name))
    }

    /// The error with rows, columns and groups counted in the part.
    fn in_part(&self, mut error: Error) -> Error {
        if let Error::NonFiniteSource { row, .. }
        | Error::SourceNotRepresentable { row, .. }
        | Error::ScaleOverflow { row, .. }
        | Error::InvalidScale { row, .. }
        | Error::InvalidCode { row, .. }
        | Error::ZeroScaleNonzeroCode { row, .. } = &mut error
        {
            *row += self.place.row;
        }
        match &mut error {
            Error::NonFiniteSource { column, .. }
            | Error::SourceNotRepresentable { column, .. }
            | Error::InvalidCode { column, .. }
            | Error::ZeroScaleNonzeroCode { column, .. } => *column += self.place.column,
            Error::ScaleOverflow { group, .. } | Error::InvalidScale { group, .. } => {
                let lanes = self.job.plan.format().descriptor().group;
                *group += lanes.map_or(0, |lanes| self.place.column / u64::from(lanes));
            }
            _ => {}
        }
        error
    }
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
