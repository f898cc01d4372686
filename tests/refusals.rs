//! Every refusal of every public function: its numbers, the order of checks, and that nothing was written.

mod oracle;
mod support;

use half::{bf16, f16};
use ninfer_codec::format::WordFault;
use ninfer_codec::layout::PlaneKind;
use ninfer_codec::{
    EncoderProfile, Error, Format, Layout, Plan, ResourceEncoding, Tensor, TensorMut, UnknownName, ValueType,
    Words, WordsMut, dequantize_row, quantize_row, stack,
};

use oracle::decode::has_output;
use support::{
    Buffers, GROUPED, Guarded, OUTPUTS, OutputType, QUANTIZED, Random, decoded, legal_payload, oracle_format,
    plan,
};

const ANY_ROWS: u64 = 256;

fn any_shape(format: Format) -> [u64; 2] {
    [ANY_ROWS, if format == Format::Nvfp4 { 128 } else { 130 }]
}

/// A legal payload and its plan.
fn any_tensor(format: Format) -> (Plan, Vec<u8>) {
    let shape = any_shape(format);
    (plan(format, &shape), legal_payload(format, &shape, &mut Random(format.id().into())).1)
}

fn value_type(output: OutputType) -> ValueType {
    match output {
        OutputType::F32 => ValueType::F32,
        OutputType::F64 => ValueType::F64,
        OutputType::Bf16 => ValueType::Bf16,
        OutputType::F16 => ValueType::F16,
    }
}

/// An output type that the format has, if any.
fn output_of(format: Format) -> Option<OutputType> {
    OUTPUTS.into_iter().find(|&output| has_output(oracle_format(format), output))
}

#[test]
fn names_are_exact() {
    let formats = Format::ALL.map(|format| format.name().as_bytes());
    let layouts = Layout::ALL.map(|layout| layout.name().as_bytes());
    let others: [&[u8]; 2] = [EncoderProfile::MaxabsF16RecipRneV1.name().as_bytes(), b"raw-bytes-v1"];
    let known: Vec<&[u8]> = formats.into_iter().chain(layouts).chain(others).collect();
    let mut names: Vec<Vec<u8>> = known.iter().map(|name| name.to_vec()).collect();
    for name in &known {
        let changed = |change: fn(&mut Vec<u8>)| {
            let mut name = name.to_vec();
            change(&mut name);
            name
        };
        names.extend([
            changed(|name| name.push(b' ')),
            changed(|name| name.insert(0, b' ')),
            changed(|name| name.push(0)),
            changed(|name| name.insert(0, 0)),
            changed(|name| name.truncate(name.len() - 1)),
            changed(|name| *name = name[1..].to_vec()),
            changed(|name| name.make_ascii_lowercase()),
            changed(|name| name.make_ascii_uppercase()),
            changed(|name| name.extend_from_within(..)),
            changed(|name| name[0] |= 0x80),
        ]);
    }
    for name in [
        &b""[..],
        b"INT32",
        b"Q4",
        b"q4_g64_fp16",
        b"BF16_CTRL",
        b"FP32_CTRL",
        b"I32_CTRL",
        b"FP16",
        b"F16",
        b"I64",
        b"FP8_E4M3FN",
        b"Q4G32_F16S",
        b"Q6G128_F16S",
        b"W8G64_F16S",
        b"W8G32",
        b"\xff\xfe",
        b"contiguous",
        b"v1",
    ] {
        names.push(name.to_vec());
    }
    for name in &names {
        let unknown = UnknownName { name };
        let expected = |known: bool| if known { Ok(name.as_slice()) } else { Err(unknown) };
        let got = Format::from_name(name).map(|format| format.name().as_bytes());
        assert_eq!(got, expected(formats.contains(&name.as_slice())));
        let got = Layout::from_name(name).map(|layout| layout.name().as_bytes());
        assert_eq!(got, expected(layouts.contains(&name.as_slice())));
        let got = EncoderProfile::from_name(name).map(|profile| profile.name().as_bytes());
        assert_eq!(got, expected(name == b"MAXABS_F16_RECIP_RNE_V1"));
        let got = ResourceEncoding::from_name(name).map(|encoding| encoding.name().as_bytes());
        assert_eq!(got, expected(name == b"raw-bytes-v1"));
    }
    assert!(Format::from_name(b"Q\"\xff").unwrap_err().to_string().contains(r#"Q\"\xff"#));
}

/// Ids are for ever; this table is never edited, only added to.
#[test]
fn ids_never_change() {
    let formats: [(u32, &str); 9] = [
        (1, "BF16"),
        (2, "FP32"),
        (3, "I32"),
        (4, "Q4G64_F16S"),
        (5, "Q5G64_F16S"),
        (6, "Q6G64_F16S"),
        (7, "W8G32_F16S"),
        (8, "NVFP4"),
        (9, "FP8_E4M3FN_ROW_BF16S"),
    ];
    assert_eq!(Format::ALL.map(|format| (format.id(), format.name())), formats);
    let layouts: [(u32, &str); 4] = [
        (1, "contiguous-le-v1"),
        (2, "row-split-k128-v1"),
        (3, "blockscale-k16-m128x4-v1"),
        (4, "row-scale-v1"),
    ];
    assert_eq!(Layout::ALL.map(|layout| (layout.id(), layout.name())), layouts);
    assert_eq!(
        ValueType::ALL.map(|value| (value as u32, value.name())),
        [(1, "f32"), (2, "bf16"), (3, "f16"), (4, "f64")]
    );
    assert_eq!(EncoderProfile::ALL.map(EncoderProfile::id), [1]);
    assert_eq!(ResourceEncoding::ALL.map(ResourceEncoding::id), [1]);
    for id in (0..20).chain([u32::MAX, 0x0100_0001, 1 << 31]) {
        assert_eq!(Format::from_id(id).map(Format::id), (1..=9).contains(&id).then_some(id));
        assert_eq!(Layout::from_id(id).map(Layout::id), (1..=4).contains(&id).then_some(id));
        assert_eq!(ValueType::from_id(id).map(|value| value as u32), (1..=4).contains(&id).then_some(id));
        assert_eq!(EncoderProfile::from_id(id).map(EncoderProfile::id), (id == 1).then_some(id));
        assert_eq!(ResourceEncoding::from_id(id).map(ResourceEncoding::id), (id == 1).then_some(id));
    }
}

#[test]
fn plans_refuse_in_order() {
    for format in Format::ALL {
        let own = format.layout();
        for layout in Layout::ALL.into_iter().filter(|&layout| layout != own) {
            // Whatever else is wrong.
            for shape in [&[128, 64][..], &[], &[0], &[0, 0], &[1, 1, 1], &[u64::MAX, u64::MAX]] {
                assert_eq!(Plan::new(format, layout, shape), Err(Error::UnsupportedPair { format, layout }));
            }
        }
        let ranks = if own == Layout::ContiguousLeV1 { 0..=16 } else { 2..=2 };
        for rank in 0..20usize {
            for dimension in [0, 1, u64::MAX] {
                let got = Plan::new(format, own, &vec![dimension; rank]);
                let refusal = Err(Error::WrongRank { layout: own, rank: rank as u64 });
                assert_eq!(got == refusal, !ranks.contains(&rank), "{rank} of {dimension}: {got:?}");
            }
        }
        assert_eq!(Plan::new(format, own, &[0, u64::MAX]), Err(Error::ZeroDimension { axis: 0 }));
        assert_eq!(Plan::new(format, own, &[7, 0]), Err(Error::ZeroDimension { axis: 1 }));
        assert_eq!(Plan::new(format, own, &[0, 0]), Err(Error::ZeroDimension { axis: 0 }));
    }
    let nvfp4 = |rows, columns| Plan::new(Format::Nvfp4, Layout::BlockscaleK16M128x4V1, &[rows, columns]);
    let refusal = |axis, dimension, multiple| Err(Error::NotMultiple { axis, dimension, multiple });
    assert_eq!(nvfp4(127, 64), refusal(0, 127, 128));
    assert_eq!(nvfp4(128, 63), refusal(1, 63, 64));
    assert_eq!(nvfp4(64, 128), refusal(0, 64, 128));
    assert_eq!(nvfp4(129, 65), refusal(0, 129, 128));
    assert_eq!(nvfp4(u64::MAX, u64::MAX), refusal(0, u64::MAX, 128));
    assert_eq!(nvfp4(1 << 63, u64::MAX), refusal(1, u64::MAX, 64));
    assert_eq!(nvfp4(1 << 58, 64), Err(Error::Overflow));
    assert_eq!(
        Plan::new(Format::I32, Layout::ContiguousLeV1, &[3, 0, 1]),
        Err(Error::ZeroDimension { axis: 1 })
    );
}

#[test]
fn other_row_counts_are_planned_or_refused() {
    for format in Format::ALL {
        let parent = plan(format, &any_shape(format));
        assert_eq!(parent.with_rows(0), Err(Error::EmptyRows));
        assert_eq!(parent.with_rows(1 << 60), Err(Error::Overflow));
        let got = parent.with_rows(129);
        match format {
            Format::Nvfp4 => {
                assert_eq!(got, Err(Error::NotMultiple { axis: 0, dimension: 129, multiple: 128 }));
            }
            _ => assert_eq!(got, Ok(plan(format, &[129, parent.columns()]))),
        }
    }
}

#[test]
fn payloads_have_exact_lengths() {
    for format in Format::ALL {
        let (plan, payload) = any_tensor(format);
        let expected = plan.payload_bytes();
        let longer = [payload.clone(), vec![0; 256]].concat();
        for actual in [0, 1, expected - 1, expected + 1, expected + 256] {
            let refusal = Error::PayloadLength { expected, actual };
            let bytes = &longer[..actual as usize];
            assert_eq!(Tensor::new(plan, bytes).map(|_| ()), Err(refusal));
            assert_eq!(TensorMut::new(plan, &mut bytes.to_vec()).map(|_| ()), Err(refusal));
        }
        assert!(Tensor::new(plan, &payload).is_ok());
    }
}

/// Ranges of rows that are refused whatever the format: begin, count, and the row at fault or none for no rows.
fn bad_ranges(rows: u64) -> Vec<(u64, u64, Option<u64>)> {
    vec![
        (0, 0, None),
        (rows, 0, None),
        (u64::MAX, 0, None),
        (0, rows + 1, Some(rows)),
        (1, rows, Some(rows)),
        (rows, 1, Some(rows)),
        (rows + 5, 1, Some(rows + 5)),
        (0, u64::MAX, Some(rows)),
        (1, u64::MAX, Some(rows)),
        (u64::MAX, 1, Some(u64::MAX)),
        (u64::MAX, u64::MAX, Some(u64::MAX)),
    ]
}

fn range_refusal(rows: u64, row: Option<u64>) -> Error {
    row.map_or(Error::EmptyRows, |row| Error::RowOutOfRange { row, rows })
}

#[test]
fn row_ranges_lie_inside_the_tensor() {
    for format in Format::ALL {
        let (plan, mut payload) = any_tensor(format);
        let rows = plan.rows();
        for (begin, count, row) in bad_ranges(rows) {
            let refusal = range_refusal(rows, row);
            assert_eq!(plan.row_spans(begin, count), Err(refusal), "{begin} {count}");
            assert_eq!(plan.code_rows(begin, count), Err(refusal), "{begin} {count}");
            assert_eq!(Tensor::new(plan, &payload).unwrap().rows(begin, count).map(|_| ()), Err(refusal));
            let mut tensor = TensorMut::new(plan, &mut payload).unwrap();
            assert_eq!(tensor.rows_mut(begin, count).map(|_| ()), Err(refusal));
        }
    }
}

#[test]
fn row_ranges_lie_inside_their_view() {
    for format in Format::ALL {
        let (plan, mut payload) = any_tensor(format);
        let rows = plan.rows();
        {
            let view = Tensor::new(plan, &payload).unwrap().rows(100, 50).unwrap();
            for (begin, count, row) in [
                (99, 1, 99),
                (99, 100, 99),
                (100, 51, 150),
                (150, 1, 150),
                (149, 2, 150),
                (200, 1, 200),
                (0, 256, 0),
                // Past the end of the tensor, too.
                (100, 200, 150),
                (120, u64::MAX, 150),
                (250, 10, 250),
                (300, 1, 300),
                (99, u64::MAX, 99),
            ] {
                let refusal = Err(Error::RowOutOfRange { row, rows });
                assert_eq!(view.rows(begin, count).map(|_| ()), refusal, "{begin} {count}");
            }
            assert_eq!(view.rows(120, 0).map(|_| ()), Err(Error::EmptyRows));
            let inner = view.rows(149, 1).unwrap();
            assert_eq!((inner.begin(), inner.count()), (149, 1));
            let mut out = Guarded::new(1 << 16, 0xa5u8);
            for row in [99, 150, 0, u64::MAX] {
                let refusal = Error::RowOutOfRange { row, rows };
                assert_eq!(view.gather(&[100, row], out.get()), Err(refusal));
                if let Some(output) = output_of(format) {
                    let got = decoded(output, 400, |out| view.decode_rows(&[100, row], out, 200));
                    assert_eq!(got.map(|_| ()), Err(refusal));
                }
            }
            out.assert_untouched();
        }
        let mut tensor = TensorMut::new(plan, &mut payload).unwrap();
        let mut view = tensor.rows_mut(128, 128).unwrap();
        for (begin, count, row) in [(0, 128, 0), (127, 2, 127), (0, 256, 0)] {
            assert_eq!(view.rows_mut(begin, count).map(|_| ()), Err(Error::RowOutOfRange { row, rows }));
        }
        let mut top = tensor.rows_mut(0, 128).unwrap();
        for (begin, count, row) in
            [(0, 129, 128), (128, 128, 128), (200, 3, 200), (0, 300, 128), (130, 300, 130)]
        {
            assert_eq!(top.rows_mut(begin, count).map(|_| ()), Err(Error::RowOutOfRange { row, rows }));
        }
    }
}

#[test]
fn nvfp4_is_written_by_whole_tiles() {
    let (plan, mut payload) = any_tensor(Format::Nvfp4);
    for (begin, count) in [(0, 1), (0, 127), (0, 129), (1, 128), (64, 128), (128, 64), (255, 1)] {
        let mut tensor = TensorMut::new(plan, &mut payload).unwrap();
        assert_eq!(tensor.rows_mut(begin, count).map(|_| ()), Err(Error::RowsNotTiled { begin, count }));
    }
    for row in [1, 64, 127, 129, 255] {
        let tensor = TensorMut::new(plan, &mut payload).unwrap();
        let refusal = Err(Error::RowsNotTiled { begin: 0, count: row });
        assert_eq!(tensor.split_at_row(row).map(|_| ()), refusal);
    }
    let (_, bottom) = TensorMut::new(plan, &mut payload).unwrap().split_at_row(128).unwrap();
    assert_eq!(bottom.split_at_row(192).map(|_| ()), Err(Error::RowsNotTiled { begin: 128, count: 64 }));
    for begin in [0, 1, 127, 128, 255] {
        assert_eq!(plan.row_spans(begin, 1), Err(Error::NoRowView { plane: PlaneKind::Scales }));
        assert_eq!(plan.code_rows(begin, 1).map(|span| span.offset), Ok(begin * 64));
    }
}

#[test]
fn splits_leave_rows_on_both_sides() {
    for format in Format::ALL {
        let (plan, mut payload) = any_tensor(format);
        let rows = plan.rows();
        let mut split = |row| TensorMut::new(plan, &mut payload).unwrap().split_at_row(row).map(|_| ());
        assert_eq!(split(0), Err(Error::EmptyRows));
        assert_eq!(split(rows), Err(Error::EmptyRows));
        assert_eq!(split(rows + 1), Err(Error::RowOutOfRange { row: rows + 1, rows }));
        assert_eq!(split(u64::MAX), Err(Error::RowOutOfRange { row: u64::MAX, rows }));
        assert_eq!(split(128), Ok(()));
        let (top, bottom) = TensorMut::new(plan, &mut payload).unwrap().split_at_row(128).unwrap();
        assert_eq!((top.begin(), top.count(), bottom.begin(), bottom.count()), (0, 128, 128, 128));
        assert_eq!(bottom.split_at_row(127).map(|_| ()), Err(Error::RowOutOfRange { row: 127, rows }));
        assert_eq!(top.split_at_row(129).map(|_| ()), Err(Error::RowOutOfRange { row: 129, rows }));
    }
}

/// Elements of rows at the longest stride of the machine, or 2^64 - 1 where 64 bits do not hold them.
fn longest_strided(rows: u64, columns: u64) -> u64 {
    let elements = u128::from(rows - 1) * usize::MAX as u128 + u128::from(columns);
    u64::try_from(elements).unwrap_or(u64::MAX)
}

/// Output types, column ranges, strides and lengths, each refused although everything after it is wrong too.
#[test]
fn decoding_refuses_in_order() {
    for format in Format::ALL {
        let (plan, mut payload) = any_tensor(format);
        // Data faults come last of all.
        match format {
            Format::Nvfp4 => payload[plan.divisor().offset as usize..].fill(0xff),
            _ => payload[plan.scales().offset as usize..].fill(0xff),
        }
        let tensor = Tensor::new(plan, &payload).unwrap();
        let (rows, columns) = (plan.rows(), plan.columns());
        let step = u64::from(format.descriptor().group.unwrap_or(1));
        for output in OUTPUTS {
            let supported = has_output(oracle_format(format), output);
            let refusal = Error::UnsupportedOutput { format, output: value_type(output) };
            let check = |got: Result<Vec<u64>, Error>, expected: Error| {
                let expected = if supported { expected } else { refusal };
                assert_eq!(got.map(|_| ()), Err(expected), "{} {output:?}", format.name());
            };
            // Rows before the output type.
            let got = decoded(output, 3, |out| tensor.decode_rows(&[], out, 0));
            assert_eq!(got, Err(Error::EmptyRows));
            for row in [rows, u64::MAX] {
                let got = decoded(output, 3, |out| tensor.decode_rows(&[0, row, rows + 1], out, 0));
                assert_eq!(got, Err(Error::RowOutOfRange { row, rows }));
            }
            // Columns before the stride.
            for (begin, count) in [
                (0, 0),
                (0, columns + 1),
                (step, columns),
                (columns, 1),
                (u64::MAX, 1),
                (0, u64::MAX),
                (u64::MAX - step + 1, u64::MAX),
            ] {
                let refusal = Error::ColumnRange { begin, count, columns, step };
                check(decoded(output, 3, |out| tensor.decode_columns(begin, count, out, 0)), refusal);
                assert_eq!(tensor.validate_columns(begin, count), Err(refusal));
            }
            for begin in (1..step).chain([step + 1, columns - 1]).filter(|begin| !begin.is_multiple_of(step))
            {
                let refusal = Error::ColumnRange { begin, count: 1, columns, step };
                check(decoded(output, 3, |out| tensor.decode_columns(begin, 1, out, 0)), refusal);
                assert_eq!(tensor.validate_columns(begin, 1), Err(refusal));
            }
            // The stride before the length.
            for stride in [0, 1, columns - 1] {
                let refusal = Error::Stride { stride, columns };
                check(decoded(output, 3, |out| tensor.decode(out, stride as usize)), refusal);
                check(decoded(output, 3, |out| tensor.decode_rows(&[1, 0], out, stride as usize)), refusal);
            }
            let refusal = Error::Stride { stride: 6, columns: 7 };
            check(decoded(output, 3, |out| tensor.decode_columns(0, 7, out, 6)), refusal);
            // The length before the data.
            for stride in [columns, columns + 3] {
                let expected = (rows - 1) * stride + columns;
                for actual in [0, columns, expected - 1] {
                    let refusal = Error::BufferLength { expected, actual };
                    check(
                        decoded(output, actual as usize, |out| tensor.decode(out, stride as usize)),
                        refusal,
                    );
                }
                let expected = stride + columns;
                let refusal = Error::BufferLength { expected, actual: expected - 1 };
                let list = |len: u64| {
                    decoded(output, len as usize, |out| tensor.decode_rows(&[5, 5], out, stride as usize))
                };
                check(list(expected - 1), refusal);
            }
            // A stride so large that the sum overflows asks for more than there can be.
            let refusal = Error::BufferLength { expected: longest_strided(rows, columns), actual: 9 };
            check(decoded(output, 9, |out| tensor.decode(out, usize::MAX)), refusal);
            // Data faults last; the direct formats have none.
            if supported {
                let len = (rows * columns) as usize;
                let got = decoded(output, len, |out| tensor.decode(out, columns as usize));
                match (format, got.map(|_| ())) {
                    (Format::Bf16 | Format::Fp32 | Format::I32, got) => assert_eq!(got, Ok(())),
                    (Format::Nvfp4, got) => {
                        let refusal = Error::InvalidDivisor { word: u32::MAX, fault: WordFault::Nan };
                        assert_eq!(got, Err(refusal));
                    }
                    (_, got) => {
                        let refusal =
                            Error::InvalidScale { row: 0, group: 0, word: 0xffff, fault: WordFault::Nan };
                        assert_eq!(got, Err(refusal));
                    }
                }
                // One row needs no stride.
                let row = tensor.rows(0, 1).unwrap();
                let got = decoded(output, columns as usize, |out| row.decode(out, usize::MAX));
                assert_eq!(got.is_ok(), plan.logical_groups() == 0);
            }
        }
    }
}

#[test]
fn words_of_another_kind_are_refused_first() {
    let empty = |kind: Format| Buffers::room(&plan(kind, &any_shape(kind)), 0);
    for format in Format::ALL {
        let (plan, payload) = any_tensor(format);
        let same = |other: Format| other == format || (GROUPED.contains(&other) && GROUPED.contains(&format));
        for other in Format::ALL.into_iter().filter(|&other| !same(other)) {
            // Whether or not the lengths would do.
            let full = Buffers::room(&support::plan(other, &any_shape(other)), ANY_ROWS);
            for mut buffers in [full, empty(other)] {
                let before = buffers.clone();
                let refusal = Err(Error::WrongWords { format });
                assert_eq!(Tensor::new(plan, &payload).unwrap().unpack(buffers.words_mut(other)), refusal);
                assert_eq!(buffers, before);
                let mut out = Guarded::new(payload.len(), 0xa5u8);
                assert_eq!(TensorMut::new(plan, out.get()).unwrap().pack(buffers.words(other)), refusal);
                out.assert_untouched();
            }
        }
    }
}

#[test]
fn words_have_exact_lengths() {
    for format in Format::ALL {
        let (plan, payload) = any_tensor(format);
        let tensor = Tensor::new(plan, &payload).unwrap();
        let rows = plan.rows();
        for wrong in [0, 1, rows - 1, rows + 1] {
            let mut buffers = Buffers::room(&plan, wrong);
            let before = buffers.clone();
            let per_row = if format == Format::Nvfp4 { plan.columns() / 2 } else { plan.columns() };
            let refusal = Err(Error::BufferLength { expected: rows * per_row, actual: wrong * per_row });
            assert_eq!(tensor.unpack(buffers.words_mut(format)), refusal, "{}", format.name());
            assert_eq!(buffers, before);
            let mut out = Guarded::new(payload.len(), 0xa5u8);
            assert_eq!(TensorMut::new(plan, out.get()).unwrap().pack(buffers.words(format)), refusal);
            out.assert_untouched();
        }
    }
    // Scales are counted after codes.
    let (plan, payload) = any_tensor(Format::Q6G64F16S);
    let codes = vec![0; plan.elements() as usize];
    let groups = (plan.rows() * plan.logical_groups()) as usize;
    for actual in [0, groups - 1, groups + 1, (plan.rows() * plan.physical_groups()) as usize] {
        let refusal = Err(Error::BufferLength { expected: groups as u64, actual: actual as u64 });
        let mut out = Guarded::new(payload.len(), 0xa5u8);
        let scales = vec![0; actual];
        let words = Words::Grouped { codes: &codes, scales: &scales };
        assert_eq!(TensorMut::new(plan, out.get()).unwrap().pack(words), refusal);
        out.assert_untouched();
        let (mut codes, mut scales) = (codes.clone(), scales);
        let words = WordsMut::Grouped { codes: &mut codes, scales: &mut scales };
        assert_eq!(Tensor::new(plan, &payload).unwrap().unpack(words), refusal);
    }
}

#[test]
fn packing_checks_the_divisor_before_it_writes() {
    let plan = plan(Format::Nvfp4, &[256, 64]);
    let faults = [
        (0, WordFault::Zero),
        (0x8000_0000, WordFault::NegativeZero),
        (0x8000_0001, WordFault::Negative),
        (0xbf80_0000, WordFault::Negative),
        (0x7f80_0000, WordFault::Infinite),
        (0xff80_0000, WordFault::Infinite),
        (0x7f80_0001, WordFault::Nan),
        (0xffc0_0000, WordFault::Nan),
    ];
    for (divisor, fault) in faults {
        let mut out = Guarded::new(plan.payload_bytes() as usize, 0xa5u8);
        let mut tensor = TensorMut::new(plan, out.get()).unwrap();
        // Every view checks it, also one that does not write it.
        let codes = [0; 128 * 32];
        let words = Words::Nvfp4 { codes: &codes, scales: &[0x80; 512], divisor };
        let refusal = Err(Error::InvalidDivisor { word: divisor, fault });
        assert_eq!(tensor.rows_mut(0, 128).unwrap().pack(words), refusal);
        assert_eq!(tensor.rows_mut(128, 128).unwrap().pack(words), refusal);
        out.assert_untouched();
    }
}

#[test]
fn encoding_refuses_in_order() {
    for format in Format::ALL {
        let (plan, payload) = any_tensor(format);
        let columns = plan.columns();
        let mut out = Guarded::new(payload.len(), 0xa5u8);
        let mut quantize = |len: usize, stride: usize| {
            let values = vec![f32::NAN; len];
            let result = TensorMut::new(plan, out.get()).unwrap().quantize(&values[..], stride);
            out.assert_untouched();
            result
        };
        let (mut codes, mut scales) = (Guarded::new(7, 99i8), Guarded::new(3, 0xa5a5u16));
        if format.scheme().is_none() {
            let refusal = Err(Error::NoCanonicalEncoder { format });
            assert_eq!(quantize(0, 0), refusal);
            assert_eq!(quantize((plan.rows() * columns) as usize, columns as usize), refusal);
            assert_eq!(quantize_row(format, 0, &[0.0f32; 0][..], codes.get(), scales.get()), refusal);
            let refusal = Err(Error::WrongWords { format });
            assert_eq!(dequantize_row(format, 0, &[], scales.get(), &mut [1.0]), refusal);
        } else {
            for stride in [0, 1, columns - 1] {
                assert_eq!(quantize(0, stride as usize), Err(Error::Stride { stride, columns }));
            }
            for stride in [columns, columns + 3] {
                let expected = (plan.rows() - 1) * stride + columns;
                for actual in [0, expected - 1] {
                    let refusal = Err(Error::BufferLength { expected, actual });
                    assert_eq!(quantize(actual as usize, stride as usize), refusal);
                }
            }
            let expected = longest_strided(plan.rows(), columns);
            let refusal = Err(Error::BufferLength { expected, actual: 9 });
            assert_eq!(quantize(9, usize::MAX), refusal);

            let step = u64::from(format.scheme().unwrap().group());
            let refusal = Err(Error::ColumnRange { begin: 0, count: 0, columns: 0, step });
            assert_eq!(quantize_row(format, 0, &[0.0f32; 0][..], codes.get(), scales.get()), refusal);
            let values = [f32::NAN; 6];
            let refusal = Err(Error::BufferLength { expected: 6, actual: 7 });
            assert_eq!(quantize_row(format, 0, &values[..], codes.get(), scales.get()), refusal);
            let refusal = Err(Error::BufferLength { expected: 1, actual: 3 });
            assert_eq!(quantize_row(format, 0, &values[..], &mut codes.get()[..6], scales.get()), refusal);
        }
        codes.assert_untouched();
        scales.assert_untouched();
    }
}

#[test]
fn decoding_a_row_of_words_refuses_in_order() {
    for format in GROUPED {
        let step = u64::from(format.scheme().unwrap().group());
        let mut out = Guarded::new(6, 77.0f32);
        let refusal = Err(Error::ColumnRange { begin: 0, count: 0, columns: 0, step });
        assert_eq!(dequantize_row(format, 0, &[], &[0xffff], out.get()), refusal);
        // The codes say how long the row is.
        for columns in [1, 5, 7, 64] {
            let refusal = Err(Error::BufferLength { expected: columns as u64, actual: 6 });
            assert_eq!(dequantize_row(format, 0, &vec![0; columns], &[0xffff], out.get()), refusal);
        }
        for scales in [0, 2] {
            let refusal = Err(Error::BufferLength { expected: 1, actual: scales as u64 });
            assert_eq!(dequantize_row(format, 0, &[0; 6], &vec![0xffff; scales], out.get()), refusal);
        }
        let refusal =
            Err(Error::InvalidScale { row: 9, group: 0, word: 0x8000, fault: WordFault::NegativeZero });
        assert_eq!(dequantize_row(format, 9, &[0; 6], &[0x8000], out.get()), refusal);
        out.assert_untouched();

        let columns = step as usize + 1;
        let mut out = Guarded::new(columns, 77.0f32);
        let refusal = Err(Error::InvalidScale { row: 3, group: 1, word: 0x7c00, fault: WordFault::Infinite });
        assert_eq!(dequantize_row(format, 3, &vec![1; columns], &[0x3c00, 0x7c00], out.get()), refusal);
        out.assert_untouched();

        // Every number that a byte can hold is a code, or refused with its place.
        let half_range = 1 << (format.scheme().unwrap().code_bits() - 1);
        for code in i8::MIN..=i8::MAX {
            let mut codes = vec![1; columns];
            codes[columns - 2] = code;
            let got = dequantize_row(format, 3, &codes, &[0x3c00, 0x3c00], out.get());
            if (-half_range..half_range).contains(&i32::from(code)) {
                assert_eq!(got, Ok(()), "{format} {code}");
                assert_eq!(out.get()[columns - 2], f32::from(code), "{format}");
                out = Guarded::new(columns, 77.0f32);
            } else {
                let column = columns as u64 - 2;
                assert_eq!(got, Err(Error::InvalidCode { row: 3, column, word: code as u8 }), "{format}");
                out.assert_untouched();
            }
        }
    }
}

#[test]
fn new_payloads_are_refused_before_they_are_written() {
    for format in Format::ALL {
        let (plan, payload) = any_tensor(format);
        let tensor = Tensor::new(plan, &payload).unwrap();
        let rows = plan.rows();
        let mut out = Guarded::new(payload.len() + 1, 0xa5u8);
        assert_eq!(tensor.gather(&[], out.get()), Err(Error::EmptyRows));
        let list = [0, 1, rows, u64::MAX];
        assert_eq!(tensor.gather(&list, out.get()), Err(Error::RowOutOfRange { row: rows, rows }));
        let list = [3, u64::MAX, rows];
        assert_eq!(tensor.gather(&list, out.get()), Err(Error::RowOutOfRange { row: u64::MAX, rows }));
        assert_eq!(stack(&[], out.get()), Err(Error::EmptyRows));
        if format == Format::Nvfp4 {
            let refusal = |dimension| Err(Error::NotMultiple { axis: 0, dimension, multiple: 128 });
            assert_eq!(tensor.gather(&[1; 127], out.get()), refusal(127));
            assert_eq!(tensor.rows(1, 129).unwrap().slice(out.get()), refusal(129));
            assert_eq!(stack(&[tensor.rows(5, 64).unwrap(); 2], out.get()), refusal(64));
        }
        let length = |rows| plan.with_rows(rows).unwrap().payload_bytes();
        let refusal =
            |rows| Err(Error::PayloadLength { expected: length(rows), actual: payload.len() as u64 + 1 });
        let view = tensor.rows(64, 128).unwrap();
        assert_eq!(tensor.gather(&[9; 128], out.get()), refusal(128));
        assert_eq!(view.slice(out.get()), refusal(128));
        assert_eq!(stack(&[view, view], out.get()), refusal(256));
        assert_eq!(view.slice(&mut []), Err(Error::PayloadLength { expected: length(128), actual: 0 }));
        out.assert_untouched();
    }
}

#[test]
fn stacks_are_of_one_format_and_width() {
    let mut out = Guarded::new(4096, 0xa5u8);
    let make = |format, shape: &[u64], seed| {
        (plan(format, shape), legal_payload(format, shape, &mut Random(seed)).1)
    };
    let q4 = make(Format::Q4G64F16S, &[2, 64], 1);
    let q5 = make(Format::Q5G64F16S, &[2, 64], 2);
    let wider = make(Format::Q4G64F16S, &[2, 65], 3);
    let view = |tensor: &(Plan, Vec<u8>)| -> Tensor<'static> {
        Tensor::new(tensor.0, tensor.1.clone().leak()).unwrap()
    };
    let (q4, q5, wider) = (view(&q4), view(&q5), view(&wider));
    assert_eq!(stack(&[q4, q5], out.get()), Err(Error::StackMismatch { part: 1 }));
    assert_eq!(stack(&[q4, q4, wider, q5], out.get()), Err(Error::StackMismatch { part: 2 }));

    let first = make(Format::Nvfp4, &[128, 64], 4);
    let mut second = first.clone();
    let divisor = first.0.divisor().offset as usize;
    second.1[divisor] ^= 1;
    let word = |payload: &[u8]| u32::from_le_bytes(payload[divisor..].try_into().unwrap());
    let refusal = Error::StackDivisor { part: 1, expected: word(&first.1), actual: word(&second.1) };
    assert_eq!(stack(&[view(&first), view(&second)], out.get()), Err(refusal));
    out.assert_untouched();
}

/// A fault in the data spoils the failing and later rows of its range, and nothing else.
#[test]
fn faulty_sources_spoil_only_the_rest_of_their_range() {
    const ROWS: u64 = 9;
    const COLUMNS: usize = 70;
    for format in GROUPED {
        let plan = plan(format, &[ROWS, COLUMNS as u64]);
        let values: Vec<f32> = (0..ROWS as usize * COLUMNS).map(|i| (i % 23) as f32 - 11.0).collect();
        let mut whole = vec![0; plan.payload_bytes() as usize];
        TensorMut::new(plan, &mut whole).unwrap().quantize(&values[..], COLUMNS).unwrap();
        // Rows 2 to 6 are written; row 5 is at fault in one of several ways.
        let faults: [(usize, f32, Error); 4] = [
            (69, f32::NAN, Error::NonFiniteSource { row: 5, column: 69, word: 0x7fc0_0000 }),
            (0, f32::NEG_INFINITY, Error::NonFiniteSource { row: 5, column: 0, word: 0xff80_0000 }),
            (3, f32::from_bits(0xff80_0001), Error::NonFiniteSource { row: 5, column: 3, word: 0xff80_0001 }),
            (66, f32::MAX, {
                let qmax = format.descriptor().qmax.unwrap() as f32;
                let group = u64::from(66 / format.descriptor().group.unwrap());
                Error::ScaleOverflow { row: 5, group, raw_scale: (f32::MAX / qmax).to_bits() }
            }),
        ];
        for (column, value, refusal) in faults {
            let mut values = values.clone();
            values[5 * COLUMNS + column] = value;
            values[6 * COLUMNS] = f32::NAN;
            let mut out = Guarded::new(whole.len(), 0xa5u8);
            let mut tensor = TensorMut::new(plan, out.get()).unwrap();
            let mut range = tensor.rows_mut(2, 5).unwrap();
            assert_eq!(range.quantize(&values[2 * COLUMNS..], COLUMNS), Err(refusal), "{}", format.name());
            assert_spoiled_only(plan, &mut out, &whole, 2..5, 5..7);
        }
    }
}

#[test]
fn faulty_words_spoil_only_the_rest_of_their_range() {
    for format in GROUPED.into_iter().chain([Format::Fp8E4M3FnRowBf16S]) {
        let shape = [9, 70];
        let plan = plan(format, &shape);
        let (words, whole) = legal_payload(format, &shape, &mut Random(77));
        let mut part = words.clone();
        let groups = plan.logical_groups() as usize;
        part.codes = part.codes[2 * 70..7 * 70].to_vec();
        part.scales = part.scales[2 * groups..7 * groups].to_vec();
        part.scales[4 * groups - 1] = 0x8000;
        let group = if format == Format::Fp8E4M3FnRowBf16S { 0 } else { groups as u64 - 1 };
        let mut out = Guarded::new(whole.len(), 0xa5u8);
        let mut tensor = TensorMut::new(plan, out.get()).unwrap();
        let got = tensor.rows_mut(2, 5).unwrap().pack(Buffers::of(format, &part).words(format));
        let fault = WordFault::NegativeZero;
        assert_eq!(got, Err(Error::InvalidScale { row: 5, group, word: 0x8000, fault }));
        assert_spoiled_only(plan, &mut out, &whole, 2..5, 5..7);
    }
    // NVFP4: the second tile of three fails in its second row.
    let shape = [384, 64];
    let plan = plan(Format::Nvfp4, &shape);
    let (words, _) = legal_payload(Format::Nvfp4, &shape, &mut Random(78));
    let mut part = words.clone();
    part.codes = part.codes[128 * 64..256 * 64].to_vec();
    part.scales = part.scales[128 * 4..256 * 4].to_vec();
    part.scales[4 + 2] = 0xff;
    let mut out = Guarded::new(plan.payload_bytes() as usize, 0xa5u8);
    let mut tensor = TensorMut::new(plan, out.get()).unwrap();
    let got = tensor.rows_mut(128, 128).unwrap().pack(Buffers::of(Format::Nvfp4, &part).words(Format::Nvfp4));
    assert_eq!(got, Err(Error::InvalidScale { row: 129, group: 2, word: 0xff, fault: WordFault::Nan }));
    out.assert_canaries();
    let payload = out.get().to_vec();
    let codes = plan.codes();
    let first: Vec<u8> = oracle::layout::nibble_pairs(&words.codes[128 * 64..129 * 64]);
    assert_eq!(payload[128 * 32..129 * 32], first);
    let tile = codes.offset as usize + 128 * 32..codes.offset as usize + 256 * 32;
    let scales = plan.scales().offset as usize + 512..plan.scales().offset as usize + 1024;
    for (at, &byte) in payload.iter().enumerate() {
        assert!(tile.contains(&at) || scales.contains(&at) || byte == 0xa5, "byte {at}");
    }
}

/// Asserts that the rows `done` hold what the whole payload holds, the rows `spoiled` anything, and every other
/// byte what it held before.
fn assert_spoiled_only(
    plan: Plan,
    out: &mut Guarded<u8>,
    whole: &[u8],
    done: std::ops::Range<u64>,
    spoiled: std::ops::Range<u64>,
) {
    out.assert_canaries();
    let payload = out.get();
    let mut expected = vec![Some(0xa5); payload.len()];
    for row in done.start..spoiled.end {
        let spans = plan.row_spans(row, 1).unwrap();
        for span in [spans.codes, spans.high, spans.scales] {
            for at in span.offset as usize..(span.offset + span.bytes) as usize {
                expected[at] = done.contains(&row).then_some(whole[at]);
            }
        }
    }
    for (at, (&byte, expected)) in payload.iter().zip(expected).enumerate() {
        assert!(expected.is_none_or(|expected| expected == byte), "{} byte {at}", plan.format().name());
    }
}

/// The lowest failing (row, group) is reported; in a group a source value comes before the scale.
#[test]
fn the_lowest_source_fault_is_reported() {
    let format = Format::W8G32F16S;
    let (mut codes, mut scales) = ([0; 96], [0; 3]);
    let mut values = [1.0f64; 96];
    values[95] = f64::NAN;
    values[70] = 1e300;
    values[40] = 3e38; // overflows the scale of group 1
    values[33] = f64::INFINITY;
    let mut quantize = |values: &[f64]| quantize_row(format, 6, values, &mut codes, &mut scales);
    let word = f64::INFINITY.to_bits();
    assert_eq!(quantize(&values), Err(Error::NonFiniteSource { row: 6, column: 33, word }));
    values[33] = 1.0;
    assert!(matches!(quantize(&values), Err(Error::ScaleOverflow { row: 6, group: 1, .. })));
    values[40] = 1.0;
    let word = 1e300f64.to_bits();
    assert_eq!(quantize(&values), Err(Error::SourceNotRepresentable { row: 6, column: 70, word }));
    values[70] = 1.0;
    let word = f64::NAN.to_bits();
    assert_eq!(quantize(&values), Err(Error::NonFiniteSource { row: 6, column: 95, word }));
    let halves = [f16::INFINITY];
    let got = quantize_row(format, 0, &halves[..], &mut [0], &mut [0]);
    assert_eq!(got, Err(Error::NonFiniteSource { row: 0, column: 0, word: 0x7c00 }));
    let brains = [bf16::from_bits(0xff81)];
    let got = quantize_row(format, 0, &brains[..], &mut [0], &mut [0]);
    assert_eq!(got, Err(Error::NonFiniteSource { row: 0, column: 0, word: 0xff81 }));
}

/// What lies in a source between its rows and past the last is not read.
#[test]
fn sources_are_read_where_their_rows_are() {
    for format in GROUPED {
        let plan = plan(format, &[9, 130]);
        let mut source = vec![f32::NAN; 9 * 133 + 200];
        let mut dense = Vec::new();
        for (row, values) in source.chunks_mut(133).take(9).enumerate() {
            let weights = (0..130).map(|column| (row * 130 + column) as f32 - 500.0);
            dense.extend(weights.clone());
            values.iter_mut().zip(weights).for_each(|(value, weight)| *value = weight);
        }
        let mut got = vec![0; plan.payload_len().unwrap()];
        let mut expected = got.clone();
        TensorMut::new(plan, &mut got).unwrap().quantize(&source[..], 133).unwrap();
        TensorMut::new(plan, &mut expected).unwrap().quantize(&dense[..], 130).unwrap();
        assert!(got == expected, "{format}");
    }
}

/// One row has no next, so that its stride may be any number from its columns on.
#[test]
fn one_row_takes_any_stride() {
    for format in GROUPED {
        let plan = plan(format, &[1, 130]);
        let mut expected = vec![0; plan.payload_len().unwrap()];
        TensorMut::new(plan, &mut expected).unwrap().quantize(&[1.0f32; 130][..], 130).unwrap();
        for stride in [131, 256, usize::MAX / 4 + 1, usize::MAX / 2, usize::MAX] {
            let mut got = vec![0xa5; expected.len()];
            TensorMut::new(plan, &mut got).unwrap().quantize(&[1.0f32; 130][..], stride).unwrap();
            assert!(got == expected, "{format} {stride}");
            let mut out = [0.0f32; 130];
            Tensor::new(plan, &got).unwrap().decode(&mut out[..], stride).unwrap();
            assert!(out.iter().all(|&value| value == out[0]), "{format} {stride}");
        }
    }
}

/// Illegal words outside the range decoded are not looked at; inside they are, before anything is written.
#[test]
fn decoding_checks_the_scales_of_its_range_first() {
    for format in QUANTIZED {
        let (plan, payload) = any_tensor(format);
        let columns = plan.columns();
        let first_row_scale = plan.scales().offset as usize
            + if format == Format::Nvfp4 { 16 } else { plan.scales().row_bytes as usize };
        let mut broken = payload.clone();
        let (word, bytes): (u16, &[u8]) =
            if format == Format::Nvfp4 { (0x80, &[0x80]) } else { (0x8000, &[0, 0x80]) };
        broken[first_row_scale..first_row_scale + bytes.len()].copy_from_slice(bytes);
        let tensor = Tensor::new(plan, &broken).unwrap();
        let refusal = Error::InvalidScale { row: 1, group: 0, word, fault: WordFault::NegativeZero };
        let len = (4 * columns) as usize;
        let decode = |begin| {
            let view = tensor.rows(begin, 4).unwrap();
            decoded(OutputType::F32, len, |out| view.decode(out, columns as usize)).map(|_| ())
        };
        assert_eq!(decode(0), Err(refusal));
        assert_eq!(decode(1), Err(refusal));
        assert_eq!(decode(2), Ok(()));
        let rows = |list: &[u64]| {
            decoded(OutputType::F32, len, |out| tensor.decode_rows(list, out, columns as usize)).map(|_| ())
        };
        assert_eq!(rows(&[2, 0, 200, 1]), Err(refusal));
        assert_eq!(rows(&[2, 0, 200, 255]), Ok(()));
        let step = u64::from(format.descriptor().group.unwrap_or(1));
        let view = tensor.rows(0, 4).unwrap();
        let got = decoded(OutputType::F32, 4, |out| view.decode_columns(step, 1, out, 1)).map(|_| ());
        let row_scaled = format == Format::Fp8E4M3FnRowBf16S;
        assert_eq!(got, if row_scaled { Err(refusal) } else { Ok(()) });
    }
}

/// A fault in the last group of any row is found before anything is written, also by the quick look at many rows.
#[test]
fn decoding_finds_a_fault_in_every_row() {
    for format in QUANTIZED {
        let (plan, payload) = any_tensor(format);
        let columns = plan.columns();
        let group = plan.logical_groups().max(1) - 1;
        let plane = plan.scales();
        for row in 0..12 {
            let (place, word, bytes): (u64, u16, &[u8]) = match format {
                // The first 32 rows of a tile lie 16 bytes apart, four groups of each together.
                Format::Nvfp4 => (group / 4 * 512 + row * 16 + group % 4, 0x80, &[0x80]),
                _ => (row * plane.row_bytes + group * 2, 0x8000, &[0, 0x80]),
            };
            let mut broken = payload.clone();
            let place = (plane.offset + place) as usize;
            broken[place..place + bytes.len()].copy_from_slice(bytes);
            let tensor = Tensor::new(plan, &broken).unwrap();
            let refusal = Error::InvalidScale { row, group, word, fault: WordFault::NegativeZero };
            let len = (12 * columns) as usize;
            let got = decoded(OutputType::F32, len, |out| {
                tensor.rows(0, 12).unwrap().decode(out, columns as usize)
            });
            assert_eq!(got, Err(refusal), "{format}");
        }
    }
}

#[test]
fn errors_say_their_numbers() {
    let format = Format::Q4G64F16S;
    let errors = [
        (Error::UnsupportedPair { format, layout: Layout::RowScaleV1 }, vec!["Q4G64_F16S", "row-scale-v1"]),
        (Error::WrongRank { layout: Layout::RowSplitK128V1, rank: 31 }, vec!["row-split-k128-v1", "31"]),
        (Error::ZeroDimension { axis: 31 }, vec!["31"]),
        (Error::NotMultiple { axis: 31, dimension: 41, multiple: 51 }, vec!["31", "41", "51"]),
        (Error::Overflow, vec!["64 bits"]),
        (Error::TooLarge { size: 31 }, vec!["31"]),
        (Error::PayloadLength { expected: 31, actual: 41 }, vec!["31", "41"]),
        (Error::EmptyRows, vec!["no rows"]),
        (Error::RowOutOfRange { row: 31, rows: 41 }, vec!["31", "41"]),
        (Error::RowsNotTiled { begin: 31, count: 41 }, vec!["31", "41"]),
        (Error::NoRowView { plane: PlaneKind::Scales }, vec!["scales"]),
        (Error::UnsupportedOutput { format, output: ValueType::F64 }, vec!["Q4G64_F16S", "f64"]),
        (Error::NoCanonicalEncoder { format }, vec!["Q4G64_F16S"]),
        (Error::WrongWords { format }, vec!["Q4G64_F16S"]),
        (Error::ColumnRange { begin: 31, count: 41, columns: 51, step: 61 }, vec!["31", "41", "51", "61"]),
        (Error::Stride { stride: 31, columns: 41 }, vec!["31", "41"]),
        (Error::BufferLength { expected: 31, actual: 41 }, vec!["31", "41"]),
        (Error::StackMismatch { part: 31 }, vec!["31"]),
        (Error::StackDivisor { part: 31, expected: 0x41, actual: 0x51 }, vec!["31", "41", "51"]),
        (Error::NonFiniteSource { row: 31, column: 41, word: 0x51 }, vec!["31", "41", "51"]),
        (Error::SourceNotRepresentable { row: 31, column: 41, word: 0x51 }, vec!["31", "41", "51"]),
        (Error::ScaleOverflow { row: 31, group: 41, raw_scale: 0x51 }, vec!["31", "41", "51"]),
        (Error::NotExact { index: 31, word: 0x41 }, vec!["31", "41"]),
        (
            Error::InvalidScale { row: 31, group: 41, word: 0x51, fault: WordFault::Negative },
            vec!["31", "41", "51", "negative"],
        ),
        (Error::InvalidDivisor { word: 0x31, fault: WordFault::Zero }, vec!["31", "zero"]),
        (Error::InvalidCode { row: 31, column: 41, word: 0x51 }, vec!["31", "41", "51"]),
        (Error::ZeroScaleNonzeroCode { row: 31, column: 41, word: 0x51 }, vec!["31", "41", "51"]),
        (Error::PaddingCodeNotZero { row: 31, column: 41, word: 0x51 }, vec!["31", "41", "51"]),
        (Error::PaddingScaleNotZero { row: 31, group: 41, word: 0x51 }, vec!["31", "41", "51"]),
        (Error::GapNotZero { offset: 31, word: 0x41 }, vec!["31", "41"]),
    ];
    for (error, parts) in errors {
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{error:?}: {text}");
    }
}
