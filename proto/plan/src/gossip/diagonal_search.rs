//! The search for the best TORGOS on a torus or a mesh of equal sides. It tries every A and every order of
//! factors b_j. Since x_j changes only the steps of one round, it tries every x_j round by round.

use super::flits::{Blocks, Flits};
use super::line_cost::{LoadedGap, Round};
use super::moves::Move;
use super::stage::Diagonal;
use super::steps::{Cost, Prices, Step, StepCost};
use super::walk::Walk;
use crate::gossip::GossipNetwork;
use crate::network::Grid;

struct Search<'a> {
    grid: &'a Grid,
    arena: GossipNetwork,
    prices: &'a Prices,
    best: Option<(u128, Diagonal, Cost)>,
}

/// Returns the parameters with the least time, and their cost.
pub fn best(grid: &Grid, blocks: &Blocks, prices: &Prices) -> (Diagonal, Cost) {
    let mut search = Search {
        grid,
        arena: GossipNetwork::Grid(grid.clone()),
        prices,
        best: None,
    };
    let side = grid.sides[0];
    for points in (1..=side).filter(|points| side.is_multiple_of(*points)) {
        let spacing = side / points;
        let stages = Diagonal::meeting(spacing, points, grid.sides.len());
        let mut walk = Walk::new(grid, blocks, stages);
        let cost = search.rest_of(&mut walk);
        let rounds = Vec::new();
        search.from(&walk, spacing, Diagonal { points, rounds }, cost);
    }
    let best = search.best.map(|(_, diagonal, cost)| (diagonal, cost));
    best.unwrap_or_else(|| {
        let (points, rounds) = (side, Vec::new());
        (Diagonal { points, rounds }, Cost::default())
    })
}

impl Search<'_> {
    /// Returns the cost of all remaining steps of a walk.
    fn rest_of(&self, walk: &mut Walk) -> Cost {
        let cost = |step: Step| step.cost(&self.arena);
        walk.by_ref().map(cost).collect()
    }

    /// Tries all rounds that can follow if the points of the diagonals have this spacing.
    fn from(&mut self, walk: &Walk, spacing: usize, so_far: Diagonal, cost: Cost) {
        let time = self.prices.time(cost);
        if self.best.as_ref().is_some_and(|(least, ..)| time >= *least) {
            return;
        }
        if spacing == 1 {
            self.best = Some((time, so_far, cost));
            return;
        }
        for division in (2..=spacing).filter(|division| spacing.is_multiple_of(*division)) {
            let (steps, of_spreading) = self.best_spread(walk, spacing, division);
            let mut walk = walk.clone();
            // The number of packets does not affect the final state.
            walk.push(Diagonal::spread(spacing, division, division / 2));
            walk.by_ref().for_each(drop);
            let next = spacing / division;
            let wipe = Diagonal::wipe(next, division, self.grid.sides.len());
            wipe.for_each(|stage| walk.push(stage));
            let cost = cost + of_spreading + self.rest_of(&mut walk);
            let mut diagonal = so_far.clone();
            diagonal.rounds.push((division, steps));
            self.from(&walk, next, diagonal, cost);
        }
    }

    /// Returns the best x of a round, up to `2b + 1`.
    fn best_spread(&self, walk: &Walk, spacing: usize, division: usize) -> (usize, Cost) {
        let stage = Diagonal::spread(spacing, division, division / 2);
        let mut held: Vec<(u64, Vec<Flits>)> = Vec::new();
        let mut gaps = Vec::new();
        for (class, axis, first, moves) in Walk::lines_of(self.grid, &stage) {
            for one in moves.iter() {
                let Move::Spread { gaps: of_line, .. } = one else {
                    continue;
                };
                for gap in of_line.iter() {
                    let at = |point| walk.held(class, self.grid.along(first, axis, point));
                    let whole = at(gap.points[0]);
                    let new = gap.new_points().iter();
                    let ranks = new.map(|point| at(*point).ranks_in(whole));
                    held.push((whole.len(), ranks.collect()));
                    gaps.push(gap.clone());
                }
            }
        }
        let total = held.iter().map(|(total, _)| *total).max().unwrap_or(0);
        let round = Round::new(gaps);
        let options = (division / 2..=2 * division + 1).map(|steps| {
            let loaded = round.gaps.iter().zip(&held);
            let loaded = loaded.map(|(gap, (total, held))| LoadedGap {
                gap,
                total: *total,
                held: held.iter().collect(),
            });
            let costs: Vec<StepCost> = round.costs(total, loaded, 2 * steps + 2 - division);
            (steps, Cost::from_iter(costs))
        });
        let best = options.min_by_key(|(_, cost)| self.prices.time(*cost));
        best.unwrap_or((division / 2, Cost::default()))
    }
}
