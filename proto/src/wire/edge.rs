//! The frames of a tree edge that are not flits.

use prost::Message as _;

use super::codec::{Wire, record, required};
use super::pb::frame::Kind;
use super::{Secret, WireError, pb, put_frame};
use crate::items::Control;
use crate::schedule::certification::Certificate;
use crate::{PeId, RoundId, Time};

/// The first frame in each direction of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    pub cluster: u64,
    pub pe: PeId,
    /// Oldest protocol version offered.
    pub min_version: u32,
    /// Newest protocol version offered.
    pub max_version: u32,
    pub secret: Secret,
    /// Tree that the connection belongs to, if several are used at once.
    pub lane: u32,
}

/// The start of a burst that measures the edge: flits without a head follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    pub flits: u32,
    /// Number of flits of the answer.
    pub reply_flits: u32,
    /// Payload bytes of each flit of the answer.
    pub reply_flit_bytes: u32,
}

/// A frame of a tree edge that is not a flit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeFrame {
    Hello(Hello),
    Control {
        round: RoundId,
        item: Control,
    },
    /// Starts a burst that measures the edge.
    Probe(Probe),
    /// Ends the answer to a probe. Both times are on the sender's monotonic clock.
    ProbeReply {
        /// Time when the last flit of the burst had arrived.
        received_ns: u64,
        /// Time before the first byte of the answer was sent.
        answered_ns: u64,
    },
    /// Precedes each frame on a shaped edge.
    Departed {
        /// Departure of that frame's last byte, on the monotonic clock that both ends read: they
        /// are processes of one host.
        at: Time,
        /// Whether the flit behind it belongs to the packet of the one before.
        joins: bool,
    },
}

impl EdgeFrame {
    /// Appends the frame with its length prefix.
    pub fn put(&self, out: &mut Vec<u8>) {
        let kind = match *self {
            EdgeFrame::Hello(hello) => Kind::Hello(hello.put()),
            EdgeFrame::Control { round, item } => control_kind(round.0, item),
            EdgeFrame::Probe(probe) => Kind::Probe(probe.put()),
            EdgeFrame::ProbeReply {
                received_ns,
                answered_ns,
            } => Kind::ProbeReply(pb::ProbeReply {
                received_ns,
                answered_ns,
            }),
            EdgeFrame::Departed { at, joins } => {
                Kind::Departed(pb::Departed { at_ns: at.0, joins })
            }
        };
        let frame = pb::Frame {
            kind: Some(kind),
            ..pb::Frame::default()
        };
        put_frame(&frame, out);
    }

    /// Parses the body of a frame.
    pub fn parse(body: &[u8]) -> Result<EdgeFrame, WireError> {
        let control = |round, item| EdgeFrame::Control {
            round: RoundId(round),
            item,
        };
        let kind = pb::Frame::decode(body)?.kind;
        let kind = kind.ok_or_else(|| WireError::malformed("a frame of no known kind"))?;
        Ok(match kind {
            Kind::Hello(hello) => EdgeFrame::Hello(Wire::parse(hello)?),
            Kind::Wakeup(pb::Wakeup { round, after }) => control(round, Control::Wakeup { after }),
            Kind::Token(pb::Token { round }) => control(round, Control::Token),
            Kind::Certificate(it) => {
                let certificate = Certificate {
                    lag: it.lag,
                    stream: it.stream,
                    packets: required(it.packets, "the packets of a certificate")?,
                };
                control(it.round, Control::Certificate(certificate))
            }
            Kind::Order(pb::Order { round, after }) => control(round, Control::Order { after }),
            Kind::Receipt(pb::Receipt { round }) => control(round, Control::Receipt),
            Kind::Probe(probe) => EdgeFrame::Probe(Wire::parse(probe)?),
            Kind::ProbeReply(reply) => EdgeFrame::ProbeReply {
                received_ns: reply.received_ns,
                answered_ns: reply.answered_ns,
            },
            Kind::Departed(pb::Departed { at_ns, joins }) => EdgeFrame::Departed {
                at: Time(at_ns),
                joins,
            },
            Kind::Flit(_) | Kind::Packed(_) => {
                return Err(WireError::malformed("a flit where none may be"));
            }
        })
    }
}

record! { Hello = Hello { cluster, pe, min_version, max_version, secret, lane } }
record! { Probe = Probe { flits, reply_flits, reply_flit_bytes } }

fn control_kind(round: u64, item: Control) -> Kind {
    match item {
        Control::Wakeup { after } => Kind::Wakeup(pb::Wakeup { round, after }),
        Control::Token => Kind::Token(pb::Token { round }),
        Control::Certificate(it) => Kind::Certificate(pb::Certificate {
            round,
            lag: it.lag,
            stream: it.stream,
            packets: Some(it.packets.put()),
        }),
        Control::Order { after } => Kind::Order(pb::Order { round, after }),
        Control::Receipt => Kind::Receipt(pb::Receipt { round }),
    }
}
