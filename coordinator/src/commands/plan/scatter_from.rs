//! `flitcast plan scatter --from` and `--ports multi`: the step in which each flit crosses each edge.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::plan::{MessagePlan, plan_scatter, plan_scatter_by_branch};
use flitcast_plan::schedule::scatter::farthest_first;

use super::args::{Order, PlanScatterArgs};
use super::asked::topology_and_lengths;
use super::error::{PlanError, PlanErrors};
use super::played::Played;
use super::static_plan::{Crossings, PlannedMessage, StaticPlan};
use crate::options::flits::deal_flits;
use crate::options::pes::source;
use crate::options::ports::Ports;
use crate::options::tree::SpanningArg;

/// Plans a scatter from any PE, farthest destination first; with many ports, in each branch.
pub fn plan(args: &PlanScatterArgs) -> Result<StaticPlan, PlanErrors> {
    match args.order {
        None | Some(Order::FarthestFirst) => {}
        Some(_) => return Err(PlanError::FromElsewhere("--order").into()),
    }
    let (topology, lengths) = topology_and_lengths(&args.plan, SpanningArg::Bfs)?;
    let from = source(args.from, &topology.tree)?;
    let tree = Arc::new(topology.tree.rerooted(from));
    let flits = deal_flits(&lengths, &tree)?;
    let plans = match args.ports {
        Ports::Multi => plan_scatter_by_branch(&tree, &flits),
        Ports::Single => plan_scatter(&tree, &flits, &farthest_first(&tree, &flits)).messages,
    };
    let message =
        |plan: &MessagePlan| PlannedMessage::to_one(plan.pe.0.into(), [from, plan.pe], plan.flits);
    let time_steps = plans.iter().map(|plan| plan.arrival_step).max();
    let has_relay = plans.iter().any(|plan| tree.depth(plan.pe) > 1);
    let played = Played::by_ports(args.ports, || Played::ByAll {
        tree: tree.clone(),
        operation: Algorithm::FARTHEST_FIRST,
        flits,
    });
    let planned = StaticPlan {
        operation: "scatter",
        algorithm: "fdf".to_owned(),
        messages: plans.iter().map(message).collect(),
        time_steps: time_steps.unwrap_or(0),
        // Farthest first is optimal, in each branch as well.
        bound_steps: time_steps.unwrap_or(0),
        kept_flits: u64::from(has_relay),
        played,
        crossings: Crossings::Ways(tree, plans),
        ..StaticPlan::default()
    };
    Ok(planned.over(&topology, args.ports))
}
