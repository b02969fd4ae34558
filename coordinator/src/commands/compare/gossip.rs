//! `flitcast compare gossip` on a network, for equal blocks: the figures in the paper's tables,
//! those of its formulas, those of whole steps, and those of plans.

use anyhow::anyhow;
use flitcast_plan::fraction::Fraction;
use flitcast_plan::gossip::paper::{
    PaperRow, TABLE_1, TABLE_2, best_ring, best_torus, ring_approach_1, ring_approach_2,
    ring_circgos, ring_whole_steps, torus_approaches, torus_torgos, torus_whole_steps,
};
use flitcast_plan::gossip::{
    CompleteGossip, Diagonal, Gossip, GossipAlgorithm, GossipNetwork, Grid, LineParameters, Prices,
    choose,
};
use serde::Serialize;
use serde_json::json;

use super::CompareGossipArgs;
use flitcast_cluster::job::prices::typed;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::values::{gossip_network, joined};
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
        let mut table = table(columns.iter().map(|at| header[*at]));
        for row in &rows {
            table.add_row(columns.iter().map(|at| &row[*at]));
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

/// The text in place of a missing figure.
const NONE: &str = "-";

#[derive(Default, Serialize)]
struct Row {
    name: String,
    /// The value for `flitcast plan gossip --algorithm`, if there is one.
    algorithm: Option<String>,
    /// The figure in the paper's table.
    paper: Option<u64>,
    /// The figure of the paper's formula.
    formula: Option<f64>,
    /// The time in whole steps, before packets omit anything.
    whole_steps: Option<f64>,
    planned: Option<Planned>,
    best: bool,
}

#[derive(Serialize)]
struct Planned {
    startups: u64,
    distance: u64,
    #[serde(serialize_with = "as_exact")]
    blocks: Fraction,
    #[serde(serialize_with = "as_exact")]
    time: Fraction,
}

impl Row {
    /// Creates a row without figures.
    fn named(name: &str, algorithm: Option<&GossipAlgorithm>) -> Row {
        Row {
            name: name.to_owned(),
            algorithm: algorithm.map(GossipAlgorithm::to_string),
            ..Row::default()
        }
    }

    /// Plans the gossip by this algorithm and returns its cost.
    fn plan(&self, arena: &GossipNetwork, lengths: &[u64], prices: &Prices) -> Option<Planned> {
        let algorithm: GossipAlgorithm = self.algorithm.as_ref()?.parse().ok()?;
        let cost = Gossip::new(arena.clone(), lengths, &algorithm).ok()?.cost();
        Some(Planned {
            startups: cost.startups,
            distance: cost.distance,
            blocks: Fraction::new(cost.flits.into(), arena.classes() as u128),
            time: Fraction::new(prices.time(cost), prices.unit.into()),
        })
    }

    /// Returns the cells of the row, from the star of the best to the planned time.
    fn cells(&self) -> [String; 10] {
        let none = || NONE.to_owned();
        let number = |number: Option<f64>| {
            let one_decimal = |number| format!("{number:.1}").trim_end_matches(".0").to_owned();
            number.map_or_else(none, one_decimal)
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

/// Returns the algorithms of a network, with all figures that need no plan.
fn rows(arena: &GossipNetwork, ratio: f64) -> Vec<Row> {
    match arena {
        GossipNetwork::Grid(Grid {
            sides,
            closed: true,
        }) if sides.iter().all(|side| *side == sides[0]) => match sides[..] {
            [side] => ring_rows(side, ratio),
            _ => torus_rows(sides[0], sides.len(), ratio),
        },
        GossipNetwork::Grid(_) => vec![
            Row::named("approach 1", Some(&GossipAlgorithm::Approach1)),
            Row::named("approach 2", Some(&GossipAlgorithm::Approach2(1))),
        ],
        GossipNetwork::Complete(_) => {
            let all = CompleteGossip::ALL.map(|(name, one)| (name, GossipAlgorithm::Among(one)));
            let fitting = all.iter().filter(|(_, one)| one.on(arena).is_ok());
            let rows = fitting.map(|(name, one)| Row::named(name, Some(one)));
            rows.collect()
        }
    }
}

fn ring_rows(n: usize, r: f64) -> Vec<Row> {
    let is_of_paper = |row: &&PaperRow<3>| row.side == n && row.ratio as f64 == r;
    let printed = TABLE_1.iter().find(is_of_paper);
    let paper = |place: usize| printed.map(|row: &PaperRow<3>| row.printed[place]);
    let of_paper = printed.map(|row| {
        let [heads, division, steps] = row.parameters;
        LineParameters::new(heads, division, steps)
    });
    let three = LineParameters::approach_2(3);
    let circgos = |name: &str, parameters: LineParameters| Row {
        formula: Some(match parameters.heads == n {
            true => ring_approach_1(n, r),
            false => ring_circgos(n, r, parameters),
        }),
        whole_steps: Some(ring_whole_steps(n, parameters).time(r)),
        ..Row::named(name, Some(&GossipAlgorithm::Circgos(parameters)))
    };
    let mut rows = vec![
        Row {
            paper: paper(0),
            formula: Some(ring_approach_1(n, r)),
            whole_steps: Some(ring_whole_steps(n, LineParameters::APPROACH_1).time(r)),
            ..Row::named("approach 1", Some(&GossipAlgorithm::Approach1))
        },
        Row {
            paper: paper(1),
            formula: Some(ring_approach_2(n, r)),
            whole_steps: Some(ring_whole_steps(n, three).time(r)),
            ..Row::named("approach 2", Some(&GossipAlgorithm::Approach2(3)))
        },
    ];
    rows.extend(of_paper.map(|parameters| Row {
        paper: paper(2),
        ..circgos("CIRCGOS, the paper's", parameters)
    }));
    let (best, _) = best_ring(n, r);
    if best.heads < n && of_paper != Some(best) {
        rows.push(circgos("CIRCGOS, whole steps", best));
    }
    rows.push(Row::named("halves", Some(&GossipAlgorithm::Halves)));
    rows
}

fn torus_rows(n: usize, dimensions: usize, r: f64) -> Vec<Row> {
    let is_of_paper =
        |row: &&PaperRow<5>| dimensions == 2 && row.side == n && row.ratio as f64 == r;
    let printed = TABLE_2.iter().find(is_of_paper);
    let paper = |place: usize| printed.map(|row: &PaperRow<5>| row.printed[place]);
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
    let approach = |place: usize, name: &str, algorithm: GossipAlgorithm| Row {
        paper: paper(place),
        formula: by_formula[place],
        ..Row::named(name, Some(&algorithm))
    };
    let in_all = |number| vec![number; dimensions].join("-");
    let name = format!("approach {}", in_all("1"));
    let mut rows = vec![Row {
        whole_steps: Some(in_whole_steps(&all)),
        ..approach(0, &name, GossipAlgorithm::Approach1)
    }];
    if dimensions == 2 {
        let phases = GossipAlgorithm::Phases(vec![three, around]);
        rows.push(approach(1, "approach 2-1", phases));
    }
    let name = format!("approach {}", in_all("2"));
    rows.push(approach(2, &name, GossipAlgorithm::Approach2(3)));
    let mut torgos = |name: &str, place: Option<usize>, [points, division, steps]: [usize; 3]| {
        let diagonal = even_rounds(n, points, division, steps);
        let algorithm = diagonal.clone().map(GossipAlgorithm::Torgos);
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
    if let Some(row) = printed.filter(|row| row.parameters != [3, 3, 1]) {
        let [points, division, steps] = row.parameters;
        let name = format!("TORGOS ({points}, {division}, {steps})");
        torgos(&name, Some(4), row.parameters);
    }
    let (best, whole) = best_torus(n, dimensions, r);
    let algorithm = GossipAlgorithm::Torgos(best);
    let name = algorithm.to_string();
    if rows.iter().all(|row| row.algorithm.as_ref() != Some(&name)) {
        rows.push(Row {
            whole_steps: Some(whole.time(r)),
            ..Row::named("TORGOS, whole steps", Some(&algorithm))
        });
    }
    rows
}

/// Returns TORGOS with equal b and equal x, if the side has that many points.
fn even_rounds(side: usize, points: usize, division: usize, steps: usize) -> Option<Diagonal> {
    let mut reached = points;
    let mut rounds = Vec::new();
    while reached < side {
        reached *= division;
        rounds.push((division, steps));
    }
    (reached == side).then_some(Diagonal { points, rounds })
}
