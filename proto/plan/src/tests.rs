//! Trees, messages and predictions for unit tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::tree::TreeSpec;
use flitcast_proto::{MessageId, PeId, Tree};

use crate::algorithms::Algorithm;
use crate::cost::{Link, Model};
use crate::gossip::GossipNetwork;
use crate::network::{Network, NetworkSpec};
use crate::predict::{Prediction, predict};
use crate::timing::Timing;

/// Returns a tree by its name.
pub fn tree(spec: &str) -> Arc<Tree> {
    let spec: TreeSpec = spec.parse().expect("it is a tree");
    Arc::new(spec.build().expect("it is a tree"))
}

/// Returns a tree of one of these shapes, cyclically by `seed`.
pub fn shaped(shapes: &[&str], pes: u64, seed: u64) -> Arc<Tree> {
    tree(&match shapes[seed as usize % shapes.len()] {
        "kary" => format!("kary:2:{pes}"),
        "random" => format!("random:{pes}:{seed}"),
        shape => format!("{shape}:{pes}"),
    })
}

/// Returns trees of these shapes in turn, of `least` to `least + below - 1` PEs: the seed of each, a generator
/// of further numbers, and the number of PEs.
pub fn random_trees(
    count: u64,
    shapes: &[&str],
    [least, below]: [u64; 2],
) -> impl Iterator<Item = (u64, SplitMix64, u64, Arc<Tree>)> {
    (0..count).map(move |seed| {
        let mut random = SplitMix64::new(seed);
        let pes = least + random.below(below);
        (seed, random, pes, shaped(shapes, pes, seed))
    })
}

/// A flit of a message that crosses an arc: the step, the sender, the receiver, the message and the number.
pub type Crossed = (u64, PeId, PeId, (MessageId, u64));

/// Returns the network of a name.
pub fn network(spec: &str) -> (NetworkSpec, Network) {
    let spec: NetworkSpec = spec.parse().expect("it is a network");
    let network = spec.build().expect("it is a network");
    (spec, network)
}

/// Returns a network to gossip on.
#[track_caller]
pub fn arena(network: &str) -> GossipNetwork {
    let spec: NetworkSpec = network.parse().expect("it is a network");
    GossipNetwork::of(&spec).expect("gossip is planned there")
}

/// Returns the crossings of single flits by step.
pub fn flits_of(hops: &[ScheduledHop]) -> Vec<Crossed> {
    let flits = hops.iter().flat_map(|hop| {
        (0..hop.flits).map(|flit| {
            let step = hop.first_step + flit * hop.every;
            (step, hop.from, hop.to, (hop.message, hop.offset + flit))
        })
    });
    let mut flits: Vec<Crossed> = flits.collect();
    flits.sort_unstable();
    flits
}

/// Returns the crossings of single flits. Checks that a PE sends and receives at most one flit in a step, and
/// that it has received what it forwards.
pub fn check_single_ports(
    hops: &[ScheduledHop],
    source: impl Fn(MessageId) -> PeId,
) -> Vec<Crossed> {
    let mut arrivals: BTreeMap<(PeId, (MessageId, u64)), u64> = BTreeMap::new();
    let mut ports = BTreeSet::new();
    let crossings = flits_of(hops);
    for &(step, from, to, flit) in &crossings {
        let is_here = arrivals
            .get(&(from, flit))
            .is_some_and(|arrival| *arrival < step);
        assert!(
            is_here || source(flit.0) == from,
            "{flit:?} at {from} in {step}"
        );
        for port in [(from, true, step), (to, false, step)] {
            assert!(ports.insert(port), "{port:?} is busy");
        }
        arrivals.entry((to, flit)).or_insert(step);
    }
    crossings
}

/// Returns the lengths of messages by PE; P0 has none.
pub fn lengths(pes: u64, of: impl FnMut(u64) -> u64) -> Vec<u64> {
    let mut lengths: Vec<u64> = (0..pes).map(of).collect();
    lengths[0] = 0;
    lengths
}

/// Returns the lengths of the messages of an exchange, by source and destination.
pub fn of_pairs(pes: u64, mut of: impl FnMut() -> u64) -> Vec<Vec<u64>> {
    let mut row = |from| {
        (0..pes)
            .map(|to| if from == to { 0 } else { of() })
            .collect()
    };
    (0..pes).map(&mut row).collect()
}

/// Returns P0's 0 and these lengths.
pub fn with_root(lengths: &[u64]) -> Vec<u64> {
    [0].iter().chain(lengths).copied().collect()
}

/// Returns a link without a burst.
pub const fn link(latency_ns: f64, setup_ns: f64, ns_per_byte: f64) -> Link {
    Link {
        latency_ns,
        setup_ns,
        ns_per_byte,
        burst_bytes: 0.0,
    }
}

/// Predicts a round of an algorithm.
pub fn predicted(
    operation: Algorithm,
    tree: &Arc<Tree>,
    bytes: &[u64],
    model: &Model,
    timing: &Timing,
) -> Prediction {
    let schedules = operation.schedules(tree, bytes, timing);
    predict(tree, &schedules, model).expect("a schedule")
}

/// Returns when each message arrives; 0 for a null one.
pub fn arrivals(prediction: &Prediction) -> Vec<u64> {
    let arrivals = prediction.arrivals_ns.iter();
    arrivals.map(|arrival| arrival.unwrap_or(0)).collect()
}
