//! Every backend gives portable's bytes: over lengths, addresses, words, faults, sizes and float modes.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec;
use std::vec::Vec;

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::{bf16, f16};

use super::{Backend, select};
use crate::{Format, Output, Plan, Tensor, TensorMut, ValueType, Words, WordsMut};

#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
))]
mod float_modes;

std::thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static PORTABLE: Cell<u64> = const { Cell::new(0) };
}

pub(super) fn count_call() {
    CALLS.set(CALLS.get() + 1);
}

pub(super) fn count_portable() {
    PORTABLE.set(PORTABLE.get() + 1);
}

/// One test at a time chooses backends.
static CHOICE: Mutex<()> = Mutex::new(());

struct Chooser<'a>(#[expect(dead_code, reason = "held, not read")] MutexGuard<'a, ()>);

impl Chooser<'_> {
    fn new() -> Self {
        Self(CHOICE.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The vector backends of this processor. What it has must be found; what it lacks is named.
    fn vector_backends(&self) -> Vec<Backend> {
        Backend::ALL
            .iter()
            .copied()
            .filter(|&backend| backend != Backend::Portable)
            .filter(|&backend| {
                let found = select(backend);
                #[cfg(target_arch = "x86_64")]
                {
                    let avx2 = std::is_x86_feature_detected!("avx2")
                        && std::is_x86_feature_detected!("fma")
                        && std::is_x86_feature_detected!("f16c");
                    let expected = match backend {
                        Backend::Avx512 => {
                            avx2 && std::is_x86_feature_detected!("avx512f")
                                && std::is_x86_feature_detected!("avx512bw")
                                && std::is_x86_feature_detected!("avx512dq")
                                && std::is_x86_feature_detected!("avx512vl")
                                && std::is_x86_feature_detected!("avx512vbmi")
                        }
                        _ => avx2,
                    };
                    assert_eq!(found, expected, "{}", backend.name());
                }
                #[cfg(target_arch = "aarch64")]
                assert!(found && std::arch::is_aarch64_feature_detected!("neon"), "{}", backend.name());
                if !found {
                    std::eprintln!("SKIPPED: this processor has no {}", backend.name());
                }
                found
            })
            .collect()
    }

    /// Runs an operation under portable and under every vector backend, and compares what it gives.
    fn compare<T: PartialEq + std::fmt::Debug>(&self, what: &str, operation: &dyn Fn() -> T) {
        assert!(select(Backend::Portable));
        let expected = operation();
        for backend in self.vector_backends() {
            assert!(select(backend));
            // Not `assert_eq!`: the buffers are large.
            assert!(operation() == expected, "{what}: {} differs from portable", backend.name());
            if let Some(same) = without_bf16(backend, || operation() == expected) {
                assert!(same, "{what}: avx512 without its bf16 differs from portable");
            }
        }
    }

    /// [`Chooser::compare`], and no vector backend leaves the work to portable.
    fn compare_without_decline<T: PartialEq + std::fmt::Debug>(&self, what: &str, operation: &dyn Fn() -> T) {
        self.compare(what, &|| {
            let portable = super::active() == Backend::Portable;
            CALLS.set(0);
            PORTABLE.set(0);
            let result = operation();
            // A target without vector backends asks none.
            if Backend::ALL.len() > 1 {
                assert!(CALLS.get() > 0, "{what}: no backend was asked");
                assert_eq!(PORTABLE.get() > 0, portable, "{what}: declined");
            }
            result
        });
    }
}

/// What a test finds where the processor's bf16 instruction is hidden, if the backend uses it.
fn without_bf16<T>(backend: Backend, test: impl FnOnce() -> T) -> Option<T> {
    #[cfg(target_arch = "x86_64")]
    if backend == Backend::Avx512 {
        super::x86_64::bf16::hide(true);
        let found = test();
        super::x86_64::bf16::hide(false);
        return Some(found);
    }
    let _ = (backend, test);
    None
}

impl Drop for Chooser<'_> {
    fn drop(&mut self) {
        if let Some(best) = Backend::ALL.iter().rev().find(|backend| backend.is_available()) {
            select(*best);
        }
    }
}

const QUANTIZED: [Format; 6] = [
    Format::Q4G64F16S,
    Format::Q5G64F16S,
    Format::Q6G64F16S,
    Format::W8G32F16S,
    Format::Nvfp4,
    Format::Fp8E4M3FnRowBf16S,
];

/// Group of 16, 32 and 64, padding of 128, 256; vectors of 8, 16, 32 and 64 lanes: each and its neighbours.
const COLUMNS: [u64; 24] =
    [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 192, 255, 256, 257, 1000, 4133];
/// What NVFP4 has of these.
const NVFP4_COLUMNS: [u64; 5] = [64, 128, 192, 256, 1024];

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 24) as u8).collect()
    }
}

/// Bytes at a chosen address, between canaries.
struct Placed {
    buffer: Vec<u8>,
    at: usize,
    len: usize,
}

const CANARIES: usize = 64;
const DIRT: u8 = 0xa5;

impl Placed {
    fn new(len: usize, address_modulo_64: usize) -> Self {
        let buffer = vec![DIRT; len + 2 * CANARIES + 64];
        let at = CANARIES + (buffer[CANARIES..].as_ptr().align_offset(64) + address_modulo_64) % 64;
        Self { buffer, at, len }
    }

    fn holding(bytes: &[u8], address_modulo_64: usize) -> Self {
        let mut placed = Self::new(bytes.len(), address_modulo_64);
        placed.bytes_mut().copy_from_slice(bytes);
        placed
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[self.at..][..self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.at..][..self.len]
    }

    /// The bytes, after a look at the canaries.
    fn into_bytes(self) -> Vec<u8> {
        assert!(self.buffer[..self.at].iter().all(|&byte| byte == DIRT), "written before the output");
        assert!(
            self.buffer[self.at + self.len..].iter().all(|&byte| byte == DIRT),
            "written past the output"
        );
        self.bytes().to_vec()
    }
}

/// A payload with every kind of legal word, and codes under zero scales; padding is dirty on purpose.
fn payload(format: Format, rows: u64, columns: u64, numbers: &mut Numbers) -> (Plan, Vec<u8>) {
    let plan = Plan::new(format, format.layout(), &[rows, columns]).unwrap();
    let mut bytes = numbers.bytes(plan.payload_bytes() as usize);
    let scales = plan.scales();
    let (begin, end) = (scales.offset as usize, (scales.offset + scales.bytes) as usize);
    match format {
        Format::Q4G64F16S | Format::Q5G64F16S | Format::Q6G64F16S | Format::W8G32F16S => {
            for word in bytes[begin..end].as_chunks_mut().0 {
                *word = [0x0000, 0x0001, 0x7bff, (numbers.next() % 0x7c00) as u16]
                    [(numbers.next() % 16).min(3) as usize]
                    .to_le_bytes();
            }
        }
        Format::Nvfp4 => {
            bytes[begin..end].iter_mut().for_each(|word| *word %= 0x7f);
            bytes[end..].copy_from_slice(&1.7f32.to_le_bytes());
        }
        Format::Fp8E4M3FnRowBf16S => {
            for word in bytes[begin..end].as_chunks_mut().0 {
                *word = (0x3800 + (numbers.next() % 0x0c00) as u16).to_le_bytes();
            }
        }
        Format::Bf16 | Format::Fp32 | Format::I32 => {}
    }
    (plan, bytes)
}

fn outputs(format: Format) -> &'static [ValueType] {
    match format {
        Format::Bf16 => &[ValueType::F32, ValueType::Bf16],
        Format::Fp32 => &[ValueType::F32],
        Format::I32 => &[],
        Format::Nvfp4 => &[ValueType::F32, ValueType::Bf16, ValueType::F16, ValueType::F64],
        _ => &[ValueType::F32, ValueType::Bf16, ValueType::F16],
    }
}

fn output(value: ValueType, bytes: &mut [u8]) -> Output<'_> {
    match value {
        ValueType::F32 => Output::F32(cast_slice_mut(bytes)),
        ValueType::Bf16 => Output::Bf16(cast_slice_mut::<_, bf16>(bytes)),
        ValueType::F16 => Output::F16(cast_slice_mut::<_, f16>(bytes)),
        ValueType::F64 => Output::F64(cast_slice_mut(bytes)),
    }
}

/// Decodes all rows to an output at an address; the gaps between rows and the surroundings must stay dirty.
fn decode(plan: Plan, payload: &[u8], value: ValueType, stride: u64, address: usize) -> Vec<u8> {
    let len = ((plan.rows() - 1) * stride + plan.columns()) as usize;
    let mut out = Placed::new(len * value.bytes(), address);
    Tensor::new(plan, payload).unwrap().decode(output(value, out.bytes_mut()), stride as usize).unwrap();
    out.into_bytes()
}

#[test]
fn the_best_backend_is_chosen() {
    let _chooser = Chooser::new();
    let best = Backend::ALL.iter().rev().find(|backend| backend.is_available());
    let chosen = super::detect::detect();
    assert_eq!(Some(&chosen), if cfg!(ninfer_codec_force_portable) { Backend::ALL.first() } else { best });
}

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
    use super::{Scan, scan};
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

/// A payload without a violation; a zero scale here and there.
fn clean_payload(plan: Plan, numbers: &mut Numbers) -> Vec<u8> {
    let mut payload = vec![0; plan.payload_bytes() as usize];
    let mut tensor = TensorMut::new(plan, &mut payload).unwrap();
    let (rows, columns) = (plan.rows(), plan.columns());
    let elements = (rows * columns) as usize;
    match plan.format() {
        Format::Nvfp4 => {
            let codes = numbers.bytes(elements / 2);
            let scales: Vec<u8> = numbers.bytes(elements / 16).iter().map(|byte| byte % 0x7f).collect();
            tensor.pack(Words::Nvfp4 { codes: &codes, scales: &scales, divisor: 0x4000_0000 }).unwrap();
        }
        Format::Fp8E4M3FnRowBf16S => {
            let scales: Vec<u16> = (0..rows as u16).map(|row| row % 3 * 0x2000).collect();
            let codes: Vec<u8> = (0..elements)
                .map(|at| if scales[at / columns as usize] == 0 { 0x80 } else { numbers.next() as u8 & 0xf7 })
                .collect();
            tensor.pack(Words::Fp8Row { codes: &codes, scales: &scales }).unwrap();
        }
        Format::Bf16 | Format::Fp32 | Format::I32 => payload = numbers.bytes(plan.payload_bytes() as usize),
        _ => {
            let weights: Vec<f32> = (0..elements)
                .map(|at| if at / 100 % 7 == 0 { 0.0 } else { (numbers.next() % 2001) as f32 - 1000.0 })
                .collect();
            tensor.quantize(&weights[..], columns as usize).unwrap();
        }
    }
    payload
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
