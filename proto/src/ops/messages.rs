//! Which messages operations have, and what they owe whom.
//!
//! What is owed is counted by *deliveries*: a message at one of its destinations. Arrays of
//! lengths, arrivals and the like have an element for each delivery; one that is null is 0
//! there. Where P0 is an end of every message, a delivery is numbered as the PE at the other end.

use crate::items::{Address, Destination};
use crate::{MessageId, PeId};

/// The messages of an operation among so many PEs, absent ones included.
pub(super) struct Messages {
    /// The message with an id; `None` if there is none.
    pub address: fn(usize, MessageId) -> Option<Address>,
    /// How many ids there are at most.
    pub ids: fn(usize) -> u64,
    /// The number of a delivery: of a message, at a PE.
    pub delivery: fn(MessageId, PeId) -> usize,
}

/// One from P0 for each other PE.
pub(super) const FROM_ROOT: Messages = Messages {
    address: |pes, id| {
        one_end(pes, id).map(|pe| Address {
            id,
            source: PeId::ROOT,
            destination: Destination::One(pe),
        })
    },
    ids: |pes| pes as u64,
    delivery: |id, _| id.index(),
};

/// One for P0 from each other PE.
pub(super) const TO_ROOT: Messages = Messages {
    address: |pes, id| {
        one_end(pes, id).map(|pe| Address {
            id,
            source: pe,
            destination: Destination::One(PeId::ROOT),
        })
    },
    ..FROM_ROOT
};

/// One from P0 for all others.
pub(super) const TO_OTHERS: Messages = Messages {
    address: |_, id| {
        (id == MessageId(0)).then_some(Address {
            id,
            source: PeId::ROOT,
            destination: Destination::Others,
        })
    },
    ids: |_| 1,
    delivery: |_, at| at.index(),
};

/// The other end of a message between P0 and one other PE.
fn one_end(pes: usize, id: MessageId) -> Option<PeId> {
    (1..pes as u64).contains(&id.0).then(|| id.pe())
}
