//! `flitcast plan broadcast`: the step in which each flit crosses each edge.

use std::sync::Arc;

use flitcast_plan::algorithms::MOST_BLOCKS;
use flitcast_plan::algorithms::broadcast_plan::{self as broadcast, Broadcast};
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::{PeId, Tree};

use super::args::PlanBroadcastArgs;
use super::error::{PlanError, PlanErrors};
use super::played::Played;
use super::static_plan::{Crossings, PlannedMessage, StaticPlan};
use crate::algorithms::broadcast_plans::{NotPlanned, PlannedTree, among_all, laying};
use crate::algorithms::plan_limits::check_size;
use crate::options::broadcast::BroadcastAlgorithm as Algorithm;
use crate::options::pes::source;
use crate::options::ports::Ports;
use crate::options::tree::SpanningArg;

/// Returns the requested plan, or all errors in the command line.
pub fn plan(args: &PlanBroadcastArgs) -> Result<StaticPlan, PlanErrors> {
    let network = args.tree.network.as_deref().map(str::parse::<NetworkSpec>);
    let network = network.and_then(Result::ok);
    let reach_all = matches!(network, Some(NetworkSpec::Complete { .. }));
    let mut faults = PlanErrors::default();
    let topology = faults.take(args.tree.topology(SpanningArg::Broadcast));
    let ports = faults.take(args.ports.fit(reach_all));
    let (Some(topology), Some(())) = (topology, ports) else {
        return Err(faults);
    };
    let tree = &topology.tree;
    let from = source(args.from, tree)?;
    let is_cube = matches!(network, Some(NetworkSpec::Hypercube { .. }));
    let unfit = |why: &str| {
        let (algorithm, why) = (args.algorithm.name(), why.to_owned());
        PlanErrors::from(PlanError::Unfit { algorithm, why })
    };
    let others = match args.algorithm {
        Algorithm::Hypercube if is_cube && args.ports == Ports::Multi => {
            return Err(unfit("a PE sends by one port at a time: leave out --ports"));
        }
        Algorithm::Hypercube if is_cube => Some(Algorithm::Hypercube),
        Algorithm::Auto if reach_all => return complete(args, from, tree.len()),
        one if one.is_for_trees() || one == Algorithm::Auto => None,
        one if reach_all => Some(one),
        _ => {
            return Err(unfit(
                "it is for --network complete:N, where all PEs reach each other",
            ));
        }
    };
    if let Some(one) = others {
        return shared(args, one, from, tree.len());
    }
    let (tree, flits) = (tree.rerooted(from), args.size);
    let (algorithm, plan) = match (args.ports, args.algorithm) {
        (Ports::Multi, Algorithm::Auto | Algorithm::Rounds) => {
            (Algorithm::Rounds, broadcast::all_ports(&tree, flits))
        }
        (Ports::Multi, _) => {
            return Err(unfit(
                "with --ports multi a PE sends to all its children at once",
            ));
        }
        (Ports::Single, one) => on_tree(&tree, one, flits)?,
    };
    let bound_steps = match args.ports {
        Ports::Single => broadcast::least_steps(&tree, flits),
        Ports::Multi => broadcast::least_steps_of_all_ports(&tree, flits),
    };
    let planned = StaticPlan {
        algorithm: algorithm.name(),
        bound_steps,
        ..one_for_all(from, tree.len(), flits, plan)
    };
    Ok(StaticPlan {
        played: Played::by_ports(args.ports, || played(tree, algorithm, flits)),
        ..planned.over(&topology, args.ports)
    })
}

/// Returns the plan of a broadcast's message and its crossings.
fn one_for_all(source: PeId, pes: usize, flits: u64, plan: Broadcast) -> StaticPlan {
    let mut hops = plan.hops;
    hops.sort_by_key(|hop| (hop.first_step, hop.from, hop.to));
    StaticPlan {
        operation: "broadcast",
        pes,
        messages: vec![PlannedMessage::to_others(0, source, pes, flits)],
        time_steps: plan.time_steps,
        kept_flits: plan.kept_flits,
        crossings: Crossings::Listed(hops),
        ..StaticPlan::default()
    }
}

/// Plans by this algorithm, or by the one of Flitcast's own that takes fewer steps.
fn on_tree(tree: &Tree, asked: Algorithm, flits: u64) -> Result<(Algorithm, Broadcast), PlanError> {
    if asked == Algorithm::ChildByChild {
        return Ok((asked, broadcast::child_by_child(tree, flits)));
    }
    let rounds = broadcast::rounds(tree, flits);
    let is_best = rounds.time_steps == broadcast::least_steps(tree, flits);
    let can_be_urgent = check_size(flits, tree.len());
    match asked {
        Algorithm::Urgent => {
            can_be_urgent?;
            Ok((asked, broadcast::urgent(tree, flits)))
        }
        Algorithm::Auto if !is_best && can_be_urgent.is_ok() => {
            let urgent = broadcast::urgent(tree, flits);
            Ok(match urgent.time_steps < rounds.time_steps {
                true => (Algorithm::Urgent, urgent),
                false => (Algorithm::Rounds, rounds),
            })
        }
        _ => Ok((Algorithm::Rounds, rounds)),
    }
}

/// Plans in a complete network, by the algorithm with the fewest steps unless one is named.
fn complete(args: &PlanBroadcastArgs, from: PeId, pes: usize) -> Result<StaticPlan, PlanErrors> {
    let planned = laying(pes).filter_map(|one| shared(args, one, from, pes).ok());
    let best = planned.min_by_key(|planned| planned.time_steps);
    best.map_or_else(|| shared(args, Algorithm::Path, from, pes), Ok)
}

/// Plans in a complete network with one port for each PE, by one of the algorithms that build their own
/// trees.
fn shared(
    args: &PlanBroadcastArgs,
    algorithm: Algorithm,
    from: PeId,
    pes: usize,
) -> Result<StaticPlan, PlanErrors> {
    let laid = among_all(algorithm, pes, from, args.size);
    let PlannedTree { tree, plan } = laid.map_err(|why| match why {
        NotPlanned::Unfit(why) => {
            let algorithm = algorithm.name();
            PlanError::Unfit { algorithm, why }
        }
        NotPlanned::TooMuch(fault) => fault.into(),
    })?;
    Ok(StaticPlan {
        algorithm: algorithm.name(),
        ports: "shared",
        name: args.tree.network.clone().unwrap_or_default(),
        bound_steps: broadcast::least_steps_of_complete(pes, args.size),
        played: played(tree, algorithm, args.size),
        ..one_for_all(from, pes, args.size, plan)
    })
}

/// Returns the state machines of a broadcast over a tree, which is rooted at its source.
fn played(tree: Tree, algorithm: Algorithm, flits: u64) -> Played {
    let operation = algorithm.operation();
    if operation.is_static() && flits > MOST_BLOCKS {
        return Played::ByNobody(format!(
            "of more than {MOST_BLOCKS} flits several go together by {}, so the state machines do not \
             play what is planned flit by flit: take a smaller --size",
            algorithm.name()
        ));
    }
    let length = |pe: PeId| flits * u64::from(pe != tree.root());
    Played::ByAll {
        flits: tree.ids().map(length).collect(),
        tree: Arc::new(tree),
        operation,
    }
}
