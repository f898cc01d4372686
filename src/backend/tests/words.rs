//! Every backend finds the same faults, and unpacks the same words.

use super::*;

#[test]
fn faults_are_found_alike() {
    let chooser = Chooser::new();
    let mut numbers = Numbers(5);
    for format in Format::ALL {
        for columns in if format == Format::Nvfp4 { [128, 256] } else { [256, 200] } {
            let plan = Plan::new(format, format.layout(), &[128, columns]).unwrap();
            let clean = clean_payload(plan, &mut numbers);
            chooser.compare(format.name(), &|| Tensor::new(plan, &clean).unwrap().validate());
            assert_eq!(Tensor::new(plan, &clean).unwrap().validate(), Ok(()), "{}", format.name());
            for _ in 0..600 {
                let mut faulty = clean.clone();
                for _ in 0..1 + numbers.next() % 3 {
                    // Every plane gets its share, however short it is.
                    let plane = [plan.codes(), plan.high(), plan.scales()][numbers.next() as usize % 3];
                    let at = plane.offset + numbers.next() % (plane.bytes + 1);
                    let at = (at as usize).min(faulty.len() - 1);
                    faulty[at] = [0x00, 0x7f, 0x80, 0xff, 0x7c, 0xfc][numbers.next() as usize % 6];
                }
                let tensor = Tensor::new(plan, &faulty).unwrap();
                chooser.compare(format.name(), &|| {
                    let mut out = vec![f32::NAN; (128 * columns) as usize];
                    let decoded = tensor.decode(&mut out[..], columns as usize);
                    let some = tensor.rows(3, 40).unwrap();
                    (
                        tensor.validate(),
                        some.validate(),
                        some.validate_columns(64, 64),
                        decoded,
                        out.iter().map(|value| value.to_bits()).collect::<Vec<_>>(),
                    )
                });
            }
        }
    }
}

#[test]
fn scans_agree_with_the_exact_checks() {
    use crate::backend::{Scan, scan};
    use crate::format::{binary16, direct, e4m3fn};
    /// All words, each alone among legal ones at several places, against what says whether it is legal.
    fn agree(kind: Scan, width: usize, legal_word: u16, is_legal: impl Fn(u16) -> bool) {
        for word in 0..=if width == 1 { 0xff } else { u16::MAX } {
            for (words, at) in [(1, 0), (67, 0), (67, 40), (67, 66)] {
                let mut all = vec![legal_word; words];
                all[at] = word;
                let bytes: Vec<u8> =
                    all.iter().flat_map(|word| word.to_le_bytes()[..width].to_vec()).collect();
                assert_eq!(scan(kind, &bytes), is_legal(word), "{word:04x} at {at} of {words}");
            }
        }
    }
    let chooser = Chooser::new();
    let mut backends = chooser.vector_backends();
    backends.push(Backend::Portable);
    for backend in backends {
        assert!(select(backend));
        let is_scale = |word| binary16::check_scale(word).is_ok();
        agree(Scan::GroupedScales, 2, 0x3c00, is_scale);
        agree(Scan::NonzeroGroupedScales, 2, 0x3c00, |word| word != 0 && is_scale(word));
        agree(Scan::NonzeroRowScales, 2, 0x3f80, |word| word != 0 && direct::bf16_check_scale(word).is_ok());
        agree(Scan::BlockScales, 1, 0, |word| e4m3fn::check_scale(word as u8).is_ok());
        agree(Scan::W8Codes, 1, 0x7f, |word| word != 0x80);
        agree(Scan::Fp8Codes, 1, 0x80, |word| e4m3fn::is_legal_code(word as u8));
        agree(Scan::Zeros, 1, 0, |word| word == 0);
    }
}

#[test]
fn unpacked_words_and_new_payloads() {
    let chooser = Chooser::new();
    let mut numbers = Numbers(6);
    for format in Format::ALL {
        let lengths: &[u64] = if format == Format::Nvfp4 { &NVFP4_COLUMNS } else { &COLUMNS };
        for &columns in lengths {
            let (plan, payload) = payload(format, 256, columns, &mut numbers);
            for address in [0, 1, 16, 63] {
                let placed = Placed::holding(&payload, address);
                let tensor = Tensor::new(plan, placed.bytes()).unwrap();
                let what = std::format!("{} {columns} at {address}", format.name());
                chooser.compare(&what, &|| unpack(&tensor, address));
                let tile: Vec<u64> = (128..256).collect();
                let mixed: Vec<u64> =
                    (0..128).map(|at| at * 37 % 256 / 3 * 3 + at % 3).map(|row| row % 256).collect();
                for rows in [tile, mixed] {
                    chooser.compare(&what, &|| {
                        let mut out =
                            Placed::new(plan.with_rows(128).unwrap().payload_bytes() as usize, address);
                        tensor.gather(&rows, out.bytes_mut()).unwrap();
                        out.into_bytes()
                    });
                }
                chooser.compare(&what, &|| {
                    let mut out = Placed::new(payload.len(), address);
                    tensor.slice(out.bytes_mut()).unwrap();
                    out.into_bytes()
                });
            }
        }
    }
}

fn unpack(tensor: &Tensor<'_>, address: usize) -> (Vec<u8>, Vec<u8>, u32) {
    let plan = tensor.plan();
    let (codes, scales) = crate::words::word_lengths(plan, tensor.count()).unwrap();
    let (codes, scales) = (codes as usize, scales as usize);
    let placed = |words: usize, bytes: usize| Placed::new(words * bytes, address / bytes * bytes);
    fn words<T: Pod>(placed: &mut Placed) -> &mut [T] {
        cast_slice_mut(placed.bytes_mut())
    }
    let code_bytes = match plan.format() {
        Format::Bf16 => 2,
        Format::Fp32 | Format::I32 => 4,
        _ => 1,
    };
    let scale_bytes = if plan.format() == Format::Nvfp4 { 1 } else { 2 };
    let (mut code_words, mut scale_words) = (placed(codes, code_bytes), placed(scales, scale_bytes));
    let mut divisor = 0;
    let (codes, scales) = (&mut code_words, &mut scale_words);
    tensor
        .unpack(match plan.format() {
            Format::Bf16 => WordsMut::Bf16(words(codes)),
            Format::Fp32 => WordsMut::Fp32(words(codes)),
            Format::I32 => WordsMut::I32(words(codes)),
            Format::Nvfp4 => {
                WordsMut::Nvfp4 { codes: words(codes), scales: words(scales), divisor: &mut divisor }
            }
            Format::Fp8E4M3FnRowBf16S => WordsMut::Fp8Row { codes: words(codes), scales: words(scales) },
            _ => WordsMut::Grouped { codes: words(codes), scales: words(scales) },
        })
        .unwrap();
    (code_words.into_bytes(), scale_words.into_bytes(), divisor)
}
