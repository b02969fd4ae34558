//! A scatter whose packets mix messages (`--packets mixed`): planned in the model of paper 003 with the
//! costs of the links, and run as a static schedule.

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::scatter_in_packets::set_packets;
use flitcast_plan::packets::mixed::plan_mixed;
use flitcast_plan::packets::model::Run;
use flitcast_proto::round::ProtocolError;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};

use crate::job::decisions::PacketChoice;
use crate::job::flit_size::link_cost;
use crate::job::planned_round::{PlannedRound, Planner, plan_and_predict};
use crate::options::packets::Packets;
use crate::tuning::{MIXED_PARTS, USUAL_FLIT_BYTES};

/// Plans and predicts a scatter in packets that mix messages, with the quickest of some flit sizes.
pub fn plan_mixed_packets(planner: &Planner<'_>) -> Result<PlannedRound, ProtocolError> {
    let longest = planner.bytes.iter().copied().max().unwrap_or(0);
    let sizes = MIXED_PARTS.map(|parts| {
        let [least, most] = [MIN_FLIT_BYTES, MAX_FLIT_BYTES].map(u64::from);
        longest.div_ceil(parts).clamp(least, most) as u32
    });
    let mut all = Vec::new();
    for (place, flit_bytes) in sizes.into_iter().enumerate() {
        if !sizes[..place].contains(&flit_bytes) {
            all.push(in_flits_of(planner, flit_bytes)?);
        }
    }
    match all.into_iter().min_by_key(PlannedRound::ns) {
        Some(best) => Ok(best),
        None => planner.plan_and_predict(USUAL_FLIT_BYTES),
    }
}

/// Plans with flits of one size. Messages that are too long to plan are sent one after the other.
fn in_flits_of(planner: &Planner<'_>, flit_bytes: u32) -> Result<PlannedRound, ProtocolError> {
    let Planner {
        tree, bytes, model, ..
    } = *planner;
    let mut planned = planner.plan_and_predict(flit_bytes)?;
    let flits = bytes.iter().map(|bytes| bytes.div_ceil(flit_bytes.into()));
    let flits: Vec<u64> = flits.collect();
    let cost = link_cost(tree, Algorithm::FARTHEST_FIRST, model, flit_bytes.into());
    let Ok(plan) = plan_mixed(tree, &flits, cost, 0) else {
        return Ok(planned);
    };
    let mut schedules = planned.schedules.clone();
    set_packets(tree, &mut schedules, &plan.sequence);
    planned = planner.predict_schedules(schedules, &planned)?;
    let (_, usual) = plan_and_predict(
        tree,
        Algorithm::FARTHEST_FIRST,
        planned.decisions.pacing,
        bytes,
        USUAL_FLIT_BYTES,
        model,
        planner.given_up,
    )?;
    let largest = plan.sequence.iter().map(Run::size).max().unwrap_or(0);
    planned.decisions.packets = Some(PacketChoice {
        asked: Packets::Mixed,
        count: plan.sequence.iter().map(|run| run.packets).sum(),
        largest_bytes: largest
            .saturating_mul(flit_bytes.into())
            .min(u32::MAX.into()) as u32,
        predicted_ns: planned.ns(),
        usual_ns: usual.round_ns() + usual.commit_ns(),
    });
    Ok(planned)
}
