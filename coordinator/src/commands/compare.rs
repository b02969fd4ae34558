//! `flitcast compare`: what the algorithms, and the baselines that users know, would
//! take on a tree, side by side.

use std::io::{self, Write};
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use comfy_table::{Table, presets};
use flitcast_proto::Tree;
use flitcast_proto::baseline::{Baseline, adaptive_tree, binomial_tree, flow};
use flitcast_proto::pe::Operation;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::plan::{Plan, plan, plan_scatter};
use flitcast_proto::schedule::scatter;
use serde_json::json;
use thiserror::Error;

use crate::options::flits::{FlitsError, deal_flits, lengths_in_flits};
use crate::options::tree::{SpanningArg, TreeArgs};
use crate::site::topology::TopologyError;
use crate::ways::baseline::WINDOW;

/// Flits times PEs: the baselines are carried flit by flit.
const MAX_WORK: u64 = 2_000_000_000;

/// Arguments of `flitcast compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// What to compare.
    #[command(subcommand)]
    pub operation: CompareOperation,
}

/// What to compare.
#[derive(Debug, Subcommand)]
pub enum CompareOperation {
    /// Compare ways to scatter.
    Scatter(CompareRoundArgs),
    /// Compare ways to gather.
    Gather(CompareRoundArgs),
}

/// Arguments that both operations share.
#[derive(Debug, Args)]
pub struct CompareRoundArgs {
    /// Who is connected to whom; a network is compared over both kinds of spanning
    /// tree, unless one is named.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// L_1..L_n in flits, as for plan.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: String,
    /// How the comparison is printed on stdout.
    #[arg(long, value_enum, default_value_t = CompareFormat::Table)]
    pub format: CompareFormat,
}

/// How a comparison is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// For eyes.
    Table,
    /// For programs.
    Json,
}

/// Something that is wrong with the command line of a comparison.
#[derive(Debug, Error)]
pub enum CompareError {
    /// There is no tree.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The lengths are none, or do not fit the tree.
    #[error(transparent)]
    Flits(#[from] FlitsError),
    /// More than can be carried flit by flit.
    #[error("the baselines are carried flit by flit: {flits} flits over {pes} PEs are too many")]
    TooMuch {
        /// How many flits.
        flits: u64,
        /// Over how many PEs.
        pes: usize,
    },
}

/// One algorithm on one tree.
struct Row {
    tree: String,
    algorithm: &'static str,
    time_steps: u64,
    control_steps: u64,
    largest_buffer_flits: u64,
    /// Its PEs start on their own, without word from P0.
    unasked: bool,
}

/// Compares and prints; all that is wrong with the command line, if something is.
pub fn run(args: CompareArgs, out: &mut dyn Write) -> Result<io::Result<()>, Vec<CompareError>> {
    let (scatters, args) = match args.operation {
        CompareOperation::Scatter(args) => (true, args),
        CompareOperation::Gather(args) => (false, args),
    };
    let both = [SpanningArg::Bfs, SpanningArg::Broadcast];
    let (topologies, lengths) = match (args.tree.topologies(&both), lengths_in_flits(&args.lengths))
    {
        (Ok(topologies), Ok(lengths)) => (topologies, lengths),
        (topologies, lengths) => {
            let faults = topologies.err().unwrap_or_default().into_iter();
            let lengths = lengths.err().map(CompareError::from);
            return Err(faults.map(CompareError::from).chain(lengths).collect());
        }
    };
    let mut trees: Vec<(String, Arc<Tree>)> = Vec::new();
    for topology in topologies {
        match trees.iter_mut().find(|(_, tree)| **tree == topology.tree) {
            // The same tree by another name is not compared with itself.
            Some((name, _)) => name.push_str(" (and broadcast)"),
            None => trees.push((topology.name, Arc::new(topology.tree))),
        }
    }
    let pes = trees[0].1.len();
    // A PE keeps its number, whichever tree spans the network.
    let flits = deal_flits(&lengths, &trees[0].1).map_err(|fault| vec![fault.into()])?;
    let total: u64 = flits.iter().sum();
    if total.saturating_mul(pes as u64) > MAX_WORK {
        return Err(vec![CompareError::TooMuch { flits: total, pes }]);
    }
    // Where all PEs can reach each other, the combining ones need nobody's tree but
    // their own.
    let network = args.tree.network.as_deref().unwrap_or_default();
    let complete = network.starts_with("complete:");
    let mut rows: Vec<Row> = Vec::new();
    for (name, tree) in &trees {
        rows.extend(scheduled(name, tree, &flits, scatters));
        rows.extend(linear(name, tree, &flits, scatters));
        if !complete {
            rows.extend(combining(name, [tree, tree], &flits, scatters));
        }
    }
    if complete {
        let own = [&binomial_tree(pes), &adaptive_tree(&flits)];
        rows.extend(combining(
            &format!("{network}, its own"),
            own,
            &flits,
            scatters,
        ));
    }
    // By time reversal no gather beats the best scatter: the same flits cross the same
    // edges into P0's one port.
    let bounds = trees
        .iter()
        .map(|(_, tree)| scatter::optimal_steps(tree, &flits));
    let bound = bounds.min().unwrap_or(0);
    let printed = match args.format {
        CompareFormat::Table => table(&rows, bound, scatters, pes, total),
        CompareFormat::Json => json(&rows, bound, scatters),
    };
    Ok(out.write_all(printed.as_bytes()))
}

/// The schedules on a tree.
fn scheduled(name: &str, tree: &Arc<Tree>, flits: &[u64], scatters: bool) -> Vec<Row> {
    let planned = |algorithm, plan: Plan| Row {
        tree: name.to_owned(),
        algorithm,
        time_steps: plan.time_steps,
        control_steps: plan.control.len() as u64,
        // A relay holds the flit that it sends on in the next step.
        largest_buffer_flits: plan.messages.iter().any(|m| tree.depth(m.pe) > 1).into(),
        unasked: false,
    };
    if scatters {
        let farthest = scatter::farthest_first(tree, flits);
        let mut nearest = farthest.clone();
        nearest.sort_by_key(|&pe| (tree.depth(pe), pe));
        let by_order = |order: &[_]| plan_scatter(tree, flits, order);
        return vec![
            planned("farthest-destination-first", by_order(&farthest)),
            planned("nearest-first", by_order(&nearest)),
        ];
    }
    let gather = |operation| plan(tree, operation, flits);
    let mut rows = Vec::new();
    if tree.is_path() {
        rows.push(planned("shoulder-tap", gather(Operation::ShoulderTap)));
    }
    for (algorithm, sync) in [
        ("certification, serial", Sync::Serial),
        ("certification, pipelined", Sync::Pipelined),
    ] {
        rows.push(planned(algorithm, gather(Operation::Certification(sync))));
    }
    rows
}

/// The linear baselines along a tree.
fn linear(name: &str, tree: &Tree, flits: &[u64], scatters: bool) -> Vec<Row> {
    let window = ("linear, window of 4", Baseline::Window(WINDOW));
    // A scatter has no requests to keep in a window.
    let windowed = (!scatters).then_some(window);
    let baselines = [("linear", Baseline::Linear)].into_iter().chain(windowed);
    baselines
        .map(|(algorithm, baseline)| carried(name, algorithm, baseline, tree, flits, scatters))
        .collect()
}

/// The combining baselines, along a tree each.
fn combining(name: &str, trees: [&Tree; 2], flits: &[u64], scatters: bool) -> [Row; 2] {
    let row = |algorithm, baseline, tree| Row {
        unasked: !scatters,
        ..carried(name, algorithm, baseline, tree, flits, scatters)
    };
    [
        row("binomial, combining", Baseline::Binomial, trees[0]),
        row("adaptive (Träff)", Baseline::Adaptive, trees[1]),
    ]
}

fn carried(
    name: &str,
    algorithm: &'static str,
    baseline: Baseline,
    tree: &Tree,
    flits: &[u64],
    scatters: bool,
) -> Row {
    let transfers = match scatters {
        true => baseline.scatter(tree, flits),
        false => baseline.gather(tree, flits),
    };
    let flow = flow(tree, &transfers);
    Row {
        tree: name.to_owned(),
        algorithm,
        time_steps: flow.time_steps,
        control_steps: flow.control_steps,
        largest_buffer_flits: flow.largest_buffer_flits,
        unasked: false,
    }
}

/// The best row: least time, then least control, then least buffer.
fn best(rows: &[Row]) -> Option<usize> {
    let key = |row: &Row| (row.time_steps, row.control_steps, row.largest_buffer_flits);
    (0..rows.len()).min_by_key(|&place| key(&rows[place]))
}

fn over(steps: u64, bound: u64) -> f64 {
    if bound == 0 {
        1.0
    } else {
        steps as f64 / bound as f64
    }
}

fn table(rows: &[Row], bound: u64, scatters: bool, pes: usize, total: u64) -> String {
    let best = best(rows);
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "",
        "tree",
        "algorithm",
        "steps",
        "over bound",
        "control",
        "largest buffer",
    ]);
    for (place, row) in rows.iter().enumerate() {
        let mark = if Some(place) == best { "*" } else { "" };
        let unasked = if row.unasked { " (unasked)" } else { "" };
        table.add_row([
            mark.to_owned(),
            row.tree.clone(),
            format!("{}{unasked}", row.algorithm),
            row.time_steps.to_string(),
            format!("{:.3}", over(row.time_steps, bound)),
            row.control_steps.to_string(),
            row.largest_buffer_flits.to_string(),
        ]);
    }
    let operation = if scatters { "scatter" } else { "gather" };
    let mut out = format!(
        "{operation} of {total} flits over {pes} PEs; no way takes less than {bound} steps\n\n"
    );
    out.push_str(&crate::text::figures::lines(table, 3));
    if let Some(place) = best {
        out.push_str(&format!("\n  * {}\n", why(rows, place, bound)));
    }
    if rows.iter().any(|row| row.unasked) {
        out.push_str(
            "  unasked: every PE starts on its own, before P0 has said that it is ready\n",
        );
    }
    out
}

/// Why a row is the best, in one line.
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

fn json(rows: &[Row], bound: u64, scatters: bool) -> String {
    let best = best(rows);
    let results = rows.iter().enumerate().map(|(place, row)| {
        json!({
            "tree": row.tree,
            "algorithm": row.algorithm,
            "time_steps": row.time_steps,
            "over_lower_bound": over(row.time_steps, bound),
            "control_steps": row.control_steps,
            "largest_buffer_flits": row.largest_buffer_flits,
            "waits_for_root": !row.unasked,
            "best": Some(place) == best,
        })
    });
    let result = json!({
        "operation": if scatters { "scatter" } else { "gather" },
        "lower_bound_steps": bound,
        "results": results.collect::<Vec<_>>(),
        "why": best.map(|place| why(rows, place, bound)),
    });
    format!("{result:#}\n")
}
