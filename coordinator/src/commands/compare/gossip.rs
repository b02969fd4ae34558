//! `flitcast compare gossip`: what the paper's tables print, what its formulas give, what the same
//! takes in whole steps, and what plans come to, for equal blocks.

use std::io::{self, Write};

use clap::Args;
use flitcast_proto::gossip::paper::{
    RingRow, TABLE_1, TABLE_2, TorusRow, ring_approach_1, ring_approach_2, ring_circgos,
    torus_approaches, torus_torgos,
};
use flitcast_proto::gossip::whole_steps::{
    best_ring, best_torus, ring_whole_steps, torus_whole_steps,
};
use flitcast_proto::gossip::{
    Algorithm, Arena, Diagonal, Exact, Gossip, Grid, LineParameters, Prices, choose,
};
use serde::Serialize;
use serde_json::json;
use thiserror::Error;

use super::CompareError;
use crate::options::format::{Format, TABLE_OR_JSON};
use crate::options::gossip_network::{GossipNetworkError, gossip_network};
use crate::options::prices::{PriceArgs, PriceError};
use crate::text::figures::{as_exact, decimal, lines, table};

/// Sides of rings and tori whose parameters can all be tried.
const MAX_SIDE: usize = 65_536;

/// Arguments of `flitcast compare gossip`.
#[derive(Debug, Args)]
pub struct CompareGossipArgs {
    /// The network: ring:N, array:N, mesh:AxB.., torus:AxB.. or complete:N.
    #[arg(long, value_name = "NETWORK")]
    pub network: String,
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
struct Row {
    name: String,
    /// As `flitcast plan gossip --algorithm` takes it, if it does.
    algorithm: Option<String>,
    /// What the paper's table prints.
    paper: Option<u64>,
    /// What the paper's formula gives.
    formula: Option<f64>,
    /// What whole steps take, before packets leave anything out.
    whole_steps: Option<f64>,
    planned: Option<Planned>,
    best: bool,
}

/// What a plan comes to.
#[derive(Serialize)]
struct Planned {
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
    let (arena, prices) =
        asked(args).map_err(|all| all.into_iter().map(CompareError::from).collect::<Vec<_>>())?;
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
    if arena.check_size().is_ok() {
        let chosen = choose(&arena, &lengths, &in_flits);
        let is_there = |row: &&mut Row| row.algorithm.as_deref() == Some(&*chosen.to_string());
        if rows.iter_mut().find(is_there).is_none() {
            rows.push(Row::named("planner's choice", Some(&chosen)));
        }
        for row in &mut rows {
            row.planned = row.plan(&arena, &lengths, &in_flits);
        }
    }
    mark_best(&mut rows);
    let any = Gossip::new(arena.clone(), &lengths, &Algorithm::Approach1);
    let bound = any.map_or(Exact::new(0, 1), |gossip| gossip.bound(&in_flits));
    let comparison = Comparison {
        operation: "gossip",
        network: &args.network,
        pes: arena.pes(),
        ratio: Exact::new(prices.startup.into(), prices.flit.into()),
        bound,
        results: rows,
    };
    let printed = match args.format {
        Format::Json => format!("{:#}\n", json!(comparison)),
        _ => comparison.text(prices.hop > 0),
    };
    Ok(out.write_all(printed.as_bytes()))
}

fn asked(args: &CompareGossipArgs) -> Result<(Arena, Prices), Vec<GossipFault>> {
    let mut faults: Vec<GossipFault> = Vec::new();
    let arena = gossip_network(&args.network);
    let arena = arena.map_err(|fault| faults.push(fault.into())).ok();
    let prices = args.prices.prices();
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

/// The algorithms of a network, with what is known of them without a plan.
fn rows(arena: &Arena, ratio: f64) -> Vec<Row> {
    match arena {
        Arena::Grid(Grid {
            sides,
            closed: true,
        }) if sides.iter().all(|side| *side == sides[0]) => match sides[..] {
            [side] => ring_rows(side, ratio),
            _ => torus_rows(sides[0], sides.len(), ratio),
        },
        Arena::Grid(_) => vec![
            Row::named("approach 1", Some(&Algorithm::Approach1)),
            Row::named("approach 2", Some(&Algorithm::Approach2(1))),
        ],
        Arena::Complete(_) => {
            let names = [
                "dissemination",
                "circulate",
                "neighbour",
                "approach1",
                "direct",
            ];
            let algorithms = names.map(|name| (name, name.parse::<Algorithm>().ok()));
            let all = algorithms.into_iter();
            let fitting =
                all.filter(|(_, one)| one.as_ref().is_some_and(|one| one.on(arena).is_ok()));
            fitting
                .map(|(name, algorithm)| Row::named(name, algorithm.as_ref()))
                .collect()
        }
    }
}

fn ring_rows(n: usize, r: f64) -> Vec<Row> {
    let printed = TABLE_1
        .iter()
        .find(|row| row.side == n && row.ratio as f64 == r);
    let paper = |place: usize| printed.map(|row: &RingRow| row.printed[place]);
    let three = LineParameters::approach_2(3);
    let circgos = |name: &str, parameters: LineParameters| Row {
        formula: Some(match parameters.heads == n {
            true => ring_approach_1(n, r),
            false => ring_circgos(n, r, parameters),
        }),
        whole_steps: Some(ring_whole_steps(n, parameters).time(r)),
        ..Row::named(name, Some(&Algorithm::Circgos(parameters)))
    };
    let mut rows = vec![
        Row {
            paper: paper(0),
            formula: Some(ring_approach_1(n, r)),
            whole_steps: Some(ring_whole_steps(n, LineParameters::APPROACH_1).time(r)),
            ..Row::named("approach 1", Some(&Algorithm::Approach1))
        },
        Row {
            paper: paper(1),
            formula: Some(ring_approach_2(n, r)),
            whole_steps: Some(ring_whole_steps(n, three).time(r)),
            ..Row::named("approach 2", Some(&Algorithm::Approach2(3)))
        },
    ];
    rows.extend(printed.map(|row| Row {
        paper: paper(2),
        ..circgos("CIRCGOS, the paper's", row.circgos)
    }));
    let (best, _) = best_ring(n, r);
    if best.heads < n && printed.is_none_or(|row| row.circgos != best) {
        rows.push(circgos("CIRCGOS, whole steps", best));
    }
    rows.push(Row::named("halves", Some(&Algorithm::Halves)));
    rows
}

fn torus_rows(n: usize, dimensions: usize, r: f64) -> Vec<Row> {
    let is_of_paper = |row: &&TorusRow| dimensions == 2 && row.side == n && row.ratio as f64 == r;
    let printed = TABLE_2.iter().find(is_of_paper);
    let paper = |place: usize| printed.map(|row: &TorusRow| row.printed[place]);
    let in_whole_steps = |diagonal: &Diagonal| torus_whole_steps(n, dimensions, diagonal).time(r);
    let three = LineParameters::approach_2(3);
    let around = LineParameters {
        heads: n,
        division: 2,
        steps: 1,
    };
    let all = Diagonal {
        points: n,
        rounds: Vec::new(),
    };
    let by_formula = torus_approaches(n, r).map(|formula| (dimensions == 2).then_some(formula));
    let approach = |place: usize, name: &str, algorithm: Algorithm| Row {
        paper: paper(place),
        formula: by_formula[place],
        ..Row::named(name, Some(&algorithm))
    };
    let in_all = |number| vec![number; dimensions].join("-");
    let mut rows = vec![Row {
        whole_steps: Some(in_whole_steps(&all)),
        ..approach(
            0,
            &format!("approach {}", in_all("1")),
            Algorithm::Approach1,
        )
    }];
    if dimensions == 2 {
        let phases = Algorithm::Phases(vec![three, around]);
        rows.push(approach(1, "approach 2-1", phases));
    }
    rows.push(approach(
        2,
        &format!("approach {}", in_all("2")),
        Algorithm::Approach2(3),
    ));
    let mut torgos = |name: &str, place: Option<usize>, [points, division, steps]: [usize; 3]| {
        let diagonal = even_rounds(n, points, division, steps);
        let algorithm = diagonal.clone().map(Algorithm::Torgos);
        rows.push(Row {
            paper: place.and_then(paper),
            formula: (dimensions == 2).then(|| torus_torgos(n, r, [points, division, steps])),
            whole_steps: diagonal.as_ref().map(in_whole_steps),
            ..Row::named(name, algorithm.as_ref())
        });
    };
    if dimensions == 2 || even_rounds(n, 3, 3, 1).is_some() {
        torgos("TORGOS (3, 3, 1)", Some(3), [3, 3, 1]);
    }
    if let Some(row) = printed.filter(|row| row.torgos != [3, 3, 1]) {
        let [points, division, steps] = row.torgos;
        let name = format!("TORGOS ({points}, {division}, {steps})");
        torgos(&name, Some(4), row.torgos);
    }
    let (best, whole) = best_torus(n, dimensions, r);
    let algorithm = Algorithm::Torgos(best);
    let name = algorithm.to_string();
    if rows.iter().all(|row| row.algorithm.as_ref() != Some(&name)) {
        rows.push(Row {
            whole_steps: Some(whole.time(r)),
            ..Row::named("TORGOS, whole steps", Some(&algorithm))
        });
    }
    rows
}

/// TORGOS with all b and all x alike, if that many points come to the side so.
fn even_rounds(side: usize, points: usize, division: usize, steps: usize) -> Option<Diagonal> {
    let mut reached = points;
    let mut rounds = Vec::new();
    while reached < side {
        reached *= division;
        rounds.push((division, steps));
    }
    (reached == side).then_some(Diagonal { points, rounds })
}

impl Row {
    /// One of which nothing is known yet.
    fn named(name: &str, algorithm: Option<&Algorithm>) -> Row {
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

/// By what plans come to; where none can be made, by whole steps.
fn mark_best(rows: &mut [Row]) {
    let planned = rows
        .iter()
        .filter_map(|row| Some(row.planned.as_ref()?.time));
    let least = planned.min();
    let whole = rows.iter().filter_map(|row| row.whole_steps);
    let fewest = whole.min_by(f64::total_cmp);
    let is_best = |row: &Row| match least {
        Some(least) => row.planned.as_ref().is_some_and(|plan| plan.time == least),
        None => row.whole_steps.is_some() && row.whole_steps == fewest,
    };
    if let Some(best) = rows.iter_mut().find(|row| is_best(row)) {
        best.best = true;
    }
}

impl Comparison<'_> {
    fn text(&self, counts_hops: bool) -> String {
        let mut table = table([
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
        ]);
        let number = |number: Option<f64>| match number {
            Some(number) => format!("{number:.1}").trim_end_matches(".0").to_owned(),
            None => "-".to_owned(),
        };
        for row in &self.results {
            let planned = match &row.planned {
                Some(plan) => [
                    plan.startups.to_string(),
                    plan.distance.to_string(),
                    decimal(plan.blocks),
                    decimal(plan.time),
                ],
                None => ["-"; 4].map(str::to_owned),
            };
            let [startups, hops, blocks, time] = planned;
            table.add_row([
                if row.best { "*" } else { "" }.to_owned(),
                row.name.clone(),
                row.algorithm.clone().unwrap_or("-".to_owned()),
                number(row.paper.map(|paper| paper as f64)),
                number(row.formula),
                number(row.whole_steps),
                startups,
                hops,
                blocks,
                time,
            ]);
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
        if counts_hops {
            out.push_str("  only what is planned counts t_d\n");
        }
        out
    }
}
