//! Every backend decodes to portable's bytes: lengths, addresses, rows and columns, and every word.

use std::vec;

use super::*;

#[test]
fn lengths() {
    let chooser = Chooser::new();
    let mut numbers = Numbers(1);
    for format in Format::ALL {
        let lengths: &[u64] = if format == Format::Nvfp4 { &NVFP4_COLUMNS } else { &COLUMNS };
        for &columns in lengths {
            let rows = if format == Format::Nvfp4 { 128 } else { 3 };
            let (plan, payload) = payload(format, rows, columns, &mut numbers);
            for &value in outputs(format) {
                for stride in [columns, columns + 3] {
                    let what =
                        std::format!("{} {columns} to {}, stride {stride}", format.name(), value.name());
                    let operation = || decode(plan, &payload, value, stride, 16);
                    if format.scheme().is_some() || format == Format::Nvfp4 || value == ValueType::F32 {
                        let direct = format == Format::Fp32;
                        if direct {
                            chooser.compare(&what, &operation);
                        } else {
                            chooser.compare_without_decline(&what, &operation);
                        }
                    } else {
                        chooser.compare(&what, &operation);
                    }
                }
            }
        }
    }
}

#[test]
fn addresses() {
    let chooser = Chooser::new();
    let mut numbers = Numbers(2);
    for format in Format::ALL {
        // Past one vector, with a cut group, and (for the few that stream) whole rows.
        let (rows, columns) = if format == Format::Nvfp4 { (128, 64) } else { (2, 97) };
        let (plan, payload) = payload(format, rows, columns, &mut numbers);
        for &value in outputs(format) {
            for source in 0..64 {
                let placed = Placed::holding(&payload, source);
                for target in (0..64).step_by(value.bytes()) {
                    if format == Format::Nvfp4 && (source + target) % 5 != 0 && source != target {
                        continue;
                    }
                    let what = std::format!("{} at {source} to {} at {target}", format.name(), value.name());
                    chooser.compare(&what, &|| decode(plan, placed.bytes(), value, columns, target));
                }
            }
        }
    }
}

#[test]
fn large_outputs_are_streamed_to_any_address() {
    let chooser = Chooser::new();
    let mut numbers = Numbers(3);
    for format in Format::ALL {
        for columns in if format == Format::Nvfp4 { [1024, 4096] } else { [1024, 5001] } {
            let rows = if format == Format::Nvfp4 { 128 } else { 37 };
            let (plan, payload) = payload(format, rows, columns, &mut numbers);
            for &value in outputs(format) {
                for target in (0..64).step_by(8) {
                    let what = std::format!("{} {columns} to {} at {target}", format.name(), value.name());
                    chooser.compare(&what, &|| decode(plan, &payload, value, columns, target));
                }
            }
        }
    }
}

#[test]
fn columns_and_lists_of_rows() {
    let chooser = Chooser::new();
    let mut numbers = Numbers(4);
    for format in QUANTIZED {
        let (plan, payload) = payload(format, 128, 320, &mut numbers);
        let tensor = Tensor::new(plan, &payload).unwrap();
        let step = format.column_step();
        for &value in outputs(format) {
            for begin in (0..192).step_by(step.max(16) as usize) {
                for count in [1, 5, 15, 16, 17, 31, 48, 63, 64, 65, 100, 127, 128] {
                    chooser.compare(&std::format!("{} {begin} {count}", format.name()), &|| {
                        let mut out = Placed::new(3 * count as usize * value.bytes(), 8);
                        let rows = tensor.rows(5, 3).unwrap();
                        rows.decode_columns(begin, count, output(value, out.bytes_mut()), count as usize)
                            .unwrap();
                        out.into_bytes()
                    });
                }
            }
            chooser.compare(format.name(), &|| {
                let list = [7, 8, 9, 127, 0, 1, 1, 2, 64];
                let mut out = Placed::new(list.len() * 320 * value.bytes(), 8);
                tensor.decode_rows(&list, output(value, out.bytes_mut()), 320).unwrap();
                out.into_bytes()
            });
        }
    }
}

#[test]
fn every_scale_times_every_code() {
    let chooser = Chooser::new();
    for format in QUANTIZED {
        // Each scale stands over groups that hold all codes.
        let (rows, columns, scales_of_row, repeat) = match format {
            Format::W8G32F16S => (0x7c00 / 32, 32 * 32 * 8, 32, 8),
            Format::Fp8E4M3FnRowBf16S => (0x7f80, 256, 1, 1),
            Format::Nvfp4 => (128, 128 * 16, 128, 1),
            _ => (0x7c00 / 64, 64 * 64, 64, 1),
        };
        let plan = Plan::new(format, format.layout(), &[rows, columns]).unwrap();
        let mut payload = vec![0; plan.payload_bytes() as usize];
        let lanes = 0..rows * columns;
        let code = |lane: u64| lane % columns;
        let divisors: &[u32] = &[
            0x3f80_0000,
            0x3fd9_999a,
            0x0000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x0d80_0000,
            0x1280_0000,
            0x1180_0001,
            0x717f_ffff,
            0x7180_0000,
            0x7f7f_ffff,
            0x4b00_0001,
        ];
        let divisors = if format == Format::Nvfp4 { divisors } else { &[0] };
        for &divisor in divisors {
            let mut tensor = TensorMut::new(plan, &mut payload).unwrap();
            match format {
                Format::Nvfp4 => {
                    let codes: Vec<u8> = (0..rows * columns / 2)
                        .map(|pair| [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe][pair as usize % 8])
                        .collect();
                    let scales: Vec<u8> =
                        (0..rows * scales_of_row).map(|group| (group % 128 % 127) as u8).collect();
                    tensor.pack(Words::Nvfp4 { codes: &codes, scales: &scales, divisor }).unwrap();
                }
                Format::Fp8E4M3FnRowBf16S => {
                    // NaN codes and codes under a zero scale are not legal to pack: written as bytes.
                    for (byte, lane) in payload.iter_mut().zip(lanes.clone()) {
                        *byte = code(lane) as u8;
                    }
                    let at = plan.scales().offset as usize;
                    for (scale, word) in (0u16..).zip(payload[at..].as_chunks_mut().0) {
                        *word = scale.to_le_bytes();
                    }
                }
                _ => {
                    let group = format.column_step();
                    let at = plan.scales().offset as usize;
                    for (scale, words) in (0u16..).zip(payload[at..].chunks_mut(2 * repeat)) {
                        words.as_chunks_mut().0.iter_mut().for_each(|word| *word = scale.to_le_bytes());
                    }
                    let (low, high) = (plan.codes(), plan.high());
                    for index in 0..plan.codes().bytes {
                        payload[(low.offset + index) as usize] =
                            if group == 32 { index as u8 } else { (index % 32 * 0x22 + 0x10) as u8 };
                    }
                    for index in 0..high.bytes {
                        payload[(high.offset + index) as usize] = match format {
                            Format::Q5G64F16S => [0x00, 0x00, 0xff, 0xff][index as usize / 2 % 4],
                            _ => [0x00, 0x55, 0xaa, 0xff][index as usize / 4 % 4],
                        };
                    }
                }
            }
            for &value in outputs(format) {
                let what = std::format!("{} {divisor:08x} to {}", format.name(), value.name());
                chooser.compare(&what, &|| decode(plan, &payload, value, columns, 8));
            }
        }
    }
}

#[test]
fn every_bf16_word() {
    let chooser = Chooser::new();
    let words: Vec<u16> = (0..=u16::MAX).collect();
    let plan = Plan::new(Format::Bf16, Format::Bf16.layout(), &[1, 0x1_0000]).unwrap();
    let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    chooser.compare_without_decline("bf16", &|| decode(plan, &payload, ValueType::F32, 0x1_0000, 4));
    let decoded = decode(plan, &payload, ValueType::F32, 0x1_0000, 0);
    for (word, bits) in words.iter().zip(cast_slice::<_, u32>(&decoded)) {
        assert_eq!(*bits, u32::from(*word) << 16);
    }
}
