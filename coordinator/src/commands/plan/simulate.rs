//! `--simulate`: the state machines of a real round, one for each PE, run the plan in lock step
//! under all rules of the model, and their result is compared with the plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{anyhow, bail, ensure};
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::OnNetwork;
use flitcast_plan::algorithms::gather_order::set_order;
use flitcast_plan::algorithms::plan::Plan;
use flitcast_plan::gossip::{Gossip, GossipAlgorithm};
use flitcast_plan::sim::{self, Simulated, SimulationError};
use flitcast_plan::timing::Timing;
use flitcast_plan::trace::Item;
use flitcast_proto::items::ScheduledHop;
use flitcast_proto::ops::Direction;
use flitcast_proto::{MessageId, PeId, Tree};

use super::static_plan::{Played, StaticPlan};
use flitcast_cluster::text::phrases::counted;

/// Limit of crossings that a simulation keeps, at some 100 bytes each and twice.
const MAX_SIMULATED: u64 = 20_000_000;
/// The error of a difference between the state machines and the plan, which is a bug in Flitcast.
const DIFFERS: &str =
    "--simulate: the state machines did not do what was planned; please report this";

/// A flit of a message that goes from one PE to another.
type Hop = (MessageId, u64, PeId, PeId);

/// Runs the state machines of a plan that is a list of crossings, and describes in a line of its
/// summary how far they agree.
///
/// # Errors
///
/// Returns an error if there is nothing to run, if something crosses that was not planned, or if a
/// planned crossing is missing or late.
pub fn against_crossings(plan: &StaticPlan) -> anyhow::Result<String> {
    let (tree, operation, flits) = match &plan.played {
        Played::ByAll {
            tree,
            operation,
            flits,
        } => (tree, *operation, flits),
        Played::ByNobody(why) => bail!("--simulate: {why}"),
    };
    let items = plan.crossings.hops().map(|scheduled| scheduled.flits);
    let items = check_items(items.fold(0, u64::saturating_add))?;
    let run = sim::run(tree, operation, flits).map_err(broken)?;
    // Only a broadcast is in parts.
    let longest = flits.iter().copied().max().unwrap_or(0);
    let mut planned: Vec<(Hop, u64)> = plan.crossings.hops().flat_map(flits_of).collect();
    let mut played = played(&run, tree, operation, |_| longest);
    planned.sort_unstable();
    played.sort_unstable();
    ensure!(planned.len() == played.len(), DIFFERS);
    let mut earlier = 0;
    for ((planned, due), (played, step)) in planned.iter().zip(&played) {
        ensure!(planned == played && step <= due, DIFFERS);
        earlier += u64::from(step < due);
    }
    Ok(match earlier {
        0 => AS_PLANNED.to_owned(),
        _ => format!(
            "  simulated    step by step, no item later than planned, {earlier} of {items} earlier\n"
        ),
    })
}

/// The line of a summary if nothing differs.
pub const AS_PLANNED: &str = "  simulated    step by step, every item as planned\n";

fn check_items(items: u64) -> anyhow::Result<u64> {
    ensure!(
        items <= MAX_SIMULATED,
        "--simulate: {items} crossings of edges are too many; the limit is {MAX_SIMULATED}"
    );
    Ok(items)
}

/// Returns the error of a broken rule of the model, which is a bug in Flitcast.
fn broken(rule: SimulationError) -> anyhow::Error {
    anyhow!("--simulate: {rule}")
}

/// Returns every flit of a crossing, and its step.
fn flits_of(scheduled: ScheduledHop) -> impl Iterator<Item = (Hop, u64)> {
    let flit = move |flit| {
        let ScheduledHop { from, to, .. } = scheduled;
        let hop = (scheduled.message, scheduled.offset + flit, from, to);
        (hop, scheduled.first_step + flit * scheduled.every)
    };
    (0..scheduled.flits).map(flit)
}

/// Returns every flit that crossed in a simulation of messages with these lengths, and its step.
fn played(
    run: &Simulated,
    tree: &Tree,
    operation: Algorithm,
    lengths: impl Fn(MessageId) -> u64,
) -> Vec<(Hop, u64)> {
    let flits = run.crossings.iter().filter_map(|crossing| {
        let Item::Flit { message, index } = crossing.item else {
            return None;
        };
        let (whole, part) = operation.collective().whole(tree, message.id);
        let flit = operation.flit_of_part(tree, lengths(whole), part, index - 1);
        Some(((whole, flit, crossing.from, crossing.to), crossing.step))
    });
    flits.collect()
}

/// Runs the state machines of a gossip on a network. Packets of several steps use one port there,
/// so only the sender and the receiver of each flit are compared.
///
/// # Errors
///
/// Returns an error if something crosses that was not planned, or if a planned crossing is missing.
pub fn against_packets(
    gossip: &Gossip,
    algorithm: &GossipAlgorithm,
    tree: &Arc<Tree>,
) -> anyhow::Result<String> {
    let lengths = gossip.blocks.lengths();
    let others = lengths.len().saturating_sub(1) as u64;
    check_items(lengths.iter().sum::<u64>().saturating_mul(others))?;
    let Ok(one) = OnNetwork::new(gossip.arena.clone(), algorithm.clone()) else {
        bail!(DIFFERS);
    };
    let operation = Algorithm::gossip_on(one);
    let by_delivery = operation.collective().by_delivery(tree, lengths);
    let run = sim::run(tree, operation, &by_delivery).map_err(broken)?;
    let mut planned: Vec<Hop> = Vec::new();
    for packet in gossip.steps().flat_map(|step| step.packets) {
        for piece in gossip.blocks.pieces(packet.class, &packet.flits) {
            let flits = piece.offset..piece.offset + piece.flits;
            planned.extend(flits.map(|flit| (piece.message, flit, packet.from, packet.to)));
        }
    }
    let length = |message: MessageId| lengths[message.index()];
    let played = played(&run, tree, operation, length).into_iter();
    let mut played: Vec<Hop> = played.map(|(hop, _)| hop).collect();
    planned.sort_unstable();
    played.sort_unstable();
    ensure!(planned == played, DIFFERS);
    Ok(format!(
        "  simulated    who gets which flit from whom is as planned; by one port it takes {}\n",
        counted(run.time_steps(), "step", "steps"),
    ))
}

/// Runs the state machines of a scatter from P0 or of a gather, of these lengths and in this order, and compares,
/// control items included.
///
/// # Errors
///
/// Returns an error if anything differs.
pub fn against_plan(plan: &Plan, flits: &[u64], order: &[PeId]) -> anyhow::Result<String> {
    check_items(plan.crossing_count())?;
    let operation = plan.operation;
    let mut schedules = operation.schedules(&plan.tree, flits, &Timing::LOCK_STEP);
    match operation.collective().direction() {
        Direction::Up if !order.is_empty() => {
            let set = set_order(&plan.tree, &mut schedules, order);
            set.map_err(|fault| anyhow!("--order: {fault}"))?;
        }
        _ => {
            let place: BTreeMap<PeId, usize> = order.iter().copied().zip(0..).collect();
            let sends = &mut schedules[0].sends;
            sends.sort_by_key(|message| place.get(&message.pe()));
        }
    }
    let run = sim::run_schedules(&plan.tree, schedules).map_err(broken)?;
    let mut crossings = run.crossings;
    crossings.sort_by_key(|crossing| (crossing.step, crossing.from, crossing.to));
    ensure!(crossings == plan.crossings(), DIFFERS);
    Ok(AS_PLANNED.to_owned())
}

#[cfg(test)]
mod tests {
    use flitcast_plan::algorithms::broadcast_plan::urgent;
    use flitcast_proto::tree::TreeSpec;

    use super::super::static_plan::Crossings;
    use super::*;

    /// Simulates a broadcast of four flits over seven PEs with a changed plan.
    fn changed(change: impl FnOnce(&mut Vec<ScheduledHop>)) -> anyhow::Result<String> {
        let spec: TreeSpec = "kary:2:7".parse().expect("it is a tree");
        let tree = spec.build().expect("it is a tree");
        let mut hops = urgent(&tree, 4).hops;
        change(&mut hops);
        against_crossings(&StaticPlan {
            crossings: Crossings::Listed(hops),
            played: Played::ByAll {
                tree: Arc::new(tree),
                operation: Algorithm::BROADCAST_URGENT,
                flits: vec![0, 4, 4, 4, 4, 4, 4],
            },
            ..StaticPlan::default()
        })
    }

    #[test]
    fn deviations_from_the_plan_are_detected() {
        assert_eq!(changed(|_| ()).ok().as_deref(), Some(AS_PLANNED));
        let differs = |change: fn(&mut Vec<ScheduledHop>)| {
            let fault = changed(change).expect_err("it differs");
            assert_eq!(fault.to_string(), DIFFERS);
        };
        differs(|hops| hops[0].to = PeId(2));
        differs(|hops| hops[0].offset += 1);
        differs(|hops| hops.truncate(3));
        differs(|hops| hops.push(hops[0]));
        // The last flit of all crosses later than this.
        differs(|hops| {
            let last = hops.iter_mut().max_by_key(|scheduled| scheduled.first_step);
            last.expect("there are some").first_step -= 1;
        });
        let comparison = changed(|hops| hops[0].first_step += 1);
        let comparison = comparison.expect("it is earlier than planned, which is no fault");
        assert!(
            comparison.contains("no item later than planned"),
            "{comparison}"
        );
    }

    #[test]
    fn plans_that_nothing_plays_are_refused_with_a_reason() {
        let fault = against_crossings(&StaticPlan::default()).expect_err("nothing plays it");
        let why = "--simulate: nothing plays this plan in lock step: leave it out";
        assert_eq!(fault.to_string(), why);
    }
}
