//! The table of operations: what others ask of one is said in its entry, and nowhere else.

use std::sync::Arc;

use super::brief::Brief;
use super::broadcast::Broadcast;
use super::exchange::Exchange;
use super::gossip::Gossip;
use super::messages::Messages;
use super::plan::Plan;
use super::role::{Place, Role};
use super::{
    broadcast, broadcast_hypercube, certification, combining, exchange, gossip, gossip_on_network,
    linear, listed, scatter, shoulder_tap,
};
use crate::items::{Address, Leg};
use crate::schedule::certification::Sync;
use crate::schedule::pace::{Pacing, Timing};
use crate::{DeliveryId, DeliveryName, MessageId, PeId, Tree};

/// What a round does and by which algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Scatter, farthest destination first.
    Scatter,
    /// Gather by Shoulder-Tap; the tree must be a path.
    ShoulderTap,
    /// Gather by Transmission-Certification.
    Certification(Sync),
    /// Gather as users know it, to measure against; the tree must be a star: the root asks
    /// one PE after the other, with so many requests under way.
    LinearGather {
        /// At least 1.
        window: u32,
    },
    /// Gather as users know it: each PE holds all that its subtree sends before it
    /// sends it on.
    CombiningGather,
    /// Scatter as users know it: each PE holds all that its subtree gets before it
    /// sends it on.
    CombiningScatter,
    /// Scatter, farthest destination first, by a list of what each PE sends and takes.
    ListedScatter,
    /// Broadcast: the root has a message for all others.
    Broadcast(Broadcast),
    /// Gossip by a list: each PE has a message for all others.
    Gossip(Gossip),
    /// Total exchange by a list: each PE has a message for each other one.
    Exchange(Exchange),
}

/// The trees that an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fits {
    /// All of them.
    Trees,
    /// Those in which no PE has two children.
    Paths,
    /// Those in which the root has all other PEs as children.
    Stars,
    /// All of them, where PEs reach each other beside the tree.
    Complete,
    /// The same of 2, 4, 8 and so on PEs, of which none is absent.
    Cubes,
}

/// Whether a PE that plays a list sends to all its neighbours at once, and takes from all, or does one
/// thing each way at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllPorts {
    /// One thing each way.
    Never,
    /// All at once where it has a link of its own to each neighbour.
    WithOwnLinks,
    /// All at once, whatever they share.
    Always,
}

/// On which word the source of a message may begin it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The trigger of the round: the root is the source.
    Trigger,
    /// The token, as in what users know from elsewhere.
    Token,
    /// An order or a wakeup call of its own.
    Order,
}

/// Which way messages go. Receipts go against them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the root. A PE tells its parent when its whole subtree has what is for it.
    Down,
    /// To the root, which tells all whose messages it has.
    Up,
    /// Between any two. A PE tells its parent when its whole subtree has what is for it.
    Across,
}

/// How the files of messages lie in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The root has an entry for each PE that gets a message.
    ByDestination,
    /// Each PE has an entry that is its message.
    BySource,
    /// The input of the root is the message.
    Whole,
    /// Each PE has an entry that is its message for all others.
    Shards,
    /// Each PE has a folder with an entry for each PE that gets a message of it.
    Pieces,
}

impl Layout {
    /// Whether a PE that has files of its own has them without its name: where the root has those
    /// of all others, they need theirs.
    pub fn can_be_apart(self) -> bool {
        match self {
            Layout::ByDestination | Layout::BySource => false,
            Layout::Whole | Layout::Shards | Layout::Pieces => true,
        }
    }
}

/// Works a schedule out in lock step, the messages being so many flits long.
type Planner = fn(&Arc<Tree>, Operation, &[u64]) -> Plan;

/// What the table says of an operation.
pub(super) struct Entry {
    /// What users ask for: "scatter", "gather".
    pub name: &'static str,
    /// The algorithm, as users type and read it.
    pub algorithm: &'static str,
    /// How it synchronises, where an algorithm has several ways.
    pub sync: Option<&'static str>,
    /// The ways that users may choose or compare, by name, with how orders are obeyed, where it
    /// gives any. Empty where users are not offered it, or only on a tree that a baseline lays.
    pub ways: &'static [(&'static str, Option<Pacing>)],
    /// Its number on the wire.
    pub code: i32,
    /// The trees that it works on.
    pub fits: Fits,
    /// Whether PEs are told when to transmit, so that it matters how they obey.
    pub gives_orders: bool,
    /// On which word the source of a message may begin it.
    pub begins_on: Word,
    /// Whether a PE has a port for the control items of each neighbour.
    pub has_control_ports: bool,
    /// Whether a PE sends and receives at once.
    pub is_duplex: bool,
    /// Whether it does so over all its links at once, where a list is played.
    pub all_ports: AllPorts,
    /// Whom a PE is connected with that is no neighbour of it in the tree, those included that it
    /// need not reach.
    pub peers: fn(&Tree, PeId) -> Vec<PeId>,
    /// Which way messages go.
    pub direction: Direction,
    /// Its messages.
    pub messages: Messages,
    /// How they lie in an input.
    pub layout: Layout,
    /// The nonnull messages, in the order in which each source sends its own; their lengths
    /// are given by delivery.
    pub order: fn(&Tree, &[u64], &Timing) -> Vec<MessageId>,
    /// Everything that crosses an edge, by first steps, where PEs play a list; the messages'
    /// lengths are given by delivery. Empty where they go by what they hear.
    pub legs: fn(&Tree, &[u64], &Timing) -> Vec<Leg>,
    /// Its schedule in lock step, if it can be worked out without playing it.
    pub plan: Option<Planner>,
    /// The steps that no algorithm for the same takes less than, the messages being so many
    /// flits long.
    pub bound: fn(&Tree, &[u64]) -> u64,
    /// What a PE does.
    pub role: fn(&Place, Brief) -> Box<dyn Role>,
}

impl Operation {
    /// All of them; of one with a parameter, its least.
    pub const ALL: [Operation; 23] = [
        Operation::Scatter,
        Operation::ShoulderTap,
        Operation::Certification(Sync::Serial),
        Operation::Certification(Sync::Pipelined),
        Operation::Certification(Sync::Parallel),
        Operation::LinearGather { window: 1 },
        Operation::CombiningGather,
        Operation::CombiningScatter,
        Operation::ListedScatter,
        Operation::Broadcast(Broadcast::Rounds),
        Operation::Broadcast(Broadcast::Urgent),
        Operation::Broadcast(Broadcast::ChildByChild),
        Operation::Broadcast(Broadcast::Hypercube),
        Operation::Gossip(Gossip::Flood),
        Operation::Gossip(Gossip::RingEmulation),
        Operation::Gossip(Gossip::Circulate),
        Operation::Gossip(Gossip::Dissemination),
        Operation::Gossip(Gossip::Direct),
        Operation::Gossip(Gossip::OnNetwork(None)),
        Operation::Exchange(Exchange::Rounds),
        Operation::Exchange(Exchange::Shifts),
        Operation::Exchange(Exchange::Tree),
        Operation::Exchange(Exchange::AtOnce),
    ];

    pub(super) fn entry(self) -> &'static Entry {
        match self {
            Operation::Scatter => &scatter::ENTRY,
            Operation::ShoulderTap => &shoulder_tap::ENTRY,
            Operation::Certification(Sync::Serial) => &certification::SERIAL,
            Operation::Certification(Sync::Pipelined) => &certification::PIPELINED,
            Operation::Certification(Sync::Parallel) => &certification::PARALLEL,
            Operation::LinearGather { .. } => &linear::ENTRY,
            Operation::CombiningGather => &combining::GATHER,
            Operation::CombiningScatter => &combining::SCATTER,
            Operation::ListedScatter => &listed::SCATTER,
            Operation::Broadcast(Broadcast::Rounds) => &broadcast::ROUNDS,
            Operation::Broadcast(Broadcast::Urgent) => &broadcast::URGENT,
            Operation::Broadcast(Broadcast::ChildByChild) => &broadcast::CHILD_BY_CHILD,
            Operation::Broadcast(Broadcast::Hypercube) => &broadcast_hypercube::HYPERCUBE,
            Operation::Gossip(Gossip::Flood) => &gossip::FLOOD,
            Operation::Gossip(Gossip::RingEmulation) => &gossip::RING_EMULATION,
            Operation::Gossip(Gossip::Circulate) => &gossip::CIRCULATE,
            Operation::Gossip(Gossip::Dissemination) => &gossip::DISSEMINATION,
            Operation::Gossip(Gossip::Direct) => &gossip::DIRECT,
            Operation::Gossip(Gossip::OnNetwork(_)) => &gossip_on_network::ON_NETWORK,
            Operation::Exchange(Exchange::Rounds) => &exchange::ROUNDS,
            Operation::Exchange(Exchange::Shifts) => &exchange::SHIFTS,
            Operation::Exchange(Exchange::Tree) => &exchange::TREE,
            Operation::Exchange(Exchange::AtOnce) => &exchange::AT_ONCE,
        }
    }

    /// What users ask for: "scatter" or "gather".
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The algorithm, as users type and read it.
    pub fn algorithm(self) -> &'static str {
        match self {
            Operation::Gossip(Gossip::OnNetwork(Some(one))) => one.algorithm(),
            _ => self.entry().algorithm,
        }
    }

    /// How it synchronises, where its algorithm has several ways.
    pub fn sync(self) -> Option<&'static str> {
        self.entry().sync
    }

    /// Its number on the wire. A window, where it has one, is told beside it.
    pub fn code(self) -> i32 {
        self.entry().code
    }

    /// The operation of a number on the wire.
    pub fn from_code(code: i32, window: u32) -> Option<Operation> {
        let found = Operation::ALL.into_iter().find(|one| one.code() == code)?;
        Some(match found {
            Operation::LinearGather { .. } => Operation::LinearGather { window },
            found => found,
        })
    }

    /// Requests under way at once, where it has a limit to them.
    pub fn window(self) -> Option<u32> {
        match self {
            Operation::LinearGather { window } => Some(window),
            _ => None,
        }
    }

    /// The trees that it works on.
    pub fn fits(self) -> Fits {
        self.entry().fits
    }

    /// Whether PEs are told when to transmit, so that it matters how they obey.
    pub fn gives_orders(self) -> bool {
        self.entry().gives_orders
    }

    /// Whether a PE has a port for the control items of each neighbour.
    pub fn has_control_ports(self) -> bool {
        self.entry().has_control_ports
    }

    /// Whether a PE sends and receives at once.
    pub fn is_duplex(self) -> bool {
        self.entry().is_duplex
    }

    /// Whom a PE is connected with: its parent, its children, and who else there is, in index
    /// order each.
    pub fn neighbours(self, tree: &Tree, pe: PeId) -> Vec<PeId> {
        let in_tree = tree.parent(pe).into_iter();
        let mut all: Vec<PeId> = in_tree.chain(tree.children(pe).iter().copied()).collect();
        all.extend(self.peers(tree, pe));
        all
    }

    /// Those of them that are no neighbours in the tree. A PE that is told of a gossip on a network
    /// does not know which; there they are all that there can be.
    pub fn peers(self, tree: &Tree, pe: PeId) -> Vec<PeId> {
        if !tree.contains(pe) {
            return Vec::new();
        }
        let mut peers = match self {
            Operation::Gossip(Gossip::OnNetwork(Some(one))) if one.holds(tree) => one.partners(pe),
            _ => (self.entry().peers)(tree, pe),
        };
        let is_edge =
            |other: &PeId| tree.parent(pe) == Some(*other) || tree.parent(*other) == Some(pe);
        peers.retain(|other| *other != pe && tree.contains(*other) && !is_edge(other));
        peers.sort_unstable();
        peers.dedup();
        peers
    }

    /// Whether a PE sends to all its neighbours at once, and takes from all, where lists are played
    /// with this timing. In lock step nobody does.
    pub fn uses_all_ports(self, timing: &Timing) -> bool {
        match self.entry().all_ports {
            AllPorts::Never => false,
            AllPorts::WithOwnLinks => timing.all_ports,
            AllPorts::Always => !timing.is_lock_step(),
        }
    }

    /// Whether it can be played over all links of a PE at once, where each is its own.
    pub fn has_all_ports(self) -> bool {
        self.entry().all_ports == AllPorts::WithOwnLinks
    }

    /// On which word the source of a message may begin it.
    pub fn begins_on(self) -> Word {
        self.entry().begins_on
    }

    /// Which way messages go.
    pub fn direction(self) -> Direction {
        self.entry().direction
    }

    /// How its messages lie in an input.
    pub fn layout(self) -> Layout {
        self.entry().layout
    }

    /// The ways that users may choose or compare, by name, with how orders are obeyed.
    pub fn ways(self) -> &'static [(&'static str, Option<Pacing>)] {
        self.entry().ways
    }

    /// Whether its schedule can be worked out without playing it.
    pub fn has_plan(self) -> bool {
        self.entry().plan.is_some()
    }

    /// All that users know by the name of what they ask for, such as "scatter".
    pub fn named(name: &str) -> impl Iterator<Item = Operation> {
        let all = Operation::ALL.into_iter();
        all.filter(move |one| one.name() == name)
    }

    /// Itself on a tree that it works on; on any other, what does the same on all trees.
    pub fn on(self, tree: &Tree) -> Operation {
        if let Operation::Gossip(Gossip::OnNetwork(Some(one))) = self
            && !one.holds(tree)
        {
            return self.on_any_network();
        }
        match self.direction() {
            _ if self.fits().holds(tree) => self,
            Direction::Down if self.layout() == Layout::Whole => {
                Operation::Broadcast(Broadcast::Rounds)
            }
            Direction::Down => Operation::Scatter,
            Direction::Up => Operation::Certification(Sync::Pipelined),
            Direction::Across => self,
        }
    }

    /// Itself, unless it is made for one network: then what does the same wherever all PEs reach
    /// each other, for rounds that lack PEs, or are gone on with later.
    pub fn on_any_network(self) -> Operation {
        match self {
            Operation::Gossip(Gossip::OnNetwork(_)) => Operation::Gossip(Gossip::Circulate),
            other => other,
        }
    }

    /// Everything that crosses an edge, as its entry has it.
    pub(super) fn legs(self, tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<Leg> {
        match self {
            Operation::Gossip(Gossip::OnNetwork(Some(one))) if one.holds(tree) => {
                one.legs(tree, bytes, timing)
            }
            _ => (self.entry().legs)(tree, bytes, timing),
        }
    }

    /// The message with an id on a tree, or the part of one; `None` if there is none.
    pub fn address(self, tree: &Tree, id: MessageId) -> Option<Address> {
        let (whole, part) = self.whole(tree, id);
        let address = (self.entry().messages.address)(tree, whole)?;
        (part < self.parts(tree)).then_some(Address { id, ..address })
    }

    /// In how many parts each message goes, of which each has a head and a digest of its own
    /// ([`super::parts`]).
    pub fn parts(self, tree: &Tree) -> usize {
        (self.entry().messages.parts)(tree)
    }

    /// The message of which this is a part, and which one, counted from 0. Where messages do not go
    /// in parts, each is the first one of itself.
    pub fn whole(self, tree: &Tree, id: MessageId) -> (MessageId, usize) {
        let ids = (self.entry().messages.ids)(tree).max(1);
        (MessageId(id.0 % ids), (id.0 / ids) as usize)
    }

    /// A part of a message: the inverse of [`Operation::whole`].
    pub(super) fn part(self, tree: &Tree, whole: MessageId, part: usize) -> MessageId {
        let ids = (self.entry().messages.ids)(tree);
        MessageId(whole.0 + part as u64 * ids)
    }

    /// All its messages on a tree, by id. Those of absent PEs are among them, and null.
    pub fn messages(self, tree: &Tree) -> impl Iterator<Item = Address> {
        let ids = (0..(self.entry().messages.ids)(tree)).map(MessageId);
        ids.filter_map(move |id| self.address(tree, id))
    }

    /// The messages that start at a PE, by id.
    pub fn sent_by(self, tree: &Tree, pe: PeId) -> Vec<MessageId> {
        let messages = self.messages(tree);
        let sent = messages.filter(|message| message.source == pe);
        sent.map(|message| message.id).collect()
    }

    /// The messages that end at a PE, by id.
    pub fn taken_by(self, tree: &Tree, pe: PeId) -> Vec<MessageId> {
        let messages = self.messages(tree);
        let taken = messages.filter(|message| message.is_for(pe));
        taken.map(|message| message.id).collect()
    }

    /// The number of the delivery of a message, or of a part of it, at a PE, both of which there are.
    pub fn delivery(self, tree: &Tree, message: MessageId, at: PeId) -> DeliveryId {
        let (whole, _) = self.whole(tree, message);
        (self.entry().messages.delivery)(tree, whole, at)
    }

    /// Which message a delivery is of, and at which PE; `None` if there is no such delivery.
    pub fn delivered(self, tree: &Tree, delivery: DeliveryId) -> Option<(Address, PeId)> {
        let (message, at) = (self.entry().messages.delivered)(tree, delivery)?;
        Some((self.address(tree, message)?, at))
    }

    /// Whether both ends of a delivery are on a tree.
    pub fn can_deliver(self, tree: &Tree, delivery: DeliveryId) -> bool {
        let found = self.delivered(tree, delivery);
        found.is_some_and(|(message, at)| tree.contains(message.source) && tree.contains(at))
    }

    /// How long arrays are that have an element for each delivery.
    pub fn deliveries(self, tree: &Tree) -> usize {
        match self.entry().messages.of_pairs {
            true => tree.len() * tree.len(),
            false => tree.len(),
        }
    }

    /// Whether any two PEs may be the ends of a message, and not the root and one other alone.
    pub fn is_of_pairs(self) -> bool {
        self.entry().messages.of_pairs
    }

    /// What users call a delivery, which there is: the PE at its other end where one is the root,
    /// or else its source and the PE at which it arrives.
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

    /// The delivery that users call so, if there is one.
    pub fn delivery_named(self, tree: &Tree, name: DeliveryName) -> Option<DeliveryId> {
        let before = name.source.map_or(0, |source| source.index() * tree.len());
        let delivery = DeliveryId((before + name.row.index()) as u32);
        let is_one = self.delivered(tree, delivery).is_some();
        (is_one && self.delivery_name(tree, delivery) == name).then_some(delivery)
    }

    /// The PE in whose row of a report a delivery stands.
    pub fn row(self, tree: &Tree, delivery: DeliveryId) -> PeId {
        self.delivery_name(tree, delivery).row
    }

    /// The deliveries that there are, those of absent PEs too.
    pub fn all_deliveries(self, tree: &Tree) -> impl Iterator<Item = DeliveryId> {
        let ids = (0..self.deliveries(tree)).map(|index| DeliveryId(index as u32));
        ids.filter(move |id| self.delivered(tree, *id).is_some())
    }

    /// How many lengths say those of all messages: one for each id, or, where the root is an end
    /// of every message, one for each other PE.
    pub fn lengths_given(self, tree: &Tree) -> usize {
        match self.is_of_pairs() {
            true => (self.entry().messages.ids)(tree) as usize,
            false => tree.len() - 1,
        }
    }

    /// The lengths of all deliveries, so many being given as [`Operation::lengths_given`] says.
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

    /// The lengths that say those of all deliveries, which are given.
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

    /// The length of a message, those of all deliveries being given: it is the same for all that
    /// are not left out.
    pub fn length(self, tree: &Tree, message: Address, bytes: &[u64]) -> u64 {
        let lengths = message.ends(tree);
        let lengths = lengths.map(|pe| bytes[self.delivery(tree, message.id, pe).index()]);
        lengths.max().unwrap_or(0)
    }

    /// The nonnull messages' lengths, those of all deliveries being given.
    pub fn lengths(self, tree: &Tree, bytes: &[u64]) -> impl Iterator<Item = u64> {
        let messages = self.messages(tree);
        let lengths = messages.map(move |message| self.length(tree, message, bytes));
        lengths.filter(|bytes| *bytes > 0)
    }

    /// By PE index, bytes of the messages that start or end at it; those of all deliveries are
    /// given.
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

    /// Bytes of all messages, each counted once; those of all deliveries are given.
    pub fn total(self, tree: &Tree, bytes: &[u64]) -> u64 {
        self.lengths(tree, bytes).fold(0, u64::saturating_add)
    }
}

impl Fits {
    /// Whether a tree is one of those.
    pub fn holds(self, tree: &Tree) -> bool {
        match self {
            Fits::Trees | Fits::Complete => true,
            Fits::Paths => tree.is_path(),
            Fits::Stars => tree.children(tree.root()).len() + 1 == tree.count(),
            Fits::Cubes => tree.len().is_power_of_two() && tree.count() == tree.len(),
        }
    }
}

/// The nonnull messages by id: where each source has one, nothing is to be ordered.
pub(super) fn by_id(_tree: &Tree, bytes: &[u64], _timing: &Timing) -> Vec<MessageId> {
    let ids = (0..).map(MessageId).zip(bytes);
    ids.filter(|(_, bytes)| **bytes > 0)
        .map(|(id, _)| id)
        .collect()
}

/// All others.
pub(super) fn everybody(tree: &Tree, pe: PeId) -> Vec<PeId> {
    tree.pes().filter(|other| *other != pe).collect()
}

/// Nobody.
pub(super) fn no_peers(_tree: &Tree, _pe: PeId) -> Vec<PeId> {
    Vec::new()
}

/// No list: what PEs send follows from what they hear.
pub(super) fn no_legs(_tree: &Tree, _bytes: &[u64], _timing: &Timing) -> Vec<Leg> {
    Vec::new()
}
