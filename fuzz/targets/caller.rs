//! A caller of the C functions: every argument in an allocation of its own, exactly as long as the call says, and
//! then some trouble. What must come of it is worked out from the addresses.

use std::alloc::{Layout, alloc, dealloc};

use ninfer_codec::ffi::{
    Details, NINFER_CODEC_STATUS_MISALIGNED, NINFER_CODEC_STATUS_NULL_POINTER, NINFER_CODEC_STATUS_OK,
    NINFER_CODEC_STATUS_OVERLAP, NINFER_CODEC_STATUS_STRUCT_SIZE, ninfer_codec_status_message,
};

use crate::input::Input;

/// No argument is longer than this; one that claims to be is null.
const MOST: u64 = 256 << 10;
const ALIGNMENT: usize = 64;

struct Block {
    pointer: *mut u8,
    layout: Layout,
}

impl Block {
    /// Exactly `bytes` bytes, so that AddressSanitizer sees one too many.
    fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).unwrap();
        // SAFETY: the layout is not of size zero.
        let pointer = unsafe { alloc(layout) };
        assert!(!pointer.is_null());
        // SAFETY: freshly allocated, of this size.
        unsafe { pointer.write_bytes(0xa5, layout.size()) };
        Self { pointer, layout }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.pointer, self.layout) };
    }
}

/// An argument that is a pointer with a length.
pub struct Argument {
    pub pointer: *mut u8,
    /// Elements, as the call says.
    pub len: u64,
    /// Bytes that are there.
    bytes: usize,
    /// Bytes that the call uses.
    pub used: usize,
    align: usize,
    written: bool,
    /// Whether it says itself how long it is.
    is_struct: bool,
}

enum Trouble {
    None,
    Null(u8),
    Misaligned(u8),
    Alias(u8),
}

pub struct Caller<'i> {
    pub input: Input<'i>,
    blocks: Vec<Block>,
    arguments: Vec<Argument>,
    trouble: Trouble,
    details: *mut Details,
    /// Whether the details lie in another argument.
    details_inside: bool,
}

impl<'i> Caller<'i> {
    pub fn new(mut input: Input<'i>) -> Self {
        let which = input.byte() % 8;
        let trouble = match input.byte() {
            0..160 => Trouble::None,
            160..184 => Trouble::Null(which),
            184..208 => Trouble::Misaligned(which),
            _ => Trouble::Alias(which),
        };
        Self {
            input,
            blocks: vec![],
            arguments: vec![],
            trouble,
            details: std::ptr::null_mut(),
            details_inside: false,
        }
    }

    /// The right length, mostly.
    pub fn length(&mut self, right: u64) -> u64 {
        match self.input.byte() {
            0..210 => right,
            210..220 => right.wrapping_add(1),
            220..230 => right.wrapping_sub(1),
            230..240 => 0,
            _ => self.input.number(),
        }
    }

    /// Adds an argument of `len` elements that begins with these bytes; returns its index.
    pub fn give<T>(&mut self, contents: &[u8], len: u64, written: bool) -> usize {
        self.add::<T>(contents, len, written, false)
    }

    /// Adds structs that are read, in a list of so many bytes.
    pub fn give_structs(&mut self, contents: &[u8]) -> usize {
        self.add::<u8>(contents, contents.len() as u64, false, true)
    }

    fn add<T>(&mut self, contents: &[u8], len: u64, written: bool, is_struct: bool) -> usize {
        let index = self.arguments.len();
        let size = size_of::<T>() as u64;
        let bytes = len.checked_mul(size).filter(|&bytes| bytes <= MOST);
        let mut pointer = std::ptr::null_mut();
        if let Some(bytes) = bytes.map(|bytes| bytes as usize) {
            pointer = match self.trouble {
                Trouble::Null(which) if usize::from(which) == index => pointer,
                Trouble::Alias(which) if usize::from(which) == index && !is_struct => {
                    self.alias(bytes).unwrap_or_else(|| self.fresh(contents, bytes, 0))
                }
                Trouble::Misaligned(which) if usize::from(which) == index => {
                    let shift = 1 + usize::from(self.input.byte() % 7);
                    self.fresh(contents, bytes, shift)
                }
                _ => self.fresh(contents, bytes, 0),
            };
        }
        let bytes = bytes.unwrap_or(0) as usize;
        self.arguments.push(Argument {
            pointer,
            len,
            bytes,
            used: bytes,
            align: align_of::<T>(),
            written,
            is_struct,
        });
        index
    }

    /// A struct that begins with its size, at times a wrong one.
    pub fn give_struct<T>(&mut self) -> usize {
        let index = self.arguments.len();
        let size = match self.input.byte() {
            0..200 => size_of::<T>() as u64,
            200..220 => size_of::<T>() as u64 + u64::from(self.input.byte()),
            220..250 => u64::from(self.input.byte()) % size_of::<T>() as u64,
            _ => self.input.number(),
        };
        let bytes = size.clamp(8, 4096) as usize;
        let shift = match self.trouble {
            Trouble::Misaligned(which) if usize::from(which) == index => {
                1 + usize::from(self.input.byte() % 7)
            }
            _ => 0,
        };
        let pointer = match self.trouble {
            Trouble::Null(which) if usize::from(which) == index => std::ptr::null_mut(),
            _ => self.fresh(&size.min(4096).to_le_bytes(), bytes, shift),
        };
        let used = size_of::<T>().min(bytes);
        self.arguments.push(Argument {
            pointer,
            len: 1,
            bytes,
            used,
            align: align_of::<T>(),
            written: true,
            is_struct: true,
        });
        index
    }

    fn fresh(&mut self, contents: &[u8], bytes: usize, shift: usize) -> *mut u8 {
        let block = Block::new(bytes + shift);
        // SAFETY: inside the block, which is longer by `shift`.
        let pointer = unsafe { block.pointer.add(shift) };
        let len = contents.len().min(bytes);
        // SAFETY: `len` bytes are there on both sides, and the block is new.
        unsafe { pointer.copy_from_nonoverlapping(contents.as_ptr(), len) };
        self.blocks.push(block);
        pointer
    }

    /// A pointer into an earlier argument that has so many bytes from there on.
    fn alias(&mut self, bytes: usize) -> Option<*mut u8> {
        let (which, offset) = (usize::from(self.input.byte()), usize::from(self.input.byte()));
        let count = self.arguments.len().max(1);
        let other = self.arguments.get(which % count)?;
        let room = other.bytes.checked_sub(bytes)?;
        if other.pointer.is_null() {
            return None;
        }
        // SAFETY: `bytes` more lie behind the offset.
        Some(unsafe { other.pointer.add(offset % (room + 1)) })
    }

    pub fn pointer<T>(&self, index: usize) -> *mut T {
        self.arguments[index].pointer.cast()
    }

    pub fn len(&self, index: usize) -> u64 {
        self.arguments[index].len
    }

    /// Says that the call uses only so many bytes of an argument.
    pub fn uses(&mut self, index: usize, bytes: usize) {
        self.arguments[index].used = bytes;
    }

    /// What an argument holds now; nothing where it is null.
    pub fn contents(&self, index: usize) -> Vec<u8> {
        let Argument { pointer, bytes, .. } = self.arguments[index];
        if pointer.is_null() {
            return vec![];
        }
        // SAFETY: so many bytes are there, and nothing else holds a reference.
        unsafe { std::slice::from_raw_parts(pointer, bytes) }.to_vec()
    }

    /// The same as whole values of a type.
    pub fn values<T: bytemuck::Pod>(&self, index: usize) -> Vec<T> {
        let contents = self.contents(index);
        let mut values = vec![T::zeroed(); contents.len() / size_of::<T>()];
        let len = size_of_val(&values[..]);
        bytemuck::cast_slice_mut(&mut values).copy_from_slice(&contents[..len]);
        values
    }

    /// Puts the details somewhere: mostly in a struct of their own. To be called after the last argument.
    pub fn place_details(&mut self) {
        let right = size_of::<Details>();
        let (size, bytes, shift) = match self.input.byte() {
            0..140 => (right, right, 0),
            140..160 => return,
            160..190 => {
                let larger = right + usize::from(self.input.byte());
                (larger, larger, 0)
            }
            190..205 => {
                let less = usize::from(self.input.byte()) % right;
                (less, less.max(8), 0)
            }
            205..220 => (right, right, 1 + usize::from(self.input.byte() % 7)),
            _ => {
                let Some(pointer) = self.alias(right) else { return };
                // What is written there would be a dishonest size.
                let is_struct = |argument: &Argument| {
                    let (begin, end) = (argument.pointer.addr(), argument.pointer.addr() + argument.bytes);
                    argument.is_struct && pointer.addr() < end && begin < pointer.addr() + right
                };
                if self.arguments.iter().any(is_struct) {
                    return;
                }
                // SAFETY: `right` bytes are there.
                unsafe { pointer.cast::<u64>().write_unaligned(right as u64) };
                self.details = pointer.cast();
                self.details_inside = true;
                return;
            }
        };
        self.details = self.fresh(&(size as u64).to_le_bytes(), bytes, shift).cast();
    }

    fn details_size(&self) -> u64 {
        // SAFETY: eight bytes are there at least.
        unsafe { self.details.cast::<u64>().read_unaligned() }
    }

    fn range(pointer: *mut u8, bytes: usize) -> std::ops::Range<usize> {
        pointer.addr()..pointer.addr() + bytes
    }

    /// What must come back, if the codec would do it: a status.
    fn verdict(&self) -> u32 {
        if !self.details.is_null() {
            if !self.details.is_aligned() {
                return NINFER_CODEC_STATUS_MISALIGNED;
            }
            if self.details_size() < size_of::<Details>() as u64 {
                return NINFER_CODEC_STATUS_STRUCT_SIZE;
            }
        }
        let arguments = &self.arguments;
        if arguments.iter().any(|argument| argument.pointer.is_null() && argument.len > 0) {
            return NINFER_CODEC_STATUS_NULL_POINTER;
        }
        if arguments.iter().any(|argument| argument.len > 0 && argument.pointer.addr() % argument.align != 0)
        {
            return NINFER_CODEC_STATUS_MISALIGNED;
        }
        let overlap = |a: &std::ops::Range<usize>, b: &std::ops::Range<usize>| {
            !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end
        };
        let used: Vec<_> =
            arguments.iter().map(|argument| Self::range(argument.pointer, argument.used)).collect();
        for (index, first) in arguments.iter().enumerate() {
            for (other, second) in arguments.iter().enumerate().skip(index + 1) {
                if (first.written || second.written) && overlap(&used[index], &used[other]) {
                    return NINFER_CODEC_STATUS_OVERLAP;
                }
            }
        }
        let details = Self::range(self.details.cast(), size_of::<Details>());
        if !self.details.is_null() && used.iter().any(|used| overlap(used, &details)) {
            return NINFER_CODEC_STATUS_OVERLAP;
        }
        NINFER_CODEC_STATUS_OK
    }

    /// Calls, and holds what came of it against `expected`: the contents of outputs, or nothing where the codec
    /// refuses. `partial` outputs are unspecified where it refuses values.
    pub fn call(
        &mut self,
        expected: Option<Vec<(usize, Vec<u8>)>>,
        partial: &[usize],
        function: impl FnOnce(*mut Details) -> u32,
    ) {
        let verdict = self.verdict();
        let before = self.snapshot();
        let details_before = (!self.details.is_null()).then(|| self.details_size());
        let status = function(self.details);
        // SAFETY: a static string, NUL-terminated.
        assert!(!unsafe { std::ffi::CStr::from_ptr(ninfer_codec_status_message(status)) }.is_empty());
        match (verdict, &expected) {
            (NINFER_CODEC_STATUS_OK, Some(_)) => assert_eq!(status, NINFER_CODEC_STATUS_OK),
            // The order of two faults is the codec's business, but some come first.
            (NINFER_CODEC_STATUS_OK, None) => assert_ne!(status, NINFER_CODEC_STATUS_OK),
            // Details inside an argument have changed it, perhaps to something to be refused before.
            (NINFER_CODEC_STATUS_OVERLAP, Some(_)) if self.details_inside => {
                assert_ne!(status, NINFER_CODEC_STATUS_OK)
            }
            (verdict, Some(_)) => assert_eq!(status, verdict),
            (NINFER_CODEC_STATUS_STRUCT_SIZE, None) => assert_eq!(status, verdict),
            (_, None) => assert_ne!(status, NINFER_CODEC_STATUS_OK),
        }
        let mut wanted = before.clone();
        if let (NINFER_CODEC_STATUS_OK, Some(expected)) = (status, expected) {
            for (index, contents) in expected {
                self.put(&mut wanted, self.arguments[index].pointer, &contents);
            }
        }
        let after = self.snapshot();
        if let Some(size) = details_before
            && self.details.is_aligned()
            && size >= size_of::<Details>() as u64
        {
            let now = self.get(&after, self.details.cast(), size_of::<Details>());
            // Left alone where it overlaps an argument.
            if !(self.details_inside && now == self.get(&wanted, self.details.cast(), size_of::<Details>())) {
                // SAFETY: aligned and long enough.
                let details = unsafe { self.details.read() };
                assert_eq!((details.struct_size, details.status), (size, status));
                self.put(&mut wanted, self.details.cast(), &now);
            }
        }
        if status != NINFER_CODEC_STATUS_OK && verdict == NINFER_CODEC_STATUS_OK {
            for &index in partial {
                let Argument { pointer, bytes, .. } = self.arguments[index];
                if !pointer.is_null() {
                    let now = self.get(&after, pointer, bytes);
                    self.put(&mut wanted, pointer, &now);
                }
            }
        }
        assert!(
            after == wanted,
            "status {status}: written where nothing should be, or otherwise than by the codec"
        );
    }

    fn snapshot(&self) -> Vec<Vec<u8>> {
        let bytes = |block: &Block| {
            // SAFETY: the whole block, to which nothing else holds a reference.
            unsafe { std::slice::from_raw_parts(block.pointer, block.layout.size()) }.to_vec()
        };
        self.blocks.iter().map(bytes).collect()
    }

    /// The block of a pointer and the offset in it.
    fn find(&self, pointer: *mut u8) -> (usize, usize) {
        let position = self.blocks.iter().enumerate().find_map(|(index, block)| {
            let offset = pointer.addr().checked_sub(block.pointer.addr())?;
            (offset < block.layout.size()).then_some((index, offset))
        });
        position.expect("a pointer into a block")
    }

    fn put(&self, blocks: &mut [Vec<u8>], pointer: *mut u8, contents: &[u8]) {
        if !contents.is_empty() {
            let (index, offset) = self.find(pointer);
            blocks[index][offset..offset + contents.len()].copy_from_slice(contents);
        }
    }

    fn get(&self, blocks: &[Vec<u8>], pointer: *mut u8, bytes: usize) -> Vec<u8> {
        if bytes == 0 {
            return vec![];
        }
        let (index, offset) = self.find(pointer);
        blocks[index][offset..offset + bytes].to_vec()
    }
}
