//! The cost of a gossip on one line, computed without making packets. Packets only omit flits while
//! data is spread to new points, since these already have a part of what is sent: the data that they
//! had concentrated before.

use std::collections::BTreeMap;

use super::flits::{Flits, share_of};
use super::moves::{Gap, Line, LineParameters, Move, meeting, spreading};
use super::steps::StepCost;

/// The data of a line's positions for a gossip on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    line: Line,
    /// The ranks of each position's flits among those of all.
    ranks: Vec<Flits>,
    total: u64,
}

/// A gap, and the part of the incoming data that its new points already have.
pub struct LoadedGap<'a> {
    pub gap: &'a Gap,
    /// The number of flits in its heads.
    pub total: u64,
    /// The ranks of these flits that each new point already has.
    pub held: Vec<&'a Flits>,
}

impl Load {
    /// Creates the load from the data of each position.
    pub fn new(line: Line, own: &[&Flits]) -> Load {
        let all = own.iter().fold(Flits::default(), |all, one| all.union(one));
        Load {
            line,
            ranks: own.iter().map(|one| one.ranks_in(&all)).collect(),
            total: all.len(),
        }
    }

    /// Returns the cost of phases 1 and 2 with this number of heads, and the state before phase 3.
    pub fn met(&self, heads: usize) -> Met<'_> {
        let (moves, heads) = meeting(self.line, heads);
        let mut met = Met {
            load: self,
            heads,
            held: self.ranks.clone(),
            costs: Vec::new(),
        };
        for one in &moves {
            let sizes: Vec<u64> = met.held.iter().map(Flits::len).collect();
            for step in 1..=one.steps(self.line) {
                let sends = one.sends(self.line, step).into_iter();
                let costs = sends.map(|send| StepCost {
                    distance: send.hops.unsigned_abs(),
                    flits: share_of(sizes[send.of], send.part, send.parts),
                });
                let nonnull = costs.filter(|cost| cost.flits > 0);
                let whole = nonnull.fold(StepCost::default(), StepCost::max);
                met.costs.push(whole);
            }
            if let Move::Concentrate(pairs) = one {
                for &(from, to) in pairs {
                    let [from, to] = [from, to].map(|at| self.line.position(at));
                    met.held[to] = met.held[to].union(&met.held[from]);
                }
            }
        }
        met
    }

    pub fn positions(&self) -> usize {
        self.line.positions
    }
}

/// A line whose heads have everything.
pub struct Met<'a> {
    load: &'a Load,
    heads: Vec<usize>,
    /// The data of each position that is not a head, in ranks.
    held: Vec<Flits>,
    /// The costs of the steps until now.
    costs: Vec<StepCost>,
}

impl Met<'_> {
    /// Returns the rounds of phase 3.
    pub fn rounds(&self, division: usize) -> Vec<Round> {
        let rounds = spreading(self.load.line, self.heads.clone(), division);
        rounds.into_iter().map(Round::new).collect()
    }

    /// Returns the cost of all phases, step by step; `rounds` must have the same parameters.
    pub fn costs(&self, rounds: &[Round], parameters: LineParameters) -> Vec<StepCost> {
        let held = |point: &i64| &self.held[self.load.line.position(*point)];
        let mut costs = self.costs.clone();
        for round in rounds {
            let loaded = round.gaps.iter().map(|gap| LoadedGap {
                gap,
                total: self.load.total,
                held: gap.new_points().iter().map(held).collect(),
            });
            costs.extend(round.costs(self.load.total, loaded, parameters.packets()));
        }
        costs
    }
}

/// The gaps of a round of spreading.
pub struct Round {
    pub gaps: Vec<Gap>,
    /// One gap of each kind; gaps of a kind have points at the same distances.
    kinds: Vec<Gap>,
}

impl Round {
    pub fn new(gaps: Vec<Gap>) -> Round {
        let from_its_head = |gap: &Gap| {
            let points = gap.points.iter().map(|point| point - gap.points[0]);
            (gap.closed, points.collect::<Vec<i64>>())
        };
        let kinds: BTreeMap<_, &Gap> = gaps.iter().map(|gap| (from_its_head(gap), gap)).collect();
        let kinds = kinds.into_values().cloned().collect();
        Round { gaps, kinds }
    }

    /// Returns the cost of spreading this number of packets, step by step; no heads have more than
    /// `most` flits.
    ///
    /// `loaded` are the gaps in any order: once each step costs as much as if new points had no data,
    /// the other gaps are not examined.
    pub fn costs<'a>(
        &self,
        most: u64,
        loaded: impl Iterator<Item = LoadedGap<'a>>,
        packets: usize,
    ) -> Vec<StepCost> {
        let steps = self.kinds.iter().map(|gap| gap.steps(packets)).max();
        let mut costs = vec![StepCost::default(); steps.unwrap_or(0)];
        let mut limits = costs.clone();
        let nothing = Flits::default();
        for gap in &self.kinds {
            let (total, held) = (most, vec![&nothing; gap.new_points().len()]);
            put_costs(&LoadedGap { gap, total, held }, packets, &mut limits);
        }
        for gap in loaded {
            if costs == limits {
                break;
            }
            put_costs(&gap, packets, &mut costs);
        }
        costs
    }
}

fn put_costs(loaded: &LoadedGap, packets: usize, costs: &mut [StepCost]) {
    let LoadedGap { gap, total, held } = loaded;
    let (new, steps) = (gap.new_points().len(), gap.steps(packets));
    let mut sizes = vec![0; packets];
    for (q, held) in (1..).zip(held) {
        for (size, left) in sizes.iter_mut().zip(held.outside_of_parts(*total, packets)) {
            *size = left;
        }
        let mut put = |step: usize, packet: usize, hops: i64| {
            if sizes[packet] > 0 {
                let cost = StepCost {
                    distance: hops.unsigned_abs(),
                    flits: sizes[packet],
                };
                costs[step - 1] = costs[step - 1].max(cost);
            }
        };
        for sent in (0..packets).take_while(|sent| sent + q <= steps) {
            put(sent + q, gap.packet(sent, packets), gap.hops(q - 1));
        }
        if gap.closed {
            let behind = new - q;
            let back = (0..packets).take_while(|sent| sent + 1 + behind <= steps);
            for sent in back {
                let step = sent + 1 + behind;
                // The same packet arrives from the other side, listed first.
                if 2 * step != packets + new {
                    put(step, packets - 1 - sent, gap.hops(q));
                }
            }
        }
    }
}
