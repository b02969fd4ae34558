//! The scenario of a seed: a tree, messages, an algorithm, links, and faults with their times. This
//! module runs nothing.

mod fault;
mod lanes;

use std::sync::Arc;

use flitcast_cluster::machines::{NextRun, has_parts};
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::{OnNetwork, TreeRequirement};
use flitcast_plan::cost::{Host, Hosts, Model, Ports};
use flitcast_plan::gossip::GossipNetwork;
use flitcast_plan::timing::Timing;
use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::wire::{LENGTH_BYTES, MAX_FLIT_PREFIX, MIN_FLIT_BYTES};
use flitcast_proto::{PeId, Tree};

pub use fault::{Fault, Kind, Way};
pub use lanes::Lane;

use lanes::planned;

/// Interval of keepalives on each edge.
pub const HEARTBEAT_NS: u64 = 500_000_000;
/// Time after which a silent neighbour is given up.
pub const SILENCE_NS: u64 = 3_000_000_000;

/// Total duration of the harmless faults of a run, within which no timeout expires, however slow
/// everything else is.
const HARMLESS_NS: u64 = 2_000_000_000;
/// A time within which every timeout expires.
const FATAL_NS: u64 = 4_500_000_000;

/// Changes a seed for later additions: several trees and damaged payloads. With this value, the
/// seeds in tests keep their meaning.
const MORE: u64 = 0x6c61_6e65_7300_0025;

/// Maximum number of PEs; more would take time without new results.
const MOST_PES: u64 = 20;

/// One run of one cluster.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub tree: Arc<Tree>,
    /// The algorithm of the rounds.
    pub operation: Algorithm,
    pub pacing: Pacing,
    /// Lengths by delivery.
    pub bytes: Vec<u64>,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// The trees over which messages are split; the first is `tree`.
    pub lanes: Vec<Lane>,
    /// Whether the connections check every record, as TLS does; otherwise seals protect headers,
    /// and digests protect messages.
    pub authenticated: bool,
    pub rounds: u64,
    /// Time from a message's last byte until it is durable.
    pub commit_ns: u64,
    /// The schedule of each PE, by PE index, if messages are not split.
    pub whole: Vec<PeSchedule>,
    /// The duration of a round without faults.
    pub predicted_ns: u64,
    /// The faults, in any order.
    pub faults: Vec<Fault>,
    /// For each PE, the time of a message between it and the coordinator.
    pub control_ns: Vec<u64>,
    /// Maximum number of retries after a failure; 0 with several rounds.
    pub retries: u32,
}

impl Scenario {
    pub fn of(seed: u64) -> Scenario {
        let mut dice = Dice(SplitMix64::new(seed));
        let operation = dice.operation();
        let tree = dice.tree(operation);
        let operation = dice.on_network(operation, tree.len());
        let flit_bytes = dice.pick(&[MIN_FLIT_BYTES, 100, 256, 1000]);
        let mut bytes = dice.lengths(&tree, operation, flit_bytes);
        // A message has the same length at all destinations.
        let collective = operation.collective();
        for message in collective.messages(&tree) {
            let length = collective.length(&tree, message, &bytes);
            for at in message.ends(&tree) {
                let delivery = collective.delivery(&tree, message.id, at);
                let bytes = &mut bytes[delivery.index()];
                *bytes = length * u64::from(*bytes > 0);
            }
        }
        let model = dice.model(tree.len(), flit_bytes);
        let operation = match operation == Algorithm::CERTIFICATION_PARALLEL && model.own_links {
            true => Algorithm::CERTIFICATION_MULTI_PORT,
            false => operation,
        };
        let pacing = dice.pick(&[Pacing::Scheduled, Pacing::Turns, Pacing::Eager]);
        let timing = Timing::of(&model, flit_bytes, pacing);
        let whole = operation.schedules(&tree, &bytes, &timing);
        let mut more = Dice(SplitMix64::new(seed ^ MORE));
        let mut trees = vec![(tree.clone(), model)];
        for other in more.further(&tree, operation) {
            trees.push((other, more.model(tree.len(), flit_bytes)));
        }
        let parts = more.dealt((&tree, operation), &bytes, trees.len(), flit_bytes);
        let (lanes, predicted_ns) = planned((operation, flit_bytes, pacing), trees, &parts);
        let authenticated = dice.below(3) == 0;
        let rounds = 1 + dice.below(3);
        let commit_ns = dice.pick(&[0, 50_000, 5_000_000]);
        let mut faults = dice.faults(&tree, rounds, predicted_ns);
        more.spread(&mut faults, &lanes, rounds * predicted_ns + 1);
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
            lanes,
            authenticated,
            rounds,
            commit_ns,
            whole,
            predicted_ns,
            faults,
            control_ns,
            retries,
        }
    }

    /// Creates the retry of this run after `runs` other runs.
    pub fn after(&self, next: NextRun, runs: u64) -> Scenario {
        let (seed, operation, flit_bytes) = (self.seed, next.operation, self.flit_bytes);
        let tree = Arc::new(next.repair.tree);
        let mut bytes = self.bytes.clone();
        let collective = operation.collective();
        for it in collective.all_deliveries(&tree) {
            if !collective.can_deliver(&tree, it) || next.left_out.contains(&it) {
                bytes[it.index()] = 0;
            }
        }
        // With absent PEs, messages are not split.
        let lanes = match tree.count() == tree.len() && has_parts(operation) {
            true => &self.lanes[..],
            false => &self.lanes[..1],
        };
        let trees = lanes.iter().map(|it| (it.tree.clone(), it.model.clone()));
        let mut trees: Vec<(Arc<Tree>, Model)> = trees.collect();
        trees[0].0 = tree.clone();
        let timing = Timing::of(&trees[0].1, flit_bytes, self.pacing);
        let whole = operation.schedules(&tree, &bytes, &timing);
        let mut dice = Dice(SplitMix64::new(seed ^ (runs << 56)));
        let parts = dice.dealt((&tree, operation), &bytes, trees.len(), flit_bytes);
        let (lanes, predicted_ns) = planned((operation, flit_bytes, self.pacing), trees, &parts);
        let mut faults = Vec::new();
        if tree.count() > 1 {
            faults = dice.faults(&tree, 1, predicted_ns);
            dice.spread(&mut faults, &lanes, predicted_ns + 1);
        }
        Scenario {
            operation,
            faults,
            tree,
            bytes,
            lanes,
            whole,
            predicted_ns,
            ..self.clone()
        }
    }

    /// Returns whether every round must be successful.
    pub fn is_harmless(&self) -> bool {
        self.faults.iter().all(|fault| fault.kind.is_harmless())
    }

    /// Returns the time within which a fault must be reported, with the state of the messages: for
    /// the coordinator to detect a stall, and two heartbeats; for every link to empty its buffer
    /// twice, with all delays; for the explanation of an error, for the last reports, and for
    /// messages to and from the coordinator.
    pub fn bound_ns(&self) -> u64 {
        let frame = u64::from(self.flit_bytes) + MAX_FLIT_PREFIX as u64;
        let ways = self.lanes.iter().flat_map(|lane| {
            let buffer = (lane.model.buffer_bytes + frame) as f64;
            let ways = lane.model.edges.iter();
            let ways = ways.flat_map(|edge| [edge.down, edge.up]);
            ways.map(move |link| 2.0 * (link.latency_ns + buffer * link.ns_per_byte))
        });
        let spread: f64 = ways.sum();
        let held_up: u64 = self.faults.iter().map(|fault| fault.kind.lasts_ns()).sum();
        let stands_still = SILENCE_NS + 10_000_000_000 + 2 * HEARTBEAT_NS;
        let aftermath = 500_000_000 + 2_000_000_000 + 100_000_000;
        stands_still + aftermath + spread as u64 + held_up + 2 * self.commit_ns
    }
}

/// A random generator of scenarios.
struct Dice(SplitMix64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Returns a number from 1 to `most`; every order of magnitude is equally likely.
    fn scale(&mut self, most: u64) -> u64 {
        let bits = self.below(u64::from(most.ilog2()) + 1);
        (1 + self.below(2 << bits)).min(most)
    }

    fn operation(&mut self) -> Algorithm {
        match self.below(13) {
            0 => Algorithm::FARTHEST_FIRST,
            1 => Algorithm::SHOULDER_TAP,
            2 => Algorithm::CERTIFICATION_SERIAL,
            3 => Algorithm::CERTIFICATION_PIPELINED,
            4 => Algorithm::CERTIFICATION_PARALLEL,
            5 => Algorithm::linear_gather(1 + self.below(4) as u32),
            6 => Algorithm::COMBINING_GATHER,
            7 => Algorithm::COMBINING_SCATTER,
            8 => Algorithm::LISTED_SCATTER,
            9 | 10 => self.pick(&[
                Algorithm::GOSSIP_FLOOD,
                Algorithm::GOSSIP_CIRCULATE,
                Algorithm::GOSSIP_DISSEMINATION,
                Algorithm::GOSSIP_DIRECT,
                Algorithm::GOSSIP_ON_NETWORK,
            ]),
            11 => self.pick(&[
                Algorithm::EXCHANGE_ROUNDS,
                Algorithm::EXCHANGE_SHIFTS,
                Algorithm::EXCHANGE_BRUCK,
                Algorithm::EXCHANGE_TREE,
                Algorithm::EXCHANGE_AT_ONCE,
            ]),
            _ => self.pick(&[
                Algorithm::BROADCAST_ROUNDS,
                Algorithm::BROADCAST_URGENT,
                Algorithm::BROADCAST_CHILD_BY_CHILD,
                Algorithm::BROADCAST_CIRCULANT,
                Algorithm::BROADCAST_ON_CUBES,
            ]),
        }
    }

    /// Draws a network and an algorithm for it if the operation is a gossip on a network.
    fn on_network(&mut self, operation: Algorithm, pes: usize) -> Algorithm {
        if operation != Algorithm::GOSSIP_ON_NETWORK {
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
        let spec = network.parse().ok();
        let arena = spec.and_then(|spec| GossipNetwork::of(&spec).ok());
        let algorithm = algorithm.parse().expect("it is an algorithm");
        let one = arena.filter(|arena| arena.pes() == pes);
        // An algorithm for other numbers of PEs is replaced by a ring of all.
        let one = one.and_then(|arena| OnNetwork::new(arena, algorithm).ok());
        one.map_or(Algorithm::GOSSIP_ON_NETWORK, Algorithm::gossip_on)
    }

    /// Draws a tree on which the operation is possible.
    fn tree(&mut self, operation: Algorithm) -> Arc<Tree> {
        let pes = match operation.fits() {
            TreeRequirement::Cubes => 2 << self.below(3),
            _ => 2 + self.below(MOST_PES - 1),
        };
        let tree = self.grown(operation, pes);
        let root = match (operation.fits(), self.below(3)) {
            (TreeRequirement::Stars, _) | (_, 1..) => PeId::ROOT,
            // A path is one only from its ends.
            (TreeRequirement::Paths, _) => PeId(pes as u32 - 1),
            _ => self.pe(&tree),
        };
        Arc::new(tree.rerooted(root))
    }

    /// Draws a tree from P0.
    fn grown(&mut self, operation: Algorithm, pes: u64) -> Tree {
        let reach = 1 + self.below(pes);
        let parents = (1..pes).map(|pe| {
            let parent = match operation.fits() {
                TreeRequirement::Paths => pe - 1,
                TreeRequirement::Stars => 0,
                // A short reach makes deep trees, a long one flat trees.
                _ => pe - 1 - self.below(reach.min(pe)),
            };
            Some(PeId(parent as u32))
        });
        let parents = std::iter::once(None).chain(parents).collect();
        Tree::from_parents(parents).expect("parents stand before their children")
    }

    fn lengths(&mut self, tree: &Tree, operation: Algorithm, flit_bytes: u32) -> Vec<u64> {
        let most = u64::from(flit_bytes) * 30;
        let one = |dice: &mut Dice| match dice.below(4) {
            0 => 0,
            _ => dice.scale(most),
        };
        let given = operation.collective().lengths_given(tree);
        let lengths: Vec<u64> = (0..given).map(|_| one(self)).collect();
        operation.collective().by_delivery(tree, &lengths)
    }

    fn model(&mut self, pes: usize, flit_bytes: u32) -> Model {
        let alike = self.below(2) == 0;
        let link = |dice: &mut Dice| Link {
            latency_ns: dice.scale(20_000_000) as f64,
            setup_ns: 0.0,
            ns_per_byte: dice.scale(8_000) as f64 / 8.0,
            burst_bytes: 0.0,
        };
        let edge = |dice: &mut Dice| Edge {
            down: link(dice),
            up: link(dice),
        };
        let first = edge(self);
        let edges = (0..pes).map(|_| match alike {
            true => first,
            false => edge(self),
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
        // A quarter of the runs has no faults; a quarter must be successful despite faults.
        let (count, harmless) = match self.below(4) {
            0 => (0, true),
            1 => (1 + self.below(4), true),
            _ => (1 + self.below(3), false),
        };
        // Some faults come after the last round.
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
        Way { lane: 0, from, to }
    }

    /// Draws a harmless fault; `left` is the remaining total duration of these.
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
