//! What a seed stands for: a tree, messages, an operation, links, and what goes wrong
//! when. Nothing is run here.

mod fault;

use std::sync::Arc;

use flitcast_coordinator::machines::Next;
use flitcast_proto::cost::{Edge, Host, Hosts, Link, Model, Ports};
use flitcast_proto::gossip::Arena;
use flitcast_proto::ops::{Brief, Broadcast, Exchange, Fits, Gossip, OnNetwork, Operation};
use flitcast_proto::predict::predict;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::pace::{Pacing, Timing};
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::wire::{LENGTH_BYTES, MAX_FLIT_PREFIX, MIN_FLIT_BYTES};
use flitcast_proto::{PeId, Tree};

pub use fault::{Fault, Kind, Way};

/// How often a PE gives a sign of life on each of its edges.
pub const HEARTBEAT_NS: u64 = 500_000_000;
/// A neighbour that was not heard of for so long is given up.
pub const SILENCE_NS: u64 = 3_000_000_000;

/// Nobody's silence limit passes in this time, whatever else goes slowly: what all
/// harmless faults of a run may take together.
const HARMLESS_NS: u64 = 2_000_000_000;
/// Every silence limit passes in this time.
const FATAL_NS: u64 = 4_500_000_000;

/// More PEs would cost time and show nothing new.
const MOST_PES: u64 = 20;

/// One run of one cluster.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it was made of.
    pub seed: u64,
    /// Who is whose parent.
    pub tree: Arc<Tree>,
    /// What the rounds do.
    pub operation: Operation,
    /// How orders are obeyed.
    pub pacing: Pacing,
    /// Of M_i, by PE index.
    pub bytes: Vec<u64>,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// The links; the processes take no time.
    pub model: Model,
    /// Whether the connections check every record, as TLS does; else headers are guarded
    /// by their seals, and messages by their digests.
    pub authenticated: bool,
    /// How many rounds there are.
    pub rounds: u64,
    /// From a message's last byte until it is durable.
    pub commit_ns: u64,
    /// What each PE is told of each round.
    pub briefs: Vec<Brief>,
    /// What a round takes if nothing goes wrong.
    pub predicted_ns: u64,
    /// What goes wrong, in no order.
    pub faults: Vec<Fault>,
    /// By PE: how long a word takes between it and the coordinator.
    pub control_ns: Vec<u64>,
    /// How often it is gone on with after a failure; not, where there are several rounds.
    pub retries: u32,
}

impl Scenario {
    /// What `seed` stands for: the same on every machine.
    pub fn of(seed: u64) -> Scenario {
        let mut dice = Dice(SplitMix64::new(seed));
        let operation = dice.operation();
        let tree = dice.tree(operation);
        let operation = dice.on_network(operation, tree.len());
        let flit_bytes = dice.pick(&[MIN_FLIT_BYTES, 100, 256, 1000]);
        let mut bytes = dice.lengths(&tree, operation, flit_bytes);
        // A message has one length, wherever it ends.
        for message in operation.messages(&tree) {
            let length = operation.length(&tree, message, &bytes);
            for at in message.ends(&tree) {
                let bytes = &mut bytes[operation.delivery(&tree, message.id, at).index()];
                *bytes = length * u64::from(*bytes > 0);
            }
        }
        let model = dice.model(tree.len(), flit_bytes);
        let pacing = dice.pick(&[Pacing::Scheduled, Pacing::Turns, Pacing::Eager]);
        let timing = Timing::of(&model, flit_bytes, pacing);
        let briefs = Brief::all(&tree, operation, &bytes, &timing);
        let predicted_ns = predict(&tree, &briefs, &model)
            .unwrap_or_else(|violation| panic!("seed {seed}: the schedule: {violation}"))
            .round_ns();
        let authenticated = dice.below(3) == 0;
        let rounds = 1 + dice.below(3);
        let commit_ns = dice.pick(&[0, 50_000, 5_000_000]);
        let faults = dice.faults(&tree, rounds, predicted_ns);
        let retries = match rounds {
            1 => dice.below(4) as u32,
            _ => 0,
        };
        let control_ns = tree.ids().map(|_| dice.scale(20_000_000)).collect();
        Scenario {
            seed,
            tree,
            operation,
            pacing,
            bytes,
            flit_bytes,
            model,
            authenticated,
            rounds,
            commit_ns,
            briefs,
            predicted_ns,
            faults,
            control_ns,
            retries,
        }
    }

    /// The run that goes on with this one after `runs` others, as planned.
    pub fn after(&self, next: Next, runs: u64) -> Scenario {
        let seed = self.seed;
        let tree = Arc::new(next.repair.tree);
        let mut bytes = self.bytes.clone();
        for it in next.operation.all_deliveries(&tree) {
            if !next.operation.can_deliver(&tree, it) || next.left_out.contains(&it) {
                bytes[it.index()] = 0;
            }
        }
        let timing = Timing::of(&self.model, self.flit_bytes, self.pacing);
        let briefs = Brief::all(&tree, next.operation, &bytes, &timing);
        let predicted_ns = predict(&tree, &briefs, &self.model)
            .unwrap_or_else(|fault| panic!("seed {seed}, run {runs}: the schedule: {fault}"))
            .round_ns();
        let mut dice = Dice(SplitMix64::new(seed ^ (runs << 56)));
        Scenario {
            operation: next.operation,
            faults: match tree.count() {
                1 => Vec::new(),
                _ => dice.faults(&tree, 1, predicted_ns),
            },
            tree,
            bytes,
            briefs,
            predicted_ns,
            ..self.clone()
        }
    }

    /// Whether every round must end well.
    pub fn is_harmless(&self) -> bool {
        self.faults.iter().all(|fault| fault.kind.is_harmless())
    }

    /// No fault may take longer than this to be told, with what came of the messages: until the
    /// coordinator finds that nothing moves, and two heartbeats; what every link takes to empty
    /// its buffer, twice, and all that holds it up; for a better cause, for the last reports, and
    /// for words to go to and fro.
    pub fn bound_ns(&self) -> u64 {
        let ways = self.model.edges.iter().flat_map(|e| [e.down, e.up]);
        let frame = u64::from(self.flit_bytes) + MAX_FLIT_PREFIX as u64;
        let buffer = (self.model.buffer_bytes + frame) as f64;
        let spread: f64 = ways
            .map(|link| 2.0 * (link.latency_ns + buffer * link.ns_per_byte))
            .sum();
        let held_up: u64 = self.faults.iter().map(|fault| fault.kind.lasts_ns()).sum();
        let stands_still = SILENCE_NS + 10_000_000_000 + 2 * HEARTBEAT_NS;
        let aftermath = 500_000_000 + 2_000_000_000 + 100_000_000;
        stands_still + aftermath + spread as u64 + held_up + 2 * self.commit_ns
    }
}

/// Draws what a scenario is made of.
struct Dice(SplitMix64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// From 1 to `most`, small numbers as likely as large ones.
    fn scale(&mut self, most: u64) -> u64 {
        let bits = self.below(u64::from(most.ilog2()) + 1);
        (1 + self.below(2 << bits)).min(most)
    }

    fn operation(&mut self) -> Operation {
        match self.below(13) {
            0 => Operation::Scatter,
            1 => Operation::ShoulderTap,
            2 => Operation::Certification(Sync::Serial),
            3 => Operation::Certification(Sync::Pipelined),
            4 => Operation::Certification(Sync::Parallel),
            5 => Operation::LinearGather {
                window: 1 + self.below(4) as u32,
            },
            6 => Operation::CombiningGather,
            7 => Operation::CombiningScatter,
            8 => Operation::ListedScatter,
            9 | 10 => Operation::Gossip(self.pick(&[
                Gossip::Flood,
                Gossip::RingEmulation,
                Gossip::Circulate,
                Gossip::Dissemination,
                Gossip::Direct,
                Gossip::OnNetwork(None),
            ])),
            11 => Operation::Exchange(self.pick(&[
                Exchange::Rounds,
                Exchange::Shifts,
                Exchange::Tree,
                Exchange::AtOnce,
            ])),
            _ => Operation::Broadcast(self.pick(&[
                Broadcast::Rounds,
                Broadcast::Urgent,
                Broadcast::ChildByChild,
                Broadcast::Hypercube,
            ])),
        }
    }

    /// The same on a network of so many PEs, where it is a gossip on one.
    fn on_network(&mut self, operation: Operation, pes: usize) -> Operation {
        if operation != Operation::Gossip(Gossip::OnNetwork(None)) {
            return operation;
        }
        let ways = [
            ("ring", "halves"),
            ("ring", "approach1"),
            ("ring", "approach2:2"),
            ("ring", "circgos:2,3,2"),
            ("array", "circgos:2,2,2"),
            ("complete", "neighbour"),
            ("complete", "dissemination:2"),
            ("mesh", "approach1"),
            ("mesh", "approach2:2"),
        ];
        let (kind, algorithm) = self.pick(&ways);
        let network = match kind {
            "mesh" => format!("mesh:2x{}", pes / 2),
            kind => format!("{kind}:{pes}"),
        };
        let arena = network.parse().ok().and_then(|spec| Arena::of(&spec).ok());
        let algorithm = algorithm.parse().expect("it is an algorithm");
        let one = arena.filter(|arena| arena.pes() == pes);
        // Some are for other numbers of PEs: then it is a ring of all.
        let one = one.and_then(|arena| OnNetwork::new(arena, algorithm).ok());
        Operation::Gossip(Gossip::OnNetwork(one))
    }

    /// A tree on which the operation is possible.
    fn tree(&mut self, operation: Operation) -> Arc<Tree> {
        let pes = match operation.fits() {
            Fits::Cubes => 2 << self.below(3),
            _ => 2 + self.below(MOST_PES - 1),
        };
        let reach = 1 + self.below(pes);
        let parents = (1..pes).map(|pe| {
            let parent = match operation {
                Operation::ShoulderTap => pe - 1,
                Operation::LinearGather { .. } => 0,
                // A short reach makes deep trees, a long one flat ones.
                _ => pe - 1 - self.below(reach.min(pe)),
            };
            Some(PeId(parent as u32))
        });
        let parents = std::iter::once(None).chain(parents).collect();
        let tree = Tree::from_parents(parents).expect("parents stand before their children");
        let root = match (operation, self.below(3)) {
            (Operation::LinearGather { .. }, _) | (_, 1..) => PeId::ROOT,
            // A path is one from its ends alone.
            (Operation::ShoulderTap, _) => PeId(pes as u32 - 1),
            _ => self.pe(&tree),
        };
        Arc::new(tree.rerooted(root))
    }

    fn lengths(&mut self, tree: &Tree, operation: Operation, flit_bytes: u32) -> Vec<u64> {
        let most = u64::from(flit_bytes) * 30;
        let one = |dice: &mut Dice| match dice.below(4) {
            0 => 0,
            _ => dice.scale(most),
        };
        let given = operation.lengths_given(tree);
        let lengths: Vec<u64> = (0..given).map(|_| one(self)).collect();
        operation.by_delivery(tree, &lengths)
    }

    fn model(&mut self, pes: usize, flit_bytes: u32) -> Model {
        let alike = self.below(2) == 0;
        let link = |dice: &mut Dice| Link {
            latency_ns: dice.scale(20_000_000) as f64,
            setup_ns: 0.0,
            ns_per_byte: dice.scale(8_000) as f64 / 8.0,
            burst_bytes: 0.0,
        };
        let first = Edge {
            down: link(self),
            up: link(self),
        };
        let edges = (0..pes).map(|_| match alike {
            true => first,
            false => Edge {
                down: link(self),
                up: link(self),
            },
        });
        let frame = u64::from(flit_bytes) + MAX_FLIT_PREFIX as u64;
        Model {
            edges: edges.collect(),
            hosts: Hosts::one(Host::NONE),
            ports: Ports::PerEdge,
            own_links: self.below(2) == 0,
            acknowledged: 0.0,
            buffer_bytes: frame * self.scale(64),
            ahead_ns: f64::INFINITY,
            control_bytes: 40,
            receipt_bytes: 40,
            prefix_bytes: (MAX_FLIT_PREFIX + LENGTH_BYTES) as u64,
            files: None,
        }
    }

    fn faults(&mut self, tree: &Tree, rounds: u64, predicted_ns: u64) -> Vec<Fault> {
        // A quarter of the runs is faultless, a quarter must end well nevertheless.
        let (count, harmless) = match self.below(4) {
            0 => (0, true),
            1 => (1 + self.below(4), true),
            _ => (1 + self.below(3), false),
        };
        // Some come when all is over.
        let span = rounds * (predicted_ns + predicted_ns / 4) + 1_000_000;
        let mut left = HARMLESS_NS;
        (0..count)
            .map(|_| Fault {
                at_ns: self.below(span),
                kind: match harmless {
                    true => self.harmless(tree, &mut left),
                    false => self.harmful(tree),
                },
            })
            .collect()
    }

    fn pe(&mut self, tree: &Tree) -> PeId {
        let pes: Vec<PeId> = tree.pes().collect();
        self.pick(&pes)
    }

    fn way(&mut self, tree: &Tree) -> Way {
        let children: Vec<PeId> = tree.below_root().collect();
        let child = self.pick(&children);
        let parent = tree.parent(child).expect("only the root has none");
        let (from, to) = match self.below(2) {
            0 => (parent, child),
            _ => (child, parent),
        };
        Way { from, to }
    }

    /// What no round may fail of; `left` is what is left of the time for all of it.
    fn harmless(&mut self, tree: &Tree, left: &mut u64) -> Kind {
        let for_ns = self.scale(*left / 2 + 1);
        let kind = match self.below(5) {
            0 => Kind::Late(self.way(tree)),
            4 => self.duplicates(tree),
            1 => Kind::Stop {
                pe: self.pe(tree),
                for_ns,
            },
            2 => Kind::Block {
                way: self.way(tree),
                for_ns,
            },
            _ => Kind::Delay {
                way: self.way(tree),
                by_ns: for_ns,
                for_ns: self.scale(10 * HARMLESS_NS),
            },
        };
        if !matches!(kind, Kind::Late(_) | Kind::Duplicate { .. }) {
            *left -= for_ns.min(*left);
        }
        kind
    }

    fn duplicates(&mut self, tree: &Tree) -> Kind {
        Kind::Duplicate {
            way: self.way(tree),
            percent: 1 + self.below(50),
        }
    }

    fn harmful(&mut self, tree: &Tree) -> Kind {
        let long = match self.below(3) {
            0 => u64::MAX,
            _ => FATAL_NS + self.below(10 * SILENCE_NS),
        };
        match self.below(10) {
            0 => Kind::Kill(self.pe(tree)),
            1 => Kind::Vanish(self.pe(tree)),
            2 => Kind::Restart {
                pe: self.pe(tree),
                after_ns: self.scale(2 * SILENCE_NS),
            },
            3 => Kind::Stop {
                pe: self.pe(tree),
                for_ns: long,
            },
            4 => Kind::Cut(self.way(tree)),
            5 => Kind::Block {
                way: self.way(tree),
                for_ns: long,
            },
            6 => self.duplicates(tree),
            7 | 8 => Kind::Corrupt {
                way: self.way(tree),
                skip: self.below(4),
                bits: 1 + self.below(3),
            },
            _ => Kind::Late(self.way(tree)),
        }
    }
}
