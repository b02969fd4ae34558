//! The rows of a comparison: the algorithms of a network, and their figures in the paper.

use flitcast_plan::fraction::Fraction;
use flitcast_plan::gossip::paper::{
    PaperRow, TABLE_1, TABLE_2, best_ring, best_torus, ring_approach_1, ring_approach_2,
    ring_circgos, ring_whole_steps, torus_approaches, torus_torgos, torus_whole_steps,
};
use flitcast_plan::gossip::{
    CompleteGossip, Diagonal, Gossip, GossipAlgorithm, GossipNetwork, Grid, LineParameters, Prices,
};
use serde::Serialize;

use flitcast_cluster::text::figures::{as_exact, decimal};

/// The text in place of a missing figure.
pub const NONE: &str = "-";

/// One algorithm.
#[derive(Default, Serialize)]
pub struct Row {
    pub name: String,
    /// The value for `flitcast plan gossip --algorithm`, if there is one.
    pub algorithm: Option<String>,
    /// The figure in the paper's table.
    pub paper: Option<u64>,
    /// The figure of the paper's formula.
    pub formula: Option<f64>,
    /// The time in whole steps, before packets omit anything.
    pub whole_steps: Option<f64>,
    pub planned: Option<Planned>,
    pub best: bool,
}

/// The cost of a plan.
#[derive(Serialize)]
pub struct Planned {
    startups: u64,
    distance: u64,
    #[serde(serialize_with = "as_exact")]
    blocks: Fraction,
    #[serde(serialize_with = "as_exact")]
    time: Fraction,
}

impl Row {
    /// Creates a row without figures.
    pub fn named(name: &str, algorithm: Option<&GossipAlgorithm>) -> Row {
        Row {
            name: name.to_owned(),
            algorithm: algorithm.map(GossipAlgorithm::to_string),
            ..Row::default()
        }
    }

    /// Plans the gossip by this algorithm and returns its cost.
    pub fn plan(&self, arena: &GossipNetwork, lengths: &[u64], prices: &Prices) -> Option<Planned> {
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
    pub fn cells(&self) -> [String; 10] {
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
pub fn rows(arena: &GossipNetwork, ratio: f64) -> Vec<Row> {
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
            fitting
                .map(|(name, one)| Row::named(name, Some(one)))
                .collect()
        }
    }
}

fn ring_rows(n: usize, r: f64) -> Vec<Row> {
    let printed = TABLE_1
        .iter()
        .find(|row| row.side == n && row.ratio as f64 == r);
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
    let mut rows = vec![Row {
        whole_steps: Some(in_whole_steps(&all)),
        ..approach(
            0,
            &format!("approach {}", in_all("1")),
            GossipAlgorithm::Approach1,
        )
    }];
    if dimensions == 2 {
        let phases = GossipAlgorithm::Phases(vec![three, around]);
        rows.push(approach(1, "approach 2-1", phases));
    }
    rows.push(approach(
        2,
        &format!("approach {}", in_all("2")),
        GossipAlgorithm::Approach2(3),
    ));
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
