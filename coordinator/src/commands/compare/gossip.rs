//! `flitcast compare gossip` on a network, for equal blocks: the figures in the paper's tables,
//! those of its formulas, those of whole steps, and those of plans.

use anyhow::anyhow;
use flitcast_plan::fraction::Fraction;
use flitcast_plan::gossip::{
    CompleteGossip, Gossip, GossipAlgorithm, GossipNetwork, Prices, choose,
};
use serde::Serialize;
use serde_json::json;

use super::args::CompareGossipArgs;
use super::gossip_rows::{NONE, Row, rows};
use flitcast_cluster::job::prices::typed;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::values::gossip_network;
use flitcast_cluster::options::values::joined;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::figures::{as_exact, beside, decimal, fitted, heading, table};
use flitcast_cluster::text::screen;

/// The largest side of rings and tori for which all parameters are tried.
const MAX_SIDE: usize = 65_536;

/// The columns from the least important one on.
const LEAST: [&str; 6] = [
    "hops",
    "start-ups",
    "blocks",
    "paper",
    "formula",
    "whole steps",
];

#[derive(Serialize)]
struct Comparison<'a> {
    operation: &'static str,
    network: &'a str,
    pes: usize,
    /// t_s / t_l.
    #[serde(serialize_with = "as_exact")]
    ratio: Fraction,
    /// The lower bound, in units of t_l like all times.
    #[serde(serialize_with = "as_exact")]
    bound: Fraction,
    results: Vec<Row>,
}

pub fn compared(args: &CompareGossipArgs, network: &str) -> Result<String, Faults> {
    let (arena, prices) = network_and_prices(args, network)?;
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
    let any = Gossip::new(arena.clone(), &lengths, &GossipAlgorithm::Approach1);
    let bound = any.map_or(Fraction::new(0, 1), |gossip| gossip.bound(&in_flits));
    let comparison = Comparison {
        operation: "gossip",
        network,
        pes: arena.pes(),
        ratio: Fraction::new(prices.startup.into(), prices.flit.into()),
        bound,
        results: rows,
    };
    Ok(match args.format {
        Format::Json => format!("{:#}\n", json!(comparison)),
        _ => comparison.text(&arena, prices.hop > 0),
    })
}

fn network_and_prices(
    args: &CompareGossipArgs,
    network: &str,
) -> Result<(GossipNetwork, Prices), Faults> {
    let lengths = args.lengths.is_some().then_some("--lengths");
    let ports = (args.ports == Ports::Multi).then_some("--ports");
    let of_trees = args.tree.given_for_trees().chain(lengths).chain(ports);
    let mut faults = Faults::all(of_trees.map(|option| {
        anyhow!(
            "{option} is for trees: on a --network, which has no root and a port for each edge, \
             blocks of one length are compared"
        )
    }));
    let arena = faults.take(gossip_network(network));
    let prices = typed(&args.prices).and_then(|prices| prices.prices());
    let prices = faults.take(prices);
    if prices.as_ref().is_some_and(|prices| prices.flit == 0) {
        let why = "times are compared in units of t_l, which has to be more than 0";
        faults.0.push(anyhow!("--tl 0: {why}"));
    }
    if let Some(GossipNetwork::Grid(grid)) = &arena
        && let Some(side) = grid.sides.iter().find(|side| **side > MAX_SIDE)
    {
        faults.0.push(anyhow!(
            "--network: a side of {side} has too many parameters to compare; use sides of at \
             most {MAX_SIDE}"
        ));
    }
    match (arena, prices) {
        (Some(arena), Some(prices)) if faults.0.is_empty() => Ok((arena, prices)),
        _ => Err(faults),
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
    fn text(&self, arena: &GossipNetwork, counts_hops: bool) -> String {
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
        let title = format!(
            "gossip of equal blocks over {} PEs on {}; t_s is {} t_l, and no schedule takes less than {} t_l",
            self.pes,
            self.network,
            decimal(self.ratio),
            decimal(self.bound),
        );
        let width = screen::columns();
        let heading = heading(&title, width);
        let table = fitted(table, 3, &LEAST, width);
        let mut out = format!("{heading}\n\n{table}\n");
        let mut note = |text: &str| out.push_str(&beside("", 0, text, width));
        let has_paper = self.results.iter().any(|row| row.paper.is_some());
        if has_paper {
            note("paper: as printed in its tables");
        }
        if self.results.iter().any(|row| row.formula.is_some()) {
            note(
                "formula: the paper's, with fractions of a round; whole steps: without these, and \
                 without leaving anything out",
            );
        }
        if self.results.iter().any(|row| row.planned.is_some()) {
            note("planned: packets leave out what their receivers have");
        } else {
            note("there are too many PEs for plans of what each gets from each");
        }
        if matches!(arena, GossipNetwork::Complete(_)) {
            let one_port = |(_, one): &(_, CompleteGossip)| one.ports(usize::MAX) == 1;
            let (quickest, others): (Vec<_>, Vec<_>) =
                CompleteGossip::ALL.into_iter().partition(one_port);
            let names = joined(others.into_iter().map(|(name, _)| name), "and");
            note(&format!(
                "{names} send several packets at a time, and the model leaves out that each costs a \
                 set-up; where all reach each other, nothing of the paper beats {}",
                quickest[0].0,
            ));
        } else if counts_hops {
            note("only what is planned counts t_d");
        }
        out
    }
}
