//! Ids, names, descriptors, versions.

use core::ffi::{CStr, c_char};

use super::call::{Fault, format as format_of, layout as layout_of};
use super::memory::{Buffer, check_memory, fill_struct, struct_size};
use super::status::{Details, NINFER_CODEC_STATUS_OK, NINFER_CODEC_STATUS_UNKNOWN_ENCODING};
use crate::error::UnknownName;
use crate::format::{EncoderProfile, Format};
use crate::layout::{Layout, Plan, ResourceEncoding};

/// Version of this header: major * 1000000 + minor * 1000 + patch. `ninfer_codec_version` gives the library's.
pub const NINFER_CODEC_VERSION: u32 = 1000;
/// Counts the versions of this interface that do not work with programs built for an earlier one; also the
/// number in the shared library's SONAME.
pub const NINFER_CODEC_ABI_VERSION: u32 = 1;

/// bfloat16 words. Layout contiguous-le-v1.
pub const NINFER_CODEC_FORMAT_BF16: u32 = 1;
/// IEEE-754 binary32 words. Layout contiguous-le-v1.
pub const NINFER_CODEC_FORMAT_FP32: u32 = 2;
/// 32-bit two's-complement words. Layout contiguous-le-v1.
pub const NINFER_CODEC_FORMAT_I32: u32 = 3;
/// 4-bit signed codes, one binary16 multiplier for 64. Layout row-split-k128-v1.
pub const NINFER_CODEC_FORMAT_Q4G64_F16S: u32 = 4;
/// 5-bit signed codes, one binary16 multiplier for 64. Layout row-split-k128-v1.
pub const NINFER_CODEC_FORMAT_Q5G64_F16S: u32 = 5;
/// 6-bit signed codes, one binary16 multiplier for 64. Layout row-split-k128-v1.
pub const NINFER_CODEC_FORMAT_Q6G64_F16S: u32 = 6;
/// 8-bit signed codes, one binary16 multiplier for 32. Layout row-split-k128-v1.
pub const NINFER_CODEC_FORMAT_W8G32_F16S: u32 = 7;
/// E2M1 codes, one E4M3FN scale for 16, one FP32 divisor. Layout blockscale-k16-m128x4-v1.
pub const NINFER_CODEC_FORMAT_NVFP4: u32 = 8;
/// E4M3FN codes, one BF16 multiplier a row. Layout row-scale-v1.
pub const NINFER_CODEC_FORMAT_FP8_E4M3FN_ROW_BF16S: u32 = 9;

/// Words in C order, no padding.
pub const NINFER_CODEC_LAYOUT_CONTIGUOUS_LE_V1: u32 = 1;
/// Base codes, high bits, scales; K padded to 128.
pub const NINFER_CODEC_LAYOUT_ROW_SPLIT_K128_V1: u32 = 2;
/// Code pairs, swizzled scales, divisor.
pub const NINFER_CODEC_LAYOUT_BLOCKSCALE_K16_M128X4_V1: u32 = 3;
/// Codes, then a scale a row.
pub const NINFER_CODEC_LAYOUT_ROW_SCALE_V1: u32 = 4;

/// The canonical encoder of the four grouped formats, MAXABS_F16_RECIP_RNE_V1.
pub const NINFER_CODEC_PROFILE_MAXABS_F16_RECIP_RNE_V1: u32 = 1;

/// A resource that is no tensor: a nonempty byte string as it is.
pub const NINFER_CODEC_ENCODING_RAW_BYTES_V1: u32 = 1;

/// One floating-point word an element.
pub const NINFER_CODEC_CATEGORY_DIRECT_FLOAT: u32 = 1;
/// One integer word an element.
pub const NINFER_CODEC_CATEGORY_DIRECT_INTEGER: u32 = 2;
/// Signed codes and one multiplier a group.
pub const NINFER_CODEC_CATEGORY_GROUPED: u32 = 3;
/// Floating-point codes, a scale a block and a divisor.
pub const NINFER_CODEC_CATEGORY_BLOCK_SCALED: u32 = 4;
/// Floating-point codes and a multiplier a row.
pub const NINFER_CODEC_CATEGORY_ROW_SCALED: u32 = 5;

/// Scale words of IEEE-754 binary16.
pub const NINFER_CODEC_SCALE_F16: u32 = 1;
/// Scale words of bfloat16.
pub const NINFER_CODEC_SCALE_BF16: u32 = 2;
/// Scale words of E4M3FN.
pub const NINFER_CODEC_SCALE_E4M3FN: u32 = 3;

/// The fixed facts of a format. A fact that the format does not have is 0. Set `struct_size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatDescriptor {
    /// In: bytes of this struct as the caller knows it. Kept.
    pub struct_size: u64,
    /// NINFER_CODEC_FORMAT_.
    pub format: u32,
    /// NINFER_CODEC_LAYOUT_: the only layout that holds the format.
    pub layout: u32,
    /// NINFER_CODEC_CATEGORY_.
    pub category: u32,
    /// NINFER_CODEC_PROFILE_: the canonical encoder.
    pub profile: u32,
    /// Bits of one direct word or code.
    pub code_bits: u32,
    /// Weights along K that share a scale.
    pub group: u32,
    /// Least legal code of an integer format.
    pub code_min: i32,
    /// Greatest legal code of an integer format.
    pub code_max: i32,
    /// Denominator of the canonical encoder.
    pub qmax: u32,
    /// NINFER_CODEC_SCALE_: type of the scale words.
    pub scale: u32,
    /// 1 where the matrix has an FP32 divisor.
    pub has_divisor: u32,
    /// Logical bits a weight, as a fraction: numerator.
    pub bits_per_weight_numerator: u32,
    /// Logical bits a weight, as a fraction: denominator.
    pub bits_per_weight_denominator: u32,
    /// A column range begins at a multiple of this: 1 or the group.
    pub column_step: u32,
    /// Row ranges that are written begin and end at multiples of this: 128 for NVFP4, else 1.
    pub row_step: u32,
    /// Always 0.
    pub reserved: u32,
}

/// The fixed facts of a layout. Set `struct_size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutDescriptor {
    /// In: bytes of this struct as the caller knows it. Kept.
    pub struct_size: u64,
    /// NINFER_CODEC_LAYOUT_.
    pub layout: u32,
    /// Least number of dimensions.
    pub rank_min: u32,
    /// Greatest number of dimensions.
    pub rank_max: u32,
    /// What the row count is a multiple of.
    pub row_multiple: u32,
    /// What K is a multiple of.
    pub column_multiple: u32,
    /// Always 0.
    pub reserved: u32,
    /// What the payload's offset in a file is a multiple of, in bytes.
    pub alignment: u64,
}

/// The fixed facts of an encoding of resources. Set `struct_size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingDescriptor {
    /// In: bytes of this struct as the caller knows it. Kept.
    pub struct_size: u64,
    /// What the resource's offset in a file is a multiple of, in bytes.
    pub alignment: u64,
}

/// Returns the version of the library that runs: major * 1000000 + minor * 1000 + patch.
#[unsafe(no_mangle)]
pub extern "C" fn ninfer_codec_version() -> u32 {
    NINFER_CODEC_VERSION
}

/// Returns NINFER_CODEC_ABI_VERSION as the library that runs has it. A program refuses a library whose number
/// is not the one it was built with.
#[unsafe(no_mangle)]
pub extern "C" fn ninfer_codec_abi_version() -> u32 {
    NINFER_CODEC_ABI_VERSION
}

/// Returns the name of the code path that runs on this processor: static, NUL-terminated, never NULL.
///
/// "portable", "avx2", "avx512" or "neon". All give the same bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ninfer_codec_backend_name() -> *const c_char {
    backend(crate::backend_name()).as_ptr()
}

fn backend(name: &str) -> &'static CStr {
    let names = [c"avx2", c"avx512", c"neon"];
    names.into_iter().find(|known| known.to_bytes() == name.as_bytes()).unwrap_or(c"portable")
}

/// Finds the id of the format whose canonical name is exactly `name[0 .. name_len]`; no NUL is looked for.
///
/// `*format` is written on success only.
///
/// Status: OK, NULL_POINTER, TOO_LARGE, MISALIGNED, OVERLAP, UNKNOWN_NAME.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_format_find(
    name: *const c_char,
    name_len: u64,
    format: *mut u32,
) -> u32 {
    // SAFETY: the caller's name and id.
    status(unsafe { find(name, name_len, format, |name| Format::from_name(name).map(Format::id)) })
}

/// Finds the id of the layout whose canonical name is exactly `name[0 .. name_len]`; no NUL is looked for.
///
/// `*layout` is written on success only.
///
/// Status: OK, NULL_POINTER, TOO_LARGE, MISALIGNED, OVERLAP, UNKNOWN_NAME.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_layout_find(
    name: *const c_char,
    name_len: u64,
    layout: *mut u32,
) -> u32 {
    // SAFETY: the caller's name and id.
    status(unsafe { find(name, name_len, layout, |name| Layout::from_name(name).map(Layout::id)) })
}

/// Finds the id of the encoder profile whose name is exactly `name[0 .. name_len]`; no NUL is looked for.
///
/// `*profile` is written on success only.
///
/// Status: OK, NULL_POINTER, TOO_LARGE, MISALIGNED, OVERLAP, UNKNOWN_NAME.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_profile_find(
    name: *const c_char,
    name_len: u64,
    profile: *mut u32,
) -> u32 {
    // SAFETY: the caller's name and id.
    status(unsafe {
        find(name, name_len, profile, |name| EncoderProfile::from_name(name).map(EncoderProfile::id))
    })
}

/// Finds the id of the encoding of resources whose name is exactly `name[0 .. name_len]`; no NUL is looked for.
///
/// `*encoding` is written on success only.
///
/// Status: OK, NULL_POINTER, TOO_LARGE, MISALIGNED, OVERLAP, UNKNOWN_NAME.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_encoding_find(
    name: *const c_char,
    name_len: u64,
    encoding: *mut u32,
) -> u32 {
    // SAFETY: the caller's name and id.
    status(unsafe {
        find(name, name_len, encoding, |name| ResourceEncoding::from_name(name).map(ResourceEncoding::id))
    })
}

/// The `&'static CStr` of a constant string without NUL.
macro_rules! c_str {
    ($text:expr) => {{
        const TEXT: &str = $text;
        const BYTES: [u8; TEXT.len() + 1] = {
            let mut bytes = [0; TEXT.len() + 1];
            bytes.split_at_mut(TEXT.len()).0.copy_from_slice(TEXT.as_bytes());
            bytes
        };
        const C_TEXT: &CStr = match CStr::from_bytes_with_nul(&BYTES) {
            Ok(text) => text,
            Err(_) => c"",
        };
        C_TEXT
    }};
}

/// Returns the canonical name of a format: static, NUL-terminated; NULL for a number that is no format.
#[unsafe(no_mangle)]
pub extern "C" fn ninfer_codec_format_name(format: u32) -> *const c_char {
    let Some(format) = Format::from_id(format) else { return core::ptr::null() };
    let name = match format {
        Format::Bf16 => c_str!(Format::Bf16.name()),
        Format::Fp32 => c_str!(Format::Fp32.name()),
        Format::I32 => c_str!(Format::I32.name()),
        Format::Q4G64F16S => c_str!(Format::Q4G64F16S.name()),
        Format::Q5G64F16S => c_str!(Format::Q5G64F16S.name()),
        Format::Q6G64F16S => c_str!(Format::Q6G64F16S.name()),
        Format::W8G32F16S => c_str!(Format::W8G32F16S.name()),
        Format::Nvfp4 => c_str!(Format::Nvfp4.name()),
        Format::Fp8E4M3FnRowBf16S => c_str!(Format::Fp8E4M3FnRowBf16S.name()),
    };
    name.as_ptr()
}

/// Returns the canonical name of a layout: static, NUL-terminated; NULL for a number that is no layout.
#[unsafe(no_mangle)]
pub extern "C" fn ninfer_codec_layout_name(layout: u32) -> *const c_char {
    let Some(layout) = Layout::from_id(layout) else { return core::ptr::null() };
    let name = match layout {
        Layout::ContiguousLeV1 => c_str!(Layout::ContiguousLeV1.name()),
        Layout::RowSplitK128V1 => c_str!(Layout::RowSplitK128V1.name()),
        Layout::BlockscaleK16M128x4V1 => c_str!(Layout::BlockscaleK16M128x4V1.name()),
        Layout::RowScaleV1 => c_str!(Layout::RowScaleV1.name()),
    };
    name.as_ptr()
}

/// Returns the name of an encoder profile: static, NUL-terminated; NULL for a number that is no profile.
#[unsafe(no_mangle)]
pub extern "C" fn ninfer_codec_profile_name(profile: u32) -> *const c_char {
    match EncoderProfile::from_id(profile) {
        Some(EncoderProfile::MaxabsF16RecipRneV1) => {
            c_str!(EncoderProfile::MaxabsF16RecipRneV1.name()).as_ptr()
        }
        None => core::ptr::null(),
    }
}

/// Returns the name of an encoding of resources: static, NUL-terminated; NULL for a number that is none.
#[unsafe(no_mangle)]
pub extern "C" fn ninfer_codec_encoding_name(encoding: u32) -> *const c_char {
    match ResourceEncoding::from_id(encoding) {
        Some(ResourceEncoding::RawBytesV1) => c_str!(ResourceEncoding::RawBytesV1.name()).as_ptr(),
        None => core::ptr::null(),
    }
}

/// Gives the fixed facts of a format.
///
/// `descriptor` is written on success only.
///
/// Status: OK, NULL_POINTER, STRUCT_SIZE, UNKNOWN_FORMAT, MISALIGNED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_format_describe(format: u32, descriptor: *mut FormatDescriptor) -> u32 {
    let facts = |struct_size| {
        let format = format_of(format)?;
        let d = format.descriptor();
        let encodes = |profile: &EncoderProfile| profile.formats().contains(&format);
        let (code_min, code_max) = d.code_interval.unwrap_or((0, 0));
        Ok(FormatDescriptor {
            struct_size,
            format: format.id(),
            layout: d.layout.id(),
            category: d.category as u32,
            profile: EncoderProfile::ALL.into_iter().find(encodes).map_or(0, EncoderProfile::id),
            code_bits: d.code_bits,
            group: d.group.unwrap_or(0),
            code_min,
            code_max,
            qmax: d.qmax.unwrap_or(0),
            scale: d.scale.map_or(0, |scale| scale as u32),
            has_divisor: d.has_divisor.into(),
            bits_per_weight_numerator: d.bits_per_weight.map_or(0, |ratio| ratio.numerator),
            bits_per_weight_denominator: d.bits_per_weight.map_or(0, |ratio| ratio.denominator),
            column_step: format.column_step() as u32,
            row_step: Plan::rows_per_tile_of(format) as u32,
            reserved: 0,
        })
    };
    // SAFETY: the caller's descriptor.
    status(unsafe { describe(descriptor, facts) })
}

/// Gives the fixed facts of a layout.
///
/// `descriptor` is written on success only.
///
/// Status: OK, NULL_POINTER, STRUCT_SIZE, UNKNOWN_LAYOUT, MISALIGNED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_layout_describe(layout: u32, descriptor: *mut LayoutDescriptor) -> u32 {
    let facts = |struct_size| {
        let layout = layout_of(layout)?;
        let d = layout.descriptor();
        let [rows, columns] = d.multiple_of.unwrap_or([1, 1]);
        Ok(LayoutDescriptor {
            struct_size,
            layout: layout.id(),
            rank_min: d.rank.0,
            rank_max: d.rank.1,
            row_multiple: rows as u32,
            column_multiple: columns as u32,
            reserved: 0,
            alignment: d.alignment,
        })
    };
    // SAFETY: the caller's descriptor.
    status(unsafe { describe(descriptor, facts) })
}

/// Gives the fixed facts of an encoding of resources.
///
/// `descriptor` is written on success only.
///
/// Status: OK, NULL_POINTER, STRUCT_SIZE, UNKNOWN_ENCODING, MISALIGNED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ninfer_codec_encoding_describe(
    encoding: u32,
    descriptor: *mut EncodingDescriptor,
) -> u32 {
    let facts = |struct_size| {
        let unknown = Fault::Id { status: NINFER_CODEC_STATUS_UNKNOWN_ENCODING, id: encoding };
        let encoding = ResourceEncoding::from_id(encoding).ok_or(unknown)?;
        Ok(EncodingDescriptor { struct_size, alignment: encoding.alignment() })
    };
    // SAFETY: the caller's descriptor.
    status(unsafe { describe(descriptor, facts) })
}

fn status(result: Result<(), Fault>) -> u32 {
    result.map_or_else(|fault| Details::from(fault).status, |()| NINFER_CODEC_STATUS_OK)
}

/// No name of any registry is longer.
const LONGEST_NAME: u64 = 64;

/// Looks a name up and writes its id.
///
/// # Safety
/// The name is readable as far as its length says, the id writable, unless they are null.
unsafe fn find(
    name: *const c_char,
    name_len: u64,
    id: *mut u32,
    from_name: impl Fn(&[u8]) -> Result<u32, UnknownName<'_>>,
) -> Result<(), Fault> {
    let name = Buffer::input(0, name, name_len)?;
    let id = Buffer::output(2, id, 1)?;
    check_memory(&[name.all::<u8>(), id.all::<u32>()], None)?;
    if name_len > LONGEST_NAME {
        return Err(Fault::UnknownName);
    }
    // SAFETY: all bytes, checked; nothing writes them meanwhile.
    let bytes = unsafe { name.slice::<u8>(0, name_len) };
    let found = from_name(bytes).map_err(|_| Fault::UnknownName)?;
    // SAFETY: one u32 of the caller's, checked.
    unsafe { id.write(found) };
    Ok(())
}

/// Fills a descriptor.
///
/// # Safety
/// The descriptor is null or a writable struct, as long as its `struct_size` says; `T` is a `repr(C)` struct
/// without padding that begins with `struct_size`.
unsafe fn describe<T>(descriptor: *mut T, facts: impl FnOnce(u64) -> Result<T, Fault>) -> Result<(), Fault> {
    let out = Buffer::output(1, descriptor, 1)?;
    // SAFETY: not null; a struct of the caller's.
    let facts = facts(unsafe { struct_size(1, descriptor) }?)?;
    check_memory(&[out.all::<T>()], None)?;
    // SAFETY: aligned and long enough, as checked.
    unsafe { fill_struct(descriptor, &facts) };
    Ok(())
}
