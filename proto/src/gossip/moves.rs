//! The moves that every gossip on lines is made of, in positions 0 to n - 1 of one line, right
//! being +1: concentrate, exchange, spread (Juurlink, Rao, Sibeyn, section 4). A move says who sends
//! which share of what to whom in each of its steps; how long blocks are does not matter to it.

use std::rc::Rc;

/// A line of positions: a ring if it is closed, else an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// How many there are.
    pub positions: usize,
    /// Whether the last is the first's neighbour.
    pub closed: bool,
}

impl Line {
    /// The position that a number stands for, which on a ring may lie beyond its ends.
    pub fn position(self, number: i64) -> usize {
        number.rem_euclid(self.positions as i64) as usize
    }
}

/// A packet that crosses a part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// Who sends.
    pub from: usize,
    /// Over how many hops: to the right if above 0.
    pub hops: i64,
    /// The position whose possession at the move's beginning is sent.
    pub of: usize,
    /// Which part of that.
    pub part: usize,
    /// Cut into so many.
    pub parts: usize,
}

/// New points between two heads that hold the same, or beyond the last head of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// A head, the new points in order, and the head at the other end, if there is one.
    pub points: Vec<i64>,
    /// Whether there is a head at the other end.
    pub closed: bool,
}

impl Gap {
    /// How many new points there are.
    pub fn new_points(&self) -> usize {
        self.points.len() - 1 - usize::from(self.closed)
    }

    /// Hops from point q to the next one: to the right if above 0.
    pub fn hops(&self, q: usize) -> i64 {
        self.points[q + 1] - self.points[q]
    }

    /// Which packet is the so-and-so-many-th from the first head onwards.
    pub fn packet(&self, sent: usize, packets: usize) -> usize {
        match self.points.last() < self.points.first() {
            true => packets - 1 - sent,
            false => sent,
        }
    }

    /// Steps in which so many packets come to all new points.
    pub fn steps(&self, packets: usize) -> usize {
        match (self.new_points(), self.closed) {
            (0, _) => 0,
            (new, true) => (packets + new - 1).div_ceil(2),
            (new, false) => packets + new - 1,
        }
    }
}

/// What the PEs of a line do together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Each first position sends all that it has to the second, in one step.
    Concentrate(Vec<(i64, i64)>),
    /// What each head has goes to the heads around it, `width / 2` on either side of a ring, or to
    /// all on an array.
    Exchange {
        /// The heads, in rising order.
        heads: Vec<usize>,
        /// How many heads, itself included, each hears of.
        width: usize,
    },
    /// What heads hold goes to the new points of all gaps, in so many packets.
    Spread {
        /// The gaps.
        gaps: Rc<[Gap]>,
        /// How many packets.
        packets: usize,
    },
}

impl Move {
    /// How many steps it takes.
    pub fn steps(&self, line: Line) -> usize {
        match self {
            Move::Concentrate(_) => 1,
            Move::Exchange { width, .. } if line.closed => width / 2,
            Move::Exchange { heads, .. } => heads.len() - 1,
            Move::Spread { gaps, packets } => {
                let steps = gaps.iter().map(|gap| gap.steps(*packets));
                steps.max().unwrap_or(0)
            }
        }
    }

    /// Who sends what in a step, counted from 1: to the right first.
    pub fn sends(&self, line: Line, step: usize) -> Vec<Send> {
        match self {
            Move::Concentrate(pairs) => concentrate_sends(line, pairs),
            Move::Exchange { heads, width } => exchange_sends(line, heads, *width, step),
            Move::Spread { gaps, packets } => {
                let gaps = gaps.iter().filter(|gap| step <= gap.steps(*packets));
                let gaps: Vec<&Gap> = gaps.collect();
                let onwards = gaps
                    .iter()
                    .flat_map(|gap| onwards(line, gap, *packets, step));
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

/// Head i sends on what head `i - step + 1` had to the right, and what head `i + step - 1` had to
/// the left.
fn exchange_sends(line: Line, heads: &[usize], width: usize, step: usize) -> Vec<Send> {
    let (count, back) = (heads.len(), step - 1);
    let index = |i: usize, by: i64| {
        let at = i as i64 + by;
        match line.closed {
            true => Some(at.rem_euclid(count as i64) as usize),
            false => usize::try_from(at).ok().filter(|at| *at < count),
        }
    };
    // The same would come from both sides: half of it from each (ours; the paper sends all twice).
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
    let right = (0..count).filter_map(|i| send(i, 1));
    right
        .chain((0..count).filter_map(|i| send(i, -1)))
        .collect()
}

/// From the first head of a gap onwards: point q passes on packet `step - 1 - q`, or, since what goes
/// to the left begins with the last packet, that one counted from the end.
fn onwards(line: Line, gap: &Gap, packets: usize, step: usize) -> impl Iterator<Item = Send> {
    let points = (0..gap.new_points().min(step)).filter(move |q| step - 1 - q < packets);
    points.map(move |q| Send {
        from: line.position(gap.points[q]),
        hops: gap.hops(q),
        of: line.position(gap.points[0]),
        part: gap.packet(step - 1 - q, packets),
        parts: packets,
    })
}

/// From the other head back, beginning with the last packet.
fn back(line: Line, gap: &Gap, packets: usize, step: usize) -> impl Iterator<Item = Send> {
    let new = gap.new_points();
    // Behind the head by so many points.
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

/// How many of `m` neighbouring positions, at least one, lie in the middle part and left of it.
fn thirds(m: usize) -> (usize, usize) {
    let middle = m.div_ceil(3);
    (middle, (m - middle) / 2)
}

/// Where `m` neighbouring positions concentrate: behind the first by so many.
pub fn root(m: usize) -> usize {
    if m == 1 {
        return 0;
    }
    let (middle, left) = thirds(m);
    left + root(middle)
}

/// Steps in which `m` neighbouring positions concentrate in one: `ceil(log3 m)`.
pub fn concentration_steps(m: usize) -> usize {
    let powers = std::iter::successors(Some(1usize), |power| power.checked_mul(3));
    powers.take_while(|power| *power < m).count()
}

/// Concentrates each of these parts, `(first position, how many)`, in its root; shorter ones begin
/// later, so that all end in the same step. A power of 3 is the paper's, any other number ours.
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
