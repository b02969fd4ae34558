//! `flitcast plan exchange`: every PE sends a different message to every other.

use std::sync::Arc;

use flitcast_plan::algorithms::{
    TreeRequirement, blocks, exchange_hosts as hosts, exchange_plan as exchange,
};
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::{PeId, Tree};

use super::args::PlanExchangeArgs;
use super::error::{PlanError, PlanErrors};
use super::played::Played;
use super::static_plan::{PlannedMessage, StaticPlan};
use crate::algorithms::method::operation_by;
use crate::algorithms::plan_limits::{MOST_HOSTS_OF_ROUNDS, PlanTooLarge};
use crate::algorithms::tree_plans::{self, Bounded};
use crate::options::ports::Ports;
use crate::options::tree::SpanningArg;
use crate::site::topology::Topology;

/// Returns the requested plan, or all errors in the command line.
pub fn plan(args: &PlanExchangeArgs) -> Result<StaticPlan, PlanErrors> {
    let network = args.tree.network.as_deref().map(str::parse::<NetworkSpec>);
    let reach_all = matches!(network, Some(Ok(NetworkSpec::Complete { .. })));
    let mut faults = PlanErrors::default();
    let topology = faults.take(args.tree.topology(SpanningArg::Bfs));
    let lengths = faults.take(args.flits.read());
    let fits = faults.take(check_algorithm(args, reach_all));
    let ports = faults.take(args.ports.fit(reach_all));
    let (Some(topology), Some(lengths), Some(()), Some(())) = (topology, lengths, fits, ports)
    else {
        return Err(faults);
    };
    let flits = lengths.of_pes(topology.tree.len())?;
    let plan = match reach_all {
        true => between_hosts(args, &flits)?,
        false => on_tree(args, &topology, &flits)?,
    };
    Ok(StaticPlan {
        operation: "exchange",
        pes: flits.len(),
        messages: messages(&flits),
        played: Played::by_ports(args.ports, || played(&topology, &plan, &flits)),
        ..plan
    })
}

/// Checks that the algorithm supports a tree, or a complete network if `reach_all`.
fn check_algorithm(args: &PlanExchangeArgs, reach_all: bool) -> Result<(), PlanError> {
    let why = match (args.algorithm.as_str(), reach_all) {
        ("auto" | "tree" | "ring-emulation", false) => return Ok(()),
        (_, false) => {
            "over the edges of a tree there are auto, tree and ring-emulation; rounds and shifts are for \
             --network complete:N, where all PEs reach each other"
        }
        ("auto" | "rounds" | "shifts", true) => return Ok(()),
        (_, true) => {
            "where all PEs reach each other there are auto, rounds and shifts; tree is for --tree"
        }
    };
    Err(unfit(args, why))
}

fn unfit(args: &PlanExchangeArgs, why: &str) -> PlanError {
    PlanError::Unfit {
        algorithm: args.algorithm.clone(),
        why: why.to_owned(),
    }
}

/// Returns the state machines of an exchange by the algorithm of a plan.
fn played(topology: &Topology, plan: &StaticPlan, flits: &[Vec<u64>]) -> Played {
    let Some(operation) = operation_by("exchange", &plan.algorithm) else {
        return Played::default();
    };
    let block = match operation.fits() {
        TreeRequirement::Trees => blocks::of_exchange(&topology.tree, flits),
        _ => 1,
    };
    Played::flit_by_flit(block, || Played::ByAll {
        flits: flits.concat(),
        tree: Arc::new(topology.tree.clone()),
        operation,
    })
}

/// A planner of an exchange over the edges of a tree.
type TreePlanner = fn(&Tree, &[Vec<u64>], Ports) -> Result<Bounded, PlanTooLarge>;

fn on_tree(
    args: &PlanExchangeArgs,
    topology: &Topology,
    flits: &[Vec<u64>],
) -> Result<StaticPlan, PlanError> {
    let (name, planner): (_, TreePlanner) = match args.algorithm.as_str() {
        "ring-emulation" => ("ring-emulation", tree_plans::exchange_around),
        _ => ("tree", tree_plans::exchange),
    };
    let (plan, bound_steps) = planner(&topology.tree, flits, args.ports)?;
    Ok(StaticPlan {
        algorithm: name.to_owned(),
        bound_steps,
        ..StaticPlan::of(plan).over(topology, args.ports)
    })
}

/// Plans in a complete network with one port for each PE. Shifts, which leave messages whole, are
/// chosen if nothing is faster.
fn between_hosts(args: &PlanExchangeArgs, flits: &[Vec<u64>]) -> Result<StaticPlan, PlanError> {
    let bound = hosts::least_steps(flits);
    let is_small = flits.len() <= MOST_HOSTS_OF_ROUNDS;
    let (algorithm, plan) = match args.algorithm.as_str() {
        "rounds" if !is_small => {
            let why = format!("it is worked out for at most {MOST_HOSTS_OF_ROUNDS} PEs");
            return Err(unfit(args, &why));
        }
        "rounds" => ("rounds", hosts::rounds(flits)),
        asked => {
            let shifts = hosts::shifts(flits);
            match asked == "auto" && is_small && shifts.time_steps > bound {
                true => ("rounds", hosts::rounds(flits)),
                false => ("shifts", shifts),
            }
        }
    };
    Ok(StaticPlan {
        name: args.tree.network.clone().unwrap_or_default(),
        ports: "shared",
        algorithm: algorithm.to_owned(),
        bound_steps: bound,
        ..StaticPlan::of(plan)
    })
}

fn messages(flits: &[Vec<u64>]) -> Vec<PlannedMessage> {
    let pes = || (0..flits.len() as u32).map(PeId);
    let pairs = pes().flat_map(|from| pes().map(move |to| (from, to)));
    let nonnull = pairs.filter_map(|(source, to)| {
        let flits_of_it = flits[source.index()][to.index()];
        let id = exchange::message(source, to, flits.len()).0;
        (flits_of_it > 0).then(|| PlannedMessage::to_one(id, [source, to], flits_of_it))
    });
    nonnull.collect()
}
