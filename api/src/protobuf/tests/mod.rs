pub(crate) mod encode;

use serde::Deserialize;

use super::*;
use crate::annotations::keeping;
use crate::views::Pod;
use crate::{OwnerReference, PartialObjectMeta, View};
use encode::{field, number, varint};

#[derive(Debug, PartialEq, Deserialize)]
struct All<'a> {
    text: &'a str,
    integer: i32,
    #[serde(default)]
    flag: Option<bool>,
    #[serde(default)]
    time: Option<jiff::Timestamp>,
    #[serde(default)]
    texts: Vec<String>,
    #[serde(default)]
    many: Vec<OwnerReference>,
    #[serde(default)]
    map: std::collections::BTreeMap<String, Option<String>>,
    #[serde(borrow, default)]
    blobs: Vec<&'a [u8]>,
}

const ALL: &Message = &[
    Field::text(1, "text"),
    Field::integer(2, "integer"),
    Field::flag(3, "flag"),
    Field::time(4, "time"),
    Field::strings(5, "texts"),
    Field::list(6, "many", &Kind::One(OwnerReference::MESSAGE)),
    Field::map(7, "map"),
    Field::blobs(8, "blobs"),
];

fn read(bytes: &[u8]) -> Result<All<'_>, Malformed> {
    All::deserialize(Reader::new(bytes, ALL))
}

#[test]
fn every_kind_of_field_is_read() {
    let entry = |key: &[u8], value: &[u8]| field(7, &[field(1, key), field(2, value)].concat());
    let bytes = [
        field(1, b"a"),
        number(2, -7),
        // Unknown fields of every wire type are passed over.
        number(100, 1),
        [varint(101 << 3 | 1), vec![0; 8]].concat(),
        field(102, b"unknown"),
        [varint(103 << 3 | 5), vec![0; 4]].concat(),
        number(3, 1),
        field(4, &[number(1, 1_000_000_000), number(2, 0)].concat()),
        field(5, b"x"),
        field(5, b""),
        field(6, &[field(1, b"Job"), field(3, b"j"), field(4, b"u"), field(5, b"batch/v1"), number(6, 1)].concat()),
        field(6, &field(4, b"v")),
        entry(b"k", b"v"),
        entry(b"l", b""),
        field(7, &field(1, b"m")),
        field(8, &[0xff]),
        field(8, b""),
    ]
    .concat();
    let owner = |api_version: &str, kind: &str, name: &str, uid: &str, controller| OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: uid.into(),
        controller,
        block_owner_deletion: false,
    };
    let expected = All {
        text: "a",
        integer: -7,
        flag: Some(true),
        time: Some("2001-09-09T01:46:40Z".parse().unwrap()),
        texts: vec!["x".to_owned(), String::new()],
        many: vec![owner("batch/v1", "Job", "j", "u", true), owner("", "", "", "v", false)],
        map: [("k", "v"), ("l", ""), ("m", "")].map(|(key, value)| (key.to_owned(), Some(value.to_owned()))).into(),
        blobs: vec![&[0xff], b""],
    };
    assert_eq!(read(&bytes), Ok(expected));
}

#[test]
fn a_time_that_is_not_set_is_none() {
    let time = |time: &[u8]| read(&[field(1, b""), number(2, 0), field(4, time)].concat()).map(|read| read.time);
    assert_eq!(time(b""), Ok(None));
    assert_eq!(time(&number(2, 5)), Ok(Some(jiff::Timestamp::UNIX_EPOCH)));
}

#[test]
fn a_time_that_cannot_be_told_is_the_nearest_that_can() {
    let time = |seconds: i64| {
        let bytes = [field(1, b""), number(2, 0), field(4, &number(1, seconds))].concat();
        read(&bytes).map(|read| read.time)
    };
    // The last second of the year 9999, which the API server takes.
    assert_eq!(time(253_402_300_799), Ok(Some(jiff::Timestamp::MAX)));
    assert_eq!(time(i64::MAX), Ok(Some(jiff::Timestamp::MAX)));
    assert_eq!(time(i64::MIN), Ok(Some(jiff::Timestamp::MIN)));
}

#[test]
fn what_is_malformed_is_refused() {
    let whole = [field(1, b"a"), number(2, 0)].concat();
    let with = |more: &[u8]| [&whole, more].concat();
    let rows: [(Vec<u8>, Malformed); 7] = [
        (field(1, b"abc")[..3].to_vec(), Malformed::Truncated),
        (vec![0x80], Malformed::Truncated),
        (vec![0xff; 11], Malformed::TooLarge),
        (varint(u64::MAX), Malformed::TooLarge),
        (with(&varint(100 << 3 | 3)), Malformed::WireType { field: 100, wire: 3 }),
        (number(1, 7), Malformed::Unexpected { field: 1, wire: 0 }),
        (
            with(&[field(5, b"x"), field(100, b""), field(5, b"y")].concat()),
            Malformed::Refused("duplicate field `texts`".to_owned()),
        ),
    ];
    for (bytes, expected) in rows {
        assert_eq!(read(&bytes), Err(expected), "{bytes:?}");
    }
}

#[test]
fn an_object_lies_in_an_envelope() {
    let meta = [field(1, b"v1"), field(2, b"Pod")].concat();
    let wrapped = [MAGIC, &field(1, &meta), &field(2, b"raw"), &field(3, b"")].concat();
    assert_eq!(unwrap(&wrapped), Ok(&b"raw"[..]));
    assert_eq!(unwrap(b"{}"), Err(Malformed::NoEnvelope));
    assert_eq!(unwrap(&wrapped[..wrapped.len() - 3]), Err(Malformed::Truncated));
}

#[test]
fn what_is_no_utf_8_is_read_as_json_shows_it() {
    let annotations = field(12, &[field(1, b"example.com/odd"), field(2, b"a\xffb")].concat());
    let deletion_cost = field(12, &[field(1, Pod::ANNOTATIONS[0].as_bytes()), field(2, b"\xff7")].concat());
    let meta = [field(1, b"web\xfe"), annotations, deletion_cost].concat();
    let pod = Pod::decode_protobuf(&field(1, &meta)).unwrap();
    assert_eq!(pod.metadata.key.name(), "web\u{fffd}");
    assert_eq!(pod.metadata.annotations.get(Pod::ANNOTATIONS[0]), Some("\u{fffd}7"));
}

/// A pod with everything that its view reads, as an API server of 1.36.3 sent it in both forms.
const RECORDED: (&str, &[u8]) =
    (include_str!("../../../fixtures/pod_recorded.json"), include_bytes!("../../../fixtures/pod_recorded.pb"));

#[test]
fn a_pod_reads_the_same_in_both_forms() {
    let (json, protobuf) = RECORDED;
    let message = unwrap(protobuf).unwrap();
    let pod = Pod::decode(json).unwrap();
    assert!(pod.is_ready() && pod.restarts > 0 && pod.sidecar_restarts > 0 && pod.node_name.is_some(), "{pod:?}");
    let meta = &pod.metadata;
    assert!(!meta.owner_references.is_empty() && !meta.finalizers.is_empty() && !meta.annotations.is_empty());
    assert!(meta.is_terminating() && meta.creation_timestamp.is_some() && !meta.labels.is_empty());
    assert_eq!(Pod::decode_protobuf(message).unwrap(), pod);
    let metadata = keeping(Pod::ANNOTATIONS, || PartialObjectMeta::decode_protobuf(message).unwrap().metadata);
    assert_eq!(metadata, pod.metadata);
}

#[test]
fn no_part_of_a_pod_makes_the_decoder_panic() {
    let message = unwrap(RECORDED.1).unwrap();
    for end in 0..message.len() {
        drop(Pod::decode_protobuf(&message[..end]));
        let mut broken = message.to_vec();
        broken[end] ^= 0xff;
        drop(Pod::decode_protobuf(&broken));
    }
}
