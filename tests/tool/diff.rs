//! What `diff` says of values that are no plain numbers, of padding, and of what it cannot read.

use half::bf16;
use ninfer_codec::{Format, Plan, Tensor, WordsMut};

use crate::support::{call, f32_bytes, folder, path};
use crate::unpack::{artifact, quantized};

/// The tensors of an artifact.
type Tensors<'t> = &'t [(&'t str, Format, &'t [u64], Vec<u8>)];

/// What `diff` prints of two artifacts of these tensors; its last line goes to stderr.
fn lines(tensors: [Tensors<'_>; 2]) -> String {
    let folder = folder();
    let [a, b] = ["a.ninfer", "b.ninfer"].map(|name| path(&folder, name));
    artifact(&a, tensors[0]);
    artifact(&b, tensors[1]);
    let call = call(&["diff", &a, &b]);
    assert_eq!(call.code, Some(1), "{call:?}");
    call.stdout
}

/// What `diff` prints of two FP32 matrices of three columns.
fn values(a: &[f32], b: &[f32]) -> String {
    let tensor = |values: &[f32]| {
        assert_eq!(values.len(), 6);
        [("t", Format::Fp32, &[2, 3][..], f32_bytes(values))]
    };
    let words = a.iter().zip(b).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    let printed = lines([&tensor(a), &tensor(b)]);
    let head = format!("\"t\": codes: {words} of 6 differ; values: {words} of 6 differ");
    printed.strip_prefix(&head).unwrap_or_else(|| panic!("{printed}")).into()
}

#[test]
fn zeros_of_two_signs_are_placed() {
    let mut b = [0.0; 6];
    b[4] = -0.0;
    assert_eq!(values(&[0.0; 6], &b), ", by at most 0.000e0 at row 1, column 1\n");
    b[5] = 0.25;
    assert_eq!(values(&[0.0; 6], &b), ", by at most 2.500e-1 at row 1, column 2\n");
    b[4] = -0.25;
    assert_eq!(values(&[0.0; 6], &b), ", by at most 2.500e-1 at row 1, column 1\n");
}

#[test]
fn a_nan_is_told_apart() {
    let nan = f32::NAN;
    let one = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let mut other = one;
    other[2] = nan;
    let said = ", all with a NaN on a side, the first at row 0, column 2\n";
    assert_eq!(values(&one, &other), said);
    assert_eq!(values(&other, &one), said);
    other[5] = nan;
    assert_eq!(values(&one, &other), said);
    other[3] = 4.5;
    let said =
        ", by at most 5.000e-1 at row 1, column 0, 2 with a NaN on a side, the first at row 0, column 2\n";
    assert_eq!(values(&one, &other), said);

    // Two words that are both a NaN differ, and one that is the same does not.
    let mut another = other;
    another[2] = f32::from_bits(nan.to_bits() ^ 1);
    assert_eq!(values(&other, &another), ", all with a NaN on a side, the first at row 0, column 2\n");
}

#[test]
fn an_infinity_is_farthest() {
    let (a, mut b) = ([1.0; 6], [1.0; 6]);
    b[1] = 2.0;
    b[4] = f32::INFINITY;
    assert_eq!(values(&a, &b), ", by at most inf at row 1, column 1\n");
}

#[test]
fn nans_of_many_blocks_are_summed() {
    // 2 x 65,536 values: a block for each row.
    let words = |values: &[f32]| values.iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect();
    let one = vec![1.0; 2 << 16];
    let mut other = one.clone();
    for place in [9, (1 << 16) + 7, (1 << 16) + 8] {
        other[place] = f32::NAN;
    }
    other[(1 << 16) + 5] = 1.5;
    let tensor = |values: &[f32]| [("t", Format::Bf16, &[2, 1 << 16][..], words(values))];
    let printed = lines([&tensor(&one), &tensor(&other)]);
    let said = "values: 4 of 131,072 differ, by at most 5.000e-1 at row 1, column 5, 3 with a NaN on a side, \
                the first at row 0, column 9\n";
    assert!(printed.ends_with(said), "{printed}");
}

#[test]
fn padding_is_told_from_words() {
    // Rows of 130 columns are stored as 256, in 128 bytes: column 130 is in byte 65.
    let tensor = |payload: &[u8]| [("q", Format::Q4G64F16S, &[3, 130][..], payload.to_vec())];
    let one = quantized(Format::Q4G64F16S, 3, 130);
    let mut other = one.clone();
    other[65] ^= 0x10;
    other[2 * 128 + 127] ^= 0xff;
    let counts = "\"q\": codes: 0 of 390 differ; scales: 0 of 9 differ; ";
    assert_eq!(lines([&tensor(&one), &tensor(&other)]), format!("{counts}padding bytes differ: 2\n"));
    // The fourth scale of a row is of no column.
    let last = one.len() - 1;
    other[last] ^= 1;
    assert_eq!(lines([&tensor(&one), &tensor(&other)]), format!("{counts}padding bytes differ: 3\n"));
    // Words that differ are said as ever.
    other[0] ^= 0x10;
    let printed = lines([&tensor(&one), &tensor(&other)]);
    assert!(printed.contains("codes: 1 of 390 differ") && !printed.contains("padding"), "{printed}");

    // The gap between the codes and the scales.
    let one = [vec![0x38; 4], vec![0; 252], vec![0x40, 0x3f, 0x80, 0x3f]].concat();
    let mut other = one.clone();
    other[4] = 1;
    let tensor = |payload: &[u8]| [("f", Format::Fp8E4M3FnRowBf16S, &[2, 2][..], payload.to_vec())];
    let counts = "\"f\": codes: 0 of 4 differ; scales: 0 of 2 differ; ";
    assert_eq!(lines([&tensor(&one), &tensor(&other)]), format!("{counts}padding bytes differ: 1\n"));
}

#[test]
fn what_cannot_be_decoded_is_a_difference_like_others() {
    let q4 = quantized(Format::Q4G64F16S, 700, 300);
    let mut spoiled = q4.clone();
    for row in [699, 350] {
        let scale = q4.len() - (700 - row) * 12; // the first of the row's six scales
        spoiled[scale..scale + 2].copy_from_slice(&[0x00, 0xbc]);
    }
    let tensors = |q4: &[u8], last: u8| {
        [
            ("a", Format::I32, &[1][..], vec![last; 4]),
            ("q", Format::Q4G64F16S, &[700, 300], q4.to_vec()),
            ("z", Format::I32, &[1], vec![last; 4]),
        ]
    };
    let printed = lines([&tensors(&q4, 0), &tensors(&spoiled, 1)]);
    let printed: Vec<_> = printed.lines().collect();
    assert_eq!(printed.len(), 3, "{printed:?}");
    assert_eq!(printed[0], "\"a\": codes: 1 of 1 differ");
    assert!(printed[1].starts_with("\"q\": cannot be compared: row 350, group 0: "), "{printed:?}");
    assert!(printed[1].ends_with("; see what verify says"), "{printed:?}");
    assert_eq!(printed[2], "\"z\": codes: 1 of 1 differ");
}

/// Columns that are two pieces and a part of a third, which ends inside a group.
const LONG: u64 = 2 * 65_536 + 1000 + 7;

#[test]
fn pieces_of_long_rows_give_the_counts_of_whole_rows() {
    const LANES: usize = 2 * LONG as usize;
    for format in [Format::Q4G64F16S, Format::Q5G64F16S, Format::Q6G64F16S, Format::W8G32F16S] {
        let (one, whole) = (quantized(format, 2, LONG), quantized(format, 1, 2 * LONG));
        let plan = Plan::new(format, format.layout(), &[2, LONG]).unwrap();
        // The codes of other values, in every piece of both rows.
        let mut other = one.clone();
        for row in [0, 1] {
            for column in [3, 65_535, 65_536, LONG - 1] {
                let begin = plan.codes().offset + row * plan.codes().row_bytes;
                let place = (begin + column * plan.codes().row_bytes / plan.padded_columns()) as usize;
                other[place] = whole[place + 1] & 0x33;
            }
            let scales = plan.scales().offset + row * plan.scales().row_bytes;
            other[scales as usize + 2 * 1024] ^= 1;
        }
        let read = |payload: &[u8]| {
            let tensor = Tensor::new(plan, payload).unwrap();
            let mut codes = vec![0; LANES];
            let mut scales = vec![0; 2 * plan.logical_groups() as usize];
            let mut values = vec![0.0f32; LANES];
            tensor.unpack(WordsMut::Grouped { codes: &mut codes, scales: &mut scales }).unwrap();
            tensor.decode(&mut values[..], LONG as usize).unwrap();
            (codes, scales, values)
        };
        let (a, b) = (read(&one), read(&other));
        let codes = a.0.iter().zip(&b.0).filter(|(a, b)| a != b).count();
        let scales = a.1.iter().zip(&b.1).filter(|(a, b)| a != b).count();
        let differ: Vec<_> = (0..LANES).filter(|&at| a.2[at].to_bits() != b.2[at].to_bits()).collect();
        let distance = |at: usize| (f64::from(a.2[at]) - f64::from(b.2[at])).abs();
        let largest = differ.iter().map(|&at| distance(at)).fold(0.0, f64::max);
        let first = differ.iter().find(|&&at| distance(at) == largest).unwrap();
        assert!(codes >= 6 && scales == 2, "{format}: {codes} {scales}");
        let expected = format!(
            "\"t\": codes: {codes} of 264,158 differ; scales: {scales} of {} differ; values: {} of 264,158 \
             differ, by at most {largest:.3e} at row {}, column {}\n",
            grouped(a.1.len()),
            grouped(differ.len()),
            first / LONG as usize,
            first % LONG as usize,
        );
        let tensor = |payload: &[u8]| [("t", format, &[2, LONG][..], payload.to_vec())];
        assert_eq!(lines([&tensor(&one), &tensor(&other)]), expected, "{format}");
    }
}

/// A number of less than a million, as the tool writes it.
fn grouped(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}

#[test]
fn a_scale_of_a_long_row_is_counted_once() {
    let bytes = (2 * LONG as usize).next_multiple_of(256);
    let mut one = vec![0x38; 2 * LONG as usize];
    one.resize(bytes, 0);
    one.extend([0x80, 0x3f, 0x80, 0x3f]);
    let mut other = one.clone();
    *other.last_mut().unwrap() = 0x40; // 4 instead of 1
    let tensor = |payload: &[u8]| [("f", Format::Fp8E4M3FnRowBf16S, &[2, LONG][..], payload.to_vec())];
    let printed = lines([&tensor(&one), &tensor(&other)]);
    let values = "values: 132,079 of 264,158 differ, by at most 3.000e0 at row 1, column 0";
    assert_eq!(printed, format!("\"f\": codes: 0 of 264,158 differ; scales: 1 of 2 differ; {values}\n"));

    // A code of the last piece.
    other[2 * LONG as usize - 1] = 0x40; // 2 instead of 1
    let printed = lines([&tensor(&one), &tensor(&other)]);
    let values = "values: 132,079 of 264,158 differ, by at most 7.000e0 at row 1, column 132078";
    assert_eq!(printed, format!("\"f\": codes: 1 of 264,158 differ; scales: 1 of 2 differ; {values}\n"));
}

#[test]
fn words_of_long_rows_are_placed() {
    for format in [Format::Bf16, Format::Fp32, Format::I32] {
        let size = if format == Format::Bf16 { 2 } else { 4 };
        let one = vec![0; 2 * LONG as usize * size];
        let mut other = one.clone();
        other[(LONG as usize + 70_000) * size + size - 1] = 0x40; // 2
        let tensor = |payload: &[u8]| [("t", format, &[2, LONG][..], payload.to_vec())];
        let printed = lines([&tensor(&one), &tensor(&other)]);
        let values = "; values: 1 of 264,158 differ, by at most 2.000e0 at row 1, column 70000";
        let values = if format == Format::I32 { "" } else { values };
        assert_eq!(printed, format!("\"t\": codes: 1 of 264,158 differ{values}\n"), "{format}");
    }
}
