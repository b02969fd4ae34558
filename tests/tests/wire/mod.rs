//! Compatibility with protobuf libraries: messages encoded by this project are parsed by a library,
//! and the reverse. Each case is a value and its protobuf text form, in which no field has its
//! default.

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
use flitcast_tests::words::written;
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

    /// Checks that a message is refused wherever it is cut off.
    #[track_caller]
    fn refuses_parts(&self, value: &T, text: &str) {
        let frame = written(|out| (self.put)(value, out));
        let body = body(&frame);
        for cut in 0..body.len() {
            assert!((self.parse)(&body[..cut]).is_err(), "{text}, cut at {cut}");
        }
    }
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
