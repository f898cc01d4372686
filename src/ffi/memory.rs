//! Callers' pointers: what is checked of them, and the only places where slices are made of them. Private: it
//! has no meaning beyond this module.
//!
//! A slice is made over what an operation uses and nothing else, so that calls on disjoint row ranges never
//! hold slices over each other's bytes.

use core::alloc::Layout as TypeLayout;
use core::ffi::c_void;

use half::{bf16, f16};

use super::call::Fault;
use crate::error::Error;
use crate::layout::{Plan, Span};
use crate::tensor::{Tensor, TensorMut};
use crate::value::{Output, Source, ValueType};

/// The longest slice that may exist, in bytes.
const MAX_BYTES: u64 = isize::MAX as u64;

/// An argument of the caller's: a pointer that is null only where the length is 0.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    pointer: *mut u8,
    len: u64,
    argument: u64,
    written: bool,
}

/// What a call uses of a buffer: its first `elements` elements.
#[derive(Clone, Copy)]
pub(super) struct Used {
    buffer: Buffer,
    element: TypeLayout,
    elements: u64,
}

impl Buffer {
    /// An argument that is only read; `argument` is its position in the function's list.
    pub(super) fn input<T>(argument: u64, pointer: *const T, len: u64) -> Result<Self, Fault> {
        Self { pointer: pointer.cast_mut().cast(), len, argument, written: false }.not_null()
    }

    /// An argument that is written.
    pub(super) fn output<T>(argument: u64, pointer: *mut T, len: u64) -> Result<Self, Fault> {
        Self { pointer: pointer.cast(), len, argument, written: true }.not_null()
    }

    fn not_null(self) -> Result<Self, Fault> {
        if self.pointer.is_null() && self.len > 0 {
            return Err(Fault::NullPointer { argument: self.argument });
        }
        Ok(self)
    }

    /// Elements as the caller counts them.
    pub(super) const fn len(self) -> u64 {
        self.len
    }

    /// Says that all elements are used.
    pub(super) fn all<T>(self) -> Used {
        self.first(TypeLayout::new::<T>(), self.len)
    }

    /// Says that the first `elements` elements are used.
    pub(super) const fn first(self, element: TypeLayout, elements: u64) -> Used {
        Used { buffer: self, element, elements }
    }

    /// Refuses a payload that is not as long as its plan.
    pub(super) fn check_payload(self, plan: &Plan) -> Result<(), Error> {
        let (expected, actual) = (plan.payload_bytes(), self.len);
        if expected == actual { Ok(()) } else { Err(Error::PayloadLength { expected, actual }) }
    }

    /// Refuses a length that no buffer can have.
    pub(super) fn check_size(self, element: TypeLayout) -> Result<(), Fault> {
        match self.len.checked_mul(element.size() as u64) {
            Some(bytes) if bytes <= MAX_BYTES => Ok(()),
            _ => Err(Fault::TooLarge { argument: self.argument, size: self.len }),
        }
    }

    /// Reads an element, whatever the alignment.
    ///
    /// # Safety
    /// The buffer has more than `index` elements of type `T`, and `check_size` has passed.
    pub(super) unsafe fn read<T: Copy>(self, index: u64) -> T {
        // SAFETY: the element lies inside the caller's buffer.
        unsafe { self.read_at(index.wrapping_mul(size_of::<T>() as u64)) }
    }

    /// Reads a `T` that begins at a byte, whatever the alignment.
    ///
    /// # Safety
    /// It lies inside the buffer, whose size was checked.
    pub(super) unsafe fn read_at<T: Copy>(self, byte: u64) -> T {
        // SAFETY: the byte lies inside the caller's buffer, so the offset fits `isize`.
        let pointer = unsafe { self.pointer.add(byte as usize) };
        // SAFETY: the `T` is readable, and any alignment will do.
        unsafe { pointer.cast::<T>().read_unaligned() }
    }

    /// Writes the only element of a checked output.
    ///
    /// # Safety
    /// The buffer is one writable `T`, and `check_memory` has passed.
    pub(super) unsafe fn write<T>(self, value: T) {
        // SAFETY: the pointer is not null, is aligned, and points to one writable `T`.
        unsafe { self.pointer.cast::<T>().write(value) }
    }

    /// Elements `[start, start + len)` to read.
    ///
    /// # Safety
    /// They are among the elements that `check_memory` has passed as used, of type `T`, and nothing writes
    /// them while the slice lives.
    pub(super) unsafe fn slice<'a, T>(self, start: u64, len: u64) -> &'a [T] {
        if len == 0 {
            return &[];
        }
        // SAFETY: the range lies inside the caller's buffer, so its start does, and offsets fit `isize`.
        let pointer = unsafe { self.pointer.cast::<T>().add(start as usize) };
        // SAFETY: not null as `len > 0`; aligned, inside one buffer and at most `isize::MAX` bytes, as
        // `check_memory` has passed; initialised, as the caller says of inputs.
        unsafe { core::slice::from_raw_parts(pointer, len as usize) }
    }

    /// Elements `[start, start + len)` to write.
    ///
    /// # Safety
    /// As for `slice`; the buffer is an output, nothing else touches the elements while the slice lives, and
    /// any bytes are a `T`.
    pub(super) unsafe fn slice_mut<'a, T>(self, start: u64, len: u64) -> &'a mut [T] {
        if len == 0 {
            return &mut [];
        }
        // SAFETY: the range lies inside the caller's buffer, so its start does, and offsets fit `isize`.
        let pointer = unsafe { self.pointer.cast::<T>().add(start as usize) };
        // SAFETY: not null as `len > 0`; aligned, inside one buffer and at most `isize::MAX` bytes, as
        // `check_memory` has passed; the elements are plain numbers of the caller's that are only written.
        unsafe { core::slice::from_raw_parts_mut(pointer, len as usize) }
    }

    /// Values `[start, start + len)` of a type known by its id, to read.
    ///
    /// # Safety
    /// As for `slice`.
    pub(super) unsafe fn source<'a>(self, value: ValueType, start: u64, len: u64) -> Source<'a> {
        match value {
            // SAFETY: the caller's promise, for the type that `value` names.
            ValueType::F32 => Source::F32(unsafe { self.slice::<f32>(start, len) }),
            // SAFETY: as above.
            ValueType::Bf16 => Source::Bf16(unsafe { self.slice::<bf16>(start, len) }),
            // SAFETY: as above.
            ValueType::F16 => Source::F16(unsafe { self.slice::<f16>(start, len) }),
            // SAFETY: as above.
            ValueType::F64 => Source::F64(unsafe { self.slice::<f64>(start, len) }),
        }
    }

    /// Room for values `[start, start + len)` of a type known by its id.
    ///
    /// # Safety
    /// As for `slice_mut`.
    pub(super) unsafe fn values<'a>(self, value: ValueType, start: u64, len: u64) -> Output<'a> {
        match value {
            // SAFETY: the caller's promise, for the type that `value` names.
            ValueType::F32 => Output::F32(unsafe { self.slice_mut::<f32>(start, len) }),
            // SAFETY: as above.
            ValueType::Bf16 => Output::Bf16(unsafe { self.slice_mut::<bf16>(start, len) }),
            // SAFETY: as above.
            ValueType::F16 => Output::F16(unsafe { self.slice_mut::<f16>(start, len) }),
            // SAFETY: as above.
            ValueType::F64 => Output::F64(unsafe { self.slice_mut::<f64>(start, len) }),
        }
    }

    /// Views rows `[begin, end)`, a checked range, of a payload as long as its plan.
    ///
    /// # Safety
    /// `check_size` has passed, and nothing writes the rows' bytes while the view lives.
    pub(super) unsafe fn tensor<'a>(self, plan: Plan, begin: u64, end: u64) -> Tensor<'a> {
        let get = |span: Span| {
            // SAFETY: the plan's spans lie inside the payload, which is as long as the plan says; bytes have
            // no alignment.
            unsafe { self.slice::<u8>(span.offset, span.bytes) }
        };
        Tensor::from_spans(plan, begin, end, get)
    }

    /// Views rows `[begin, end)`, a checked range of whole tiles, to write.
    ///
    /// # Safety
    /// `check_memory` has passed the payload as an output, and nothing else touches what belongs to the range
    /// while the view lives.
    pub(super) unsafe fn tensor_mut<'a>(self, plan: Plan, begin: u64, end: u64) -> TensorMut<'a> {
        let get = |span: Span| {
            // SAFETY: the plan's spans lie inside the payload and are disjoint, within one range of rows as
            // between ranges; bytes have no alignment, and any are a `u8`.
            unsafe { self.slice_mut::<u8>(span.offset, span.bytes) }
        };
        TensorMut::from_spans(plan, begin, end, get)
    }
}

impl Used {
    /// First byte and the one past the last, or nothing where the address space ends before that.
    fn range(&self) -> Option<(usize, usize)> {
        let bytes = usize::try_from(self.elements).ok()?.checked_mul(self.element.size())?;
        let start = self.buffer.pointer.addr();
        Some((start, start.checked_add(bytes)?))
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self.range(), other.range()) {
            (Some((begin, end)), Some((other_begin, other_end))) => {
                begin < end && other_begin < other_end && begin < other_end && other_begin < end
            }
            _ => true,
        }
    }

    fn is_aligned(&self) -> bool {
        self.buffer.len == 0 || self.buffer.pointer.addr().is_multiple_of(self.element.align())
    }
}

/// Checks the sizes, then the alignment, then the overlap of what a call uses, as far as each can be known.
pub(super) fn check_memory(used: &[Used], details: Option<&Used>) -> Result<(), Fault> {
    for buffer in used {
        buffer.buffer.check_size(buffer.element)?;
        if buffer.range().is_none() {
            let (argument, size) = (buffer.buffer.argument, buffer.buffer.len);
            return Err(Fault::TooLarge { argument, size });
        }
    }
    if let Some(buffer) = used.iter().find(|buffer| !buffer.is_aligned()) {
        return Err(Fault::Misaligned { argument: buffer.buffer.argument });
    }
    let mut rest = used;
    while let Some((first, others)) = rest.split_first() {
        let clash = others
            .iter()
            .find(|other| (first.buffer.written || other.buffer.written) && first.overlaps(other));
        if let Some(other) = clash {
            return Err(Fault::Overlap { argument: other.buffer.argument });
        }
        rest = others;
    }
    match details {
        Some(details) if used.iter().any(|buffer| buffer.overlaps(details)) => Err(Fault::DetailsOverlap),
        _ => Ok(()),
    }
}

/// The layout of a value of a type.
pub(super) const fn layout_of(value: ValueType) -> TypeLayout {
    match value {
        ValueType::F32 => TypeLayout::new::<f32>(),
        ValueType::Bf16 | ValueType::F16 => TypeLayout::new::<u16>(),
        ValueType::F64 => TypeLayout::new::<f64>(),
    }
}

/// A pointer to a struct that begins with its `struct_size`, which must be that of `T` at least.
///
/// # Safety
/// `pointer` is null, or `struct_size` is readable and the struct has as many bytes as that says.
pub(super) unsafe fn struct_size<T>(argument: u64, pointer: *const T) -> Result<u64, Fault> {
    let first = Buffer::input(argument, pointer.cast::<c_void>(), 1)?;
    // SAFETY: a struct has at least its first member, a u64.
    let actual = unsafe { first.read::<u64>(0) };
    let expected = size_of::<T>() as u64;
    if actual < expected { Err(Fault::StructSize { argument, expected, actual }) } else { Ok(actual) }
}

/// Fills a struct of the caller's, all but its `struct_size`.
///
/// # Safety
/// `pointer` points to an aligned, writable `T`, which begins with a u64 and has no padding.
pub(super) unsafe fn fill_struct<T>(pointer: *mut T, value: &T) {
    const FIRST: usize = size_of::<u64>();
    let bytes = size_of::<T>().saturating_sub(FIRST);
    let from = core::ptr::from_ref(value).cast::<u8>().wrapping_add(FIRST);
    let to = pointer.cast::<u8>().wrapping_add(FIRST);
    // SAFETY: both are the `bytes` bytes of a `T` after its first member, and a local cannot overlap a
    // struct of the caller's.
    unsafe { core::ptr::copy_nonoverlapping(from, to, bytes) }
}
