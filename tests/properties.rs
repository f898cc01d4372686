//! What must hold for any tensor: the oracle's results, and the same bytes however the work is cut.

mod oracle;
mod support;

use ninfer_codec::format::binary16;
use ninfer_codec::{Error, Format, Layout, Plan, Tensor, TensorMut, quantize_row, stack};
use proptest::prelude::*;

use oracle::decode::has_output;
use oracle::encode::encode;
use oracle::rows::Range;
use oracle::{Fault, words};
use support::{
    Buffers, GROUPED, Guarded, OUTPUTS, Random, SOURCES, SourceType, Values, assert_rows, assert_same,
    decoded, legal_payload, oracle_format, plan,
};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn any_format() -> impl Strategy<Value = Format> {
    proptest::sample::select(&Format::ALL[..])
}

fn grouped() -> impl Strategy<Value = Format> {
    proptest::sample::select(&GROUPED[..])
}

/// A small matrix that the format takes.
fn shape_of(format: Format, rows: u64, columns: u64) -> [u64; 2] {
    match format {
        Format::Nvfp4 => [128 * (1 + rows % 3), 64 * (1 + columns % 2)],
        _ => [1 + rows % 7, 1 + columns % 300],
    }
}

/// Source words that go where rounding, ties, rescue, clamping and refusal are.
fn source_words(format: Format, source: SourceType, count: u64, random: &mut Random) -> Vec<u64> {
    let qmax = f64::from(format.scheme().unwrap().code_max());
    let style = random.below(9);
    let exponent = random.below(40) as i32 - 20;
    let number = |random: &mut Random| -> f64 {
        let sign = if random.one_in(2) { -1.0 } else { 1.0 };
        let unit = random.below(1 << 24) as f64 / f64::from(1 << 24);
        sign * match style {
            0 => unit * 2.0f64.powi(exponent),
            // Halves of a scale that is a power of two: ties everywhere, and the greatest code for sure.
            1 => {
                let half = random.below(2 * qmax as u64 + 1) as f64 / 2.0;
                random.pick(&[qmax, half]) * 2.0f64.powi(exponent)
            }
            // Scales around the least positive binary16 words, and below them.
            2 => unit * qmax * 2.0f64.powi(-21 - random.below(6) as i32),
            3 => unit * 2.0f64.powi(-120 - random.below(29) as i32),
            // Scales around the greatest, some past it.
            4 => (65400.0 + 120.0 * unit + 4.0 * random.below(8) as f64) * qmax,
            5 => random.pick(&[0.0, unit]),
            6 => 0.0,
            _ => unit,
        }
    };
    let kind = source.kind();
    let mut list: Vec<u64> = (0..count)
        .map(|_| match (style, source) {
            // Any bits at all, but finite.
            (7, _) => {
                let word = random.next() & (kind.sign_bit() | (kind.sign_bit() - 1));
                if kind.is_finite(word) { word } else { word & !kind.infinity() }
            }
            (_, SourceType::F64) => number(random).to_bits() | random.below(4),
            _ => words::convert(number(random).to_bits(), words::F64, kind),
        })
        .collect();
    if style == 8 {
        // One or two bad values among good ones; of binary64 also finite ones that are too large.
        for _ in 0..1 + random.below(2) {
            let at = random.below(count) as usize;
            let payload = random.below(1 << kind.fraction_bits.min(20));
            list[at] = match (source, random.below(2)) {
                (SourceType::F64, 0) => 0x47ef_ffff_f000_0000 + random.below(1 << 40),
                _ => kind.infinity() | payload | (random.below(2) * kind.sign_bit()),
            };
        }
    }
    list
}

/// Encodes into a guarded buffer and returns the payload.
fn quantize(plan: Plan, values: &Values, stride: usize) -> Result<Vec<u8>, Error> {
    let mut payload = Guarded::new(plan.payload_bytes() as usize, 0xa5u8);
    let result = TensorMut::new(plan, payload.get()).unwrap().quantize(values.source(), stride);
    payload.assert_canaries();
    result.map(|()| payload.get().to_vec())
}

/// The same rows further apart, with a NaN after each.
fn spread(values: &[u64], columns: usize, stride: usize, filler: u64) -> Vec<u64> {
    let mut out = vec![];
    for row in values.chunks(columns) {
        out.extend(row);
        out.resize(out.len() + stride - columns, filler);
    }
    out.truncate(out.len() - (stride - columns));
    out
}

/// Ascending row numbers that cut `0..rows` into parts, multiples of `step`.
fn cuts(rows: u64, step: u64, random: &mut Random) -> Vec<u64> {
    let mut cuts: Vec<u64> = (0..random.below(5)).map(|_| random.below(rows.div_ceil(step)) * step).collect();
    cuts.extend([0, rows]);
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn the_encoder_is_the_oracle(format in grouped(), n in 0u64..4, k in 0u64..300, seed: u64) {
        let mut random = Random(seed);
        let shape @ [rows, columns] = shape_of(format, n, k);
        let source = random.pick(&SOURCES);
        let list = source_words(format, source, rows * columns, &mut random);
        let expected = encode(oracle_format(format), source, rows, columns, &list);
        let plan = plan(format, &shape);
        let stride = (columns + random.below(3)) as usize;
        let apart = spread(&list, columns as usize, stride, source.kind().infinity());
        let got = quantize(plan, &Values::of(source, &apart), stride);
        assert_same(format, &got, &expected);

        // Row by row.
        let values = Values::of(source, &list);
        let groups = plan.logical_groups() as usize;
        let (mut codes, mut scales) = (vec![], vec![]);
        let by_row = (0..rows).try_for_each(|row| {
            let mut row_codes = Guarded::new(columns as usize, 99i8);
            let mut row_scales = Guarded::new(groups, 0xa5a5u16);
            let start = (row * columns) as usize;
            let row_values = Values::of(source, &list[start..start + columns as usize]);
            let result =
                quantize_row(format, row, row_values.source(), row_codes.get(), row_scales.get());
            row_codes.assert_canaries();
            row_scales.assert_canaries();
            codes.extend_from_slice(row_codes.get());
            scales.extend_from_slice(row_scales.get());
            result
        });
        prop_assert_eq!(by_row, got.as_ref().map(|_| ()).map_err(|&error| error));

        if let Ok(expected) = expected {
            let payload = oracle::layout::pack(oracle_format(format), &shape, &expected).unwrap();
            prop_assert_eq!(&got.unwrap(), &payload);
            prop_assert_eq!(codes.iter().map(|&code| i64::from(code)).collect::<Vec<_>>(), expected.codes);
            prop_assert_eq!(scales.iter().map(|&scale| u32::from(scale)).collect::<Vec<_>>(), expected.scales);
            prop_assert_eq!(Tensor::new(plan, &payload).unwrap().validate(), Ok(()));
            prop_assert_eq!(quantize(plan, &values, columns as usize).unwrap(), payload);
        }
    }

    #[test]
    fn the_scale_that_overflows_carries_its_binary32_word(format in grouped(), seed: u64) {
        let mut random = Random(seed);
        let qmax = i64::from(format.scheme().unwrap().code_max());
        let amax = 0x4a00_0000 + random.below(0x3000_0000) as u32;
        let raw = words::round(words::F32.value(amax.into()).over(words::Exact::integer(qmax)), words::F32) as u32;
        let got = quantize_row(format, 3, &[f32::from_bits(amax)][..], &mut [0], &mut [0]);
        if binary16::from_f32_bits(raw) == 0x7c00 {
            prop_assert_eq!(got, Err(Error::ScaleOverflow { row: 3, group: 0, raw_scale: raw }));
        } else {
            prop_assert_eq!(got, Ok(()));
        }
    }
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn the_decoders_are_the_oracle(format in any_format(), n: u64, k: u64, seed: u64) {
        let mut random = Random(seed);
        let shape @ [rows, columns] = shape_of(format, n, k);
        let (_, mut payload) = legal_payload(format, &shape, &mut random);
        if random.one_in(2) {
            // Any bytes at all: codes are total, padding is ignored, illegal scales are refused.
            for _ in 0..1 + random.below(20) {
                let at = random.below(payload.len() as u64) as usize;
                payload[at] = random.next() as u8;
            }
        }
        let tensor = Tensor::new(plan(format, &shape), &payload).unwrap();
        let step = u64::from(format.descriptor().group.unwrap_or(1));
        let begin = random.below(rows);
        let col_begin = random.below(columns.div_ceil(step)) * step;
        let range = Range {
            begin,
            count: 1 + random.below((rows - begin).min(6)),
            col_begin,
            col_count: 1 + random.below(columns - col_begin),
        };
        let list: Vec<u64> = (0..1 + random.below(5)).map(|_| random.below(rows)).collect();
        let oracle = oracle_format(format);
        let output = random.pick(&OUTPUTS);
        let stride = (columns + random.below(4)) as usize;
        let surplus = random.below(3) as usize;

        // Some rows, all columns.
        let view = tensor.rows(range.begin, range.count).unwrap();
        let whole_rows = Range { col_begin: 0, col_count: columns, ..range };
        let expected = oracle::decode::decode(oracle, &shape, &payload, Some(whole_rows), output);
        let len = (range.count as usize - 1) * stride + columns as usize + surplus;
        let got = decoded(output, len, |out| view.decode(out, stride));
        assert_same(format, &got, &expected);
        if let (Ok(got), Ok(expected)) = (&got, &expected) {
            assert_rows(got, expected, columns as usize, stride, output);
        }

        // Some rows, some columns.
        let expected = oracle::decode::decode(oracle, &shape, &payload, Some(range), output);
        let stride = (range.col_count + random.below(4)) as usize;
        let len = (range.count as usize - 1) * stride + range.col_count as usize + surplus;
        let got = decoded(output, len, |out| {
            view.decode_columns(range.col_begin, range.col_count, out, stride)
        });
        assert_same(format, &got, &expected);
        if let (Ok(got), Ok(expected)) = (&got, &expected) {
            assert_rows(got, expected, range.col_count as usize, stride, output);
        }

        // A list of rows.
        let expected = oracle::decode::decode_rows(oracle, &shape, &payload, &list, output);
        let stride = (columns + random.below(4)) as usize;
        let len = (list.len() - 1) * stride + columns as usize + surplus;
        let got = decoded(output, len, |out| tensor.decode_rows(&list, out, stride));
        assert_same(format, &got, &expected);
        if let (Ok(got), Ok(expected)) = (&got, &expected) {
            assert_rows(got, expected, columns as usize, stride, output);
        }
    }

    /// Unpacking any bytes gives their words; packing legal words gives the canonical payload.
    #[test]
    fn pack_and_unpack_are_the_oracle(format in any_format(), n: u64, k: u64, seed: u64) {
        let mut random = Random(seed);
        let shape @ [rows, _] = shape_of(format, n, k);
        let (words, payload) = legal_payload(format, &shape, &mut random);
        let plan = plan(format, &shape);
        let buffers = Buffers::of(format, &words);
        let mut packed = Guarded::new(payload.len(), 0xa5u8);
        TensorMut::new(plan, packed.get()).unwrap().pack(buffers.words(format)).unwrap();
        packed.assert_canaries();
        prop_assert_eq!(&packed.get()[..], &payload[..]);

        let mut any = payload;
        any.iter_mut().for_each(|byte| if random.one_in(3) { *byte = random.next() as u8 });
        let tensor = Tensor::new(plan, &any).unwrap();
        let mut room = Buffers::room(&plan, rows);
        tensor.unpack(room.words_mut(format)).unwrap();
        let expected = oracle::layout::unpack(oracle_format(format), &shape, &any).unwrap();
        prop_assert_eq!(room.logical(format), expected);

        // A range of rows.
        let begin = random.below(rows);
        let count = 1 + random.below(rows - begin);
        let mut room = Buffers::room(&plan, count);
        tensor.rows(begin, count).unwrap().unpack(room.words_mut(format)).unwrap();
        let mut all = oracle::layout::unpack(oracle_format(format), &shape, &any).unwrap();
        let rows = |per_row: u64| (begin * per_row) as usize..((begin + count) * per_row) as usize;
        all.codes = all.codes[rows(plan.columns())].to_vec();
        all.scales = all.scales[rows(plan.logical_groups())].to_vec();
        prop_assert_eq!(room.logical(format), all);
    }

    /// Words that may not be packed are refused where the oracle refuses them.
    #[test]
    fn pack_refuses_as_the_oracle_does(format in any_format(), n: u64, k: u64, seed: u64) {
        let mut random = Random(seed);
        let shape = shape_of(format, n, k);
        let (mut words, _) = legal_payload(format, &shape, &mut random);
        for _ in 0..1 + random.below(3) {
            let any = random.next();
            if !words.scales.is_empty() && random.one_in(2) {
                let at = random.below(words.scales.len() as u64) as usize;
                words.scales[at] = if format == Format::Nvfp4 { any as u8 as u32 } else { any as u16 as u32 };
            } else if format.scheme().is_some() {
                let at = random.below(words.codes.len() as u64) as usize;
                words.codes[at] = (any as i8).into();
            } else if format == Format::Fp8E4M3FnRowBf16S {
                let at = random.below(words.codes.len() as u64) as usize;
                words.codes[at] = random.pick(&[0x7f, 0xff, i64::from(any as u8)]);
            } else if format == Format::Nvfp4 && random.one_in(3) {
                words.divisor = Some(random.pick(&[0, 0x8000_0000, 0x7f80_0000, 0x7fc0_0000, any as u32]));
            }
        }
        let expected = oracle::layout::pack(oracle_format(format), &shape, &words);
        let plan = plan(format, &shape);
        let mut packed = Guarded::new(plan.payload_bytes() as usize, 0xa5u8);
        let buffers = Buffers::of(format, &words);
        let got = TensorMut::new(plan, packed.get()).unwrap().pack(buffers.words(format));
        packed.assert_canaries();
        assert_same(format, &got, &expected);
        if let Err(Fault::InvalidDivisor { .. }) = expected {
            packed.assert_untouched();
        }
    }
}

/// Writes every part of a payload through views, in any order, by one of two ways to cut.
fn write_in_parts(
    plan: Plan,
    cuts: &[u64],
    random: &mut Random,
    mut write: impl FnMut(&mut TensorMut<'_>) -> Result<(), Error>,
) -> Vec<u8> {
    let mut payload = Guarded::new(plan.payload_bytes() as usize, 0xa5u8);
    let mut tensor = TensorMut::new(plan, payload.get()).unwrap();
    if random.one_in(2) {
        // All the parts at once.
        let mut parts = vec![];
        for &cut in &cuts[1..cuts.len() - 1] {
            let (top, rest) = tensor.split_at_row(cut).unwrap();
            parts.push(top);
            tensor = rest;
        }
        parts.push(tensor);
        while !parts.is_empty() {
            let index = random.below(parts.len() as u64) as usize;
            write(&mut parts.swap_remove(index)).unwrap();
        }
    } else {
        // One part at a time, out of the whole.
        let mut ranges: Vec<(u64, u64)> = cuts.windows(2).map(|cut| (cut[0], cut[1] - cut[0])).collect();
        while !ranges.is_empty() {
            let index = random.below(ranges.len() as u64) as usize;
            let (begin, count) = ranges.swap_remove(index);
            let mut part = tensor.rows_mut(begin, count).unwrap();
            assert_eq!((part.begin(), part.count()), (begin, count));
            write(&mut part).unwrap();
        }
    }
    payload.assert_canaries();
    payload.get().to_vec()
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn any_split_encodes_to_the_same_bytes(format in grouped(), n: u64, k: u64, seed: u64) {
        let mut random = Random(seed);
        let shape @ [rows, columns] = shape_of(format, n, k);
        let list: Vec<u64> =
            (0..rows * columns).map(|_| (random.below(2000) as f32 - 1000.0).to_bits().into()).collect();
        let values = Values::of(SourceType::F32, &list);
        let plan = plan(format, &shape);
        let whole = quantize(plan, &values, columns as usize).unwrap();
        let cuts = cuts(rows, 1, &mut random);
        let parts = write_in_parts(plan, &cuts, &mut random, |part| {
            part.quantize(values.from((part.begin() * columns) as usize), columns as usize)
        });
        prop_assert_eq!(parts, whole);
    }

    #[test]
    fn any_split_packs_to_the_same_bytes(format in any_format(), n: u64, k: u64, seed: u64) {
        let mut random = Random(seed);
        let shape @ [rows, _] = shape_of(format, n, k);
        let (words, whole) = legal_payload(format, &shape, &mut random);
        let plan = plan(format, &shape);
        let step = if format == Format::Nvfp4 { 128 } else { 1 };
        let cuts = cuts(rows, step, &mut random);
        let parts = write_in_parts(plan, &cuts, &mut random, |part| {
            let rows = |per_row: u64| {
                (part.begin() * per_row) as usize..((part.begin() + part.count()) * per_row) as usize
            };
            let mut own = words.clone();
            own.codes = own.codes[rows(plan.columns())].to_vec();
            own.scales = own.scales[rows(plan.logical_groups())].to_vec();
            part.pack(Buffers::of(format, &own).words(format))
        });
        prop_assert_eq!(parts, whole);
    }

    #[test]
    fn any_split_decodes_to_the_same_values(format in any_format(), n: u64, k: u64, seed: u64) {
        let mut random = Random(seed);
        let shape @ [rows, columns] = shape_of(format, n, k);
        let (_, payload) = legal_payload(format, &shape, &mut random);
        let tensor = Tensor::new(plan(format, &shape), &payload).unwrap();
        let output = random.pick(&OUTPUTS);
        let len = (rows * columns) as usize;
        let Ok(whole) = decoded(output, len, |out| tensor.decode(out, columns as usize)) else {
            return Ok(());
        };
        let step = u64::from(format.descriptor().group.unwrap_or(1));
        let (row_cuts, column_cuts) = (cuts(rows, 1, &mut random), cuts(columns, step, &mut random));
        for rows in row_cuts.windows(2) {
            // A view of a view.
            let view = tensor.rows(row_cuts[0], rows[1]).unwrap().rows(rows[0], rows[1] - rows[0]).unwrap();
            for cut in column_cuts.windows(2) {
                let count = (cut[1] - cut[0]) as usize;
                let len = view.count() as usize * count;
                let part =
                    decoded(output, len, |out| view.decode_columns(cut[0], count as u64, out, count)).unwrap();
                for (row, part) in (rows[0]..).zip(part.chunks(count)) {
                    let start = (row * columns + cut[0]) as usize;
                    prop_assert_eq!(part, &whole[start..start + count]);
                }
            }
        }
    }

    #[test]
    fn slices_and_gathers_agree(format in any_format(), n: u64, k: u64, seed: u64) {
        let mut random = Random(seed);
        let shape @ [rows, _] = shape_of(format, n, k);
        let (_, payload) = legal_payload(format, &shape, &mut random);
        let parent = plan(format, &shape);
        let tensor = Tensor::new(parent, &payload).unwrap();
        let step = if format == Format::Nvfp4 { 128 } else { 1 };
        let list: Vec<u64> = (0..step * (1 + random.below(3))).map(|_| random.below(rows)).collect();
        let gathered = new_payload(parent, list.len() as u64, |out| tensor.gather(&list, out));
        let expected = oracle::rows::gather(oracle_format(format), &shape, &payload, &list).unwrap();
        prop_assert_eq!((gathered.0.rows(), &gathered.1), (expected.0, &expected.1));

        // A slice of the gather is the gather of a slice of the list.
        let begin = random.below(list.len() as u64 / step) * step;
        let count = step * (1 + random.below((list.len() as u64 - begin) / step));
        let of_gather = Tensor::new(gathered.0, &gathered.1).unwrap().rows(begin, count).unwrap();
        let slice = new_payload(parent, count, |out| of_gather.slice(out));
        let part = &list[begin as usize..(begin + count) as usize];
        let gather = new_payload(parent, count, |out| tensor.gather(part, out));
        prop_assert_eq!(&slice, &gather);

        // A slice is the gather of its rows, and decodes to the same values as the view.
        let begin = if step == 1 { random.below(rows) } else { random.below(rows - step + 1) };
        let count = step * (1 + random.below((rows - begin) / step));
        let view = tensor.rows(begin, count).unwrap();
        let slice = new_payload(parent, count, |out| view.slice(out));
        let rows: Vec<u64> = (begin..begin + count).collect();
        prop_assert_eq!(&slice, &new_payload(parent, count, |out| tensor.gather(&rows, out)));
        let expected = oracle::rows::slice(oracle_format(format), &shape, &payload, begin, count).unwrap();
        prop_assert_eq!(&slice.1, &expected.1);
        let sliced = Tensor::new(slice.0, &slice.1).unwrap();
        prop_assert_eq!(sliced.validate(), Ok(()));
        let (columns, len) = (parent.columns() as usize, slice.0.elements() as usize);
        for output in OUTPUTS {
            prop_assert_eq!(
                decoded(output, len, |out| sliced.decode(out, columns)),
                decoded(output, len, |out| view.decode(out, columns))
            );
        }
    }

    #[test]
    fn a_stack_of_slices_is_the_whole(format in any_format(), n: u64, k: u64, seed: u64) {
        let mut random = Random(seed);
        let shape @ [rows, _] = shape_of(format, n, k);
        let (_, payload) = legal_payload(format, &shape, &mut random);
        let parent = plan(format, &shape);
        let tensor = Tensor::new(parent, &payload).unwrap();
        let step = if format == Format::Nvfp4 { 128 } else { 1 };
        let cuts = cuts(rows, step, &mut random);
        let parts: Vec<(Plan, Vec<u8>)> = cuts
            .windows(2)
            .map(|cut| {
                let view = tensor.rows(cut[0], cut[1] - cut[0]).unwrap();
                new_payload(parent, view.count(), |out| view.slice(out))
            })
            .collect();
        let slices: Vec<Tensor<'_>> =
            parts.iter().map(|(plan, payload)| Tensor::new(*plan, payload).unwrap()).collect();
        let views: Vec<Tensor<'_>> =
            cuts.windows(2).map(|cut| tensor.rows(cut[0], cut[1] - cut[0]).unwrap()).collect();
        let (whole, stacked) = new_payload(parent, rows, |out| stack(&slices, out));
        prop_assert_eq!(whole, parent);
        prop_assert_eq!(&stacked, &payload);
        prop_assert_eq!(&new_payload(parent, rows, |out| stack(&views, out)).1, &payload);
        // Twice the same, against the oracle.
        let (twice, stacked) = new_payload(parent, 2 * rows, |out| stack(&[tensor, tensor], out));
        let expected = oracle::rows::stack(
            oracle_format(format),
            &[(&shape, &payload), (&shape, &payload)],
        )
        .unwrap();
        prop_assert_eq!((twice.rows(), stacked), expected);
    }
}

fn new_payload(
    parent: Plan,
    rows: u64,
    operation: impl FnOnce(&mut [u8]) -> Result<Plan, Error>,
) -> (Plan, Vec<u8>) {
    let expected = parent.with_rows(rows).unwrap();
    let mut out = Guarded::new(expected.payload_bytes() as usize, 0xa5u8);
    let plan = operation(out.get()).unwrap();
    assert_eq!(plan, expected);
    out.assert_canaries();
    (plan, out.get().to_vec())
}

/// Dimensions of all sizes; the large ones lie near powers of two, where sums and products overflow.
fn dimension() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        1u64..400,
        (0u32..64, 0u64..300).prop_map(|(bit, less)| (1u64 << bit).wrapping_sub(less)),
        (0u32..58, 0u64..5).prop_map(|(bit, less)| ((1u64 << bit).wrapping_sub(less)).wrapping_mul(64)),
        any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(config(20_000))]

    #[test]
    fn plans_are_the_oracle_in_128_bits(
        format in any_format(),
        layout in proptest::sample::select(&Layout::ALL[..]),
        own_layout in prop::bool::weighted(0.9),
        shape in prop_oneof![
            4 => proptest::collection::vec(dimension(), 2),
            1 => proptest::collection::vec(dimension(), 0..18),
        ],
    ) {
        let layout = if own_layout { format.layout() } else { layout };
        let oracle_layout = oracle::Layout::from_name(layout.name().as_bytes()).unwrap();
        let expected = oracle::layout::geometry(oracle_format(format), oracle_layout, &shape);
        let got = Plan::new(format, layout, &shape);
        assert_same(format, &got, &expected);
        let (Ok(plan), Ok(geometry)) = (got, expected) else { return Ok(()) };
        prop_assert_eq!((plan.format(), plan.layout(), plan.alignment()), (format, layout, 256));
        prop_assert_eq!((plan.rows(), plan.columns()), (geometry.rows, geometry.k));
        prop_assert_eq!(plan.elements(), geometry.elements);
        prop_assert_eq!(plan.padded_columns(), geometry.k_pad);
        prop_assert_eq!(plan.logical_groups(), geometry.logical_scales);
        prop_assert_eq!(plan.physical_groups(), geometry.physical_scales);
        prop_assert_eq!(plan.payload_bytes(), geometry.payload_bytes);
        for plane in &geometry.planes {
            let got = match plane.name {
                "word" | "base" | "code" => plan.codes(),
                "high" => plan.high(),
                "scale" => plan.scales(),
                _ => {
                    prop_assert_eq!((plan.divisor().offset, plan.divisor().bytes), (plane.offset, plane.bytes));
                    continue;
                }
            };
            prop_assert_eq!((got.offset, got.bytes), (plane.offset, plane.bytes), "{}", plane.name);
            if let Some(row_bytes) = plane.row_bytes {
                prop_assert_eq!(got.row_bytes, row_bytes);
            }
        }
        // Spans of rows never leave their planes.
        let begin = plan.rows() / 2;
        if format != Format::Nvfp4 {
            let spans = plan.row_spans(begin, plan.rows() - begin).unwrap();
            let oracle_spans =
                oracle::rows::view(oracle_format(format), &shape, begin, plan.rows() - begin).unwrap();
            let got = [("codes", spans.codes), ("high", spans.high), ("scales", spans.scales)];
            for (plane, offset, bytes) in oracle_spans {
                let name = match plane { "word" | "base" | "code" => "codes", "scale" => "scales", other => other };
                let span = got.iter().find(|(plane, _)| *plane == name).unwrap().1;
                prop_assert_eq!((span.offset, span.bytes), (offset, bytes));
            }
        }
    }
}

/// Threads that each own some rows of one payload write the bytes of a single call.
#[test]
fn threads_may_share_a_payload() {
    const ROWS: u64 = 64;
    const COLUMNS: usize = 200;
    let mut random = Random(21);
    let values: Vec<f32> =
        (0..ROWS as usize * COLUMNS).map(|_| random.below(4096) as f32 / 64.0 - 32.0).collect();
    for format in GROUPED {
        let plan = plan(format, &[ROWS, COLUMNS as u64]);
        let mut whole = vec![0x5a; plan.payload_bytes() as usize];
        TensorMut::new(plan, &mut whole).unwrap().quantize(&values[..], COLUMNS).unwrap();
        let mut payload = vec![0xa5; plan.payload_bytes() as usize];
        std::thread::scope(|scope| {
            let mut rest = TensorMut::new(plan, &mut payload).unwrap();
            for cut in [1, 17, 40] {
                let (mut part, below) = rest.split_at_row(cut).unwrap();
                rest = below;
                let values = &values[part.begin() as usize * COLUMNS..];
                scope.spawn(move || part.quantize(values, COLUMNS).unwrap());
            }
            rest.quantize(&values[40 * COLUMNS..], COLUMNS).unwrap();
        });
        assert_eq!(payload, whole);
        let mut expected = vec![0.0f32; values.len()];
        Tensor::new(plan, &whole).unwrap().decode(&mut expected[..], COLUMNS).unwrap();
        let mut shared = vec![1.0f32; values.len()];
        let tensor = Tensor::new(plan, &payload).unwrap();
        std::thread::scope(|scope| {
            for (row, out) in (0..).zip(shared.chunks_mut(COLUMNS)) {
                scope.spawn(move || tensor.rows(row, 1).unwrap().decode(out, COLUMNS).unwrap());
            }
        });
        assert_eq!(shared, expected);
    }
}

/// Rows that follow one another are decoded as one run where nothing lies between them; whatever the list, each is
/// what it is alone.
#[test]
fn rows_of_a_list_are_what_they_are_alone() {
    const LIST: [u64; 11] = [0, 1, 2, 5, 4, 3, 3, 9, 10, 12, 255];
    const COLUMNS: u64 = 128;
    const SHAPE: [u64; 2] = [256, COLUMNS];
    for format in Format::ALL.into_iter().filter(|&format| format != Format::I32) {
        let (_, payload) = legal_payload(format, &SHAPE, &mut Random(format.id().into()));
        let tensor = Tensor::new(plan(format, &SHAPE), &payload).unwrap();
        for output in OUTPUTS.into_iter().filter(|&output| has_output(oracle_format(format), output)) {
            let decode = |list: &[u64]| {
                let len = list.len() * COLUMNS as usize;
                decoded(output, len, |out| tensor.decode_rows(list, out, COLUMNS as usize)).unwrap()
            };
            let alone: Vec<_> = LIST.iter().flat_map(|&row| decode(&[row])).collect();
            assert_eq!(decode(&LIST), alone, "{format}");
        }
    }
}
