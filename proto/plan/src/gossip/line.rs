//! Gossip on one line (Juurlink, Rao, Sibeyn, sections 4.1 and 4.2): concentrate in heads, exchange
//! between them, spread from them to all. Approaches 1 and 2 of the paper are its two extreme cases.

use super::moves::{Gap, Line, Move, concentrate, root};

/// The parameters of CIRCGOS; the paper's A and a are one, its Table 1 has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineParameters {
    /// A: the number of heads that exchange; at most the number of positions.
    pub heads: usize,
    /// a, at least 2: a round of spreading leaves gaps of an a-th of the length.
    pub division: usize,
    /// b, at least `a / 2`: steps of such a round on a ring.
    pub steps: usize,
}

impl LineParameters {
    /// Creates parameters from A, a and b.
    pub const fn new(heads: usize, division: usize, steps: usize) -> LineParameters {
        LineParameters {
            heads,
            division,
            steps,
        }
    }

    /// Parameters with which every block goes around.
    pub const APPROACH_1: LineParameters = LineParameters::approach_2(usize::MAX);

    /// Returns parameters that concentrate in this number of heads, and reverse that: 1 in the paper's
    /// text, 3 in its Table 1.
    pub const fn approach_2(heads: usize) -> LineParameters {
        LineParameters::new(heads, 3, 1)
    }

    /// Returns the number of packets in which a round spreads the heads' data: `2b - a + 2`.
    pub fn packets(self) -> usize {
        2 * self.steps + 2 - self.division
    }

    /// Returns the moves in order.
    pub fn moves(self, line: Line) -> Vec<Move> {
        let (mut moves, heads) = meeting(line, self.heads);
        let packets = self.packets();
        let rounds = spreading(line, heads, self.division).into_iter();
        moves.extend(rounds.map(|gaps| Move::Spread {
            gaps: gaps.into(),
            packets,
        }));
        moves
    }
}

/// Returns phases 1 and 2, and the heads that have everything after them.
pub fn meeting(line: Line, heads: usize) -> (Vec<Move>, Vec<usize>) {
    let n = line.positions;
    let count = heads.min(n);
    let begin = |segment: usize| segment * n / count;
    let segments = (0..count).map(|i| (begin(i), begin(i + 1) - begin(i)));
    let mut moves = concentrate(segments.clone().map(|(first, m)| (first as i64, m)));
    let heads: Vec<usize> = segments.map(|(first, m)| first + root(m)).collect();
    if count > 1 {
        let (heads, width) = (heads.clone(), count);
        moves.push(Move::Exchange { heads, width });
    }
    (moves, heads)
}

/// Returns phase 3: the gaps of each round, until all positions are heads.
pub fn spreading(line: Line, mut heads: Vec<usize>, division: usize) -> Vec<Vec<Gap>> {
    let mut rounds = Vec::new();
    while heads.len() < line.positions {
        let gaps = gaps(line, &heads, division);
        let new = gaps.iter().flat_map(Gap::new_points);
        heads.extend(new.map(|point| line.position(*point)));
        heads.sort_unstable();
        rounds.push(gaps);
    }
    rounds
}

fn gaps(line: Line, heads: &[usize], division: usize) -> Vec<Gap> {
    let (first, last) = (heads[0] as i64, heads[heads.len() - 1] as i64);
    let n = line.positions as i64;
    let next = heads[1..].iter().map(|head| *head as i64);
    let around = line.closed.then_some(first + n);
    let pairs = heads.iter().map(|head| *head as i64);
    let inner = pairs.zip(next.chain(around)).map(|(head, other)| Gap {
        points: [head]
            .into_iter()
            .chain(new_points(other - head, division).map(|at| head + at))
            .chain([other])
            .collect(),
        closed: true,
    });
    let mut gaps: Vec<Gap> = inner.collect();
    if !line.closed {
        // Beyond the ends, as in a gap of twice the length of which only one half exists (not in the
        // paper).
        let beyond = |head: i64, way: i64, positions: i64| {
            let new = new_points(2 * positions + 1, division);
            let new = new.take_while(|at| *at <= positions);
            let points = [head].into_iter().chain(new.map(|at| head + way * at));
            Gap {
                points: points.collect(),
                closed: false,
            }
        };
        gaps.push(beyond(last, 1, n - 1 - last));
        gaps.push(beyond(first, -1, first));
    }
    gaps.retain(|gap| !gap.new_points().is_empty());
    gaps
}

/// Returns the new points between two heads at this distance, from the first one.
fn new_points(gap: i64, division: usize) -> impl Iterator<Item = i64> {
    let division = (division as i64).min(gap);
    (1..division).map(move |j| j * gap / division)
}
