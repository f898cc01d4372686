//! The peers: ggml's reference quantizers and candle's, each on the format nearest to one of ours.

use std::ffi::c_void;

use candle_core::quantized::GgmlType;
use candle_core::quantized::k_quants::{BlockQ4_0, BlockQ5_0, BlockQ6K, BlockQ8_0};
use llama_cpp_sys_2 as _; // links ggml
use ninfer_codec::Format;

use crate::trial::{Contender, Role};

type Quantize = unsafe extern "C" fn(*const f32, *mut c_void, i64);
type Dequantize = unsafe extern "C" fn(*const c_void, *mut f32, i64);

unsafe extern "C" {
    fn quantize_row_q4_0_ref(from: *const f32, to: *mut c_void, count: i64);
    fn quantize_row_q5_0_ref(from: *const f32, to: *mut c_void, count: i64);
    fn quantize_row_q6_K_ref(from: *const f32, to: *mut c_void, count: i64);
    fn quantize_row_q8_0_ref(from: *const f32, to: *mut c_void, count: i64);
    fn dequantize_row_q4_0(from: *const c_void, to: *mut f32, count: i64);
    fn dequantize_row_q5_0(from: *const c_void, to: *mut f32, count: i64);
    fn dequantize_row_q6_K(from: *const c_void, to: *mut f32, count: i64);
    fn dequantize_row_q8_0(from: *const c_void, to: *mut f32, count: i64);
}

/// One of ggml's formats.
struct Ggml {
    name: &'static str,
    block_weights: usize,
    block_bytes: usize,
    quantize: Quantize,
    dequantize: Dequantize,
}

impl Ggml {
    fn quantize(&self, from: &[f32], to: &mut [u8]) {
        assert!(from.len().is_multiple_of(self.block_weights));
        assert_eq!(to.len(), from.len() / self.block_weights * self.block_bytes);
        // SAFETY: the function reads `count` floats and writes `count / block_weights` blocks of
        // `block_bytes` bytes, whose fields are 2-byte aligned at most; the lengths were checked, and a `Vec`
        // of bytes this large is aligned to 16.
        unsafe { (self.quantize)(from.as_ptr(), to.as_mut_ptr().cast(), from.len() as i64) }
    }

    fn dequantize(&self, from: &[u8], to: &mut [f32]) {
        assert!(to.len().is_multiple_of(self.block_weights));
        assert_eq!(from.len(), to.len() / self.block_weights * self.block_bytes);
        // SAFETY: the same, the other way round.
        unsafe { (self.dequantize)(from.as_ptr().cast(), to.as_mut_ptr(), to.len() as i64) }
    }
}

fn ggml(format: Format) -> Option<Ggml> {
    let (name, block_weights, block_bytes, quantize, dequantize): (_, _, _, Quantize, Dequantize) =
        match format {
            Format::Q4G64F16S => ("ggml q4_0", 32, 18, quantize_row_q4_0_ref, dequantize_row_q4_0),
            Format::Q5G64F16S => ("ggml q5_0", 32, 22, quantize_row_q5_0_ref, dequantize_row_q5_0),
            Format::Q6G64F16S => ("ggml q6_K", 256, 210, quantize_row_q6_K_ref, dequantize_row_q6_K),
            Format::W8G32F16S => ("ggml q8_0", 32, 34, quantize_row_q8_0_ref, dequantize_row_q8_0),
            _ => return None,
        };
    Some(Ggml { name, block_weights, block_bytes, quantize, dequantize })
}

/// Peers that decode to binary32. They write `weights` floats of the output a run and read a buffer of their
/// own.
pub fn decoders(format: Format, weights: usize, parts: u32, sample: &[f32]) -> Vec<Contender<'static>> {
    let mut contenders = Vec::new();
    let source: Vec<f32> = sample.iter().copied().cycle().take(weights).collect();
    if let Some(ggml) = ggml(format) {
        let mut encoded = vec![0u8; weights / ggml.block_weights * ggml.block_bytes];
        ggml.quantize(&source, &mut encoded);
        contenders.push(Contender::new(ggml.name, Role::Peer, parts, move |buffers, part| {
            ggml.dequantize(&encoded, floats_mut(&mut buffers.output, weights, part));
        }));
    }
    contenders.extend(match format {
        Format::Q4G64F16S => Some(candle_decoder::<BlockQ4_0>("candle q4_0", &source, parts)),
        Format::Q5G64F16S => Some(candle_decoder::<BlockQ5_0>("candle q5_0", &source, parts)),
        Format::Q6G64F16S => Some(candle_decoder::<BlockQ6K>("candle q6_K", &source, parts)),
        Format::W8G32F16S => Some(candle_decoder::<BlockQ8_0>("candle q8_0", &source, parts)),
        _ => None,
    });
    contenders
}

/// Peers that quantize binary32. They read `weights` floats of the input a run and write a buffer of their own.
pub fn quantizers(format: Format, weights: usize, parts: u32) -> Vec<Contender<'static>> {
    let mut contenders = Vec::new();
    if let Some(ggml) = ggml(format) {
        let mut encoded = vec![0u8; weights / ggml.block_weights * ggml.block_bytes];
        contenders.push(Contender::new(ggml.name, Role::Peer, parts, move |buffers, part| {
            ggml.quantize(floats(&buffers.input, weights, part), &mut encoded);
        }));
    }
    contenders.extend(match format {
        Format::Q4G64F16S => Some(candle_quantizer::<BlockQ4_0>("candle q4_0", weights, parts)),
        Format::Q5G64F16S => Some(candle_quantizer::<BlockQ5_0>("candle q5_0", weights, parts)),
        Format::Q6G64F16S => Some(candle_quantizer::<BlockQ6K>("candle q6_K", weights, parts)),
        Format::W8G32F16S => Some(candle_quantizer::<BlockQ8_0>("candle q8_0", weights, parts)),
        _ => None,
    });
    contenders
}

fn candle_decoder<B: GgmlType + 'static>(name: &str, source: &[f32], parts: u32) -> Contender<'static> {
    let weights = source.len();
    let mut blocks = vec![B::zeros(); weights / B::BLCK_SIZE];
    B::from_float(source, &mut blocks);
    Contender::new(name, Role::Peer, parts, move |buffers, part| {
        B::to_float(&blocks, floats_mut(&mut buffers.output, weights, part));
    })
}

fn candle_quantizer<B: GgmlType + 'static>(name: &str, weights: usize, parts: u32) -> Contender<'static> {
    let mut blocks = vec![B::zeros(); weights / B::BLCK_SIZE];
    Contender::new(name, Role::Peer, parts, move |buffers, part| {
        B::from_float(floats(&buffers.input, weights, part), &mut blocks);
    })
}

fn floats(bytes: &[u8], weights: usize, part: u32) -> &[f32] {
    bytemuck::cast_slice(&bytes[part as usize * weights * 4..][..weights * 4])
}

fn floats_mut(bytes: &mut [u8], weights: usize, part: u32) -> &mut [f32] {
    bytemuck::cast_slice_mut(&mut bytes[part as usize * weights * 4..][..weights * 4])
}
