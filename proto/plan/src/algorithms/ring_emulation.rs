//! Operations around a tree (paper 004, algorithms A4 to A7): baselines that need no routing tables.
//!
//! The walk along all edges, children in order, is a ring of arcs. Each PE has one of its positions on
//! the walk as its place, and the places in their order are a ring of PEs whose neighbours are at most
//! three edges apart (Sekanina). All flits go one way around, so that with a port for each neighbour the
//! flits of one source, or one flit of each source for all, never meet. The paper's other way, with both
//! directions at once, is not planned: flits of the two directions meet on arcs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flitcast_proto::{MessageId, PeId, Tree};

use super::exchange_plan::ends;
use super::lock_step::{ListTask, LockStep, NotPlanned};
use super::plan_limits::check_crossings;
use super::spec::{AlgorithmSpec, Offer, OfferKind};
use super::timetable::{HopList, Timetable};
use super::{exchange, farthest_first, gossip};
use crate::cost::Ports;

const NAME: &str = "ring-emulation";

/// Gossip around a tree: a baseline.
pub(super) const GOSSIP: AlgorithmSpec = AlgorithmSpec {
    name: NAME,
    offer: Offer {
        needs: "--ports multi and --lengths equal:1",
        ..Offer::other(
            OfferKind::Planned,
            "with --ports multi and a flit from each PE",
        )
    },
    plan: LockStep::List(|task| match task.ports {
        Ports::Single => Err(NotPlanned::unfit(
            "a PE sends to several neighbours at once: --ports multi",
        )),
        Ports::PerEdge if task.flits.iter().any(|flits| *flits != 1) => Err(NotPlanned::unfit(
            "the plan is for one flit from each PE: --lengths equal:1",
        )),
        Ports::PerEdge => Ok(gossip_of_flits(task.tree)),
    }),
    ..gossip::FLOOD
};

/// Scatter around a tree: a baseline.
pub(super) const SCATTER: AlgorithmSpec = AlgorithmSpec {
    name: NAME,
    offer: Offer::other(
        OfferKind::Planned,
        "One way around the tree, the farthest around it first (a baseline)",
    ),
    plan: LockStep::List(|task| carry(task, scatter(task.source, task.flits))),
    ..farthest_first::SPEC
};

/// Exchange around a tree: a baseline.
pub(super) const EXCHANGE: AlgorithmSpec = AlgorithmSpec {
    name: NAME,
    offer: Offer::other(OfferKind::Planned, ""),
    plan: LockStep::List(|task| carry(task, exchange(task.tree.len(), task.flits))),
    ..exchange::TREE
};

/// The ring around a tree.
struct Ring {
    /// The PEs on a walk along every edge there and back, without its return to the root.
    walk: Vec<PeId>,
    /// The position of each PE on the walk.
    places: Vec<usize>,
}

impl Ring {
    fn around(tree: &Tree) -> Ring {
        let walk = walk(tree);
        // The place of a PE is its first position on the walk at even depths, its last at odd depths.
        let mut places: Vec<Option<usize>> = vec![None; tree.len()];
        for (at, pe) in walk.iter().enumerate() {
            let place = &mut places[pe.index()];
            if place.is_none() || tree.depth(*pe) % 2 == 1 {
                *place = Some(at);
            }
        }
        Ring {
            walk,
            places: places.into_iter().flatten().collect(),
        }
    }

    /// Returns the number of arcs from the place of a PE to the place of another one.
    fn arcs_between(&self, [from, to]: [PeId; 2]) -> usize {
        let steps = self.walk.len();
        (self.places[to.index()] + steps - self.places[from.index()]) % steps
    }

    /// Returns the number of crossings of single flits of these messages.
    fn crossings(&self, messages: &[Sent]) -> u64 {
        let crossings = messages.iter().map(|(_, ends, flits)| {
            let arcs = self.arcs_between(*ends) as u64;
            flits.saturating_mul(arcs)
        });
        crossings.fold(0, u64::saturating_add)
    }
}

/// Returns the PEs on a walk along every edge there and back, without its return to the root.
fn walk(tree: &Tree) -> Vec<PeId> {
    let mut walk = Vec::with_capacity(2 * tree.len());
    let mut next_child = vec![0; tree.len()];
    let mut pe = tree.root();
    loop {
        walk.push(pe);
        let next = &mut next_child[pe.index()];
        pe = match tree.children(pe).get(*next) {
            Some(child) => {
                *next += 1;
                *child
            }
            None => match tree.parent(pe) {
                Some(parent) => parent,
                None => break,
            },
        };
    }
    if walk.len() > 1 {
        walk.pop();
    }
    walk
}

/// A message: its number, its ends and its length.
type Sent = (MessageId, [PeId; 2], u64);

/// Plans a gossip of one flit from each PE: each flit moves an arc in every step and meets no other. It
/// takes `2n - 3` steps on every tree if PEs have a port for each neighbour. A flit that passes a PE
/// twice is forwarded in the step after each arrival. This is algorithm A4 without its stops.
pub(super) fn gossip_of_flits(tree: &Tree) -> Timetable {
    let ring = Ring::around(tree);
    let mut pes: Vec<PeId> = tree.pes().collect();
    pes.sort_unstable_by_key(|pe| ring.places[pe.index()]);
    // Each flit ends at the PE before its source in the ring.
    let ends = pes.iter().cycle().skip(pes.len() - 1);
    let messages = pes.iter().zip(ends);
    let messages: Vec<Sent> = messages
        .map(|(pe, end)| ((*pe).into(), [*pe, *end], 1))
        .collect();
    Travel::of(&ring, &messages).run(Ports::PerEdge)
}

/// Returns the messages of a scatter of `flits[i]` flits for P_i, the farthest around the ring first:
/// algorithm A5, and with a port for each neighbour A6, one way. With many ports no flit waits at a relay.
/// With one port, flits queue, since the walk passes a PE several times.
fn scatter(from: PeId, flits: &[u64]) -> Vec<Sent> {
    let messages = (0..).map(PeId).zip(flits);
    messages
        .map(|(to, flits)| (to.into(), [from, to], *flits))
        .collect()
}

/// Returns the messages of an exchange among `pes` PEs, row by row: algorithm A7, in which all PEs scatter
/// at once. For equal lengths all arcs carry the same number of flits, twice that of the fullest arc where
/// flits take the shortest way over a binary tree.
fn exchange(pes: usize, flits: &[u64]) -> Vec<Sent> {
    let messages = (0..).map(MessageId).zip(flits);
    messages
        .map(|(id, flits)| (id, ends(id, pes), *flits))
        .collect()
}

/// Plans the way of messages around the tree of a task.
fn carry(task: &ListTask<'_>, messages: Vec<Sent>) -> Result<Timetable, NotPlanned> {
    let ring = Ring::around(task.tree);
    check_crossings(ring.crossings(&messages))?;
    Ok(Travel::of(&ring, &messages).run(task.ports))
}

/// A flit on its way around the tree; the greatest is sent first, so the farthest one to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flit {
    arcs_left: usize,
    message: Reverse<MessageId>,
    offset: Reverse<u64>,
}

/// The positions of all flits between two steps.
struct Travel<'a> {
    walk: &'a [PeId],
    /// The flits at each position on the walk that have farther to go.
    queues: Vec<BinaryHeap<Flit>>,
}

impl<'a> Travel<'a> {
    /// Creates the state before the first step; a message of a PE for itself stays there.
    fn of(ring: &'a Ring, messages: &[Sent]) -> Travel<'a> {
        let mut queues = vec![BinaryHeap::new(); ring.walk.len()];
        for (message, ends, flits) in messages.iter().filter(|(_, [from, to], _)| from != to) {
            let queue = &mut queues[ring.places[ends[0].index()]];
            queue.extend((0..*flits).map(|offset| Flit {
                arcs_left: ring.arcs_between(*ends),
                message: Reverse(*message),
                offset: Reverse(offset),
            }));
        }
        Travel {
            walk: &ring.walk,
            queues,
        }
    }

    /// Moves flits until all have arrived. With single ports, those that have the farthest to go take
    /// the ports first.
    fn run(mut self, ports: Ports) -> Timetable {
        let arcs = self.walk.len();
        let mut hops = HopList::over(arcs);
        // The last step in which each PE sent, and received.
        let mut busy = [vec![0; arcs + 1], vec![0; arcs + 1]];
        for step in 1.. {
            let waiting = self.queues.iter().zip(0..);
            let waiting = waiting.filter_map(|(queue, place)| Some((*queue.peek()?, place)));
            let mut waiting: Vec<(Flit, usize)> = waiting.collect();
            if waiting.is_empty() {
                break;
            }
            if ports == Ports::Single {
                waiting.sort_unstable_by_key(|flit| Reverse(*flit));
                waiting.retain(|(_, place)| {
                    let ends = self.ends(*place).map(PeId::index);
                    let mut of_ends = busy.iter_mut().zip(ends);
                    let are_free = of_ends.all(|(busy, pe)| busy[pe] < step);
                    if are_free {
                        let of_ends = busy.iter_mut().zip(ends);
                        of_ends.for_each(|(busy, pe)| busy[pe] = step);
                    }
                    are_free
                });
            }
            for (flit, place) in &waiting {
                self.queues[*place].pop();
                let (Reverse(message), Reverse(offset)) = (flit.message, flit.offset);
                hops.put(*place, self.ends(*place), step, (message, offset));
            }
            for (mut flit, place) in waiting {
                flit.arcs_left -= 1;
                if flit.arcs_left > 0 {
                    self.queues[(place + 1) % arcs].push(flit);
                }
            }
        }
        hops.finish()
    }

    /// Returns the ends of the arc from a position on the walk.
    fn ends(&self, place: usize) -> [PeId; 2] {
        [place, place + 1].map(|place| self.walk[place % self.walk.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::exchange_plan;
    use crate::tests::{of_pairs, tree};

    fn scattered(tree: &Tree, from: PeId, ports: Ports) -> u64 {
        let messages = scatter(from, &vec![1; tree.len()]);
        Travel::of(&Ring::around(tree), &messages)
            .run(ports)
            .time_steps
    }

    /// One flit for each PE of complete binary trees from their last leaf, with a port for each
    /// neighbour and with one port, as an independent reference works it out.
    #[test]
    fn a_scatter_from_a_leaf_takes_the_steps_of_the_table() {
        for (pes, expected) in [
            (3, [2, 2]),
            (7, [10, 11]),
            (15, [26, 37]),
            (31, [58, 87]),
            (63, [122, 198]),
        ] {
            let tree = tree(&format!("kary:2:{pes}"));
            let last = PeId(pes - 1);
            let times = [Ports::PerEdge, Ports::Single].map(|it| scattered(&tree, last, it));
            assert_eq!(times, expected, "{pes} PEs");
        }
        let tree = tree("kary:2:31");
        let worst = tree.pes().map(|from| scattered(&tree, from, Ports::Single));
        assert_eq!(worst.max(), Some(95));
    }

    /// With a port for each neighbour, the first flit takes all of the walk but its last part, and all
    /// others are there by then.
    #[test]
    fn a_scatter_one_way_takes_the_walk_to_the_previous_pe() {
        for seed in 0..40 {
            let pes = 2 + seed % 17;
            let tree = tree(&format!("random:{pes}:{seed}"));
            let ring = Ring::around(&tree);
            for from in tree.pes() {
                let farthest = tree.pes().map(|pe| ring.arcs_between([from, pe])).max();
                let steps = scattered(&tree, from, Ports::PerEdge);
                assert_eq!(Some(steps as usize), farthest, "{tree:?} {from}");
            }
        }
    }

    /// Each arc carries n (n - 1) / 2 flits, which is twice the load of the shortest ways.
    #[test]
    fn an_exchange_loads_each_arc_with_every_other_flit() {
        for (pes, expected) in [(3, [4, 6]), (7, [23, 64]), (15, [107, 341])] {
            let tree = tree(&format!("kary:2:{pes}"));
            let rows = of_pairs(pes, || 1);
            let (ring, messages) = (Ring::around(&tree), exchange(rows.len(), &rows.concat()));
            let plans = [Ports::PerEdge, Ports::Single]
                .map(|ports| Travel::of(&ring, &messages).run(ports));
            assert_eq!(plans.each_ref().map(|plan| plan.time_steps), expected);
            for plan in plans {
                let mut loads = std::collections::BTreeMap::new();
                for hop in &plan.hops {
                    *loads.entry((hop.from, hop.to)).or_insert(0) += hop.flits;
                }
                assert!(loads.values().all(|load| *load == pes * (pes - 1) / 2));
                let all: u64 = plan.hops.iter().map(|hop| hop.flits).sum();
                assert_eq!(all, ring.crossings(&messages));
            }
            let least = exchange_plan::least_steps_of_all_ports(&tree, &rows);
            assert_eq!(least, (pes * pes - 1) / 4);
        }
    }
}
