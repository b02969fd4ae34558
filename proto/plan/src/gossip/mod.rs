//! Gossip: every PE has a block, and at the end every PE has every block (all-gather).
//!
//! On rings, arrays, meshes and tori this is Juurlink, Rao and Sibeyn, *Gossiping on Meshes and Tori*
//! (1996), "the paper" in this folder: full ports, wormhole packets along straight lines, a step of
//! longest distance D and largest packet F takes `t_s + D * t_d + F * t_l`. A schedule is a list of
//! steps of packets (`steps`). It need not be sent to PEs, because it follows from the network, the
//! lengths of all blocks and the algorithm's name.
//!
//! `moves` contains the moves on one line, `line` and `stage` the order of moves, `walk` the data that
//! each PE has at each time; `complete` is for complete networks. [`choose`](fn@choose) finds the
//! algorithm with the least cost, by `line_cost` and `diagonal_search`; [`free_run`](fn@free_run)
//! computes the end without waits for steps. [`paper`] and [`whole_steps`] contain the paper's own
//! figures.
//!
//! Lengths may differ, and may be 0; then, too, a packet omits what its receiver has.

mod algorithm;
mod bounds;
mod choose;
mod complete;
mod diagonal_search;
mod fit;
mod flits;
mod free_run;
mod gossip_network;
mod line;
mod line_cost;
mod moves;
pub mod paper;
mod stage;
mod steps;
mod walk;
pub mod whole_steps;

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
pub use line::LineParameters;
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
    /// prices; on a complete network, of any that sends as many packets at a time.
    pub fn bound(&self, prices: &Prices) -> Fraction {
        let ports = match self.way {
            Way::Among(among) => among.ports(self.arena.pes()),
            _ => 1,
        };
        bounds::bound(&self.arena, self.blocks.lengths(), ports, prices)
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

#[cfg(test)]
mod tests;
