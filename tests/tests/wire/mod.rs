//! Compatibility with protobuf libraries: messages encoded by this project are parsed by a library,
//! and the reverse. Each case is a value and its protobuf text form, in which no field has its
//! default.

mod commands;
mod control;
mod edge;
mod flit;
mod memory;
mod nonsense;
mod parts;
mod reference;

use std::fmt::{Debug, Display};

use flitcast_proto::wire::{LENGTH_BYTES, MAX_CONTROL_FRAME, frame_length};

/// Returns the frame that `put` appends.
fn written(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = Vec::new();
    put(&mut frame);
    frame
}

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

#[test]
fn a_length_above_the_limit_is_refused() {
    assert_eq!(frame_length([0, 0, 4, 0], 1024), Ok(1024));
    for (prefix, length) in [([0, 0, 4, 1], 1025), ([255; 4], u32::MAX)] {
        for part in [length, 1024] {
            refuses(prefix, frame_length(prefix, 1024), &part.to_string());
        }
    }
}
