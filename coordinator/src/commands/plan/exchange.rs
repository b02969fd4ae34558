//! `flitcast plan exchange`: every PE sends a different message to every other.

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::{ListTask, OfferKind};
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::ops::Collective;

use super::args::PlanExchangeArgs;
use super::error::unfit;
use super::input::topology;
use super::static_plan::StaticPlan;
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::options::values::{AUTO, is_for_trees, joined, planned_names};
use flitcast_cluster::text::faults::Faults;

pub fn plan(args: &PlanExchangeArgs) -> Result<StaticPlan, Faults> {
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
    let planned = StaticPlan::quickest(algorithms.into_iter(), &args.algorithm, &task)?;
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
    let mut named: Vec<Algorithm> = fitting
        .filter(|one| match name {
            AUTO => one.offer().kind == OfferKind::Choice,
            _ => one.name() == name,
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
            "with --network complete:N there are {}; {} is for --tree",
            all(false),
            Algorithm::EXCHANGE_TREE.name(),
        ),
    };
    Err(unfit(name, why))
}
