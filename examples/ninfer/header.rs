//! The header of a safetensors file. The library reads it; what it refuses is said here, with the tensor and
//! the numbers.

use safetensors::SafeTensors;
use safetensors::tensor::{Metadata, SafeTensorError, TensorInfo};
use serde_json::Value;

use crate::failure::{Failure, Outcome};
use crate::json;
use crate::opened::Mapped;

/// Bytes of the length that stands before a header.
pub const LENGTH_BYTES: usize = 8;

/// The longest header that the library takes.
const LONGEST: u64 = 100_000_000;

/// Reads the header of a file: its length, without [`LENGTH_BYTES`], and what it says.
pub fn read(file: &Mapped) -> Outcome<(usize, Metadata)> {
    let reason = match SafeTensors::read_metadata(file) {
        Ok((bytes, metadata)) => match json::check_keys(&file[LENGTH_BYTES..][..bytes]) {
            Ok(()) => return Ok((bytes, metadata)),
            Err(error) => unsound(&error),
        },
        Err(error) => explain(file, &error),
    };
    Err(Failure::refused(format!("{} is no safetensors file: {reason}", file.path().display())))
}

fn unsound(error: &serde_json::Error) -> String {
    format!("its header, {error}; fetch the file again, or write it again")
}

/// Says what the library refused the file for.
fn explain(file: &[u8], error: &SafeTensorError) -> String {
    let file_bytes = file.len();
    let Some((length, rest)) = file.split_first_chunk::<LENGTH_BYTES>() else {
        let needed = format!("the length of a header takes {LENGTH_BYTES}");
        return format!("it has {file_bytes} bytes, and {needed}; fetch it again");
    };
    let header_bytes = u64::from_le_bytes(*length);
    let stated = format!("its first {LENGTH_BYTES} bytes announce a header of {header_bytes} bytes");
    let header = match usize::try_from(header_bytes).ok().and_then(|bytes| rest.split_at_checked(bytes)) {
        _ if header_bytes > LONGEST => {
            return format!("{stated}, and {LONGEST} is the most; check the path, or fetch it again");
        }
        None => return format!("{stated}, and the file has {file_bytes} in all; fetch it again"),
        Some((header, _)) => header,
    };
    if let SafeTensorError::InvalidHeader(error) = error {
        return format!("its header is not UTF-8 at byte {}; fetch it again", error.valid_up_to());
    }
    if let Err(error) = json::check_keys(header) {
        return unsound(&error);
    }
    match fault(header, rest.len() - header.len()) {
        Some(line) => line,
        None => format!("{error}; fetch it again"),
    }
}

/// The first fault of a header that is JSON, in the order of the library's checks.
fn fault(header: &[u8], data_bytes: usize) -> Option<String> {
    let header: Value = serde_json::from_slice(header).ok()?;
    let Value::Object(members) = header else {
        return Some("its header is no JSON object of tensors; check the path".into());
    };
    let mut tensors = Vec::new();
    for (name, value) in &members {
        if name == "__metadata__" {
            let texts = value.is_null()
                || value.as_object().is_some_and(|texts| texts.values().all(Value::is_string));
            if !texts {
                return Some(format!("{name:?} must be an object of strings; write the file again"));
            }
            continue;
        }
        match serde_json::from_value::<TensorInfo>(value.clone()) {
            Ok(info) => tensors.push((name, info)),
            Err(error) => return Some(format!("tensor {name:?}: {error}; write the file again")),
        }
    }
    tensors.sort_by_key(|(_, info)| info.data_offsets);
    let mut end = 0;
    for (name, info) in &tensors {
        let words = format!("tensor {name:?}, {} {:?},", info.dtype, info.shape);
        let (from, to) = info.data_offsets;
        if from != end || to < from {
            return Some(format!(
                "{words} has data_offsets [{from}, {to}], and must begin at {end}, where the one before it ends, and \
                 not end earlier; write the file again"
            ));
        }
        let elements =
            info.shape.iter().try_fold(1usize, |product, &dimension| product.checked_mul(dimension));
        let Some(bits) = elements.and_then(|elements| elements.checked_mul(info.dtype.bitsize())) else {
            return Some(format!(
                "{words} would have more bits than 64-bit numbers count; write the file again"
            ));
        };
        if !bits.is_multiple_of(8) {
            return Some(format!("{words} has {bits} bits, which are no whole bytes; write the file again"));
        }
        if bits / 8 != to - from {
            let (bytes, stored) = (bits / 8, to - from);
            return Some(format!(
                "{words} takes {bytes} bytes, and its data_offsets [{from}, {to}] hold {stored}; write the file again"
            ));
        }
        end = to;
    }
    let last = tensors.last().map_or(String::new(), |(name, _)| format!(", the last of them {name:?},"));
    let found = format!("its tensors{last} take {end} bytes, and {data_bytes} follow the header");
    match end.checked_sub(data_bytes) {
        Some(0) => None,
        Some(missing) => Some(format!("{found}: {missing} are missing; fetch it again")),
        None => Some(format!("{found}: {} are too many; fetch it again", data_bytes - end)),
    }
}
