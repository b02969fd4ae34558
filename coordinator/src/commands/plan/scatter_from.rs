//! `flitcast plan scatter --from` and `--ports multi`: the step in which each flit crosses each edge.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::plan::{MessagePlan, plan_scatter, plan_scatter_by_branch};
use flitcast_plan::algorithms::ring_emulation;
use flitcast_plan::schedule::scatter::{farthest_first, optimal_steps};
use flitcast_proto::PeId;

use super::args::{Order, PlanScatterArgs};
use super::asked::topology_and_lengths;
use super::error::{PlanError, PlanErrors};
use super::played::Played;
use super::static_plan::{Crossings, PlannedMessage, StaticPlan};
use crate::algorithms::plan_limits::check_crossings;
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

/// Plans a scatter from any PE one way around the tree.
pub fn around(args: &PlanScatterArgs) -> Result<StaticPlan, PlanErrors> {
    let (topology, lengths) = topology_and_lengths(&args.plan, SpanningArg::Bfs)?;
    let tree = &topology.tree;
    let from = source(args.from, tree)?;
    let rooted = tree.rerooted(from);
    let flits = deal_flits(&lengths, &rooted)?;
    check_crossings(ring_emulation::crossings_of_scatter(tree, from, &flits))?;
    let bound_steps = match args.ports {
        Ports::Single => optimal_steps(&rooted, &flits),
        Ports::Multi => {
            let by_branch = plan_scatter_by_branch(&rooted, &flits);
            let arrivals = by_branch.iter().map(|plan| plan.arrival_step);
            arrivals.max().unwrap_or(0)
        }
    };
    let messages = (0..).map(PeId).zip(&flits).filter(|(_, flits)| **flits > 0);
    let message =
        |(to, flits): (PeId, &u64)| PlannedMessage::to_one(to.0.into(), [from, to], *flits);
    let planned = StaticPlan {
        operation: "scatter",
        algorithm: "ring-emulation".to_owned(),
        messages: messages.map(message).collect(),
        bound_steps,
        ..StaticPlan::of(ring_emulation::scatter(
            tree,
            from,
            &flits,
            args.ports.of_model(),
        ))
    };
    Ok(planned.over(&topology, args.ports))
}
