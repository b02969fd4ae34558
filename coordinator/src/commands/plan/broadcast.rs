//! `flitcast plan broadcast`: which flit crosses which edge when.

use flitcast_proto::items::Leg;
use flitcast_proto::network::NetworkSpec;
use flitcast_proto::ops::broadcast_plan::{self as broadcast, Broadcast};
use flitcast_proto::tree::TreeSpec;
use flitcast_proto::{PeId, Tree};

use super::args::PlanBroadcastArgs;
use super::command::PlanError;
use super::static_plan::{Crossings, PlannedMessage, StaticPlan, edges_of, source};
use crate::options::broadcast::BroadcastAlgorithm as Algorithm;
use crate::options::ports::Ports;
use crate::options::tree::SpanningArg;
use crate::site::topology::behind;

/// Crossings that a plan may have which are worked out flit by flit.
const MOST_CROSSINGS: u64 = 20_000_000;

/// The plan that is asked for; all that is wrong with the command line, if something is.
pub fn plan(args: &PlanBroadcastArgs) -> Result<StaticPlan, Vec<PlanError>> {
    let topology = args.tree.topology(SpanningArg::Broadcast);
    let topology = topology.map_err(|all| all.into_iter().map(PlanError::from).collect::<Vec<_>>());
    let topology = topology?;
    let tree = &topology.tree;
    let from = source(args.from, tree).map_err(|fault| vec![fault])?;
    let network = args.tree.network.as_deref().map(str::parse::<NetworkSpec>);
    let network = network.and_then(Result::ok);
    let reach_all = matches!(network, Some(NetworkSpec::Complete { .. }));
    let is_cube = matches!(network, Some(NetworkSpec::Hypercube { .. }));
    let unfit = |why: &str| {
        let (algorithm, why) = (args.algorithm.name(), why.to_owned());
        vec![PlanError::Unfit { algorithm, why }]
    };
    let others = match args.algorithm {
        Algorithm::Hypercube if is_cube => return hypercube(args, from, tree.len()),
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
        return among_all(args, one, from, tree.len());
    }
    let (tree, flits) = (&tree.rerooted(from), args.size);
    let (algorithm, plan) = match (args.ports, args.algorithm) {
        (Ports::Multi, Algorithm::Auto | Algorithm::Rounds) => {
            (Algorithm::Rounds, broadcast::all_ports(tree, flits))
        }
        (Ports::Multi, _) => {
            return Err(unfit(
                "with --ports multi a PE sends to all its children at once",
            ));
        }
        (Ports::Single, one) => on_tree(tree, one, flits).map_err(|fault| vec![fault])?,
    };
    let bound_steps = match args.ports {
        Ports::Single => broadcast::least_steps(tree, flits),
        Ports::Multi => broadcast::least_steps_of_all_ports(tree, flits),
    };
    let pes = tree.len();
    Ok(StaticPlan {
        algorithm: algorithm.name(),
        ports: args.ports.name(),
        name: topology.name.clone(),
        edges: Some(edges_of(&topology.tree)),
        nodes: topology.nodes.clone(),
        time_steps: plan.time_steps,
        bound_steps,
        kept_flits: plan.kept_flits,
        ..one_for_all(from, pes, flits, in_order(plan.legs))
    })
}

/// A broadcast's message, and what crosses.
fn one_for_all(source: PeId, pes: usize, flits: u64, legs: Vec<Leg>) -> StaticPlan {
    let all = (0..pes as u32).map(PeId);
    let message = PlannedMessage {
        id: 0,
        source,
        destinations: all.filter(|pe| *pe != source).collect(),
        flits,
    };
    StaticPlan {
        operation: "broadcast",
        pes,
        messages: vec![message],
        crossings: Crossings::Listed(legs),
        ..StaticPlan::default()
    }
}

/// By this algorithm, or by the one of ours that takes fewer steps.
fn on_tree(tree: &Tree, asked: Algorithm, flits: u64) -> Result<(Algorithm, Broadcast), PlanError> {
    let crossings = flits.saturating_mul(tree.len() as u64);
    if asked == Algorithm::ChildByChild {
        return Ok((asked, broadcast::child_by_child(tree, flits)));
    }
    let rounds = broadcast::rounds(tree, flits);
    let is_best = rounds.time_steps == broadcast::least_steps(tree, flits);
    match asked {
        Algorithm::Urgent if crossings > MOST_CROSSINGS => Err(PlanError::TooManyCrossings {
            crossings,
            most: MOST_CROSSINGS,
        }),
        Algorithm::Auto if !is_best && crossings <= MOST_CROSSINGS => {
            let urgent = broadcast::urgent(tree, flits);
            Ok(match urgent.time_steps < rounds.time_steps {
                true => (Algorithm::Urgent, urgent),
                false => (Algorithm::Rounds, rounds),
            })
        }
        Algorithm::Urgent => Ok((asked, broadcast::urgent(tree, flits))),
        _ => Ok((Algorithm::Rounds, rounds)),
    }
}

/// Where all reach each other: by whichever takes the fewest steps.
fn complete(
    args: &PlanBroadcastArgs,
    from: PeId,
    pes: usize,
) -> Result<StaticPlan, Vec<PlanError>> {
    let arities = (2..=4).map(Algorithm::Kary);
    let all = [Algorithm::Path].into_iter().chain(arities);
    let all = all.chain([Algorithm::Hypercube]);
    let planned = all.filter_map(|one| among_all(args, one, from, pes).ok());
    let best = planned.min_by_key(|planned| planned.time_steps);
    best.map_or_else(|| among_all(args, Algorithm::Path, from, pes), Ok)
}

/// Where all reach each other, by one of the algorithms that lay a tree of their own.
fn among_all(
    args: &PlanBroadcastArgs,
    algorithm: Algorithm,
    from: PeId,
    pes: usize,
) -> Result<StaticPlan, Vec<PlanError>> {
    let Some(spec) = algorithm.tree(pes) else {
        return hypercube(args, from, pes);
    };
    let unfit = |why: String| {
        let algorithm = algorithm.name();
        vec![PlanError::Unfit { algorithm, why }]
    };
    let tree = spec
        .parse::<TreeSpec>()
        .map_err(|fault| unfit(fault.to_string()))?;
    let tree = tree.build().map_err(|fault| unfit(fault.to_string()))?;
    let plan = broadcast::rounds(&tree, args.size);
    Ok(shared(args, algorithm, from, pes, plan, |pe| {
        behind(from, pe)
    }))
}

fn hypercube(
    args: &PlanBroadcastArgs,
    from: PeId,
    pes: usize,
) -> Result<StaticPlan, Vec<PlanError>> {
    let algorithm = Algorithm::Hypercube;
    if !pes.is_power_of_two() {
        let (algorithm, why) = (algorithm.name(), format!("{pes} is no power of 2"));
        return Err(vec![PlanError::Unfit { algorithm, why }]);
    }
    let crossings = args.size.saturating_mul(pes as u64);
    if crossings > MOST_CROSSINGS {
        let most = MOST_CROSSINGS;
        return Err(vec![PlanError::TooManyCrossings { crossings, most }]);
    }
    let plan = broadcast::hypercube(pes.ilog2(), args.size);
    let before = |pe: PeId| PeId(pe.0 ^ from.0);
    Ok(shared(args, algorithm, from, pes, plan, before))
}

/// A plan among PEs that all reach each other, each by one port.
fn shared(
    args: &PlanBroadcastArgs,
    algorithm: Algorithm,
    source: PeId,
    pes: usize,
    plan: Broadcast,
    before: impl Fn(PeId) -> PeId,
) -> StaticPlan {
    StaticPlan {
        algorithm: algorithm.name(),
        ports: "shared",
        name: args.tree.network.clone().unwrap_or_default(),
        time_steps: plan.time_steps,
        bound_steps: broadcast::least_steps_of_complete(pes, args.size),
        kept_flits: plan.kept_flits,
        ..one_for_all(source, pes, args.size, renamed(plan.legs, before))
    }
}

fn renamed(mut legs: Vec<Leg>, before: impl Fn(PeId) -> PeId) -> Vec<Leg> {
    for leg in &mut legs {
        (leg.from, leg.to) = (before(leg.from), before(leg.to));
    }
    in_order(legs)
}

fn in_order(mut legs: Vec<Leg>) -> Vec<Leg> {
    legs.sort_by_key(|leg| (leg.first_step, leg.from, leg.to));
    legs
}
