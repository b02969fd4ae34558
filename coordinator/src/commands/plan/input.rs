//! The requested tree, lengths and order of a plan, and the errors of algorithms.

use std::fmt::Display;
use std::sync::Arc;

use anyhow::{Error, anyhow, ensure};
use flitcast_plan::algorithms::NotPlanned;
use flitcast_plan::schedule::scatter::farthest_first;
use flitcast_proto::{PeId, Tree};

use super::args::{Order, PlanRoundArgs};
use super::report::PlanReport;
use flitcast_cluster::options::flits::{deal_flits, lengths_in_flits};
use flitcast_cluster::options::order::GivenOrder;
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::options::workload::Lengths;
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::pe_names;

/// The requested tree and lengths.
pub struct PlanInput {
    pub name: String,
    pub tree: Arc<Tree>,
    /// L_i by PE index; `[0]` is 0.
    pub flits: Vec<u64>,
    /// The names of all PEs, by index; empty if they have none.
    names: Vec<String>,
}

impl PlanInput {
    /// Returns the tree and the lengths, or all errors in both.
    pub fn of(args: &PlanRoundArgs, spanning: SpanningArg) -> Result<PlanInput, Faults> {
        let (topology, lengths) = topology_and_lengths(args, spanning)?;
        let names = topology.places().names();
        let tree = Arc::new(topology.tree);
        let flits = deal_flits(&lengths, &tree)?;
        Ok(PlanInput {
            name: topology.name,
            tree,
            flits,
            names,
        })
    }

    /// Returns the destinations of the nonnull messages in this order, and its name.
    pub fn in_order(&self, order: &Order) -> anyhow::Result<(Vec<PeId>, &'static str)> {
        let (tree, farthest) = (&self.tree, farthest_first(&self.tree, &self.flits));
        match order {
            // A search is planned elsewhere (`ordered`), on its own links.
            Order::FarthestFirst | Order::Search(_) => Ok((farthest, "fdf")),
            Order::NearestFirst => {
                let mut nearest = farthest;
                nearest.sort_by_key(|&pe| (tree.depth(pe), pe));
                Ok((nearest, "nearest-first"))
            }
            Order::Given(text) => Ok((self.in_given_order(text)?, "given")),
        }
    }

    /// Returns the PEs of the nonnull messages in a given order, or all errors in it.
    pub fn in_given_order(&self, text: &str) -> anyhow::Result<Vec<PeId>> {
        let given = GivenOrder::parse(text, &self.names);
        let given = given.map_err(|fault| anyhow!("--order: {fault}"))?;
        let faults = given.faults(&self.tree, Some(&self.flits));
        ensure!(faults.is_empty(), "--order: {}", faults.join("; "));
        Ok(given.pes().to_vec())
    }

    /// Adds the size of the tree and of the messages to a report.
    pub fn figures(&self, report: &mut PlanReport<'_>) {
        let nonnull = self.flits.iter().filter(|&&flits| flits > 0).count();
        report.size(&self.tree, nonnull, self.flits.iter().sum());
    }
}

/// Returns the tree or network; all texts have the names of its PEs from now on.
pub fn topology(args: &TreeArgs, spanning: SpanningArg) -> Result<Topology, Faults> {
    let topology = args.topology(spanning)?;
    pe_names::set(topology.places().names());
    Ok(topology)
}

/// Returns the tree or network and the lengths, or all errors in both.
pub fn topology_and_lengths(
    args: &PlanRoundArgs,
    spanning: SpanningArg,
) -> Result<(Topology, Lengths), Faults> {
    let mut faults = Faults::default();
    let topology = faults.take(topology(&args.tree, spanning));
    let lengths = faults.take(lengths_in_flits(&args.lengths));
    topology.zip(lengths).ok_or(faults)
}

/// Returns the error of an algorithm that does not support these PEs.
pub fn unfit(algorithm: impl Display, why: impl Display) -> Error {
    anyhow!("--algorithm {algorithm}: {why}")
}

/// Returns the error of an algorithm without a static schedule.
pub fn not_planned(algorithm: impl Display, why: NotPlanned) -> Error {
    match why {
        NotPlanned::Unfit(why) => unfit(algorithm, why),
        NotPlanned::TooMuch(fault) => fault.into(),
    }
}
