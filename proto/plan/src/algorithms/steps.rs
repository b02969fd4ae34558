//! The steps of a round: when every message and every control item crosses.

use flitcast_proto::items::Control;
use flitcast_proto::{PeId, Tree};

use crate::on_links::{Load, Sent};
use crate::trace::Crossing;

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

/// The steps of all messages and all control items of a round, in any order.
pub(super) struct Steps {
    pub(super) messages: Vec<MessagePlan>,
    pub(super) control: Vec<ControlPlan>,
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
