//! `flitcast plan` where the plan is a list of crossings: a broadcast, an exchange, a gossip over the edges of a
//! tree, and a scatter from any PE or by many ports.

use std::sync::Arc;

use anyhow::anyhow;
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::broadcast_plan::least_steps_of_complete;
use flitcast_plan::algorithms::plan::{plan_scatter, plan_scatter_by_branch};
use flitcast_plan::algorithms::{ListTask, OfferKind};
use flitcast_plan::network::NetworkSpec;
use flitcast_plan::schedule::scatter;
use flitcast_proto::ops::Collective;
use flitcast_proto::{PeId, Tree};

use super::args::{Order, PlanBroadcastArgs, PlanExchangeArgs, PlanGossipArgs, PlanScatterArgs};
use super::input::{not_planned, topology, topology_and_lengths, unfit};
use super::static_plan::{Crossings, PlannedMessage, Played, StaticPlan};
use flitcast_cluster::algorithms::listed::{TreeGossip, among_all};
use flitcast_cluster::algorithms::plan_limits::{check_flits, check_pes};
use flitcast_cluster::options::broadcast::BroadcastAlgorithm;
use flitcast_cluster::options::flits::{deal_flits, deal_flits_to_all, lengths_of_all_in_flits};
use flitcast_cluster::options::pes::source;
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::options::values::{AUTO, is_for_trees, joined, planned_names};
use flitcast_cluster::text::faults::Faults;

pub fn broadcast(args: &PlanBroadcastArgs) -> Result<StaticPlan, Faults> {
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
    let operation = args.algorithm.operation();
    let has_edges = network.is_some_and(|it| operation.has_edges_of(&it.to_string()));
    let named = match args.algorithm {
        _ if has_edges && args.ports == Ports::Multi => {
            return unfit("a PE sends by one port at a time: leave out --ports");
        }
        BroadcastAlgorithm::Auto if reach_all => return complete(args, tree, from),
        BroadcastAlgorithm::Auto => None,
        one if one.is_for_trees() => Some(operation),
        one if reach_all || has_edges => return shared(args, one, tree, from),
        _ => return unfit("it is for --network complete:N, where all PEs reach each other"),
    };
    let flits = [args.size];
    let task = ListTask::new(tree, from, &flits, args.ports.of_model());
    let all = Algorithm::listed(Collective::Broadcast);
    let all = all.filter(|one| named.map_or(is_for_trees(*one), |named| *one == named));
    let planned = StaticPlan::quickest(all.collect(), &args.algorithm.name(), &task)?;
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

pub fn exchange(args: &PlanExchangeArgs) -> Result<StaticPlan, Faults> {
    let network = args.tree.network().map(|it| it.parse::<NetworkSpec>());
    let reach_all = matches!(network, Some(Ok(NetworkSpec::Complete { .. })));
    let mut faults = Faults::default();
    let topology = faults.take(topology(&args.tree, SpanningArg::Bfs));
    let lengths = faults.take(args.flits.read());
    let algorithms = faults.take(algorithms(&args.algorithm, reach_all));
    let ports = faults.take(args.ports.fit(reach_all));
    let (Some(topology), Some(lengths), Some(algorithms), Some(())) =
        (topology, lengths, algorithms, ports)
    else {
        return Err(faults);
    };
    let rows = lengths.of_pes(topology.tree.len())?;
    let (tree, rows) = (&topology.tree, rows.concat());
    let task = ListTask {
        setup_flits: args.print.links.setup_flits(),
        ..ListTask::new(tree, tree.root(), &rows, args.ports.of_model())
    };
    let planned = StaticPlan::quickest(algorithms, &args.algorithm, &task)?;
    Ok(match reach_all {
        true => planned.among_all(args.tree.network()),
        false => planned.over(&topology, args.ports),
    })
}

/// Returns the algorithms of this name on a tree, or on a complete network if `reach_all`: for `auto`
/// all that can be chosen, in reverse order, so that one that leaves messages whole wins a tie.
fn algorithms(name: &str, reach_all: bool) -> anyhow::Result<Vec<Algorithm>> {
    let listed = Algorithm::listed(Collective::Exchange);
    let fitting = listed.filter(|one| is_for_trees(*one) != reach_all);
    let named = fitting.filter(|one| match name {
        AUTO => one.offer().kind == OfferKind::Choice,
        _ => one.name() == name,
    });
    let mut named: Vec<Algorithm> = named.collect();
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
            "with --network complete:N there are {}; {} is for --tree",
            all(false),
            Algorithm::EXCHANGE_TREE.name(),
        ),
    };
    Err(unfit(name, why))
}

pub fn gossip(args: &PlanGossipArgs) -> Result<StaticPlan, Faults> {
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

/// Returns the requested algorithm of a scatter, if it has a static schedule.
pub fn listed(args: &PlanScatterArgs) -> Option<Algorithm> {
    let mut all = Algorithm::listed(Collective::Scatter);
    all.find(|one| args.algorithm.as_deref() == Some(one.name()))
}

/// Plans a scatter from any PE: by a requested static schedule, or else farthest destination first; with many
/// ports, in each branch.
pub fn scatter(args: &PlanScatterArgs) -> Result<StaticPlan, Faults> {
    if !matches!(args.order, None | Some(Order::FarthestFirst)) {
        let why = "is for a scatter from P0 by single ports: leave it out, or --from and --ports";
        return Err(anyhow!("--order {why}").into());
    }
    let (topology, lengths) = topology_and_lengths(&args.plan, SpanningArg::Bfs)?;
    let names = topology.places().names();
    let from = source(args.from.as_deref(), &names, &topology.tree)?;
    let tree = Arc::new(topology.tree.rerooted(from));
    let flits = deal_flits(&lengths, &tree)?;
    let planned = match listed(args) {
        Some(algorithm) => {
            let task = ListTask::new(&topology.tree, from, &flits, args.ports.of_model());
            StaticPlan {
                played: Played::default(),
                ..StaticPlan::quickest(vec![algorithm], algorithm.name(), &task)?
            }
        }
        None => farthest_first(tree, flits, args.ports),
    };
    Ok(planned.over(&topology, args.ports))
}

/// Plans a scatter from the root of a tree, farthest destination first.
fn farthest_first(tree: Arc<Tree>, flits: Vec<u64>, ports: Ports) -> StaticPlan {
    let plans = match ports {
        Ports::Multi => plan_scatter_by_branch(&tree, &flits),
        Ports::Single => {
            let order = scatter::farthest_first(&tree, &flits);
            plan_scatter(&tree, &flits, &order).messages
        }
    };
    let messages = plans
        .iter()
        .map(|plan| PlannedMessage::to_one(plan.pe.0.into(), [tree.root(), plan.pe], plan.flits));
    let time_steps = plans.iter().map(|plan| plan.arrival_step).max();
    let has_relay = plans.iter().any(|plan| tree.depth(plan.pe) > 1);
    StaticPlan {
        operation: "scatter",
        algorithm: "fdf".to_owned(),
        messages: messages.collect(),
        time_steps: time_steps.unwrap_or(0),
        // Farthest first is optimal, in each branch as well.
        bound_steps: time_steps.unwrap_or(0),
        kept_flits: u64::from(has_relay),
        played: Played::by_ports(ports.of_model(), || Played::ByAll {
            tree: tree.clone(),
            operation: Algorithm::FARTHEST_FIRST,
            flits,
        }),
        crossings: Crossings::Ways(tree, plans),
        ..StaticPlan::default()
    }
}
