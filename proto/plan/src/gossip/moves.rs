//! The moves of every gossip on lines, in positions 0 to n - 1 of one line, right being +1:
//! concentrate, exchange, spread (Juurlink, Rao, Sibeyn, section 4). A move defines for each of its
//! steps the senders, the receivers and the share of data; it does not depend on the lengths of blocks.
//!
//! A gossip on one line (sections 4.1 and 4.2) concentrates in heads, exchanges between them, and spreads from
//! them to all. Approaches 1 and 2 of the paper are its two extreme cases.

use std::rc::Rc;

/// A line of positions: a ring if it is closed, else an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    pub positions: usize,
    /// Whether the last is the first's neighbour.
    pub closed: bool,
}

impl Line {
    /// Returns the position of a number, which on a ring may be beyond its ends.
    pub fn position(self, number: i64) -> usize {
        number.rem_euclid(self.positions as i64) as usize
    }
}

/// A packet that crosses a part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    pub from: usize,
    /// The number of hops: to the right if above 0.
    pub hops: i64,
    /// The position whose data at the beginning of the move is sent.
    pub of: usize,
    /// The index of the sent part.
    pub part: usize,
    pub parts: usize,
}

/// New points between two heads with the same data, or beyond the last head of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// A head, the new points in order, and the head at the other end, if there is one.
    pub points: Vec<i64>,
    /// Whether there is a head at the other end.
    pub closed: bool,
}

impl Gap {
    pub fn new_points(&self) -> &[i64] {
        &self.points[1..self.points.len() - usize::from(self.closed)]
    }

    /// Returns the hops from point q to the next one: to the right if above 0.
    pub fn hops(&self, q: usize) -> i64 {
        self.points[q + 1] - self.points[q]
    }

    /// Returns the index of the packet that is sent after `sent` others from the first head onwards.
    pub fn packet(&self, sent: usize, packets: usize) -> usize {
        match self.points.last() < self.points.first() {
            true => packets - 1 - sent,
            false => sent,
        }
    }

    /// Returns the number of steps in which this number of packets reaches all new points.
    pub fn steps(&self, packets: usize) -> usize {
        match (self.new_points().len(), self.closed) {
            (0, _) => 0,
            (new, true) => (packets + new - 1).div_ceil(2),
            (new, false) => packets + new - 1,
        }
    }
}

/// A common action of the PEs of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Each first position sends all its data to the second, in one step.
    Concentrate(Vec<(i64, i64)>),
    /// The data of each head is sent to the heads around it, `width / 2` on either side of a ring. On
    /// an array, it is sent to all heads of a group of `width` neighbouring ones.
    Exchange {
        /// The heads, in rising order.
        heads: Vec<usize>,
        /// The number of heads, itself included, whose data each head has afterwards.
        width: usize,
    },
    /// The data of heads is sent to the new points of all gaps, in packets.
    Spread { gaps: Rc<[Gap]>, packets: usize },
}

impl Move {
    pub fn steps(&self, line: Line) -> usize {
        match self {
            Move::Concentrate(_) => 1,
            Move::Exchange { width, .. } if line.closed => width / 2,
            Move::Exchange { width, .. } => width - 1,
            Move::Spread { gaps, packets } => {
                let steps = gaps.iter().map(|gap| gap.steps(*packets));
                steps.max().unwrap_or(0)
            }
        }
    }

    /// Returns the packets of a step, counted from 1: those to the right first.
    pub fn sends(&self, line: Line, step: usize) -> Vec<Send> {
        match self {
            Move::Concentrate(pairs) => concentrate_sends(line, pairs),
            Move::Exchange { heads, width } => exchange_sends(line, heads, *width, step),
            Move::Spread { gaps, packets } => {
                let gaps = gaps.iter().filter(|gap| step <= gap.steps(*packets));
                let gaps: Vec<&Gap> = gaps.collect();
                let each = gaps.iter();
                let onwards = each.flat_map(|gap| onwards(line, gap, *packets, step));
                let closed = gaps.iter().filter(|gap| gap.closed);
                let back = closed.flat_map(|gap| back(line, gap, *packets, step));
                onwards.chain(back).collect()
            }
        }
    }
}

fn concentrate_sends(line: Line, pairs: &[(i64, i64)]) -> Vec<Send> {
    let sends = pairs.iter().map(|&(from, to)| Send {
        from: line.position(from),
        hops: to - from,
        of: line.position(from),
        part: 0,
        parts: 1,
    });
    let (right, left): (Vec<Send>, Vec<Send>) = sends.partition(|send| send.hops > 0);
    right.into_iter().chain(left).collect()
}

/// Head i forwards the data of head `i - step + 1` to the right, and that of head `i + step - 1` to the
/// left.
fn exchange_sends(line: Line, heads: &[usize], width: usize, step: usize) -> Vec<Send> {
    let (count, back) = (heads.len(), step - 1);
    let index = |i: usize, by: i64| {
        let at = i as i64 + by;
        match line.closed {
            true => Some(at.rem_euclid(count as i64) as usize),
            false => {
                let on_line = usize::try_from(at).ok();
                on_line.filter(|at| at / width == i / width && *at < count)
            }
        }
    };
    // Both sides would send the same data: each sends half of it (not in the paper, which sends all
    // twice).
    let meets = line.closed && 2 * step == width;
    let send = |i: usize, way: i64| {
        let to = index(i, way)?;
        let of = index(i, -way * back as i64)?;
        let distance = match line.closed {
            true => line.position((heads[to] as i64 - heads[i] as i64) * way) as i64,
            false => heads[to].abs_diff(heads[i]) as i64,
        };
        Some(Send {
            from: heads[i],
            hops: way * distance,
            of: heads[of],
            part: usize::from(meets && way < 0),
            parts: if meets { 2 } else { 1 },
        })
    };
    let both = [1, -1]
        .into_iter()
        .flat_map(|way| (0..count).map(move |i| (i, way)));
    both.filter_map(|(i, way)| send(i, way)).collect()
}

/// Returns the sends from the first head of a gap onwards: point q forwards packet `step - 1 - q`; to
/// the left, packets are counted from the end.
fn onwards(line: Line, gap: &Gap, packets: usize, step: usize) -> impl Iterator<Item = Send> {
    let points = (0..gap.new_points().len().min(step)).filter(move |q| step - 1 - q < packets);
    points.map(move |q| Send {
        from: line.position(gap.points[q]),
        hops: gap.hops(q),
        of: line.position(gap.points[0]),
        part: gap.packet(step - 1 - q, packets),
        parts: packets,
    })
}

/// Returns the sends from the other head back, beginning with the last packet.
fn back(line: Line, gap: &Gap, packets: usize, step: usize) -> impl Iterator<Item = Send> {
    let new = gap.new_points().len();
    // The number of points after the head.
    let behind = (0..new.min(step)).filter(move |behind| step - 1 - behind < packets);
    behind.map(move |behind| {
        let q = new + 1 - behind;
        Send {
            from: line.position(gap.points[q]),
            hops: -gap.hops(q - 1),
            of: line.position(gap.points[0]),
            part: packets - 1 - (step - 1 - behind),
            parts: packets,
        }
    })
}

/// Returns the number of positions in the middle part of `m` neighbouring ones (at least one), and left
/// of it.
fn thirds(m: usize) -> (usize, usize) {
    let middle = m.div_ceil(3);
    (middle, (m - middle) / 2)
}

/// Returns the offset of the position in which `m` neighbouring positions concentrate.
pub fn root(m: usize) -> usize {
    if m == 1 {
        return 0;
    }
    let (middle, left) = thirds(m);
    left + root(middle)
}

/// Returns the number of steps in which `m` neighbouring positions concentrate in one: `ceil(log3 m)`.
pub fn concentration_steps(m: usize) -> usize {
    let powers = std::iter::successors(Some(1usize), |power| power.checked_mul(3));
    powers.take_while(|power| *power < m).count()
}

/// Concentrates each of these parts, `(first position, count)`, in its root; shorter ones begin later,
/// so that all end in the same step. The paper defines this for powers of 3; other numbers are not in
/// the paper.
pub fn concentrate(parts: impl Iterator<Item = (i64, usize)>) -> Vec<Move> {
    let parts: Vec<(i64, usize)> = parts.collect();
    let steps = parts.iter().map(|part| concentration_steps(part.1)).max();
    let mut pairs = vec![Vec::new(); steps.unwrap_or(0)];
    let last = pairs.len();
    for (first, m) in parts {
        put_concentration(first, m, last, &mut pairs);
    }
    pairs.into_iter().map(Move::Concentrate).collect()
}

fn put_concentration(first: i64, m: usize, step: usize, pairs: &mut [Vec<(i64, i64)>]) {
    if m == 1 {
        return;
    }
    let (middle, left) = thirds(m);
    let own = first + root(m) as i64;
    let right = m - middle - left;
    for (begin, m) in [(0, left), (left + middle, right)] {
        if m > 0 {
            let begin = first + begin as i64;
            pairs[step - 1].push((begin + root(m) as i64, own));
            put_concentration(begin, m, step - 1, pairs);
        }
    }
    put_concentration(first + left as i64, middle, step - 1, pairs);
}

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
