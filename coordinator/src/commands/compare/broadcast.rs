//! `flitcast compare broadcast`: all algorithms that fit, on the given trees and on those that they
//! build in a complete network.

use clap::Args;
use flitcast_plan::algorithms::broadcast_plan::{self as planned, Broadcast};
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::{PeId, Tree};

use super::crossings::{Comparison, Row};
use super::error::CompareError;
use super::trees::{Named, over, spanning};
use crate::algorithms::broadcast_plans::{among_all, laying};
use crate::algorithms::plan_limits::{MAX_FLITS, MOST_CROSSINGS_OF_ONE, check_size};
use crate::options::broadcast::BroadcastAlgorithm as Algorithm;
use crate::options::format::{Format, TABLE_OR_JSON};
use crate::options::pes::{parse_pe, source};
use crate::options::ports::Ports;
use crate::options::tree::TreeArgs;

/// Arguments of `flitcast compare broadcast`.
#[derive(Debug, Args)]
pub struct CompareBroadcastArgs {
    /// The tree; a network is compared over both kinds of spanning tree, unless one is named.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// The length of the message in flits.
    #[arg(long, value_name = "FLITS", value_parser = clap::value_parser!(u64).range(..=MAX_FLITS))]
    pub size: u64,
    /// The PE that holds the message, as 3 or P3.
    #[arg(long, value_name = "P", value_parser = parse_pe)]
    pub from: Option<PeId>,
    /// Number of ports of a PE.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// Format of the comparison on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}

/// Returns the printed comparison, or all errors in the command line.
pub fn compared(args: &CompareBroadcastArgs) -> Result<String, Vec<CompareError>> {
    let network = args.tree.network.as_deref().map(str::parse::<NetworkSpec>);
    let own = match network {
        Some(Ok(NetworkSpec::Complete { .. })) => OwnTrees::All,
        Some(Ok(NetworkSpec::Hypercube { .. })) if args.ports == Ports::Single => OwnTrees::Cube,
        _ => OwnTrees::None,
    };
    let ports = args
        .ports
        .fit(own == OwnTrees::All)
        .map_err(CompareError::from);
    let trees = match (spanning(&args.tree), ports) {
        (Ok(trees), Ok(())) => trees,
        (trees, ports) => {
            let mut faults = trees.err().unwrap_or_default();
            faults.extend(ports.err());
            return Err(faults);
        }
    };
    let from = source(args.from, &trees[0].tree).map_err(|fault| vec![fault.into()])?;
    Ok(comparison(args, &trees, from, own).printed(args.format))
}

/// The trees that algorithms can build on a network.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnTrees {
    /// No further connections: PEs reach only their neighbours.
    None,
    /// The connections of a hypercube, because the network has its edges.
    Cube,
    /// All connections, because the network is complete.
    All,
}

fn comparison(
    args: &CompareBroadcastArgs,
    trees: &[Named],
    from: PeId,
    own: OwnTrees,
) -> Comparison {
    let (pes, flits) = (trees[0].tree.len(), args.size);
    let one_by_one = check_size(flits, pes).is_ok();
    let (mut rows, mut bounds) = (Vec::new(), Vec::new());
    for Named { name, tree } in trees {
        let tree = tree.rerooted(from);
        bounds.push(match args.ports {
            Ports::Single => planned::least_steps(&tree, flits),
            Ports::Multi => planned::least_steps_of_all_ports(&tree, flits),
        });
        let plans = on_tree(&tree, flits, args.ports, one_by_one);
        rows.extend(plans.map(|(algorithm, plan)| row(name, algorithm, &plan)));
    }
    let network = args.tree.network.as_deref().unwrap_or_default();
    let laying = laying(pes).filter(|algorithm| match own {
        OwnTrees::None => false,
        OwnTrees::Cube => *algorithm == Algorithm::Hypercube,
        OwnTrees::All => true,
    });
    for algorithm in laying {
        if let Ok(laid) = among_all(algorithm, pes, from, flits) {
            rows.push(row(&format!("{network}, its own"), algorithm, &laid.plan));
        }
    }
    let (bound_steps, bound_over) = match own {
        OwnTrees::None => (bounds.into_iter().min().unwrap_or(0), over(trees)),
        _ => (planned::least_steps_of_complete(pes, flits), ""),
    };
    let left_out = (!one_by_one && args.ports == Ports::Single).then(|| {
        format!(
            "urgent and hypercube are left out: they are worked out flit by flit, for at most \
             {MOST_CROSSINGS_OF_ONE} crossings of edges"
        )
    });
    let comparison = Comparison {
        operation: "broadcast",
        ports: match own {
            OwnTrees::All => "shared",
            _ => args.ports.name(),
        },
        pes,
        source: Some(from),
        flits,
        bound_steps,
        bound_over,
        results: rows,
        why: None,
        notes: left_out.into_iter().collect(),
    };
    comparison.compared()
}

/// Compares all algorithms over a given tree, or those that need no flit-by-flit computation.
fn on_tree(
    tree: &Tree,
    flits: u64,
    ports: Ports,
    one_by_one: bool,
) -> impl Iterator<Item = (Algorithm, Broadcast)> {
    if ports == Ports::Multi {
        return vec![(Algorithm::Rounds, planned::all_ports(tree, flits))].into_iter();
    }
    let mut all = vec![(Algorithm::Rounds, planned::rounds(tree, flits))];
    if one_by_one {
        all.push((Algorithm::Urgent, planned::urgent(tree, flits)));
    }
    let relayed = planned::child_by_child(tree, flits);
    all.push((Algorithm::ChildByChild, relayed));
    all.into_iter()
}

fn row(tree: &str, algorithm: Algorithm, plan: &Broadcast) -> Row {
    Row::new(tree, algorithm.name(), plan.time_steps, plan.kept_flits)
}
