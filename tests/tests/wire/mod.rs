//! What Rust wrote, any protobuf library reads, and the reverse. Each case is a value
//! of ours beside what it is in protobuf's text form, with no field left at its
//! default.

mod commands;
mod control;
mod edge;
mod flit;
mod nonsense;
mod parts;
mod reference;

use flitcast_proto::wire::{LENGTH_BYTES, MAX_CONTROL_FRAME, frame_length};

/// The body of a frame, whose length must be what its prefix says.
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
    for (prefix, length) in [([0, 0, 4, 1], 1025), ([255; 4], u64::from(u32::MAX))] {
        let refused = frame_length(prefix, 1024)
            .expect_err("too long")
            .to_string();
        assert!(refused.contains(&length.to_string()), "{refused}");
        assert!(refused.contains("1024"), "{refused}");
    }
}
