//! The algorithms of a planned gossip over the edges of a tree, by name.

use std::fmt;
use std::str::FromStr;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_plan::algorithms::{CycleGossip, ListTask, NotPlanned, OfferKind};
use flitcast_proto::ops::Collective;

use crate::options::values::{AUTO, is_for_trees};

/// How to gossip on a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeGossip {
    /// An algorithm without parameters.
    Listed(Algorithm),
    /// A baseline in which each PE sends to its neighbours in turn.
    InCycles(CycleGossip),
}

impl FromStr for TreeGossip {
    type Err = String;

    fn from_str(text: &str) -> Result<TreeGossip, String> {
        let is_named = |one: &Algorithm| match text {
            AUTO => one.offer().kind == OfferKind::Choice,
            _ => one.name() == text,
        };
        let named = TreeGossip::listed().find(is_named).map(TreeGossip::Listed);
        let in_cycles = || CycleGossip::named(text).map(TreeGossip::InCycles);
        named.or_else(in_cycles).ok_or_else(|| {
            let listed = TreeGossip::listed().map(|one| match one.offer().kind {
                OfferKind::Planned => format!(" and, {}, {}", one.offer().help, one.name()),
                _ => format!(", {}", one.name()),
            });
            let listed: String = listed.collect();
            let forms = CycleGossip::FORMS;
            format!("on a tree there are {AUTO}{listed}; with single ports {forms}")
        })
    }
}

impl fmt::Display for TreeGossip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeGossip::Listed(one) => f.write_str(one.name()),
            TreeGossip::InCycles(one) => one.fmt(f),
        }
    }
}

impl TreeGossip {
    /// Returns the algorithms without parameters.
    pub fn listed() -> impl Iterator<Item = Algorithm> {
        Algorithm::listed(Collective::Gossip).filter(|one| is_for_trees(*one))
    }

    /// Returns the algorithms of a comparison.
    pub fn compared() -> impl Iterator<Item = TreeGossip> {
        let in_cycles = CycleGossip::compared().map(TreeGossip::InCycles);
        TreeGossip::listed()
            .map(TreeGossip::Listed)
            .chain(in_cycles)
    }

    /// Returns the plan.
    ///
    /// # Errors
    ///
    /// Returns an error if the algorithm does not support the tree, the lengths or the ports, or if
    /// there are too many crossings to plan.
    pub fn plan(self, task: &ListTask<'_>) -> Result<Timetable, NotPlanned> {
        match self {
            TreeGossip::Listed(one) => one.list(task),
            TreeGossip::InCycles(one) => one.list(task),
        }
    }

    /// Returns the algorithm itself, or one with the same messages and the same bound.
    pub fn alike(self) -> Algorithm {
        match self {
            TreeGossip::Listed(one) => one,
            TreeGossip::InCycles(_) => Algorithm::GOSSIP_FLOOD,
        }
    }
}
