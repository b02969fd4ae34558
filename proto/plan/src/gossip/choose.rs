//! The choice of the cheapest algorithm on a network: all parameters are tried. Where there are many,
//! their costs are computed without making packets.

use super::Gossip;
use super::algorithm::GossipAlgorithm;
use super::complete::CompleteGossip;
use super::flits::{Blocks, Flits};
use super::gossip_network::GossipNetwork;
use super::line_cost::{Load, LoadedGap, Round};
use super::moves::{LineParameters, Move};
use super::stage::{Diagonal, Stage};
use super::steps::{Cost, Prices, Step, StepCost};
use super::walk::Walk;
use crate::network::Grid;

/// The greatest a that is tried: that of the paper's Table 1.
const MOST_DIVISION: usize = 13;

/// Returns the algorithm with the least time at these prices: one of the line algorithms in every
/// phase, TORGOS on tori and meshes of equal sides, or halves on rings. On complete networks one packet at a time
/// is sent: the model omits that more packets cost more set-ups.
pub fn choose(arena: &GossipNetwork, lengths: &[u64], prices: &Prices) -> GossipAlgorithm {
    let grid = match arena {
        GossipNetwork::Complete(_) => return choose_among(arena, lengths, prices),
        GossipNetwork::Grid(grid) => grid,
    };
    let blocks = Blocks::new(lengths, arena.classes());
    let (phases, cost) = best_phases(grid, &blocks, prices);
    let mut best = (prices.time(cost), in_phases(grid, phases));
    let mut offer = |cost: Cost, algorithm: &dyn Fn() -> GossipAlgorithm| {
        let time = prices.time(cost);
        if time < best.0 {
            best = (time, algorithm());
        }
    };
    match grid.sides.len() {
        1 if grid.closed => offer(halves_cost(lengths), &|| GossipAlgorithm::Halves),
        1 => {}
        _ if grid.sides.iter().all(|side| *side == grid.sides[0]) => {
            let (diagonal, cost) = best_diagonal(grid, &blocks, prices);
            offer(cost, &|| GossipAlgorithm::Torgos(diagonal.clone()));
        }
        _ => {}
    }
    best.1
}

fn choose_among(arena: &GossipNetwork, lengths: &[u64], prices: &Prices) -> GossipAlgorithm {
    let all = CompleteGossip::ALL.map(|(_, one)| one);
    let one_port = all.into_iter().filter(|one| one.ports(arena.pes()) == 1);
    let fitting = one_port.filter_map(|one| {
        let algorithm = GossipAlgorithm::Among(one);
        let gossip = Gossip::new(arena.clone(), lengths, &algorithm).ok()?;
        Some((prices.time(gossip.cost()), algorithm))
    });
    let best = fitting.min_by_key(|(time, _)| *time);
    best.map_or(GossipAlgorithm::Among(all[0]), |(_, algorithm)| algorithm)
}

/// Returns the shortest name of a gossip in phases.
fn in_phases(grid: &Grid, phases: Vec<LineParameters>) -> GossipAlgorithm {
    let longest = grid.sides.iter().max().copied().unwrap_or(0);
    match phases[..] {
        _ if phases.iter().all(|phase| phase.heads >= longest) => GossipAlgorithm::Approach1,
        [only] => GossipAlgorithm::Circgos(only),
        _ => GossipAlgorithm::Phases(phases),
    }
}

/// Returns the cost of halves: in each of n - 1 steps, the longer half of the longest block crosses an
/// edge.
fn halves_cost(lengths: &[u64]) -> Cost {
    let longest = lengths.iter().max().copied().unwrap_or(0);
    let step = StepCost {
        distance: u64::from(longest > 0),
        flits: longest.div_ceil(2),
    };
    std::iter::repeat_n(step, lengths.len() - 1).collect()
}

/// Returns the best parameters for each axis. The result of a phase does not depend on the phases
/// before it.
pub(super) fn best_phases(
    grid: &Grid,
    blocks: &Blocks,
    prices: &Prices,
) -> (Vec<LineParameters>, Cost) {
    let mut walk = Walk::new(grid, blocks, Vec::new());
    let mut phases = Vec::new();
    let mut cost = Cost::default();
    for axis in 0..grid.sides.len() {
        if axis > 0 {
            let parameters = LineParameters::approach_2(1);
            let axis = axis - 1;
            walk.push(Stage::Line { axis, parameters });
            walk.by_ref().for_each(drop);
        }
        let (phase, of_phase) = best_phase(&loads(grid, &walk, axis), prices);
        phases.push(phase);
        cost = cost + of_phase;
    }
    (phases, cost)
}

/// Returns the initial data of all lines of a phase, once for equal neighbouring lines.
fn loads(grid: &Grid, walk: &Walk, axis: usize) -> Vec<Load> {
    let dimensions = grid.sides.len();
    let mut loads = Vec::new();
    for class in 0..dimensions {
        let axis = (axis + class) % dimensions;
        loads.extend(grid.line_begins(axis).map(|first| {
            let at = |position| walk.held(class, grid.along(first, axis, position as i64));
            let own: Vec<&Flits> = (0..grid.sides[axis]).map(at).collect();
            Load::new(grid.line(axis), &own)
        }));
        loads.dedup();
    }
    loads
}

/// Returns the best parameters if all these lines gossip in lock step.
fn best_phase(loads: &[Load], prices: &Prices) -> (LineParameters, Cost) {
    let longest = loads.iter().map(Load::positions).max().unwrap_or(0);
    let mut best: Option<(u128, LineParameters, Cost)> = None;
    for heads in (1..=longest / 2).chain([longest]) {
        let met: Vec<_> = loads.iter().map(|load| load.met(heads)).collect();
        let all_are_heads = heads == longest;
        for division in 2..=if all_are_heads { 2 } else { MOST_DIVISION } {
            let rounds: Vec<_> = met.iter().map(|met| met.rounds(division)).collect();
            let most = if all_are_heads { 1 } else { 2 * division + 1 };
            for steps in division / 2..=most {
                let parameters = LineParameters::new(heads, division, steps);
                let of_lines = met.iter().zip(&rounds);
                let of_lines = of_lines.map(|(met, rounds)| met.costs(rounds, parameters));
                let cost = in_lock_step(of_lines);
                let time = prices.time(cost);
                if best.is_none_or(|(least, ..)| time < least) {
                    best = Some((time, parameters, cost));
                }
            }
        }
    }
    let best = best.map(|(_, parameters, cost)| (parameters, cost));
    best.unwrap_or((LineParameters::APPROACH_1, Cost::default()))
}

fn in_lock_step(lines: impl Iterator<Item = Vec<StepCost>>) -> Cost {
    let all = lines.reduce(|mut all, line| {
        all.resize(all.len().max(line.len()), StepCost::default());
        for (step, other) in all.iter_mut().zip(line) {
            *step = step.max(other);
        }
        all
    });
    all.into_iter().flatten().collect()
}

struct Search<'a> {
    grid: &'a Grid,
    arena: GossipNetwork,
    prices: &'a Prices,
    best: Option<(u128, Diagonal, Cost)>,
}

/// Returns the parameters of TORGOS with the least time on a torus or a mesh of equal sides, and their cost.
/// It tries every A and every order of factors b_j. Since x_j changes only the steps of one round, it tries
/// every x_j round by round.
pub(super) fn best_diagonal(grid: &Grid, blocks: &Blocks, prices: &Prices) -> (Diagonal, Cost) {
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
