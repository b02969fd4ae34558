//! Plans of static schedules: the choice of one by its steps, those of broadcasts in a complete network by the
//! algorithms that build their own trees, and the algorithms of a gossip over the edges of a tree, by name.

use std::fmt;
use std::str::FromStr;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_plan::algorithms::{CycleGossip, ListTask, NotPlanned, OfferKind};
use flitcast_plan::cost::Ports;
use flitcast_proto::ops::Collective;
use flitcast_proto::{PeId, Tree};

use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::values::{AUTO, is_for_trees};
use crate::site::topology::tree_of_shape;

/// Returns the algorithm with the fewest steps, the first of equal ones, and its plan. Baselines are
/// left out, and those behind a plan that meets its bound.
///
/// # Errors
///
/// Returns the error of the first algorithm if none has a plan.
pub fn quickest(
    algorithms: impl Iterator<Item = Algorithm>,
    task: &ListTask<'_>,
) -> Result<(Algorithm, Timetable), NotPlanned> {
    let mut best: Result<(Algorithm, Timetable), NotPlanned> =
        Err(NotPlanned::Unfit("no algorithm supports it".to_owned()));
    for (place, one) in algorithms
        .filter(|one| one.offer().kind == OfferKind::Choice)
        .enumerate()
    {
        let least = best.as_ref().map_or(u64::MAX, |(_, plan)| plan.time_steps);
        match one.list(task) {
            Ok(plan) if plan.time_steps < least => best = Ok((one, plan)),
            Ok(_) => {}
            Err(why) if place == 0 => best = Err(why),
            Err(_) => {}
        }
        let steps = best.as_ref().map(|(_, plan)| plan.time_steps);
        if steps.is_ok_and(|steps| steps <= one.least_steps_of_list(task)) {
            break;
        }
    }
    best
}

/// Returns the plan of a message from one PE to all others, with one port for each PE, and the tree that
/// is rooted there: the algorithm's own, or `tree` if it has none or several.
///
/// # Errors
///
/// Returns an error if the algorithm does not support the PEs, or if the plan would be too large.
pub fn among_all(
    algorithm: BroadcastAlgorithm,
    tree: &Tree,
    from: PeId,
    flits: u64,
) -> Result<(Tree, Timetable), NotPlanned> {
    let own = algorithm
        .tree(tree.len())
        .map(|shape| tree_of_shape(&shape, from));
    let own = own.transpose().map_err(NotPlanned::Unfit)?;
    let tree = own.unwrap_or_else(|| tree.rerooted(from));
    let flits = [flits];
    let task = ListTask::new(&tree, from, &flits, Ports::Single);
    let plan = algorithm.operation().list(&task)?;
    Ok((tree, plan))
}

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
