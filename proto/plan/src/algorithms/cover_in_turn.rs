//! Scatters over trees that share arcs (paper 000, section IV, the second technique, of which the paper
//! only says that the traffic on shared edges has to be scheduled).
//!
//! The streams over a shared arc follow each other, and a stream starts so late that it never stops: a PE
//! forwards every flit in the step after its arrival, as on trees that share no arc.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use flitcast_proto::PeId;

use super::cover_plan::finish;
use super::listed_scatter::hops_of;
use super::steps::on_its_way;
use super::timetable::Timetable;
use crate::network::cover::Cover;

/// The steps in which each arc is busy: for each first step of a stream, the step after its last.
type Busy = BTreeMap<[PeId; 2], BTreeMap<u64, u64>>;

/// Plans a scatter of the distributed messages. Streams are scheduled farthest destination first, each
/// from the first step from which on it finds all arcs on its way free.
pub fn scatter_in_turn(cover: &Cover, dealt: &[Vec<u64>]) -> Timetable {
    let trees = cover.trees.iter().zip(dealt).enumerate();
    let streams = trees.flat_map(|(at, (tree, flits))| {
        let nonnull = tree.below_root().filter(|pe| flits[pe.index()] > 0);
        nonnull.map(move |pe| (Reverse(tree.depth(pe)), pe, at))
    });
    let mut streams: Vec<(Reverse<u32>, PeId, usize)> = streams.collect();
    streams.sort_unstable();
    let mut busy = Busy::new();
    let mut hops = vec![Vec::new(); cover.trees.len()];
    for (_, pe, at) in streams {
        let (tree, flits) = (&cover.trees[at], dealt[at][pe.index()]);
        let way = tree.way_to(pe);
        let way: Vec<[PeId; 2]> = way.windows(2).map(|arc| [arc[0], arc[1]]).collect();
        let first_step = first_free(&busy, &way, flits);
        for (arc, step) in way.into_iter().zip(first_step..) {
            busy.entry(arc).or_default().insert(step, step + flits);
        }
        let plan = on_its_way(tree, pe, flits, first_step);
        hops[at].extend(hops_of(tree, &plan));
    }
    finish(cover, dealt, hops)
}

/// Returns the first step from which on a stream of `flits` flits meets no other on its way.
fn first_free(busy: &Busy, way: &[[PeId; 2]], flits: u64) -> u64 {
    let mut start = 1;
    loop {
        let ends = (0..).zip(way).filter_map(|(hop, arc)| {
            // The last of the streams that begin before the end of this one also ends last.
            let [first, end] = [start + hop, start + hop + flits];
            let (_, until) = busy.get(arc)?.range(..end).next_back()?;
            (*until > first).then_some(until - hop)
        });
        match ends.max() {
            Some(later) => start = later,
            None => return start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cover_plan::{SplitPolicy, deal, least_steps_of_scatter, scatter};
    use super::*;
    use crate::network::cover::{cover, tree_for_each_port};
    use crate::network::{Network, NetworkSpec, bfs};
    use crate::tests::{flits_of, lengths};

    /// Returns the last step. Checks that every arc carries at most one flit in a step, that a PE
    /// forwards a flit in the step after its arrival, and that every flit arrives.
    fn replay(cover: &Cover, dealt: &[Vec<u64>]) -> u64 {
        let plan = scatter_in_turn(cover, dealt);
        let mut busy = std::collections::BTreeSet::new();
        let mut at = BTreeMap::new();
        for (step, from, to, flit) in flits_of(&plan.hops) {
            assert!(busy.insert((step, [from, to])), "{from} to {to} in {step}");
            let previous = at.insert(flit, (step, to));
            let expected = (from != PeId::ROOT).then_some((step - 1, from));
            assert_eq!(previous, expected);
        }
        for pe in 1..cover.nodes.len() {
            let expected: u64 = dealt.iter().map(|flits| flits[pe]).sum();
            let pe = PeId(pe as u32);
            let arrived = at
                .iter()
                .filter(|((of, _), (_, to))| of.pe() == pe && *to == pe);
            assert_eq!(arrived.count() as u64, expected, "{pe}");
        }
        plan.time_steps
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
        assert_eq!(replay(&cover, &alone), 3);
        let both = vec![vec![0, 0, 0, 0, 1], vec![0, 0, 0, 0, 1]];
        let plan = scatter_in_turn(&cover, &both);
        let shared = plan.hops.iter().filter(|hop| hop.to == PeId(4));
        let steps: Vec<u64> = shared.map(|hop| hop.first_step).collect();
        assert_eq!(steps, [3, 4]);
        assert_eq!(replay(&cover, &both), 4);
        // Six flits over one tree take at least six steps at its port of P0, and a step more to P3.
        let flits = [0, 0, 0, 4, 2];
        let distances = [0, 1, 1, 2, 3];
        assert_eq!(least_steps_of_scatter(2, &distances, &flits), 4);
        let split = [vec![0, 0, 0, 1, 2], vec![0, 0, 0, 3, 0]];
        assert_eq!(replay(&cover, &split), 4);
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
            let spec: NetworkSpec = spec.parse().unwrap();
            let network = spec.build().unwrap();
            let flits = lengths(network.len() as u64, |_| 8);
            let covers = [
                cover(&network, Some(&spec), root).unwrap(),
                tree_for_each_port(&network, root).unwrap(),
            ];
            assert_eq!([0, 1].map(|at| covers[at].trees.len()), trees, "{spec}");
            let least = |cover: &Cover, time: fn(&Cover, &[Vec<u64>]) -> u64| {
                let times = SplitPolicy::ALL.map(|how| time(cover, &deal(cover, &flits, how)));
                times.into_iter().min().unwrap()
            };
            let apart = least(&covers[0], |cover, dealt| scatter(cover, dealt).time_steps);
            let in_turn = least(&covers[1], replay);
            let nearest = bfs(&network, root).unwrap().tree;
            let distances: Vec<u64> = nearest.pes().map(|pe| nearest.depth(pe).into()).collect();
            let ports = network.neighbours(root).len();
            let least = least_steps_of_scatter(ports, &distances, &flits);
            found.push((spec.to_string(), [apart, in_turn, least]));
        }
        let expected = expected.map(|(spec, .., steps)| (spec.to_owned(), steps));
        assert_eq!(found, expected);
    }
}
