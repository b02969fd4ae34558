//! The requested tree, lengths and order of a plan.

use std::sync::Arc;

use anyhow::ensure;
use flitcast_plan::schedule::scatter::farthest_first;
use flitcast_proto::{PeId, Tree};

use super::args::{Order, PlanRoundArgs};
use super::report::PlanReport;
use crate::faults::Faults;
use flitcast_cluster::options::flits::{deal_flits, lengths_in_flits};
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::options::workload::Lengths;
use flitcast_cluster::site::topology::Topology;

/// The requested tree and lengths.
pub struct AskedPlan {
    pub name: String,
    pub tree: Arc<Tree>,
    /// L_i by PE index; `[0]` is 0.
    pub flits: Vec<u64>,
}

impl AskedPlan {
    /// Returns the tree and the lengths, or all errors in both.
    pub fn of(args: &PlanRoundArgs, spanning: SpanningArg) -> Result<AskedPlan, Faults> {
        let (topology, lengths) = topology_and_lengths(args, spanning)?;
        let tree = Arc::new(topology.tree);
        let flits = deal_flits(&lengths, &tree)?;
        Ok(AskedPlan {
            name: topology.name,
            tree,
            flits,
        })
    }

    /// Adds the size of the tree and of the messages to a report.
    pub fn figures(&self, report: &mut PlanReport<'_>) {
        let nonnull = self.flits.iter().filter(|&&flits| flits > 0).count();
        report.size(&self.tree, nonnull, self.flits.iter().sum());
    }
}

/// Returns the tree or network and the lengths, or all errors in both.
pub fn topology_and_lengths(
    args: &PlanRoundArgs,
    spanning: SpanningArg,
) -> Result<(Topology, Lengths), Faults> {
    let mut faults = Faults::default();
    let topology = faults.take(args.tree.topology(spanning).map_err(Faults::all));
    let lengths = faults.take(lengths_in_flits(&args.lengths));
    topology.zip(lengths).ok_or(faults)
}

/// Returns the destinations of the nonnull messages in this order, and its name.
pub fn order_of(
    tree: &Tree,
    flits: &[u64],
    order: &Order,
) -> anyhow::Result<(Vec<PeId>, &'static str)> {
    let farthest = farthest_first(tree, flits);
    match order {
        // A search is planned elsewhere (`ordered`), on its own links.
        Order::FarthestFirst | Order::Search(_) => Ok((farthest, "fdf")),
        Order::NearestFirst => {
            let mut nearest = farthest;
            nearest.sort_by_key(|&pe| (tree.depth(pe), pe));
            Ok((nearest, "nearest-first"))
        }
        Order::Given(given) => {
            check_order(&given.faults(tree, Some(flits)))?;
            Ok((given.pes().to_vec(), "given"))
        }
    }
}

/// Returns all errors in an order as one.
pub fn check_order(faults: &[String]) -> anyhow::Result<()> {
    ensure!(faults.is_empty(), "--order: {}", faults.join("; "));
    Ok(())
}
