//! Payloads, shapes and ranges of any kind: every operation that reads a payload does what the oracle does, under
//! every backend: validate, decode, unpack, pack again, slice, gather, stack.

#![no_main]

#[path = "input.rs"]
mod input;
#[path = "../../tests/oracle/mod.rs"]
mod oracle;
#[path = "../../tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use ninfer_codec::{Error, Format, Plan, Tensor, TensorMut, dequantize_row, stack};

use input::{Input, assert_line, each_backend};
use oracle::decode::has_output;
use oracle::rows::Range;
use oracle::words::{F16, scale_reason};
use oracle::{Fault, decode::grouped_weight};
use support::{
    Buffers, Guarded, OUTPUTS, Random, as_fault, assert_rows, assert_same, decoded, legal_payload,
    oracle_format,
};

/// The oracle is slow: it judges this many elements, and the backends judge one another beyond.
const JUDGED: u64 = 1024;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let format = input.pick(&Format::ALL);
    let shape = shape(format, &mut input);
    let operations = input.byte();
    let filling = input.byte();
    let mut case = Case {
        format,
        oracle: oracle_format(format),
        plan: support::plan(format, &shape),
        shape,
        payload: vec![],
    };
    let arguments = Arguments::new(&case.plan, &mut input);
    case.payload = payload(&case, filling, &mut input);
    if case.has_wrong_length() {
        return;
    }
    if operations & 1 != 0 {
        case.validate(&arguments);
    }
    if operations & 2 != 0 {
        case.decode(&arguments);
    }
    if operations & 4 != 0 {
        case.decode_rows(&arguments);
    }
    if operations & 8 != 0 {
        case.unpack_and_pack(&arguments);
    }
    if operations & 16 != 0 {
        case.slice_and_gather(&arguments);
    }
    if operations & 32 != 0 {
        case.stack(&arguments);
    }
    if operations & 64 != 0 {
        case.backends_agree(&arguments);
    }
    if operations & 128 != 0 {
        case.write_in_parts(&arguments);
    }
});

/// A small shape that the format takes.
fn shape(format: Format, input: &mut Input<'_>) -> Vec<u64> {
    let (first, second) = (u64::from(input.byte()), u64::from(input.u16()));
    match format {
        // Mostly the smallest there is.
        Format::Nvfp4 => vec![128 * (1 + first % 8 / 6), 64 * (1 + second % 8 / 6)],
        Format::Bf16 | Format::Fp32 | Format::I32 => match first % 4 {
            0 => vec![],
            1 => vec![1 + second % 300],
            2 => vec![1 + first / 4 % 9, 1 + second % 300],
            _ => vec![1 + first / 4 % 3, 1 + second % 3, 1 + second / 3 % 100],
        },
        _ => vec![1 + first % 9, 1 + second % 600],
    }
}

/// Row and column ranges of any kind, a list of rows, an output.
struct Arguments {
    range: Range,
    rows: Vec<u64>,
    output: support::OutputType,
    more: usize,
}

impl Arguments {
    fn new(plan: &Plan, input: &mut Input<'_>) -> Self {
        let how = input.byte();
        let step = plan.columns().min(oracle_format(plan.format()).group().unwrap_or(1));
        let mut range = Range {
            begin: input.number(),
            count: input.number(),
            col_begin: input.number(),
            col_count: input.number(),
        };
        // Half of the inputs have ranges that lie inside.
        if how & 1 == 0 {
            range.begin %= plan.rows();
            range.count = 1 + range.count % (plan.rows() - range.begin);
            range.col_begin = range.col_begin % plan.columns() / step * step;
            range.col_count = 1 + range.col_count % (plan.columns() - range.col_begin);
        }
        let tiled = plan.format() == Format::Nvfp4 && how & 2 != 0;
        let listed = usize::from(input.byte() % 6) * if tiled { 128 } else { 1 };
        let seeds: Vec<u64> = (0..6).map(|_| input.number()).collect();
        let mut rows: Vec<u64> = seeds
            .iter()
            .cycle()
            .zip(0..)
            .take(listed)
            .map(|(seed, index)| seed.wrapping_add(index / 6))
            .collect();
        if how & 4 == 0 {
            rows.iter_mut().for_each(|row| *row %= plan.rows());
        }
        Self { range, rows, output: input.pick(&OUTPUTS), more: usize::from(input.byte() % 5) }
    }

    /// The same, with so few columns or rows that the oracle can judge it.
    fn judged(&self) -> Range {
        let mut range = self.range;
        range.col_count = range.col_count.min(JUDGED);
        if let 1.. = range.col_count {
            range.count = range.count.min(JUDGED.div_ceil(range.col_count));
        }
        range
    }
}

/// Bytes as they come, repeated to the length, or a legal payload with patches; at times of a wrong length.
fn payload(case: &Case, filling: u8, input: &mut Input<'_>) -> Vec<u8> {
    let len = case.plan.payload_bytes() as usize;
    let len = match filling >> 4 {
        15 => len + usize::from(input.byte()),
        14 => len.saturating_sub(usize::from(input.byte())),
        _ => len,
    };
    match filling % 4 {
        0 => {
            let mut bytes = input.bytes(len).to_vec();
            bytes.resize(len, 0);
            bytes
        }
        1 => input.fill(len),
        _ => {
            let mut random = Random(input.u16().into());
            let (_, mut bytes) = legal_payload(case.format, &case.shape, &mut random);
            bytes.resize(len, 0);
            for _ in 0..input.byte() % 8 {
                let at = usize::from(input.u16());
                let byte = input.byte();
                let len = bytes.len().max(1);
                // Counted from the end too, where scales are.
                let at = if filling & 4 == 0 { at % len } else { len - 1 - at % len };
                if let Some(target) = bytes.get_mut(at) {
                    *target = byte;
                }
            }
            bytes
        }
    }
}

struct Case {
    format: Format,
    oracle: oracle::Format,
    plan: Plan,
    shape: Vec<u64>,
    payload: Vec<u8>,
}

impl Case {
    fn tensor(&self) -> Tensor<'_> {
        Tensor::new(self.plan, &self.payload).unwrap()
    }

    fn has_wrong_length(&self) -> bool {
        let (expected, actual) = (self.plan.payload_bytes(), self.payload.len() as u64);
        let refusal = Error::PayloadLength { expected, actual };
        let wrong = expected != actual;
        if wrong {
            assert_eq!(Tensor::new(self.plan, &self.payload).err(), Some(refusal));
            assert_eq!(TensorMut::new(self.plan, &mut self.payload.clone()).err(), Some(refusal));
            let expected = oracle::validate::validate(self.oracle, &self.shape, &self.payload, None);
            assert_same(self.format, &Err::<(), _>(refusal), &expected);
        }
        wrong
    }

    fn validate(&self, arguments: &Arguments) {
        let whole = oracle::validate::validate(self.oracle, &self.shape, &self.payload, None);
        let range = arguments.range;
        let part = oracle::validate::validate(self.oracle, &self.shape, &self.payload, Some(range));
        each_backend(|_| {
            let tensor = self.tensor();
            let got = tensor.validate();
            assert_same(self.format, &got, &whole);
            got.err().inspect(|error| assert_line(error));
            let got = tensor
                .rows(range.begin, range.count)
                .and_then(|rows| rows.validate_columns(range.col_begin, range.col_count));
            assert_same(self.format, &got, &part);
            got.err().inspect(|error| assert_line(error));
        });
    }

    fn decode(&self, arguments: &Arguments) {
        let (range, output) = (arguments.judged(), arguments.output);
        let mut expected =
            oracle::decode::decode(self.oracle, &self.shape, &self.payload, Some(range), output);
        // An output that the format lacks is refused before the columns are looked at.
        if expected == Err(Fault::BadColumns) && !has_output(self.oracle, output) {
            expected = Err(Fault::UnsupportedOutput);
        }
        let columns = range.col_count.min(self.plan.columns()) as usize;
        let stride = columns + arguments.more;
        let len = range.count.min(self.plan.rows()) as usize * stride + arguments.more;
        each_backend(|_| {
            let view = self.tensor().rows(range.begin, range.count);
            let got = match view {
                Ok(rows) => decoded(output, len, |out| {
                    rows.decode_columns(range.col_begin, range.col_count, out, stride)
                }),
                Err(error) => Err(error),
            };
            assert_same(self.format, &got, &expected);
            if let (Ok(got), Ok(expected)) = (&got, &expected) {
                assert_rows(got, expected, columns, stride, output);
            }
            got.err().inspect(|error| assert_line(error));
        });
    }

    fn decode_rows(&self, arguments: &Arguments) {
        let output = arguments.output;
        let columns = self.plan.columns() as usize;
        let rows = &arguments.rows[..arguments.rows.len().min(JUDGED as usize / columns + 1)];
        let expected = oracle::decode::decode_rows(self.oracle, &self.shape, &self.payload, rows, output);
        let stride = columns + arguments.more;
        let len = rows.len() * stride;
        each_backend(|_| {
            let got = decoded(output, len, |out| self.tensor().decode_rows(rows, out, stride));
            assert_same(self.format, &got, &expected);
            if let (Ok(got), Ok(expected)) = (&got, &expected) {
                assert_rows(got, expected, columns, stride, output);
            }
        });
    }

    /// Whatever the bytes, the words come out as they are; only legal ones go in again.
    fn unpack_and_pack(&self, arguments: &Arguments) {
        let expected = oracle::layout::unpack(self.oracle, &self.shape, &self.payload).unwrap();
        let packed = oracle::layout::pack(self.oracle, &self.shape, &expected);
        each_backend(|_| {
            let mut words = Buffers::room(&self.plan, self.plan.rows());
            self.tensor().unpack(words.words_mut(self.format)).unwrap();
            assert_eq!(words.logical(self.format), expected);
            let mut out = Guarded::new(self.payload.len(), 0xa5u8);
            let got = TensorMut::new(self.plan, out.get()).unwrap().pack(words.words(self.format));
            out.assert_canaries();
            assert_same(self.format, &got, &packed);
            if let Ok(packed) = &packed {
                assert_eq!(out.get(), packed);
            }
            // Some rows.
            let (begin, count) =
                (arguments.range.begin % self.plan.rows(), 1 + u64::from(arguments.more != 0));
            let rows = self.tensor().rows(begin, count.min(self.plan.rows() - begin)).unwrap();
            let mut some = Buffers::room(&self.plan, rows.count());
            rows.unpack(some.words_mut(self.format)).unwrap();
            let (k, s) = (self.plan.columns() as usize, self.plan.logical_groups() as usize);
            let (first, end) = (begin as usize, (begin + rows.count()) as usize);
            let some = some.logical(self.format);
            assert_eq!(some.codes, expected.codes[first * k..end * k]);
            assert_eq!(some.scales, expected.scales[first * s..end * s]);
            self.dequantize(&some);
        });
    }

    /// One row of codes and scales, as `dequantize_row` takes them.
    fn dequantize(&self, words: &oracle::layout::Logical) {
        let columns = self.plan.columns() as usize;
        let codes: Vec<i8> = words.codes.iter().take(columns).map(|&code| code as i8).collect();
        let scales: Vec<u16> = words
            .scales
            .iter()
            .take(self.plan.logical_groups() as usize)
            .map(|&scale| scale as u16)
            .collect();
        let mut out = vec![0.0f32; columns];
        let got = dequantize_row(self.format, 7, &codes, &scales, &mut out);
        let Some(group) = self.oracle.group().filter(|_| self.format.scheme().is_some()) else {
            return assert_eq!(got, Err(Error::WrongWords { format: self.format }));
        };
        match scales.iter().position(|&scale| scale_reason(scale.into(), F16).is_some()) {
            Some(index) => {
                assert_eq!(
                    as_fault(self.format, got.unwrap_err()),
                    Fault::InvalidScale { row: 7, group: Some(index as u64), word: scales[index].into() }
                );
                assert!(out.iter().all(|value| value.to_bits() == 0));
            }
            None => {
                assert_eq!(got, Ok(()));
                for (column, value) in out.iter().enumerate() {
                    let expected = grouped_weight(codes[column].into(), scales[column / group as usize]);
                    assert_eq!(value.to_bits(), expected);
                }
            }
        }
    }

    fn slice_and_gather(&self, arguments: &Arguments) {
        let Arguments { range, rows, .. } = arguments;
        let slice = oracle::rows::slice(self.oracle, &self.shape, &self.payload, range.begin, range.count);
        let gather = oracle::rows::gather(self.oracle, &self.shape, &self.payload, rows);
        each_backend(|_| {
            let tensor = self.tensor();
            let view = tensor.rows(range.begin, range.count);
            self.assert_payload(&slice, range.count, |out| view.and_then(|view| view.slice(out)));
            self.assert_payload(&gather, rows.len() as u64, |out| tensor.gather(rows, out));
            if let Ok(view) = view {
                // A list is held against the view, not the tensor.
                let outside =
                    rows.iter().find(|&&row| row < view.begin() || row - view.begin() >= view.count());
                if let Some(&row) = outside {
                    let refusal = Error::RowOutOfRange { row, rows: self.plan.rows() };
                    assert_eq!(view.gather(rows, &mut []), Err(refusal));
                }
            }
        });
    }

    /// Runs an operation that makes `rows` rows into a payload of its own.
    fn assert_payload(
        &self,
        expected: &Result<(u64, Vec<u8>), Fault>,
        rows: u64,
        operation: impl FnOnce(&mut [u8]) -> Result<Plan, Error>,
    ) {
        let len = match expected {
            Ok((_, payload)) => payload.len(),
            Err(_) => 64,
        };
        let mut out = Guarded::new(len, 0xa5u8);
        let got = operation(out.get());
        assert_same(self.format, &got, expected);
        out.assert_canaries();
        match (got, expected) {
            (Ok(plan), Ok((count, payload))) => {
                assert_eq!((plan.rows(), *count), (rows, rows));
                assert_eq!(plan, self.plan.with_rows(rows).unwrap());
                assert_eq!(out.get(), payload);
            }
            (got, _) => {
                got.err().inspect(|error| assert_line(error));
                out.assert_untouched();
            }
        }
    }

    /// This tensor, a slice of it, and a tensor that differs a little.
    fn stack(&self, arguments: &Arguments) {
        let shape = vec![self.plan.rows(), self.plan.columns()];
        let mut other = (shape.clone(), self.payload.clone());
        match arguments.more {
            0 => *other.1.last_mut().unwrap() ^= 1,
            1 => {
                let columns = self.plan.columns() + if self.format == Format::Nvfp4 { 64 } else { 1 };
                other.0[1] = columns;
                other.1 = vec![0; support::plan(self.format, &other.0).payload_bytes() as usize];
            }
            _ => {}
        }
        let whole = (shape, self.payload.clone());
        let list = [&whole, &other, &whole];
        let list = &list[..arguments.rows.len().min(3)];
        let parts: Vec<(&[u64], &[u8])> =
            list.iter().map(|(shape, payload)| (&shape[..], &payload[..])).collect();
        let expected = oracle::rows::stack(self.oracle, &parts);
        each_backend(|_| {
            let tensors: Vec<_> = list
                .iter()
                .map(|(shape, payload)| Tensor::new(support::plan(self.format, shape), payload).unwrap())
                .collect();
            let rows = tensors.iter().map(Tensor::count).sum();
            self.assert_payload(&expected, rows, |out| stack(&tensors, out));
        });
    }

    /// A decode of all that there is, which is more than the oracle could judge.
    fn backends_agree(&self, arguments: &Arguments) {
        let (rows, columns) = (self.plan.rows() as usize, self.plan.columns() as usize);
        let mut first = None;
        each_backend(|name| {
            // Rows that touch may go as one run.
            for stride in [columns, columns + 1] {
                let got = decoded(arguments.output, rows * stride, |out| self.tensor().decode(out, stride));
                let got = got.map(|words| {
                    words.chunks(stride).flat_map(|row| row[..columns].to_vec()).collect::<Vec<_>>()
                });
                let first = first.get_or_insert_with(|| got.clone());
                assert!(got == *first, "{name} decodes otherwise");
            }
        });
    }

    /// The words, packed by way of two views, in either order.
    fn write_in_parts(&self, arguments: &Arguments) {
        let words = oracle::layout::unpack(self.oracle, &self.shape, &self.payload).unwrap();
        let Ok(expected) = oracle::layout::pack(self.oracle, &self.shape, &words) else { return };
        let cut = arguments.range.begin;
        let (k, s) = (self.plan.columns() as usize, self.plan.logical_groups() as usize);
        each_backend(|_| {
            let mut out = Guarded::new(self.payload.len(), 0xa5u8);
            let tensor = TensorMut::new(self.plan, out.get()).unwrap();
            let tile = if self.format == Format::Nvfp4 { 128 } else { 1 };
            let inside = cut > 0 && cut < self.plan.rows() && cut % tile == 0;
            let Ok((top, bottom)) = tensor.split_at_row(cut) else {
                assert!(!inside);
                let mut tensor = TensorMut::new(self.plan, out.get()).unwrap();
                assert!(tensor.rows_mut(cut, arguments.range.count).is_err() || cut == 0);
                return out.assert_untouched();
            };
            assert!(inside);
            let mut parts = [top, bottom];
            if arguments.more % 2 == 0 {
                parts.reverse();
            }
            for part in &mut parts {
                let (begin, end) = (part.begin() as usize, (part.begin() + part.count()) as usize);
                let own = oracle::layout::Logical {
                    codes: words.codes[begin * k..end * k].to_vec(),
                    scales: words.scales[begin * s..end * s].to_vec(),
                    divisor: words.divisor,
                };
                let buffers = Buffers::of(self.format, &own);
                let whole = format!("{part:?}");
                let mut view = part.rows_mut(begin as u64, (end - begin) as u64).unwrap();
                assert_eq!(format!("{view:?}"), whole);
                view.pack(buffers.words(self.format)).unwrap();
            }
            out.assert_canaries();
            assert_eq!(out.get(), expected);
        });
    }
}
