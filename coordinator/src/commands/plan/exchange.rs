//! `flitcast plan exchange`: every PE sends a different message to every other.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::{ListTask, OfferKind, blocks, exchange_plan as exchange};
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::PeId;
use flitcast_proto::ops::Collective;

use super::args::PlanExchangeArgs;
use super::error::{PlanError, PlanErrors};
use super::played::Played;
use super::static_plan::{PlannedMessage, StaticPlan};
use crate::algorithms::listed::quickest;
use crate::algorithms::values::{AUTO, is_for_trees, joined, planned_names};
use crate::options::tree::SpanningArg;
use crate::site::topology::Topology;

/// Returns the requested plan, or all errors in the command line.
pub fn plan(args: &PlanExchangeArgs) -> Result<StaticPlan, PlanErrors> {
    let network = args.tree.network.as_deref().map(str::parse::<NetworkSpec>);
    let reach_all = matches!(network, Some(Ok(NetworkSpec::Complete { .. })));
    let mut faults = PlanErrors::default();
    let topology = faults.take(args.tree.topology(SpanningArg::Bfs));
    let lengths = faults.take(args.flits.read());
    let algorithms = faults.take(algorithms(&args.algorithm, reach_all));
    let ports = faults.take(args.ports.fit(reach_all));
    let (Some(topology), Some(lengths), Some(algorithms), Some(())) =
        (topology, lengths, algorithms, ports)
    else {
        return Err(faults);
    };
    let rows = lengths.of_pes(topology.tree.len())?;
    let task = ListTask {
        tree: &topology.tree,
        source: topology.tree.root(),
        flits: &rows.concat(),
        ports: args.ports.of_model(),
    };
    let planned = match algorithms[..] {
        [only] => only.list(&task).map(|plan| (only, plan)),
        _ => quickest(algorithms.iter().copied(), &task),
    };
    let (algorithm, plan) = planned.map_err(|why| PlanError::not_planned(&args.algorithm, why))?;
    let planned = StaticPlan {
        operation: "exchange",
        algorithm: algorithm.algorithm().to_owned(),
        bound_steps: algorithm.least_steps_of_list(&task),
        messages: messages(&rows),
        played: Played::by_ports(args.ports, || played(&topology, algorithm, &rows)),
        ..StaticPlan::of(plan)
    };
    Ok(match reach_all {
        true => StaticPlan {
            name: args.tree.network.clone().unwrap_or_default(),
            ports: "shared",
            pes: rows.len(),
            ..planned
        },
        false => planned.over(&topology, args.ports),
    })
}

/// Returns the algorithms of this name on a tree, or on a complete network if `reach_all`: for `auto`
/// all that can be chosen. Of equally quick ones the last of the registry, which leaves messages whole,
/// comes first.
fn algorithms(name: &str, reach_all: bool) -> Result<Vec<Algorithm>, PlanError> {
    let listed = Algorithm::listed(Collective::Exchange);
    let fitting = listed.filter(|one| is_for_trees(*one) != reach_all);
    let mut named: Vec<Algorithm> = fitting
        .filter(|one| match name {
            AUTO => one.offer() == OfferKind::Choice,
            _ => one.algorithm() == name,
        })
        .collect();
    named.reverse();
    if !named.is_empty() {
        return Ok(named);
    }
    let names = |on_trees| planned_names(Collective::Exchange, on_trees);
    let all = |on_trees| joined([AUTO].into_iter().chain(names(on_trees)), "and");
    let why = match reach_all {
        false => format!(
            "over the edges of a tree there are {}; {} are for --network complete:N, where all PEs reach \
             each other",
            all(true),
            joined(names(false), "and"),
        ),
        true => format!(
            "where all PEs reach each other there are {}; {} is for --tree",
            all(false),
            Algorithm::EXCHANGE_TREE.algorithm(),
        ),
    };
    let algorithm = name.to_owned();
    Err(PlanError::Unfit { algorithm, why })
}

/// Returns the state machines of an exchange, if PEs run the algorithm.
fn played(topology: &Topology, operation: Algorithm, rows: &[Vec<u64>]) -> Played {
    if operation.offer() == OfferKind::Planned {
        return Played::default();
    }
    let block = match is_for_trees(operation) {
        true => blocks::of_exchange(&topology.tree, rows),
        false => 1,
    };
    Played::flit_by_flit(block, || Played::ByAll {
        flits: rows.concat(),
        tree: Arc::new(topology.tree.clone()),
        operation,
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
