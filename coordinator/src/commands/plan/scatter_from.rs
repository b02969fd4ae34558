//! `flitcast plan scatter --from` and `--ports multi`: the step in which each flit crosses each edge.

use std::sync::Arc;

use anyhow::anyhow;
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::ListTask;
use flitcast_plan::algorithms::plan::{MessagePlan, plan_scatter, plan_scatter_by_branch};
use flitcast_plan::schedule::scatter::farthest_first;
use flitcast_proto::PeId;
use flitcast_proto::ops::Collective;

use super::args::{Order, PlanScatterArgs};
use super::input::topology_and_lengths;
use super::static_plan::{Crossings, PlannedMessage, Played, StaticPlan};
use flitcast_cluster::options::flits::deal_flits;
use flitcast_cluster::options::pes::source;
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::faults::Faults;

/// Plans a scatter from any PE, farthest destination first; with many ports, in each branch.
pub fn plan(args: &PlanScatterArgs) -> Result<StaticPlan, Faults> {
    if !matches!(args.order, None | Some(Order::FarthestFirst)) {
        let why = "is for a scatter from P0 by single ports: leave it out, or --from and --ports";
        return Err(anyhow!("--order {why}").into());
    }
    let (topology, lengths) = topology_and_lengths(&args.plan, SpanningArg::Bfs)?;
    let from = source_of(args, &topology)?;
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
    let played = Played::by_ports(args.ports.of_model(), || Played::ByAll {
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

fn source_of(args: &PlanScatterArgs, topology: &Topology) -> anyhow::Result<PeId> {
    let names = topology.places().names();
    source(args.from.as_deref(), &names, &topology.tree)
}

/// Returns the requested algorithm, if it has a static schedule.
pub fn listed(args: &PlanScatterArgs) -> Option<Algorithm> {
    let mut all = Algorithm::listed(Collective::Scatter);
    all.find(|one| args.algorithm.as_deref() == Some(one.name()))
}

/// Plans the static schedule of a scatter from any PE.
pub fn plan_list(args: &PlanScatterArgs, algorithm: Algorithm) -> Result<StaticPlan, Faults> {
    let (topology, lengths) = topology_and_lengths(&args.plan, SpanningArg::Bfs)?;
    let tree = &topology.tree;
    let from = source_of(args, &topology)?;
    let flits = deal_flits(&lengths, &tree.rerooted(from))?;
    let task = ListTask::new(tree, from, &flits, args.ports.of_model());
    let planned = StaticPlan {
        played: Played::default(),
        ..StaticPlan::quickest([algorithm].into_iter(), algorithm.name(), &task)?
    };
    Ok(planned.over(&topology, args.ports))
}
