//! What users know: linear, windowed linear, binomial with combining, and Träff's
//! adaptive tree, in the step model, to compare the schedules with.
//!
//! A baseline is a set of [`Transfer`]s that [`flow`] carries along the tree's edges
//! with ports that are as single as ours, but with buffers as large as they need:
//! that is what these algorithms take for granted. Nothing else here schedules
//! anything. Real runs of them (`ops/linear.rs`, `ops/combining.rs`) take their trees from
//! here.

mod flow;

use crate::{PeId, Tree};

pub use flow::{Flow, flow};

/// A message between any two PEs, sent as soon as what it waits for has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Where it starts.
    pub from: PeId,
    /// Where it ends.
    pub to: PeId,
    /// Its length.
    pub flits: u64,
    /// How many of those its sender only passes on: it had to hold them.
    pub held_flits: u64,
    /// A request or a size, not data.
    pub control: bool,
    /// Transfers that must have arrived before, by index.
    pub after: Vec<usize>,
}

/// An algorithm that users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// P0 serves one PE after the other, by index. A gather asks each one and waits
    /// for its message.
    Linear,
    /// The same with so many requests under way at once. A scatter has no requests,
    /// so there it is linear.
    Window(usize),
    /// A binomial tree over the PEs' indices; each PE waits for its children, and
    /// sends all that it has as one message.
    Binomial,
    /// J. L. Träff, Practical, linear-time, fully distributed algorithms for
    /// irregular gather and scatter (arXiv 1702.05967): neighbouring blocks of 1, 2,
    /// 4, .. PEs merge; the lighter block's root sends to the heavier's, and the
    /// block with P0 always receives.
    Adaptive,
}

impl Baseline {
    /// Its transfers for a gather, `flits[i]` being L_i.
    pub fn gather(self, tree: &Tree, flits: &[u64]) -> Vec<Transfer> {
        match self {
            Baseline::Linear => requested(tree, flits, 1),
            Baseline::Window(width) => requested(tree, flits, width.max(1)),
            Baseline::Binomial => combined(&binomial(tree.len()), flits),
            Baseline::Adaptive => combined(&adaptive(flits), flits),
        }
    }

    /// Its transfers for a scatter.
    pub fn scatter(self, tree: &Tree, flits: &[u64]) -> Vec<Transfer> {
        match self {
            Baseline::Linear | Baseline::Window(_) => {
                let nonnull = tree.pes().filter(|pe| flits[pe.index()] > 0);
                let transfer = |pe: PeId| Transfer {
                    from: tree.root(),
                    to: pe,
                    flits: flits[pe.index()],
                    held_flits: 0,
                    control: false,
                    after: Vec::new(),
                };
                nonnull.map(transfer).collect()
            }
            Baseline::Binomial => reversed(combined(&binomial(tree.len()), flits), flits),
            Baseline::Adaptive => reversed(combined(&adaptive(flits), flits), flits),
        }
    }
}

/// The tree along which [`Baseline::Binomial`] sends, and a real run of it.
pub fn binomial_tree(pes: usize) -> Tree {
    merged(&binomial(pes), pes)
}

/// The tree along which [`Baseline::Adaptive`] sends, and a real run of it.
pub fn adaptive_tree(lengths: &[u64]) -> Tree {
    merged(&adaptive(lengths), lengths.len())
}

fn merged(merges: &[Merge], pes: usize) -> Tree {
    let mut parents = vec![None; pes.max(1)];
    for merge in merges {
        parents[merge.from] = Some(PeId(merge.to as u32));
    }
    match Tree::from_parents(parents) {
        Ok(tree) => tree,
        Err(faults) => unreachable!("every block but P0's is merged once: {faults}"),
    }
}

/// P0 asks each PE by index, at most `width` at a time unanswered.
fn requested(tree: &Tree, flits: &[u64], width: usize) -> Vec<Transfer> {
    let mut transfers: Vec<Transfer> = Vec::new();
    let nonnull = tree.pes().filter(|pe| flits[pe.index()] > 0);
    for (place, pe) in nonnull.enumerate() {
        // Requests and answers alternate, so the answer `width` places back is:
        let after = place.checked_sub(width).map(|earlier| 2 * earlier + 1);
        let request = transfers.len();
        transfers.push(Transfer {
            from: tree.root(),
            to: pe,
            flits: 1,
            held_flits: 0,
            control: true,
            after: after.into_iter().collect(),
        });
        transfers.push(Transfer {
            from: pe,
            to: tree.root(),
            flits: flits[pe.index()],
            held_flits: 0,
            control: false,
            after: vec![request],
        });
    }
    transfers
}

/// One merge of two blocks of PEs: `from`'s block becomes part of `to`'s.
#[derive(Clone, Copy)]
struct Merge {
    from: usize,
    to: usize,
}

/// The binomial tree by levels: PE i sends to i with its lowest set bit cleared, the
/// smallest blocks first.
fn binomial(pes: usize) -> Vec<Merge> {
    let mut merges = Vec::new();
    let mut block = 1;
    while block < pes {
        let senders = (block..pes).step_by(2 * block);
        merges.extend(senders.map(|from| Merge {
            from,
            to: from - block,
        }));
        block *= 2;
    }
    merges
}

/// Träff's tree by levels.
fn adaptive(flits: &[u64]) -> Vec<Merge> {
    // Root and weight of each block, left to right.
    let mut blocks: Vec<(usize, u64)> = flits.iter().copied().enumerate().collect();
    let mut merges = Vec::new();
    while blocks.len() > 1 {
        let merged = blocks.chunks(2).map(|pair| match *pair {
            [(left, a), (right, b)] => {
                let left_receives = left == 0 || a >= b;
                let (to, from) = if left_receives {
                    (left, right)
                } else {
                    (right, left)
                };
                merges.push(Merge { from, to });
                (to, a + b)
            }
            _ => pair[0],
        });
        blocks = merged.collect();
    }
    merges
}

/// Each merge as one message of all that the sender's block holds, after all that
/// came to it. A block of null messages sends nothing.
fn combined(merges: &[Merge], flits: &[u64]) -> Vec<Transfer> {
    let mut holds = flits.to_vec();
    let mut arrived: Vec<Vec<usize>> = vec![Vec::new(); flits.len()];
    let mut transfers = Vec::new();
    for &Merge { from, to } in merges {
        if holds[from] == 0 {
            continue;
        }
        let index = transfers.len();
        transfers.push(Transfer {
            from: PeId(from as u32),
            to: PeId(to as u32),
            flits: holds[from],
            held_flits: holds[from] - flits[from],
            control: false,
            after: std::mem::take(&mut arrived[from]),
        });
        arrived[to].push(index);
        holds[to] += holds[from];
        holds[from] = 0;
    }
    transfers
}

/// A gather run backwards is a scatter: a PE sends its children's parts on, largest
/// block first, once it has its own.
fn reversed(gather: Vec<Transfer>, flits: &[u64]) -> Vec<Transfer> {
    let last = gather.len().saturating_sub(1);
    let mut feeds = vec![None; flits.len()];
    for (index, transfer) in gather.iter().enumerate() {
        feeds[transfer.from.index()] = Some(last - index);
    }
    let turn = |transfer: &Transfer| Transfer {
        from: transfer.to,
        to: transfer.from,
        flits: transfer.flits,
        // What its sender got for others.
        held_flits: if transfer.to == PeId::ROOT {
            0
        } else {
            transfer.flits
        },
        control: false,
        after: feeds[transfer.to.index()].into_iter().collect(),
    };
    gather.iter().rev().map(turn).collect()
}
