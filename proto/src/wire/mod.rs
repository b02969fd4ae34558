//! Wire messages and their framing: the meaning of the bytes on a connection.
//!
//! Every frame is a 4-byte big-endian length and one protobuf message of that length. Other modules
//! use the types of this module; the generated ones stay in [`pb`], for this module and for tools
//! that read a captured frame. On a tree edge every frame also has a seal ([`seal`]).

pub mod admission;
mod codec;
pub mod control;
pub mod edge;
pub mod flit;
#[allow(clippy::all)]
#[rustfmt::skip]
mod generated;
pub mod packed;
pub mod reader;
pub mod seal;

use thiserror::Error;

pub use crate::limits::{
    LENGTH_BYTES, MAX_ADMISSION, MAX_CONTROL_FRAME, MAX_COUNTED_EDGES, MAX_DELIVERIES,
    MAX_FLIT_BYTES, MAX_FLIT_PREFIX, MAX_GREETING, MAX_JOBS, MAX_LANES, MAX_LAST_LINES,
    MAX_LINE_CHARS, MAX_NOT_TAKEN, MAX_PARTS, MAX_REPORT_SPANS, MAX_WELCOME, MIN_FLIT_BYTES,
    max_frame_of_pe,
};

pub use admission::Secret;

/// The generated protobuf types, as `proto/flitcast.proto` defines them.
pub mod pb {
    pub use crate::wire::generated::*;
}

/// Oldest supported protocol version.
pub const MIN_VERSION: u32 = 30;
/// Newest supported protocol version.
pub const MAX_VERSION: u32 = 30;

/// Returns the newest version that both sides support.
pub fn negotiate(peer_min: u32, peer_max: u32) -> Result<u32, WireError> {
    let version = peer_max.min(MAX_VERSION);
    if version < peer_min.max(MIN_VERSION) {
        return Err(WireError::NoCommonVersion { peer_min, peer_max });
    }
    Ok(version)
}

/// Bytes that are not a frame of this protocol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// A frame that is longer than permitted, rejected before memory is reserved.
    #[error("a frame of {length} bytes is announced; the limit is {limit}")]
    TooLong { length: u64, limit: u64 },
    /// Not a protobuf message, or not one of this protocol.
    #[error("a frame cannot be decoded: {0}")]
    Malformed(String),
    #[error("the checksum of a frame is wrong: it was changed on its way")]
    Changed,
    /// A frame of an edge is not the next one.
    #[error("received frame {sequence} of the connection instead of frame {expected}")]
    Skipped {
        /// Number of the frame.
        sequence: u32,
        expected: u32,
    },
    /// No version is supported by both sides.
    #[error(
        "the peer speaks protocol versions {peer_min} to {peer_max}, this side {MIN_VERSION} to {MAX_VERSION}: \
         install the same flitcast on both hosts"
    )]
    NoCommonVersion {
        /// Oldest version of the peer.
        peer_min: u32,
        /// Newest version of the peer.
        peer_max: u32,
    },
}

impl WireError {
    fn malformed(what: impl std::fmt::Display) -> WireError {
        WireError::Malformed(what.to_string())
    }
}

impl From<prost::DecodeError> for WireError {
    fn from(error: prost::DecodeError) -> WireError {
        WireError::malformed(error)
    }
}

/// Returns the length that a frame's first four bytes declare, if it is at most `limit`.
pub fn frame_length(prefix: [u8; LENGTH_BYTES], limit: usize) -> Result<usize, WireError> {
    let length = u32::from_be_bytes(prefix) as usize;
    check_length(length, limit).map(|()| length)
}

fn check_length(length: usize, limit: usize) -> Result<(), WireError> {
    let [length, limit] = [length, limit].map(|bytes| bytes as u64);
    match length > limit {
        true => Err(WireError::TooLong { length, limit }),
        false => Ok(()),
    }
}

/// Appends `message` to `out` as a frame.
fn put_frame(message: &impl prost::Message, out: &mut Vec<u8>) {
    let length = message.encoded_len();
    out.reserve(LENGTH_BYTES + length);
    // Every frame built here is far below 4 GiB: see `crate::limits`.
    out.extend_from_slice(&(length as u32).to_be_bytes());
    message.encode_raw(out);
}
