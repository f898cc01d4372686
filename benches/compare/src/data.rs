//! What the works are done on: weights as trained matrices have them, legal words, tensors made of one tile.

use half::{bf16, f16};
use ninfer_codec::{Format, Output, Plan, Source, Tensor, TensorMut, Words, WordsMut};

/// Rows of a tile. A larger tensor repeats it: long enough that no branch predictor learns it.
const TILE_ROWS: u64 = 256;

/// A fixed sequence of 64-bit numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Weights spread like a bell around zero, most below 0.05.
pub fn weights(count: usize) -> Vec<f32> {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut weight = || {
        let word = numbers.next();
        let sum: i32 = (0..4).map(|i| i32::from((word >> (16 * i)) as i16)).sum();
        sum as f32 * 2e-7
    };
    (0..count).map(|_| weight()).collect()
}

/// Writes weights of a value type over `bytes`.
pub fn fill_values(bytes: &mut [u8], values: &str) {
    let sample = weights(1 << 20);
    match values {
        "f32" => repeat(bytes, bytemuck::cast_slice(&sample)),
        "bf16" => repeat(
            bytes,
            bytemuck::cast_slice(&sample.iter().map(|w| bf16::from_f32(*w)).collect::<Vec<_>>()),
        ),
        "f16" => {
            repeat(bytes, bytemuck::cast_slice(&sample.iter().map(|w| f16::from_f32(*w)).collect::<Vec<_>>()))
        }
        _ => unreachable!("no such value type: {values}"),
    }
}

/// Bytes of a value.
pub fn value_bytes(values: &str) -> usize {
    if values == "f32" { 4 } else { 2 }
}

/// Sees bytes as values to read.
pub fn source<'a>(bytes: &'a [u8], values: &str) -> Source<'a> {
    match values {
        "f32" => Source::F32(bytemuck::cast_slice(bytes)),
        "bf16" => Source::Bf16(bytemuck::cast_slice(bytes)),
        _ => Source::F16(bytemuck::cast_slice(bytes)),
    }
}

/// Sees bytes as room for values.
pub fn output<'a>(bytes: &'a mut [u8], values: &str) -> Output<'a> {
    match values {
        "f32" => Output::F32(bytemuck::cast_slice_mut(bytes)),
        "bf16" => Output::Bf16(bytemuck::cast_slice_mut(bytes)),
        _ => Output::F16(bytemuck::cast_slice_mut(bytes)),
    }
}

/// Makes the plan of a matrix in its format's only layout.
pub fn plan(format: Format, rows: u64, columns: u64) -> Plan {
    Plan::new(format, format.layout(), &[rows, columns]).expect("rows and columns suit every format")
}

fn tile(format: Format, columns: u64) -> (Plan, Vec<u8>) {
    let plan = plan(format, TILE_ROWS, columns);
    let mut payload = vec![0; plan.payload_bytes() as usize];
    let mut tensor = TensorMut::new(plan, &mut payload).expect("as long as the plan says");
    let elements = plan.elements() as usize;
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let mut bytes = |count: usize| (0..count).map(|_| numbers.next() as u8).collect::<Vec<u8>>();
    match format {
        Format::Nvfp4 => {
            let codes = bytes(elements / 2);
            let scales: Vec<u8> = bytes(elements / 16).iter().map(|byte| 0x20 + byte % 0x50).collect();
            let divisor = 2.7f32.to_bits();
            tensor.pack(Words::Nvfp4 { codes: &codes, scales: &scales, divisor })
        }
        Format::Fp8E4M3FnRowBf16S => {
            let legal = |byte: u8| if byte & 0x7f == 0x7f { byte & 0xbf } else { byte };
            let codes: Vec<u8> = bytes(elements).into_iter().map(legal).collect();
            let scales: Vec<u16> =
                bytes(TILE_ROWS as usize).iter().map(|&byte| 0x3b80 + u16::from(byte)).collect();
            tensor.pack(Words::Fp8Row { codes: &codes, scales: &scales })
        }
        Format::Bf16 => tensor.pack(Words::Bf16(bytemuck::cast_slice::<_, u16>(&weights(elements / 2)))),
        Format::Fp32 => tensor.pack(Words::Fp32(bytemuck::cast_slice(&weights(elements)))),
        Format::I32 => tensor.pack(Words::I32(bytemuck::cast_slice(&weights(elements)))),
        _ => tensor.quantize(&weights(elements)[..], columns as usize),
    }
    .expect("the words are legal");
    (plan, payload)
}

/// Writes a payload over `bytes`.
pub fn fill_payload(plan: &Plan, bytes: &mut [u8]) {
    let (tile_plan, payload) = tile(plan.format(), plan.columns());
    let rows: Vec<u64> = (0..plan.rows()).map(|row| row % TILE_ROWS).collect();
    let tile = Tensor::new(tile_plan, &payload).expect("as long as the plan says");
    tile.gather(&rows, bytes).expect("the rows are the tile's");
}

/// Bytes that the codes and the scales of rows take as natural words.
pub fn word_bytes(plan: &Plan, rows: u64) -> (usize, usize) {
    let elements = (rows * plan.columns()) as usize;
    let groups = (rows * plan.logical_groups()) as usize;
    match plan.format() {
        Format::Bf16 => (elements * 2, 0),
        Format::Fp32 | Format::I32 => (elements * 4, 0),
        Format::Nvfp4 => (elements / 2, groups),
        Format::Fp8E4M3FnRowBf16S => (elements, rows as usize * 2),
        _ => (elements, groups * 2),
    }
}

/// Writes natural words over `codes` and `scales`.
pub fn fill_words(plan: &Plan, codes: &mut [u8], scales: &mut [u8]) {
    let (tile_plan, payload) = tile(plan.format(), plan.columns());
    let (code_bytes, scale_bytes) = word_bytes(&tile_plan, TILE_ROWS);
    let (mut tile_codes, mut tile_scales) = (vec![0u8; code_bytes], vec![0u8; scale_bytes]);
    let tile = Tensor::new(tile_plan, &payload).expect("as long as the plan says");
    let mut divisor = 0;
    let words = words_mut(plan, &mut tile_codes, &mut tile_scales, &mut divisor);
    tile.unpack(words).expect("the buffers fit");
    repeat(codes, &tile_codes);
    repeat(scales, &tile_scales);
}

/// Sees bytes as natural words to read.
pub fn words<'a>(plan: &Plan, codes: &'a [u8], scales: &'a [u8]) -> Words<'a> {
    use bytemuck::cast_slice;
    match plan.format() {
        Format::Bf16 => Words::Bf16(cast_slice(codes)),
        Format::Fp32 => Words::Fp32(cast_slice(codes)),
        Format::I32 => Words::I32(cast_slice(codes)),
        Format::Nvfp4 => Words::Nvfp4 { codes, scales, divisor: 2.7f32.to_bits() },
        Format::Fp8E4M3FnRowBf16S => Words::Fp8Row { codes, scales: cast_slice(scales) },
        _ => Words::Grouped { codes: cast_slice(codes), scales: cast_slice(scales) },
    }
}

/// Sees bytes as room for natural words.
pub fn words_mut<'a>(
    plan: &Plan,
    codes: &'a mut [u8],
    scales: &'a mut [u8],
    divisor: &'a mut u32,
) -> WordsMut<'a> {
    use bytemuck::cast_slice_mut;
    match plan.format() {
        Format::Bf16 => WordsMut::Bf16(cast_slice_mut(codes)),
        Format::Fp32 => WordsMut::Fp32(cast_slice_mut(codes)),
        Format::I32 => WordsMut::I32(cast_slice_mut(codes)),
        Format::Nvfp4 => WordsMut::Nvfp4 { codes, scales, divisor },
        Format::Fp8E4M3FnRowBf16S => WordsMut::Fp8Row { codes, scales: cast_slice_mut(scales) },
        _ => WordsMut::Grouped { codes: cast_slice_mut(codes), scales: cast_slice_mut(scales) },
    }
}

/// Returns every row once, in an order without order.
pub fn shuffled(rows: u64) -> Vec<u64> {
    let mut numbers = Numbers(0xd1b5_4a32_d192_ed03);
    let mut list: Vec<u64> = (0..rows).collect();
    for last in (1..list.len()).rev() {
        list.swap(last, (numbers.next() % (last as u64 + 1)) as usize);
    }
    list
}

fn repeat(bytes: &mut [u8], tile: &[u8]) {
    if !tile.is_empty() {
        for chunk in bytes.chunks_mut(tile.len()) {
            chunk.copy_from_slice(&tile[..chunk.len()]);
        }
    }
}
