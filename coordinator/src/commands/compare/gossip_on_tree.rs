//! `flitcast compare gossip` over the edges of a tree.

use flitcast_plan::algorithms::gossip_in_cycles;

use super::crossings::{Comparison, Row};
use super::error::{CompareError, GossipComparisonError};
use super::gossip_args::CompareGossipArgs;
use super::trees::{Named, over, spanning};
use crate::algorithms::plan_limits::{check_flits, check_pes};
use crate::algorithms::tree_gossip::TreeGossip;
use crate::algorithms::tree_plans::flood;
use crate::options::flits::{deal_flits_to_all, lengths_of_all_in_flits};
use crate::options::ports::Ports;

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
    let goes_around = args.ports == Ports::Multi && flits.iter().all(|flits| *flits == 1);
    let (mut rows, mut bounds) = (Vec::new(), Vec::new());
    for Named { name, tree } in trees {
        let (plan, bound) = flood(tree, flits, args.ports)?;
        rows.push(Row::new(name, "flood", plan.time_steps, plan.kept_flits()));
        bounds.push(bound);
        let around = [TreeGossip::RingEmulation].into_iter();
        for one in around.chain(TreeGossip::in_cycles()) {
            if let Ok((plan, _)) = one.plan(tree, flits, args.ports) {
                let kept = plan.kept_flits();
                rows.push(Row::new(name, one.name(), plan.time_steps, kept));
            }
        }
    }
    let around =
        "ring-emulation is left out: it is planned for --ports multi and --lengths equal:1";
    let notes = [
        (!goes_around).then_some(around),
        left_out_of_cycles(args, trees),
    ];
    let comparison = Comparison {
        operation: "gossip",
        ports: args.ports.name(),
        pes: flits.len(),
        source: None,
        flits: total,
        bound_steps: bounds.into_iter().min().unwrap_or(0),
        bound_over: over(trees),
        results: rows,
        why: None,
        notes: notes.into_iter().flatten().map(str::to_owned).collect(),
    };
    Ok(comparison.compared())
}

/// Returns why some baselines are left out that serve neighbours in cycles.
fn left_out_of_cycles(args: &CompareGossipArgs, trees: &[Named]) -> Option<&'static str> {
    let fit = trees
        .iter()
        .all(|named| gossip_in_cycles::fits(&named.tree));
    (args.ports == Ports::Single && !fit).then_some(
        "discipline and combining are left out: they are planned for PEs with at most two children",
    )
}
