//! `flitcast compare exchange`: over the edges of trees, or in a complete network.

use clap::Args;
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::{ListTask, NotPlanned, OfferKind};
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::ops::Collective;

use super::crossings::{Comparison, Row};
use super::error::CompareError;
use super::trees::{Named, over, spanning};
use flitcast_cluster::job::exchange_flits::ExchangeFlitsArgs;
use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::tree::TreeArgs;
use flitcast_cluster::options::values::is_for_trees;

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
    let comparison = comparison(args, &trees, &flits, reach_all);
    let comparison = comparison.map_err(|fault| vec![fault])?;
    Ok(comparison.compared().printed(args.format))
}

fn comparison(
    args: &CompareExchangeArgs,
    trees: &[Named],
    rows: &[Vec<u64>],
    reach_all: bool,
) -> Result<Comparison, CompareError> {
    let (mut results, mut bounds, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let flits = rows.concat();
    let network = args.tree.network.as_deref().unwrap_or_default();
    // A complete network has one comparison, whichever trees span it.
    let trees = &trees[..if reach_all { 1 } else { trees.len() }];
    for Named { name, tree } in trees {
        let task = ListTask {
            tree,
            source: tree.root(),
            flits: &flits,
            ports: args.ports.of_model(),
        };
        let listed = Algorithm::listed(Collective::Exchange);
        for one in listed.filter(|one| is_for_trees(*one) != reach_all) {
            let name = if reach_all { network } else { name };
            match one.list(&task) {
                Ok(plan) => results.push(Row::new(name, one.algorithm(), &plan)),
                Err(NotPlanned::TooMuch(fault)) if one.offer().kind == OfferKind::Choice => {
                    return Err(fault.into());
                }
                Err(NotPlanned::TooMuch(_)) => {}
                Err(NotPlanned::Unfit(why)) => {
                    let why = why.trim_start_matches("it is ");
                    notes.push(format!("{} are {why}", one.algorithm()));
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
