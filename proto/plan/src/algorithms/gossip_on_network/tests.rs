//! Rounds take as long as the paper's steps, on links with only a latency, a rate or a set-up time.

use flitcast_proto::schedule::pace::Pacing;

use super::super::Algorithm;
use super::*;
use crate::cost::{Link, Model, Ports};
use crate::gossip::Cost;
use crate::tests::{arena, link, predicted, tree};

const FLIT_BYTES: u32 = 1000;
/// The latency, the set-up time or the time of a flit.
const UNIT_NS: f64 = 1e6;

/// Returns the planned and the predicted units of time of a gossip of blocks of `flits` flits on
/// links with only a latency, only a rate and only a set-up time, one for each neighbour.
fn planned_and_run(network: &str, algorithm: &str, flits: u64) -> [[f64; 2]; 3] {
    let arena = arena(network);
    let pes = arena.pes();
    let algorithm: GossipAlgorithm = algorithm.parse().unwrap();
    let gossip = Gossip::new(arena.clone(), &vec![flits; pes], &algorithm).unwrap();
    let one = OnNetwork::new(arena, algorithm).unwrap();
    let operation = Algorithm::gossip_on(one);
    let tree = tree(&format!("star:{pes}"));
    let each = flits * u64::from(FLIT_BYTES);
    let bytes = operation.collective().by_delivery(&tree, &vec![each; pes]);
    let run = |link: Link| {
        let model = Model {
            ports: Ports::PerEdge,
            own_links: true,
            ..Model::alike(pes, link)
        };
        let timing = Timing::of(&model, FLIT_BYTES, Pacing::Eager);
        predicted(operation, &tree, &bytes, &model, &timing).round_ns() as f64 / UNIT_NS
    };
    let Cost {
        startups, flits, ..
    } = gossip.cost();
    let ns_per_byte = UNIT_NS / f64::from(FLIT_BYTES);
    [
        (startups, link(UNIT_NS, 0.0, 0.0)),
        (flits, link(0.0, 0.0, ns_per_byte)),
        (startups, link(0.0, UNIT_NS, 0.0)),
    ]
    .map(|(planned, link)| [planned as f64, run(link)])
}

/// Packets wait for all of their blocks, begin when their links are free, and pay one set-up.
#[test]
fn a_round_takes_as_long_as_the_steps() {
    for line in [
        "ring:9 by approach1 approach2 circgos:3,3,1 halves circgos:9,3,1",
        "ring:27 by approach1 approach2 circgos:3,3,1 halves circgos:9,3,1 circgos:3,3,2",
        "array:9 by approach1 approach2 circgos:3,3,1",
        "torus:3x3 by approach1 approach2 torgos:3;; cubgos phases:1,3,1/1,3,1",
        "torus:9x9 by approach1 approach2 torgos:3;3;1 torgos:9;; cubgos",
        "torus:3x3x3 by approach1 approach2 cubgos",
        "mesh:4x4 by approach1",
    ] {
        let (network, algorithms) = line.split_once(" by ").unwrap();
        let algorithms = algorithms.split(' ');
        for (algorithm, flits) in algorithms.flat_map(|it| [(it, 1), (it, 6)]) {
            for [planned, run] in planned_and_run(network, algorithm, flits) {
                let case = format!("{network} {algorithm} {flits}: {run} for {planned}");
                assert!((run - planned).abs() <= 1e-6, "{case}");
            }
        }
    }
}

/// Lines of four PEs concentrate in two steps on one side and in one on the other. Packets that
/// cross several edges have links of their own, so that the shorter side need not wait.
#[test]
fn a_round_is_quicker_where_no_edge_is_shared() {
    let times = planned_and_run("mesh:4x4", "approach2", 1);
    assert_eq!(times, [[8.0, 6.0], [40.0, 30.0], [8.0, 6.0]]);
}
