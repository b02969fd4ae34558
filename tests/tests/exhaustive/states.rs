//! The minimum time of any gather by brute force: a breadth-first search through all possible
//! actions of the PEs, step by step. It shares no code with `optimum.rs`, which it checks.

use std::collections::HashSet;

use flitcast_proto::{PeId, Tree};

/// Returns the least time of any gather, in steps; 0 if there is nothing to send.
pub fn gather_steps(tree: &Tree, flits: &[u64]) -> u64 {
    let mut start = vec![Station::default(); tree.len()];
    start[0].ordered = true;
    let mut seen = HashSet::from([start.clone()]);
    let mut states = vec![start];
    let mut steps = 0;
    while !states.iter().any(|state| is_over(state, flits)) {
        let mut next = Vec::new();
        for before in &states {
            let choice = Choice {
                tree,
                flits,
                before,
            };
            choice.all(&mut next);
        }
        next.retain(|state| seen.insert(state.clone()));
        states = next;
        steps += 1;
    }
    steps
}

/// The state of a PE between two steps.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Station {
    /// An order from P0 has reached it.
    ordered: bool,
    /// The number of flits of its message that it has sent.
    sent: u64,
    /// Whether it has received a flit for another PE.
    holds: bool,
}

fn is_over(state: &[Station], flits: &[u64]) -> bool {
    let mut stations = state.iter().zip(flits);
    stations.all(|(station, &own)| station.sent == own && !station.holds)
}

/// The possible sends of PEs in one step.
struct Choice<'a> {
    tree: &'a Tree,
    flits: &'a [u64],
    before: &'a [Station],
}

impl Choice<'_> {
    /// Appends every state that the step can lead to.
    fn all(&self, states: &mut Vec<Vec<Station>>) {
        let mut after = self.before.to_vec();
        for station in &mut after {
            station.holds = false;
        }
        let received = vec![false; after.len()];
        self.from(0, &after, &received, states);
    }

    /// Chooses the actions of the PEs from `at` on; those of earlier PEs result in `after`, and
    /// `received` marks the receive ports that they use.
    fn from(
        &self,
        at: usize,
        after: &[Station],
        received: &[bool],
        states: &mut Vec<Vec<Station>>,
    ) {
        let Some(&station) = self.before.get(at) else {
            return states.push(after.to_vec());
        };
        let pe = PeId(at as u32);
        let under_way = 0 < station.sent && station.sent < self.flits[at];
        if station.holds && under_way {
            return; // Two flits have to go on: a way that breaks the rules.
        }
        if !station.holds && !under_way {
            self.from(at + 1, after, received, states);
        }
        let mut send = |to: PeId, change: &dyn Fn(&mut [Station])| {
            if received[to.index()] {
                return;
            }
            let (mut after, mut received) = (after.to_vec(), received.to_vec());
            received[to.index()] = true;
            change(&mut after);
            self.from(at + 1, &after, &received, states);
        };
        if let Some(parent) = self.tree.parent(pe) {
            let own = !station.holds && station.ordered && station.sent < self.flits[at];
            if station.holds || own {
                send(parent, &|after| {
                    after[at].sent += u64::from(own);
                    after[parent.index()].holds = parent != PeId::ROOT;
                });
            }
        }
        if station.ordered && !station.holds && !under_way {
            for &child in self.tree.children(pe) {
                send(child, &|after| after[child.index()].ordered = true);
            }
        }
    }
}
