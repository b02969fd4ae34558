//! `flitcast compare`: times of the algorithms and of the baselines on a tree, side by side.

mod broadcast;
mod crossings;
mod exchange;
mod gossip;
mod gossip_on_tree;
mod gossip_rows;
mod trees;

use std::io::{self, Write};
use std::sync::Arc;

use clap::{Args, Subcommand};
use flitcast_proto::Tree;
use flitcast_proto::baseline::{
    Baseline, Flow, Transfer, adaptive_tree, after_token, binomial_tree, flow,
};
use flitcast_proto::cost::Ports::Single;
use flitcast_proto::on_links::of_transfers;
use flitcast_proto::ops::plan::{Plan, plan, plan_scatter};
use flitcast_proto::ops::{Direction, Operation};
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::scatter;
use serde::Serialize;
use serde_json::json;
use thiserror::Error;

use crate::job::exchange_flits::ExchangeFlitsError;
use crate::job::on_links::{LinkArgs, OnLinks};
use crate::options::flits::{FlitsError, deal_flits, lengths_in_flits};
use crate::options::format::{Format, TABLE_OR_JSON};
use crate::options::pes::NoSuchPe;
use crate::options::ports::PortsOfAll;
use crate::options::prices::PriceError;
use crate::options::tree::TreeArgs;
use crate::site::topology::TopologyError;
use crate::text::figures;
use crate::text::units::Nanos;
use crate::ways::baseline::WINDOW;
use crate::ways::plan_limits::TooMuch;
use broadcast::CompareBroadcastArgs;
use exchange::CompareExchangeArgs;
use gossip::{CompareGossipArgs, GossipFault};
use trees::{Named, spanning};

/// Limit of flits times PEs: the baselines are computed flit by flit.
const MAX_WORK: u64 = 2_000_000_000;

/// Arguments of `flitcast compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Operation to compare.
    #[command(subcommand)]
    pub operation: CompareOperation,
}

/// The operation of a comparison.
#[derive(Debug, Subcommand)]
pub enum CompareOperation {
    /// Compare algorithms of a scatter.
    Scatter(CompareRoundArgs),
    /// Compare algorithms of a gather.
    Gather(CompareRoundArgs),
    /// Compare algorithms of a broadcast.
    Broadcast(CompareBroadcastArgs),
    /// Compare algorithms of a gossip, on networks with the figures in the paper's tables.
    #[command(visible_alias = "allgather")]
    Gossip(CompareGossipArgs),
    /// Compare algorithms of an exchange.
    #[command(visible_alias = "alltoall")]
    Exchange(CompareExchangeArgs),
}

/// Arguments of scatters and gathers.
#[derive(Debug, Args)]
pub struct CompareRoundArgs {
    /// The tree; a network is compared over both kinds of spanning tree, unless one is named.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// L_1..L_n in flits, as for plan.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: String,
    /// Format of the comparison on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
    /// The links of the plans.
    #[command(flatten)]
    pub links: LinkArgs,
}

/// An error in the command line of a comparison.
#[derive(Debug, Error)]
pub enum CompareError {
    /// The tree is invalid.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The lengths are invalid, or do not fit the tree.
    #[error(transparent)]
    Flits(#[from] FlitsError),
    /// A gossip that cannot be compared.
    #[error(transparent)]
    Gossip(#[from] GossipFault),
    /// The lengths of an exchange are invalid.
    #[error(transparent)]
    Exchange(#[from] ExchangeFlitsError),
    /// More than can be planned.
    #[error(transparent)]
    Planned(#[from] TooMuch),
    /// The source does not exist.
    #[error(transparent)]
    NoSuchPe(#[from] NoSuchPe),
    /// Many ports in a complete network.
    #[error(transparent)]
    PortsOfAll(#[from] PortsOfAll),
    /// More than can be carried flit by flit.
    #[error("the baselines are carried flit by flit: {flits} flits over {pes} PEs are too many")]
    TooMuch {
        /// The number of flits.
        flits: u64,
        /// The number of PEs.
        pes: usize,
    },
}

impl From<PriceError> for CompareError {
    fn from(fault: PriceError) -> CompareError {
        GossipFault::from(fault).into()
    }
}

#[derive(Serialize)]
struct Comparison {
    operation: &'static str,
    /// A lower bound of the steps of any algorithm.
    lower_bound_steps: u64,
    results: Vec<Row>,
    /// The reason why the best row is the best.
    why: Option<String>,
}

/// One algorithm on one tree.
#[derive(Serialize)]
struct Row {
    tree: String,
    algorithm: String,
    time_steps: u64,
    /// Time divided by the lower bound.
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

/// Prints the comparison, or returns all errors in the command line.
pub fn run(args: CompareArgs, out: &mut dyn Write) -> Result<io::Result<()>, Vec<CompareError>> {
    let (asked, args) = match args.operation {
        CompareOperation::Scatter(args) => (Operation::Scatter, args),
        CompareOperation::Gather(args) => (Operation::Certification(Sync::Pipelined), args),
        CompareOperation::Broadcast(args) => return broadcast::run(&args, out),
        CompareOperation::Gossip(args) => return gossip::run(&args, out),
        CompareOperation::Exchange(args) => return exchange::run(&args, out),
    };
    let direction = asked.direction();
    let (trees, lengths) = match (spanning(&args.tree), lengths_in_flits(&args.lengths)) {
        (Ok(trees), Ok(lengths)) => (trees, lengths),
        (trees, lengths) => {
            let mut faults = trees.err().unwrap_or_default();
            faults.extend(lengths.err().map(CompareError::from));
            return Err(faults);
        }
    };
    let pes = trees[0].tree.len();
    // A PE keeps its number, whichever tree spans the network.
    let flits = deal_flits(&lengths, &trees[0].tree).map_err(|fault| vec![fault.into()])?;
    let total: u64 = flits.iter().sum();
    if total.saturating_mul(pes as u64) > MAX_WORK {
        return Err(vec![CompareError::TooMuch { flits: total, pes }]);
    }
    // In a complete network the combining algorithms use their own trees.
    let network = args.tree.network.as_deref().unwrap_or_default();
    let complete = network.starts_with("complete:");
    let mut rows: Vec<Row> = Vec::new();
    for Named { name, tree } in &trees {
        rows.extend(scheduled(asked.name(), name, tree, &flits, &args.links)?);
        rows.extend(linear(name, tree, &flits, direction, &args.links)?);
        if !complete {
            rows.extend(combining(
                name,
                [tree, tree],
                &flits,
                direction,
                &args.links,
            )?);
        }
    }
    if complete {
        let own = [&binomial_tree(pes), &adaptive_tree(&flits)];
        rows.extend(combining(
            &format!("{network}, its own"),
            own,
            &flits,
            direction,
            &args.links,
        )?);
    }
    // By time reversal no gather is faster than the best scatter: the same flits cross the same
    // edges to P0's single port.
    let bounds = trees
        .iter()
        .map(|named| scatter::optimal_steps(&named.tree, &flits));
    let bound = bounds.min().unwrap_or(0);
    let comparison = Comparison::of(rows, bound, asked.name());
    let printed = match args.format {
        Format::Json => format!("{:#}\n", json!(comparison)),
        _ => table(&comparison, pes, total),
    };
    Ok(out.write_all(printed.as_bytes()))
}

/// Returns the rows of the schedules on a tree.
fn scheduled(
    operation: &str,
    name: &str,
    tree: &Arc<Tree>,
    flits: &[u64],
    links: &LinkArgs,
) -> Result<Vec<Row>, Vec<CompareError>> {
    let planned = |algorithm: String, plan: Plan| {
        // A relay holds the flit that it sends on in the next step.
        let relays = plan.messages.iter().any(|m| tree.depth(m.pe) > 1);
        let flow = Flow {
            time_steps: plan.time_steps,
            control_steps: plan.control.len() as u64,
            largest_buffer_flits: relays.into(),
        };
        let crossings = plan.crossing_count();
        let on_links = links.time(tree.len(), Single, crossings, |timing| {
            plan.on_links(timing)
        });
        Ok::<_, Vec<CompareError>>(Row {
            on_links: on_links.map_err(|fault| vec![fault.into()])?,
            ..Row::new(name, algorithm, flow)
        })
    };
    let mut rows = Vec::new();
    let offered = Operation::named(operation).filter(|one| !one.ways().is_empty());
    for operation in offered.filter(|one| one.has_plan() && one.fits().holds(tree)) {
        if operation == Operation::Scatter {
            let farthest = scatter::farthest_first(tree, flits);
            let mut nearest = farthest.clone();
            nearest.sort_by_key(|&pe| (tree.depth(pe), pe));
            for (name, order) in [
                ("farthest-destination-first", farthest),
                ("nearest-first", nearest),
            ] {
                let plan = plan_scatter(tree, flits, &order);
                rows.push(planned(name.to_owned(), plan)?);
            }
            continue;
        }
        let algorithm = [Some(operation.algorithm()), operation.sync()];
        let algorithm: Vec<&str> = algorithm.into_iter().flatten().collect();
        rows.push(planned(algorithm.join(", "), plan(tree, operation, flits))?);
    }
    Ok(rows)
}

/// Returns the rows of the linear baselines along a tree.
fn linear(
    name: &str,
    tree: &Tree,
    flits: &[u64],
    direction: Direction,
    links: &LinkArgs,
) -> Result<Vec<Row>, Vec<CompareError>> {
    let window = ("linear, window of 4", Baseline::Window(WINDOW));
    // A scatter has no requests to keep in a window.
    let windowed = (direction == Direction::Up).then_some(window);
    let baselines = [("linear", Baseline::Linear)].into_iter().chain(windowed);
    baselines
        .map(|(algorithm, baseline)| {
            carried([name, algorithm], baseline, tree, flits, direction, links)
        })
        .collect()
}

/// Returns the rows of the combining baselines, each along its tree.
fn combining(
    name: &str,
    trees: [&Tree; 2],
    flits: &[u64],
    direction: Direction,
    links: &LinkArgs,
) -> Result<[Row; 2], Vec<CompareError>> {
    let row = |algorithm, baseline, tree| {
        let row = carried([name, algorithm], baseline, tree, flits, direction, links)?;
        Ok::<_, Vec<CompareError>>(Row {
            waits_for_root: direction == Direction::Down,
            ..row
        })
    };
    Ok([
        row("binomial, combining", Baseline::Binomial, trees[0])?,
        row("adaptive (Träff)", Baseline::Adaptive, trees[1])?,
    ])
}

fn carried(
    [name, algorithm]: [&str; 2],
    baseline: Baseline,
    tree: &Tree,
    flits: &[u64],
    direction: Direction,
    links: &LinkArgs,
) -> Result<Row, Vec<CompareError>> {
    let transfers = match direction {
        Direction::Down | Direction::Across => baseline.scatter(tree, flits),
        Direction::Up => baseline.gather(tree, flits),
    };
    let row = Row::new(name, algorithm.to_owned(), flow(tree, &transfers));
    let is_edge =
        |it: &Transfer| tree.parent(it.from) == Some(it.to) || tree.parent(it.to) == Some(it.from);
    if !transfers.iter().all(is_edge) {
        return Ok(row);
    }
    let crossings = transfers.iter().map(|it| it.flits).sum();
    let on_links = links.time(tree.len(), Single, crossings, |_| {
        let combines = matches!(baseline, Baseline::Binomial | Baseline::Adaptive);
        of_transfers(&match combines && direction == Direction::Up {
            true => after_token(tree, transfers),
            false => transfers,
        })
    });
    Ok(Row {
        on_links: on_links.map_err(|fault| vec![fault.into()])?,
        ..row
    })
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
        let best = best(&rows);
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

/// Returns the best row: least time, then least control, then least buffer.
fn best(rows: &[Row]) -> Option<usize> {
    let key = |row: &Row| (row.time_steps, row.control_steps, row.largest_buffer_flits);
    (0..rows.len()).min_by_key(|&place| key(&rows[place]))
}

fn table(comparison: &Comparison, pes: usize, total: u64) -> String {
    let rows = &comparison.results;
    let has_links = rows.iter().any(|row| row.on_links.is_some());
    let columns = [
        "",
        "tree",
        "algorithm",
        "steps",
        "over bound",
        "control",
        "largest buffer",
    ];
    let on_links = has_links.then_some("on links");
    let mut table = figures::table(columns.into_iter().chain(on_links));
    for row in rows {
        let unasked = if row.waits_for_root { "" } else { " (unasked)" };
        table.add_row(
            [
                if row.best { "*" } else { "" }.to_owned(),
                row.tree.clone(),
                format!("{}{unasked}", row.algorithm),
                row.time_steps.to_string(),
                format!("{:.3}", row.over_lower_bound),
                row.control_steps.to_string(),
                row.largest_buffer_flits.to_string(),
                row.on_links
                    .map_or(String::new(), |it| Nanos(it.time_ns()).to_string()),
            ]
            .into_iter()
            .take(7 + usize::from(has_links)),
        );
    }
    let mut out = format!(
        "{} of {total} flits over {pes} PEs; no way takes less than {} steps\n\n",
        comparison.operation, comparison.lower_bound_steps,
    );
    out.push_str(&figures::lines(table, 3));
    if let Some(why) = &comparison.why {
        out.push_str(&format!("\n  * {why}\n"));
    }
    if rows.iter().any(|row| !row.waits_for_root) {
        out.push_str(
            "  unasked: every PE starts on its own, before P0 has said that it is ready\n",
        );
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
    let bound_met = if row.time_steps == bound {
        ", which is the bound"
    } else {
        ""
    };
    let behind = next.time_steps - row.time_steps;
    let reason = if behind > 0 {
        format!("{behind} steps before {} on {}", next.algorithm, next.tree)
    } else if row.control_steps < next.control_steps {
        format!(
            "as fast as {} with {} control steps less",
            next.algorithm,
            next.control_steps - row.control_steps
        )
    } else if row.largest_buffer_flits < next.largest_buffer_flits {
        format!(
            "as fast as {}, which buffers {} flits in a PE",
            next.algorithm, next.largest_buffer_flits
        )
    } else {
        format!("no slower than {}", next.algorithm)
    };
    format!("{name}: {} steps{bound_met}; {reason}", row.time_steps)
}
