//! The crossings of a plan: the order of each PE, and what each crossing waits for.

use flitcast_proto::PeId;

use crate::gossip::Piece;

/// A planned crossing of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The step in which it begins.
    pub step: u64,
    /// The sender.
    pub from: PeId,
    /// The receiver.
    pub to: PeId,
    /// The content.
    pub load: Load,
    /// Positions of the crossings that have to arrive before it can begin, besides those that bring
    /// its flits.
    pub after: Vec<usize>,
}

impl Sent {
    /// Creates a crossing that waits for its flits alone.
    pub(crate) fn new(step: u64, [from, to]: [PeId; 2], load: Load) -> Sent {
        Sent {
            step,
            from,
            to,
            load,
            after: Vec::new(),
        }
    }
}

/// The content of a planned crossing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// A control item.
    Control,
    /// Flits that leave the sender together. They are one packet if `is_whole` or if links have a
    /// set-up time; else each flit follows as soon as it is there.
    Flits {
        /// The flits, in order.
        flits: Vec<Piece>,
        /// Whether they are one packet on links without a set-up time, too.
        is_whole: bool,
    },
    /// This number of flits, each a packet. The sender has them before.
    Count(u64),
}
