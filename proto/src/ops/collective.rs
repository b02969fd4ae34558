//! The collectives, and the messages of each.
//!
//! A *delivery* is a message at one of its destinations. Arrays of lengths, arrivals and so on have
//! an element for each delivery, which is 0 if the message is null. If the root is an end of every
//! message, a delivery has the number of the PE at the other end; if any two PEs may be the ends,
//! it has the number of the pair, `source * n + destination`, in a tree of n PEs.
//!
//! A message may be sent in parts, each a message with its own head and digest
//! ([`super::parts`]). Part k of message m has the id `k * ids + m`, of `ids` messages.

use crate::items::{Address, Destination};
use crate::{DeliveryId, DeliveryName, MessageId, PeId, Tree};

/// The kind of a round: the sources and the destinations of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// The root has a message for each other PE.
    Scatter,
    /// Each other PE has a message for the root.
    Gather,
    /// The root has one message for all other PEs.
    Broadcast,
    /// Each PE has one message for all other PEs.
    Gossip,
    /// Each PE has a message for each other PE.
    Exchange,
}

/// The direction of messages. Receipts go the opposite way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the root. A PE sends its parent a receipt when its whole subtree has its messages.
    Down,
    /// To the root, which sends a receipt to each source whose message it has.
    Up,
    /// Between any two PEs. A PE sends its parent a receipt when its whole subtree has its
    /// messages.
    Across,
}

/// The layout of the files of messages in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The root's input has an entry for each destination.
    ByDestination,
    /// Each PE's input has an entry that is its message.
    BySource,
    /// The root's input is the message.
    Whole,
    /// Each PE's input has an entry that is its message for all other PEs.
    Shards,
    /// Each PE's input has a folder with an entry for each destination.
    Pieces,
}

impl Layout {
    /// Returns whether a PE with a separate input needs no entry with its name there.
    pub fn can_be_apart(self) -> bool {
        match self {
            Layout::ByDestination | Layout::BySource => false,
            Layout::Whole | Layout::Shards | Layout::Pieces => true,
        }
    }
}

/// Returns the source and the destination with the number of a pair.
pub(super) fn pair(tree: &Tree, number: u64) -> Option<[PeId; 2]> {
    let n = tree.len() as u64;
    let (source, at) = (number / n, number % n);
    let is_one = source < n && source != at;
    is_one.then(|| [source, at].map(|pe| PeId(pe as u32)))
}

impl Collective {
    pub const ALL: [Collective; 5] = [
        Collective::Scatter,
        Collective::Gather,
        Collective::Broadcast,
        Collective::Gossip,
        Collective::Exchange,
    ];

    /// Returns the name, such as "scatter".
    pub fn name(self) -> &'static str {
        match self {
            Collective::Scatter => "scatter",
            Collective::Gather => "gather",
            Collective::Broadcast => "broadcast",
            Collective::Gossip => "gossip",
            Collective::Exchange => "exchange",
        }
    }

    pub fn direction(self) -> Direction {
        match self {
            Collective::Scatter | Collective::Broadcast => Direction::Down,
            Collective::Gather => Direction::Up,
            Collective::Gossip | Collective::Exchange => Direction::Across,
        }
    }

    pub fn layout(self) -> Layout {
        match self {
            Collective::Scatter => Layout::ByDestination,
            Collective::Gather => Layout::BySource,
            Collective::Broadcast => Layout::Whole,
            Collective::Gossip => Layout::Shards,
            Collective::Exchange => Layout::Pieces,
        }
    }

    /// Returns whether all PEs begin a round at a time that the coordinator sets. Otherwise P0 begins,
    /// and messages start the other PEs.
    pub fn begins_by_clock(self) -> bool {
        self.direction() == Direction::Across
    }

    /// Returns whether a PE is triggered to begin a round.
    pub fn is_triggered(self, tree: &Tree, pe: PeId) -> bool {
        self.begins_by_clock() || pe == tree.root()
    }

    /// Returns whether any two PEs may be the ends of a message, instead of the root and another
    /// PE.
    pub fn is_of_pairs(self) -> bool {
        self.direction() == Direction::Across
    }

    /// Returns an upper bound on the number of ids of undivided messages.
    pub(super) fn ids(self, tree: &Tree) -> u64 {
        let pes = tree.len() as u64;
        match self {
            Collective::Scatter | Collective::Gather | Collective::Gossip => pes,
            Collective::Broadcast => 1,
            Collective::Exchange => pes * pes,
        }
    }

    /// Returns the address of an undivided message on a tree, or `None` if it does not exist.
    pub fn address(self, tree: &Tree, id: MessageId) -> Option<Address> {
        let root = tree.root();
        let (source, destination) = match self {
            Collective::Exchange => {
                let [source, destination] = pair(tree, id.0)?;
                (source, Destination::One(destination))
            }
            _ if id.0 >= self.ids(tree) => return None,
            Collective::Broadcast => (root, Destination::Others),
            Collective::Gossip => (id.pe(), Destination::Others),
            _ if id.pe() == root => return None,
            Collective::Scatter => (root, Destination::One(id.pe())),
            Collective::Gather => (id.pe(), Destination::One(root)),
        };
        Some(Address {
            id,
            source,
            destination,
        })
    }

    /// Returns the address of a message or a part on a tree whose messages have at most `parts`
    /// parts, or `None` if it does not exist.
    pub fn address_of_part(self, tree: &Tree, id: MessageId, parts: usize) -> Option<Address> {
        let (whole, part) = self.whole(tree, id);
        let address = self.address(tree, whole)?;
        (part < parts).then_some(Address { id, ..address })
    }

    /// Returns the message of which `id` is a part, and the index of the part. An undivided message
    /// is its own part 0.
    pub fn whole(self, tree: &Tree, id: MessageId) -> (MessageId, usize) {
        let ids = self.ids(tree).max(1);
        (MessageId(id.0 % ids), (id.0 / ids) as usize)
    }

    /// Returns the id of a part of a message: the inverse of [`Collective::whole`].
    pub fn part(self, tree: &Tree, whole: MessageId, part: usize) -> MessageId {
        MessageId(whole.0 + part as u64 * self.ids(tree))
    }

    /// Returns all messages on a tree by id, including those of absent PEs, which are null.
    pub fn messages(self, tree: &Tree) -> impl Iterator<Item = Address> {
        let ids = (0..self.ids(tree)).map(MessageId);
        ids.filter_map(move |id| self.address(tree, id))
    }
}

impl Collective {
    /// Returns the messages that end at a PE, by id.
    pub fn taken_by(self, tree: &Tree, pe: PeId) -> Vec<MessageId> {
        let messages = self.messages(tree);
        let taken = messages.filter(|message| message.is_for(pe));
        taken.map(|message| message.id).collect()
    }

    /// Returns the delivery of an existing message, or of a part of it, at an existing PE.
    pub fn delivery(self, tree: &Tree, message: MessageId, at: PeId) -> DeliveryId {
        let (MessageId(whole), _) = self.whole(tree, message);
        DeliveryId(match self {
            Collective::Broadcast => at.0,
            Collective::Gossip => (whole * tree.len() as u64 + u64::from(at.0)) as u32,
            _ => whole as u32,
        })
    }

    /// Returns the message and the PE of a delivery, or `None` if it does not exist.
    pub fn delivered(self, tree: &Tree, delivery: DeliveryId) -> Option<(Address, PeId)> {
        let number = MessageId(delivery.0.into());
        let pe = PeId(delivery.0);
        let other_end = || (pe.index() < tree.len() && pe != tree.root()).then_some(pe);
        let (message, at) = match self {
            Collective::Scatter => (number, other_end()?),
            Collective::Gather => (number, other_end().and(Some(tree.root()))?),
            Collective::Broadcast => (MessageId(0), other_end()?),
            Collective::Gossip => {
                let [source, at] = pair(tree, number.0)?;
                (source.into(), at)
            }
            Collective::Exchange => (number, pair(tree, number.0)?[1]),
        };
        Some((self.address(tree, message)?, at))
    }

    /// Returns whether both ends of a delivery are on a tree.
    pub fn can_deliver(self, tree: &Tree, delivery: DeliveryId) -> bool {
        let found = self.delivered(tree, delivery);
        found.is_some_and(|(message, at)| tree.contains(message.source) && tree.contains(at))
    }

    /// Returns the length of arrays that are indexed by delivery.
    pub fn deliveries(self, tree: &Tree) -> usize {
        match self.is_of_pairs() {
            true => tree.len() * tree.len(),
            false => tree.len(),
        }
    }

    /// Returns the name of an existing delivery for users: the PE at its other end if the root is
    /// one end, or else its source and its destination.
    pub fn delivery_name(self, tree: &Tree, delivery: DeliveryId) -> DeliveryName {
        let pe = |index: usize| PeId(index as u32);
        let (index, pes) = (delivery.index(), tree.len());
        match self.is_of_pairs() {
            true => DeliveryName {
                row: pe(index % pes),
                source: Some(pe(index / pes)),
            },
            false => DeliveryName {
                row: pe(index),
                source: None,
            },
        }
    }

    /// Returns the delivery with this name, if it exists.
    pub fn delivery_named(self, tree: &Tree, name: DeliveryName) -> Option<DeliveryId> {
        let before = name.source.map_or(0, |source| source.index() * tree.len());
        let delivery = DeliveryId((before + name.row.index()) as u32);
        let is_one = self.delivered(tree, delivery).is_some();
        (is_one && self.delivery_name(tree, delivery) == name).then_some(delivery)
    }

    /// Returns the PE whose row of a report contains a delivery.
    pub fn row(self, tree: &Tree, delivery: DeliveryId) -> PeId {
        self.delivery_name(tree, delivery).row
    }

    /// Returns all deliveries, including those of absent PEs.
    pub fn all_deliveries(self, tree: &Tree) -> impl Iterator<Item = DeliveryId> {
        let ids = (0..self.deliveries(tree)).map(|index| DeliveryId(index as u32));
        ids.filter(move |id| self.delivered(tree, *id).is_some())
    }

    /// Returns the number of lengths that describe all messages: one for each message id, or, if
    /// the root is an end of every message, one for each other PE.
    pub fn lengths_given(self, tree: &Tree) -> usize {
        match self.is_of_pairs() {
            true => self.ids(tree) as usize,
            false => tree.len() - 1,
        }
    }

    /// Returns the lengths of all deliveries; `lengths` has [`Collective::lengths_given`] elements.
    pub fn by_delivery(self, tree: &Tree, lengths: &[u64]) -> Vec<u64> {
        if !self.is_of_pairs() {
            let mut bytes = lengths.to_vec();
            bytes.insert(tree.root().index(), 0);
            return bytes;
        }
        let mut bytes = vec![0; self.deliveries(tree)];
        for message in self.messages(tree) {
            for at in message.ends(tree) {
                let delivery = self.delivery(tree, message.id, at);
                bytes[delivery.index()] = lengths[message.id.index()];
            }
        }
        bytes
    }

    /// Returns the lengths that describe all deliveries: the inverse of [`Collective::by_delivery`].
    pub fn by_message(self, tree: &Tree, bytes: &[u64]) -> Vec<u64> {
        if !self.is_of_pairs() {
            let mut lengths = bytes.to_vec();
            lengths.remove(tree.root().index());
            return lengths;
        }
        let mut lengths = vec![0; self.lengths_given(tree)];
        for message in self.messages(tree) {
            lengths[message.id.index()] = self.length(tree, message, bytes);
        }
        lengths
    }

    /// Returns the length of a message from the lengths by delivery, which is 0 only where it is
    /// left out.
    pub fn length(self, tree: &Tree, message: Address, bytes: &[u64]) -> u64 {
        let lengths = message.ends(tree);
        let lengths = lengths.map(|pe| bytes[self.delivery(tree, message.id, pe).index()]);
        lengths.max().unwrap_or(0)
    }

    /// Returns the lengths of the nonnull messages from the lengths by delivery.
    pub fn lengths(self, tree: &Tree, bytes: &[u64]) -> impl Iterator<Item = u64> {
        let messages = self.messages(tree);
        let lengths = messages.map(move |message| self.length(tree, message, bytes));
        lengths.filter(|bytes| *bytes > 0)
    }

    /// Returns for each PE, by index, the bytes of all messages that start or end there. `bytes` is
    /// by delivery.
    pub fn moved_by_pe(self, tree: &Tree, bytes: &[u64]) -> Vec<u64> {
        let mut moved = vec![0u64; tree.len()];
        let mut add = |pe: PeId, bytes: u64| {
            moved[pe.index()] = moved[pe.index()].saturating_add(bytes);
        };
        for message in self.messages(tree) {
            add(message.source, self.length(tree, message, bytes));
            for at in message.ends(tree) {
                add(at, bytes[self.delivery(tree, message.id, at).index()]);
            }
        }
        moved
    }

    /// Returns the bytes of all messages, each counted once. `bytes` is by delivery.
    pub fn total(self, tree: &Tree, bytes: &[u64]) -> u64 {
        self.lengths(tree, bytes).fold(0, u64::saturating_add)
    }
}
