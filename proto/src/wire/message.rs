//! Conversion of message descriptions to and from protobuf.

use super::pb;
use crate::items::{Destination, Message};
use crate::{MessageId, PeId};

pub(super) fn put_message(message: &Message) -> pb::Message {
    pb::Message {
        id: message.id.0,
        source: message.source.0,
        destination: message.destination.one().map(|pe| pe.0),
        bytes: message.bytes,
    }
}

pub(super) fn parse_message(message: &pb::Message) -> Message {
    let one = message.destination.map(|pe| Destination::One(PeId(pe)));
    Message {
        id: MessageId(message.id),
        source: PeId(message.source),
        destination: one.unwrap_or(Destination::Others),
        bytes: message.bytes,
    }
}
