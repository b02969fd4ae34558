//! What can go wrong in a scenario, when, and for how long.

use flitcast_proto::PeId;

use super::HARMLESS_NS;

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When, counted from the trigger of the first round.
    pub at_ns: u64,
    /// What.
    pub kind: Kind,
}

/// One direction of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// Who sends.
    pub from: PeId,
    /// Who receives.
    pub to: PeId,
}

impl Way {
    /// The other direction.
    pub fn back(self) -> Way {
        let Way { from, to } = self;
        Way { from: to, to: from }
    }
}

/// The ways in which something goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process is killed; its host closes its connections.
    Kill(PeId),
    /// A host is gone without a word.
    Vanish(PeId),
    /// A host is gone, and back after a while: it knows nothing of the connections that
    /// it had, and says so to whoever still uses them.
    Restart {
        /// Whose.
        pe: PeId,
        /// When it is back.
        after_ns: u64,
    },
    /// A process is stopped and goes on later.
    Stop {
        /// Whose.
        pe: PeId,
        /// For how long.
        for_ns: u64,
    },
    /// A connection breaks, with a part of what is on it.
    Cut(Way),
    /// A way carries nothing for a while; what was sent comes later.
    Block {
        /// Which.
        way: Way,
        /// For how long.
        for_ns: u64,
    },
    /// Frames take longer for a while.
    Delay {
        /// On which way.
        way: Way,
        /// How much longer.
        by_ns: u64,
        /// For how long.
        for_ns: u64,
    },
    /// Frames are doubled.
    Duplicate {
        /// On which way.
        way: Way,
        /// How many of a hundred.
        percent: u64,
    },
    /// Bits of one frame flip.
    Corrupt {
        /// On which way.
        way: Way,
        /// So many frames later.
        skip: u64,
        /// How many bits.
        bits: u64,
    },
    /// A frame of an earlier round comes ahead of the next item.
    Late(Way),
}

impl Kind {
    /// All kinds' names, as the table has them.
    pub const NAMES: [&'static str; 10] = [
        "killed processes",
        "vanished hosts",
        "restarted hosts",
        "stopped processes",
        "broken connections",
        "blocked directions",
        "delays",
        "directions with duplicates",
        "corrupted frames",
        "late frames",
    ];

    /// The place in [`Kind::NAMES`].
    pub fn place(&self) -> usize {
        match self {
            Kind::Kill(_) => 0,
            Kind::Vanish(_) => 1,
            Kind::Restart { .. } => 2,
            Kind::Stop { .. } => 3,
            Kind::Cut(_) => 4,
            Kind::Block { .. } => 5,
            Kind::Delay { .. } => 6,
            Kind::Duplicate { .. } => 7,
            Kind::Corrupt { .. } => 8,
            Kind::Late(_) => 9,
        }
    }

    /// Whether every round must end well all the same.
    pub fn is_harmless(&self) -> bool {
        match self {
            Kind::Delay { .. } | Kind::Duplicate { .. } | Kind::Late(_) => true,
            Kind::Stop { for_ns, .. } | Kind::Block { for_ns, .. } => *for_ns <= HARMLESS_NS,
            _ => false,
        }
    }

    /// The PE at fault.
    pub fn pe(&self) -> Option<PeId> {
        match self {
            Kind::Kill(pe)
            | Kind::Vanish(pe)
            | Kind::Restart { pe, .. }
            | Kind::Stop { pe, .. } => Some(*pe),
            _ => None,
        }
    }

    /// The edge at fault, in the direction of the fault.
    pub fn way(&self) -> Option<Way> {
        match self {
            Kind::Cut(way)
            | Kind::Late(way)
            | Kind::Block { way, .. }
            | Kind::Delay { way, .. }
            | Kind::Duplicate { way, .. }
            | Kind::Corrupt { way, .. } => Some(*way),
            _ => None,
        }
    }

    /// For how long it holds things up beyond what the network always takes.
    pub fn lasts_ns(&self) -> u64 {
        match self {
            Kind::Stop { for_ns, .. } | Kind::Block { for_ns, .. } if *for_ns < u64::MAX => *for_ns,
            Kind::Delay { by_ns, for_ns, .. } => by_ns + for_ns,
            Kind::Restart { after_ns, .. } => *after_ns,
            _ => 0,
        }
    }
}
