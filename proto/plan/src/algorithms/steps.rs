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
pub type ControlPlan = Crossing<Control>;

impl ControlPlan {
    /// Returns the crossing of the item.
    pub fn sent(&self) -> Sent {
        Sent::new(self.step, [self.from, self.to], Load::Control)
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

/// Returns the plan of M_i on its way between P0 and P_i, without a stop.
pub(super) fn on_its_way(tree: &Tree, pe: PeId, flits: u64, first_step: u64) -> MessagePlan {
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
        let control = self.control.iter();
        let control =
            control.map(|it| Crossing::new(it.step, [it.from, it.to], Item::Control(it.item)));
        let mut all: Vec<Crossing> = control.collect();
        for plan in &self.messages {
            let up = std::iter::successors(Some(plan.pe), |pe| tree.parent(*pe));
            let mut way: Vec<PeId> = up.collect();
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
                    let step = plan.first_step + edge + index - 1;
                    let item = Item::Flit { message, index };
                    all.push(Crossing::new(step, [hop[0], hop[1]], item));
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
