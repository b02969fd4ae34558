//! Gossip over the edges of a tree.

use flitcast_plan::algorithms::ListTask;

use super::args::PlanGossipArgs;
use super::error::{not_planned, unfit};
use super::input::topology;
use super::static_plan::{Played, StaticPlan};
use flitcast_cluster::algorithms::listed::TreeGossip;
use flitcast_cluster::algorithms::plan_limits::{check_flits, check_pes};
use flitcast_cluster::options::flits::{deal_flits_to_all, lengths_of_all_in_flits};
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::text::faults::Faults;

pub fn plan(args: &PlanGossipArgs) -> Result<StaticPlan, Faults> {
    args.prices.check_absent()?;
    let mut faults = Faults::default();
    let topology = faults.take(topology(&args.tree, SpanningArg::Bfs));
    let lengths = faults.take(lengths_of_all_in_flits(&args.lengths));
    let algorithm = args.algorithm.parse::<TreeGossip>();
    let algorithm = faults.take(algorithm.map_err(|why| unfit(&args.algorithm, why)));
    let (Some(topology), Some(lengths), Some(algorithm)) = (topology, lengths, algorithm) else {
        return Err(faults);
    };
    let tree = &topology.tree;
    let flits = deal_flits_to_all(&lengths, tree.len())?;
    check_pes(tree.len())?;
    check_flits("--lengths", &flits)?;
    let task = ListTask::new(tree, tree.root(), &flits, args.ports.of_model());
    let plan = algorithm.plan(&task);
    let plan = plan.map_err(|why| not_planned(algorithm, why))?;
    let planned = StaticPlan::listed(algorithm.alike(), &task, plan);
    let planned = match algorithm {
        TreeGossip::Listed(_) => planned,
        TreeGossip::InCycles(_) => StaticPlan {
            algorithm: algorithm.to_string(),
            played: Played::default(),
            ..planned
        },
    };
    Ok(planned.over(&topology, args.ports))
}
