//! The choice of a static schedule by its steps.

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_plan::algorithms::{ListTask, NotPlanned, OfferKind};

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
