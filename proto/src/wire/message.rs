//! Conversion of message descriptions to and from protobuf.

use super::WireError;
use super::codec::{Wire, record};
use crate::PeId;
use crate::items::{Destination, Message};

/// One PE, or absent for all others.
impl Wire for Destination {
    type Pb = Option<u32>;

    fn put(&self) -> Option<u32> {
        self.one().map(|pe| pe.0)
    }

    fn parse(pb: Option<u32>) -> Result<Destination, WireError> {
        let one = pb.map(|pe| Destination::One(PeId(pe)));
        Ok(one.unwrap_or(Destination::Others))
    }
}

record! { Message = Message { id, source, destination, bytes } }
