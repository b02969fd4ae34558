//! Broadcast plans: the step in which each flit from P0 crosses each edge.
//!
//! Any PE may be the source: the tree is re-rooted there before ([`Tree::rerooted`]). A PE sends
//! one flit a step and receives one a step, unless it has a port for each neighbour. These plans
//! are new, except for one flit, whose schedule is by Slater, Cockayne and Hedetniemi.

use std::cmp::Reverse;

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::{MessageId, PeId, Tree};

use super::timetable::{Timetable, hop};

/// Plans each flit as the token goes, and starts the next one when the PE with the most children
/// has forwarded the last: `(flits - 1) * D + B` steps.
pub fn rounds(tree: &Tree, flits: u64) -> Timetable {
    let token = tree.token_broadcast();
    let most_children = tree.pes().map(|pe| tree.children(pe).len() as u64).max();
    let every = most_children.unwrap_or(0).max(1);
    one_by_one(tree, flits, every, |to| token.received_step(to))
}

/// Plans flits that cross each edge one after the other, one in `every` steps; `first` returns the step of
/// the first one on the edge to a PE.
fn one_by_one(tree: &Tree, flits: u64, every: u64, first: impl Fn(PeId) -> u64) -> Timetable {
    let edges = tree.edges().filter(|_| flits > 0);
    let hops = edges.map(|ends| ScheduledHop {
        every,
        ..hop(MessageId(0), ends, [0, flits], first(ends[1]))
    });
    let hops: Vec<ScheduledHop> = hops.collect();
    let last = hops.iter().map(|hop| hop.first_step + (flits - 1) * every);
    Timetable {
        time_steps: last.max().unwrap_or(0),
        kept_flits: Some(u64::from(flits > 0 && tree.height() > 1)),
        hops,
    }
}

/// Plans a broadcast in which a PE sends in each step to the child w with the greatest `max(k +
/// b(w), 1 + k * d(w))`, where w lacks k flits and has d(w) children. This is better than
/// [`rounds`] if branches are uneven. Time and memory grow with the number of flits times PEs.
pub fn urgent(tree: &Tree, flits: u64) -> Timetable {
    let token = tree.token_broadcast();
    let mut arrivals: Vec<Vec<u64>> = vec![Vec::new(); tree.len()];
    arrivals[tree.root().index()] = vec![0; flits as usize];
    let mut plan = Timetable::default();
    let mut most_kept = 0;
    for &pe in tree.top_down() {
        let here = std::mem::take(&mut arrivals[pe.index()]);
        let children = token.order(pe);
        let mut sent: Vec<Vec<u64>> = vec![Vec::with_capacity(here.len()); children.len()];
        let mut step = 0;
        for _ in 0..here.len() * children.len() {
            let lacks = |child: usize| flits - sent[child].len() as u64;
            let next = |child: usize| here.get(sent[child].len()).copied();
            // A flit is forwarded in the step after its arrival at the earliest.
            let earliest = (0..children.len()).filter_map(next).min().unwrap_or(0);
            step = (step + 1).max(earliest + 1);
            let urgency = |child: &usize| {
                let (k, w) = (lacks(*child), children[*child]);
                let urgency = (k + token.b(w)).max(1 + k * tree.children(w).len() as u64);
                (urgency, Reverse(*child))
            };
            let ready = (0..children.len()).filter(|c| next(*c).is_some_and(|at| at < step));
            if let Some(child) = ready.max_by_key(urgency) {
                sent[child].push(step);
            }
        }
        if pe != tree.root() && !children.is_empty() {
            let departures = (0..here.len()).map(|flit| sent.iter().map(|at| at[flit]).max());
            let departures: Vec<u64> = departures.map(Option::unwrap_or_default).collect();
            let kept = here.iter().zip(1..).map(|(now, arrived)| {
                arrived - departures.partition_point(|departure| departure <= now) as u64
            });
            most_kept = most_kept.max(kept.max().unwrap_or(0));
        }
        for (child, steps) in children.iter().zip(sent) {
            put_hops([pe, *child], &steps, &mut plan.hops);
            plan.time_steps = plan.time_steps.max(steps.last().copied().unwrap_or(0));
            arrivals[child.index()] = steps;
        }
    }
    Timetable {
        kept_flits: Some(most_kept),
        ..plan
    }
}

/// Adds the crossings of flits in these steps; flits at equal intervals form one crossing.
fn put_hops(ends: [PeId; 2], steps: &[u64], hops: &mut Vec<ScheduledHop>) {
    let mut first = 0;
    while first < steps.len() {
        let every = steps.get(first + 1).map_or(1, |next| next - steps[first]);
        let mut end = first + 1;
        while end < steps.len() && steps[end] - steps[end - 1] == every {
            end += 1;
        }
        let part = [first as u64, (end - first) as u64];
        let hop = hop(MessageId(0), ends, part, steps[first]);
        hops.push(ScheduledHop { every, ..hop });
        first = end;
    }
}

/// Plans the whole message to one child, then to the next, as simple relays do: a baseline.
pub fn child_by_child(tree: &Tree, flits: u64) -> Timetable {
    let mut plan = Timetable::default();
    if flits == 0 {
        return plan;
    }
    // The step in which a PE has the first flit.
    let mut begins = vec![0; tree.len()];
    for &pe in tree.top_down() {
        for (before, &child) in (0..).zip(tree.token_broadcast().order(pe)) {
            let first_step = begins[pe.index()] + before * flits + 1;
            begins[child.index()] = first_step;
            let hop = hop(MessageId(0), [pe, child], [0, flits], first_step);
            plan.hops.push(hop);
            plan.time_steps = plan.time_steps.max(first_step + flits - 1);
        }
    }
    plan
}

/// Plans with a port for each neighbour, where every flit is forwarded at once: `flits - 1` steps
/// plus the depth of the deepest PE, which is optimal.
pub fn all_ports(tree: &Tree, flits: u64) -> Timetable {
    one_by_one(tree, flits, 1, |to| tree.depth(to).into())
}

/// Returns a lower bound on the steps of a broadcast if a PE has a port for each neighbour.
pub fn least_steps_of_all_ports(tree: &Tree, flits: u64) -> u64 {
    match (flits, tree.count()) {
        (0, _) | (_, 1) => 0,
        _ => flits - 1 + u64::from(tree.height()),
    }
}

/// Returns a lower bound on the steps of a broadcast over this tree. `R(leaf) = 0`; `R(v)` is the
/// greater of two: the k-th child by decreasing b has the last flit after `k * flits` steps at the
/// earliest, and the k-th by decreasing R begins k steps after its parent.
pub fn least_steps(tree: &Tree, flits: u64) -> u64 {
    if flits == 0 {
        return 0;
    }
    let token = tree.token_broadcast();
    let mut least = vec![0; tree.len()];
    for &pe in tree.top_down().iter().rev() {
        let by_token = (1..).zip(token.order(pe));
        let by_token = by_token.map(|(k, child)| k * flits + token.b(*child));
        let children = tree.children(pe).iter();
        let mut children: Vec<u64> = children.map(|child| least[child.index()]).collect();
        children.sort_unstable_by_key(|steps| Reverse(*steps));
        let by_steps = (1..).zip(children).map(|(k, steps)| k + steps);
        least[pe.index()] = by_token.chain(by_steps).max().unwrap_or(0);
    }
    least[tree.root().index()]
}

/// Returns a lower bound on the steps of a broadcast of the longest length among all PEs of a tree.
pub(super) fn least_steps_among_all(tree: &Tree, flits: &[u64]) -> u64 {
    least_steps_of_complete(tree.len(), flits.iter().copied().max().unwrap_or(0))
}

/// Returns a lower bound on the steps of a broadcast in a complete network of `pes` PEs.
pub fn least_steps_of_complete(pes: usize, flits: u64) -> u64 {
    match (flits, pes) {
        (0, _) | (_, 1) => 0,
        _ => flits - 1 + u64::from(pes.next_power_of_two().ilog2()),
    }
}
