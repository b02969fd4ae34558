//! `flitcast compare broadcast`: all algorithms that fit, on the given trees and on those that they
//! build in a complete network.

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::ListTask;
use flitcast_plan::algorithms::broadcast_plan::least_steps_of_complete;
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::PeId;
use flitcast_proto::ops::Collective;

use super::args::CompareBroadcastArgs;
use super::crossings::{Comparison, Row};
use super::trees::{Named, over, spanning};
use flitcast_cluster::algorithms::listed::among_all;
use flitcast_cluster::algorithms::plan_limits::{MOST_CROSSINGS_OF_ONE, check_size};
use flitcast_cluster::options::broadcast::BroadcastAlgorithm;
use flitcast_cluster::options::pes::source;
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::values::{is_for_trees, joined};
use flitcast_cluster::text::faults::Faults;

pub fn compared(args: &CompareBroadcastArgs) -> Result<String, Faults> {
    let network = args.tree.network().map(|it| it.parse::<NetworkSpec>());
    let reach_all = matches!(network, Some(Ok(NetworkSpec::Complete { .. })));
    let mut faults = Faults::default();
    let trees = faults.take(spanning(&args.tree));
    let ports = faults.take(args.ports.fit(reach_all));
    let (Some(trees), Some(())) = (trees, ports) else {
        return Err(faults);
    };
    let from = source(args.from.as_deref(), &trees[0].names, &trees[0].tree)?;
    let kind = network.and_then(Result::ok).map(|it| it.to_string());
    // The algorithms whose edges the network has, beside those over the given trees.
    let others = BroadcastAlgorithm::among_all().filter(|one| {
        let has_edges = |kind: &String| one.operation().has_edges_of(kind);
        let is_part = args.ports == Ports::Single && kind.as_ref().is_some_and(has_edges);
        reach_all || is_part
    });
    let others: Vec<BroadcastAlgorithm> = others.collect();
    Ok(comparison(args, &trees, from, &others, reach_all).printed(args.format))
}

fn comparison(
    args: &CompareBroadcastArgs,
    trees: &[Named],
    from: PeId,
    others: &[BroadcastAlgorithm],
    reach_all: bool,
) -> Comparison {
    let (pes, flits) = (trees[0].tree.len(), args.size);
    let (mut rows, mut bounds) = (Vec::new(), Vec::new());
    for Named { name, tree, .. } in trees {
        let size = [flits];
        let task = ListTask::new(tree, from, &size, args.ports.of_model());
        bounds.push(Algorithm::BROADCAST_ROUNDS.least_steps_of_list(&task));
        let listed = Algorithm::listed(Collective::Broadcast);
        for one in listed.filter(|one| is_for_trees(*one)) {
            let plan = one.list(&task).ok();
            rows.extend(plan.map(|plan| Row::new(name, one.name(), &plan)));
        }
    }
    let network = args.tree.network().unwrap_or_default();
    for one in others {
        if let Ok((_, plan)) = among_all(*one, &trees[0].tree, from, flits) {
            rows.push(Row::new(&format!("{network}, its own"), one.name(), &plan));
        }
    }
    let (bound_steps, bound_over) = match others.is_empty() {
        true => (bounds.into_iter().min().unwrap_or(0), over(trees)),
        false => (least_steps_of_complete(pes, flits), ""),
    };
    let is_too_long = check_size(flits, pes).is_err() && args.ports == Ports::Single;
    let left_out = is_too_long.then(|| {
        let listed = Algorithm::listed(Collective::Broadcast);
        let flit_by_flit = listed.filter(|one| one.is_planned_flit_by_flit());
        format!(
            "{} are left out: they are worked out flit by flit, for at most {MOST_CROSSINGS_OF_ONE} \
             crossings of edges",
            joined(flit_by_flit.map(Algorithm::name), "and"),
        )
    });
    let comparison = Comparison {
        operation: "broadcast",
        ports: match reach_all {
            true => "shared",
            false => args.ports.name(),
        },
        pes,
        source: Some(from),
        flits,
        bound_steps,
        bound_over,
        results: rows,
        notes: left_out.into_iter().collect(),
        ..Comparison::default()
    };
    comparison.compared()
}
