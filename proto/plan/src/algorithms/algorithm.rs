//! An algorithm: its properties in the registry, with its parameters.

use std::fmt;
use std::hash::{Hash, Hasher};

use flitcast_proto::items::{Address, ScheduledHop};
use flitcast_proto::ops::parts::even_flits;
use flitcast_proto::ops::{Collective, Direction, Layout, PeRole};
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::{MessageId, PeId, Tree};

use super::gossip_on_network::OnNetwork;
use super::lock_step::LockStep;
use super::spec::{
    AlgorithmSpec, AllPorts, Latencies, LinkRequirement, Offer, OfferKind, TreeRequirement,
};
use crate::timing::Timing;

/// An algorithm for a collective.
#[derive(Clone, Copy)]
pub struct Algorithm {
    pub(super) spec: &'static AlgorithmSpec,
    /// Maximum number of pending requests; of a linear gather only, else 0.
    window: u32,
    /// The network for which the algorithm is made, and the method on it.
    network: Option<OnNetwork>,
}

impl Algorithm {
    /// Creates the algorithm with these properties and the least parameters.
    pub(super) const fn of(spec: &'static AlgorithmSpec) -> Algorithm {
        Algorithm {
            spec,
            window: match spec.role {
                PeRole::Linear { window } => window,
                _ => 0,
            },
            network: None,
        }
    }

    /// Returns the gather by Transmission-Certification with this synchronisation.
    pub const fn certification(sync: Sync) -> Algorithm {
        match sync {
            Sync::Serial => Algorithm::CERTIFICATION_SERIAL,
            Sync::Pipelined => Algorithm::CERTIFICATION_PIPELINED,
            Sync::Parallel => Algorithm::CERTIFICATION_PARALLEL,
            Sync::MultiPort => Algorithm::CERTIFICATION_MULTI_PORT,
            Sync::Known => Algorithm::GATHER_BY_ORDERS,
        }
    }

    /// Returns the linear gather with at most `window` pending requests.
    pub const fn linear_gather(window: u32) -> Algorithm {
        Algorithm {
            window,
            ..Algorithm::LINEAR_GATHER
        }
    }

    /// Returns a gossip on a network; PEs receive neither the network nor the algorithm.
    pub const fn gossip_on(network: OnNetwork) -> Algorithm {
        Algorithm {
            network: Some(network),
            ..Algorithm::GOSSIP_ON_NETWORK
        }
    }

    /// Returns the network and its algorithm, if this is a gossip on a network.
    pub fn network(self) -> Option<OnNetwork> {
        self.network
    }

    /// Returns the network and its algorithm, if the tree has all its PEs.
    fn network_of(self, tree: &Tree) -> Option<OnNetwork> {
        self.network.filter(|network| network.holds(tree))
    }

    /// Returns the collective.
    pub fn collective(self) -> Collective {
        self.spec.collective
    }

    /// Returns the role of the PEs.
    pub fn role(self) -> PeRole {
        match self.spec.role {
            PeRole::Linear { .. } => PeRole::Linear {
                window: self.window,
            },
            role => role,
        }
    }

    /// Returns the synchronisation of a gather by certification.
    pub fn certification_sync(self) -> Option<Sync> {
        match self.spec.role {
            PeRole::Certification(sync) => Some(sync),
            _ => None,
        }
    }

    /// Returns a lower bound of the steps of any algorithm for the collective on this tree with one
    /// port in each direction. `flits` has the length of each delivery.
    pub fn least_steps(self, tree: &Tree, flits: &[u64]) -> u64 {
        match self.collective() {
            // A message has one length for all of its deliveries.
            Collective::Gossip => {
                (self.spec.bound)(tree, &Collective::Gossip.by_message(tree, flits))
            }
            _ => (self.spec.bound)(tree, flits),
        }
    }

    /// Returns lower bounds on the latencies of a round in which all messages are nonnull.
    pub fn latencies(self, tree: &Tree) -> Latencies {
        (self.spec.latencies)(tree)
    }

    /// Returns the name of the algorithm in input and output.
    pub fn name(self) -> &'static str {
        self.network.map_or(self.spec.name, OnNetwork::name)
    }

    /// Returns the name of the synchronisation, if the algorithm has several.
    pub fn sync(self) -> Option<&'static str> {
        self.spec.sync
    }

    /// Returns the trees on which the algorithm works.
    pub fn fits(self) -> TreeRequirement {
        self.spec.fits
    }

    /// Returns the links on which the algorithm is worth a prediction.
    pub fn pays_on(self) -> LinkRequirement {
        match self.network {
            Some(network) if network.parts() > 1 => LinkRequirement::Slow,
            _ => self.spec.pays_on,
        }
    }

    /// Returns whether PEs receive orders to transmit, so that pacing matters.
    pub fn gives_orders(self) -> bool {
        self.spec.gives_orders
    }

    /// Returns whether PEs execute a static schedule.
    pub fn is_static(self) -> bool {
        self.spec.role == PeRole::StaticSchedule
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
        let mut peers = match self.network_of(tree) {
            Some(network) => network.partners(pe),
            None => (self.spec.peers)(tree, pe),
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
        match self.spec.all_ports {
            AllPorts::Never => false,
            AllPorts::WithOwnLinks => timing.all_ports,
            AllPorts::Always => !timing.is_lock_step(),
        }
    }

    /// Returns whether the algorithm can use a port for each neighbour if all links are separate.
    pub fn has_all_ports(self) -> bool {
        self.spec.all_ports == AllPorts::WithOwnLinks
    }

    /// Returns the algorithm as users see it.
    pub fn offer(self) -> &'static Offer {
        &self.spec.offer
    }

    /// Returns whether a network of this name, as in `kind:N`, has all edges between peers, although it
    /// is not complete.
    pub fn has_edges_of(self, network: &str) -> bool {
        let kind = self.spec.offer.network;
        !kind.is_empty() && network.split(':').next() == Some(kind)
    }

    /// Returns whether the steps of all messages can be computed without simulation.
    pub fn has_plan(self) -> bool {
        matches!(self.spec.plan, LockStep::Messages(_))
    }

    /// Returns the algorithms for a collective that users can name in all commands.
    pub fn offered(collective: Collective) -> impl Iterator<Item = Algorithm> {
        let all = Algorithm::ALL.into_iter();
        all.filter(move |one| {
            one.collective() == collective && one.offer().kind != OfferKind::Internal
        })
    }

    /// Returns the algorithms for a collective with this name, such as "scatter".
    pub fn named(name: &str) -> impl Iterator<Item = Algorithm> {
        let all = Algorithm::ALL.into_iter();
        all.filter(move |one| one.collective().name() == name)
    }

    /// Returns this algorithm if it works on `tree`, or else one for the same collective that works
    /// on all trees.
    pub fn on(self, tree: &Tree) -> Algorithm {
        if self.network.is_some() && self.network_of(tree).is_none() {
            return self.on_any_network();
        }
        let collective = self.collective();
        match collective.direction() {
            _ if self.fits().holds(tree) => self,
            Direction::Down if collective.layout() == Layout::Whole => Algorithm::BROADCAST_ROUNDS,
            Direction::Down => Algorithm::FARTHEST_FIRST,
            Direction::Up => Algorithm::CERTIFICATION_PIPELINED,
            Direction::Across => self,
        }
    }

    /// Returns this algorithm, or, if it is made for one network, an algorithm for the same
    /// collective on any complete network. Rounds with absent PEs and resumed runs use it.
    pub fn on_any_network(self) -> Algorithm {
        match self == Algorithm::GOSSIP_ON_NETWORK || self.network.is_some() {
            true => Algorithm::GOSSIP_CIRCULATE,
            false => self,
        }
    }

    /// Returns the nonnull messages, those of each source in sending order. `bytes` is by delivery.
    pub(super) fn order(self, tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<MessageId> {
        (self.spec.order)(tree, bytes, timing)
    }

    /// Returns all crossings of the static schedule by first step.
    pub(crate) fn hops(self, tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<ScheduledHop> {
        match self.network_of(tree) {
            Some(network) => network.hops(tree, bytes, timing),
            None => (self.spec.hops)(tree, bytes, timing),
        }
    }

    /// Returns the address of a message or a part on a tree, or `None` if it does not exist.
    pub fn address(self, tree: &Tree, id: MessageId) -> Option<Address> {
        let parts = self.parts(tree);
        self.collective().address_of_part(tree, id, parts)
    }

    /// Returns the number of parts of each message; each part has its own head and digest
    /// ([`flitcast_proto::ops::parts`]).
    pub fn parts(self, tree: &Tree) -> usize {
        match self.network_of(tree) {
            Some(network) => network.parts(),
            None => (self.spec.parts)(tree),
        }
    }

    /// Returns whether the last flit of a message is its part 0 ([`flitcast_proto::ops::parts`]).
    pub fn has_tail(self) -> bool {
        self.spec.has_tail
    }

    /// Returns the flits of each part of a message of this length.
    pub(super) fn part_flits(self, tree: &Tree, flits: u64) -> Vec<u64> {
        match self.network_of(tree) {
            Some(network) => {
                let parts = network.part_flits(flits).into_iter();
                parts.map(|flits| flits.end - flits.start).collect()
            }
            None if self.has_tail() && flits > 0 => {
                let others = even_flits(flits - 1, self.parts(tree) - 1);
                [1].into_iter().chain(others).collect()
            }
            None => even_flits(flits, self.parts(tree)),
        }
    }

    /// Returns the number in a message of `flits` flits of one of the flits of a part, all counted
    /// from 0.
    pub fn flit_of_part(self, tree: &Tree, flits: u64, part: usize, flit: u64) -> u64 {
        match self.network_of(tree) {
            Some(network) => network.part_flits(flits)[part].start + flit,
            None if self.has_tail() => match part.checked_sub(1) {
                Some(part) => flit * (self.parts(tree) as u64 - 1) + part as u64,
                None => flits - 1,
            },
            None => flit * self.parts(tree) as u64 + part as u64,
        }
    }

    /// Returns all that distinguishes algorithms.
    fn key(self) -> (Collective, &'static str, PeRole, Option<OnNetwork>) {
        (self.collective(), self.spec.name, self.role(), self.network)
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Algorithm) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Algorithm {}

impl Hash for Algorithm {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.collective().name(), self.name())?;
        self.sync().map_or(Ok(()), |sync| write!(f, " {sync}"))
    }
}
