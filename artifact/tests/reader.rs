//! Every refusal of the reader, by files put together by hand.

mod common;

use common::{directory, file};
use ninfer_artifact::{Artifact, Directory, Error, Kind, Place};
use ninfer_codec::{Format, ResourceEncoding};

const BIAS: &str = r#"{"name":"bias","kind":"tensor","shape":[2],"format":"I32","layout":"contiguous-le-v1","offset":0,"bytes":8}"#;
const RAW: &str = r#"{"name":"raw","kind":"resource","encoding":"raw-bytes-v1","offset":8,"bytes":3}"#;

fn refuse(file: &[u8]) -> Error {
    let by_bytes = Artifact::new(file).expect_err("must be refused");
    let by_seek = Directory::read(&mut std::io::Cursor::new(file)).expect_err("must be refused");
    assert_eq!(by_bytes.to_string(), by_seek.to_string());
    by_bytes
}

fn refuse_directory(json: impl AsRef<[u8]>) -> Error {
    refuse(&file(json, 4096))
}

fn refuse_objects(objects: &str) -> Error {
    refuse_directory(directory(objects))
}

/// `BIAS` with one text replaced by another.
fn altered(from: &str, to: &str) -> String {
    assert!(BIAS.contains(from), "{from}");
    BIAS.replacen(from, to, 1)
}

macro_rules! assert_refused {
    ($error:expr, $pattern:pat $(if $guard:expr)?) => {
        match $error {
            $pattern $(if $guard)? => {}
            other => panic!("{other:?}"),
        }
    };
}

#[test]
fn a_file_is_read() {
    let mut bytes = file(directory(&format!("{BIAS},{RAW}")), 11);
    let start = bytes.len() - 11;
    bytes[start..].copy_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0, 7, 8, 9]);
    let artifact = Artifact::new(&bytes).unwrap();
    let read = artifact.directory();
    assert_eq!(*read, Directory::read(&mut std::io::Cursor::new(&bytes)).unwrap());
    assert_eq!((read.identity().model_id.as_str(), read.identity().weights_id.as_str()), ("m", "w"));
    assert_eq!(read.payload_offset(), 4096);
    let [bias, raw] = read.objects() else { panic!() };
    assert_eq!((bias.name(), bias.offset(), bias.bytes(), read.file_offset(raw)), ("bias", 0, 8, 4104));
    let Kind::Tensor { shape, plan } = bias.kind() else { panic!() };
    assert_eq!((shape.as_slice(), plan.format()), (&[2][..], Format::I32));
    assert_eq!(*raw.kind(), Kind::Resource { encoding: ResourceEncoding::RawBytesV1 });
    assert_eq!(artifact.payload(raw), [7, 8, 9]);
    assert_eq!(artifact.object("raw"), Some(raw));
    assert_eq!(artifact.object("none"), None);
    assert!(artifact.tensor(raw).is_none());
    let mut words = [0; 2];
    artifact.tensor(bias).unwrap().unpack(ninfer_codec::WordsMut::I32(&mut words)).unwrap();
    assert_eq!(words, [1, 2]);
}

#[test]
fn the_payload_offset_is_the_next_multiple_of_4096() {
    for (json_bytes, offset) in [(4079, 4096), (4080, 4096), (4081, 8192), (8176, 8192)] {
        let mut json = directory(BIAS);
        json += &" ".repeat(json_bytes - json.len());
        let bytes = file(json, 8);
        assert_eq!(Artifact::new(&bytes).unwrap().directory().payload_offset(), offset);
    }
}

#[test]
fn gaps_trailing_bytes_and_white_space_are_legal() {
    let moved = RAW.replace("\"offset\":8", "\"offset\":1000");
    let json = directory(&format!("{BIAS} ,\r\n\t{moved}")).replace(':', " : ");
    let mut bytes = file(format!(" {json}\n"), 5000);
    bytes[4000..].fill(0xa5); // the rest before the payload offset, gaps and trailing bytes
    let artifact = Artifact::new(&bytes).unwrap();
    assert_eq!(artifact.payload(artifact.object("raw").unwrap()), [0xa5; 3]);
}

#[test]
fn names_may_hold_anything_but_nothing() {
    for (escaped, name) in [("\\u0000", "\0"), ("\\ud83d\\ude00", "😀"), ("a/b\\\\", "a/b\\"), ("ü", "ü")]
    {
        let bytes = file(directory(&altered("bias", escaped)), 8);
        assert_eq!(Artifact::new(&bytes).unwrap().directory().objects()[0].name(), name);
    }
    assert_refused!(refuse_objects(&altered("bias", "")), Error::Empty { member: "name", .. });
}

#[test]
fn magic_and_revision() {
    let good = file(directory(BIAS), 8);
    for length in 0..16 {
        assert_refused!(refuse(&good[..length]), Error::TooShort { file_bytes } if file_bytes == length as u64);
    }
    for position in 0..7 {
        let mut bytes = good.clone();
        bytes[position] ^= 0x20;
        assert_refused!(refuse(&bytes), Error::NotAnArtifact { .. });
    }
    for found in (0..=255).filter(|&revision| revision != 2) {
        let mut bytes = good.clone();
        bytes[7] = found;
        let error = refuse(&bytes);
        assert!(error.to_string().contains(&format!("revision {found};")), "{error}");
        assert!(error.to_string().contains("revision 2 only"), "{error}");
    }
}

#[test]
fn the_directory_length_is_checked_first() {
    let good = file(directory(BIAS), 8);
    for length in [0, good.len() as u64 - 15, u64::from(u32::MAX), 1 << 62, u64::MAX] {
        let mut bytes = good.clone();
        bytes[8..16].copy_from_slice(&length.to_le_bytes());
        assert_refused!(refuse(&bytes), Error::DirectoryLength { json_bytes, .. } if json_bytes == length);
    }
    // The whole rest of the file is a directory: then nothing is left for a payload.
    let json = directory(BIAS);
    let mut bytes = file(&json, 0);
    bytes.truncate(16 + json.len());
    assert_refused!(refuse(&bytes), Error::OutsideFile { available: 0, .. });
}

#[test]
fn the_text_is_plain_utf8() {
    assert_refused!(refuse_directory(format!("\u{feff}{}", directory(BIAS))), Error::ByteOrderMark);
    assert_refused!(refuse_directory(directory(&altered("bias", "bi\0as"))), Error::NulByte { .. });
    assert_refused!(refuse_directory(format!("{}\0", directory(BIAS))), Error::NulByte { .. });
    for bad in [&b"\xff"[..], b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"] {
        let mut json = directory(BIAS).into_bytes();
        let at = json.windows(4).position(|window| window == b"bias").unwrap();
        json.splice(at..at, bad.iter().copied());
        assert_refused!(refuse_directory(json), Error::NotUtf8 { offset } if offset == at);
    }
}

#[test]
fn the_text_is_json() {
    let good = directory(BIAS);
    for bad in [
        good[..good.len() - 1].to_string(),
        good.clone() + "}",
        good.clone() + "{}",
        good.replace(',', ",,"),
        good.replace("]}", ",]}"),
        good.replace('"', "'"),
        good.replace("\"bytes\":8", "\"bytes\":08"),
        good.replace("\"bytes\":8", "\"bytes\":+8"),
        good.replace("\"bytes\":8", "\"bytes\":0x8"),
        good.replace("\"bytes\":8", "\"bytes\":NaN"),
        good.replace("bias", "bi\nas"),
        good.replace("bias", "bi\\xas"),
        good.clone() + "// end",
        " ".into(),
    ] {
        assert_refused!(refuse_directory(&bad), Error::Syntax { .. });
    }
}

#[test]
fn surrogate_escapes_come_in_pairs() {
    for (pair, name) in [("\\uD83D\\uDE00", "😀"), ("\\\\ud800", "\\ud800"), ("\\udbff\\udfff", "\u{10ffff}")]
    {
        let bytes = file(directory(&altered("bias", pair)), 8);
        assert_eq!(Artifact::new(&bytes).unwrap().directory().objects()[0].name(), name);
    }
    let at = directory(BIAS).find("bias").unwrap();
    for (bad, ahead) in [
        ("\\ud800", 0),
        ("\\uDC00", 0),
        ("\\ud800\\u0041", 0),
        ("\\ud800\\ud800\\udc00", 0),
        ("\\udc00\\ud800", 0),
        ("\\ud83d\\ude00\\udbff", 12),
        ("\\n\\\\\\udfff", 4),
        ("\\ud800x\\udc00", 0),
    ] {
        let error = refuse_objects(&altered("bias", bad));
        assert_refused!(error, Error::LoneSurrogate { offset } if offset == at + ahead);
    }
    let member = refuse_objects(&altered("\"name\"", "\"\\ud800\""));
    assert_refused!(member, Error::LoneSurrogate { .. });
    for cut in ["\\u", "\\ud8", "\\u+123", "\\"] {
        let json = directory(&altered("bias", cut));
        assert_refused!(refuse_directory(&json[..at + cut.len()]), Error::Syntax { .. });
    }
}

#[test]
fn nesting_is_bounded_by_the_schema() {
    for deep in [
        "[".repeat(1_000_000),
        "{\"a\":".repeat(1_000_000),
        altered("[2]", "[[2]]"),
        altered("[2]", "[{}]"),
        altered("8}", "8,\"x\":[[]]}"),
    ] {
        assert_refused!(refuse_objects(&deep), Error::TooDeep { .. });
    }
    assert_refused!(refuse_directory("[".repeat(1_000_000)), Error::TooDeep { line: 1, column: 5 });
}

#[test]
fn members_are_exact() {
    for member in ["name", "kind", "shape", "format", "layout", "offset", "bytes"] {
        let renamed = altered(&format!("\"{member}\""), &format!("\"{member} \""));
        let error = refuse_objects(&renamed);
        assert!(matches!(error, Error::UnknownMember { .. } | Error::MissingMember { .. }), "{error:?}");
        let start = BIAS.find(&format!("\"{member}\"")).unwrap();
        let end = BIAS[start..].find(",\"").map_or(BIAS.len() - 1, |comma| start + comma + 1);
        let removed = format!("{}{}", &BIAS[..start], &BIAS[end..]).replace(",}", "}");
        assert_refused!(refuse_objects(&removed), Error::MissingMember { member: missing, .. } if missing == member);
        let pair = &BIAS[start..end].trim_end_matches(',');
        let escaped = pair.replacen(&member[..1], &format!("\\u{:04x}", member.as_bytes()[0]), 1);
        for twice in [pair.to_string(), escaped] {
            let doubled = altered("{", &format!("{{{twice},"));
            assert_refused!(refuse_objects(&doubled), Error::DuplicateMember { member: double, .. } if double == member);
        }
    }
    for extra in ["\"encoding\":\"raw-bytes-v1\"", "\"\":0", "\"Name\":\"x\""] {
        let error = refuse_objects(&altered("{", &format!("{{{extra},")));
        assert_refused!(error, Error::UnknownMember { place: Place::Object { index: 0, ref name }, .. } if name == "bias");
    }
    assert_refused!(refuse_objects(&RAW.replace('{', "{\"shape\":[1],")), Error::UnknownMember { .. });
    let good = directory(BIAS);
    for (bad, member) in [(good.replacen('{', "{\"version\":2,", 1), "version"), ("{\"x\":0}".into(), "x")] {
        assert_refused!(refuse_directory(bad), Error::UnknownMember { place: Place::Directory, member: found } if found == member);
    }
    assert_refused!(
        refuse_directory("{}"),
        Error::MissingMember { place: Place::Directory, member: "identity" }
    );
    let twice = good.replacen('{', "{\"objects\":[],", 1);
    assert_refused!(refuse_directory(twice), Error::DuplicateMember { member: "objects", .. });
    let twice = good.replacen("{\"model_id\"", "{\"model\\u005fid\":\"x\",\"model_id\"", 1);
    assert_refused!(
        refuse_directory(twice),
        Error::DuplicateMember { place: Place::Identity, member: "model_id" }
    );
}

#[test]
fn types_are_exact() {
    let good = directory(BIAS);
    for bad in ["null", "[]", "\"x\"", "7"] {
        assert_refused!(refuse_directory(bad), Error::WrongType { place: Place::Directory, .. });
        let identity = good.replace(r#"{"model_id":"m","weights_id":"w"}"#, bad);
        assert_refused!(refuse_directory(identity), Error::WrongType { place: Place::Identity, .. });
        assert_refused!(refuse_objects(bad), Error::WrongType { place: Place::Object { index: 0, .. }, .. });
    }
    for bad in ["null", "true", "1", "[]", "{}"] {
        for (member, value) in
            [("name", "bias"), ("kind", "tensor"), ("format", "I32"), ("layout", "contiguous-le-v1")]
        {
            let objects = altered(&format!("\"{member}\":\"{value}\""), &format!("\"{member}\":{bad}"));
            assert_refused!(refuse_objects(&objects), Error::WrongType { member: ref found, .. } if found == member);
        }
        let identity = good.replace("\"m\"", bad);
        assert_refused!(refuse_directory(identity), Error::WrongType { place: Place::Identity, .. });
    }
    for bad in ["{}", "null", "\"[2]\"", "2"] {
        assert_refused!(refuse_objects(&altered("[2]", bad)), Error::WrongType { .. });
    }
    assert_refused!(
        refuse_directory(good.replace('[', "{\"a\":[").replace("]}", "]}}")),
        Error::WrongType { .. } | Error::TooDeep { .. }
    );
}

#[test]
fn integers_are_unsigned_64_bit() {
    for bad in [
        "null",
        "false",
        "8.0",
        "8e0",
        "0.8e1",
        "-8",
        "-0",
        "-0.0",
        "18446744073709551616",
        "1e999",
        "\"8\"",
        "[]",
        "{}",
    ] {
        for from in ["\"offset\":0", "\"bytes\":8", "[2]"] {
            let to =
                if from == "[2]" { format!("[{bad}]") } else { format!("{}{bad}", &from[..from.len() - 1]) };
            let error = refuse_objects(&altered(from, &to));
            assert!(
                matches!(error, Error::WrongType { .. } | Error::Syntax { .. } | Error::TooDeep { .. }),
                "{to}: {error:?}"
            );
        }
    }
    let most = altered("\"offset\":0", "\"offset\":18446744073709551615");
    assert_refused!(refuse_objects(&most), Error::Misaligned { offset: u64::MAX, alignment: 256, .. });
}

#[test]
fn strings_of_the_identity_and_the_list_are_not_empty() {
    let good = directory(BIAS);
    assert_refused!(refuse_directory(good.replace("\"m\"", "\"\"")), Error::Empty { member: "model_id", .. });
    assert_refused!(
        refuse_directory(good.replace("\"w\"", "\"\"")),
        Error::Empty { member: "weights_id", .. }
    );
    assert_refused!(refuse_objects(""), Error::Empty { member: "objects", .. });
}

#[test]
fn the_registry_is_closed() {
    for (from, to, member) in [
        ("tensor", "Tensor", "kind"),
        ("I32", "INT32", "format"),
        ("I32", "i32", "format"),
        ("I32", "I32\\u0000", "format"),
        ("contiguous-le-v1", "contiguous-le-v2", "layout"),
        ("contiguous-le-v1", " contiguous-le-v1", "layout"),
    ] {
        let error = refuse_objects(&altered(from, to));
        assert_refused!(error, Error::UnknownName { member: found, .. } if found == member);
    }
    let encoding = RAW.replace("raw-bytes-v1", "raw");
    assert_refused!(refuse_objects(&encoding), Error::UnknownName { member: "encoding", .. });
    let pair = altered("contiguous-le-v1", "row-scale-v1");
    assert_refused!(
        refuse_objects(&pair),
        Error::Plan { reason: ninfer_codec::Error::UnsupportedPair { .. }, .. }
    );
    for (shape, bytes) in
        [("[0]", 0u64), ("[4294967296,4294967296]", 0), ("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]", 8)]
    {
        let objects = altered("[2]", shape).replace("\"bytes\":8", &format!("\"bytes\":{bytes}"));
        assert_refused!(refuse_objects(&objects), Error::Plan { .. });
    }
    assert!(
        Artifact::new(&file(directory(&altered("[2]", "[]").replace("\"bytes\":8", "\"bytes\":4")), 4))
            .is_ok()
    );
}

#[test]
fn places_are_checked() {
    for bytes in [0, 4, 7, 9, u64::MAX] {
        let objects = altered("\"bytes\":8", &format!("\"bytes\":{bytes}"));
        assert_refused!(refuse_objects(&objects), Error::ObjectBytes { expected: 8, actual, .. } if actual == bytes);
    }
    assert_refused!(refuse_objects(&RAW.replace("\"bytes\":3", "\"bytes\":0")), Error::EmptyResource { .. });
    for offset in [1, 8, 128, 255, 257] {
        let objects = altered("\"offset\":0", &format!("\"offset\":{offset}"));
        assert_refused!(refuse_objects(&objects), Error::Misaligned { alignment: 256, .. });
    }
    let overlapping = format!("{BIAS},{}", RAW.replace("\"offset\":8", "\"offset\":7"));
    assert_refused!(refuse_objects(&overlapping), Error::Overlap { offset: 7, previous_end: 8, .. });
    let falling = format!("{RAW},{BIAS}");
    assert_refused!(refuse_objects(&falling), Error::Overlap { offset: 0, previous_end: 11, .. });
    let same = format!("{BIAS},{}", RAW.replace("\"raw\"", "\"b\\u0069as\""));
    assert_refused!(refuse_objects(&same), Error::DuplicateName { first: 0, second: 1, .. });
    // One byte short, and an end beyond 64 bits.
    assert_refused!(refuse(&file(directory(BIAS), 7)), Error::OutsideFile { available: 7, bytes: 8, .. });
    let far = RAW.replace("\"offset\":8", "\"offset\":18446744073709551615");
    assert_refused!(refuse_objects(&far), Error::OutsideFile { offset: u64::MAX, .. });
}

#[test]
fn no_altered_byte_or_cut_file_makes_the_reader_panic() {
    let good = file(directory(&format!("{BIAS},{RAW}")), 11);
    let json_end = 16 + directory(&format!("{BIAS},{RAW}")).len();
    let (mut read, mut refused) = (0, 0);
    for position in 0..json_end {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[position] ^= 1 << bit;
            match Artifact::new(&bytes) {
                Ok(artifact) => {
                    read += 1;
                    for object in artifact.directory().objects() {
                        assert_eq!(artifact.payload(object).len() as u64, object.bytes());
                    }
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(read > 0 && refused > read, "{read} read, {refused} refused");
    for length in (0..good.len()).step_by(7) {
        assert!(Artifact::new(&good[..length]).is_err());
    }
}
