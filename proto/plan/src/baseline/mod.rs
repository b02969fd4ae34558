//! Baselines in the step model, for comparison with the schedules: linear, windowed linear,
//! binomial with combining, and Träff's adaptive tree.
//!
//! A baseline is a set of [`Transfer`]s that [`flow`] executes along the tree's edges. The ports
//! are single, as for the schedules, but buffers are unbounded, which these algorithms require.
//! Nothing else is scheduled here. Real runs of the baselines (`ops/linear.rs`, `ops/combining.rs`)
//! use the trees of this module.

mod flow;

use flitcast_proto::{PeId, Tree};

pub use flow::{Flow, flow};

/// A message between any two PEs, sent as soon as the transfers that it waits for have arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Source.
    pub from: PeId,
    /// Destination.
    pub to: PeId,
    /// Length.
    pub flits: u64,
    /// Number of flits that the sender only passes on, and so had to hold.
    pub held_flits: u64,
    /// Whether it is a request or a size, not data.
    pub control: bool,
    /// Indices of the transfers that must have arrived before.
    pub after: Vec<usize>,
}

impl Transfer {
    /// Creates the transfer of a request or a size.
    fn control(from: PeId, to: PeId, after: Option<usize>) -> Transfer {
        Transfer {
            control: true,
            ..Transfer::data(from, to, 1, after)
        }
    }

    /// Creates the transfer of a message of the sender or to the receiver.
    fn data(from: PeId, to: PeId, flits: u64, after: Option<usize>) -> Transfer {
        Transfer {
            from,
            to,
            flits,
            held_flits: 0,
            control: false,
            after: after.into_iter().collect(),
        }
    }
}

/// A baseline in the step model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineModel {
    /// P0 serves one PE after the other, by index. In a gather, P0 sends a request to each, with at most
    /// this number of requests under way at once. A scatter has no requests.
    Window(usize),
    /// A binomial tree over the PEs' indices; each PE waits for its children and sends everything
    /// that it has as one message.
    Binomial,
    /// J. L. Träff, Practical, linear-time, fully distributed algorithms for irregular gather and
    /// scatter (arXiv 1702.05967): neighbouring blocks of 1, 2, 4, .. PEs merge; the root of the
    /// lighter block sends to that of the heavier, and the block with P0 always receives.
    Adaptive,
}

impl BaselineModel {
    /// Returns the transfers of a gather; `flits[i]` is L_i.
    pub fn gather(self, tree: &Tree, flits: &[u64]) -> Vec<Transfer> {
        match self {
            BaselineModel::Window(width) => requested(tree, flits, width.max(1)),
            BaselineModel::Binomial => combined(&binomial(tree.len()), flits),
            BaselineModel::Adaptive => combined(&adaptive(flits), flits),
        }
    }

    /// Returns the transfers of a scatter.
    pub fn scatter(self, tree: &Tree, flits: &[u64]) -> Vec<Transfer> {
        match self {
            BaselineModel::Window(_) => {
                let nonnull = tree.pes().filter(|pe| flits[pe.index()] > 0);
                let root = tree.root();
                let transfer = |pe: PeId| Transfer::data(root, pe, flits[pe.index()], None);
                nonnull.map(transfer).collect()
            }
            BaselineModel::Binomial => reversed(combined(&binomial(tree.len()), flits), flits),
            BaselineModel::Adaptive => reversed(combined(&adaptive(flits), flits), flits),
        }
    }
}

/// Returns the transfers of a gather whose PEs wait for a token, which goes down the tree before. A
/// real run sends it: P0 has to be ready for what arrives.
pub fn after_token(tree: &Tree, gather: Vec<Transfer>) -> Vec<Transfer> {
    let mut tokens: Vec<Transfer> = Vec::new();
    let mut token_of = vec![None; tree.len()];
    for &pe in tree.top_down() {
        if let Some(parent) = tree.parent(pe) {
            token_of[pe.index()] = Some(tokens.len());
            tokens.push(Transfer::control(parent, pe, token_of[parent.index()]));
        }
    }
    let before = tokens.len();
    tokens.extend(gather.into_iter().map(|mut transfer| {
        transfer.after.iter_mut().for_each(|place| *place += before);
        transfer.after.extend(token_of[transfer.from.index()]);
        transfer
    }));
    tokens
}

/// Returns the tree of [`BaselineModel::Binomial`], for real runs as well.
pub fn binomial_tree(pes: usize) -> Tree {
    merged(&binomial(pes), pes)
}

/// Returns the tree of [`BaselineModel::Adaptive`], for real runs as well.
pub fn adaptive_tree(lengths: &[u64]) -> Tree {
    merged(&adaptive(lengths), lengths.len())
}

fn merged(merges: &[Merge], pes: usize) -> Tree {
    let mut parents = vec![None; pes.max(1)];
    for merge in merges {
        parents[merge.from] = Some(PeId(merge.to as u32));
    }
    let tree = Tree::from_parents(parents);
    tree.unwrap_or_else(|faults| unreachable!("every block but P0's is merged once: {faults}"))
}

/// Returns the transfers of a gather in which P0 sends requests by index, at most `width`
/// unanswered at a time.
fn requested(tree: &Tree, flits: &[u64], width: usize) -> Vec<Transfer> {
    let root = tree.root();
    let mut transfers: Vec<Transfer> = Vec::new();
    let nonnull = tree.pes().filter(|pe| flits[pe.index()] > 0);
    for (place, pe) in nonnull.enumerate() {
        // Requests and answers alternate, so this is the answer `width` positions before:
        let after = place.checked_sub(width).map(|earlier| 2 * earlier + 1);
        let request = Some(transfers.len());
        transfers.push(Transfer::control(root, pe, after));
        transfers.push(Transfer::data(pe, root, flits[pe.index()], request));
    }
    transfers
}

/// One merge of two blocks of PEs: the block of `from` becomes part of that of `to`.
#[derive(Clone, Copy)]
struct Merge {
    from: usize,
    to: usize,
}

/// Returns the binomial tree by levels, the smallest blocks first: PE i sends to i with its lowest
/// set bit cleared.
fn binomial(pes: usize) -> Vec<Merge> {
    let mut merges = Vec::new();
    let mut block = 1;
    while block < pes {
        for from in (block..pes).step_by(2 * block) {
            let to = from - block;
            merges.push(Merge { from, to });
        }
        block *= 2;
    }
    merges
}

/// Returns Träff's tree by levels.
fn adaptive(flits: &[u64]) -> Vec<Merge> {
    // Root and weight of each block, from left to right.
    let mut blocks: Vec<(usize, u64)> = flits.iter().copied().enumerate().collect();
    let mut merges = Vec::new();
    while blocks.len() > 1 {
        let merged = blocks.chunks(2).map(|pair| match *pair {
            [(left, a), (right, b)] => {
                let (to, from) = match left == 0 || a >= b {
                    true => (left, right),
                    false => (right, left),
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

/// Converts each merge to one message with everything that the sender's block holds, after all
/// messages to the sender. A block of null messages sends nothing.
fn combined(merges: &[Merge], flits: &[u64]) -> Vec<Transfer> {
    let mut holds = flits.to_vec();
    let mut arrived: Vec<Vec<usize>> = vec![Vec::new(); flits.len()];
    let mut transfers = Vec::new();
    for &Merge { from, to } in merges {
        if holds[from] == 0 {
            continue;
        }
        let index = transfers.len();
        let [sender, receiver] = [from, to].map(|pe| PeId(pe as u32));
        transfers.push(Transfer {
            held_flits: holds[from] - flits[from],
            after: std::mem::take(&mut arrived[from]),
            ..Transfer::data(sender, receiver, holds[from], None)
        });
        arrived[to].push(index);
        holds[to] += holds[from];
        holds[from] = 0;
    }
    transfers
}

/// Reverses a gather to a scatter: a PE sends its children's parts on, largest block first, after
/// it has received its own.
fn reversed(gather: Vec<Transfer>, flits: &[u64]) -> Vec<Transfer> {
    let last = gather.len().saturating_sub(1);
    let mut feeds = vec![None; flits.len()];
    for (index, transfer) in gather.iter().enumerate() {
        feeds[transfer.from.index()] = Some(last - index);
    }
    let turn = |transfer: &Transfer| {
        let (from, to, flits) = (transfer.from, transfer.to, transfer.flits);
        Transfer {
            // The part that the sender received for others.
            held_flits: if to == PeId::ROOT { 0 } else { flits },
            ..Transfer::data(to, from, flits, feeds[to.index()])
        }
    };
    gather.iter().rev().map(turn).collect()
}
