//! `flitcast compare` of broadcasts, gossips on a tree and exchanges: the steps of all algorithms that fit, and the flits
//! that a PE keeps for others meanwhile.

use anyhow::anyhow;
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::broadcast_plan::least_steps_of_complete;
use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_plan::algorithms::{CycleGossip, ListTask, NotPlanned, OfferKind};
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::PeId;
use flitcast_proto::ops::Collective;
use serde::Serialize;
use serde_json::json;

use super::{CompareBroadcastArgs, CompareExchangeArgs, CompareGossipArgs, Named, spanning};
use flitcast_cluster::algorithms::listed::{TreeGossip, among_all};
use flitcast_cluster::algorithms::plan_limits::{
    MOST_CROSSINGS_OF_ONE, check_flits, check_pes, check_size,
};
use flitcast_cluster::options::broadcast::BroadcastAlgorithm;
use flitcast_cluster::options::flits::{deal_flits_to_all, lengths_of_all_in_flits};
use flitcast_cluster::options::format::Format;
use flitcast_cluster::options::pes::source;
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::values::{is_for_trees, joined};
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::figures::{self, beside, fitted, heading};
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::screen::columns;

#[derive(Default, Serialize)]
struct Comparison {
    operation: &'static str,
    /// The ports of a PE; "shared" in a complete network.
    ports: &'static str,
    pes: usize,
    /// The source of a broadcast.
    #[serde(skip)]
    source: Option<PeId>,
    flits: u64,
    bound_steps: u64,
    /// The trees or networks that the bound holds for, as human-readable text; empty if it holds for
    /// any.
    #[serde(skip)]
    bound_over: &'static str,
    results: Vec<Row>,
    why: Option<String>,
    /// Remarks on the whole comparison, as human-readable text.
    #[serde(skip)]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    /// The given tree, or the network on which the algorithm builds its own.
    tree: String,
    algorithm: String,
    time_steps: u64,
    over_bound: f64,
    /// The largest number of flits that a PE keeps for others at the end of a step.
    kept_flits: u64,
    best: bool,
}

impl Row {
    /// Creates a row that is not compared with the others yet.
    fn new(tree: &str, algorithm: impl Into<String>, plan: &Timetable) -> Row {
        Row {
            tree: tree.to_owned(),
            algorithm: algorithm.into(),
            time_steps: plan.time_steps,
            over_bound: 1.0,
            kept_flits: plan.kept_flits(),
            best: false,
        }
    }
}

impl Comparison {
    /// Returns the comparison of all rows as it is printed.
    fn printed(mut self, format: Format) -> String {
        for row in self.results.iter_mut().filter(|_| self.bound_steps > 0) {
            row.over_bound = row.time_steps as f64 / self.bound_steps as f64;
        }
        let key = |place: &usize| {
            let row = &self.results[*place];
            (row.time_steps, row.kept_flits)
        };
        if let Some(best) = (0..self.results.len()).min_by_key(key) {
            self.why = self.why(best);
            self.results[best].best = true;
        }
        match format {
            Format::Json => format!("{:#}\n", json!(self)),
            _ => self.text(),
        }
    }

    /// Explains in one line why a row is the best; empty if there is no other row.
    fn why(&self, place: usize) -> Option<String> {
        let row = &self.results[place];
        let others = self.results.iter().enumerate();
        let others = others.filter(|(other, _)| *other != place);
        let next = others.min_by_key(|(_, other)| (other.time_steps, other.kept_flits));
        let (_, next) = next?;
        let has_one_tree = self.results.iter().all(|other| other.tree == row.tree);
        let named = |row: &Row| match has_one_tree {
            true => row.algorithm.clone(),
            false => format!("{} on {}", row.algorithm, row.tree),
        };
        let bound_met = match row.time_steps == self.bound_steps {
            true => ", which is the bound",
            false => "",
        };
        let behind = next.time_steps - row.time_steps;
        let reason = if behind > 0 {
            let behind = counted(behind, "step", "steps");
            format!("{behind} before {}", named(next))
        } else if row.kept_flits < next.kept_flits {
            let kept = counted(next.kept_flits, "flit", "flits");
            format!("as fast as {}, where a PE keeps {kept}", named(next))
        } else {
            format!("no slower than {}", named(next))
        };
        let steps = counted(row.time_steps, "step", "steps");
        Some(format!("{}: {steps}{bound_met}; {reason}", named(row)))
    }

    fn text(&self) -> String {
        let header = ["", "tree", "algorithm", "steps", "over bound", "most kept"];
        let mut table = figures::table(header);
        for row in &self.results {
            table.add_row([
                if row.best { "*" } else { "" }.to_owned(),
                row.tree.clone(),
                row.algorithm.clone(),
                row.time_steps.to_string(),
                format!("{:.3}", row.over_bound),
                row.kept_flits.to_string(),
            ]);
        }
        let from = self.source.map(|pe| format!(" from {pe}"));
        let title = format!(
            "{} of {}{} over {}, {} ports; no schedule{} takes less than {}",
            self.operation,
            counted(self.flits, "flit", "flits"),
            from.unwrap_or_default(),
            counted(self.pes as u64, "PE", "PEs"),
            self.ports,
            self.bound_over,
            counted(self.bound_steps, "step", "steps"),
        );
        let width = columns();
        let heading = heading(&title, width);
        let why = self.why.iter().map(|why| beside("*", 2, why, width));
        let notes = self.notes.iter().map(|note| beside("", 0, note, width));
        let mut notes: String = why.chain(notes).collect();
        if !notes.is_empty() {
            notes.insert(0, '\n');
        }
        let table = fitted(table, 3, &["most kept", "over bound", "tree"], width);
        format!("{heading}\n\n{table}{notes}")
    }
}

/// Compares all broadcasts that fit, on the given trees and on those that they build in a complete network.
pub fn broadcast(args: &CompareBroadcastArgs) -> Result<String, Faults> {
    let network = args.tree.network().map(|it| it.parse::<NetworkSpec>());
    let reach_all = matches!(network, Some(Ok(NetworkSpec::Complete { .. })));
    let mut faults = Faults::default();
    let trees = faults.take(spanning(&args.tree));
    let ports = faults.take(args.ports.fit(reach_all));
    let (Some(trees), Some(())) = (trees, ports) else {
        return Err(faults);
    };
    let from = source(args.from.as_deref(), &trees[0].names, &trees[0].tree)?;
    let (pes, flits) = (trees[0].tree.len(), args.size);
    let (mut results, mut bounds, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let listed = || Algorithm::listed(Collective::Broadcast);
    for Named { name, tree, .. } in &trees {
        let size = [flits];
        let task = ListTask::new(tree, from, &size, args.ports.of_model());
        bounds.push(Algorithm::BROADCAST_ROUNDS.least_steps_of_list(&task));
        for one in listed().filter(|one| is_for_trees(*one)) {
            let plan = one.list(&task).ok();
            results.extend(plan.map(|plan| Row::new(name, one.name(), &plan)));
        }
    }
    let (mut bound_steps, mut bound_over) = (bounds.into_iter().min().unwrap_or(0), over(&trees));
    // The algorithms whose edges the network has, beside those over the given trees.
    let kind = network.and_then(Result::ok).map(|it| it.to_string());
    for one in BroadcastAlgorithm::among_all() {
        let has_edges = |kind: &String| one.operation().has_edges_of(kind);
        let is_part = args.ports == Ports::Single && kind.as_ref().is_some_and(has_edges);
        if !reach_all && !is_part {
            continue;
        }
        (bound_steps, bound_over) = (least_steps_of_complete(pes, flits), "");
        if let Ok((_, plan)) = among_all(one, &trees[0].tree, from, flits) {
            let network = args.tree.network().unwrap_or_default();
            results.push(Row::new(&format!("{network}, its own"), one.name(), &plan));
        }
    }
    if check_size(flits, pes).is_err() && args.ports == Ports::Single {
        let flit_by_flit = listed().filter(|one| one.is_planned_flit_by_flit());
        notes.push(format!(
            "{} are left out: they are worked out flit by flit, for at most {MOST_CROSSINGS_OF_ONE} \
             crossings of edges",
            joined(flit_by_flit.map(Algorithm::name), "and"),
        ));
    }
    let comparison = Comparison {
        operation: "broadcast",
        ports: ports_name(args.ports, reach_all),
        pes,
        source: Some(from),
        flits,
        bound_steps,
        bound_over,
        results,
        notes,
        ..Comparison::default()
    };
    Ok(comparison.printed(args.format))
}

/// Compares exchanges over the edges of trees, or in a complete network.
pub fn exchange(args: &CompareExchangeArgs) -> Result<String, Faults> {
    let network = args.tree.network();
    let spec = network.as_ref().map(|it| it.parse::<NetworkSpec>());
    let reach_all = matches!(spec, Some(Ok(NetworkSpec::Complete { .. })));
    let mut faults = Faults::default();
    let trees = faults.take(spanning(&args.tree));
    let lengths = faults.take(args.flits.read());
    let ports = faults.take(args.ports.fit(reach_all));
    let (Some(trees), Some(lengths), Some(())) = (trees, lengths, ports) else {
        return Err(faults);
    };
    let pes = trees[0].tree.len();
    let flits = lengths.of_pes(pes)?.concat();
    let (mut results, mut bounds, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    // A complete network has one comparison, whichever trees span it.
    let trees = &trees[..if reach_all { 1 } else { trees.len() }];
    for Named { name, tree, .. } in trees {
        let task = ListTask::new(tree, tree.root(), &flits, args.ports.of_model());
        let listed = Algorithm::listed(Collective::Exchange);
        for one in listed.filter(|one| is_for_trees(*one) != reach_all) {
            let name = network.as_ref().filter(|_| reach_all).unwrap_or(name);
            match one.list(&task) {
                Ok(plan) => results.push(Row::new(name, one.name(), &plan)),
                Err(NotPlanned::TooMuch(fault)) if one.offer().kind == OfferKind::Choice => {
                    return Err(fault.into());
                }
                Err(NotPlanned::TooMuch(_)) => {}
                Err(NotPlanned::Unfit(why)) => {
                    let why = why.trim_start_matches("it is ");
                    notes.push(format!("{} are {why}", one.name()));
                }
            }
            bounds.push(one.least_steps_of_list(&task));
        }
    }
    let comparison = Comparison {
        operation: "exchange",
        ports: ports_name(args.ports, reach_all),
        pes,
        flits: flits.iter().sum(),
        bound_steps: bounds.into_iter().min().unwrap_or(0),
        bound_over: if reach_all { "" } else { over(trees) },
        results,
        notes,
        ..Comparison::default()
    };
    Ok(comparison.printed(args.format))
}

/// Compares gossips over the edges of trees.
pub fn gossip(args: &CompareGossipArgs) -> Result<String, Faults> {
    let mut faults = Faults::default();
    let trees = faults.take(spanning(&args.tree));
    let lengths = match &args.lengths {
        Some(lengths) => faults.take(lengths_of_all_in_flits(lengths)),
        None => faults.take(Err(anyhow!(
            "--lengths: missing; give the length of each PE's message, for example equal:1"
        ))),
    };
    let prices = faults.take(args.prices.check_absent());
    let (Some(trees), Some(lengths), Some(())) = (trees, lengths, prices) else {
        return Err(faults);
    };
    let flits = &deal_flits_to_all(&lengths, trees[0].tree.len())?;
    check_pes(flits.len())?;
    let total = check_flits("--lengths", flits)?;
    let (mut results, mut bounds, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for Named { name, tree, .. } in &trees {
        let task = ListTask::new(tree, tree.root(), flits, args.ports.of_model());
        bounds.push(Algorithm::GOSSIP_FLOOD.least_steps_of_list(&task));
        for one in TreeGossip::compared() {
            match (one.plan(&task), one) {
                (Ok(plan), _) => results.push(Row::new(name, one.to_string(), &plan)),
                (Err(NotPlanned::TooMuch(fault)), TreeGossip::Listed(_)) => {
                    return Err(fault.into());
                }
                (Err(_), TreeGossip::Listed(listed)) => {
                    let needs = listed.offer().needs;
                    notes.push(format!("{one} is left out: it is planned for {needs}"));
                }
                (Err(_), TreeGossip::InCycles(_)) => {}
            }
        }
    }
    notes.dedup();
    let fit = trees.iter().all(|named| CycleGossip::fits(&named.tree));
    if args.ports == Ports::Single && !fit {
        notes.push(CycleGossip::LEFT_OUT.to_owned());
    }
    let comparison = Comparison {
        operation: "gossip",
        ports: args.ports.name(),
        pes: flits.len(),
        flits: total,
        bound_steps: bounds.into_iter().min().unwrap_or(0),
        bound_over: over(&trees),
        results,
        notes,
        ..Comparison::default()
    };
    Ok(comparison.printed(args.format))
}

/// Returns the ports of a PE, which are shared in a complete network.
fn ports_name(ports: Ports, reach_all: bool) -> &'static str {
    match reach_all {
        true => "shared",
        false => ports.name(),
    }
}

/// Returns the text that limits a bound to these trees, because it does not hold for all trees of the
/// network.
fn over(trees: &[Named]) -> &'static str {
    match trees {
        [_] => " over this tree",
        _ => " over these trees",
    }
}
