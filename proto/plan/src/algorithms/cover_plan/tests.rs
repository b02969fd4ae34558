use super::*;
use crate::network::cover::{cover, tree_for_each_port, ways_to_all};
use crate::network::{Network, bfs};
use crate::tests::{lengths, network, tree};

struct Case {
    network: Network,
    cover: Cover,
    distances: Vec<u64>,
    ports: usize,
}

fn case(spec: &str, root: u32) -> Case {
    let (spec, network) = network(spec);
    let tree = bfs(&network, root).unwrap().tree;
    Case {
        cover: cover(&network, Some(&spec), root).unwrap(),
        distances: tree.pes().map(|pe| tree.depth(pe).into()).collect(),
        ports: network.neighbours(root).len(),
        network,
    }
}

impl Case {
    /// Returns the bound and the steps for each distribution.
    fn scatters(&self, flits: &[u64]) -> [u64; 4] {
        let [whole, striped, levelled] = SplitPolicy::ALL.map(|how| {
            let dealt = deal(&self.cover, flits, how);
            for (pe, length) in flits.iter().enumerate() {
                let all: u64 = dealt.iter().map(|flits| flits[pe]).sum();
                assert_eq!(all, *length, "P{pe} {how}");
            }
            scatter(&self.cover, &dealt).time_steps
        });
        let bound = least_steps_of_scatter(self.ports, &self.distances, flits);
        [bound, whole, striped, levelled]
    }
}

/// Degree, trees and depth; bound and scatters by each distribution of 8 flits for each PE, and of
/// one long message; the gather of the striped 8; the broadcast of 60.
#[test]
fn covers_take_the_steps_of_the_table() {
    let table = "
        mesh:4x4      0   2 2 6    60 64 60 60      87 165 87 88   78 35
        mesh:4x4      5   4 2 4    30 40 36 39      44 163 85 84   48 33
        torus:4x4     0   4 4 6    30 33 30 30      44 163 47 46   48 20
        torus:8x8     0   4 4 14   126 129 126 126  56 167 59 58   168 28
        torus:4x4x4   0   6 6 9    84 88 85 84      37 165 41 39   112 18
        hypercube:6   0   6 6 7    84 88 85 84      37 165 39 38   106 16
        debruijn:2:4  0   2 2 4    60 64 60 60      87 163 90 87   72 33
        debruijn:2:4  5   3 2 5    40 48 60 44      58 162 88 85   75 34
        debruijn:3:3  5   6 4 6    35 40 52 36      31 162 47 45   70 20";
    for row in table.lines().skip(1) {
        let (spec, numbers) = row.trim().split_once(' ').unwrap();
        let numbers = numbers.split_whitespace().map(|it| it.parse().unwrap());
        let numbers: Vec<u64> = numbers.collect();
        let (root, numbers) = numbers.split_first().unwrap();
        let root = *root as u32;
        let case = case(spec, root);
        let depth = levels(&case.cover);
        let mut found = vec![case.ports as u64, case.cover.trees.len() as u64, depth];
        let mut flits = lengths(case.network.len() as u64, |_| 8);
        found.extend(case.scatters(&flits));
        let striped = deal(&case.cover, &flits, SplitPolicy::Striped);
        let gathered = gather(&case.cover, &striped);
        let sent = broadcast(&case.cover, 60);
        let ways = ways_to_all(&case.network, root);
        let mut ways_of_pes = ways.clone();
        for (pe, node) in case.cover.nodes.iter().enumerate() {
            ways_of_pes[pe] = ways[*node as usize];
        }
        assert!(least_steps_of_broadcast(&case.distances, &ways_of_pes, 60) <= sent.time_steps);
        let farthest = case.distances.iter().max().unwrap();
        let mut distances = case.distances.iter();
        let first = distances.position(|distance| distance == farthest);
        flits[1..].fill(1);
        flits[first.unwrap()] = 160;
        found.extend(case.scatters(&flits));
        found.extend([gathered.time_steps, sent.time_steps]);
        assert_eq!(found, numbers, "{spec} from {root}");
    }
}

/// The case of the spec, computed by hand there.
#[test]
fn relays_wait_as_in_the_spec() {
    let Streams { lags, .. } = streams(&tree("path:6"), &[0, 2, 3, 0, 2, 1], 11, 2);
    assert_eq!(lags[1..], [2, 2, 3, 1, 1]);
}

fn steps(cover: &Cover, dealt: &[Vec<u64>]) -> u64 {
    scatter(cover, dealt).time_steps
}

/// Two ways lead from P0 to P3, and one arc from there to P4, worked out by hand: a flit for P4 on
/// either way would be at P3 in step 2, so one of them leaves a step later.
#[test]
fn streams_over_a_shared_arc_follow_each_other() {
    let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)];
    let network = Network::from_edges(5, edges).unwrap();
    let apart = cover(&network, None, 0).unwrap();
    assert_eq!(apart.trees.len(), 1, "one arc leads to P4");
    let cover = tree_for_each_port(&network, 0).unwrap();
    assert_eq!(cover.trees.len(), 2);
    let alone = vec![vec![0, 0, 0, 0, 1], vec![0; 5]];
    assert_eq!(steps(&cover, &alone), 3);
    let both = vec![vec![0, 0, 0, 0, 1], vec![0, 0, 0, 0, 1]];
    let plan = scatter(&cover, &both);
    let shared = plan.hops.iter().filter(|hop| hop.to == PeId(4));
    let begun: Vec<u64> = shared.map(|hop| hop.first_step).collect();
    assert_eq!(begun, [3, 4]);
    assert_eq!(steps(&cover, &both), 4);
    // Six flits over one tree take at least six steps at its port of P0, and a step more to P3.
    let flits = [0, 0, 0, 4, 2];
    let distances = [0, 1, 1, 2, 3];
    assert_eq!(least_steps_of_scatter(2, &distances, &flits), 4);
    let split = [vec![0, 0, 0, 1, 2], vec![0, 0, 0, 3, 0]];
    assert_eq!(steps(&cover, &split), 4);
}

/// Eight flits for each PE: with trees that share no arc, and with one for each port of P0. More
/// trees gain where P0 has more ports than there are disjoint trees.
#[test]
fn a_tree_for_each_port_gains_where_disjoint_trees_are_few() {
    let expected = [
        ("mesh:4x4", 5, [2, 4], [36, 31, 30]),
        ("mesh:3x3", 4, [2, 4], [19, 17, 16]),
        ("debruijn:2:4", 5, [2, 3], [44, 40, 40]),
        ("torus:4x4", 0, [4, 4], [30, 30, 30]),
    ];
    let mut found = Vec::new();
    for (spec, root, trees, _) in expected {
        let (spec, network) = network(spec);
        let flits = lengths(network.len() as u64, |_| 8);
        let covers = [
            cover(&network, Some(&spec), root).unwrap(),
            tree_for_each_port(&network, root).unwrap(),
        ];
        assert_eq!([0, 1].map(|at| covers[at].trees.len()), trees, "{spec}");
        let least = |cover: &Cover| {
            let times = SplitPolicy::ALL.map(|how| steps(cover, &deal(cover, &flits, how)));
            times.into_iter().min().unwrap()
        };
        let [apart, in_turn] = covers.each_ref().map(least);
        let nearest = bfs(&network, root).unwrap().tree;
        let distances: Vec<u64> = nearest.pes().map(|pe| nearest.depth(pe).into()).collect();
        let ports = network.neighbours(root).len();
        let least = least_steps_of_scatter(ports, &distances, &flits);
        found.push((spec.to_string(), [apart, in_turn, least]));
    }
    let expected = expected.map(|(spec, .., steps)| (spec.to_owned(), steps));
    assert_eq!(found, expected);
}
