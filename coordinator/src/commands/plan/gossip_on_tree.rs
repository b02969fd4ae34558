//! Gossip over the edges of a tree.

use std::sync::Arc;

use flitcast_plan::algorithms::{ListTask, OfferKind, blocks};
use flitcast_proto::{PeId, Tree};

use super::args::PlanGossipArgs;
use super::error::{PlanError, PlanErrors};
use super::played::Played;
use super::static_plan::{PlannedMessage, StaticPlan};
use crate::algorithms::plan_limits::{check_flits, check_pes};
use crate::algorithms::tree_gossip::TreeGossip;
use crate::options::flits::{deal_flits_to_all, lengths_of_all_in_flits};
use crate::options::tree::SpanningArg;

/// Returns the requested plan, or all errors in the command line.
pub fn plan(args: &PlanGossipArgs) -> Result<StaticPlan, PlanErrors> {
    args.prices.check_absent::<PlanError>()?;
    let mut faults = PlanErrors::default();
    let topology = faults.take(args.tree.topology(SpanningArg::Bfs));
    let lengths = faults.take(lengths_of_all_in_flits(&args.lengths));
    let algorithm = args.algorithm.parse::<TreeGossip>();
    let algorithm = faults.take(algorithm.map_err(|why| {
        let algorithm = args.algorithm.clone();
        PlanError::Unfit { algorithm, why }
    }));
    let (Some(topology), Some(lengths), Some(algorithm)) = (topology, lengths, algorithm) else {
        return Err(faults);
    };
    let tree = &topology.tree;
    let flits = deal_flits_to_all(&lengths, tree.len())?;
    check_pes(tree.len())?;
    check_flits("--lengths", &flits)?;
    let task = ListTask {
        tree,
        source: tree.root(),
        flits: &flits,
        ports: args.ports.of_model(),
    };
    let plan = algorithm.plan(&task);
    let plan = plan.map_err(|why| PlanError::not_planned(algorithm.to_string(), why))?;
    Ok(StaticPlan {
        operation: "gossip",
        algorithm: algorithm.to_string(),
        messages: messages(&flits),
        bound_steps: TreeGossip::least_steps(&task),
        played: Played::by_ports(args.ports, || played(algorithm, tree, &flits)),
        ..StaticPlan::of(plan).over(&topology, args.ports)
    })
}

/// Returns the state machines of a gossip over the edges of a tree, if PEs run the algorithm.
fn played(algorithm: TreeGossip, tree: &Tree, flits: &[u64]) -> Played {
    let operation = match algorithm {
        TreeGossip::Listed(one) if one.offer() != OfferKind::Planned => one,
        _ => return Played::default(),
    };
    Played::flit_by_flit(blocks::of_gossip(tree, flits), || Played::ByAll {
        flits: operation.collective().by_delivery(tree, flits),
        tree: Arc::new(tree.clone()),
        operation,
    })
}

fn messages(flits: &[u64]) -> Vec<PlannedMessage> {
    let all = (0..).map(PeId).zip(flits);
    let nonnull = all.filter(|(_, flits)| **flits > 0);
    nonnull
        .map(|(pe, length)| PlannedMessage::to_others(pe.0.into(), pe, flits.len(), *length))
        .collect()
}
