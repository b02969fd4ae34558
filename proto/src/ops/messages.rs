//! Which messages operations have, and what they owe whom.
//!
//! What is owed is counted by *deliveries*: a message at one of its destinations. Arrays of
//! lengths, arrivals and the like have an element for each delivery; one that is null is 0
//! there. Where the root is an end of every message, a delivery is numbered as the PE at the
//! other end; where any two PEs may be the ends, by its pair, source * n + destination, with n
//! places for PEs in the tree.

use crate::items::{Address, Destination};
use crate::{DeliveryId, MessageId, PeId, Tree};

/// The messages of an operation on a tree, those of absent PEs included.
pub(super) struct Messages {
    /// The message with an id; `None` if there is none.
    pub address: fn(&Tree, MessageId) -> Option<Address>,
    /// How many ids there are at most.
    pub ids: fn(&Tree) -> u64,
    /// In how many parts each goes: part k of message m, of n ids, has the id k n + m.
    pub parts: fn(&Tree) -> usize,
    /// The number of a delivery: of a message, at a PE.
    pub delivery: fn(&Tree, MessageId, PeId) -> DeliveryId,
    /// Which message that is, and at which PE; `None` if there is no such delivery.
    pub delivered: fn(&Tree, DeliveryId) -> Option<(MessageId, PeId)>,
    /// Whether any two PEs may be the ends of a message, so that deliveries are numbered by pairs.
    pub of_pairs: bool,
}

/// One from the root for each other PE.
pub(super) const FROM_ROOT: Messages = Messages {
    address: |tree, id| {
        other_end(tree, id).map(|pe| Address {
            id,
            source: tree.root(),
            destination: Destination::One(pe),
        })
    },
    ids: |tree| tree.len() as u64,
    parts: |_| 1,
    delivery: |_, id, _| DeliveryId(id.0 as u32),
    delivered: |tree, delivery| numbered_as(tree, delivery).map(|pe| (pe.into(), pe)),
    of_pairs: false,
};

/// One for the root from each other PE.
pub(super) const TO_ROOT: Messages = Messages {
    address: |tree, id| {
        other_end(tree, id).map(|pe| Address {
            id,
            source: pe,
            destination: Destination::One(tree.root()),
        })
    },
    delivered: |tree, delivery| numbered_as(tree, delivery).map(|pe| (pe.into(), tree.root())),
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
    parts: |_| 1,
    delivery: |_, _, at| DeliveryId(at.0),
    delivered: |tree, delivery| numbered_as(tree, delivery).map(|pe| (MessageId(0), pe)),
    of_pairs: false,
};

/// One from each PE for all others.
pub(super) const EACH_TO_OTHERS: Messages = Messages {
    address: |tree, id| {
        (id.0 < tree.len() as u64).then(|| Address {
            id,
            source: id.pe(),
            destination: Destination::Others,
        })
    },
    ids: |tree| tree.len() as u64,
    parts: |_| 1,
    delivery: |tree, id, at| {
        let before = u64::from(id.pe().0) * tree.len() as u64;
        DeliveryId((before + u64::from(at.0)) as u32)
    },
    delivered: |tree, delivery| {
        pair(tree, delivery.0.into()).map(|[source, at]| (source.into(), at))
    },
    of_pairs: true,
};

/// One from each PE for each other PE.
pub(super) const EACH_TO_EACH: Messages = Messages {
    address: |tree, id| {
        pair(tree, id.0).map(|[source, destination]| Address {
            id,
            source,
            destination: Destination::One(destination),
        })
    },
    ids: |tree| (tree.len() as u64).pow(2),
    parts: |_| 1,
    delivery: |_, id, _| DeliveryId(id.0 as u32),
    delivered: |tree, delivery| {
        let number = u64::from(delivery.0);
        pair(tree, number).map(|[_, at]| (MessageId(number), at))
    },
    of_pairs: true,
};

/// The other end of a message between the root and one other PE.
fn other_end(tree: &Tree, id: MessageId) -> Option<PeId> {
    let is_one = id.0 < tree.len() as u64 && id.pe() != tree.root();
    is_one.then(|| id.pe())
}

/// The PE that a delivery between the root and one other PE is numbered as.
fn numbered_as(tree: &Tree, delivery: DeliveryId) -> Option<PeId> {
    other_end(tree, PeId(delivery.0).into())
}

/// The source and the destination that a number by pairs stands for.
fn pair(tree: &Tree, number: u64) -> Option<[PeId; 2]> {
    let n = tree.len() as u64;
    let (source, at) = (number / n, number % n);
    let is_one = source < n && source != at;
    is_one.then(|| [source, at].map(|pe| PeId(pe as u32)))
}
