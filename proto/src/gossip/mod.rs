//! Gossip: every PE has a block, and at the end every PE has every block (all-gather).
//!
//! On rings, arrays, meshes and tori this is Juurlink, Rao and Sibeyn, *Gossiping on Meshes and Tori*
//! (1996), "the paper" in this folder: full ports, wormhole packets along straight lines, a step of
//! longest distance D and largest packet F takes `t_s + D * t_d + F * t_l`. A schedule is steps of
//! packets (`steps`), which nobody needs to be told: they follow from the network, the lengths of all
//! blocks and the algorithm's name.
//!
//! `moves` is what happens on one line, `line` and `stage` which moves there are when, `walk` who holds
//! what then; `complete` is for networks where all reach each other. [`choose`](fn@choose) finds the
//! algorithm with the least cost, by `line_cost` and `diagonal_search`; [`free_run`](fn@free_run) says
//! when it ends where nobody waits. [`paper`] and [`whole_steps`] have the paper's own figures.
//!
//! Lengths may differ, and may be 0; then, too, a packet leaves out whatever its receiver has.

mod algorithm;
mod arena;
mod bounds;
mod choose;
mod complete;
mod diagonal_search;
mod fit;
mod flits;
mod free_run;
mod line;
mod line_cost;
mod moves;
pub mod paper;
mod stage;
mod steps;
mod walk;
pub mod whole_steps;

pub use algorithm::{Algorithm, NameError};
pub use arena::{Arena, ArenaError, Grid, MAX_PES};
pub use choose::choose;
pub use complete::Among;
pub use fit::{Unfit, Way};
pub use flits::{Blocks, Flits, Piece};
pub use free_run::free_run;
pub use line::LineParameters;
pub use stage::{Diagonal, Stage};
pub use steps::{Cost, Packet, Prices, Step, StepCost};

use moves::Line;
use walk::Walk;

use crate::PeId;
use crate::exact::Exact;

/// Flits that all blocks together may have: sums over steps, and times, then stay exact.
pub const MAX_FLITS: u64 = 1 << 44;

/// A gossip of blocks of known lengths, by one algorithm.
#[derive(Clone, Debug)]
pub struct Gossip {
    /// Where.
    pub arena: Arena,
    /// What.
    pub blocks: Blocks,
    way: Way,
}

impl Gossip {
    /// Block i has `lengths[i]` flits, all together at most [`MAX_FLITS`]; there is one for each PE.
    ///
    /// # Errors
    ///
    /// All for which the algorithm does not suit the network.
    pub fn new(arena: Arena, lengths: &[u64], algorithm: &Algorithm) -> Result<Gossip, Vec<Unfit>> {
        let way = algorithm.on(&arena)?;
        let blocks = Blocks::new(lengths, arena.classes());
        Ok(Gossip { arena, blocks, way })
    }

    /// Its steps, one after the other; what they are is worked out as they are asked for.
    pub fn steps(&self) -> Box<dyn Iterator<Item = Step> + '_> {
        match (&self.way, &self.arena) {
            (Way::Stages(stages), Arena::Grid(grid)) => {
                Box::new(Walk::new(grid, &self.blocks, stages.clone()))
            }
            (Way::Halves, _) => halves(&self.blocks),
            (Way::Among(among), _) => among.steps(&self.blocks),
            (Way::Stages(_), Arena::Complete(_)) => {
                unreachable!("an algorithm has stages on grids alone")
            }
        }
    }

    /// What no gossip of these blocks on this network takes less than, at these prices; on a complete
    /// network none that sends as many packets at a time.
    pub fn bound(&self, prices: &Prices) -> Exact {
        let ports = match self.way {
            Way::Among(among) => among.ports(self.arena.pes()),
            _ => 1,
        };
        bounds::bound(&self.arena, self.blocks.lengths(), ports, prices)
    }

    /// What it costs.
    pub fn cost(&self) -> Cost {
        self.steps().map(|step| step.cost(&self.arena)).collect()
    }
}

/// On a ring of n, in step s of n - 1, PE p passes on the first half of block `p - s + 1` to the
/// right and the second half of block `p + s - 1` to the left (ours): each edge then carries the
/// least that it can, whatever the lengths.
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
    let steps = (1..n).map(move |step| {
        let right = (0..n).map(|pe| half(pe, step, 1));
        let all = right.chain((0..n).map(|pe| half(pe, step, -1)));
        let packets = all.filter(|packet| !packet.flits.is_empty());
        Step {
            packets: packets.collect(),
        }
    });
    Box::new(steps.filter(|step| !step.packets.is_empty()))
}

#[cfg(test)]
mod tests;
