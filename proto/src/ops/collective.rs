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
use crate::{MessageId, PeId, Tree};

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

    /// Returns the direction of messages.
    pub fn direction(self) -> Direction {
        match self {
            Collective::Scatter | Collective::Broadcast => Direction::Down,
            Collective::Gather => Direction::Up,
            Collective::Gossip | Collective::Exchange => Direction::Across,
        }
    }

    /// Returns the layout of the messages in an input.
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
