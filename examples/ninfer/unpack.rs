//! `unpack`: an artifact to a safetensors file, decoded or word for word.

use bytemuck::Pod;
use half::{bf16, f16};
use ninfer_artifact::Object;
use ninfer_codec::layout::Plane;
use ninfer_codec::{Error, Format, Output, Tensor, WordsMut};
use rayon::prelude::*;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use crate::blocks::{Block, parallel_blocks, row_blocks};
use crate::cli::{Float, Settings, Unpack};
use crate::failure::{Failure, Outcome, note};
use crate::opened::Mapped;
use crate::output::{self, OutputFile};
use crate::table::grouped;
use crate::words::to_little_endian;
use crate::{console, progress};

/// Bytes copied at once.
const STEP: usize = 1 << 20;

/// One tensor of the new file.
struct Target<'a> {
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    object: &'a Object,
    tensor: Tensor<'a>,
    payload: &'a [u8],
    what: What,
}

/// What is written of an object.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Values,
    Codes,
    Scales,
    Divisor,
}

pub fn run(arguments: &Unpack, settings: &Settings) -> Outcome<()> {
    progress::start(settings)?;
    let file = Mapped::open(&arguments.file)?;
    let artifact = file.artifact()?;
    let mut targets = Vec::new();
    for object in artifact.directory().objects() {
        match artifact.tensor(object) {
            Some(tensor) => {
                targets.extend(targets_of(object, tensor, artifact.payload(object), arguments));
            }
            None => note(format_args!("resource {:?} has no place in a safetensors file", object.name())),
        }
    }
    // The order of the safetensors library: wide types first, so that every tensor is aligned.
    targets.sort_by(|a, b| b.dtype.cmp(&a.dtype).then_with(|| a.name.cmp(&b.name)));
    let (header, offsets, bytes) = header(&targets)?;
    output::keep_inputs(&arguments.output, [arguments.file.as_path()])?;
    let out = OutputFile::create(&arguments.output, bytes, progress::check)?;
    out.write_at(&header, 0)?;
    let bar = progress::bar(settings, bytes);
    for (target, offset) in targets.iter().zip(offsets) {
        target.write(&out, offset, |bytes| bar.inc(bytes))?;
    }
    bar.finish_and_clear();
    output::commit([out], progress::check)?;
    if settings.quiet {
        return Ok(());
    }
    let path = arguments.output.display();
    console::line(format_args!("{path}: {} tensors, {} bytes", targets.len(), grouped(bytes)))
        .map_err(|failure| failure.after(&arguments.output))
}

fn targets_of<'a>(
    object: &'a Object,
    tensor: Tensor<'a>,
    payload: &'a [u8],
    arguments: &Unpack,
) -> Vec<Target<'a>> {
    let plan = *tensor.plan();
    let (rows, columns) = (plan.rows(), plan.columns());
    let name = object.name();
    let target =
        |name: String, dtype, shape, what| Target { name, dtype, shape, object, tensor, payload, what };
    match plan.format() {
        Format::Nvfp4 if arguments.words => vec![
            target(format!("{name}_packed"), Dtype::U8, vec![rows, columns / 2], What::Codes),
            target(format!("{name}_scale"), Dtype::F8_E4M3, vec![rows, plan.logical_groups()], What::Scales),
            target(format!("{name}_global_scale"), Dtype::F32, vec![1], What::Divisor),
        ],
        Format::Fp8E4M3FnRowBf16S if arguments.words => vec![
            target(name.into(), Dtype::F8_E4M3, vec![rows, columns], What::Codes),
            target(format!("{name}_scale"), Dtype::BF16, vec![rows, 1], What::Scales),
        ],
        format => {
            let dtype = match (format, arguments.r#type) {
                (Format::Bf16, _) => Dtype::BF16,
                (Format::Fp32, _) => Dtype::F32,
                (Format::I32, _) => Dtype::I32,
                (_, Float::F32) => Dtype::F32,
                (_, Float::Bf16) => Dtype::BF16,
                (_, Float::F16) => Dtype::F16,
            };
            let shape = match object.kind() {
                ninfer_artifact::Kind::Tensor { shape, .. } => shape.clone(),
                ninfer_artifact::Kind::Resource { .. } => Vec::new(),
            };
            vec![target(name.into(), dtype, shape, What::Values)]
        }
    }
}

/// The file's bytes before the tensors, where each tensor begins, and how long the file is.
fn header(targets: &[Target<'_>]) -> Outcome<(Vec<u8>, Vec<u64>, u64)> {
    let too_large = || Failure::refused("the safetensors file would exceed what this machine can address");
    let mut infos = Vec::new();
    let mut end = 0usize;
    for target in targets {
        if target.name == "__metadata__" {
            let message = "is no name for a tensor of a safetensors file: pack again with another name";
            return Err(Failure::refused(format!("{:?} {message}", target.name)));
        }
        let bytes = usize::try_from(target.bytes()?).map_err(|_| too_large())?;
        let begin = end;
        end = begin.checked_add(bytes).ok_or_else(too_large)?;
        let shape = target.shape.iter().map(|&dimension| dimension as usize).collect();
        infos.push((
            target.name.clone(),
            TensorInfo { dtype: target.dtype, shape, data_offsets: (begin, end) },
        ));
    }
    let begins: Vec<_> = infos.iter().map(|(_, info)| info.data_offsets.0 as u64).collect();
    let mut names: Vec<_> = infos.iter().map(|(name, _)| name).collect();
    names.sort();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::refused(format!(
            "two tensors would be named {:?}: unpack without --words",
            pair[0]
        )));
    }
    let metadata = Metadata::new(None, infos).map_err(Failure::refused)?;
    let mut json = serde_json::to_vec(&metadata).map_err(Failure::refused)?;
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut head = (json.len() as u64).to_le_bytes().to_vec();
    head.extend(json);
    let data = head.len() as u64;
    Ok((head, begins.into_iter().map(|begin| data + begin).collect(), data + end as u64))
}

impl Target<'_> {
    fn bytes(&self) -> Outcome<u64> {
        let elements = self.shape.iter().try_fold(1u64, |product, &dimension| product.checked_mul(dimension));
        elements.and_then(|elements| elements.checked_mul(self.dtype.bitsize() as u64 / 8)).ok_or_else(|| {
            Failure::refused(format!("object {:?} is too large to unpack", self.object.name()))
        })
    }

    /// Writes the tensor at its place, block by block.
    fn write(&self, out: &OutputFile, offset: u64, done: impl Fn(u64) + Sync) -> Outcome<()> {
        let plan = self.tensor.plan();
        match (self.what, plan.format()) {
            (What::Divisor, _) => {
                let divisor = plan.divisor();
                out.write_at(self.part(divisor.offset, divisor.bytes), offset)
            }
            (What::Values, Format::Bf16 | Format::Fp32 | Format::I32) | (What::Codes, _) => {
                self.copy(plan.codes(), out, offset, done)
            }
            (What::Scales, Format::Nvfp4) => self.block_scales(out, offset, done),
            (What::Scales, _) => self.copy(plan.scales(), out, offset, done),
            (What::Values, _) => self.values(out, offset, done),
        }
    }

    /// Writes a plane whose bytes are those of the new file.
    fn copy(&self, plane: Plane, out: &OutputFile, offset: u64, done: impl Fn(u64) + Sync) -> Outcome<()> {
        self.part(plane.offset, plane.bytes).par_chunks(STEP).enumerate().try_for_each(|(index, piece)| {
            progress::check()?;
            done(piece.len() as u64);
            out.write_at(piece, offset + (index * STEP) as u64)
        })
    }

    fn part(&self, offset: u64, bytes: u64) -> &[u8] {
        &self.payload[offset as usize..][..bytes as usize]
    }

    /// Writes NVFP4's scales in their natural order.
    fn block_scales(&self, out: &OutputFile, offset: u64, done: impl Fn(u64) + Sync) -> Outcome<()> {
        let plan = self.tensor.plan();
        row_blocks(plan).try_for_each(|(begin, count)| {
            progress::check()?;
            let mut codes = vec![0; (count * plan.codes().row_bytes) as usize];
            let mut scales = vec![0; (count * plan.logical_groups()) as usize];
            let mut divisor = 0;
            let words = WordsMut::Nvfp4 { codes: &mut codes, scales: &mut scales, divisor: &mut divisor };
            self.tensor
                .rows(begin, count)
                .and_then(|rows| rows.unpack(words))
                .map_err(|error| self.failure(error))?;
            done(scales.len() as u64);
            out.write_at(&scales, offset + begin * plan.logical_groups())
        })
    }

    /// Writes decoded values.
    fn values(&self, out: &OutputFile, offset: u64, done: impl Fn(u64) + Sync) -> Outcome<()> {
        let plan = self.tensor.plan();
        parallel_blocks(plan).try_for_each(|block| {
            progress::check()?;
            let bytes = match self.dtype {
                Dtype::BF16 => self.decoded::<bf16>(block),
                Dtype::F16 => self.decoded::<f16>(block),
                _ => self.decoded::<f32>(block),
            };
            let bytes = bytes.map_err(|error| self.failure(error))?;
            done(bytes.len() as u64);
            let elements = block.rows * block.columns;
            let first = block.row * plan.columns() + block.column;
            out.write_at(&bytes, offset + first * (bytes.len() as u64 / elements))
        })
    }

    /// The little-endian bytes of a block's values.
    fn decoded<T: Pod>(&self, block: Block) -> Result<Vec<u8>, Error>
    where
        for<'o> Output<'o>: From<&'o mut [T]>,
    {
        let columns = block.columns as usize;
        let mut values = vec![T::zeroed(); block.rows as usize * columns];
        let rows = self.tensor.rows(block.row, block.rows)?;
        rows.decode_columns(block.column, block.columns, &mut values[..], columns)?;
        Ok(to_little_endian(&values))
    }

    fn failure(&self, error: Error) -> Failure {
        let name = self.object.name();
        Failure::refused(format!("object {name:?}: {error}; write the artifact again from its source"))
    }
}
