//! Golden costs, and properties of whole gossips.

use super::*;
use crate::network::NetworkSpec;

/// Equal blocks of so many flits on a network, by an algorithm: start-ups, sum of D, sum of F.
#[track_caller]
fn cost(network: &str, algorithm: &str, flits: u64) -> [u64; 3] {
    let gossip = gossip(network, algorithm, |_| flits);
    let cost = gossip.cost();
    [cost.startups, cost.distance, cost.flits]
}

#[track_caller]
fn gossip(network: &str, algorithm: &str, flits: impl Fn(usize) -> u64) -> Gossip {
    let arena = arena(network);
    let lengths: Vec<u64> = (0..arena.pes()).map(flits).collect();
    let algorithm = algorithm.parse().expect("it is an algorithm");
    Gossip::new(arena, &lengths, &algorithm).expect("it suits the network")
}

#[track_caller]
fn arena(network: &str) -> Arena {
    let spec: NetworkSpec = network.parse().expect("it is a network");
    Arena::of(&spec).expect("gossip is planned there")
}

#[test]
fn rings_and_arrays_cost_what_the_table_says() {
    for (network, algorithm, flits, expected) in [
        ("ring:9", "circgos:9,3,1", 1, [4, 4, 4]),
        ("ring:9", "circgos:1,3,1", 1, [4, 8, 18]),
        ("ring:9", "circgos:3,3,1", 1, [3, 5, 12]),
        ("ring:8", "circgos:8,2,1", 2, [4, 4, 7]),
        ("ring:12", "circgos:4,3,1", 1, [4, 8, 17]),
        ("ring:12", "circgos:4,3,2", 1, [5, 9, 14]),
        ("ring:10", "circgos:3,3,1", 1, [5, 10, 24]),
        ("ring:81", "circgos:15,5,4", 1, [16, 56, 162]),
        ("ring:243", "circgos:25,7,7", 1, [27, 146, 449]),
        ("ring:27", "approach2", 1, [6, 26, 81]),
        ("ring:27", "approach2:3", 1, [5, 17, 63]),
        ("ring:27", "circgos:9,3,1", 1, [6, 14, 39]),
        ("ring:27", "circgos:9,3,2", 1, [7, 15, 31]),
        ("mesh:9", "approach1", 1, [8, 8, 8]),
        ("mesh:9", "circgos:1,3,1", 1, [4, 8, 18]),
        ("mesh:27", "circgos:9,3,1", 1, [10, 26, 51]),
        ("mesh:10", "circgos:3,4,3", 1, [9, 14, 23]),
    ] {
        assert_eq!(cost(network, algorithm, flits), expected, "{network} {algorithm}");
    }
}

#[test]
fn tori_and_meshes_cost_what_the_table_says() {
    for (network, algorithm, flits, expected) in [
        ("torus:6x6", "torgos:3;2;1", 2, [5, 7, 27]),
        ("torus:9x9", "torgos:3;3;1", 2, [5, 9, 66]),
        ("torus:12x12", "torgos:2;2,3;1,2", 2, [9, 24, 116]),
        ("torus:27x27", "torgos:3;9;7", 2, [15, 33, 448]),
        ("torus:27x27", "torgos:3;3,3;1,1", 2, [8, 30, 684]),
        ("torus:9x9x9", "cubgos", 3, [7, 13, 444]),
        ("torus:9x9", "approach1", 2, [8, 8, 40]),
        ("torus:9x9", "phases:3,3,1/9,3,1", 2, [7, 9, 48]),
        ("torus:9x9", "approach2:3", 2, [6, 10, 120]),
        ("torus:4x6", "approach1", 2, [6, 6, 15]),
        ("mesh:4x6", "approach1", 2, [10, 10, 31]),
        ("mesh:3x4x5", "approach1", 3, [12, 12, 89]),
    ] {
        assert_eq!(cost(network, algorithm, flits), expected, "{network} {algorithm}");
    }
}

#[test]
fn single_steps_have_the_packets_that_the_table_says() {
    for (network, algorithm, flits, expected) in [
        ("ring:8", "approach1", 2, vec![2, 2, 2, 1]),
        ("torus:9x9x9", "cubgos", 3, vec![1, 3, 9, 27, 80, 81, 243]),
    ] {
        let gossip = gossip(network, algorithm, |_| flits);
        let largest = gossip.steps().map(|step| step.cost(&gossip.arena).flits);
        assert_eq!(largest.collect::<Vec<_>>(), expected, "{network}");
    }
}

#[test]
fn complete_networks_cost_what_the_table_says() {
    for (pes, one, two) in [(8, 3, 2), (9, 4, 2), (12, 4, 3), (27, 5, 3)] {
        let network = format!("complete:{pes}");
        let all = pes - 1;
        assert_eq!(cost(&network, "dissemination", 1), [one, one, all]);
        assert_eq!(cost(&network, "dissemination:2", 1), [two, two, all]);
        assert_eq!(cost(&network, "circulate", 1), [all, all, all]);
        assert_eq!(cost(&network, "direct", 1), [1, 1, all]);
        assert_eq!(cost(&network, "approach1", 2), [pes / 2, pes / 2, 2 * all]);
        if pes % 2 == 0 {
            assert_eq!(cost(&network, "neighbour", 1), [pes / 2, pes / 2, all]);
        }
    }
}
