//! Every backend gives portable's bytes: over lengths, addresses, words, faults, sizes and float modes.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec;
use std::vec::Vec;

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::{bf16, f16};

use super::{Backend, select};
use crate::{Format, Output, Plan, Tensor, TensorMut, ValueType, Words, WordsMut};

mod decoding;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
))]
mod float_modes;
mod words;

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
