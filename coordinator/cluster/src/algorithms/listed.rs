//! Plans of static schedules: the choice of one by its steps, and those of broadcasts in a complete network
//! by the algorithms that build their own trees.

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_plan::algorithms::{ListTask, NotPlanned, OfferKind};
use flitcast_plan::cost::Ports;
use flitcast_proto::{PeId, Tree};

use crate::options::broadcast::BroadcastAlgorithm;
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
