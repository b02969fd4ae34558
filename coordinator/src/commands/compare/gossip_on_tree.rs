//! `flitcast compare gossip` over the edges of a tree.

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::{CycleGossip, ListTask, NotPlanned};

use super::crossings::{Comparison, Row};
use super::error::{CompareError, GossipComparisonError};
use super::gossip_args::CompareGossipArgs;
use super::trees::{Named, over, spanning};
use flitcast_cluster::algorithms::plan_limits::{check_flits, check_pes};
use flitcast_cluster::algorithms::tree_gossip::TreeGossip;
use flitcast_cluster::options::flits::{deal_flits_to_all, lengths_of_all_in_flits};
use flitcast_cluster::options::ports::Ports;

/// Returns the printed comparison, or all errors in the command line.
pub fn compared(args: &CompareGossipArgs) -> Result<String, Vec<CompareError>> {
    let prices = args.prices.check_absent::<CompareError>();
    let lengths = match &args.lengths {
        Some(lengths) => lengths_of_all_in_flits(lengths).map_err(CompareError::from),
        None => Err(GossipComparisonError::NoLengths.into()),
    };
    let (trees, lengths) = match (spanning(&args.tree), lengths, prices) {
        (Ok(trees), Ok(lengths), Ok(())) => (trees, lengths),
        (trees, lengths, prices) => {
            let mut faults = trees.err().unwrap_or_default();
            faults.extend(lengths.err());
            faults.extend(prices.err().unwrap_or_default());
            return Err(faults);
        }
    };
    let pes = trees[0].tree.len();
    let flits = deal_flits_to_all(&lengths, pes).map_err(|fault| vec![fault.into()])?;
    let comparison = comparison(args, &trees, &flits).map_err(|fault| vec![fault])?;
    Ok(comparison.printed(args.format))
}

fn comparison(
    args: &CompareGossipArgs,
    trees: &[Named],
    flits: &[u64],
) -> Result<Comparison, CompareError> {
    check_pes(flits.len())?;
    let total = check_flits("--lengths", flits)?;
    let (mut rows, mut bounds, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for Named { name, tree } in trees {
        let task = ListTask {
            tree,
            source: tree.root(),
            flits,
            ports: args.ports.of_model(),
        };
        bounds.push(Algorithm::GOSSIP_FLOOD.least_steps_of_list(&task));
        for one in TreeGossip::compared() {
            match (one.plan(&task), one) {
                (Ok(plan), _) => rows.push(Row::new(name, one.to_string(), &plan)),
                (Err(NotPlanned::TooMuch(fault)), TreeGossip::Listed(_)) => {
                    return Err(fault.into());
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
