//! The faults of a scenario, with their times and durations.

use flitcast_proto::PeId;

use super::HARMLESS_NS;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The time after the trigger of the first round.
    pub at_ns: u64,
    pub kind: Kind,
}

/// One direction of an edge of one of the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// Index of the tree in [`super::Scenario::lanes`].
    pub lane: usize,
    pub from: PeId,
    pub to: PeId,
}

impl Way {
    pub fn back(self) -> Way {
        let (from, to) = (self.to, self.from);
        Way { from, to, ..self }
    }
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process is killed; its host closes its connections.
    Kill(PeId),
    /// A host vanishes without closing its connections.
    Vanish(PeId),
    /// A host vanishes and restarts later; then it resets its old connections when they are used.
    Restart {
        pe: PeId,
        /// The time until the restart.
        after_ns: u64,
    },
    /// A process is stopped and continued later.
    Stop { pe: PeId, for_ns: u64 },
    /// A connection breaks and loses a part of the data on it.
    Cut(Way),
    /// A direction transfers nothing for a while; the data arrives later.
    Block { way: Way, for_ns: u64 },
    /// Frames take longer for a while.
    Delay { way: Way, by_ns: u64, for_ns: u64 },
    /// Frames are duplicated.
    Duplicate { way: Way, percent: u64 },
    /// Bits of one frame flip.
    Corrupt {
        way: Way,
        /// Number of frames before that one.
        skip: u64,
        bits: u64,
    },
    /// A frame of an earlier round precedes the next item.
    Late(Way),
    /// Bits of the payload of one flit flip.
    Damage {
        way: Way,
        /// Number of flits that cross unharmed before it.
        skip: u64,
        bits: u64,
    },
}

impl Kind {
    /// The names of all kinds, as in the table.
    pub const NAMES: [&'static str; 11] = [
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
        "damaged payloads",
    ];

    /// Returns the index in [`Kind::NAMES`].
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
            Kind::Damage { .. } => 10,
        }
    }

    /// Returns whether every round must be successful despite the fault.
    pub fn is_harmless(&self) -> bool {
        match self {
            Kind::Delay { .. } | Kind::Duplicate { .. } | Kind::Late(_) => true,
            Kind::Stop { for_ns, .. } | Kind::Block { for_ns, .. } => *for_ns <= HARMLESS_NS,
            _ => false,
        }
    }

    /// Returns the PE at fault.
    pub fn pe(&self) -> Option<PeId> {
        match self {
            Kind::Kill(pe)
            | Kind::Vanish(pe)
            | Kind::Restart { pe, .. }
            | Kind::Stop { pe, .. } => Some(*pe),
            _ => None,
        }
    }

    pub fn is_damage(&self) -> bool {
        matches!(self, Kind::Corrupt { .. } | Kind::Damage { .. })
    }

    /// Returns the edge at fault, in the direction of the fault.
    pub fn way(&self) -> Option<Way> {
        self.clone().way_mut().copied()
    }

    /// Returns the edge at fault, to replace it.
    pub(super) fn way_mut(&mut self) -> Option<&mut Way> {
        match self {
            Kind::Cut(way)
            | Kind::Late(way)
            | Kind::Block { way, .. }
            | Kind::Delay { way, .. }
            | Kind::Duplicate { way, .. }
            | Kind::Corrupt { way, .. }
            | Kind::Damage { way, .. } => Some(way),
            _ => None,
        }
    }

    /// Returns the delay that the fault may cause.
    pub fn lasts_ns(&self) -> u64 {
        match self {
            Kind::Stop { for_ns, .. } | Kind::Block { for_ns, .. } if *for_ns < u64::MAX => *for_ns,
            Kind::Delay { by_ns, for_ns, .. } => by_ns + for_ns,
            Kind::Restart { after_ns, .. } => *after_ns,
            _ => 0,
        }
    }
}
