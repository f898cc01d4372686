//! Ready-made quantized words: what compressed-tensors writes is taken word for word, other spellings are
//! refused with the reason.

use safetensors::Dtype;

use crate::checkpoint::{Checkpoint, SourceTensor};

/// What one object's words come from.
#[derive(Clone, Debug)]
pub enum Words<'c> {
    /// A tensor as it is.
    Values(SourceTensor<'c>),
    /// `X.weight_packed`, `X.weight_scale`, `X.weight_global_scale`.
    Nvfp4 { codes: SourceTensor<'c>, scales: SourceTensor<'c>, divisor: SourceTensor<'c> },
    /// `X.weight`, `X.weight_scale`.
    Fp8Row { codes: SourceTensor<'c>, scales: SourceTensor<'c> },
}

/// One tensor, or several that are the words of one weight.
#[derive(Clone, Debug)]
pub struct Item<'c> {
    /// The name that rules are matched with: the tensor's, or `X.weight`.
    pub name: String,
    /// The logical shape.
    pub shape: Vec<u64>,
    pub words: Words<'c>,
    /// Why the item cannot be converted as it is, and what to do.
    pub refusal: Option<String>,
}

impl<'c> Words<'c> {
    /// The tensors, in the order of the object's planes.
    pub fn tensors(&self) -> Vec<SourceTensor<'c>> {
        match *self {
            Self::Values(tensor) => vec![tensor],
            Self::Nvfp4 { codes, scales, divisor } => vec![codes, scales, divisor],
            Self::Fp8Row { codes, scales } => vec![codes, scales],
        }
    }

    /// Bytes to be read.
    pub fn bytes(&self) -> u64 {
        self.tensors().iter().map(|tensor| tensor.bytes.len() as u64).sum()
    }
}

const PACKED: &str = "weight_packed";
const WEIGHT: &str = "weight";
const SCALE: &str = "weight_scale";
const GLOBAL_SCALE: &str = "weight_global_scale";
/// ModelOpt's second scale, a multiplier.
const SCALE_2: &str = "weight_scale_2";
/// What would change the meaning of the words and has no place in the formats.
const FOREIGN: [&str; 2] = ["weight_zero_point", "weight_g_idx"];

/// All items of a checkpoint, by name.
pub fn items(checkpoint: &Checkpoint) -> Vec<Item<'_>> {
    let mut items: Vec<_> = checkpoint.tensors().filter_map(|tensor| item(checkpoint, tensor)).collect();
    items.sort_by(|a, b| a.name.cmp(&b.name));
    items
}

/// The item that begins with this tensor; none for a tensor that is part of another's item.
fn item<'c>(checkpoint: &'c Checkpoint, tensor: SourceTensor<'c>) -> Option<Item<'c>> {
    let plain = |refusal| {
        let (name, shape) = (tensor.name.into(), tensor.shape.into());
        Some(Item { name, shape, words: Words::Values(tensor), refusal })
    };
    let (base, last) = match tensor.name.rfind('.') {
        Some(dot) => tensor.name.split_at(dot + 1),
        None => ("", tensor.name),
    };
    let sibling = |last: &str| checkpoint.tensor(&format!("{base}{last}"));
    let packed = sibling(PACKED);
    let fp8 = sibling(WEIGHT).filter(|weight| weight.dtype == Dtype::F8_E4M3);
    match last {
        PACKED => Some(packed_item(base, tensor, &sibling)),
        WEIGHT if tensor.dtype == Dtype::F8_E4M3 => Some(fp8_item(base, tensor, &sibling)),
        SCALE | GLOBAL_SCALE if packed.is_some() => None,
        SCALE if fp8.is_some() => None,
        SCALE_2 => plain(Some(format!(
            "multiplies the block scales, as ModelOpt writes it; NVFP4 stores a divisor, and the reciprocal of \
             {} is not exact in FP32 in general; convert the checkpoint with compressed-tensors, which writes \
             weight_global_scale, or leave the weight out with --skip '{base}weight*'",
            tensor.name
        ))),
        _ => plain(None),
    }
}

fn packed_item<'c>(
    base: &str,
    codes: SourceTensor<'c>,
    sibling: &impl Fn(&str) -> Option<SourceTensor<'c>>,
) -> Item<'c> {
    let name = format!("{base}{WEIGHT}");
    let shape: Vec<u64> = match *codes.shape {
        [rows, pairs] => vec![rows, pairs.saturating_mul(2)],
        _ => codes.shape.into(),
    };
    let (Some(scales), Some(divisor)) = (sibling(SCALE), sibling(GLOBAL_SCALE)) else {
        let missing = if sibling(SCALE).is_none() { SCALE } else { GLOBAL_SCALE };
        let refusal = format!(
            "{} needs {base}{missing}, which the checkpoint lacks; NVFP4 is {PACKED}, {SCALE} and \
             {GLOBAL_SCALE}; fetch the missing tensor or leave the weight out with --skip '{name}'",
            codes.name
        );
        return Item { name, shape, words: Words::Values(codes), refusal: Some(refusal) };
    };
    let expected = [
        (codes, Dtype::U8, codes.shape.len() == 2),
        (
            scales,
            Dtype::F8_E4M3,
            matches!((scales.shape, &shape[..]), ([n, g], [rows, k]) if n == rows && g.checked_mul(16) == Some(*k)),
        ),
        (divisor, Dtype::F32, divisor.shape.iter().product::<u64>() == 1),
    ];
    let wrong = expected.iter().find(|(tensor, dtype, fits)| tensor.dtype != *dtype || !fits);
    let refusal = wrong
        .map(|(tensor, ..)| {
            format!(
                "{} is {} {:?}; NVFP4 is {PACKED} U8 [N, K/2], {SCALE} F8_E4M3 [N, K/16] and {GLOBAL_SCALE} F32 \
                 [1]; leave the weight out with --skip '{name}'",
                tensor.name, tensor.dtype, tensor.shape
            )
        })
        .or_else(|| foreign(&name, base, sibling));
    Item { name, shape, words: Words::Nvfp4 { codes, scales, divisor }, refusal }
}

fn fp8_item<'c>(
    base: &str,
    codes: SourceTensor<'c>,
    sibling: &impl Fn(&str) -> Option<SourceTensor<'c>>,
) -> Item<'c> {
    let name = codes.name.to_string();
    let shape = codes.shape.to_vec();
    let Some(scales) = sibling(SCALE) else {
        let refusal = format!(
            "E4M3FN words without {base}{SCALE} are no format; fetch the scales or leave the weight out with \
             --skip '{name}'"
        );
        return Item { name, shape, words: Words::Values(codes), refusal: Some(refusal) };
    };
    let rows = shape.first().copied().unwrap_or(1);
    let a_scale_a_row = match *scales.shape {
        [count] | [count, 1] => count == rows,
        _ => false,
    };
    let refusal = if !a_scale_a_row || !matches!(scales.dtype, Dtype::BF16 | Dtype::F32) {
        Some(format!(
            "{} is {} {:?}; FP8_E4M3FN_ROW_BF16S has one BF16 multiplier for each of the {rows} rows, shape \
             [{rows}, 1]; write the scales so (F32 only where each is exactly a BF16) or leave the weight out \
             with --skip '{name}'",
            scales.name, scales.dtype, scales.shape
        ))
    } else {
        foreign(&name, base, sibling)
    };
    Item { name, shape, words: Words::Fp8Row { codes, scales }, refusal }
}

fn foreign<'c>(
    name: &str,
    base: &str,
    sibling: &impl Fn(&str) -> Option<SourceTensor<'c>>,
) -> Option<String> {
    let last = FOREIGN.into_iter().find(|last| sibling(last).is_some())?;
    Some(format!(
        "{base}{last} changes what the words mean, and the format has no place for it; leave the weight out with \
         --skip '{name}'"
    ))
}
