//! The operations with the backend the CPU gets, inside L2: `cargo bench`, or `cargo bench -- 'decode/Q4'`.
//!
//! For limits, peers, other backends and memory, see `benches/compare`.

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use half::{bf16, f16};
use ninfer_codec::{Format, Plan, Tensor, TensorMut, Words, WordsMut};

/// Rows and columns: 64 Ki weights; NVFP4's rows come by 128.
const SHAPE: [u64; 2] = [128, 512];
const ROWS: usize = SHAPE[0] as usize;
const COLUMNS: usize = SHAPE[1] as usize;
const ELEMENTS: usize = ROWS * COLUMNS;

fn plan(format: Format) -> Plan {
    Plan::new(format, format.layout(), &SHAPE).expect("the shape suits every format")
}

/// Weights between -1 and 1 with every bit of their fraction in use.
fn weights() -> Vec<f32> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state as i32 as f32 / 2_147_483_648.0
    };
    (0..ELEMENTS).map(|_| next()).collect()
}

/// Natural words of one format, all legal.
struct Natural {
    direct16: Vec<u16>,
    direct32: Vec<u32>,
    signed32: Vec<i32>,
    codes: Vec<i8>,
    bytes: Vec<u8>,
    scales16: Vec<u16>,
    scales8: Vec<u8>,
}

impl Natural {
    fn new(format: Format) -> Self {
        let plan = plan(format);
        let groups = ROWS * plan.logical_groups() as usize;
        let words: Vec<u32> = weights().iter().map(|weight| weight.to_bits()).collect();
        let (low, high) = format.descriptor().code_interval.unwrap_or((0, 0));
        let code = |word: &u32| (low + (word >> 9) as i32 % (high - low + 1).max(1)) as i8;
        let byte = |word: &u32| (word >> 9) as u8 & 0xbf;
        let pairs = if format == Format::Nvfp4 { 2 } else { 1 };
        Self {
            direct16: words.iter().map(|word| (word >> 16) as u16).collect(),
            direct32: words.clone(),
            signed32: words.iter().map(|&word| word as i32).collect(),
            codes: if format.scheme().is_some() { words.iter().map(code).collect() } else { Vec::new() },
            bytes: words.iter().take(ELEMENTS / pairs).map(byte).collect(),
            scales16: vec![0x3c00; groups],
            scales8: vec![0x38; groups],
        }
    }

    fn words(&self, format: Format) -> Words<'_> {
        match format {
            Format::Bf16 => Words::Bf16(&self.direct16),
            Format::Fp32 => Words::Fp32(&self.direct32),
            Format::I32 => Words::I32(&self.signed32),
            Format::Nvfp4 => {
                Words::Nvfp4 { codes: &self.bytes, scales: &self.scales8, divisor: 3.0f32.to_bits() }
            }
            Format::Fp8E4M3FnRowBf16S => Words::Fp8Row { codes: &self.bytes, scales: &self.scales16 },
            _ => Words::Grouped { codes: &self.codes, scales: &self.scales16 },
        }
    }

    fn words_mut<'a>(&'a mut self, format: Format, divisor: &'a mut u32) -> WordsMut<'a> {
        match format {
            Format::Bf16 => WordsMut::Bf16(&mut self.direct16),
            Format::Fp32 => WordsMut::Fp32(&mut self.direct32),
            Format::I32 => WordsMut::I32(&mut self.signed32),
            Format::Nvfp4 => WordsMut::Nvfp4 { codes: &mut self.bytes, scales: &mut self.scales8, divisor },
            Format::Fp8E4M3FnRowBf16S => {
                WordsMut::Fp8Row { codes: &mut self.bytes, scales: &mut self.scales16 }
            }
            _ => WordsMut::Grouped { codes: &mut self.codes, scales: &mut self.scales16 },
        }
    }
}

fn payload(format: Format) -> Vec<u8> {
    let mut payload = vec![0; plan(format).payload_bytes() as usize];
    let mut tensor = TensorMut::new(plan(format), &mut payload).expect("as long as the plan says");
    tensor.pack(Natural::new(format).words(format)).expect("legal words");
    payload
}

fn group<'c>(criterion: &'c mut Criterion, operation: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(operation);
    group.throughput(Throughput::Elements(ELEMENTS as u64));
    group
}

fn is_quantized(format: Format) -> bool {
    !matches!(format, Format::Bf16 | Format::Fp32 | Format::I32)
}

fn decode(criterion: &mut Criterion) {
    let mut group = group(criterion, "decode");
    for format in Format::ALL.into_iter().filter(|&format| is_quantized(format)) {
        let payload = payload(format);
        let tensor = Tensor::new(plan(format), &payload).expect("as long as the plan says");
        let mut out = vec![0f32; ELEMENTS];
        group.bench_function(format!("{format}/f32"), |b| b.iter(|| tensor.decode(&mut out[..], COLUMNS)));
        let mut out = vec![bf16::ZERO; ELEMENTS];
        group.bench_function(format!("{format}/bf16"), |b| b.iter(|| tensor.decode(&mut out[..], COLUMNS)));
        let mut out = vec![f16::ZERO; ELEMENTS];
        group.bench_function(format!("{format}/f16"), |b| b.iter(|| tensor.decode(&mut out[..], COLUMNS)));
    }
}

fn quantize(criterion: &mut Criterion) {
    let mut group = group(criterion, "quantize");
    let source = weights();
    let to_bf16: Vec<bf16> = source.iter().map(|&weight| bf16::from_f32(weight)).collect();
    let to_f16: Vec<f16> = source.iter().map(|&weight| f16::from_f32(weight)).collect();
    for format in Format::ALL.into_iter().filter(|format| format.scheme().is_some()) {
        let mut payload = payload(format);
        let mut tensor = TensorMut::new(plan(format), &mut payload).expect("as long as the plan says");
        group.bench_function(format!("{format}/f32"), |b| b.iter(|| tensor.quantize(&source[..], COLUMNS)));
        group.bench_function(format!("{format}/bf16"), |b| b.iter(|| tensor.quantize(&to_bf16[..], COLUMNS)));
        group.bench_function(format!("{format}/f16"), |b| b.iter(|| tensor.quantize(&to_f16[..], COLUMNS)));
    }
}

fn words(criterion: &mut Criterion) {
    let mut group = group(criterion, "words");
    for format in Format::ALL {
        let mut natural = Natural::new(format);
        let mut payload = payload(format);
        let mut target = TensorMut::new(plan(format), &mut payload).expect("as long as the plan says");
        group.bench_function(format!("pack/{format}"), |b| b.iter(|| target.pack(natural.words(format))));
        let tensor = Tensor::new(plan(format), &payload).expect("as long as the plan says");
        let mut divisor = 0;
        group.bench_function(format!("unpack/{format}"), |b| {
            b.iter(|| tensor.unpack(natural.words_mut(format, &mut divisor)));
        });
    }
}

fn rows(criterion: &mut Criterion) {
    let mut group = group(criterion, "rows");
    let rows: Vec<u64> = (0..SHAPE[0]).rev().collect();
    for format in Format::ALL {
        let payload = payload(format);
        let tensor = Tensor::new(plan(format), &payload).expect("as long as the plan says");
        let mut out = vec![0; payload.len()];
        group.bench_function(format!("gather/{format}"), |b| b.iter(|| tensor.gather(&rows, &mut out)));
        if is_quantized(format) {
            group.bench_function(format!("validate/{format}"), |b| b.iter(|| tensor.validate()));
        }
    }
}

criterion_group!(operations, decode, quantize, words, rows);
criterion_main!(operations);
