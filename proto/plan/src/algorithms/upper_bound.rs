//! Upper bounds of the time of a plan: the theorems of paper 000, as far as they hold (ARCHITECTURE.md
//! lists where the paper contradicts itself).
//!
//! - M: flits of all messages. H: depth of the deepest nonnull message. n: PEs but the root.
//! - B: steps in which the token reaches all PEs of the tree. T: depth of the tree.
//! - S: largest number of orders, one after the other, on the way to a nonnull message: the children of
//!   the PEs from the root to its source, the source included.
//!
//! Certification begins its data when all certificates are at P0: after 2n steps if serial, 2B if
//! pipelined, 2T with a port for each neighbour. The first flit of any stream then reaches P0 within
//! the time that orders take down (S, B or H) and H steps up, by induction over the lag time: with b
//! and h the orders and the height below P_i, c_i is at most b + h + 1. M flits follow each other without
//! a longer wait, so P0 has the last one at most M - 1 steps later. This holds for any order of the
//! streams.

use flitcast_proto::ops::PeRole;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::{PeId, Tree};

use super::plan::Plan;

/// A time that no plan by an algorithm exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperBound {
    /// The time, in steps.
    pub steps: u64,
    /// The theorem as the paper numbers it.
    pub theorem: &'static str,
    /// The formula of the time, in the letters of this module.
    pub formula: &'static str,
    /// The formula that the paper prints, if it does not hold.
    pub printed: Option<&'static str>,
}

/// The formula of Theorem 3. It counts the steps of the orders, but not those of the first flit back to
/// P0; and by the serial wave, token and certificates take 2n steps instead of B + C.
const PRINTED: Option<&str> = Some("2B + C + M");

impl Plan {
    /// Returns the upper bound that a theorem gives for the algorithm of the plan, if there is one.
    pub fn upper_bound(&self) -> Option<UpperBound> {
        let flits: u64 = self.messages.iter().map(|message| message.flits).sum();
        let tree = &self.tree;
        let depth = |pe: PeId| u64::from(tree.depth(pe));
        let sources = self.messages.iter().map(|message| message.pe);
        let deepest = sources.map(depth).max().unwrap_or(0);
        let of_certification = |control: u64, formula| UpperBound {
            steps: (control + deepest + flits).saturating_sub(1),
            theorem: "Theorem 3",
            formula,
            printed: PRINTED,
        };
        let bound = match self.operation.role() {
            PeRole::Scatter => UpperBound {
                steps: (flits + deepest).saturating_sub(1),
                theorem: "Proposition 1",
                formula: "M + H - 1",
                printed: None,
            },
            PeRole::ShoulderTap => UpperBound {
                steps: self.in_turn_on_a_path(),
                theorem: "Theorem 2",
                formula: "inequality (7) as an equality",
                printed: None,
            },
            PeRole::Certification(Sync::Serial) => {
                let others = tree.count() as u64 - 1;
                of_certification(2 * others + self.serial_orders(), "2n + S + H - 1 + M")
            }
            PeRole::Certification(Sync::Pipelined) => {
                let broadcast = tree.token_broadcast().steps();
                of_certification(3 * broadcast, "3B + H - 1 + M")
            }
            PeRole::Certification(Sync::Parallel) => {
                let height = u64::from(tree.height());
                of_certification(2 * height + deepest, "2T + 2H - 1 + M")
            }
            _ => return None,
        };
        let is_empty = self.messages.is_empty();
        let steps = if is_empty { 0 } else { bound.steps };
        Some(UpperBound { steps, ..bound })
    }

    /// Returns the time by inequality (7) of the paper if it holds as an equality: a message of P_i
    /// begins to arrive i steps after its PE can send, or behind the message before it. The last PE of the
    /// path has no call to send first.
    fn in_turn_on_a_path(&self) -> u64 {
        let mut messages: Vec<_> = self.messages.iter().collect();
        messages.sort_unstable_by_key(|message| self.tree.depth(message.pe));
        let mut behind = 0;
        let mut time = 0;
        for message in messages.into_iter().rev() {
            behind += message.flits;
            let way = 2 * u64::from(self.tree.depth(message.pe));
            let call = u64::from(!self.tree.children(message.pe).is_empty());
            time = time.max(way + call - 1 + behind);
        }
        time
    }

    /// Returns S: the largest number of children of the PEs from the root to the source of a message.
    fn serial_orders(&self) -> u64 {
        let tree: &Tree = &self.tree;
        let mut orders = vec![0u64; tree.len()];
        for &pe in tree.top_down() {
            let above = tree.parent(pe).map_or(0, |parent| orders[parent.index()]);
            orders[pe.index()] = above + tree.children(pe).len() as u64;
        }
        let sources = self.messages.iter().map(|message| message.pe);
        sources.map(|pe| orders[pe.index()]).max().unwrap_or(0)
    }
}
