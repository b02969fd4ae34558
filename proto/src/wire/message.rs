//! Conversion of message descriptions to and from protobuf.

use super::codec::Wire;
use super::{WireError, pb};
use crate::items::{Destination, Message};
use crate::{MessageId, PeId};

impl Wire for Message {
    type Pb = pb::Message;

    fn put(&self) -> pb::Message {
        pb::Message {
            id: self.id.0,
            source: self.source.0,
            destination: self.destination.one().map(|pe| pe.0),
            bytes: self.bytes,
        }
    }

    fn parse(pb: pb::Message) -> Result<Message, WireError> {
        let one = pb.destination.map(|pe| Destination::One(PeId(pe)));
        Ok(Message {
            id: MessageId(pb.id),
            source: PeId(pb.source),
            destination: one.unwrap_or(Destination::Others),
            bytes: pb.bytes,
        })
    }
}
