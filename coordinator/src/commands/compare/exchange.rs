//! `flitcast compare exchange`: over the edges of trees, or in a complete network.

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::{ListTask, NotPlanned, OfferKind};
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::ops::Collective;

use super::args::CompareExchangeArgs;
use super::crossings::{Comparison, Row};
use super::trees::{Named, over, spanning};
use flitcast_cluster::algorithms::plan_limits::PlanTooLarge;
use flitcast_cluster::options::values::is_for_trees;
use flitcast_cluster::text::faults::Faults;

pub fn compared(args: &CompareExchangeArgs) -> Result<String, Faults> {
    let network = args.tree.network().map(|it| it.parse::<NetworkSpec>());
    let reach_all = matches!(network, Some(Ok(NetworkSpec::Complete { .. })));
    let mut faults = Faults::default();
    let trees = faults.take(spanning(&args.tree));
    let lengths = faults.take(args.flits.read());
    let ports = faults.take(args.ports.fit(reach_all));
    let (Some(trees), Some(lengths), Some(())) = (trees, lengths, ports) else {
        return Err(faults);
    };
    let flits = lengths.of_pes(trees[0].tree.len())?;
    let comparison = comparison(args, &trees, &flits, reach_all)?;
    Ok(comparison.compared().printed(args.format))
}

fn comparison(
    args: &CompareExchangeArgs,
    trees: &[Named],
    rows: &[Vec<u64>],
    reach_all: bool,
) -> Result<Comparison, PlanTooLarge> {
    let (mut results, mut bounds, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let flits = rows.concat();
    let network = &args.tree.network().unwrap_or_default();
    // A complete network has one comparison, whichever trees span it.
    let trees = &trees[..if reach_all { 1 } else { trees.len() }];
    for Named { name, tree, .. } in trees {
        let task = ListTask::new(tree, tree.root(), &flits, args.ports.of_model());
        let listed = Algorithm::listed(Collective::Exchange);
        for one in listed.filter(|one| is_for_trees(*one) != reach_all) {
            let name = if reach_all { network } else { name };
            match one.list(&task) {
                Ok(plan) => results.push(Row::new(name, one.name(), &plan)),
                Err(NotPlanned::TooMuch(fault)) if one.offer().kind == OfferKind::Choice => {
                    return Err(fault);
                }
                Err(NotPlanned::TooMuch(_)) => {}
                Err(NotPlanned::Unfit(why)) => {
                    let why = why.trim_start_matches("it is ");
                    notes.push(format!("{} are {why}", one.name()));
                }
            }
            bounds.push(one.least_steps_of_list(&task));
        }
    }
    Ok(Comparison {
        operation: "exchange",
        ports: match reach_all {
            true => "shared",
            false => args.ports.name(),
        },
        pes: rows.len(),
        flits: flits.iter().sum(),
        bound_steps: bounds.into_iter().min().unwrap_or(0),
        bound_over: if reach_all { "" } else { over(trees) },
        results,
        notes,
        ..Comparison::default()
    })
}
