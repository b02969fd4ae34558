//! A row of a comparison of gossips on a network.

use flitcast_plan::fraction::Fraction;
use flitcast_plan::gossip::{Gossip, GossipAlgorithm, GossipNetwork, Prices};
use serde::Serialize;

use flitcast_cluster::text::figures::{as_exact, decimal};

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
}

/// The text in place of a missing figure.
pub const NONE: &str = "-";

impl Row {
    /// Returns the cells of the row, from the star of the best to the planned time.
    pub fn cells(&self) -> [String; 10] {
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
