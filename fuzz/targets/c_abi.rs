//! The C functions with arguments of any kind over real buffers: lengths are honest, all else is arbitrary. A call
//! does what the Rust function does, or refuses for what is wrong with the memory, and touches nothing else.

#![no_main]

#[path = "caller.rs"]
mod caller;
#[path = "input.rs"]
mod input;

use bytemuck::{cast_slice, cast_slice_mut};
use half::{bf16, f16};
use libfuzzer_sys::fuzz_target;
use ninfer_codec::ffi::*;
use ninfer_codec::{
    EncoderProfile, Format, Layout, Output, Plan, ResourceEncoding, Source, Tensor, TensorMut, ValueType,
    Words, WordsMut, convert, dequantize_row, quantize_row, stack,
};

use caller::Caller;
use input::{Input, backends};

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let backend = input.pick(&backends());
    assert!(ninfer_codec::internals::select_backend(backend));
    let function = input.byte() % 18;
    let mut caller = Caller::new(input);
    let c = &mut caller;
    match function {
        0 => plan(c),
        1 => row_span(c),
        2 => quantize(c),
        3 => pack(c),
        4 => row_quantize(c),
        5 => decode(c),
        6 => decode_rows(c),
        7 => unpack(c),
        8 => validate(c),
        9 => row_dequantize(c),
        10 => slice(c),
        11 => gather(c),
        12 => stacked(c),
        13 => round(c),
        14 => convert_exactly(c),
        15 => find(c),
        16 => describe(c),
        _ => names(c),
    }
});

/// Format, layout, dimensions, and the plan of them if there is one.
struct Shape {
    format: u32,
    layout: u32,
    dims: usize,
    plan: Option<Plan>,
}

impl Shape {
    fn new(c: &mut Caller<'_>) -> Self {
        let (format, layout, dims) = Self::numbers(c);
        let contents: &[u8] = cast_slice(&dims);
        let dims = c.give::<u64>(contents, dims.len() as u64, false);
        Self { format, layout, dims, plan: Self::plan_of(format, layout, &c.values(dims)) }
    }

    fn numbers(c: &mut Caller<'_>) -> (u32, u32, Vec<u64>) {
        let format = match c.input.byte() {
            known @ 0..250 => 1 + u32::from(known) % 9,
            _ => c.input.number() as u32,
        };
        let own = Format::from_id(format).map_or(0, |format| format.layout().id());
        let layout = match c.input.byte() {
            0..240 => own,
            _ => c.input.number() as u32,
        };
        let how = c.input.byte();
        let (rows, columns) = (u64::from(c.input.byte()), u64::from(c.input.u16()));
        let dims = match (how, own) {
            (0..200, 3) => vec![128 * (1 + rows % 2), 64 * (1 + columns % 2)],
            (0..200, _) => vec![1 + rows % 6, 1 + columns % 200],
            (200..220, _) => vec![1 + rows % 3, 1 + columns % 3, 1 + columns % 100],
            _ => (0..how % 20).map(|_| c.input.number()).collect(),
        };
        (format, layout, dims)
    }

    fn plan_of(format: u32, layout: u32, dims: &[u64]) -> Option<Plan> {
        Plan::new(Format::from_id(format)?, Layout::from_id(layout)?, dims).ok()
    }

    fn known(&self) -> Option<Format> {
        Format::from_id(self.format)
    }

    fn payload_bytes(&self) -> u64 {
        self.plan.map_or(40, |plan| plan.payload_bytes())
    }

    fn columns(&self) -> u64 {
        self.plan.map_or(3, |plan| plan.columns())
    }

    /// Rows, mostly of those that there are; whole tiles where they are to be written.
    fn rows(&self, c: &mut Caller<'_>, written: bool) -> (u64, u64) {
        let (how, rows) = (c.input.byte(), self.plan.map_or(1, |plan| plan.rows()));
        let (begin, count) = (c.input.number(), c.input.number());
        match how {
            0..190 => {}
            // One row too many.
            190..220 => return (begin % rows, (rows - begin % rows).saturating_add(1)),
            _ => return (begin, count),
        }
        let tile = if written && self.known() == Some(Format::Nvfp4) { 128 } else { 1 };
        let tiles = (rows / tile).max(1);
        let begin = begin % tiles;
        (begin * tile, (1 + count % (tiles - begin)) * tile)
    }
}

/// A payload argument of arbitrary bytes, mostly as long as the plan says.
fn payload(c: &mut Caller<'_>, right: u64, bytes: &[u8], written: bool) -> usize {
    let len = c.length(right);
    c.give::<u8>(bytes, len, written)
}

/// Bytes for payloads and values, as many as are wanted.
fn some_bytes(c: &mut Caller<'_>) -> Vec<u8> {
    let scales = c.input.byte();
    let len = 24 << 10;
    let mut bytes = Input(c.input.0).fill(len);
    if scales % 2 == 0 {
        // Without a set sign or a high exponent in any word: legal scales come often.
        bytes.iter_mut().for_each(|byte| *byte &= 0x3b);
    }
    bytes
}

fn plan(c: &mut Caller<'_>) {
    let s = Shape::new(c);
    let out = c.give_struct::<TensorPlan>();
    c.place_details();
    let size = c.values::<u8>(out).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let expected = s.plan.filter(|_| size >= size_of::<TensorPlan>() as u64).map(|plan| {
        let (codes, high, scales) = (plan.codes(), plan.high(), plan.scales());
        let pairs = if plan.format() == Format::Nvfp4 { 2 } else { 1 };
        let numbers = [
            size,
            u64::from(s.format) | u64::from(s.layout) << 32,
            plan.rows(),
            plan.columns(),
            plan.padded_columns(),
            plan.elements(),
            plan.logical_groups(),
            plan.physical_groups(),
            codes.offset,
            codes.bytes,
            codes.row_bytes,
            high.offset,
            high.bytes,
            high.row_bytes,
            scales.offset,
            scales.bytes,
            scales.row_bytes,
            plan.divisor().offset,
            plan.divisor().bytes,
            plan.payload_bytes(),
            plan.alignment(),
            plan.columns() / pairs,
        ];
        vec![(out, cast_slice(&numbers).to_vec())]
    });
    let (dims, rank) = (c.pointer(s.dims), c.len(s.dims));
    let plan = c.pointer(out);
    c.call(expected, &[], |details| unsafe {
        ninfer_codec_tensor_plan(s.format, s.layout, dims, rank, plan, details)
    });
}

fn row_span(c: &mut Caller<'_>) {
    let s = Shape::new(c);
    let (begin, count) = s.rows(c, false);
    let plane = u32::from(c.input.byte() % 5);
    let (offset, bytes) = (c.give::<u64>(&[], 1, true), c.give::<u64>(&[], 1, true));
    c.place_details();
    let span = s.plan.and_then(|plan| match plane {
        1 => plan.code_rows(begin, count).ok(),
        2 if plan.format() == Format::Nvfp4 => {
            let none = ninfer_codec::layout::Span { offset: plan.high().offset, bytes: 0 };
            plan.code_rows(begin, count).ok().map(|_| none)
        }
        2 => plan.row_spans(begin, count).ok().map(|spans| spans.high),
        3 => plan.row_spans(begin, count).ok().map(|spans| spans.scales),
        _ => None,
    });
    let expected = span.map(|span| {
        vec![(offset, span.offset.to_le_bytes().to_vec()), (bytes, span.bytes.to_le_bytes().to_vec())]
    });
    let (dims, rank) = (c.pointer(s.dims), c.len(s.dims));
    let (offset, bytes) = (c.pointer(offset), c.pointer(bytes));
    c.call(expected, &[], |details| unsafe {
        ninfer_codec_tensor_row_span(
            s.format, s.layout, dims, rank, begin, count, plane, offset, bytes, details,
        )
    });
}

/// An argument of values of a type by its id.
struct Values {
    id: u32,
    kind: Option<ValueType>,
    index: usize,
}

impl Values {
    fn new(c: &mut Caller<'_>, contents: &[u8], right: u64, written: bool) -> Self {
        let id = match c.input.byte() {
            known @ 0..200 => 1 + u32::from(known) % 4,
            other => u32::from(other % 9),
        };
        let len = c.length(right);
        let index = match id {
            1 | 5 => c.give::<u32>(contents, len, written),
            2 | 3 => c.give::<u16>(contents, len, written),
            _ => c.give::<u64>(contents, len, written),
        };
        Self { id, kind: ValueType::from_id(id), index }
    }

    /// Says how many elements are used of rows that stand apart.
    fn uses_rows(&self, c: &mut Caller<'_>, rows: u64, columns: u64, stride: u64) {
        let elements = rows.saturating_sub(1).saturating_mul(stride).saturating_add(columns);
        let bytes = elements.saturating_mul(self.kind.map_or(8, |kind| kind.bytes() as u64));
        if bytes <= c.contents(self.index).len() as u64 {
            c.uses(self.index, bytes as usize);
        }
    }

    fn with_source<T>(&self, c: &Caller<'_>, run: impl FnOnce(Source<'_>) -> Option<T>) -> Option<T> {
        match self.kind? {
            ValueType::F32 => run(Source::F32(&c.values::<f32>(self.index))),
            ValueType::Bf16 => run(Source::Bf16(&c.values::<bf16>(self.index))),
            ValueType::F16 => run(Source::F16(&c.values::<f16>(self.index))),
            ValueType::F64 => run(Source::F64(&c.values::<f64>(self.index))),
        }
    }

    /// What the output holds after a decoder has run.
    fn decoded(&self, c: &Caller<'_>, run: impl FnOnce(Output<'_>) -> Option<()>) -> Option<Vec<u8>> {
        match self.kind? {
            ValueType::F32 => {
                let mut out = c.values::<f32>(self.index);
                run(Output::F32(&mut out)).map(|()| cast_slice(&out).to_vec())
            }
            ValueType::Bf16 => {
                let mut out = c.values::<bf16>(self.index);
                run(Output::Bf16(&mut out)).map(|()| cast_slice(&out).to_vec())
            }
            ValueType::F16 => {
                let mut out = c.values::<f16>(self.index);
                run(Output::F16(&mut out)).map(|()| cast_slice(&out).to_vec())
            }
            ValueType::F64 => {
                let mut out = c.values::<f64>(self.index);
                run(Output::F64(&mut out)).map(|()| cast_slice(&out).to_vec())
            }
        }
    }
}

/// A stride, mostly one that fits.
fn stride(c: &mut Caller<'_>, columns: u64) -> u64 {
    match c.input.byte() {
        0..120 => columns,
        more @ 120..220 => columns.saturating_add(u64::from(more % 5)),
        220..235 => columns.saturating_sub(1),
        _ => c.input.number(),
    }
}

/// Elements of rows that stand apart, as a length.
fn strided(rows: u64, columns: u64, stride: u64) -> u64 {
    rows.saturating_sub(1).saturating_mul(stride).saturating_add(columns)
}

fn quantize(c: &mut Caller<'_>) {
    let s = Shape::new(c);
    let (begin, count) = s.rows(c, true);
    let columns = s.columns();
    let stride = stride(c, columns);
    let bytes = some_bytes(c);
    let source = Values::new(c, &bytes, strided(count, columns, stride), false);
    let target = payload(c, s.payload_bytes(), &[], true);
    c.place_details();
    source.uses_rows(c, count, columns, stride);
    let mut contents = c.contents(target);
    let done = source.with_source(c, |values| {
        let mut tensor = TensorMut::new(s.plan?, &mut contents).ok()?;
        tensor.rows_mut(begin, count).ok()?.quantize(values, usize::try_from(stride).ok()?).ok()
    });
    let expected = done.map(|()| vec![(target, contents)]);
    let (dims, rank) = (c.pointer(s.dims), c.len(s.dims));
    let (values, values_len) = (c.pointer(source.index), c.len(source.index));
    let (out, out_len) = (c.pointer(target), c.len(target));
    c.call(expected, &[target], |details| unsafe {
        ninfer_codec_tensor_quantize(
            s.format, s.layout, dims, rank, begin, count, source.id, values, values_len, stride, out,
            out_len, details,
        )
    });
}

/// Codes and scales as arguments of the format's types.
fn words(c: &mut Caller<'_>, s: &Shape, rows: u64, bytes: &[u8], written: bool) -> (usize, usize) {
    let (columns, groups) = (s.columns(), s.plan.map_or(0, |plan| plan.logical_groups()));
    let elements = rows.saturating_mul(columns);
    let (codes, scales) = (if s.format == 8 { elements / 2 } else { elements }, rows.saturating_mul(groups));
    let (codes, scales) = (c.length(codes), c.length(scales));
    let half = &bytes[bytes.len() / 2..];
    let codes = match s.format {
        1 => c.give::<u16>(bytes, codes, written),
        2 | 3 => c.give::<u32>(bytes, codes, written),
        _ => c.give::<u8>(bytes, codes, written),
    };
    let scales = match s.format {
        4..=7 | 9 => c.give::<u16>(half, scales, written),
        _ => c.give::<u8>(half, scales, written),
    };
    (codes, scales)
}

fn pack(c: &mut Caller<'_>) {
    let s = Shape::new(c);
    let (begin, count) = s.rows(c, true);
    let mut bytes = some_bytes(c);
    // Small codes, of both signs.
    let small = c.input.byte();
    bytes.iter_mut().take(12 << 10).for_each(|byte| match small % 4 {
        0 => *byte = ((*byte & 0xf) as i8 - 8) as u8,
        1 => *byte = 0,
        _ => {}
    });
    let (codes, scales) = words(c, &s, count, &bytes, false);
    let divisor = match (c.input.byte(), s.format) {
        (0..200, 8) => c.input.u32() & 0x7fff_ffff,
        (0..200, _) => 0,
        _ => c.input.u32(),
    };
    let target = payload(c, s.payload_bytes(), &[], true);
    c.place_details();
    let mut contents = c.contents(target);
    let done = packed(c, &s, (begin, count), (codes, scales), divisor, &mut contents);
    let expected = done.map(|()| vec![(target, contents)]);
    let (dims, rank) = (c.pointer(s.dims), c.len(s.dims));
    let (code_words, codes_len) = (c.pointer(codes), c.len(codes));
    let (scale_words, scales_len) = (c.pointer(scales), c.len(scales));
    let (out, out_len) = (c.pointer(target), c.len(target));
    c.call(expected, &[target], |details| unsafe {
        ninfer_codec_tensor_pack(
            s.format,
            s.layout,
            dims,
            rank,
            begin,
            count,
            code_words,
            codes_len,
            scale_words,
            scales_len,
            divisor,
            out,
            out_len,
            details,
        )
    });
}

fn packed(
    c: &Caller<'_>,
    s: &Shape,
    (begin, count): (u64, u64),
    (codes, scales): (usize, usize),
    divisor: u32,
    payload: &mut [u8],
) -> Option<()> {
    let mut tensor = TensorMut::new(s.plan?, payload).ok()?;
    let mut rows = tensor.rows_mut(begin, count).ok()?;
    if divisor != 0 && s.format != 8 || s.format < 4 && c.len(scales) != 0 {
        return None;
    }
    let done = match s.known()? {
        Format::Bf16 => rows.pack(Words::Bf16(&c.values(codes))),
        Format::Fp32 => rows.pack(Words::Fp32(&c.values(codes))),
        Format::I32 => rows.pack(Words::I32(&c.values(codes))),
        Format::Nvfp4 => {
            rows.pack(Words::Nvfp4 { codes: &c.values(codes), scales: &c.values(scales), divisor })
        }
        Format::Fp8E4M3FnRowBf16S => {
            rows.pack(Words::Fp8Row { codes: &c.values(codes), scales: &c.values(scales) })
        }
        _ => rows.pack(Words::Grouped { codes: &c.values(codes), scales: &c.values(scales) }),
    };
    done.ok()
}

fn row_quantize(c: &mut Caller<'_>) {
    let format = u32::from(c.input.byte() % 11);
    let row = c.input.number();
    let columns = u64::from(c.input.u16() % 200);
    let group = if format == 7 { 32 } else { 64 };
    let bytes = some_bytes(c);
    let source = Values::new(c, &bytes, columns, false);
    let (codes_len, scales_len) = (c.length(columns), c.length(columns.div_ceil(group)));
    let codes = c.give::<i8>(&[], codes_len, true);
    let scales = c.give::<u16>(&[], scales_len, true);
    c.place_details();
    let (mut code_words, mut scale_words) = (c.values::<i8>(codes), c.values::<u16>(scales));
    let done = source.with_source(c, |values| {
        quantize_row(Format::from_id(format)?, row, values, &mut code_words, &mut scale_words).ok()
    });
    let expected = done.map(|()| {
        vec![(codes, cast_slice(&code_words).to_vec()), (scales, cast_slice(&scale_words).to_vec())]
    });
    let (values, values_len) = (c.pointer(source.index), c.len(source.index));
    let (codes_at, scales_at) = (c.pointer(codes), c.pointer(scales));
    c.call(expected, &[codes, scales], |details| unsafe {
        ninfer_codec_row_quantize(
            format, row, source.id, values, values_len, codes_at, codes_len, scales_at, scales_len, details,
        )
    });
}

fn row_dequantize(c: &mut Caller<'_>) {
    let format = u32::from(c.input.byte() % 11);
    let row = c.input.number();
    let columns = u64::from(c.input.u16() % 200);
    let group = if format == 7 { 32 } else { 64 };
    let mut bytes = some_bytes(c);
    let half = bytes.len() / 2;
    if c.input.byte() % 4 != 0 {
        bytes.iter_mut().take(half).for_each(|byte| *byte = ((*byte & 0xf) as i8 - 8) as u8);
    }
    let (codes_len, scales_len) = (c.length(columns), c.length(columns.div_ceil(group)));
    let codes = c.give::<i8>(&bytes, codes_len, false);
    let scales = c.give::<u16>(&bytes[half..], scales_len, false);
    let out_len = c.length(columns);
    let out = c.give::<f32>(&[], out_len, true);
    c.place_details();
    let mut values = c.values::<f32>(out);
    let done = Format::from_id(format).and_then(|format| {
        dequantize_row(format, row, &c.values(codes), &c.values(scales), &mut values).ok()
    });
    let expected = done.map(|()| vec![(out, cast_slice(&values).to_vec())]);
    let (codes, scales, out) = (c.pointer(codes), c.pointer(scales), c.pointer(out));
    c.call(expected, &[], |details| unsafe {
        ninfer_codec_row_dequantize(format, row, codes, codes_len, scales, scales_len, out, out_len, details)
    });
}

/// Columns, mostly of those that there are.
fn columns(c: &mut Caller<'_>, s: &Shape) -> (u64, u64) {
    let (how, begin, count) = (c.input.byte(), c.input.number(), c.input.number());
    let columns = s.columns();
    let step = s.known().and_then(|format| format.descriptor().group).map_or(1, u64::from);
    match how {
        0..100 => (0, columns),
        100..190 => {
            let begin = begin % columns / step * step;
            (begin, 1 + count % (columns - begin))
        }
        // One column too many.
        190..220 => (begin % columns / step * step, columns - begin % columns / step * step + 1),
        _ => (begin, count),
    }
}

fn decode(c: &mut Caller<'_>) {
    let s = Shape::new(c);
    let bytes = some_bytes(c);
    let source = payload(c, s.payload_bytes(), &bytes, false);
    let (begin, count) = s.rows(c, false);
    let (first, columns) = columns(c, &s);
    let stride = stride(c, columns);
    let out = Values::new(c, &[], strided(count, columns, stride), true);
    c.place_details();
    out.uses_rows(c, count, columns, stride);
    let contents = c.contents(source);
    let done = out.decoded(c, |values| {
        let rows = Tensor::new(s.plan?, &contents).ok()?.rows(begin, count).ok()?;
        rows.decode_columns(first, columns, values, usize::try_from(stride).ok()?).ok()
    });
    let expected = done.map(|values| vec![(out.index, values)]);
    let (dims, rank) = (c.pointer(s.dims), c.len(s.dims));
    let (payload, payload_len) = (c.pointer(source), c.len(source));
    let (values, values_len) = (c.pointer(out.index), c.len(out.index));
    c.call(expected, &[], |details| unsafe {
        ninfer_codec_tensor_decode(
            s.format,
            s.layout,
            dims,
            rank,
            payload,
            payload_len,
            begin,
            count,
            first,
            columns,
            out.id,
            values,
            values_len,
            stride,
            details,
        )
    });
}

/// A list of rows, mostly of those that there are; for NVFP4 at times whole tiles of them.
fn row_list(c: &mut Caller<'_>, s: &Shape, tiled: bool) -> usize {
    let (how, count) = (c.input.byte(), u64::from(c.input.byte() % 5));
    let count =
        if tiled && s.known() == Some(Format::Nvfp4) && how % 8 != 0 { 128 * (count % 2 + 1) } else { count };
    let rows = s.plan.map_or(1, |plan| plan.rows());
    let first = c.input.number();
    let step = c.input.number();
    let list: Vec<u64> = (0..count)
        .map(|index| first.wrapping_add(step.wrapping_mul(index)))
        .map(|row| match how {
            0..190 => row % rows,
            // Perhaps the one past the last.
            190..220 => row % rows.saturating_add(1),
            _ => row,
        })
        .collect();
    c.give::<u64>(cast_slice(&list), count, false)
}

fn decode_rows(c: &mut Caller<'_>) {
    let s = Shape::new(c);
    let bytes = some_bytes(c);
    let source = payload(c, s.payload_bytes(), &bytes, false);
    let rows = row_list(c, &s, false);
    let columns = s.columns();
    let stride = stride(c, columns);
    let count = c.len(rows);
    let out = Values::new(c, &[], strided(count, columns, stride), true);
    c.place_details();
    out.uses_rows(c, count, columns, stride);
    let contents = c.contents(source);
    let done = out.decoded(c, |values| {
        let tensor = Tensor::new(s.plan?, &contents).ok()?;
        tensor.decode_rows(&c.values(rows), values, usize::try_from(stride).ok()?).ok()
    });
    let expected = done.map(|values| vec![(out.index, values)]);
    let (dims, rank) = (c.pointer(s.dims), c.len(s.dims));
    let (payload, payload_len) = (c.pointer(source), c.len(source));
    let rows = c.pointer(rows);
    let (values, values_len) = (c.pointer(out.index), c.len(out.index));
    c.call(expected, &[], |details| unsafe {
        ninfer_codec_tensor_decode_rows(
            s.format,
            s.layout,
            dims,
            rank,
            payload,
            payload_len,
            rows,
            count,
            out.id,
            values,
            values_len,
            stride,
            details,
        )
    });
}

fn unpack(c: &mut Caller<'_>) {
    let s = Shape::new(c);
    let bytes = some_bytes(c);
    let source = payload(c, s.payload_bytes(), &bytes, false);
    let (begin, count) = s.rows(c, false);
    let (codes, scales) = words(c, &s, count, &[], true);
    let divisor = c.give::<u32>(&[], u64::from(s.format == 8), true);
    c.place_details();
    let contents = c.contents(source);
    let expected = unpacked(c, &s, &contents, (begin, count), (codes, scales), divisor);
    let (dims, rank) = (c.pointer(s.dims), c.len(s.dims));
    let (payload, payload_len) = (c.pointer(source), c.len(source));
    let (code_words, codes_len) = (c.pointer(codes), c.len(codes));
    let (scale_words, scales_len) = (c.pointer(scales), c.len(scales));
    let divisor = c.pointer(divisor);
    c.call(expected, &[], |details| unsafe {
        ninfer_codec_tensor_unpack(
            s.format,
            s.layout,
            dims,
            rank,
            payload,
            payload_len,
            begin,
            count,
            code_words,
            codes_len,
            scale_words,
            scales_len,
            divisor,
            details,
        )
    });
}

fn unpacked(
    c: &Caller<'_>,
    s: &Shape,
    payload: &[u8],
    (begin, count): (u64, u64),
    (codes, scales): (usize, usize),
    divisor: usize,
) -> Option<Vec<(usize, Vec<u8>)>> {
    let rows = Tensor::new(s.plan?, payload).ok()?.rows(begin, count).ok()?;
    let (mut code_bytes, mut scale_bytes, mut word) = (c.contents(codes), c.contents(scales), 0);
    if s.format < 4 && c.len(scales) != 0 {
        return None;
    }
    let mut code_words = (c.values::<u16>(codes), c.values::<u32>(codes), c.values::<i32>(codes));
    let mut short = c.values::<u16>(scales);
    match s.known()? {
        Format::Bf16 => rows.unpack(WordsMut::Bf16(&mut code_words.0)),
        Format::Fp32 => rows.unpack(WordsMut::Fp32(&mut code_words.1)),
        Format::I32 => rows.unpack(WordsMut::I32(&mut code_words.2)),
        Format::Nvfp4 => rows.unpack(WordsMut::Nvfp4 {
            codes: &mut code_bytes,
            scales: &mut scale_bytes,
            divisor: &mut word,
        }),
        Format::Fp8E4M3FnRowBf16S => {
            rows.unpack(WordsMut::Fp8Row { codes: &mut code_bytes, scales: &mut short })
        }
        _ => rows.unpack(WordsMut::Grouped { codes: cast_slice_mut(&mut code_bytes), scales: &mut short }),
    }
    .ok()?;
    let code_bytes = match s.format {
        1 => cast_slice(&code_words.0).to_vec(),
        2 => cast_slice(&code_words.1).to_vec(),
        3 => cast_slice(&code_words.2).to_vec(),
        _ => code_bytes,
    };
    let scale_bytes = if s.format == 8 { scale_bytes } else { cast_slice(&short).to_vec() };
    let divisor_bytes = if s.format == 8 { word.to_le_bytes().to_vec() } else { vec![] };
    Some(vec![(codes, code_bytes), (scales, scale_bytes), (divisor, divisor_bytes)])
}

fn validate(c: &mut Caller<'_>) {
    let s = Shape::new(c);
    let bytes = some_bytes(c);
    let source = payload(c, s.payload_bytes(), &bytes, false);
    let (begin, count) = s.rows(c, false);
    let (first, columns) = columns(c, &s);
    c.place_details();
    let contents = c.contents(source);
    let expected = s.plan.and_then(|plan| {
        let rows = Tensor::new(plan, &contents).ok()?.rows(begin, count).ok()?;
        rows.validate_columns(first, columns).ok().map(|()| vec![])
    });
    let (dims, rank) = (c.pointer(s.dims), c.len(s.dims));
    let (payload, payload_len) = (c.pointer(source), c.len(source));
    c.call(expected, &[], |details| unsafe {
        ninfer_codec_tensor_validate(
            s.format,
            s.layout,
            dims,
            rank,
            payload,
            payload_len,
            begin,
            count,
            first,
            columns,
            details,
        )
    });
}

/// The length of the payload of so many rows.
fn bytes_of_rows(s: &Shape, rows: u64) -> u64 {
    s.plan.and_then(|plan| plan.with_rows(rows).ok()).map_or(64, |plan| plan.payload_bytes())
}

fn slice(c: &mut Caller<'_>) {
    let s = Shape::new(c);
    let bytes = some_bytes(c);
    let source = payload(c, s.payload_bytes(), &bytes, false);
    let tiled = c.input.byte() % 4 != 0;
    let (begin, count) = s.rows(c, tiled);
    let target = payload(c, bytes_of_rows(&s, count), &[], true);
    c.place_details();
    let (contents, mut new) = (c.contents(source), c.contents(target));
    let expected = s.plan.and_then(|plan| {
        Tensor::new(plan, &contents).ok()?.rows(begin, count).ok()?.slice(&mut new).ok()?;
        Some(vec![(target, new)])
    });
    let (dims, rank) = (c.pointer(s.dims), c.len(s.dims));
    let (payload, payload_len) = (c.pointer(source), c.len(source));
    let (out, out_len) = (c.pointer(target), c.len(target));
    c.call(expected, &[], |details| unsafe {
        ninfer_codec_tensor_slice(
            s.format,
            s.layout,
            dims,
            rank,
            payload,
            payload_len,
            begin,
            count,
            out,
            out_len,
            details,
        )
    });
}

fn gather(c: &mut Caller<'_>) {
    let s = Shape::new(c);
    let bytes = some_bytes(c);
    let source = payload(c, s.payload_bytes(), &bytes, false);
    let rows = row_list(c, &s, true);
    let count = c.len(rows);
    let target = payload(c, bytes_of_rows(&s, count), &[], true);
    c.place_details();
    let (contents, mut new) = (c.contents(source), c.contents(target));
    let expected = s.plan.and_then(|plan| {
        Tensor::new(plan, &contents).ok()?.gather(&c.values(rows), &mut new).ok()?;
        Some(vec![(target, new)])
    });
    let (dims, rank) = (c.pointer(s.dims), c.len(s.dims));
    let (payload, payload_len) = (c.pointer(source), c.len(source));
    let rows = c.pointer(rows);
    let (out, out_len) = (c.pointer(target), c.len(target));
    c.call(expected, &[], |details| unsafe {
        ninfer_codec_tensor_gather(
            s.format,
            s.layout,
            dims,
            rank,
            payload,
            payload_len,
            rows,
            count,
            out,
            out_len,
            details,
        )
    });
}

fn stacked(c: &mut Caller<'_>) {
    let count = usize::from(c.input.byte() % 4);
    let bytes = some_bytes(c);
    let one_shape = c.input.byte() % 4 != 0;
    let size = match c.input.byte() {
        0..220 => size_of::<Part>() as u64,
        220..235 => size_of::<Part>() as u64 + 8 * u64::from(c.input.byte() % 4),
        _ => u64::from(c.input.byte()),
    };
    let first = Shape::numbers(c);
    let mut parts = vec![];
    let mut plans = vec![];
    for _ in 0..count {
        let (format, layout, dims) = if one_shape { first.clone() } else { Shape::numbers(c) };
        let list = c.give::<u64>(cast_slice(&dims), dims.len() as u64, false);
        let plan = Shape::plan_of(format, layout, &c.values(list));
        let source = payload(c, plan.map_or(8, |plan| plan.payload_bytes()), &bytes, false);
        plans.push((plan, source));
        parts.push((format, layout, list, source));
    }
    // The list of parts itself, in the caller's stride.
    let stride = size.max(8) as usize;
    let mut list = vec![];
    for &(format, layout, dims, source) in &parts {
        let numbers = [
            size,
            u64::from(format) | u64::from(layout) << 32,
            c.pointer::<u8>(dims).addr() as u64,
            c.len(dims),
            c.pointer::<u8>(source).addr() as u64,
            c.len(source),
        ];
        let mut part = cast_slice::<u64, u8>(&numbers).to_vec();
        part.resize(stride, 0x5a);
        list.extend(part);
    }
    let list = c.give_structs(&list);
    let contents: Vec<_> = plans.iter().map(|&(_, source)| c.contents(source)).collect();
    let tensors: Option<Vec<Tensor<'_>>> =
        plans.iter().zip(&contents).map(|(&(plan, _), contents)| Tensor::new(plan?, contents).ok()).collect();
    let tensors = tensors.unwrap_or_default();
    let rows = tensors.iter().map(Tensor::count).fold(0u64, u64::saturating_add);
    let right = tensors.first().and_then(|first| first.plan().with_rows(rows).ok());
    let target = payload(c, right.map_or(8, |plan| plan.payload_bytes()), &[], true);
    c.place_details();
    let is_list = c.pointer::<u64>(list).is_aligned() && !c.pointer::<u64>(list).is_null();
    let mut new = c.contents(target);
    let expected = (is_list && size >= size_of::<Part>() as u64 && size % 8 == 0 && count > 0)
        .then(|| stack(&tensors, &mut new).ok())
        .flatten()
        .map(|_| vec![(target, new)]);
    let parts = c.pointer(list);
    let (out, out_len) = (c.pointer(target), c.len(target));
    c.call(expected, &[], |details| unsafe {
        ninfer_codec_tensor_stack(parts, count as u64, out, out_len, details)
    });
}

/// Source and output of a conversion, of one length mostly.
fn pair(c: &mut Caller<'_>) -> (Values, Values) {
    let len = u64::from(c.input.byte() % 40);
    let bytes = some_bytes(c);
    let source = Values::new(c, &bytes, len, false);
    let out = Values::new(c, &[], len, true);
    c.place_details();
    (source, out)
}

fn round(c: &mut Caller<'_>) {
    let (source, out) = pair(c);
    let same = c.len(source.index) == c.len(out.index);
    let done = source.with_source(c, |values| {
        out.decoded(c, |out| match out {
            Output::F32(out) => convert::to_f32_nearest(values, out).ok(),
            Output::Bf16(out) => convert::to_bf16_nearest(values, out).ok(),
            Output::F16(out) => convert::to_f16_nearest(values, out).ok(),
            Output::F64(_) => None,
        })
    });
    let expected = done.filter(|_| same).map(|values| vec![(out.index, values)]);
    let (from, from_len) = (c.pointer(source.index), c.len(source.index));
    let (to, to_len) = (c.pointer(out.index), c.len(out.index));
    c.call(expected, &[], |details| unsafe {
        ninfer_codec_values_round(source.id, from, from_len, out.id, to, to_len, details)
    });
}

fn convert_exactly(c: &mut Caller<'_>) {
    let (source, out) = pair(c);
    let same = c.len(source.index) == c.len(out.index);
    let done = if out.id == NINFER_CODEC_VALUE_I32 {
        let mut whole = c.values::<i32>(out.index);
        let done = match source.id {
            NINFER_CODEC_VALUE_I64 => convert::i64_to_i32_exact(&c.values(source.index), &mut whole).ok(),
            NINFER_CODEC_VALUE_U64 => convert::u64_to_i32_exact(&c.values(source.index), &mut whole).ok(),
            _ => source.with_source(c, |values| convert::to_i32_exact(values, &mut whole).ok()),
        };
        done.map(|()| cast_slice(&whole).to_vec())
    } else {
        source.with_source(c, |values| {
            out.decoded(c, |out| match out {
                Output::F32(out) => convert::to_f32_exact(values, out).ok(),
                Output::Bf16(out) => convert::to_bf16_exact(values, out).ok(),
                _ => None,
            })
        })
    };
    let expected = done.filter(|_| same).map(|values| vec![(out.index, values)]);
    let (from, from_len) = (c.pointer(source.index), c.len(source.index));
    let (to, to_len) = (c.pointer(out.index), c.len(out.index));
    // A value that is not exact leaves those before it converted.
    c.call(expected, &[out.index], |details| unsafe {
        ninfer_codec_values_convert(source.id, from, from_len, out.id, to, to_len, details)
    });
}

fn find(c: &mut Caller<'_>) {
    let registry = c.input.byte() % 4;
    let known: Vec<_> = Format::ALL
        .map(Format::name)
        .into_iter()
        .chain(Layout::ALL.map(Layout::name))
        .chain(EncoderProfile::ALL.map(EncoderProfile::name))
        .chain(ResourceEncoding::ALL.map(ResourceEncoding::name))
        .collect();
    let name = match c.input.byte() {
        index @ 0..200 => known[usize::from(index) % known.len()].as_bytes().to_vec(),
        _ => c.input.bytes(70).to_vec(),
    };
    let len = c.length(name.len() as u64);
    let name = c.give::<u8>(&name, len, false);
    let id = c.give::<u32>(&[], 1, true);
    let contents = c.contents(name);
    let found = match registry {
        0 => Format::from_name(&contents).ok().map(Format::id),
        1 => Layout::from_name(&contents).ok().map(Layout::id),
        2 => ninfer_codec::EncoderProfile::from_name(&contents).ok().map(|profile| profile.id()),
        _ => ninfer_codec::ResourceEncoding::from_name(&contents).ok().map(|encoding| encoding.id()),
    };
    let expected = found.map(|found| vec![(id, found.to_le_bytes().to_vec())]);
    let (name, id) = (c.pointer(name), c.pointer(id));
    c.call(expected, &[], |_| unsafe {
        match registry {
            0 => ninfer_codec_format_find(name, len, id),
            1 => ninfer_codec_layout_find(name, len, id),
            2 => ninfer_codec_profile_find(name, len, id),
            _ => ninfer_codec_encoding_find(name, len, id),
        }
    });
}

/// Descriptors are what the registry says, where the struct has room for them.
fn describe(c: &mut Caller<'_>) {
    let registry = c.input.byte() % 3;
    let id = match c.input.byte() {
        small @ 0..240 => u32::from(small % 12),
        _ => c.input.u32(),
    };
    let out = match registry {
        0 => c.give_struct::<FormatDescriptor>(),
        1 => c.give_struct::<LayoutDescriptor>(),
        _ => c.give_struct::<EncodingDescriptor>(),
    };
    let size = c.contents(out).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let facts: Option<Vec<u32>> = match registry {
        0 => Format::from_id(id).map(|format| {
            let facts = format.descriptor();
            let (least, most) = facts.code_interval.unwrap_or((0, 0));
            let bits = facts.bits_per_weight.map_or((0, 0), |ratio| (ratio.numerator, ratio.denominator));
            vec![
                id,
                facts.layout.id(),
                facts.category as u32,
                u32::from(facts.qmax.is_some()),
                facts.code_bits,
                facts.group.unwrap_or(0),
                least as u32,
                most as u32,
                facts.qmax.unwrap_or(0),
                facts.scale.map_or(0, |scale| scale as u32),
                facts.has_divisor.into(),
                bits.0,
                bits.1,
                facts.group.unwrap_or(1),
                if facts.has_divisor { 128 } else { 1 },
                0,
            ]
        }),
        1 => Layout::from_id(id).map(|layout| {
            let facts = layout.descriptor();
            let [rows, columns] = facts.multiple_of.unwrap_or([1, 1]);
            let alignment = facts.alignment as u32;
            vec![id, facts.rank.0, facts.rank.1, rows as u32, columns as u32, 0, alignment, 0]
        }),
        _ => (id == 1).then(|| vec![1, 0]),
    };
    let least =
        [size_of::<FormatDescriptor>(), size_of::<LayoutDescriptor>(), size_of::<EncodingDescriptor>()];
    let expected = facts.filter(|_| size >= least[usize::from(registry)] as u64).map(|facts| {
        let mut bytes = size.to_le_bytes().to_vec();
        bytes.extend_from_slice(cast_slice(&facts));
        vec![(out, bytes)]
    });
    let at = c.pointer::<u8>(out);
    c.call(expected, &[], |_| unsafe {
        match registry {
            0 => ninfer_codec_format_describe(id, at.cast()),
            1 => ninfer_codec_layout_describe(id, at.cast()),
            _ => ninfer_codec_encoding_describe(id, at.cast()),
        }
    });
}

/// Names by number: static, or null.
fn names(c: &mut Caller<'_>) {
    let id = c.input.number() as u32;
    let text = |pointer: *const std::ffi::c_char| {
        // SAFETY: null or a static string, NUL-terminated.
        (!pointer.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(pointer) }.to_str().unwrap())
    };
    assert_eq!(text(ninfer_codec_format_name(id)), Format::from_id(id).map(Format::name));
    assert_eq!(text(ninfer_codec_layout_name(id)), Layout::from_id(id).map(Layout::name));
    assert_eq!(text(ninfer_codec_profile_name(id)), (id == 1).then_some("MAXABS_F16_RECIP_RNE_V1"));
    assert_eq!(text(ninfer_codec_encoding_name(id)), (id == 1).then_some("raw-bytes-v1"));
    assert!(text(ninfer_codec_status_message(id)).is_some_and(|message| !message.is_empty()));
    assert_eq!(text(ninfer_codec_backend_name()), Some(ninfer_codec::backend_name()));
    assert_eq!(
        (ninfer_codec_version(), ninfer_codec_abi_version()),
        (NINFER_CODEC_VERSION, NINFER_CODEC_ABI_VERSION)
    );
}
