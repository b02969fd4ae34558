//! Gossip by PEs that serve their neighbours in cycles (paper 004, section 4): baselines with one port,
//! on trees whose PEs have at most two children.
//!
//! In each cycle a PE sends to its parent, to its left child and to its right child, in one of the six
//! orders that the paper calls scheduling disciplines. A cycle has four steps, since the left and the
//! right child of a PE cannot both send to it in one. In a step a PE sends the next flit that its
//! neighbour lacks, or, in the paper's algorithm A3, one message that combines all its flits.

use std::fmt;

use flitcast_proto::{MessageId, PeId, Tree};

use super::arcs::Arcs;
use super::lock_step::{ListTask, NotPlanned};
use super::plan_limits::check_crossings;
use super::timetable::{HopList, Timetable};
use crate::cost::Ports;

/// A gossip in cycles, as users name it: `discipline:ORDER` or `combining[:ORDER]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleGossip {
    order: Discipline,
    combines: bool,
}

impl CycleGossip {
    /// The names, as errors list them.
    pub const FORMS: &str =
        "discipline:ORDER and combining[:ORDER], ORDER one of prl, plr, lrp, rlp, rpl, lpr";

    /// The names, as help texts explain them.
    pub const HELP: &str = "if PEs have at most two children discipline:ORDER or combining[:ORDER], ORDER \
                            prl, plr, lrp, rlp, rpl or lpr: parent, left child, right child";

    /// The reason why no tree with a PE of more children is compared.
    pub const LEFT_OUT: &str = "discipline and combining are left out: they are planned for PEs with at most \
                                two children";

    /// Returns the gossips of a comparison.
    pub fn compared() -> impl Iterator<Item = CycleGossip> {
        let in_turn = Discipline::ALL.into_iter().map(|order| (order, false));
        let all = in_turn.chain([(Discipline::OF_A3, true)]);
        all.map(|(order, combines)| CycleGossip { order, combines })
    }

    /// Returns the gossip of this name.
    pub fn named(name: &str) -> Option<CycleGossip> {
        let (combines, order) = match name.split_once(':') {
            None if name == "combining" => (true, Some(Discipline::OF_A3)),
            Some(("combining", order)) => (true, Discipline::named(order)),
            Some(("discipline", order)) => (false, Discipline::named(order)),
            _ => return None,
        };
        order.map(|order| CycleGossip { order, combines })
    }

    /// Returns whether all PEs have at most two children.
    pub fn fits(tree: &Tree) -> bool {
        tree.pes().all(|pe| tree.children(pe).len() <= 2)
    }

    /// Plans the gossip.
    pub fn list(self, task: &ListTask<'_>) -> Result<Timetable, NotPlanned> {
        let tree = task.tree;
        if task.ports == Ports::PerEdge {
            return Err(NotPlanned::unfit(
                "a PE sends to one neighbour at a time: --ports single",
            ));
        }
        if !CycleGossip::fits(tree) {
            return Err(NotPlanned::unfit(
                "it is for trees whose PEs have at most two children",
            ));
        }
        let times = match self.combines {
            // In each cycle every message may cross every arc.
            true => 4 * u64::from(tree.height()),
            false => 1,
        };
        let total: u64 = task.flits.iter().sum();
        let crossings = total.saturating_mul(tree.len() as u64 - 1);
        check_crossings(crossings.saturating_mul(times))?;
        Ok(Cycles::of(tree, task.flits).run(self.order, self.combines))
    }
}

impl fmt::Display for CycleGossip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.combines {
            true => "combining",
            false => "discipline",
        };
        write!(f, "{kind}:{}", self.order.0)
    }
}

/// The order in which a PE sends to its parent (p), left child (l) and right child (r).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Discipline(&'static str);

impl Discipline {
    /// All orders.
    const ALL: [Discipline; 6] = [
        Discipline("prl"),
        Discipline("plr"),
        Discipline("lrp"),
        Discipline("rlp"),
        Discipline("rpl"),
        Discipline("lpr"),
    ];

    /// The order of algorithm A3.
    const OF_A3: Discipline = Discipline("lrp");

    fn named(name: &str) -> Option<Discipline> {
        let mut all = Discipline::ALL.into_iter();
        all.find(|discipline| discipline.0 == name)
    }

    /// Returns the steps of a cycle.
    fn steps(self) -> impl Iterator<Item = Step> {
        let steps = self.0.chars().flat_map(|neighbour| match neighbour {
            'l' => &[Step::Down(0)][..],
            'r' => &[Step::Down(1)],
            _ => &[Step::Up(0), Step::Up(1)],
        });
        steps.copied()
    }
}

/// The arcs that are used in one step of a cycle.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// From each left (0) or right (1) child to its parent.
    Up(usize),
    /// From each PE to its left (0) or right (1) child.
    Down(usize),
}

/// A flit that a PE has.
#[derive(Clone, Copy, Debug)]
struct Known {
    message: MessageId,
    offset: u64,
    /// The number of the flit among those of all messages.
    number: usize,
    /// The neighbour that sent it, or the PE itself.
    from: PeId,
}

/// The positions of all flits between two steps.
struct Cycles<'a> {
    tree: &'a Tree,
    arcs: Arcs,
    /// For each PE, its flits in the order of their arrival.
    known: Vec<Vec<Known>>,
    /// For each PE and flit, whether the PE has it.
    has: Vec<Vec<bool>>,
    /// For each arc, the number of its sender's flits that have crossed it or need not.
    sent: Vec<usize>,
    /// The number of flits that have yet to arrive somewhere.
    lacking: usize,
}

impl<'a> Cycles<'a> {
    /// Creates the state before the first step.
    fn of(tree: &'a Tree, flits: &[u64]) -> Cycles<'a> {
        let total = flits.iter().sum::<u64>() as usize;
        let mut known = vec![Vec::new(); tree.len()];
        let mut has = vec![vec![false; total]; tree.len()];
        let mut number = 0;
        for (pe, length) in (0..).map(PeId).zip(flits) {
            for offset in 0..*length {
                has[pe.index()][number] = true;
                known[pe.index()].push(Known {
                    message: pe.into(),
                    offset,
                    number,
                    from: pe,
                });
                number += 1;
            }
        }
        let arcs = Arcs::of(tree);
        Cycles {
            tree,
            known,
            has,
            sent: vec![0; arcs.len()],
            lacking: total * (tree.len() - 1),
            arcs,
        }
    }

    /// Plans a gossip in which a PE sends a single flit in each step or, if it `combines`, all its flits,
    /// also those that its neighbour has (algorithm A3). A step takes as long as its largest message.
    fn run(mut self, discipline: Discipline, combines: bool) -> Timetable {
        let mut hops = HopList::over(self.arcs.len());
        let mut begin = 1;
        while self.lacking > 0 {
            for step in discipline.steps() {
                let sent = self.send(step, combines);
                let largest = sent.iter().map(|(_, flits)| flits.len()).max();
                for (arc, flits) in &sent {
                    for (step, flit) in (begin..).zip(flits) {
                        let ends = self.arcs.ends[*arc];
                        hops.put(*arc, ends, step, (flit.message, flit.offset));
                    }
                }
                begin += if combines {
                    largest.unwrap_or(0) as u64
                } else {
                    1
                };
                for (arc, flits) in sent {
                    self.receive(arc, flits);
                }
                if self.lacking == 0 {
                    break;
                }
            }
        }
        hops.finish()
    }

    /// Returns the arcs of a step with the flits that cross them.
    fn send(&mut self, step: Step, combines: bool) -> Vec<(usize, Vec<Known>)> {
        let place = match step {
            Step::Up(place) | Step::Down(place) => place,
        };
        let mut all = Vec::new();
        for pe in self.tree.pes() {
            let Some(&child) = self.tree.children(pe).get(place) else {
                continue;
            };
            let [from, to] = match step {
                Step::Up(_) => [child, pe],
                Step::Down(_) => [pe, child],
            };
            let arc = self.arcs.between(from, to);
            let known = &self.known[from.index()];
            if combines {
                all.push((arc, known.clone()));
                continue;
            }
            let sent = &mut self.sent[arc];
            while known.get(*sent).is_some_and(|flit| flit.from == to) {
                *sent += 1;
            }
            if let Some(flit) = known.get(*sent) {
                *sent += 1;
                all.push((arc, vec![*flit]));
            }
        }
        all.retain(|(_, flits)| !flits.is_empty());
        all
    }

    fn receive(&mut self, arc: usize, flits: Vec<Known>) {
        let [from, to] = self.arcs.ends[arc];
        for flit in flits {
            let has = &mut self.has[to.index()][flit.number];
            if !std::mem::replace(has, true) {
                self.known[to.index()].push(Known { from, ..flit });
                self.lacking -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{check_single_ports, tree};

    /// All PEs get all flits, over one send port and one receive port each.
    #[test]
    fn every_flit_gets_everywhere_in_single_ports() {
        for seed in 0..12 {
            let spec = ["path:6", "kary:2:9", "parents:0,0,1,2,2,3", "path:1"][seed % 4];
            let tree = tree(spec);
            let flits: Vec<u64> = (0..tree.len()).map(|pe| ((pe + seed) % 4) as u64).collect();
            let expected = flits.iter().sum::<u64>() * (tree.len() as u64 - 1);
            for (discipline, combines) in
                Discipline::ALL.map(|it| [(it, false), (it, true)]).concat()
            {
                let plan = Cycles::of(&tree, &flits).run(discipline, combines);
                let crossings = check_single_ports(&plan.hops, MessageId::pe);
                let arrived = crossings
                    .iter()
                    .filter(|(_, _, to, flit)| flit.0.pe() != *to);
                let arrived: std::collections::BTreeSet<_> =
                    arrived.map(|it| (it.2, it.3)).collect();
                assert_eq!(arrived.len() as u64, expected, "{spec} {discipline:?}");
            }
        }
        assert!(!CycleGossip::fits(&tree("star:5")));
    }
}
