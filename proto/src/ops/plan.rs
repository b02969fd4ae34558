//! The complete schedule of a round, computed without simulation: when every message and every
//! control item crosses. It takes O(n log n) time without recursion.
//!
//! It uses the same rules as the state machines; `tests/tests/plans.rs` compares it with the
//! simulator, item by item.

use std::sync::Arc;

use super::certification_plan::{order_on, plan_by_rank};
use super::gather_order::{GatherOrderError, child_ranks};
use super::table::{Direction, Operation};
use crate::items::{Control, Destination, Message};
use crate::on_links::{Load, Sent, of_crossings};
use crate::schedule::pace::Timing;
use crate::trace::{Crossing, Item};
use crate::{PeId, Tree};

pub use super::certification_plan::{StreamPlan, streams};
pub use super::listed::legs_of;
pub use super::scatter::{plan_scatter, plan_scatter_by_branch};

/// The steps in which a message crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagePlan {
    /// The PE of M_i.
    pub pe: PeId,
    /// L_i.
    pub flits: u64,
    /// The step in which its first flit crosses its first link.
    pub first_step: u64,
    /// The step in which its last flit reaches its destination.
    pub arrival_step: u64,
}

/// The step in which a control item crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlPlan {
    /// The step.
    pub step: u64,
    /// The sender.
    pub from: PeId,
    /// The receiver.
    pub to: PeId,
    /// The control item.
    pub item: Control,
}

impl ControlPlan {
    /// Returns the crossing of the item.
    pub fn sent(&self) -> Sent {
        Sent {
            step: self.step,
            from: self.from,
            to: self.to,
            load: Load::Control,
            after: Vec::new(),
        }
    }
}

/// The schedule of a round.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The tree.
    pub tree: Arc<Tree>,
    /// The algorithm.
    pub operation: Operation,
    /// The nonnull messages, by PE.
    pub messages: Vec<MessagePlan>,
    /// All control items, by step, then by sender.
    pub control: Vec<ControlPlan>,
    /// The time of the operation: the last arrival, 0 if there is nothing to send.
    pub time_steps: u64,
    /// Lower bound on the steps of any schedule: see [`bounds`](crate::schedule::bounds).
    pub lower_bound_steps: u64,
}

/// Plans an operation; a scatter farthest destination first.
///
/// # Panics
///
/// Panics if the algorithm is Shoulder-Tap and the tree is not a path, or if it is a baseline,
/// which [`crate::baseline`] plans.
pub fn plan(tree: &Arc<Tree>, operation: Operation, flits: &[u64]) -> Plan {
    match operation.entry().plan {
        Some(plan) => plan(tree, operation, flits),
        None => panic!("{operation:?} has no schedule to plan"),
    }
}

/// Plans a gather by Shoulder-Tap or certification in which P0 takes the messages in the given order of
/// their sources: the nonnull messages, each once.
///
/// # Errors
///
/// Returns an error if no gather can take the messages in this order.
pub fn plan_gather(
    tree: &Arc<Tree>,
    operation: Operation,
    flits: &[u64],
    order: &[PeId],
) -> Result<Plan, GatherOrderError> {
    let ranks = child_ranks(tree, order)?;
    Ok(match operation {
        Operation::Certification(_) => plan_by_rank(tree, operation, flits, &ranks),
        // On a path there is one order.
        _ => plan(tree, operation, flits),
    })
}

/// Creates a plan of these crossings in any order.
pub(super) fn finish(
    tree: &Arc<Tree>,
    operation: Operation,
    flits: &[u64],
    mut messages: Vec<MessagePlan>,
    mut control: Vec<ControlPlan>,
) -> Plan {
    messages.sort_unstable_by_key(|message| message.pe);
    control.sort_unstable_by_key(|item| (item.step, item.from, item.to));
    Plan {
        tree: tree.clone(),
        operation,
        time_steps: messages.iter().map(|m| m.arrival_step).max().unwrap_or(0),
        messages,
        control,
        lower_bound_steps: operation.least_steps(tree, flits),
    }
}

/// Returns the plan of M_i on its way to P0.
pub(super) fn gathered(tree: &Tree, pe: PeId, flits: u64, first_step: u64) -> MessagePlan {
    let arrival_step = first_step + flits - 1 + u64::from(tree.depth(pe)) - 1;
    MessagePlan {
        pe,
        flits,
        first_step,
        arrival_step,
    }
}

impl Plan {
    /// Returns the crossings of the plan on links with these times. In a gather by certification, the
    /// order in which P0 receives the messages depends on them.
    pub fn on_links(&self, timing: &Timing) -> Vec<Sent> {
        let Operation::Certification(_) = self.operation else {
            return of_crossings(&self.crossings());
        };
        let mut flits = vec![0; self.tree.len()];
        for message in &self.messages {
            flits[message.pe.index()] = message.flits;
        }
        let bytes = flits
            .iter()
            .map(|flits| flits * u64::from(timing.flit_bytes()));
        let bytes: Vec<u64> = bytes.collect();
        let mut messages = Vec::new();
        // In steps, without a gap at P0, after all control items. PEs of one depth send in this order.
        let mut arrives = self.control.last().map_or(0, |item| item.step);
        arrives += self
            .tree
            .pes()
            .map(|pe| u64::from(self.tree.depth(pe)))
            .max()
            .unwrap_or(0);
        for pe in order_on(&self.tree, self.operation, &bytes, timing) {
            let flits = flits[pe.index()];
            let first_step = arrives + 2 - u64::from(self.tree.depth(pe));
            messages.push(gathered(&self.tree, pe, flits, first_step));
            arrives += flits;
        }
        let plan = Plan {
            messages,
            ..self.clone()
        };
        of_crossings(&plan.crossings())
    }

    /// Returns every crossing of a flit or control item as the simulator records them: by step,
    /// then by sender. Their number is the number of flits times the edges on their way.
    pub fn crossings(&self) -> Vec<Crossing> {
        let tree = &self.tree;
        let mut all: Vec<Crossing> = Vec::new();
        for &ControlPlan {
            step,
            from,
            to,
            item,
        } in &self.control
        {
            all.push(Crossing {
                step,
                from,
                to,
                item: Item::Control(item),
            });
        }
        for plan in &self.messages {
            let mut way = vec![plan.pe];
            while let Some(parent) = way.last().and_then(|&pe| tree.parent(pe)) {
                way.push(parent);
            }
            if self.operation.direction() == Direction::Down {
                way.reverse();
            }
            let message = Message {
                id: plan.pe.into(),
                source: way[0],
                destination: Destination::One(way[way.len() - 1]),
                bytes: plan.flits,
            };
            for (edge, hop) in (0..).zip(way.windows(2)) {
                for index in 1..=plan.flits {
                    all.push(Crossing {
                        step: plan.first_step + edge + index - 1,
                        from: hop[0],
                        to: hop[1],
                        item: Item::Flit { message, index },
                    });
                }
            }
        }
        all.sort_by_key(|crossing| (crossing.step, crossing.from, crossing.to));
        all
    }

    /// Returns the number of crossings that [`Plan::crossings`] would return, at most `u64::MAX`.
    pub fn crossing_count(&self) -> u64 {
        let flits = self.messages.iter().map(|message| {
            let edges = u64::from(self.tree.depth(message.pe));
            message.flits.saturating_mul(edges)
        });
        flits.fold(self.control.len() as u64, u64::saturating_add)
    }
}
