use super::*;
use crate::network::cover::{cover, ways_to_all};
use crate::network::{Network, NetworkSpec, bfs};
use crate::tests::{lengths, tree};

struct Case {
    network: Network,
    cover: Cover,
    distances: Vec<u64>,
    ports: usize,
}

fn case(spec: &str, root: u32) -> Case {
    let spec: NetworkSpec = spec.parse().unwrap();
    let network = spec.build().unwrap();
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
