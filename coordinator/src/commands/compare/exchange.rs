//! `flitcast compare exchange`: over the edges of trees, or in a complete network.

use clap::Args;
use flitcast_plan::algorithms::exchange_hosts as hosts;
use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_plan::network::NetworkSpec;

use super::crossings::{Comparison, Row};
use super::error::CompareError;
use super::trees::{Named, over, spanning};
use crate::algorithms::plan_limits::{MOST_HOSTS_OF_ROUNDS, PlanTooLarge};
use crate::algorithms::tree_plans;
use crate::job::exchange_flits::ExchangeFlitsArgs;
use crate::options::format::{Format, TABLE_OR_JSON};
use crate::options::ports::Ports;
use crate::options::tree::TreeArgs;

/// Arguments of `flitcast compare exchange`.
#[derive(Debug, Args)]
pub struct CompareExchangeArgs {
    /// The tree; a network is compared over both kinds of spanning tree, unless one is named, and
    /// complete:N without a tree.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// The lengths of the messages.
    #[command(flatten)]
    pub flits: ExchangeFlitsArgs,
    /// Number of ports of a PE of a tree.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// Format of the comparison on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}

/// Returns the printed comparison, or all errors in the command line.
pub fn compared(args: &CompareExchangeArgs) -> Result<String, Vec<CompareError>> {
    let network = args.tree.network.as_deref().map(str::parse::<NetworkSpec>);
    let reach_all = matches!(network, Some(Ok(NetworkSpec::Complete { .. })));
    let ports = args.ports.fit(reach_all).map_err(CompareError::from);
    let (trees, lengths) = match (spanning(&args.tree), args.flits.read(), ports) {
        (Ok(trees), Ok(lengths), Ok(())) => (trees, lengths),
        (trees, lengths, ports) => {
            let mut faults = trees.err().unwrap_or_default();
            faults.extend(lengths.err().map(CompareError::from));
            faults.extend(ports.err());
            return Err(faults);
        }
    };
    let flits = lengths.of_pes(trees[0].tree.len());
    let flits = flits.map_err(|fault| vec![fault.into()])?;
    let comparison = match reach_all {
        true => between_hosts(args, &flits),
        false => on_trees(args, &trees, &flits).map_err(|fault| vec![fault.into()])?,
    };
    Ok(comparison.compared().printed(args.format))
}

/// Returns the part of a comparison that all networks share.
fn comparison(ports: &'static str, flits: &[Vec<u64>]) -> Comparison {
    Comparison {
        operation: "exchange",
        ports,
        pes: flits.len(),
        source: None,
        flits: flits.iter().flatten().sum(),
        bound_steps: 0,
        bound_over: "",
        results: Vec::new(),
        why: None,
        notes: Vec::new(),
    }
}

fn on_trees(
    args: &CompareExchangeArgs,
    trees: &[Named],
    flits: &[Vec<u64>],
) -> Result<Comparison, PlanTooLarge> {
    let (mut rows, mut bounds) = (Vec::new(), Vec::new());
    for Named { name, tree } in trees {
        let (plan, bound) = tree_plans::exchange(tree, flits, args.ports)?;
        rows.push(Row::new(name, "tree", plan.time_steps, plan.kept_flits()));
        bounds.push(bound);
        if let Ok((plan, _)) = tree_plans::exchange_around(tree, flits, args.ports) {
            let kept = plan.kept_flits();
            rows.push(Row::new(name, "ring-emulation", plan.time_steps, kept));
        }
    }
    Ok(Comparison {
        bound_steps: bounds.into_iter().min().unwrap_or(0),
        bound_over: over(trees),
        results: rows,
        ..comparison(args.ports.name(), flits)
    })
}

fn between_hosts(args: &CompareExchangeArgs, flits: &[Vec<u64>]) -> Comparison {
    let network = args.tree.network.as_deref().unwrap_or_default();
    let row = |algorithm, plan: &Timetable| {
        Row::new(network, algorithm, plan.time_steps, plan.kept_flits())
    };
    let mut all = comparison("shared", flits);
    all.bound_steps = hosts::least_steps(flits);
    match flits.len() > MOST_HOSTS_OF_ROUNDS {
        true => all.notes.push(format!(
            "rounds are worked out for at most {MOST_HOSTS_OF_ROUNDS} PEs"
        )),
        false => all.results.push(row("rounds", &hosts::rounds(flits))),
    }
    all.results.push(row("shifts", &hosts::shifts(flits)));
    all
}
