//! `flitcast compare gossip` on a network: what the paper's tables print, what its formulas give, what the same
//! takes in whole steps, and what plans come to, for equal blocks.

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

/// Sides of rings and tori whose parameters can all be tried.
const MAX_SIDE: usize = 65_536;

/// Arguments of `flitcast compare gossip`.
#[derive(Debug, Args)]
pub struct CompareGossipArgs {
    /// Who is connected to whom; as --network a ring, an array, a mesh, a torus or complete:N.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// Of a tree: L_0..L_n in flits, as for plan; on a --network all blocks are alike.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: Option<String>,
    /// How many ports a PE of a tree has.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// What steps take where t_l is for a whole block.
    #[command(flatten)]
    pub prices: PriceArgs,
    /// How the comparison is printed on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}

/// What is wrong with such a comparison.
#[derive(Debug, Error)]
pub enum GossipFault {
    /// The network is none, or none for this.
    #[error(transparent)]
    Network(#[from] GossipNetworkError),
    /// The prices are none.
    #[error(transparent)]
    Prices(#[from] PriceError),
    /// An option that says something of trees.
    #[error(
        "{0} is for trees: on a --network, which has no root and a port for each edge, blocks of one \
         length are compared"
    )]
    OfTrees(&'static str),
    /// Nothing says how long messages are.
    #[error("--lengths: say what each PE of the tree has for the others, like equal:1")]
    NoLengths,
    /// Nothing to count in.
    #[error("--tl 0: times are compared in units of t_l, which has to be more than 0")]
    NoUnit,
    /// More parameters than can be tried.
    #[error(
        "--network: sides of at most {MAX_SIDE} are compared, not of {0}: there are too many parameters"
    )]
    TooLong(usize),
}

/// What came of it.
#[derive(Serialize)]
struct Comparison<'a> {
    operation: &'static str,
    network: &'a str,
    pes: usize,
    /// t_s / t_l.
    #[serde(serialize_with = "as_exact")]
    ratio: Exact,
    /// In units of t_l, as all times.
    #[serde(serialize_with = "as_exact")]
    bound: Exact,
    results: Vec<Row>,
}

/// One algorithm.
#[derive(Default, Serialize)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// As `flitcast plan gossip --algorithm` takes it, if it does.
    pub algorithm: Option<String>,
    /// What the paper's table prints.
    pub paper: Option<u64>,
    /// What the paper's formula gives.
    pub formula: Option<f64>,
    /// What whole steps take, before packets leave anything out.
    pub whole_steps: Option<f64>,
    /// What a plan comes to.
    pub planned: Option<Planned>,
    /// Whether it is the one to take.
    pub best: bool,
}

/// What a plan comes to.
#[derive(Serialize)]
pub struct Planned {
    startups: u64,
    distance: u64,
    #[serde(serialize_with = "as_exact")]
    blocks: Exact,
    #[serde(serialize_with = "as_exact")]
    time: Exact,
}

/// Compares and prints; all that is wrong with the command line, if something is.
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

/// Options that do not belong to a network.
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
    /// One of which nothing is known yet.
    pub fn named(name: &str, algorithm: Option<&Algorithm>) -> Row {
        Row {
            name: name.to_owned(),
            algorithm: algorithm.map(Algorithm::to_string),
            ..Row::default()
        }
    }

    /// What a plan by this algorithm comes to.
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

/// In place of a figure that there is not.
const NONE: &str = "-";

impl Row {
    /// Its cells, from the star of the best to the planned time.
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

/// What the planner takes; where no plan can be made, what takes least in whole steps.
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
        // Figures that nobody has are left out.
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
