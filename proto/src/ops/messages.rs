//! The messages and deliveries of each kind of operation.
//!
//! A *delivery* is a message at one of its destinations. Arrays of lengths, arrivals and so on have
//! an element for each delivery, which is 0 if the message is null. If the root is an end of every
//! message, a delivery has the number of the PE at the other end; if any two PEs may be the ends,
//! it has the number of the pair, `source * n + destination`, in a tree of n PEs.

use super::operation::{Direction, Layout};
use crate::items::{Address, Destination};
use crate::{DeliveryId, MessageId, PeId, Tree};

/// The messages of an operation on a tree, including those of absent PEs.
pub(super) struct Messages {
    /// Name of the operation, such as "scatter".
    pub operation: &'static str,
    pub direction: Direction,
    pub layout: Layout,
    /// Returns the message with an id, or `None` if it does not exist.
    pub address: fn(&Tree, MessageId) -> Option<Address>,
    /// Returns an upper bound on the number of ids.
    pub ids: fn(&Tree) -> u64,
    /// Returns the number of parts of each message: part k of message m, of n ids, has the id k n +
    /// m.
    pub parts: fn(&Tree) -> usize,
    /// Returns the number of the delivery of a message at a PE.
    pub delivery: fn(&Tree, MessageId, PeId) -> DeliveryId,
    /// Returns the message and the PE of a delivery, or `None` if it does not exist.
    pub delivered: fn(&Tree, DeliveryId) -> Option<(MessageId, PeId)>,
    /// Whether any two PEs may be the ends of a message, so that deliveries are numbered by pairs.
    pub of_pairs: bool,
}

/// One message from the root for each other PE.
pub(super) const FROM_ROOT: Messages = Messages {
    operation: "scatter",
    direction: Direction::Down,
    layout: Layout::ByDestination,
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

/// One message for the root from each other PE.
pub(super) const TO_ROOT: Messages = Messages {
    operation: "gather",
    direction: Direction::Up,
    layout: Layout::BySource,
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

/// One message from the root for all other PEs.
pub(super) const TO_OTHERS: Messages = Messages {
    operation: "broadcast",
    direction: Direction::Down,
    layout: Layout::Whole,
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

/// One message from each PE for all other PEs.
pub(super) const EACH_TO_OTHERS: Messages = Messages {
    operation: "gossip",
    direction: Direction::Across,
    layout: Layout::Shards,
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

/// One message from each PE for each other PE.
pub(super) const EACH_TO_EACH: Messages = Messages {
    operation: "exchange",
    direction: Direction::Across,
    layout: Layout::Pieces,
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

/// Returns the other end of a message between the root and one other PE.
fn other_end(tree: &Tree, id: MessageId) -> Option<PeId> {
    let is_one = id.0 < tree.len() as u64 && id.pe() != tree.root();
    is_one.then(|| id.pe())
}

/// Returns the other end of a delivery between the root and one other PE.
fn numbered_as(tree: &Tree, delivery: DeliveryId) -> Option<PeId> {
    other_end(tree, PeId(delivery.0).into())
}

/// Returns the source and the destination with the number of a pair.
fn pair(tree: &Tree, number: u64) -> Option<[PeId; 2]> {
    let n = tree.len() as u64;
    let (source, at) = (number / n, number % n);
    let is_one = source < n && source != at;
    is_one.then(|| [source, at].map(|pe| PeId(pe as u32)))
}
