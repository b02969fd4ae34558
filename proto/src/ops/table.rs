//! The table of algorithms: one entry each, the only place with the properties that other code
//! uses.

use super::operation::{
    Algorithm, AllPorts, Broadcast, Direction, Exchange, Gossip, Layout, StartSignal,
    TreeRequirement,
};
use super::spec::AlgorithmSpec;
use super::{
    broadcast, broadcast_hypercube, certification, combining, exchange, gossip, linear, scatter,
    shoulder_tap, static_schedule_role,
};
use crate::items::ScheduledHop;
use crate::schedule::certification::Sync;
use crate::schedule::pace::{Pacing, Timing};
use crate::{PeId, Tree};

impl Algorithm {
    /// All algorithms, with the least value of their parameters.
    pub const ALL: [Algorithm; 23] = [
        Algorithm::Scatter,
        Algorithm::ShoulderTap,
        Algorithm::Certification(Sync::Serial),
        Algorithm::Certification(Sync::Pipelined),
        Algorithm::Certification(Sync::Parallel),
        Algorithm::Certification(Sync::MultiPort),
        Algorithm::LinearGather { window: 1 },
        Algorithm::CombiningGather,
        Algorithm::CombiningScatter,
        Algorithm::ListedScatter,
        Algorithm::Broadcast(Broadcast::Rounds),
        Algorithm::Broadcast(Broadcast::Urgent),
        Algorithm::Broadcast(Broadcast::ChildByChild),
        Algorithm::Broadcast(Broadcast::Hypercube),
        Algorithm::Gossip(Gossip::Flood),
        Algorithm::Gossip(Gossip::Circulate),
        Algorithm::Gossip(Gossip::Dissemination),
        Algorithm::Gossip(Gossip::Direct),
        Algorithm::Gossip(Gossip::OnNetwork(None)),
        Algorithm::Exchange(Exchange::Rounds),
        Algorithm::Exchange(Exchange::Shifts),
        Algorithm::Exchange(Exchange::Tree),
        Algorithm::Exchange(Exchange::AtOnce),
    ];

    pub(super) fn entry(self) -> &'static AlgorithmSpec {
        match self {
            Algorithm::Scatter => &scatter::ENTRY,
            Algorithm::ShoulderTap => &shoulder_tap::ENTRY,
            Algorithm::Certification(Sync::Serial) => &certification::SERIAL,
            Algorithm::Certification(Sync::Pipelined) => &certification::PIPELINED,
            Algorithm::Certification(Sync::Parallel) => &certification::PARALLEL,
            Algorithm::Certification(Sync::MultiPort) => &certification::MULTI_PORT,
            Algorithm::LinearGather { .. } => &linear::ENTRY,
            Algorithm::CombiningGather => &combining::GATHER,
            Algorithm::CombiningScatter => &combining::SCATTER,
            Algorithm::ListedScatter => &static_schedule_role::SCATTER,
            Algorithm::Broadcast(Broadcast::Rounds) => &broadcast::ROUNDS,
            Algorithm::Broadcast(Broadcast::Urgent) => &broadcast::URGENT,
            Algorithm::Broadcast(Broadcast::ChildByChild) => &broadcast::CHILD_BY_CHILD,
            Algorithm::Broadcast(Broadcast::Hypercube) => &broadcast_hypercube::HYPERCUBE,
            Algorithm::Gossip(Gossip::Flood) => &gossip::FLOOD,
            Algorithm::Gossip(Gossip::Circulate) => &gossip::CIRCULATE,
            Algorithm::Gossip(Gossip::Dissemination) => &gossip::DISSEMINATION,
            Algorithm::Gossip(Gossip::Direct) => &gossip::DIRECT,
            Algorithm::Gossip(Gossip::OnNetwork(_)) => &gossip::ON_NETWORK,
            Algorithm::Exchange(Exchange::Rounds) => &exchange::ROUNDS,
            Algorithm::Exchange(Exchange::Shifts) => &exchange::SHIFTS,
            Algorithm::Exchange(Exchange::Tree) => &exchange::TREE,
            Algorithm::Exchange(Exchange::AtOnce) => &exchange::AT_ONCE,
        }
    }

    /// Returns a lower bound of the steps of any algorithm for the operation on this tree with one
    /// port in each direction. `flits` has the length of each delivery.
    pub fn least_steps(self, tree: &Tree, flits: &[u64]) -> u64 {
        match self {
            // A message has one length for all of its deliveries.
            Algorithm::Gossip(_) => (self.entry().bound)(tree, &self.by_message(tree, flits)),
            _ => (self.entry().bound)(tree, flits),
        }
    }

    /// Returns the name of the operation: "scatter" or "gather".
    pub fn name(self) -> &'static str {
        self.entry().messages.operation
    }

    /// Returns the name of the algorithm in input and output.
    pub fn algorithm(self) -> &'static str {
        match self {
            Algorithm::Gossip(Gossip::OnNetwork(Some(one))) => one.algorithm(),
            _ => self.entry().algorithm,
        }
    }

    /// Returns the name of the synchronisation, if the algorithm has several.
    pub fn sync(self) -> Option<&'static str> {
        self.entry().sync
    }

    /// Returns the number in the wire protocol, which does not contain the window.
    pub fn code(self) -> i32 {
        self.entry().code
    }

    /// Returns the algorithm with a number in the wire protocol.
    pub fn from_code(code: i32, window: u32) -> Option<Algorithm> {
        let found = Algorithm::ALL.into_iter().find(|one| one.code() == code)?;
        Some(match found {
            Algorithm::LinearGather { .. } => Algorithm::LinearGather { window },
            found => found,
        })
    }

    /// Returns the limit on pending requests, if there is one.
    pub fn window(self) -> Option<u32> {
        match self {
            Algorithm::LinearGather { window } => Some(window),
            _ => None,
        }
    }

    /// Returns the trees on which the algorithm works.
    pub fn fits(self) -> TreeRequirement {
        self.entry().fits
    }

    /// Returns whether PEs receive orders to transmit, so that pacing matters.
    pub fn gives_orders(self) -> bool {
        self.entry().gives_orders
    }

    /// Returns whether a PE has a separate port for the control items of each neighbour.
    pub fn has_control_ports(self) -> bool {
        self.entry().ports.for_control
    }

    /// Returns whether a PE sends and receives at the same time.
    pub fn is_duplex(self) -> bool {
        self.entry().ports.is_duplex
    }

    /// Returns the PEs to which a PE connects: the parent, the children and the peers, each group
    /// by index.
    pub fn neighbours(self, tree: &Tree, pe: PeId) -> Vec<PeId> {
        let in_tree = tree.parent(pe).into_iter();
        let mut all: Vec<PeId> = in_tree.chain(tree.children(pe).iter().copied()).collect();
        all.extend(self.peers(tree, pe));
        all
    }

    /// Returns the PEs to which a PE connects outside the tree, by index. For a gossip on an
    /// unspecified network these are all possible ones.
    pub fn peers(self, tree: &Tree, pe: PeId) -> Vec<PeId> {
        if !tree.contains(pe) {
            return Vec::new();
        }
        let mut peers = match self {
            Algorithm::Gossip(Gossip::OnNetwork(Some(one))) if one.holds(tree) => one.partners(pe),
            _ => (self.entry().peers)(tree, pe),
        };
        let is_edge =
            |other: &PeId| tree.parent(pe) == Some(*other) || tree.parent(*other) == Some(pe);
        peers.retain(|other| *other != pe && tree.contains(*other) && !is_edge(other));
        peers.sort_unstable();
        peers.dedup();
        peers
    }

    /// Returns whether a PE uses a port for each neighbour at the same time. In lock step no PE
    /// does.
    pub fn uses_all_ports(self, timing: &Timing) -> bool {
        match self.entry().ports.all {
            AllPorts::Never => false,
            AllPorts::WithOwnLinks => timing.all_ports,
            AllPorts::Always => !timing.is_lock_step(),
        }
    }

    /// Returns whether the algorithm can use a port for each neighbour if all links are separate.
    pub fn has_all_ports(self) -> bool {
        self.entry().ports.all == AllPorts::WithOwnLinks
    }

    /// Returns the event that permits a source to start sending.
    pub fn begins_on(self) -> StartSignal {
        self.entry().begins_on
    }

    /// Returns whether a PE is triggered to begin a round: all are if they begin by the clock, or
    /// else P0 alone.
    pub fn is_triggered(self, tree: &Tree, pe: PeId) -> bool {
        self.begins_on() == StartSignal::Clock || pe == tree.root()
    }

    /// Returns the direction of messages.
    pub fn direction(self) -> Direction {
        self.entry().messages.direction
    }

    /// Returns the layout of the messages in an input.
    pub fn layout(self) -> Layout {
        self.entry().messages.layout
    }

    /// Returns the names of the methods that users may choose or compare, each with its pacing if
    /// it has one.
    pub fn ways(self) -> &'static [(&'static str, Option<Pacing>)] {
        self.entry().ways
    }

    /// Returns whether the schedule can be computed without simulation.
    pub fn has_plan(self) -> bool {
        self.entry().plan.is_some()
    }

    /// Returns the algorithms for an operation with this name, such as "scatter".
    pub fn named(name: &str) -> impl Iterator<Item = Algorithm> {
        let all = Algorithm::ALL.into_iter();
        all.filter(move |one| one.name() == name)
    }

    /// Returns this algorithm if it works on `tree`, or else one for the same operation that works
    /// on all trees.
    pub fn on(self, tree: &Tree) -> Algorithm {
        if let Algorithm::Gossip(Gossip::OnNetwork(Some(one))) = self
            && !one.holds(tree)
        {
            return self.on_any_network();
        }
        match self.direction() {
            _ if self.fits().holds(tree) => self,
            Direction::Down if self.layout() == Layout::Whole => {
                Algorithm::Broadcast(Broadcast::Rounds)
            }
            Direction::Down => Algorithm::Scatter,
            Direction::Up => Algorithm::Certification(Sync::Pipelined),
            Direction::Across => self,
        }
    }

    /// Returns this algorithm, or, if it is made for one network, an algorithm for the same
    /// operation on any complete network. Rounds with absent PEs and resumed runs use it.
    pub fn on_any_network(self) -> Algorithm {
        match self {
            Algorithm::Gossip(Gossip::OnNetwork(_)) => Algorithm::Gossip(Gossip::Circulate),
            other => other,
        }
    }

    /// Returns all crossings of the static schedule by first step.
    pub(super) fn hops(self, tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<ScheduledHop> {
        match self {
            Algorithm::Gossip(Gossip::OnNetwork(Some(one))) if one.holds(tree) => {
                one.hops(tree, bytes, timing)
            }
            _ => (self.entry().hops)(tree, bytes, timing),
        }
    }
}
