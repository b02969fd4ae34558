//! `flitcast compare gossip` over the edges of a tree.

use anyhow::anyhow;
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::{CycleGossip, ListTask, NotPlanned};

use super::args::CompareGossipArgs;
use super::crossings::{Comparison, Row};
use super::trees::{Named, over, spanning};
use flitcast_cluster::algorithms::listed::TreeGossip;
use flitcast_cluster::algorithms::plan_limits::{PlanTooLarge, check_flits, check_pes};
use flitcast_cluster::options::flits::{deal_flits_to_all, lengths_of_all_in_flits};
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::text::faults::Faults;

pub fn compared(args: &CompareGossipArgs) -> Result<String, Faults> {
    let mut faults = Faults::default();
    let trees = faults.take(spanning(&args.tree));
    let lengths = match &args.lengths {
        Some(lengths) => faults.take(lengths_of_all_in_flits(lengths)),
        None => faults.take(Err(anyhow!(
            "--lengths: missing; give the length of each PE's message, for example equal:1"
        ))),
    };
    let prices = faults.take(args.prices.check_absent());
    let (Some(trees), Some(lengths), Some(())) = (trees, lengths, prices) else {
        return Err(faults);
    };
    let flits = deal_flits_to_all(&lengths, trees[0].tree.len())?;
    Ok(comparison(args, &trees, &flits)?.printed(args.format))
}

fn comparison(
    args: &CompareGossipArgs,
    trees: &[Named],
    flits: &[u64],
) -> Result<Comparison, PlanTooLarge> {
    check_pes(flits.len())?;
    let total = check_flits("--lengths", flits)?;
    let (mut rows, mut bounds, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for Named { name, tree, .. } in trees {
        let task = ListTask::new(tree, tree.root(), flits, args.ports.of_model());
        bounds.push(Algorithm::GOSSIP_FLOOD.least_steps_of_list(&task));
        for one in TreeGossip::compared() {
            match (one.plan(&task), one) {
                (Ok(plan), _) => rows.push(Row::new(name, one.to_string(), &plan)),
                (Err(NotPlanned::TooMuch(fault)), TreeGossip::Listed(_)) => {
                    return Err(fault);
                }
                (Err(_), TreeGossip::Listed(listed)) => {
                    let needs = listed.offer().needs;
                    notes.push(format!("{one} is left out: it is planned for {needs}"));
                }
                (Err(_), TreeGossip::InCycles(_)) => {}
            }
        }
    }
    notes.dedup();
    let fit = trees.iter().all(|named| CycleGossip::fits(&named.tree));
    if args.ports == Ports::Single && !fit {
        notes.push(CycleGossip::LEFT_OUT.to_owned());
    }
    let comparison = Comparison {
        operation: "gossip",
        ports: args.ports.name(),
        pes: flits.len(),
        flits: total,
        bound_steps: bounds.into_iter().min().unwrap_or(0),
        bound_over: over(trees),
        results: rows,
        notes,
        ..Comparison::default()
    };
    Ok(comparison.compared())
}
