//! `flitcast compare broadcast`: all algorithms that fit, on the trees that are given and on those
//! that they lay where all PEs reach each other.

use std::io::{self, Write};

use clap::Args;
use flitcast_proto::network::NetworkSpec;
use flitcast_proto::ops::broadcast_plan::{self as planned, Broadcast};
use flitcast_proto::{PeId, Tree};
use serde_json::json;

use super::CompareError;
use super::crossings::{Comparison, Row};
use super::trees::{Named, over, spanning};
use crate::options::broadcast::BroadcastAlgorithm as Algorithm;
use crate::options::format::{Format, TABLE_OR_JSON};
use crate::options::pes::{parse_pe, source};
use crate::options::ports::Ports;
use crate::options::tree::TreeArgs;
use crate::text::words::counted;
use crate::ways::broadcast_plans::{among_all, laying};
use crate::ways::plan_limits::{MAX_FLITS, MOST_CROSSINGS_OF_ONE, check_size};

/// Arguments of `flitcast compare broadcast`.
#[derive(Debug, Args)]
pub struct CompareBroadcastArgs {
    /// Who is connected to whom; a network is compared over both kinds of spanning
    /// tree, unless one is named.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// The length of the message in flits.
    #[arg(long, value_name = "FLITS", value_parser = clap::value_parser!(u64).range(..=MAX_FLITS))]
    pub size: u64,
    /// The PE that has the message, 3 or P3.
    #[arg(long, value_name = "P", value_parser = parse_pe)]
    pub from: Option<PeId>,
    /// How many ports a PE has.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// How the comparison is printed on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}

/// Compares and prints; all that is wrong with the command line, if something is.
pub fn run(
    args: &CompareBroadcastArgs,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<CompareError>> {
    let network = args.tree.network.as_deref().map(str::parse::<NetworkSpec>);
    let reach_all = matches!(network, Some(Ok(NetworkSpec::Complete { .. })));
    let is_cube = matches!(network, Some(Ok(NetworkSpec::Hypercube { .. })));
    let mut faults = Vec::new();
    if reach_all && args.ports == Ports::Multi {
        faults.push(CompareError::PortsOfAll);
    }
    let trees = match spanning(&args.tree) {
        Ok(trees) if faults.is_empty() => trees,
        trees => {
            faults.extend(trees.err().unwrap_or_default());
            return Err(faults);
        }
    };
    let (pes, flits) = (trees[0].tree.len(), args.size);
    let from = source(args.from, &trees[0].tree).map_err(|fault| vec![fault.into()])?;
    let one_by_one = check_size(flits, pes);
    let (mut rows, mut bounds) = (Vec::new(), Vec::new());
    for Named { name, tree } in &trees {
        let tree = tree.rerooted(from);
        bounds.push(match args.ports {
            Ports::Single => planned::least_steps(&tree, flits),
            Ports::Multi => planned::least_steps_of_all_ports(&tree, flits),
        });
        let plans = on_tree(&tree, flits, args.ports, one_by_one.is_ok());
        rows.extend(plans.map(|(algorithm, plan)| row(name, algorithm, &plan)));
    }
    let is_cube = is_cube && args.ports == Ports::Single;
    let own = laying(pes).filter(|one| match one {
        Algorithm::Hypercube => reach_all || is_cube,
        _ => reach_all,
    });
    let network = args.tree.network.as_deref().unwrap_or_default();
    for algorithm in own {
        if let Ok(laid) = among_all(algorithm, pes, from, flits) {
            bounds.push(planned::least_steps_of_complete(pes, flits));
            rows.push(row(&format!("{network}, its own"), algorithm, &laid.plan));
        }
    }
    let left_out = one_by_one.err().filter(|_| args.ports == Ports::Single);
    let left_out = left_out.map(|_| {
        format!(
            "urgent and hypercube are left out: they are worked out flit by flit, for at most \
             {MOST_CROSSINGS_OF_ONE} crossings of edges"
        )
    });
    let comparison = Comparison {
        operation: "broadcast",
        ports: match reach_all {
            true => "shared",
            false => args.ports.name(),
        },
        pes,
        flits,
        bound_steps: bounds.into_iter().min().unwrap_or(0),
        bound_over: match reach_all || is_cube {
            true => "",
            false => over(&trees),
        },
        results: rows,
        why: None,
        notes: left_out.into_iter().collect(),
    };
    let comparison = comparison.compared();
    let printed = match args.format {
        Format::Json => format!("{:#}\n", json!(comparison)),
        _ => comparison.text(&format!(
            "broadcast of {} from {from} over {}, {} ports",
            counted(flits, "flit", "flits"),
            counted(pes as u64, "PE", "PEs"),
            comparison.ports,
        )),
    };
    Ok(out.write_all(printed.as_bytes()))
}

/// All algorithms over a given tree, or those that are not worked out flit by flit.
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
