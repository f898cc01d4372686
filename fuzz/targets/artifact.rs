//! Files of any kind for the artifact reader. What it takes is what an independent reading of the directory says;
//! what a plan of any kind writes is taken and comes back the same.

#![no_main]

#[path = "input.rs"]
mod input;
#[path = "../../tests/oracle/mod.rs"]
mod oracle;

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use ninfer_artifact::{Artifact, Content, Directory, Error, FilePlan, Identity, Kind, MAGIC, Writer};
use ninfer_codec::Format;
use serde_json::Value;

use input::{Input, assert_line};

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let how = input.byte();
    match how % 4 {
        1 if how >= 128 => entries(&mut input),
        0 => {
            read(input.0);
        }
        1 => {
            // A directory in a frame that fits, with some bytes behind it.
            let payload_bytes = usize::from(input.u16());
            let file = frame(input.0, payload_bytes);
            read(&file);
        }
        2 => {
            // A frame that may not fit.
            let (json_bytes, file_bytes) = (input.number(), usize::from(input.u16() % 5000));
            let mut file = MAGIC.to_vec();
            file[7] = input.byte();
            file.extend(json_bytes.to_le_bytes());
            file.extend(input.0);
            file.resize(file_bytes, b' ');
            read(&file);
        }
        _ => write(&mut input),
    }
});

fn frame(json: &[u8], payload_bytes: usize) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend((json.len() as u64).to_le_bytes());
    file.extend(json);
    file.resize(file.len().next_multiple_of(4096) + payload_bytes, 0);
    file
}

/// Reads a file in both ways and holds what was taken against the text.
fn read(file: &[u8]) -> Option<Artifact<'_>> {
    let artifact = Artifact::new(file);
    let directory = Directory::read(&mut Cursor::new(file));
    match (artifact, directory) {
        (Ok(artifact), Ok(directory)) => {
            assert_eq!(artifact.directory(), &directory);
            taken(file, &artifact);
            Some(artifact)
        }
        (Err(error), Err(other)) => {
            assert_eq!(error.to_string(), other.to_string());
            assert_line(&error);
            refused(file, &error);
            None
        }
        (artifact, directory) => panic!("{artifact:?} in memory, {directory:?} by reading"),
    }
}

/// A well-formed directory of entries whose places are arbitrary: taken exactly if the places are right.
fn entries(input: &mut Input<'_>) {
    let payload_bytes = u64::from(input.u16());
    let (mut list, mut end, mut right) = (vec![], 0u128, true);
    for index in 0..1 + input.byte() % 4 {
        // Mostly where the last one ended, or near.
        let near = |to: u64, how: u8| match how {
            0..100 => to,
            100..160 => to.saturating_add(1),
            160..220 => to.saturating_sub(1),
            _ => to.wrapping_add(u64::from(how) << 8),
        };
        let is_tensor = input.byte() % 2 == 0;
        let step = if is_tensor { 256 } else { 1 };
        let offset = near((end as u64).next_multiple_of(step), input.byte());
        let words = 1 + u64::from(input.byte());
        let bytes = near(2 * words, input.byte());
        right &= offset % step == 0
            && u128::from(offset) >= end
            && bytes > 0
            && (!is_tensor || bytes == 2 * words);
        end = u128::from(offset) + u128::from(bytes);
        right &= end <= payload_bytes.into();
        list.push(match is_tensor {
            true => format!(
                r#"{{"name":"{index}","kind":"tensor","shape":[{words}],"format":"BF16","layout":"contiguous-le-v1","offset":{offset},"bytes":{bytes}}}"#
            ),
            false => format!(
                r#"{{"name":"{index}","kind":"resource","encoding":"raw-bytes-v1","offset":{offset},"bytes":{bytes}}}"#
            ),
        });
        if end > u64::MAX.into() {
            break;
        }
    }
    let objects = list.join(",");
    let json = format!(r#"{{"identity":{{"model_id":"m","weights_id":"w"}},"objects":[{objects}]}}"#);
    let file = frame(json.as_bytes(), payload_bytes as usize);
    assert_eq!(read(&file).is_some(), right, "{json}");
}

fn number(value: &Value, member: &str) -> u64 {
    value[member].as_u64().unwrap_or_else(|| panic!("{member} of {value}"))
}

/// Everything that the clauses ask of a file, read by another reader.
fn taken(file: &[u8], artifact: &Artifact<'_>) {
    assert_eq!(file[..8], MAGIC);
    let json_bytes = u64::from_le_bytes(std::array::from_fn(|index| file[8 + index])) as usize;
    let text = &file[16..16 + json_bytes];
    assert!(!text.contains(&0) && !text.starts_with("\u{feff}".as_bytes()));
    let tree: Value = serde_json::from_slice(text).expect("JSON");
    let directory = artifact.directory();
    let payload_offset = (16 + json_bytes).next_multiple_of(4096);
    assert_eq!(directory.payload_offset(), payload_offset as u64);
    assert_eq!(tree.as_object().map(|members| members.len()), Some(2));
    assert_eq!(tree["identity"].as_object().map(|members| members.len()), Some(2));
    assert_eq!(tree["identity"]["model_id"], directory.identity().model_id);
    assert_eq!(tree["identity"]["weights_id"], directory.identity().weights_id);
    let entries = tree["objects"].as_array().expect("a list");
    assert!(!entries.is_empty() && entries.len() == directory.objects().len());
    let mut end = 0u128;
    for (entry, object) in entries.iter().zip(directory.objects()) {
        assert!(!object.name().is_empty() && entry["name"] == object.name());
        assert_eq!((number(entry, "offset"), number(entry, "bytes")), (object.offset(), object.bytes()));
        let alignment = match object.kind() {
            Kind::Resource { encoding } => {
                assert!(entry["kind"] == "resource" && entry["encoding"] == encoding.name());
                assert!(object.plan().is_none() && object.bytes() > 0);
                assert_eq!(entry.as_object().map(|members| members.len()), Some(5));
                1
            }
            Kind::Tensor { shape, plan } => {
                assert_eq!(entry["kind"], "tensor");
                assert_eq!(entry.as_object().map(|members| members.len()), Some(7));
                let dimensions: Option<Vec<_>> =
                    entry["shape"].as_array().map(|list| list.iter().filter_map(Value::as_u64).collect());
                assert_eq!(dimensions.as_ref(), Some(shape));
                let format = oracle::Format::from_name(entry["format"].as_str().unwrap_or("").as_bytes());
                let layout = oracle::Layout::from_name(entry["layout"].as_str().unwrap_or("").as_bytes());
                let geometry = oracle::layout::geometry(format.unwrap(), layout.unwrap(), shape).unwrap();
                assert_eq!(geometry.payload_bytes, object.bytes());
                assert_eq!(format.map(oracle::Format::name), Some(plan.format().name()));
                256
            }
        };
        assert_eq!(object.offset() % alignment, 0);
        assert!(u128::from(object.offset()) >= end);
        end = u128::from(object.offset()) + u128::from(object.bytes());
        assert!(payload_offset as u128 + end <= file.len() as u128);
        let payload = artifact.payload(object);
        assert_eq!(payload.len() as u64, object.bytes());
        assert_eq!(payload.as_ptr(), file[payload_offset + object.offset() as usize..].as_ptr());
        assert_eq!(artifact.tensor(object).is_some(), object.plan().is_some());
        assert_eq!(artifact.object(object.name()), Some(object));
        assert_eq!(directory.file_offset(object), payload_offset as u64 + object.offset());
    }
    let names: std::collections::HashSet<_> =
        directory.objects().iter().map(|object| object.name()).collect();
    assert_eq!(names.len(), entries.len());
}

/// A refusal's numbers are the file's.
fn refused(file: &[u8], error: &Error) {
    match *error {
        Error::TooShort { file_bytes } => assert!(file_bytes == file.len() as u64 && file_bytes < 16),
        Error::NotAnArtifact { found } => assert!(found == file[..8] && found[..7] != MAGIC[..7]),
        Error::UnsupportedRevision { found } => {
            assert!(found == file[7] && found != 2 && file[..7] == MAGIC[..7]);
        }
        Error::DirectoryLength { json_bytes, file_bytes } => {
            assert_eq!(json_bytes, u64::from_le_bytes(std::array::from_fn(|index| file[8 + index])));
            assert_eq!(file_bytes, file.len() as u64);
            assert!(json_bytes == 0 || json_bytes > file_bytes - 16);
        }
        Error::NulByte { offset } => assert_eq!(file[16 + offset], 0),
        Error::ByteOrderMark => assert!(file[16..].starts_with("\u{feff}".as_bytes())),
        Error::Syntax { .. } | Error::NotUtf8 { .. } | Error::TooDeep { .. } => {
            let json_bytes = u64::from_le_bytes(std::array::from_fn(|index| file[8 + index])) as usize;
            let strict = serde_json::from_slice::<Value>(&file[16..16 + json_bytes]);
            assert!(strict.is_err() || matches!(error, Error::TooDeep { .. }), "{error}: but {strict:?}");
        }
        Error::FileTooLarge { .. } | Error::Sequence { .. } | Error::Io(_) => {
            panic!("not of reading: {error}")
        }
        _ => {}
    }
}

/// Plans a file of objects of any kind, writes it in pieces of any size, and reads it back.
fn write(input: &mut Input<'_>) {
    let text = |input: &mut Input<'_>| {
        let len = usize::from(input.byte() % 8);
        String::from_utf8_lossy(input.bytes(len)).into_owned()
    };
    let identity = Identity { model_id: text(input), weights_id: text(input) };
    let mut contents = vec![];
    for _ in 0..input.byte() % 5 {
        let name = text(input);
        let content = match input.byte() {
            0..100 => Content::Resource { bytes: input.number() },
            _ => {
                let format = input.pick(&Format::ALL);
                let shape = match input.byte() {
                    0..180 if format == Format::Nvfp4 => vec![128, 64],
                    0..180 => vec![1 + u64::from(input.byte() % 9), 1 + u64::from(input.byte())],
                    rank => (0..rank % 18).map(|_| input.number()).collect(),
                };
                Content::Tensor { format, shape }
            }
        };
        contents.push((name, content));
    }
    let plan = match FilePlan::new(identity.clone(), contents.clone()) {
        Ok(plan) => plan,
        Err(error) => return assert_line(&error),
    };
    if plan.file_bytes() > 64 << 10 {
        return;
    }
    let directory = plan.directory().clone();
    let mut writer = Writer::new(plan, vec![]).expect("a vector takes all");
    for object in directory.objects() {
        writer.begin(object.name()).expect("in order");
        let mut rest = input.fill(object.bytes() as usize);
        while !rest.is_empty() {
            let piece = rest.split_off(rest.len() / 2);
            writer.append(&rest).expect("no more than planned");
            rest = piece;
            if rest.len() == 1 {
                writer.append(&rest).expect("no more than planned");
                break;
            }
        }
    }
    let file = writer.finish().expect("complete");
    let artifact = read(&file).expect("what was written is read");
    assert_eq!(artifact.directory(), &directory);
    assert_eq!(artifact.directory().identity(), &identity);
    for (object, (name, content)) in directory.objects().iter().zip(&contents) {
        assert_eq!(object.name(), name);
        match (content, object.kind()) {
            (Content::Tensor { format, shape }, Kind::Tensor { shape: read, plan }) => {
                assert_eq!((format, shape), (&plan.format(), read));
            }
            (Content::Resource { bytes }, Kind::Resource { .. }) => assert_eq!(*bytes, object.bytes()),
            _ => panic!("{name} changed its kind"),
        }
    }
}
