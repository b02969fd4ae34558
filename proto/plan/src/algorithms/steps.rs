//! The steps of a round: when every message and every control item crosses.

use std::sync::Arc;

use flitcast_proto::items::{Control, Destination, Message};
use flitcast_proto::ops::Direction;
use flitcast_proto::{PeId, Tree};

use super::algorithm::Algorithm;
use crate::on_links::{Load, Sent};
use crate::trace::{Crossing, Item};

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
    pub operation: Algorithm,
    /// The nonnull messages, by PE.
    pub messages: Vec<MessagePlan>,
    /// All control items, by step, then by sender.
    pub control: Vec<ControlPlan>,
    /// The time of the operation: the last arrival, 0 if there is nothing to send.
    pub time_steps: u64,
    /// Lower bound on the steps of any schedule: see [`bounds`](crate::schedule::bounds).
    pub lower_bound_steps: u64,
}

/// Creates a plan of these crossings in any order.
pub(super) fn finish(
    tree: &Arc<Tree>,
    operation: Algorithm,
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
            if self.operation.collective().direction() == Direction::Down {
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
