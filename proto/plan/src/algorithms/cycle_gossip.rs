//! The names of gossips in cycles, and their plans with checks: baselines of `flitcast plan gossip`.

use std::fmt;

use flitcast_proto::Tree;

use super::gossip_in_cycles::{Discipline, fits, in_cycles};
use super::lock_step::{ListTask, NotPlanned};
use super::plan_limits::check_crossings;
use super::timetable::Timetable;
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
        fits(tree)
    }

    /// Plans the gossip.
    pub fn list(self, task: &ListTask<'_>) -> Result<Timetable, NotPlanned> {
        let tree = task.tree;
        if task.ports == Ports::PerEdge {
            return Err(NotPlanned::unfit(
                "a PE sends to one neighbour at a time: --ports single",
            ));
        }
        if !fits(tree) {
            return Err(NotPlanned::unfit(
                "it is for trees whose PEs have at most two children",
            ));
        }
        let depth = tree.pes().map(|pe| u64::from(tree.depth(pe))).max();
        let times = match self.combines {
            // In each cycle every message may cross every arc.
            true => 4 * depth.unwrap_or(0),
            false => 1,
        };
        let total: u64 = task.flits.iter().sum();
        let crossings = total.saturating_mul(tree.len() as u64 - 1);
        check_crossings(crossings.saturating_mul(times))?;
        Ok(in_cycles(tree, task.flits, self.order, self.combines).plan)
    }
}

impl fmt::Display for CycleGossip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.combines {
            true => "combining",
            false => "discipline",
        };
        write!(f, "{kind}:{}", self.order.name())
    }
}
