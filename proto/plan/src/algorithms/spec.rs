//! The properties of an algorithm, and values that several algorithms have in common.

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::ops::{Collective, PeRole};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{MessageId, PeId, Tree};

use super::lock_step::LockStep;
use crate::schedule::gather_steps;
use crate::timing::Timing;

/// The trees on which an algorithm works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeRequirement {
    /// All trees.
    Trees,
    /// Paths: no PE has two children.
    Paths,
    /// Stars: all PEs but the root are children of the root.
    Stars,
    /// All trees; the PEs also connect to each other outside the tree.
    Complete,
    /// Trees of 2, 4, 8 and so on PEs without absent PEs; the PEs also connect outside the tree.
    Cubes,
}

impl TreeRequirement {
    /// Returns whether data crosses edges of the tree only.
    pub fn stays_in_tree(self) -> bool {
        !matches!(self, TreeRequirement::Complete | TreeRequirement::Cubes)
    }

    /// Returns whether a tree is of this kind.
    pub fn holds(self, tree: &Tree) -> bool {
        match self {
            TreeRequirement::Trees | TreeRequirement::Complete => true,
            TreeRequirement::Paths => tree.is_path(),
            TreeRequirement::Stars => tree.children(tree.root()).len() + 1 == tree.count(),
            TreeRequirement::Cubes => tree.len().is_power_of_two() && tree.count() == tree.len(),
        }
    }
}

/// The links on which an algorithm can be quicker than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRequirement {
    /// Any links.
    Any,
    /// Links that are slower than the software. Without them, messages in parts cost memory traffic that
    /// no prediction includes: a broadcast of 64 MiB took 1.6 times as long as over a star.
    Slow,
    /// Links that are slower than the software, in rate or in latency.
    SlowOrFar,
    /// Links with a set-up time.
    Setup,
}

/// Number of ports of a PE: one in each direction, or one for each neighbour. All PEs of a static
/// schedule use them, and P0 alone in a scatter or a gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllPorts {
    /// One port in each direction.
    Never,
    /// A port for each neighbour if each neighbour has a separate link.
    WithOwnLinks,
    /// A port for each neighbour in any case.
    Always,
}

/// The algorithm as users see it.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The commands in which users can name the algorithm.
    pub kind: OfferKind,
    /// Names of the methods that users may choose or compare, each with its pacing if it has one.
    /// Empty if no choice considers the algorithm, or only on a baseline's tree.
    pub ways: &'static [(&'static str, Option<Pacing>)],
    /// Help of the value of `--algorithm`; of a broadcast and a gossip with its name, since their
    /// algorithms are parts of one sentence.
    pub help: &'static str,
    /// Options of `flitcast plan` that the algorithm requires.
    pub needs: &'static str,
    /// The kind of network, as in `kind:N`, that has all edges between peers; empty if there is none
    /// but complete ones.
    pub network: &'static str,
}

/// The commands in which users can name an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferKind {
    /// None.
    Internal,
    /// All.
    Choice,
    /// All, but no choice considers it: other algorithms are compared with it.
    Baseline,
    /// All, but no help lists it.
    Hidden,
    /// `flitcast plan` and `flitcast compare`.
    Planned,
}

impl Offer {
    /// An algorithm that users cannot name.
    pub(super) const INTERNAL: Offer = Offer {
        kind: OfferKind::Internal,
        ways: &[],
        help: "",
        needs: "",
        network: "",
    };

    /// Creates the offer of an algorithm with these methods.
    pub(super) const fn choice(
        ways: &'static [(&'static str, Option<Pacing>)],
        help: &'static str,
    ) -> Offer {
        Offer {
            ways,
            ..Offer::other(OfferKind::Choice, help)
        }
    }

    /// Creates an offer that no choice considers.
    pub(super) const fn other(kind: OfferKind, help: &'static str) -> Offer {
        Offer {
            kind,
            help,
            ..Offer::INTERNAL
        }
    }
}

/// The properties of an algorithm; methods of [`Algorithm`](super::Algorithm) return most of them.
#[derive(Debug)]
pub(super) struct AlgorithmSpec {
    pub collective: Collective,
    /// Name in input and output.
    pub name: &'static str,
    /// Name of the synchronisation, if there are several.
    pub sync: Option<&'static str>,
    pub offer: Offer,
    pub fits: TreeRequirement,
    pub pays_on: LinkRequirement,
    pub gives_orders: bool,
    pub all_ports: AllPorts,
    pub role: PeRole,
    /// The PEs to which a PE connects outside the tree. May contain the PE itself, tree neighbours
    /// and absent PEs, which [`Algorithm::peers`] removes.
    pub peers: fn(&Tree, PeId) -> Vec<PeId>,
    /// The number of parts of each message.
    pub parts: fn(&Tree) -> usize,
    /// Whether the last flit of a message is part 0.
    pub has_tail: bool,
    /// The nonnull messages, those of each source in sending order. Lengths are by delivery.
    pub order: fn(&Tree, &[u64], &Timing) -> Vec<MessageId>,
    /// All crossings of the static schedule by first step; empty without one. Lengths are by
    /// delivery.
    pub hops: fn(&Tree, &[u64], &Timing) -> Vec<ScheduledHop>,
    pub plan: LockStep,
    /// Lower bound on the steps of any algorithm for the collective. Lengths are in flits.
    pub bound: fn(&Tree, &[u64]) -> u64,
    /// The latencies of a round in which all messages are nonnull.
    pub latencies: fn(&Tree) -> Latencies,
}

/// Lower bounds on the number of latencies of links that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    /// Number for control frames, before P0 receives the first flit.
    pub before: u64,
    /// Number for flits.
    pub flits: u64,
}

impl Latencies {
    /// Returns the bounds of flits alone.
    pub(super) fn of_flits(flits: u64) -> Latencies {
        Latencies { before: 0, flits }
    }

    /// Returns the bounds of messages between any two PEs that cross the edges of a tree.
    pub(super) fn across(tree: &Tree) -> Latencies {
        let beyond_root = tree.children(tree.root()).len() > 1;
        Latencies::of_flits(u64::from(tree.height()) + u64::from(beyond_root))
    }

    /// Returns the bounds of messages between the root and all PEs that cross the edges of a tree.
    pub(super) fn in_tree(tree: &Tree) -> Latencies {
        Latencies::of_flits(tree.height().into())
    }
}

/// The methods of an algorithm of this name, one for each pacing.
macro_rules! paced {
    ($name:literal) => {{
        use flitcast_proto::schedule::pace::Pacing;
        &[
            ($name, Some(Pacing::Scheduled)),
            (concat!($name, "-turns"), Some(Pacing::Turns)),
            (concat!($name, "-eager"), Some(Pacing::Eager)),
        ]
    }};
}
pub(super) use paced;

/// The properties that most algorithms share: any tree, one message of each source, one port of each PE,
/// and no name. They are those of a gather.
pub(super) const BASE: AlgorithmSpec = AlgorithmSpec {
    collective: Collective::Gather,
    name: "",
    sync: None,
    offer: Offer::INTERNAL,
    fits: TreeRequirement::Trees,
    pays_on: LinkRequirement::Any,
    gives_orders: false,
    all_ports: AllPorts::Never,
    role: PeRole::Combining,
    peers: no_peers,
    parts: |_| 1,
    has_tail: false,
    order: by_id,
    hops: |_, _, _| Vec::new(),
    plan: LockStep::None,
    bound: gather_steps,
    latencies: Latencies::in_tree,
};

/// Returns the nonnull messages by id, for algorithms in which each source has one message.
pub(super) fn by_id(_tree: &Tree, bytes: &[u64], _timing: &Timing) -> Vec<MessageId> {
    let ids = (0..).map(MessageId).zip(bytes);
    ids.filter(|(_, bytes)| **bytes > 0)
        .map(|(id, _)| id)
        .collect()
}

/// Returns a lower bound on the number of edges that a message crosses one after the other to the farthest
/// PE, if the number of PEs that have it doubles in each step but the last one.
pub(super) fn doublings(tree: &Tree) -> u64 {
    tree.count().ilog2().into()
}

/// Returns all other PEs.
pub(super) fn all_others(tree: &Tree, pe: PeId) -> Vec<PeId> {
    tree.pes().filter(|other| *other != pe).collect()
}

pub(super) fn no_peers(_tree: &Tree, _pe: PeId) -> Vec<PeId> {
    Vec::new()
}
