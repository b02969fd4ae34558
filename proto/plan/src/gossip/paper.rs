//! The paper's figures: what its tables print, and the formulas that give these (Lemmas 5 to 8, as they
//! have to be read). All in units of t'_l, what one block takes, for equal blocks, with
//! r = t_s / t'_l.

use super::line::LineParameters;

/// A row of Table 1: rings of n PEs.
pub struct RingRow {
    /// n.
    pub side: usize,
    /// r.
    pub ratio: u64,
    /// Approach 1, approach 2 and CIRCGOS, as printed.
    pub printed: [u64; 3],
    /// The parameters of CIRCGOS: a and b as printed, A as it has to be for that.
    pub circgos: LineParameters,
}

/// A column of Table 2: n x n tori.
pub struct TorusRow {
    /// n.
    pub side: usize,
    /// r.
    pub ratio: u64,
    /// Approaches 1-1, 2-1 and 2-2, TORGOS(3, 3, 1) and the best TORGOS, as printed.
    pub printed: [u64; 5],
    /// a, b and x of the best TORGOS; the paper's a is A.
    pub torgos: [usize; 3],
}

const fn ring(side: usize, ratio: u64, printed: [u64; 3], circgos: [usize; 3]) -> RingRow {
    let [heads, division, steps] = circgos;
    RingRow {
        side,
        ratio,
        printed,
        circgos: LineParameters::new(heads, division, steps),
    }
}

const fn torus(side: usize, ratio: u64, printed: [u64; 5], torgos: [usize; 3]) -> TorusRow {
    TorusRow {
        side,
        ratio,
        printed,
        torgos,
    }
}

/// Table 1. In the cells where A is n nothing is spread, and a and b have no meaning.
pub const TABLE_1: [RingRow; 16] = [
    ring(27, 2, [40, 64, 40], [27, 2, 1]),
    ring(27, 10, [144, 104, 100], [9, 3, 1]),
    ring(27, 50, [664, 304, 318], [3, 3, 1]),
    ring(27, 250, [3264, 1304, 1318], [3, 3, 1]),
    ring(81, 2, [120, 257, 120], [81, 2, 1]),
    ring(81, 10, [440, 319, 239], [15, 5, 4]),
    ring(81, 50, [2040, 593, 594], [7, 3, 1]),
    ring(81, 250, [10040, 1993, 2013], [5, 3, 1]),
    ring(243, 2, [364, 990, 337], [69, 4, 8]),
    ring(243, 10, [1332, 1062, 565], [25, 7, 7]),
    ring(243, 50, [6172, 1422, 1251], [11, 3, 2]),
    ring(243, 250, [30372, 3222, 3248], [5, 3, 1]),
    ring(729, 2, [1092, 3667, 936], [75, 10, 20]),
    ring(729, 10, [4004, 3755, 1377], [57, 13, 17]),
    ring(729, 50, [18564, 4195, 2707], [17, 7, 7]),
    ring(729, 250, [91364, 6395, 6264], [9, 4, 2]),
];

/// Table 2.
#[rustfmt::skip]
pub const TABLE_2: [TorusRow; 16] = [
    torus(27, 8, [351, 360, 855, 444, 363], [3, 9, 7]),
    torus(27, 30, [796, 761, 1053, 606, 605], [3, 3, 2]),
    torus(27, 100, [2214, 2038, 1683, 1122, 1122], [3, 3, 1]),
    torus(27, 250, [5252, 4774, 3033, 2227, 2227], [3, 3, 1]),
    torus(81, 8, [2146, 2155, 10188, 3424, 2162], [3, 27, 22]),
    torus(81, 30, [3483, 3194, 10474, 3652, 2828], [9, 9, 8]),
    torus(81, 100, [7736, 6501, 11384, 4378, 3982], [3, 5, 3]),
    torus(81, 250, [16848, 13568, 13334, 5934, 5934], [3, 3, 1]),
    torus(243, 8, [16281, 16335, 119206, 29814, 16288], [5, 49, 54]),
    torus(243, 30, [20290, 19200, 119580, 30108, 17808], [7, 35, 32]),
    torus(243, 100, [33048, 28317, 120770, 31044, 21101], [3, 9, 9]),
    torus(243, 250, [60386, 47853, 123320, 33049, 25477], [3, 9, 7]),
    torus(729, 8, [137416, 137819, 1332416, 266398, 137398], [3, 243, 211]),
    torus(729, 30, [149445, 146074, 1332878, 266758, 141693], [9, 81, 86]),
    torus(729, 100, [187718, 172341, 1334348, 267904, 149888], [15, 49, 49]),
    torus(729, 250, [269730, 228627, 1337498, 270360, 162239], [17, 43, 37]),
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
