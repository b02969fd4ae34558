//! Which messages operations have, and what they owe whom.
//!
//! What is owed is counted by *deliveries*: a message at one of its destinations. Arrays of
//! lengths, arrivals and the like have an element for each delivery; one that is null is 0
//! there. Where the root is an end of every message, a delivery is numbered as the PE at the
//! other end.

use crate::items::{Address, Destination};
use crate::{MessageId, PeId, Tree};

/// The messages of an operation on a tree, those of absent PEs included.
pub(super) struct Messages {
    /// The message with an id; `None` if there is none.
    pub address: fn(&Tree, MessageId) -> Option<Address>,
    /// How many ids there are at most.
    pub ids: fn(&Tree) -> u64,
    /// The number of a delivery: of a message, at a PE.
    pub delivery: fn(MessageId, PeId) -> usize,
}

/// One from the root for each other PE.
pub(super) const FROM_ROOT: Messages = Messages {
    address: |tree, id| {
        one_end(tree, id).map(|pe| Address {
            id,
            source: tree.root(),
            destination: Destination::One(pe),
        })
    },
    ids: |tree| tree.len() as u64,
    delivery: |id, _| id.index(),
};

/// One for the root from each other PE.
pub(super) const TO_ROOT: Messages = Messages {
    address: |tree, id| {
        one_end(tree, id).map(|pe| Address {
            id,
            source: pe,
            destination: Destination::One(tree.root()),
        })
    },
    ..FROM_ROOT
};

/// One from the root for all others.
pub(super) const TO_OTHERS: Messages = Messages {
    address: |tree, id| {
        (id == MessageId(0)).then_some(Address {
            id,
            source: tree.root(),
            destination: Destination::Others,
        })
    },
    ids: |_| 1,
    delivery: |_, at| at.index(),
};

/// The other end of a message between the root and one other PE.
fn one_end(tree: &Tree, id: MessageId) -> Option<PeId> {
    let is_one = id.0 < tree.len() as u64 && id.pe() != tree.root();
    is_one.then(|| id.pe())
}
