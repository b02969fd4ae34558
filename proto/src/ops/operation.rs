//! Operations and algorithms by name, and the kinds of their properties.

use super::gossip_on_network::OnNetwork;
use crate::Tree;
use crate::schedule::certification::Sync;

/// The operation of a round and the algorithm for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Scatter, farthest destination first.
    Scatter,
    /// Gather by Shoulder-Tap; the tree must be a path.
    ShoulderTap,
    /// Gather by Transmission-Certification.
    Certification(Sync),
    /// Baseline: gather on a star. The root asks one PE after the other, with at most `window`
    /// requests pending.
    LinearGather {
        /// At least 1.
        window: u32,
    },
    /// Baseline: gather in which each PE holds all messages of its subtree before it forwards them.
    CombiningGather,
    /// Baseline: scatter in which each PE holds all messages for its subtree before it forwards
    /// them.
    CombiningScatter,
    /// Scatter, farthest destination first, by a static schedule.
    ListedScatter,
    /// Broadcast: the root has one message for all other PEs.
    Broadcast(Broadcast),
    /// Gossip by a static schedule: each PE has one message for all other PEs.
    Gossip(Gossip),
    /// Total exchange by a static schedule: each PE has one message for each other PE.
    Exchange(Exchange),
}

/// The algorithms for a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broadcast {
    /// Flit after flit, each as the token goes.
    Rounds,
    /// In each step to the child that is most behind.
    Urgent,
    /// The whole message to one child after the other, as simple relays do.
    ChildByChild,
    /// Over the trees of a hypercube on a complete network.
    Hypercube,
}

/// The algorithms for a gossip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gossip {
    /// Over the edges of the tree.
    Flood,
    /// In a ring of all PEs: each PE forwards to the next PE what the previous one sent.
    Circulate,
    /// In step k each PE sends all that it has to the PE with a number less by 2^k (Bruck et al.).
    Dissemination,
    /// Each PE sends its own message to all others, one after the other.
    Direct,
    /// With an algorithm for a network; PEs do not receive either of them.
    OnNetwork(Option<OnNetwork>),
}

/// The algorithms for a total exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// Rounds of pairs with split messages, optimal at the busiest port.
    Rounds,
    /// In round k, each PE sends to the PE with a number greater by k.
    Shifts,
    /// Over the edges of the tree only.
    Tree,
    /// All messages at the same time, in an order that the network decides.
    AtOnce,
}

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

/// The event that permits a source to start sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartSignal {
    /// The trigger of the round; the root is the source.
    Trigger,
    /// The token, as in common implementations.
    Token,
    /// A time that the coordinator sets, the same for all PEs: all are sources.
    Clock,
    /// An order or a wakeup call for this source.
    Order,
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

impl TreeRequirement {
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
