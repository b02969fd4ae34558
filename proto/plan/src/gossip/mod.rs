//! Gossip: every PE has a block, and at the end every PE has every block (all-gather).
//!
//! On rings, arrays, meshes and tori this is Juurlink, Rao and Sibeyn, *Gossiping on Meshes and Tori*
//! (1996), "the paper" in this folder: full ports, wormhole packets along straight lines, a step of
//! longest distance D and largest packet F takes `t_s + D * t_d + F * t_l`. A schedule is a list of
//! steps of packets (`steps`). It need not be sent to PEs, because it follows from the network, the
//! lengths of all blocks and the algorithm's name.
//!
//! `moves` contains the moves on one line, `stage` the order of moves, `walk` the data that
//! each PE has at each time; `complete` is for complete networks. [`choose`](fn@choose) finds the
//! algorithm with the least cost, by `line_cost`; [`free_run`](fn@free_run)
//! computes the end without waits for steps. [`paper`] contains the paper's own figures.
//!
//! Lengths may differ, and may be 0; then, too, a packet omits what its receiver has.

mod algorithm;
mod choose;
mod complete;
mod fit;
mod flits;
mod free_run;
mod gossip_network;
mod line_cost;
mod moves;
pub mod paper;
mod stage;
mod steps;
mod walk;

pub use crate::network::Grid;
pub use algorithm::{GossipAlgorithm, NameError};
pub use choose::choose;
pub(crate) use complete::Sending;
pub use complete::{COMPLETE_FORMS, COMPLETE_HELP, CompleteGossip};
pub use fit::Unfit;
use fit::Way;
pub(crate) use flits::share;
pub use flits::{Blocks, Flits, Piece};
pub use free_run::free_run;
pub use gossip_network::GossipNetwork;
pub use moves::LineParameters;
pub use stage::Diagonal;
pub use steps::{Cost, Packet, Prices, Step, StepCost};

use flitcast_proto::PeId;
use moves::Line;
use walk::Walk;

use crate::fraction::Fraction;

/// Limit of the flits of all blocks: sums over steps, and times, then stay exact.
pub const MAX_FLITS: u64 = 1 << 44;

/// A gossip of blocks of known lengths, by one algorithm.
#[derive(Clone, Debug)]
pub struct Gossip {
    pub arena: GossipNetwork,
    pub blocks: Blocks,
    way: Way,
}

impl Gossip {
    /// Creates a gossip. Block i has `lengths[i]` flits, all together at most [`MAX_FLITS`]; there is
    /// one for each PE.
    pub fn new(
        arena: GossipNetwork,
        lengths: &[u64],
        algorithm: &GossipAlgorithm,
    ) -> Result<Gossip, Vec<Unfit>> {
        let way = algorithm.on(&arena)?;
        let blocks = Blocks::new(lengths, arena.classes());
        Ok(Gossip { arena, blocks, way })
    }

    /// Returns the steps in order; they are computed lazily.
    pub fn steps(&self) -> Box<dyn Iterator<Item = Step> + '_> {
        match (&self.way, &self.arena) {
            (Way::Stages(stages), GossipNetwork::Grid(grid)) => {
                Box::new(Walk::new(grid, &self.blocks, stages.clone()))
            }
            (Way::Halves, _) => halves(&self.blocks),
            (Way::Among(among), _) => among.steps(&self.blocks),
            (Way::Stages(_), GossipNetwork::Complete(_)) => {
                unreachable!("an algorithm has stages on grids alone")
            }
        }
    }

    /// Returns a lower bound of the time of any gossip of these blocks on this network, at these
    /// prices; on a complete network, of any that sends as many packets at a time (Lemma 1, with N - 1
    /// for N and the degree of a mesh's corners). It is the greatest of three: the data that the PE with
    /// the fewest edges must receive, the largest distance from a PE with data, and the number of steps
    /// until a block can have reached all PEs. Theorem 1's bound has no constant, so it is not a number.
    pub fn bound(&self, prices: &Prices) -> Fraction {
        let (pes, lengths) = (self.arena.pes(), self.blocks.lengths());
        let total: u64 = lengths.iter().sum();
        let nonnull = lengths.iter().filter(|flits| **flits > 0).count();
        if nonnull == 0 || pes == 1 {
            return Fraction::new(0, 1);
        }
        let unit = u128::from(prices.unit);
        let whole =
            |price: u64, times: u64| Fraction::new(u128::from(price) * u128::from(times), unit);
        // The edges of a PE, and the distance to the farthest PE.
        let around = |pe: usize| match &self.arena {
            GossipNetwork::Grid(grid) => (grid.degree(pe), grid.eccentricity(pe)),
            GossipNetwork::Complete(_) => (1, 1),
        };
        let data = |pe: usize| {
            let price = u128::from(prices.flit) * u128::from(total - lengths[pe]);
            Fraction::new(price, u128::from(around(pe).0) * unit)
        };
        let sources = (0..pes).filter(|pe| lengths[*pe] > 0);
        let hops = sources.map(|pe| around(pe).1).max().unwrap_or(0);
        let fan_out = match self.way {
            Way::Among(among) => among.ports(pes) as u64,
            _ => (0..pes).map(|pe| around(pe).0).max().unwrap_or(1),
        };
        let steps = least_steps(pes.min(nonnull + 1) as u64, fan_out);
        let others = [whole(prices.hop, hops), whole(prices.startup, steps)];
        let all = (0..pes).map(data).chain(others);
        all.max().unwrap_or(Fraction::new(0, 1))
    }

    /// Returns the cost.
    pub fn cost(&self) -> Cost {
        self.steps().map(|step| step.cost(&self.arena)).collect()
    }
}

/// Returns the steps on a ring of n: in step s of n - 1, PE p forwards the first half of block `p - s +
/// 1` to the right and the second half of block `p + s - 1` to the left (not in the paper). Each edge
/// then carries the least possible, whatever the lengths.
fn halves(blocks: &Blocks) -> Box<dyn Iterator<Item = Step> + '_> {
    let n = blocks.lengths().len();
    let line = Line {
        positions: n,
        closed: true,
    };
    let half = move |pe: usize, step: usize, way: i64| {
        let block = line.position(pe as i64 - way * (step as i64 - 1));
        Packet {
            from: PeId(pe as u32),
            to: PeId(line.position(pe as i64 + way) as u32),
            axis: 0,
            hops: way,
            class: 0,
            flits: blocks.of(0, block).cut(usize::from(way < 0), 2),
        }
    };
    Box::new((1..n).filter_map(move |step| {
        let right = (0..n).map(|pe| half(pe, step, 1));
        Step::of(right.chain((0..n).map(|pe| half(pe, step, -1))))
    }))
}

/// `ceil(log_{fan_out + 1} pes)`.
fn least_steps(pes: u64, fan_out: u64) -> u64 {
    let reached = std::iter::successors(Some(1u64), |reached| reached.checked_mul(fan_out + 1));
    reached.take_while(|reached| *reached < pes).count() as u64
}

#[cfg(test)]
mod tests;
