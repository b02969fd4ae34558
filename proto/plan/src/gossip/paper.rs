//! The paper's figures: what its tables print, and the formulas that give these (Lemmas 5 to 8, as they
//! have to be read). All in units of t'_l, what one block takes, for equal blocks, with
//! r = t_s / t'_l.
//!
//! Where the formulas have fractions of a round, the paper's schedules in whole steps follow: their times
//! before packets omit what their receivers have. These are formulas, for networks of any size.

use super::moves::{LineParameters, Move, concentrate, concentration_steps};
use super::stage::Diagonal;

/// A row of a table.
pub struct PaperRow<const N: usize> {
    /// n.
    pub side: usize,
    /// r.
    pub ratio: u64,
    /// The times as printed.
    pub printed: [u64; N],
    /// The parameters of the last algorithm.
    pub parameters: [usize; 3],
}

const fn row<const N: usize>(
    side: usize,
    ratio: u64,
    printed: [u64; N],
    parameters: [usize; 3],
) -> PaperRow<N> {
    PaperRow {
        side,
        ratio,
        printed,
        parameters,
    }
}

/// Table 1: approach 1, approach 2 and CIRCGOS on rings of n PEs, with a and b of CIRCGOS as printed, and A
/// as it has to be for that. In the cells where A is n nothing is spread, and a and b have no meaning.
pub const TABLE_1: [PaperRow<3>; 16] = [
    row(27, 2, [40, 64, 40], [27, 2, 1]),
    row(27, 10, [144, 104, 100], [9, 3, 1]),
    row(27, 50, [664, 304, 318], [3, 3, 1]),
    row(27, 250, [3264, 1304, 1318], [3, 3, 1]),
    row(81, 2, [120, 257, 120], [81, 2, 1]),
    row(81, 10, [440, 319, 239], [15, 5, 4]),
    row(81, 50, [2040, 593, 594], [7, 3, 1]),
    row(81, 250, [10040, 1993, 2013], [5, 3, 1]),
    row(243, 2, [364, 990, 337], [69, 4, 8]),
    row(243, 10, [1332, 1062, 565], [25, 7, 7]),
    row(243, 50, [6172, 1422, 1251], [11, 3, 2]),
    row(243, 250, [30372, 3222, 3248], [5, 3, 1]),
    row(729, 2, [1092, 3667, 936], [75, 10, 20]),
    row(729, 10, [4004, 3755, 1377], [57, 13, 17]),
    row(729, 50, [18564, 4195, 2707], [17, 7, 7]),
    row(729, 250, [91364, 6395, 6264], [9, 4, 2]),
];

/// Table 2: approaches 1-1, 2-1 and 2-2, TORGOS(3, 3, 1) and the best TORGOS on n x n tori, with a, b and x of
/// the best TORGOS; the paper's a is A.
#[rustfmt::skip]
pub const TABLE_2: [PaperRow<5>; 16] = [
    row(27, 8, [351, 360, 855, 444, 363], [3, 9, 7]),
    row(27, 30, [796, 761, 1053, 606, 605], [3, 3, 2]),
    row(27, 100, [2214, 2038, 1683, 1122, 1122], [3, 3, 1]),
    row(27, 250, [5252, 4774, 3033, 2227, 2227], [3, 3, 1]),
    row(81, 8, [2146, 2155, 10188, 3424, 2162], [3, 27, 22]),
    row(81, 30, [3483, 3194, 10474, 3652, 2828], [9, 9, 8]),
    row(81, 100, [7736, 6501, 11384, 4378, 3982], [3, 5, 3]),
    row(81, 250, [16848, 13568, 13334, 5934, 5934], [3, 3, 1]),
    row(243, 8, [16281, 16335, 119206, 29814, 16288], [5, 49, 54]),
    row(243, 30, [20290, 19200, 119580, 30108, 17808], [7, 35, 32]),
    row(243, 100, [33048, 28317, 120770, 31044, 21101], [3, 9, 9]),
    row(243, 250, [60386, 47853, 123320, 33049, 25477], [3, 9, 7]),
    row(729, 8, [137416, 137819, 1332416, 266398, 137398], [3, 243, 211]),
    row(729, 30, [149445, 146074, 1332878, 266758, 141693], [9, 81, 86]),
    row(729, 100, [187718, 172341, 1334348, 267904, 149888], [15, 49, 49]),
    row(729, 250, [269730, 228627, 1337498, 270360, 162239], [17, 43, 37]),
];

fn log(base: f64, number: f64) -> f64 {
    number.ln() / base.ln()
}

/// Table 1's approach 1: Lemma 6 with A = n, which leaves half a block of the concentration.
pub fn ring_approach_1(n: usize, r: f64) -> f64 {
    (n / 2) as f64 * (r + 1.0) + 0.5
}

/// Table 1's approach 2: three heads, without the `n / 2` of the concentration.
pub fn ring_approach_2(n: usize, r: f64) -> f64 {
    let rounds = log(3.0, n as f64);
    (2.0 * rounds - 1.0) * r + (rounds - 1.0) * n as f64
}

/// Lemma 6, with A heads and rounds by a.
pub fn ring_circgos(n: usize, r: f64, parameters: LineParameters) -> f64 {
    let [heads, division, steps] =
        [parameters.heads, parameters.division, parameters.steps].map(|it| it as f64);
    let part = n as f64 / heads;
    let packet = n.div_ceil(parameters.packets()) as f64;
    log(3.0, part) * r
        + part / 2.0
        + (parameters.heads / 2) as f64 * (r + part)
        + log(division, part) * steps * (r + packet)
}

/// Lemma 7: approaches 1-1, 2-1 and 2-2.
pub fn torus_approaches(n: usize, r: f64) -> [f64; 3] {
    let n = n as f64;
    let (half, rounds) = (log(3.0, n / 2.0), log(3.0, n));
    [
        0.75 * n * r + n / 4.0 * (n + 1.0),
        (2.0 * half + n / 2.0) * r + n / 2.0 * (half + n / 2.0),
        (4.0 * rounds - 3.0) * r + (2.0 * rounds - 2.0) * n / 2.0 * (n / 2.0 + 1.0),
    ]
}

/// Lemma 8 with (5) and (6), which take `n^2` where `n * (n - a)` would hold.
pub fn torus_torgos(side: usize, r: f64, [points, division, steps]: [usize; 3]) -> f64 {
    let [n, a, b, x] = [side, points, division, steps].map(|number| number as f64);
    let (around, rounds) = ((points / 2) as f64, log(b, n / a));
    let data = n * n / (2.0 * (b - 1.0));
    log(3.0, n / (2.0 * a)) * r
        + n / (4.0 * a)
        + around * (r + n / (2.0 * a))
        + around * (r + n / 2.0)
        + x * (rounds * r + data / (2.0 * x - b + 2.0))
        + (division / 2) as f64 * (rounds * r + data)
}

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
