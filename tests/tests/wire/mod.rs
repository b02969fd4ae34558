//! Compatibility with protobuf libraries: messages encoded by this project are parsed by a library,
//! and the reverse. `golden/wire.txt` has the protobuf text form of a message of each kind, in which no
//! field has its default; `FLITCAST_PINS=write` writes the encodings and values of these beside it.

mod control;
mod edge;
mod flit;
mod memory;
mod nonsense;
mod reference;

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};

use flitcast_proto::wire::control::{FromPe, ToPe};
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::{LENGTH_BYTES, MAX_CONTROL_FRAME, WireError, frame_length};
use flitcast_tests::wire_examples::{hex, written};
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
    fn are_alike(&self, reference: &Reference, value: T, text: &str) {
        let ours = written(|out| (self.put)(&value, out));
        reference.assert_reads(self.name, body(&ours), text);
        let theirs = reference.encode(self.name, text);
        assert_eq!((self.parse)(&theirs), Ok(value));
    }

    /// Returns the line of `golden/wire_values.txt` for a text. Checks that the reference reads our encoding of
    /// the value as that text.
    #[track_caller]
    fn example(&self, reference: &Reference, text: &str) -> String {
        let value = (self.parse)(&reference.encode(self.name, text)).expect(text);
        let ours = written(|out| (self.put)(&value, out));
        assert_eq!(reference.text(self.name, body(&ours)), text);
        self.refuses_parts(&value);
        format!("{} {value:?}\n", hex(body(&ours)))
    }

    /// Checks that a message is refused wherever it is cut off.
    fn refuses_parts(&self, value: &T) {
        let frame = written(|out| (self.put)(value, out));
        let body = body(&frame);
        for cut in 0..body.len() {
            let parsed = (self.parse)(&body[..cut]);
            assert!(parsed.is_err(), "{value:?}, cut at {cut}");
        }
    }
}

/// The texts are examples of all messages, of which each PE and the coordinator send their own only.
#[test]
fn every_message_is_read_as_it_was_meant() {
    let reference = Reference::new();
    let texts = include_str!("../../golden/wire.txt").split("\n\n");
    let texts: Vec<&str> = texts.collect();
    let of_pe = |text: &str| {
        let refused = ToPe::parse(&reference.encode("Control", text));
        assert!(refused.is_err(), "a PE alone sends {text}");
        FROM_PE.example(&reference, text)
    };
    let of_coordinator = |text: &str| {
        let refused = FromPe::parse(&reference.encode("Control", text));
        assert!(refused.is_err(), "no PE sends {text}");
        TO_PE.example(&reference, text)
    };
    let found = [
        texts[0]
            .lines()
            .map(|text| EDGE.example(&reference, text))
            .collect::<String>(),
        texts[1].lines().map(of_pe).collect(),
        texts[2].lines().map(of_coordinator).collect(),
    ];
    let found = found.join("\n");
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/wire_values.txt");
    if std::env::var("FLITCAST_PINS").as_deref() == Ok("write") {
        std::fs::write(golden, &found).expect("it can be written");
    }
    let expected = std::fs::read_to_string(golden).expect("it is there");
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

/// A field that a text lacks, or that has its default there, would not be tested: but for P0 and a few more, those
/// of flits and seals, which have their own tests.
#[test]
fn the_examples_have_every_field() {
    let reference = Reference::new();
    let texts = include_str!("../../golden/wire.txt").split("\n\n");
    let mut found = BTreeSet::new();
    for (name, texts) in ["Frame", "Control", "Control"].into_iter().zip(texts) {
        texts
            .lines()
            .for_each(|text| reference.add_fields(name, text, &mut found));
    }
    let all = reference
        .fields("Frame")
        .into_iter()
        .chain(reference.fields("Control"));
    let missing: BTreeSet<String> = all.filter(|field| !found.contains(field)).collect();
    let defaults = "Arrival.source Assignment.root Departed.joins Fault.hung_up Flit.digest Flit.head Flit.payload \
        Frame.checksum Frame.flit Frame.head_checksum Frame.packed Frame.sequence Head.message Head.round \
        Link.burst_bytes Link.setup_ns Message.source Packed.block Packed.compression Packed.plain_bytes \
        ScheduledHop.from";
    assert_eq!(missing.into_iter().collect::<Vec<_>>().join(" "), defaults);
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
