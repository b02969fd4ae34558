//! `flitcast compare gossip` on a network, for equal blocks: the figures in the paper's tables,
//! those of its formulas, those of whole steps, and those of plans.

use std::io::{self, Write};

use clap::Args;
use flitcast_proto::exact::Exact;
use flitcast_proto::gossip::{Algorithm, Arena, Gossip, Prices, choose};
use serde::Serialize;
use serde_json::json;
use thiserror::Error;

use super::CompareError;
use super::gossip_on_tree;
use super::gossip_rows::rows;
use crate::job::prices::typed;
use crate::options::format::{Format, TABLE_OR_JSON};
use crate::options::gossip_network::{GossipNetworkError, gossip_network};
use crate::options::ports::Ports;
use crate::options::prices::{PriceArgs, PriceError};
use crate::options::tree::TreeArgs;
use crate::text::figures::{as_exact, decimal, lines, table};

/// The largest side of rings and tori for which all parameters are tried.
const MAX_SIDE: usize = 65_536;

/// Arguments of `flitcast compare gossip`.
#[derive(Debug, Args)]
pub struct CompareGossipArgs {
    /// The tree; as --network a ring, an array, a mesh, a torus or complete:N.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// L_0..L_n in flits, as for plan, on a tree; on a --network all blocks have one length.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: Option<String>,
    /// Number of ports of a PE of a tree.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// The prices of steps; t_l is for a whole block.
    #[command(flatten)]
    pub prices: PriceArgs,
    /// Format of the comparison on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}

/// An error in the command line of a gossip comparison.
#[derive(Debug, Error)]
pub enum GossipFault {
    /// The network is invalid, or has no planned gossip.
    #[error(transparent)]
    Network(#[from] GossipNetworkError),
    /// The prices are invalid.
    #[error(transparent)]
    Prices(#[from] PriceError),
    /// An option that only applies to trees.
    #[error(
        "{0} is for trees: on a --network, which has no root and a port for each edge, blocks of one \
         length are compared"
    )]
    OfTrees(&'static str),
    /// The lengths of messages are missing.
    #[error("--lengths: missing; give the length of each PE's message, for example equal:1")]
    NoLengths,
    /// A price of 0 for the unit of all times.
    #[error("--tl 0: times are compared in units of t_l, which has to be more than 0")]
    NoUnit,
    /// More parameters than can be tried.
    #[error(
        "--network: a side of {0} has too many parameters to compare; use sides of at most {MAX_SIDE}"
    )]
    TooLong(usize),
}

#[derive(Serialize)]
struct Comparison<'a> {
    operation: &'static str,
    network: &'a str,
    pes: usize,
    /// t_s / t_l.
    #[serde(serialize_with = "as_exact")]
    ratio: Exact,
    /// The lower bound, in units of t_l like all times.
    #[serde(serialize_with = "as_exact")]
    bound: Exact,
    results: Vec<Row>,
}

/// One algorithm.
#[derive(Default, Serialize)]
pub struct Row {
    /// The name of the algorithm.
    pub name: String,
    /// The value for `flitcast plan gossip --algorithm`, if there is one.
    pub algorithm: Option<String>,
    /// The figure in the paper's table.
    pub paper: Option<u64>,
    /// The figure of the paper's formula.
    pub formula: Option<f64>,
    /// The time in whole steps, before packets omit anything.
    pub whole_steps: Option<f64>,
    /// The cost of a plan.
    pub planned: Option<Planned>,
    /// Whether this is the best algorithm.
    pub best: bool,
}

/// The cost of a plan.
#[derive(Serialize)]
pub struct Planned {
    startups: u64,
    distance: u64,
    #[serde(serialize_with = "as_exact")]
    blocks: Exact,
    #[serde(serialize_with = "as_exact")]
    time: Exact,
}

/// Prints the comparison, or returns all errors in the command line.
pub fn run(
    args: &CompareGossipArgs,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<CompareError>> {
    match &args.tree.network {
        Some(network) => on_network(args, network, out),
        None => gossip_on_tree::run(args, out),
    }
}

fn on_network(
    args: &CompareGossipArgs,
    network: &str,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<CompareError>> {
    let (arena, prices) = asked(args, network)
        .map_err(|all| all.into_iter().map(CompareError::from).collect::<Vec<_>>())?;
    // Each class then has one flit of each block.
    let flits = arena.classes() as u64;
    let lengths = vec![flits; arena.pes()];
    let in_flits = Prices {
        startup: prices.startup * flits,
        hop: prices.hop * flits,
        flit: prices.flit,
        unit: prices.flit * flits,
    };
    let ratio = prices.startup as f64 / prices.flit as f64;
    let mut rows = rows(&arena, ratio);
    let can_plan = arena.check_size().is_ok();
    let chosen = can_plan.then(|| choose(&arena, &lengths, &in_flits));
    if let Some(chosen) = &chosen {
        let name = Some(chosen.to_string());
        if rows.iter().all(|row| row.algorithm != name) {
            rows.push(Row::named("planner's choice", Some(chosen)));
        }
        for row in &mut rows {
            row.planned = row.plan(&arena, &lengths, &in_flits);
        }
    }
    let chosen = chosen.map(|chosen| chosen.to_string());
    mark_best(&mut rows, chosen.as_deref());
    let any = Gossip::new(arena.clone(), &lengths, &Algorithm::Approach1);
    let bound = any.map_or(Exact::new(0, 1), |gossip| gossip.bound(&in_flits));
    let comparison = Comparison {
        operation: "gossip",
        network,
        pes: arena.pes(),
        ratio: Exact::new(prices.startup.into(), prices.flit.into()),
        bound,
        results: rows,
    };
    let printed = match args.format {
        Format::Json => format!("{:#}\n", json!(comparison)),
        _ => comparison.text(&arena, prices.hop > 0),
    };
    Ok(out.write_all(printed.as_bytes()))
}

/// Returns an error for each option that does not apply to a network.
fn of_trees(args: &CompareGossipArgs) -> Vec<GossipFault> {
    let options = [
        ("--tree", args.tree.tree.is_some()),
        ("--cluster", args.tree.cluster.is_some()),
        ("--root", args.tree.root.is_some()),
        ("--spanning", args.tree.spanning.is_some()),
        ("--lengths", args.lengths.is_some()),
        ("--ports", args.ports == Ports::Multi),
    ];
    let given = options.into_iter().filter(|(_, given)| *given);
    given
        .map(|(option, _)| GossipFault::OfTrees(option))
        .collect()
}

fn asked(args: &CompareGossipArgs, network: &str) -> Result<(Arena, Prices), Vec<GossipFault>> {
    let mut faults = of_trees(args);
    let arena = gossip_network(network);
    let arena = arena.map_err(|fault| faults.push(fault.into())).ok();
    let prices = typed(&args.prices).and_then(|prices| prices.prices());
    let prices = prices.map_err(|all| faults.extend(all.into_iter().map(GossipFault::from)));
    if prices.is_ok_and(|prices| prices.flit == 0) {
        faults.push(GossipFault::NoUnit);
    }
    if let Some(Arena::Grid(grid)) = &arena
        && let Some(side) = grid.sides.iter().find(|side| **side > MAX_SIDE)
    {
        faults.push(GossipFault::TooLong(*side));
    }
    match (arena, prices) {
        (Some(arena), Ok(prices)) if faults.is_empty() => Ok((arena, prices)),
        _ => Err(faults),
    }
}

impl Row {
    /// Creates a row without figures.
    pub fn named(name: &str, algorithm: Option<&Algorithm>) -> Row {
        Row {
            name: name.to_owned(),
            algorithm: algorithm.map(Algorithm::to_string),
            ..Row::default()
        }
    }

    /// Plans the gossip by this algorithm and returns its cost.
    fn plan(&self, arena: &Arena, lengths: &[u64], prices: &Prices) -> Option<Planned> {
        let algorithm: Algorithm = self.algorithm.as_ref()?.parse().ok()?;
        let cost = Gossip::new(arena.clone(), lengths, &algorithm).ok()?.cost();
        Some(Planned {
            startups: cost.startups,
            distance: cost.distance,
            blocks: Exact::new(cost.flits.into(), arena.classes() as u128),
            time: Exact::new(prices.time(cost), prices.unit.into()),
        })
    }
}

/// The text in place of a missing figure.
const NONE: &str = "-";

impl Row {
    /// Returns the cells of the row, from the star of the best to the planned time.
    fn cells(&self) -> [String; 10] {
        let none = || NONE.to_owned();
        let number = |number: Option<f64>| {
            let told = |number| format!("{number:.1}").trim_end_matches(".0").to_owned();
            number.map_or_else(none, told)
        };
        let plan = self.planned.as_ref();
        let of_plan = |cell: &dyn Fn(&Planned) -> String| plan.map_or_else(none, cell);
        [
            if self.best { "*" } else { "" }.to_owned(),
            self.name.clone(),
            self.algorithm.clone().unwrap_or_else(none),
            number(self.paper.map(|paper| paper as f64)),
            number(self.formula),
            number(self.whole_steps),
            of_plan(&|plan| plan.startups.to_string()),
            of_plan(&|plan| plan.distance.to_string()),
            of_plan(&|plan| decimal(plan.blocks)),
            of_plan(&|plan| decimal(plan.time)),
        ]
    }
}

/// Marks the row that the planner chooses; without a plan, the one with the least time in whole
/// steps.
fn mark_best(rows: &mut [Row], chosen: Option<&str>) {
    let whole = rows.iter().filter_map(|row| row.whole_steps);
    let fewest = whole.min_by(f64::total_cmp);
    let is_best = |row: &Row| match chosen {
        Some(chosen) => row.algorithm.as_deref() == Some(chosen),
        None => row.whole_steps.is_some() && row.whole_steps == fewest,
    };
    if let Some(best) = rows.iter_mut().find(|row| is_best(row)) {
        best.best = true;
    }
}

impl Comparison<'_> {
    fn text(&self, arena: &Arena, counts_hops: bool) -> String {
        let header = [
            "",
            "",
            "algorithm",
            "paper",
            "formula",
            "whole steps",
            "start-ups",
            "hops",
            "blocks",
            "planned",
        ];
        let rows: Vec<_> = self.results.iter().map(Row::cells).collect();
        // Columns without any figure are omitted.
        let columns = (0..header.len()).filter(|at| rows.iter().any(|row| row[*at] != NONE));
        let columns: Vec<usize> = columns.collect();
        let mut table = table(columns.iter().map(|at| header[*at]).collect::<Vec<_>>());
        for row in &rows {
            table.add_row(
                columns
                    .iter()
                    .map(|at| row[*at].clone())
                    .collect::<Vec<_>>(),
            );
        }
        let mut out = format!(
            "gossip of equal blocks over {} PEs on {}; t_s is {} t_l, and no way takes less than {} t_l\n\n{}\n",
            self.pes,
            self.network,
            decimal(self.ratio),
            decimal(self.bound),
            lines(table, 3),
        );
        let has_paper = self.results.iter().any(|row| row.paper.is_some());
        if has_paper {
            out.push_str("  paper: as printed in its tables\n");
        }
        if self.results.iter().any(|row| row.formula.is_some()) {
            out.push_str(
                "  formula: the paper's, with fractions of a round; whole steps: without these, and \
                 without leaving anything out\n",
            );
        }
        if self.results.iter().any(|row| row.planned.is_some()) {
            out.push_str("  planned: packets leave out what their receivers have\n");
        } else {
            out.push_str("  there are too many PEs for plans of what each gets from each\n");
        }
        if matches!(arena, Arena::Complete(_)) {
            out.push_str(
                "  approach 1 and direct send several packets at a time, and the model leaves out that \
                 each costs a\n  set-up; where all reach each other, nothing of the paper beats \
                 dissemination\n",
            );
        } else if counts_hops {
            out.push_str("  only what is planned counts t_d\n");
        }
        out
    }
}
