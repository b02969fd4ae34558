//! The paper's schedules for equal blocks in whole steps, where its formulas have fractions of a round:
//! their times before packets omit what their receivers have, in units of t'_l as in
//! [`paper`](super::paper). These are formulas, for networks of any size.

use super::line::LineParameters;
use super::moves::{Move, concentrate, concentration_steps};
use super::stage::Diagonal;

/// A schedule in whole steps, for blocks of one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WholeSteps {
    /// Number of steps.
    pub startups: u64,
    /// Sum of the largest packets, in blocks.
    pub blocks: f64,
}

impl WholeSteps {
    /// Returns its time.
    pub fn time(self, r: f64) -> f64 {
        self.startups as f64 * r + self.blocks
    }

    fn and(self, startups: usize, blocks: f64) -> WholeSteps {
        WholeSteps {
            startups: self.startups + startups as u64,
            blocks: self.blocks + blocks,
        }
    }
}

/// Returns the concentration of `m` positions: the sum of the largest packets of all its steps, in
/// blocks.
fn concentration(m: usize) -> WholeSteps {
    let mut held = vec![1u64; m];
    let mut blocks = 0;
    for level in concentrate([(0, m)].into_iter()) {
        let Move::Concentrate(pairs) = level else {
            continue;
        };
        let pairs = pairs
            .iter()
            .map(|(from, to)| (*from as usize, *to as usize));
        blocks += pairs.clone().map(|(from, _)| held[from]).max().unwrap_or(0);
        for (from, to) in pairs {
            held[to] += held[from];
        }
    }
    WholeSteps {
        startups: concentration_steps(m) as u64,
        blocks: blocks as f64,
    }
}

/// Returns CIRCGOS on a ring in whole steps; half a block of the last exchange is counted if all
/// positions are heads.
pub fn ring_whole_steps(n: usize, parameters: LineParameters) -> WholeSteps {
    let heads = parameters.heads.min(n);
    if heads == n {
        return WholeSteps::default().and(n / 2, (n - 1) as f64 / 2.0);
    }
    let segment = n.div_ceil(heads);
    let met = concentration(segment).and(heads / 2, ((heads / 2) * segment) as f64);
    let next = |gap: &usize| Some(gap.div_ceil(parameters.division));
    let lengths = std::iter::successors(Some(segment), next);
    let rounds = lengths.take_while(|gap| *gap > 1).count();
    let steps = rounds * parameters.steps;
    met.and(steps, (steps * n.div_ceil(parameters.packets())) as f64)
}

/// Returns the parameters with the least time in whole steps on a ring: all A up to n / 2, a up to 13,
/// b up to `2a + 1` are tried.
pub fn best_ring(n: usize, r: f64) -> (LineParameters, WholeSteps) {
    let all_heads = LineParameters::new(n, 2, 1);
    let mut best = (all_heads, ring_whole_steps(n, all_heads));
    for heads in 1..=n / 2 {
        let met = heads / 2 + concentration_steps(n.div_ceil(heads));
        if met as f64 * r >= best.1.time(r) {
            continue;
        }
        for division in 2..=13 {
            for steps in division / 2..=2 * division + 1 {
                let parameters = LineParameters::new(heads, division, steps);
                let whole = ring_whole_steps(n, parameters);
                if whole.time(r) < best.1.time(r) {
                    best = (parameters, whole);
                }
            }
        }
    }
    best
}

/// Returns TORGOS, or its variant for this number of dimensions, on a torus in whole steps; each class
/// has a d-th of all blocks.
pub fn torus_whole_steps(side: usize, dimensions: usize, diagonal: &Diagonal) -> WholeSteps {
    let mut whole = meeting(side, dimensions, diagonal.points);
    let mut held = at_first(side, dimensions, diagonal.points);
    for &(division, steps) in &diagonal.rounds {
        whole = round(whole, held, dimensions, division, steps);
        held *= (division as f64).powi(dimensions as i32 - 1);
    }
    whole
}

/// Returns the data of a point in its class after phase 2, in blocks: S_0.
fn at_first(side: usize, dimensions: usize, points: usize) -> f64 {
    side as f64 * (points as f64).powi(dimensions as i32 - 1)
}

/// Returns phases 1 and 2.
fn meeting(side: usize, dimensions: usize, points: usize) -> WholeSteps {
    let spacing = side / points;
    let first = concentration(spacing);
    let part = (points - 1) as f64 / 2.0 * spacing as f64;
    let exchanges = (0..dimensions as i32).map(|axis| part * (points as f64).powi(axis));
    let blocks = (first.blocks + exchanges.sum::<f64>()) / dimensions as f64;
    let startups = first.startups;
    WholeSteps { startups, blocks }.and(dimensions * (points / 2), 0.0)
}

fn round(
    whole: WholeSteps,
    held: f64,
    dimensions: usize,
    division: usize,
    steps: usize,
) -> WholeSteps {
    let packets = 2 * steps + 2 - division;
    let spread = steps as f64 * (held / packets as f64).ceil();
    let part = (division - 1) as f64 / 2.0 * held;
    let wipes = (0..dimensions as i32 - 1).map(|axis| part * (division as f64).powi(axis));
    let blocks = (spread + wipes.sum::<f64>()) / dimensions as f64;
    whole.and(steps + (dimensions - 1) * (division / 2), blocks)
}

/// Returns the parameters with the least time in whole steps on a torus of equal sides.
pub fn best_torus(side: usize, dimensions: usize, r: f64) -> (Diagonal, WholeSteps) {
    let all = Diagonal {
        points: side,
        rounds: Vec::new(),
    };
    let whole = torus_whole_steps(side, dimensions, &all);
    let mut best = (all, whole);
    for points in (1..side).filter(|points| side.is_multiple_of(*points)) {
        let whole = meeting(side, dimensions, points);
        let held = at_first(side, dimensions, points);
        let rounds = Vec::new();
        let so_far = (Diagonal { points, rounds }, whole);
        best_rounds(dimensions, side / points, held, so_far, r, &mut best);
    }
    best
}

/// Tries every order of factors of the spacing, each with its best x.
fn best_rounds(
    dimensions: usize,
    spacing: usize,
    held: f64,
    so_far: (Diagonal, WholeSteps),
    r: f64,
    best: &mut (Diagonal, WholeSteps),
) {
    let (diagonal, whole) = so_far;
    if whole.time(r) >= best.1.time(r) {
        return;
    }
    if spacing == 1 {
        *best = (diagonal, whole);
        return;
    }
    for division in (2..=spacing).filter(|division| spacing.is_multiple_of(*division)) {
        let options = (division / 2..=2 * division + 1)
            .map(|steps| (steps, round(whole, held, dimensions, division, steps)));
        let least = options.min_by(|one, other| one.1.time(r).total_cmp(&other.1.time(r)));
        if let Some((steps, whole)) = least {
            let mut diagonal = diagonal.clone();
            diagonal.rounds.push((division, steps));
            let held = held * (division as f64).powi(dimensions as i32 - 1);
            let (next, so_far) = (spacing / division, (diagonal, whole));
            best_rounds(dimensions, next, held, so_far, r, best);
        }
    }
}
