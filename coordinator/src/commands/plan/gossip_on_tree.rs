//! Gossip over the edges of a tree.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::blocks;
use flitcast_proto::{PeId, Tree};

use super::args::PlanGossipArgs;
use super::error::{PlanError, PlanErrors};
use super::played::Played;
use super::static_plan::{PlannedMessage, StaticPlan};
use crate::algorithms::broadcast_plans::NotPlanned;
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
    let algorithm = faults.take(algorithm.map_err(|why| unfit(args.algorithm.clone(), why)));
    let (Some(topology), Some(lengths), Some(algorithm)) = (topology, lengths, algorithm) else {
        return Err(faults);
    };
    let tree = &topology.tree;
    let flits = deal_flits_to_all(&lengths, tree.len())?;
    check_pes(tree.len())?;
    check_flits("--lengths", &flits)?;
    let planned = algorithm.plan(tree, &flits, args.ports);
    let (plan, bound_steps) = planned.map_err(|why| match why {
        NotPlanned::Unfit(why) => unfit(algorithm.name(), why),
        NotPlanned::TooMuch(fault) => fault.into(),
    })?;
    let played = |flits: &[u64]| match algorithm {
        TreeGossip::Flood => played(tree, flits),
        _ => Played::default(),
    };
    Ok(StaticPlan {
        operation: "gossip",
        algorithm: algorithm.name(),
        messages: messages(&flits),
        bound_steps,
        played: Played::by_ports(args.ports, || played(&flits)),
        ..StaticPlan::of(plan).over(&topology, args.ports)
    })
}

/// Returns the state machines of a gossip over the edges of a tree.
fn played(tree: &Tree, flits: &[u64]) -> Played {
    let operation = Algorithm::GOSSIP_FLOOD;
    Played::flit_by_flit(blocks::of_gossip(tree, flits), || Played::ByAll {
        flits: operation.collective().by_delivery(tree, flits),
        tree: Arc::new(tree.clone()),
        operation,
    })
}

fn unfit(algorithm: String, why: String) -> PlanError {
    PlanError::Unfit { algorithm, why }
}

fn messages(flits: &[u64]) -> Vec<PlannedMessage> {
    let all = (0..).map(PeId).zip(flits);
    let nonnull = all.filter(|(_, flits)| **flits > 0);
    nonnull
        .map(|(pe, length)| PlannedMessage::to_others(pe.0.into(), pe, flits.len(), *length))
        .collect()
}
