//! The writer: exact offsets, the same bytes each time, and nothing that the reader refuses.

mod common;

use common::{directory, file};
use ninfer_artifact::{Artifact, Content, Directory, Error, FilePlan, Identity, Writer};
use ninfer_codec::Format;
use proptest::prelude::*;

fn identity() -> Identity {
    Identity { model_id: "m".into(), weights_id: "w".into() }
}

fn tensor(format: Format, shape: &[u64]) -> Content {
    Content::Tensor { format, shape: shape.to_vec() }
}

fn plan(contents: &[(&str, Content)]) -> Result<FilePlan, Error> {
    FilePlan::new(
        identity(),
        contents.iter().map(|(name, content)| ((*name).into(), content.clone())).collect(),
    )
}

fn write(plan: &FilePlan, payload: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut writer = Writer::new(plan.clone(), Vec::new()).unwrap();
    for (index, object) in plan.directory().objects().iter().enumerate() {
        writer.begin(object.name()).unwrap();
        payload(index).chunks(3).for_each(|piece| writer.append(piece).unwrap());
    }
    writer.finish().unwrap()
}

#[test]
fn the_bytes_are_those_put_together_by_hand() {
    let plan = plan(&[
        ("bias", tensor(Format::I32, &[2])),
        ("note", Content::Resource { bytes: 3 }),
        ("scale", tensor(Format::Bf16, &[])),
    ])
    .unwrap();
    let json = directory(concat!(
        r#"{"name":"bias","kind":"tensor","shape":[2],"format":"I32","layout":"contiguous-le-v1","offset":0,"bytes":8},"#,
        r#"{"name":"note","kind":"resource","encoding":"raw-bytes-v1","offset":8,"bytes":3},"#,
        r#"{"name":"scale","kind":"tensor","shape":[],"format":"BF16","layout":"contiguous-le-v1","offset":256,"bytes":2}"#
    ));
    let mut expected = file(json, 258);
    expected[4096..4107].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]);
    expected[4352..].copy_from_slice(&[1, 2]);
    let written = write(&plan, |index| (1..=[8, 3, 2][index]).collect());
    assert_eq!(plan.file_bytes(), expected.len() as u64);
    assert!(written == expected, "{}", String::from_utf8_lossy(&written[..600]));
}

#[test]
fn names_are_escaped() {
    let name = "\"\\\0\u{1}\u{7f}\u{2028}ü😀";
    let plan = plan(&[(name, Content::Resource { bytes: 1 })]).unwrap();
    let written = write(&plan, |_| vec![7]);
    assert_eq!(Artifact::new(&written).unwrap().directory().objects()[0].name(), name);
}

#[test]
fn what_the_reader_would_refuse_is_refused() {
    let one = || Content::Resource { bytes: 1 };
    assert!(matches!(plan(&[]), Err(Error::Empty { member: "objects", .. })));
    assert!(matches!(plan(&[("", one())]), Err(Error::Empty { member: "name", .. })));
    assert!(matches!(plan(&[("a", one()), ("a", one())]), Err(Error::DuplicateName { .. })));
    assert!(matches!(plan(&[("a", Content::Resource { bytes: 0 })]), Err(Error::EmptyResource { .. })));
    assert!(matches!(plan(&[("a", tensor(Format::Nvfp4, &[1, 64]))]), Err(Error::Plan { .. })));
    let huge = Content::Resource { bytes: u64::MAX };
    assert!(matches!(plan(&[("a", huge.clone())]), Err(Error::FileTooLarge { .. })));
    assert!(matches!(plan(&[("a", one()), ("b", huge)]), Err(Error::FileTooLarge { .. })));
    let nameless = Identity { model_id: String::new(), weights_id: "w".into() };
    let error = FilePlan::new(nameless, vec![("a".into(), one())]).unwrap_err();
    assert!(matches!(error, Error::Empty { member: "model_id", .. }));
}

#[test]
fn payloads_come_whole_and_in_order() {
    let plan = plan(&[("a", Content::Resource { bytes: 2 }), ("b", Content::Resource { bytes: 1 })]).unwrap();
    let start = || Writer::new(plan.clone(), Vec::new()).unwrap();
    let refused = |result: Result<(), Error>| matches!(result, Err(Error::Sequence { .. }));

    assert!(refused(start().append(&[1])), "nothing begun");
    assert!(refused(start().begin("b")), "out of order");
    let mut writer = start();
    writer.begin("a").unwrap();
    assert!(refused(writer.append(&[1, 2, 3])), "too long");
    writer.append(&[1]).unwrap();
    assert!(refused(writer.begin("b")), "too short");
    writer.append(&[2]).unwrap();
    assert!(refused(writer.append(&[3])), "too long");
    writer.begin("b").unwrap();
    writer.append(&[3]).unwrap();
    assert!(refused(writer.begin("c")), "past the end");
    assert!(writer.finish().unwrap().ends_with(&[1, 2, 3]));

    let mut writer = start();
    writer.begin("a").unwrap();
    writer.append(&[1, 2]).unwrap();
    assert!(matches!(writer.finish(), Err(Error::Sequence { .. })), "b is missing");
}

#[test]
fn a_sink_that_fails_is_an_error() {
    let plan = plan(&[("a", Content::Resource { bytes: 2 })]).unwrap();
    let mut room = [0; 4097];
    let mut writer = Writer::new(plan.clone(), &mut room[..]).unwrap();
    writer.begin("a").unwrap();
    assert!(matches!(writer.append(&[1, 2]), Err(Error::Io(_))));
    assert!(matches!(Writer::new(plan, &mut [0; 8][..]), Err(Error::Io(_))));
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        (1u64..700).prop_map(|bytes| Content::Resource { bytes }),
        (0..3usize, prop::collection::vec(1u64..5, 0..5))
            .prop_map(|(format, shape)| tensor(Format::ALL[format], &shape)),
        (3..7usize, 1u64..5, 1u64..300).prop_map(|(format, n, k)| tensor(Format::ALL[format], &[n, k])),
        (1u64..3, 1u64..3).prop_map(|(n, k)| tensor(Format::Nvfp4, &[n * 128, k * 64])),
        (1u64..5, 1u64..300).prop_map(|(n, k)| tensor(Format::Fp8E4M3FnRowBf16S, &[n, k])),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(contents in prop::collection::vec(content(), 1..9)) {
        let contents: Vec<_> = (0..).map(|index: u8| format!("object {index}")).zip(contents).collect();
        let plan = FilePlan::new(identity(), contents.clone()).unwrap();
        let payload = |index: usize| {
            let bytes = plan.directory().objects()[index].bytes() as usize;
            (0..bytes).map(|byte| (byte * 7 + index) as u8 | 1).collect::<Vec<u8>>()
        };
        let written = write(&plan, payload);
        prop_assert_eq!(written.len() as u64, plan.file_bytes());
        prop_assert!(written == write(&plan, payload), "the same contents give the same bytes");

        let artifact = Artifact::new(&written).unwrap();
        prop_assert_eq!(artifact.directory(), plan.directory());
        prop_assert_eq!(artifact.directory(), &Directory::read(&mut std::io::Cursor::new(&written)).unwrap());
        let mut previous_end = 0;
        for (index, object) in artifact.directory().objects().iter().enumerate() {
            prop_assert_eq!(object.name(), &contents[index].0);
            prop_assert!(artifact.payload(object) == payload(index));
            // The first permitted offset, and zeros before it.
            let alignment = object.plan().map_or(1, |plan| plan.alignment());
            prop_assert_eq!(object.offset(), u64::next_multiple_of(previous_end, alignment));
            let payloads = &written[artifact.directory().payload_offset() as usize..];
            prop_assert!(payloads[previous_end as usize..object.offset() as usize].iter().all(|&byte| byte == 0));
            previous_end = object.offset() + object.bytes();
        }
    }
}
