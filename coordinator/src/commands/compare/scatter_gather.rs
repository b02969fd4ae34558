//! `flitcast compare scatter` and `gather`: the schedules and the baselines on each tree, the best of them, and the
//! reason.

use std::sync::Arc;

use anyhow::anyhow;
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::plan::{Plan, plan, plan_scatter};
use flitcast_plan::baseline::{
    BaselineModel, Flow, Transfer, adaptive_tree, after_token, binomial_tree, flow,
};
use flitcast_plan::cost::Ports::Single;
use flitcast_plan::on_links::of_transfers;
use flitcast_plan::schedule::scatter;
use flitcast_proto::Tree;
use flitcast_proto::ops::Direction;
use serde::Serialize;
use serde_json::json;

use super::{CompareRoundArgs, Named, spanning};
use flitcast_cluster::algorithms::plan_limits::PlanTooLarge;
use flitcast_cluster::job::on_links::{LinkArgs, OnLinks};
use flitcast_cluster::options::baseline::WINDOW;
use flitcast_cluster::options::flits::{deal_flits, lengths_in_flits};
use flitcast_cluster::options::format::Format;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::figures::{self, beside, fitted, heading};
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::screen::columns;
use flitcast_cluster::text::units::Nanos;

/// Limit of flits times PEs: the baselines are computed flit by flit.
const MAX_WORK: u64 = 2_000_000_000;

pub fn compared(operation: Algorithm, args: &CompareRoundArgs) -> Result<String, Faults> {
    let mut faults = Faults::default();
    let trees = faults.take(spanning(&args.tree));
    let lengths = faults.take(lengths_in_flits(&args.lengths));
    let (Some(trees), Some(lengths)) = (trees, lengths) else {
        return Err(faults);
    };
    let pes = trees[0].tree.len();
    // A PE keeps its number, whichever tree spans the network.
    let flits = deal_flits(&lengths, &trees[0].tree)?;
    let total: u64 = flits.iter().sum();
    if total.saturating_mul(pes as u64) > MAX_WORK {
        let many = format!("{total} flits over {pes} PEs are too many");
        return Err(anyhow!("the baselines are carried flit by flit: {many}").into());
    }
    let transport = Transport {
        operation,
        flits: &flits,
        links: &args.links,
    };
    let rows = transport.rows(&trees, &args.tree.network().unwrap_or_default())?;
    // By time reversal no gather is faster than the best scatter: the same flits cross the same
    // edges to P0's single port.
    let bounds = trees.iter();
    let bounds = bounds.map(|named| scatter::optimal_steps(&named.tree, &flits));
    let bound = bounds.min().unwrap_or(0);
    let comparison = Comparison::of(rows, bound, operation.collective().name());
    Ok(match args.format {
        Format::Json => format!("{:#}\n", json!(comparison)),
        _ => table(&comparison, pes, total),
    })
}

/// The messages to scatter or gather.
struct Transport<'a> {
    operation: Algorithm,
    /// L_i by PE index; `[0]` is 0.
    flits: &'a [u64],
    links: &'a LinkArgs,
}

impl Transport<'_> {
    /// Returns the rows of all algorithms on these trees, which span the network if there is one.
    fn rows(&self, trees: &[Named], network: &str) -> Result<Vec<Row>, PlanTooLarge> {
        // In a complete network the combining algorithms use their own trees.
        let complete = network.starts_with("complete:");
        let mut rows = Vec::new();
        for Named { name, tree, .. } in trees {
            rows.extend(self.scheduled(name, tree)?);
            rows.extend(self.linear(name, tree)?);
            if !complete {
                rows.extend(self.combining(name, [tree, tree])?);
            }
        }
        if complete {
            let own = [&binomial_tree(self.flits.len()), &adaptive_tree(self.flits)];
            rows.extend(self.combining(&format!("{network}, its own"), own)?);
        }
        Ok(rows)
    }

    fn scheduled(&self, name: &str, tree: &Arc<Tree>) -> Result<Vec<Row>, PlanTooLarge> {
        let mut rows = Vec::new();
        let offered = Algorithm::named(self.operation.collective().name())
            .filter(|one| !one.offer().ways.is_empty());
        for operation in offered.filter(|one| one.has_plan() && one.fits().holds(tree)) {
            if operation == Algorithm::FARTHEST_FIRST {
                let farthest = scatter::farthest_first(tree, self.flits);
                let mut nearest = farthest.clone();
                nearest.sort_by_key(|&pe| (tree.depth(pe), pe));
                for (algorithm, order) in [
                    ("farthest-destination-first", farthest),
                    ("nearest-first", nearest),
                ] {
                    let plan = plan_scatter(tree, self.flits, &order);
                    rows.push(self.planned(name, algorithm.to_owned(), &plan)?);
                }
                continue;
            }
            let algorithm = [Some(operation.name()), operation.sync()];
            let algorithm: Vec<&str> = algorithm.into_iter().flatten().collect();
            let plan = plan(tree, operation, self.flits);
            rows.push(self.planned(name, algorithm.join(", "), &plan)?);
        }
        Ok(rows)
    }

    fn planned(&self, name: &str, algorithm: String, plan: &Plan) -> Result<Row, PlanTooLarge> {
        let tree = &plan.tree;
        // A relay holds the flit that it sends on in the next step.
        let relays = plan.messages.iter().any(|m| tree.depth(m.pe) > 1);
        let flow = Flow {
            time_steps: plan.time_steps,
            control_steps: plan.control.len() as u64,
            largest_buffer_flits: relays.into(),
        };
        let crossings = plan.crossing_count();
        let on_links = |timing: &_| plan.on_links(timing);
        Ok(Row {
            on_links: self.links.time(tree.len(), Single, crossings, on_links)?,
            ..Row::new(name, algorithm, flow)
        })
    }

    fn linear(&self, name: &str, tree: &Tree) -> Result<Vec<Row>, PlanTooLarge> {
        let window = ("linear, window of 4", BaselineModel::Window(WINDOW));
        // A scatter has no requests to keep in a window.
        let windowed = (self.operation.collective().direction() == Direction::Up).then_some(window);
        let baselines = [("linear", BaselineModel::Window(1))]
            .into_iter()
            .chain(windowed);
        baselines
            .map(|(algorithm, baseline)| self.carried([name, algorithm], baseline, tree))
            .collect()
    }

    /// Returns the rows of the combining baselines, each along its tree.
    fn combining(&self, name: &str, trees: [&Tree; 2]) -> Result<[Row; 2], PlanTooLarge> {
        let row = |algorithm, baseline, tree| {
            Ok(Row {
                waits_for_root: self.operation.collective().direction() == Direction::Down,
                ..self.carried([name, algorithm], baseline, tree)?
            })
        };
        Ok([
            row("binomial, combining", BaselineModel::Binomial, trees[0])?,
            row("adaptive (Träff)", BaselineModel::Adaptive, trees[1])?,
        ])
    }

    fn carried(
        &self,
        [name, algorithm]: [&str; 2],
        baseline: BaselineModel,
        tree: &Tree,
    ) -> Result<Row, PlanTooLarge> {
        let direction = self.operation.collective().direction();
        let transfers = match direction {
            Direction::Down | Direction::Across => baseline.scatter(tree, self.flits),
            Direction::Up => baseline.gather(tree, self.flits),
        };
        let row = Row::new(name, algorithm.to_owned(), flow(tree, &transfers));
        let is_edge = |it: &Transfer| {
            tree.parent(it.from) == Some(it.to) || tree.parent(it.to) == Some(it.from)
        };
        if !transfers.iter().all(is_edge) {
            return Ok(row);
        }
        let crossings = transfers.iter().map(|it| it.flits).sum();
        let on_links = self.links.time(tree.len(), Single, crossings, |_| {
            let combines = matches!(baseline, BaselineModel::Binomial | BaselineModel::Adaptive);
            of_transfers(&match combines && direction == Direction::Up {
                true => after_token(tree, transfers),
                false => transfers,
            })
        });
        Ok(Row {
            on_links: on_links?,
            ..row
        })
    }
}

#[derive(Serialize)]
struct Comparison {
    operation: &'static str,
    lower_bound_steps: u64,
    results: Vec<Row>,
    why: Option<String>,
}

#[derive(Serialize)]
struct Row {
    tree: String,
    algorithm: String,
    time_steps: u64,
    over_lower_bound: f64,
    control_steps: u64,
    largest_buffer_flits: u64,
    /// Whether its PEs wait for P0; otherwise they start on their own.
    waits_for_root: bool,
    /// The time on the requested links. Along a tree the baselines have none, since their PEs send to
    /// others than their neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_links: Option<OnLinks>,
    best: bool,
}

impl Row {
    /// Creates a row that is not compared with the others yet.
    fn new(tree: &str, algorithm: String, flow: Flow) -> Row {
        Row {
            tree: tree.to_owned(),
            algorithm,
            time_steps: flow.time_steps,
            over_lower_bound: 1.0,
            control_steps: flow.control_steps,
            largest_buffer_flits: flow.largest_buffer_flits,
            waits_for_root: true,
            on_links: None,
            best: false,
        }
    }
}

impl Comparison {
    fn of(mut rows: Vec<Row>, bound: u64, operation: &'static str) -> Comparison {
        for row in rows.iter_mut().filter(|_| bound > 0) {
            row.over_lower_bound = row.time_steps as f64 / bound as f64;
        }
        // Least time, then least control, then least buffer.
        let key = |row: &Row| (row.time_steps, row.control_steps, row.largest_buffer_flits);
        let best = (0..rows.len()).min_by_key(|&place| key(&rows[place]));
        if let Some(place) = best {
            rows[place].best = true;
        }
        Comparison {
            operation,
            lower_bound_steps: bound,
            why: best.map(|place| why(&rows, place, bound)),
            results: rows,
        }
    }
}

/// The columns from the least important one on.
const LEAST: [&str; 4] = ["control", "largest buffer", "over bound", "tree"];

fn table(comparison: &Comparison, pes: usize, total: u64) -> String {
    let rows = &comparison.results;
    let has_links = rows.iter().any(|row| row.on_links.is_some());
    let headings = ["", "tree", "algorithm", "steps"].into_iter();
    let headings = headings.chain(["over bound", "control", "largest buffer"]);
    let mut table = figures::table(headings.chain(has_links.then_some("on links")));
    for row in rows {
        let unasked = if row.waits_for_root { "" } else { " (unasked)" };
        let on_links = row.on_links.map(|it| Nanos(it.time_ns).to_string());
        let cells = [
            if row.best { "*" } else { "" }.to_owned(),
            row.tree.clone(),
            format!("{}{unasked}", row.algorithm),
            row.time_steps.to_string(),
            format!("{:.3}", row.over_lower_bound),
            row.control_steps.to_string(),
            row.largest_buffer_flits.to_string(),
        ];
        table.add_row(cells.into_iter().chain(on_links));
    }
    let title = format!(
        "{} of {} over {}; no schedule takes less than {}",
        comparison.operation,
        counted(total, "flit", "flits"),
        counted(pes as u64, "PE", "PEs"),
        counted(comparison.lower_bound_steps, "step", "steps"),
    );
    let width = columns();
    let mut out = heading(&title, width) + "\n\n";
    out.push_str(&fitted(table, 3, &LEAST, width));
    if let Some(why) = &comparison.why {
        out.push_str(&format!("\n{}", beside("*", 2, why, width)));
    }
    if rows.iter().any(|row| !row.waits_for_root) {
        let unasked = "every PE starts on its own, before P0 has said that it is ready";
        out.push_str(&beside("unasked:", 9, unasked, width));
    }
    out
}

/// Explains in one line why a row is the best.
fn why(rows: &[Row], place: usize, bound: u64) -> String {
    let row = &rows[place];
    let name = format!("{} on {}", row.algorithm, row.tree);
    let others = rows.iter().enumerate().filter(|(other, _)| *other != place);
    let Some((_, next)) = others.min_by_key(|(_, other)| other.time_steps) else {
        return name;
    };
    let bound_met = match row.time_steps == bound {
        true => ", which is the bound",
        false => "",
    };
    let behind = next.time_steps - row.time_steps;
    let reason = if behind > 0 {
        let behind = counted(behind, "step", "steps");
        format!("{behind} before {} on {}", next.algorithm, next.tree)
    } else if row.control_steps < next.control_steps {
        let fewer = next.control_steps - row.control_steps;
        let fewer = counted(fewer, "control step", "control steps");
        format!("as fast as {} with {fewer} less", next.algorithm)
    } else if row.largest_buffer_flits < next.largest_buffer_flits {
        let buffered = counted(next.largest_buffer_flits, "flit", "flits");
        let algorithm = &next.algorithm;
        format!("as fast as {algorithm}, which buffers {buffered} in a PE")
    } else {
        format!("no slower than {}", next.algorithm)
    };
    let steps = counted(row.time_steps, "step", "steps");
    format!("{name}: {steps}{bound_met}; {reason}")
}
