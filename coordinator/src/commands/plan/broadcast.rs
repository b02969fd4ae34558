//! `flitcast plan broadcast`: the step in which each flit crosses each edge.

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::ListTask;
use flitcast_plan::algorithms::broadcast_plan::least_steps_of_complete;
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::ops::Collective;
use flitcast_proto::{PeId, Tree};

use super::args::PlanBroadcastArgs;
use super::error::{not_planned, unfit};
use super::input::topology;
use super::static_plan::StaticPlan;
use flitcast_cluster::algorithms::listed::among_all;
use flitcast_cluster::options::broadcast::BroadcastAlgorithm;
use flitcast_cluster::options::pes::source;
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::options::values::is_for_trees;
use flitcast_cluster::text::faults::Faults;

pub fn plan(args: &PlanBroadcastArgs) -> Result<StaticPlan, Faults> {
    let network = args.tree.network().map(|it| it.parse::<NetworkSpec>());
    let network = network.and_then(Result::ok);
    let reach_all = matches!(network, Some(NetworkSpec::Complete { .. }));
    let mut faults = Faults::default();
    let topology = faults.take(topology(&args.tree, SpanningArg::Broadcast));
    let ports = faults.take(args.ports.fit(reach_all));
    let (Some(topology), Some(())) = (topology, ports) else {
        return Err(faults);
    };
    let tree = &topology.tree;
    let from = source(args.from.as_deref(), &topology.places().names(), tree)?;
    let unfit = |why: &str| Err(unfit(args.algorithm.name(), why).into());
    let has_edges = network.is_some_and(|network| {
        let operation = args.algorithm.operation();
        operation.has_edges_of(&network.to_string())
    });
    match args.algorithm {
        _ if has_edges && args.ports == Ports::Multi => {
            return unfit("a PE sends by one port at a time: leave out --ports");
        }
        BroadcastAlgorithm::Auto if reach_all => return complete(args, tree, from),
        BroadcastAlgorithm::Auto => {}
        one if one.is_for_trees() => {}
        one if reach_all || has_edges => return shared(args, one, tree, from),
        _ => return unfit("it is for --network complete:N, where all PEs reach each other"),
    }
    let flits = [args.size];
    let task = ListTask::new(tree, from, &flits, args.ports.of_model());
    let named = match args.algorithm {
        BroadcastAlgorithm::Listed(one) => Some(one),
        _ => None,
    };
    let all = Algorithm::listed(Collective::Broadcast);
    let all = all.filter(|one| named.map_or(is_for_trees(*one), |named| *one == named));
    let planned = StaticPlan::quickest(all, &args.algorithm.name(), &task)?;
    Ok(planned.over(&topology, args.ports))
}

/// Plans in a complete network, by the algorithm with the fewest steps.
fn complete(args: &PlanBroadcastArgs, tree: &Tree, from: PeId) -> Result<StaticPlan, Faults> {
    let all = BroadcastAlgorithm::among_all();
    let planned = all.filter_map(|one| shared(args, one, tree, from).ok());
    let best = planned.min_by_key(|planned| planned.time_steps);
    best.map_or_else(|| shared(args, BroadcastAlgorithm::Path, tree, from), Ok)
}

/// Plans with one port for each PE, by one of the algorithms that build their own trees.
fn shared(
    args: &PlanBroadcastArgs,
    algorithm: BroadcastAlgorithm,
    tree: &Tree,
    from: PeId,
) -> Result<StaticPlan, Faults> {
    let planned = among_all(algorithm, tree, from, args.size);
    let (tree, plan) = planned.map_err(|why| not_planned(algorithm.name(), why))?;
    let flits = [args.size];
    let task = ListTask::new(&tree, from, &flits, args.ports.of_model());
    let planned = StaticPlan {
        algorithm: algorithm.name(),
        bound_steps: least_steps_of_complete(tree.len(), args.size),
        ..StaticPlan::listed(algorithm.operation(), &task, plan)
    };
    Ok(planned.among_all(args.tree.network()))
}
