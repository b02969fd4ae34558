//! The frames of a tree edge that are no flits.

use prost::Message as _;

use super::pb::frame::Kind;
use super::{WireError, pb, put_frame};
use crate::pe::Control;
use crate::schedule::certification::Certificate;
use crate::{PeId, RoundId, Time};

/// The first frame in each direction of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Names the cluster.
    pub cluster: u64,
    /// Who is speaking.
    pub pe: PeId,
    /// The oldest protocol version offered.
    pub min_version: u32,
    /// The newest protocol version offered.
    pub max_version: u32,
}

/// A frame of a tree edge that is no flit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeFrame {
    /// Opens the edge.
    Hello(Hello),
    /// A control item of a round.
    Control {
        /// The round.
        round: RoundId,
        /// The item.
        item: Control,
    },
    /// One of a burst of frames that measures the edge.
    Probe {
        /// After this one the receiver answers.
        last: bool,
        /// Payload bytes of each frame of the answer.
        reply_bytes: u32,
        /// Frames of the answer.
        reply_frames: u32,
        /// The payload of this frame.
        payload: bytes::Bytes,
    },
    /// One frame of the answer to a probe.
    ProbeReply {
        /// Its payload.
        payload: bytes::Bytes,
    },
    /// On a shaped edge, ahead of each frame.
    Departed {
        /// When that frame's last byte departs, on the monotonic clock that both ends
        /// read: they are processes of one host.
        at: Time,
    },
}

impl EdgeFrame {
    /// Appends the frame, length prefix and all.
    pub fn put(&self, out: &mut Vec<u8>) {
        let kind = match self.clone() {
            EdgeFrame::Hello(hello) => Kind::Hello(pb::Hello {
                cluster: hello.cluster,
                pe: hello.pe.0,
                min_version: hello.min_version,
                max_version: hello.max_version,
            }),
            EdgeFrame::Control { round, item } => control_kind(round.0, item),
            EdgeFrame::Probe {
                last,
                reply_bytes,
                reply_frames,
                payload,
            } => Kind::Probe(pb::Probe {
                last,
                reply_bytes,
                reply_frames,
                payload,
            }),
            EdgeFrame::ProbeReply { payload } => Kind::ProbeReply(pb::ProbeReply { payload }),
            EdgeFrame::Departed { at } => Kind::Departed(pb::Departed { at_ns: at.0 }),
        };
        put_frame(&pb::Frame { kind: Some(kind) }, out);
    }

    /// Reads a frame's body.
    pub fn parse(body: &[u8]) -> Result<EdgeFrame, WireError> {
        let kind = pb::Frame::decode(body)?.kind;
        Ok(
            match kind.ok_or_else(|| WireError::malformed("a frame of no known kind"))? {
                Kind::Hello(hello) => EdgeFrame::Hello(Hello {
                    cluster: hello.cluster,
                    pe: PeId(hello.pe),
                    min_version: hello.min_version,
                    max_version: hello.max_version,
                }),
                Kind::Wakeup(pb::Wakeup { round, after }) => EdgeFrame::Control {
                    round: RoundId(round),
                    item: Control::Wakeup { after },
                },
                Kind::Token(pb::Token { round }) => EdgeFrame::Control {
                    round: RoundId(round),
                    item: Control::Token,
                },
                Kind::Certificate(pb::Certificate {
                    round,
                    lag,
                    stream,
                    bytes,
                }) => {
                    let item = Control::Certificate(Certificate { lag, stream, bytes });
                    EdgeFrame::Control {
                        round: RoundId(round),
                        item,
                    }
                }
                Kind::Order(pb::Order { round, after }) => EdgeFrame::Control {
                    round: RoundId(round),
                    item: Control::Order { after },
                },
                Kind::Receipt(pb::Receipt { round }) => EdgeFrame::Control {
                    round: RoundId(round),
                    item: Control::Receipt,
                },
                Kind::Probe(pb::Probe {
                    last,
                    reply_bytes,
                    reply_frames,
                    payload,
                }) => EdgeFrame::Probe {
                    last,
                    reply_bytes,
                    reply_frames,
                    payload,
                },
                Kind::ProbeReply(pb::ProbeReply { payload }) => EdgeFrame::ProbeReply { payload },
                Kind::Departed(pb::Departed { at_ns }) => EdgeFrame::Departed { at: Time(at_ns) },
                Kind::Flit(_) => return Err(WireError::malformed("a flit where none may be")),
            },
        )
    }
}

fn control_kind(round: u64, item: Control) -> Kind {
    match item {
        Control::Wakeup { after } => Kind::Wakeup(pb::Wakeup { round, after }),
        Control::Token => Kind::Token(pb::Token { round }),
        Control::Certificate(Certificate { lag, stream, bytes }) => {
            Kind::Certificate(pb::Certificate {
                round,
                lag,
                stream,
                bytes,
            })
        }
        Control::Order { after } => Kind::Order(pb::Order { round, after }),
        Control::Receipt => Kind::Receipt(pb::Receipt { round }),
    }
}
