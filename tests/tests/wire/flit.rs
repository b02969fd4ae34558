//! The flit: its prefix is encoded by hand before the payload, and must equal the encoding of a
//! protobuf library.

use flitcast_proto::items::Message;
use flitcast_proto::wire::{MAX_FLIT_BYTES, flit};
use flitcast_proto::{PeId, RoundId};
use flitcast_tests::wire_examples::written;

use super::reference::Reference;
use super::{body, refuses};

type Head = (RoundId, Message);

const DIGEST: flit::Digest = *b"0123456789abcdef";

fn head() -> Head {
    (RoundId(9), Message::between(PeId(300), PeId(5), 1 << 50))
}

const HEAD: &str =
    "head { round: 9 message { id: 300 source: 300 destination: 5 bytes: 1125899906842624 } }";
const DIGEST_FIELD: &str = r#"digest: "0123456789abcdef""#;

fn all() -> Vec<(Option<Head>, Option<flit::Digest>, String)> {
    let text =
        |fields: &[&str]| format!(r#"flit {{ {} payload: "pay\000load" }}"#, fields.join(" "));
    vec![
        (None, None, text(&[])),
        (Some(head()), None, text(&[HEAD])),
        (None, Some(DIGEST), text(&[DIGEST_FIELD])),
        (Some(head()), Some(DIGEST), text(&[HEAD, DIGEST_FIELD])),
    ]
}

fn frame(head: Option<Head>, digest: Option<flit::Digest>, payload: &[u8]) -> Vec<u8> {
    let prefix = written(|out| flit::put_prefix(head, digest.as_ref(), payload.len(), out));
    [&prefix, payload].concat()
}

#[test]
fn every_flit_is_read_as_it_was_meant() {
    let reference = Reference::new();
    for (head, digest, text) in all() {
        let ours = frame(head, digest, b"pay\0load");
        reference.assert_reads("Frame", body(&ours), &text);

        let theirs = reference.encode("Frame", &text);
        assert!(flit::is_flit(&theirs));
        let read = flit::parse(&theirs).expect("it is a flit");
        assert_eq!((read.head, read.digest), (head, digest), "{text}");
        assert_eq!(&theirs[read.payload], b"pay\0load");
        assert_eq!(theirs, body(&ours), "{text}: the same to the byte");
    }
}

#[test]
fn the_longest_flit_is_read_as_it_was_meant() {
    let payload = vec![b'x'; MAX_FLIT_BYTES as usize];
    let text = format!(
        r#"flit {{ {HEAD} {DIGEST_FIELD} payload: "{}" }}"#,
        String::from_utf8_lossy(&payload)
    );
    let ours = frame(Some(head()), Some(DIGEST), &payload);
    Reference::new().assert_reads("Frame", body(&ours), &text);
}

/// Protobuf omits empty fields.
#[test]
fn a_flit_without_payload_is_read() {
    let theirs = Reference::new().encode("Frame", &format!("flit {{ {HEAD} }}"));
    let read = flit::parse(&theirs).expect("it is a flit");
    assert_eq!((read.head, read.digest), (Some(head()), None));
    assert!(read.payload.is_empty());
    Reference::new().assert_reads(
        "Frame",
        body(&frame(None, None, b"")),
        "flit { payload: \"\" }",
    );
}

#[test]
fn fields_of_a_later_version_are_skipped() {
    let later = Reference::later(&[
        ("message Head {", "message Head { string colour = 50;"),
        (
            "message Flit {",
            "message Flit { fixed32 crc = 3; string note = 4;",
        ),
    ]);
    let text = r#"flit { head { round: 9 message { id: 300 source: 300 destination: 5
                  bytes: 1125899906842624 } colour: "red" } crc: 77 note: "urgent" payload: "abc" }"#;
    let theirs = later.encode("Frame", text);
    let read = flit::parse(&theirs).expect("it is a flit");
    assert_eq!((read.head, read.digest), (Some(head()), None));
    assert_eq!(&theirs[read.payload], b"abc");
}

/// The payload would have to be copied.
#[test]
fn a_payload_with_something_behind_it_is_refused() {
    let end = "15;\n}\n\nmessage Head";
    let later_end = "15;\n  fixed32 crc = 16;\n}\n\nmessage Head";
    let later = Reference::later(&[(end, later_end)]);
    let theirs = later.encode("Frame", r#"flit { payload: "abc" crc: 77 }"#);
    refuses("a payload", flit::parse(&theirs), "last field");
}

#[test]
fn a_digest_of_another_length_is_refused() {
    let theirs = Reference::new().encode("Frame", r#"flit { digest: "short" payload: "abc" }"#);
    refuses("a digest", flit::parse(&theirs), "16 bytes");
}

#[test]
fn other_frames_are_refused() {
    let token = Reference::new().encode("Frame", "token { round: 1 }");
    assert!(!flit::is_flit(&token));
    assert!(flit::parse(&token).is_err());
    assert!(!flit::is_flit(&[]));
    assert!(flit::parse(&[]).is_err());
}

#[test]
fn a_flit_that_does_not_fill_its_frame_is_refused() {
    for (head, digest, text) in all() {
        let whole = frame(head, digest, b"pay\0load");
        let body = body(&whole);
        for cut in 0..body.len() {
            assert!(flit::parse(&body[..cut]).is_err(), "{text}, cut at {cut}");
        }
        let longer = [body, b"x"].concat();
        assert!(flit::parse(&longer).is_err(), "{text}");
    }
}
