//! `unpack`: an artifact to a safetensors file, decoded or word for word.

use bytemuck::Pod;
use half::{bf16, f16};
use ninfer_artifact::Object;
use ninfer_codec::{Error, Format, Output, Tensor, WordsMut};
use rayon::prelude::*;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use crate::blocks::row_blocks;
use crate::cli::{Float, Settings, Unpack};
use crate::failure::{Failure, Outcome, note};
use crate::opened::Mapped;
use crate::output::{self, OutputFile};
use crate::table::grouped;
use crate::words::to_little_endian;
use crate::{console, progress};

/// One tensor of the new file.
struct Target<'a> {
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
    object: &'a Object,
    tensor: Tensor<'a>,
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
            Some(tensor) => targets.extend(targets_of(object, tensor, arguments)),
            None => note(format_args!("resource {:?} has no place in a safetensors file", object.name())),
        }
    }
    // The order of the safetensors library: wide types first, so that every tensor is aligned.
    targets.sort_by(|a, b| b.dtype.cmp(&a.dtype).then_with(|| a.name.cmp(&b.name)));
    let (header, offsets, bytes) = header(&targets)?;
    output::keep_inputs(&arguments.output, [arguments.file.as_path()])?;
    output::make_folder(&arguments.output)?;
    let out = OutputFile::create(&arguments.output, bytes)?;
    out.write_at(&header, 0)?;
    let bar = progress::bar(settings, bytes);
    for (target, offset) in targets.iter().zip(offsets) {
        target.write(&out, offset, |bytes| bar.inc(bytes))?;
    }
    bar.finish_and_clear();
    progress::check()?;
    out.commit()?;
    if settings.quiet {
        return Ok(());
    }
    let path = arguments.output.display();
    console::line(format_args!("{path}: {} tensors, {} bytes", targets.len(), grouped(bytes)))
}

fn targets_of<'a>(object: &'a Object, tensor: Tensor<'a>, arguments: &Unpack) -> Vec<Target<'a>> {
    let plan = *tensor.plan();
    let (rows, columns) = (plan.rows(), plan.columns());
    let name = object.name();
    let target = |name: String, dtype, shape, what| Target { name, dtype, shape, object, tensor, what };
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
        if self.what == What::Divisor {
            let first = self.block(0, 1)?;
            return out.write_at(&first, offset);
        }
        let row_bytes = self.bytes()? / self.tensor.plan().rows();
        row_blocks(self.tensor.plan()).try_for_each(|(begin, count)| {
            progress::check()?;
            let bytes = self.block(begin, count)?;
            done(bytes.len() as u64);
            out.write_at(&bytes, offset + begin * row_bytes)
        })
    }

    /// The little-endian bytes of some rows.
    fn block(&self, begin: u64, count: u64) -> Outcome<Vec<u8>> {
        self.words(begin, count).map_err(|error| {
            let name = self.object.name();
            Failure::refused(format!("object {name:?}: {error}; write the artifact again from its source"))
        })
    }

    fn words(&self, begin: u64, count: u64) -> Result<Vec<u8>, Error> {
        let view = self.tensor.rows(begin, count)?;
        let plan = view.plan();
        let (groups, columns) = (plan.logical_groups() as usize, plan.columns() as usize);
        let rows = count as usize;
        match (self.what, plan.format()) {
            (What::Values, Format::Bf16) => decoded::<bf16>(&view),
            (What::Values, Format::Fp32) => decoded::<f32>(&view),
            (What::Values, Format::I32) => {
                let mut words = vec![0; rows * columns];
                view.unpack(WordsMut::I32(&mut words))?;
                Ok(to_little_endian(&words))
            }
            (What::Values, _) => match self.dtype {
                Dtype::BF16 => decoded::<bf16>(&view),
                Dtype::F16 => decoded::<f16>(&view),
                _ => decoded::<f32>(&view),
            },
            (what, Format::Nvfp4) => {
                let (mut codes, mut scales) = (vec![0; rows * columns / 2], vec![0; rows * groups]);
                let mut divisor = 0;
                let words = WordsMut::Nvfp4 { codes: &mut codes, scales: &mut scales, divisor: &mut divisor };
                view.unpack(words)?;
                Ok(match what {
                    What::Codes => codes,
                    What::Scales => scales,
                    _ => divisor.to_le_bytes().into(),
                })
            }
            (what, _) => {
                let (mut codes, mut scales) = (vec![0; rows * columns], vec![0; rows]);
                view.unpack(WordsMut::Fp8Row { codes: &mut codes, scales: &mut scales })?;
                Ok(if what == What::Codes { codes } else { to_little_endian(&scales) })
            }
        }
    }
}

fn decoded<T: Pod>(view: &Tensor<'_>) -> Result<Vec<u8>, Error>
where
    for<'o> Output<'o>: From<&'o mut [T]>,
{
    let columns = view.plan().columns() as usize;
    let mut values = vec![T::zeroed(); view.count() as usize * columns];
    view.decode(&mut values[..], columns)?;
    Ok(to_little_endian(&values))
}
