//! Memory in pages of a chosen size.

use std::ops::{Deref, DerefMut};
use std::{fs, io, ptr, slice};

use serde::Serialize;

/// Bytes of a huge page of x86-64.
const HUGE_PAGE: usize = 2 << 20;

/// What the kernel backs a buffer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Pages {
    /// 4 kB, as an ordinary allocation has them.
    #[serde(rename = "4 kB")]
    Small,
    /// 2 MB, asked for with `madvise`.
    #[serde(rename = "2 MB")]
    Huge,
}

impl Pages {
    pub const ALL: [Self; 2] = [Self::Small, Self::Huge];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "4k",
            Self::Huge => "2M",
        }
    }
}

/// An anonymous mapping, every page of it touched, that begins at a multiple of 2 MB.
pub struct Region {
    mapping: *mut libc::c_void,
    mapped: usize,
    begin: *mut u8,
    bytes: usize,
}

impl Region {
    pub fn new(bytes: usize, pages: Pages) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(HUGE_PAGE);
        let mapped = bytes + HUGE_PAGE;
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let mapping = unsafe { libc::mmap(ptr::null_mut(), mapped, protection, flags, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let advice = match pages {
            Pages::Small => libc::MADV_NOHUGEPAGE,
            Pages::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: the range is exactly the mapping made above; the advice changes no contents.
        let advised = unsafe { libc::madvise(mapping, mapped, advice) };
        if advised != 0 && pages == Pages::Huge {
            return Err(io::Error::last_os_error());
        }
        let padding = mapping.cast::<u8>().align_offset(HUGE_PAGE);
        // SAFETY: the padding is below HUGE_PAGE, so the sum stays inside the mapping.
        let begin = unsafe { mapping.cast::<u8>().add(padding) };
        let mut region = Self { mapping, mapped, begin, bytes };
        region.fill(0x5a);
        Ok(region)
    }

    /// Returns the share of the region that huge pages back, as the kernel reports it.
    pub fn huge_share(&self) -> io::Result<f64> {
        let begin = self.begin as usize;
        let end = begin + self.bytes;
        let (mut inside, mut huge, mut resident) = (false, 0usize, 0usize);
        for line in fs::read_to_string("/proc/self/smaps")?.lines() {
            let mut fields = line.split_ascii_whitespace();
            let first = fields.next().unwrap_or_default();
            if let Some((low, high)) = first.split_once('-')
                && let (Ok(low), Ok(high)) = (usize::from_str_radix(low, 16), usize::from_str_radix(high, 16))
            {
                inside = low < end && begin < high;
            }
            let kilobytes = fields.next().and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
            match first {
                "AnonHugePages:" if inside => huge += kilobytes,
                "Rss:" if inside => resident += kilobytes,
                _ => {}
            }
        }
        Ok(huge as f64 / resident.max(1) as f64)
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `begin` and the `bytes` after it lie inside the mapping, which lives as long as `self`, is
        // readable and zero-initialised by the kernel; `&self` allows no writer.
        unsafe { slice::from_raw_parts(self.begin, self.bytes) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes this the only reference.
        unsafe { slice::from_raw_parts_mut(self.begin, self.bytes) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` with this length and nothing borrows from it any more.
        unsafe { libc::munmap(self.mapping, self.mapped) };
    }
}

/// What every contender works on, so that all of them meet the same pages.
pub struct Buffers {
    pub input: Region,
    pub output: Region,
    /// Scale words, where an operation takes or gives them beside the codes.
    pub scales: Region,
    /// Read before a run from memory, so that no run pays for the lines its predecessor left dirty.
    pub evict: Region,
}

impl Buffers {
    /// Makes room for works whose larger side is `memory_bytes`.
    pub fn new(memory_bytes: usize, pages: Pages) -> io::Result<Self> {
        Ok(Self {
            input: Region::new(memory_bytes / 2 * 3, pages)?,
            output: Region::new(memory_bytes / 2 * 3, pages)?,
            scales: Region::new(memory_bytes / 6, pages)?,
            evict: Region::new(64 << 20, pages)?,
        })
    }
}
