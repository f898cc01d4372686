//! Outputs and payloads so large that they are streamed past the cache, of any width, stride and address: the same
//! bytes as by pieces so small that they are not.

#![no_main]

#[path = "input.rs"]
mod input;

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::{bf16, f16};
use libfuzzer_sys::fuzz_target;
use ninfer_codec::{Error, Format, Output, Plan, Source, Tensor, TensorMut, Words, WordsMut};

use input::{Input, backends};

/// From here on outputs are streamed.
const LARGE: usize = 8 << 20;
/// Bytes of what is made for comparison at a time.
const PIECE: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    // Portable code does not stream.
    let mut backends = backends();
    backends.reverse();
    backends.pop();
    if backends.is_empty() {
        return;
    }
    let backend = input.pick(&backends);
    assert!(ninfer_codec::internals::select_backend(backend));
    let format = input.pick(&Format::ALL);
    let (operation, columns) = (input.byte(), usize::from(input.u16()));
    let case = |element: usize| Case::new(format, columns, element);
    match operation % 10 {
        0..=2 => case(4).decode::<f32>(&mut input),
        3 => case(2).decode::<bf16>(&mut input),
        4 => case(2).decode::<f16>(&mut input),
        5 => case(8).decode::<f64>(&mut input),
        6 => case(1).words(&mut input),
        7 => case(1).rows(&mut input),
        _ => case(4).encode(&mut input),
    }
});

trait Value: Pod + PartialEq {
    fn output(values: &mut [Self]) -> Output<'_>;
    fn source(values: &[Self]) -> Source<'_>;
}

macro_rules! values {
    ($($value:ty => $variant:ident),*) => {$(
        impl Value for $value {
            fn output(values: &mut [Self]) -> Output<'_> {
                Output::$variant(values)
            }

            fn source(values: &[Self]) -> Source<'_> {
                Source::$variant(values)
            }
        }
    )*};
}

values!(f32 => F32, bf16 => Bf16, f16 => F16, f64 => F64);

struct Case {
    plan: Plan,
    rows: usize,
    columns: usize,
}

impl Case {
    /// A matrix of so many columns whose elements, of so many bytes each, are just enough.
    fn new(format: Format, columns: usize, element: usize) -> Self {
        let (row_step, column_step) = if format == Format::Nvfp4 { (128, 64) } else { (1, 1) };
        // Wide rows too: those that stand apart are streamed one by one.
        // Narrow ones only where K is not padded to much more.
        let least = if format.scheme().is_some() { 40 } else { 1 };
        let columns = (least + columns % 9000).next_multiple_of(column_step);
        let rows = (LARGE.div_ceil(columns * element) + columns % 3).next_multiple_of(row_step);
        let plan = Plan::new(format, format.layout(), &[rows as u64, columns as u64]).expect("a plan");
        Self { plan, rows, columns }
    }

    /// The input's bytes over and over, without the bits that would make scales illegal.
    fn payload(&self, input: &mut Input<'_>) -> Vec<u8> {
        let mut bytes = input.fill(input.0.len().clamp(61, 4099));
        bytes.iter_mut().for_each(|byte| *byte &= 0x3b);
        bytes[0] |= 1;
        let mut payload = repeated(&bytes, self.plan.payload_bytes() as usize);
        let divisor = self.plan.divisor();
        payload[divisor.offset as usize..][..divisor.bytes as usize]
            .copy_from_slice(&1.5f32.to_le_bytes()[..divisor.bytes as usize]);
        payload
    }

    fn decode<T: Value>(&self, input: &mut Input<'_>) {
        let (offset, apart) = (usize::from(input.byte() % 64), usize::from(input.byte()));
        let stride = self.columns + if apart < 128 { 0 } else { apart % 8 };
        let (first, columns) = match input.byte() {
            0..128 => (0, self.columns),
            some => {
                let step = self.plan.format().descriptor().group.unwrap_or(1) as usize;
                let first = usize::from(some) % self.columns / step * step;
                (first, self.columns - first)
            }
        };
        let payload = self.payload(input);
        let tensor = Tensor::new(self.plan, &payload).expect("the plan's payload");
        let len = (self.rows - 1) * stride + columns;
        let dirt: T = bytemuck::pod_read_unaligned(&[0x5a; 8][..size_of::<T>()]);
        let mut room = vec![dirt; offset + len + 1];
        let out = &mut room[offset..offset + len];
        let whole = tensor.decode_columns(first as u64, columns as u64, T::output(out), stride);
        let step = (PIECE / (columns * size_of::<T>())).clamp(1, self.rows);
        let mut piece = vec![dirt; step * columns];
        for begin in (0..self.rows).step_by(step) {
            let count = step.min(self.rows - begin);
            let rows = tensor.rows(begin as u64, count as u64).expect("rows of the tensor");
            let piece = &mut piece[..count * columns];
            let part = rows.decode_columns(first as u64, columns as u64, T::output(piece), columns);
            assert_eq!(part, whole);
            if whole.is_err() {
                break;
            }
            for (row, expected) in (begin..).zip(piece.chunks(columns)) {
                let at = offset + row * stride;
                assert!(same(&room[at..at + columns], expected), "row {row} of {}", self.rows);
                let between = at + columns..(at + stride).min(room.len());
                assert!(room[between].iter().all(|value| same(&[*value], &[dirt])));
            }
        }
        let written = if whole.is_err() { &room[..] } else { &room[..offset] };
        assert!(written.iter().all(|value| same(&[*value], &[dirt])));
    }

    /// Natural words out and in again.
    fn words(&self, input: &mut Input<'_>) {
        let payload = self.payload(input);
        let tensor = Tensor::new(self.plan, &payload).expect("the plan's payload");
        let elements = self.plan.elements() as usize;
        let mut scales = vec![0u16; self.rows * self.plan.logical_groups() as usize];
        let (group, lanes) = (self.plan.logical_groups() as usize, self.columns);
        let format = self.plan.format();
        let mut back = vec![0x5au8; payload.len()];
        let mut again = TensorMut::new(self.plan, &mut back).expect("the plan's payload");
        let direct: Vec<u8> = match format {
            Format::Bf16 => {
                let mut words = vec![0; elements];
                tensor.unpack(WordsMut::Bf16(&mut words)).expect("words of the format");
                again.pack(Words::Bf16(&words)).expect("legal words");
                cast_slice::<u16, u8>(&words).to_vec()
            }
            Format::Fp32 => {
                let mut words = vec![0; elements];
                tensor.unpack(WordsMut::Fp32(&mut words)).expect("words of the format");
                again.pack(Words::Fp32(&words)).expect("legal words");
                cast_slice::<u32, u8>(&words).to_vec()
            }
            Format::I32 => {
                let mut words = vec![0; elements];
                tensor.unpack(WordsMut::I32(&mut words)).expect("words of the format");
                again.pack(Words::I32(&words)).expect("legal words");
                cast_slice::<i32, u8>(&words).to_vec()
            }
            Format::Fp8E4M3FnRowBf16S => {
                let mut codes = vec![0u8; elements];
                tensor.unpack(WordsMut::Fp8Row { codes: &mut codes, scales: &mut scales }).expect("words");
                let plane = tensor.plan().codes();
                assert!(codes == payload[plane.offset as usize..][..plane.bytes as usize]);
                return;
            }
            Format::Nvfp4 => return,
            _ => {
                let mut codes = vec![0u8; elements];
                let words = WordsMut::Grouped { codes: cast_slice_mut(&mut codes), scales: &mut scales };
                tensor.unpack(words).expect("words of the format");
                let step = (PIECE / lanes).clamp(1, self.rows);
                for begin in (0..self.rows).step_by(step) {
                    let count = step.min(self.rows - begin);
                    let rows = tensor.rows(begin as u64, count as u64).expect("rows of the tensor");
                    let (mut some, mut some_scales) = (vec![0u8; count * lanes], vec![0u16; count * group]);
                    let words =
                        WordsMut::Grouped { codes: cast_slice_mut(&mut some), scales: &mut some_scales };
                    rows.unpack(words).expect("words of the format");
                    assert!(codes[begin * lanes..(begin + count) * lanes] == some[..]);
                    assert!(scales[begin * group..(begin + count) * group] == some_scales[..]);
                }
                return;
            }
        };
        assert!(direct == payload && back == payload);
    }

    /// Quantizes values and packs the words that come of it.
    fn encode(&self, input: &mut Input<'_>) {
        let format = self.plan.format();
        if format.scheme().is_none() {
            return;
        }
        let (kind, offset) = (input.byte(), usize::from(input.byte() % 64));
        let mut bytes = input.fill(input.0.len().clamp(61, 4099));
        // Finite, of either sign.
        bytes.iter_mut().for_each(|byte| *byte &= 0xbb);
        let count = self.plan.elements() as usize;
        match kind % 4 {
            0 => self.quantize::<f32>(&repeated(&bytes, 4 * count), offset),
            1 => self.quantize::<bf16>(&repeated(&bytes, 2 * count), offset),
            2 => self.quantize::<f16>(&repeated(&bytes, 2 * count), offset),
            _ => self.quantize::<f64>(&repeated(&bytes, 8 * count), offset),
        }
    }

    fn quantize<T: Value>(&self, source: &[u8], offset: usize) {
        let values: Vec<T> = source.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect();
        let len = self.plan.payload_bytes() as usize;
        let mut room = vec![0x5au8; offset + len + 1];
        let mut whole =
            TensorMut::new(self.plan, &mut room[offset..offset + len]).expect("the plan's payload");
        whole.quantize(T::source(&values), self.columns).expect("finite values of any size that fit");
        let mut parts = vec![0xa5u8; len];
        let step = (PIECE / 4 / self.columns).clamp(1, self.rows);
        let mut tensor = TensorMut::new(self.plan, &mut parts).expect("the plan's payload");
        for begin in (0..self.rows).step_by(step) {
            let count = step.min(self.rows - begin);
            let some = &values[begin * self.columns..(begin + count) * self.columns];
            let mut rows = tensor.rows_mut(begin as u64, count as u64).expect("rows of the tensor");
            rows.quantize(T::source(some), self.columns).expect("as before");
        }
        assert!(room[offset..offset + len] == parts);
        assert!(room[..offset].iter().all(|&byte| byte == 0x5a) && room[offset + len] == 0x5a);

        let (mut codes, mut scales) =
            (vec![0i8; values.len()], vec![0u16; self.rows * self.plan.logical_groups() as usize]);
        let tensor = Tensor::new(self.plan, &parts).expect("the plan's payload");
        tensor
            .unpack(WordsMut::Grouped { codes: &mut codes, scales: &mut scales })
            .expect("words of the format");
        room.fill(0x5a);
        let mut whole =
            TensorMut::new(self.plan, &mut room[offset..offset + len]).expect("the plan's payload");
        whole.pack(Words::Grouped { codes: &codes, scales: &scales }).expect("legal words");
        assert!(room[offset..offset + len] == parts);
        assert!(room[..offset].iter().all(|&byte| byte == 0x5a) && room[offset + len] == 0x5a);
    }

    /// Rows of one payload as a payload of their own.
    fn rows(&self, input: &mut Input<'_>) {
        let (begin, less, offset) = (input.u16(), input.u16(), usize::from(input.byte() % 64));
        let payload = self.payload(input);
        let tensor = Tensor::new(self.plan, &payload).expect("the plan's payload");
        // Almost all, so that what is copied is large.
        let begin = u64::from(begin) % (self.rows as u64 / 64 + 1);
        let rows = self.rows as u64 - begin;
        let mut count = rows - u64::from(less) % (rows / 64 + 1);
        if self.plan.format() == Format::Nvfp4 {
            count = count / 128 * 128;
        }
        let plan = match self.plan.with_rows(count) {
            Ok(plan) => plan,
            Err(error) => return assert_eq!(error, Error::EmptyRows),
        };
        let len = plan.payload_bytes() as usize;
        let mut room = vec![0x5au8; offset + len + 1];
        let view = tensor.rows(begin, count).expect("rows of the tensor");
        assert_eq!(view.slice(&mut room[offset..offset + len]), Ok(plan));
        assert!(room[..offset].iter().all(|&byte| byte == 0x5a) && room[offset + len] == 0x5a);
        let out = &room[offset..offset + len];
        let of = self.plan.codes();
        let codes = of.offset as usize + begin as usize * of.row_bytes as usize;
        assert!(out[..plan.codes().bytes as usize] == payload[codes..][..plan.codes().bytes as usize]);
        // Backwards there are no runs of rows.
        let list: Vec<u64> = (begin..begin + count).rev().collect();
        let mut back = vec![0x5au8; len];
        assert_eq!(tensor.gather(&list, &mut back), Ok(plan));
        let mut twice = vec![0x5au8; len];
        let list: Vec<u64> = (0..count).rev().collect();
        let backwards = Tensor::new(plan, &back).expect("its own payload");
        assert_eq!(backwards.gather(&list, &mut twice), Ok(plan));
        assert!(twice == out);
    }
}

fn same<T: Pod>(a: &[T], b: &[T]) -> bool {
    cast_slice::<T, u8>(a) == cast_slice::<T, u8>(b)
}

fn repeated(bytes: &[u8], len: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(len);
    while all.len() < len {
        all.extend_from_slice(&bytes[..bytes.len().min(len - all.len())]);
    }
    all
}
