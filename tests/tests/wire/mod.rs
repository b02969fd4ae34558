//! Compatibility with protobuf libraries: messages encoded by this project are parsed by a library,
//! and the reverse. `golden/wire.txt` has the protobuf text form of a message of each kind, in which no
//! field has its default; after an intended change, `FLITCAST_PINS=write` writes it.

mod commands;
mod control;
mod edge;
mod flit;
mod memory;
mod nonsense;
mod reference;

use std::fmt::{Debug, Display};

use flitcast_proto::wire::control::{FromPe, ToPe};
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::{LENGTH_BYTES, MAX_CONTROL_FRAME, WireError, frame_length};
use flitcast_tests::wire_examples::{edge_frames, from_pe, to_pe, written};
use reference::Reference;

/// Checks that a case was refused for a reason.
#[track_caller]
fn refuses<T: Debug, E: Display>(case: impl Debug, parsed: Result<T, E>, reason: &str) {
    let refused = match parsed {
        Ok(parsed) => panic!("{case:?} was not refused: {parsed:?}"),
        Err(refused) => refused.to_string(),
    };
    assert!(
        refused.contains(reason),
        "{case:?}: no `{reason}` in {refused}"
    );
}

/// Returns the body of a frame, and checks its length prefix.
#[track_caller]
fn body(frame: &[u8]) -> &[u8] {
    let (prefix, body) = frame.split_first_chunk::<LENGTH_BYTES>().expect("a prefix");
    assert_eq!(u32::from_be_bytes(*prefix) as usize, body.len());
    assert_eq!(frame_length(*prefix, MAX_CONTROL_FRAME), Ok(body.len()));
    body
}

/// A kind of messages.
struct Codec<T> {
    name: &'static str,
    put: fn(&T, &mut Vec<u8>),
    parse: fn(&[u8]) -> Result<T, WireError>,
}

const FROM_PE: Codec<FromPe> = Codec {
    name: "Control",
    put: FromPe::put,
    parse: FromPe::parse,
};
const TO_PE: Codec<ToPe> = Codec {
    name: "Control",
    put: ToPe::put,
    parse: ToPe::parse,
};
const EDGE: Codec<EdgeFrame> = Codec {
    name: "Frame",
    put: EdgeFrame::put,
    parse: EdgeFrame::parse,
};

impl<T: Debug + PartialEq> Codec<T> {
    /// Checks that the reference reads a value as its text, and that its encoding of the text is read
    /// as the value.
    #[track_caller]
    fn are_alike(&self, reference: &Reference, value: T, text: &str) {
        let ours = written(|out| (self.put)(&value, out));
        reference.assert_reads(self.name, body(&ours), text);
        let theirs = reference.encode(self.name, text);
        assert_eq!((self.parse)(&theirs), Ok(value));
    }

    /// Returns the text as which the reference reads a value, and checks that its encoding of the text is
    /// read as the value.
    #[track_caller]
    fn text(&self, reference: &Reference, value: &T) -> String {
        let ours = written(|out| (self.put)(value, out));
        let text = reference.text(self.name, body(&ours));
        let theirs = reference.encode(self.name, &text);
        assert_eq!((self.parse)(&theirs).as_ref(), Ok(value));
        text
    }

    /// Checks that a message is refused wherever it is cut off.
    #[track_caller]
    fn refuses_parts(&self, value: &T) {
        let frame = written(|out| (self.put)(value, out));
        let body = body(&frame);
        for cut in 0..body.len() {
            let parsed = (self.parse)(&body[..cut]);
            assert!(parsed.is_err(), "{value:?}, cut at {cut}");
        }
    }
}

#[test]
fn every_message_is_read_as_it_was_meant() {
    let reference = Reference::new();
    let mut lines = Vec::new();
    for frame in edge_frames() {
        lines.push(EDGE.text(&reference, &frame));
        EDGE.refuses_parts(&frame);
    }
    for reply in from_pe() {
        let text = FROM_PE.text(&reference, &reply);
        let theirs = reference.encode("Control", &text);
        assert!(ToPe::parse(&theirs).is_err(), "a PE alone sends {text}");
        FROM_PE.refuses_parts(&reply);
        lines.push(text);
    }
    for command in to_pe() {
        let text = TO_PE.text(&reference, &command);
        let theirs = reference.encode("Control", &text);
        assert!(FromPe::parse(&theirs).is_err(), "no PE sends {text}");
        TO_PE.refuses_parts(&command);
        lines.push(text);
    }
    let found = lines.join("\n") + "\n";
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/wire.txt");
    if std::env::var("FLITCAST_PINS").as_deref() == Ok("write") {
        std::fs::write(golden, &found).expect("it can be written");
    }
    let expected = std::fs::read_to_string(golden).expect("it is there");
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn a_length_above_the_limit_is_refused() {
    assert_eq!(frame_length([0, 0, 4, 0], 1024), Ok(1024));
    for (prefix, length) in [([0, 0, 4, 1], 1025), ([255; 4], u32::MAX)] {
        for part in [length, 1024] {
            refuses(prefix, frame_length(prefix, 1024), &part.to_string());
        }
    }
}
