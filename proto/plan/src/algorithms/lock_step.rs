//! The plan of an algorithm in lock step: its kinds, the steps of messages and control items, the input
//! of a static schedule, and the reasons against a plan.

use flitcast_proto::items::Control;
use flitcast_proto::{PeId, Tree};

use super::plan_limits::PlanTooLarge;
use super::timetable::Timetable;
use crate::cost::Ports;
use crate::on_links::{Load, Sent};
use crate::trace::Crossing;

/// Computes the steps of messages and control items; message lengths are in flits.
type Planner = fn(&Tree, &[u64]) -> Steps;

/// Computes a static schedule.
type ListPlanner = fn(&ListTask<'_>) -> Result<Timetable, NotPlanned>;

/// The plan of an algorithm in lock step, without simulation.
#[derive(Clone, Copy, Debug)]
pub(super) enum LockStep {
    None,
    /// The steps of messages that do not wait on their way, and of control items.
    Messages(Planner),
    /// A static schedule.
    List(ListPlanner),
    /// The static schedule of a broadcast; it takes time for each flit and PE.
    FlitByFlit(ListPlanner),
}

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

/// The messages of a static schedule, and the PEs that exchange them.
#[derive(Clone, Copy, Debug)]
pub struct ListTask<'a> {
    /// The tree; in a complete network any tree of all PEs.
    pub tree: &'a Tree,
    /// The source of all messages of a scatter or a broadcast.
    pub source: PeId,
    /// Lengths in flits: one of a broadcast, by PE of a scatter and a gossip, row by row of an exchange.
    pub flits: &'a [u64],
    /// Number of ports of a PE.
    pub ports: Ports,
    /// The set-up time of a packet as a number of flits; 0 in the papers' model.
    pub setup_flits: u64,
}

impl<'a> ListTask<'a> {
    /// Creates a task without a set-up time.
    pub fn new(tree: &'a Tree, source: PeId, flits: &'a [u64], ports: Ports) -> ListTask<'a> {
        ListTask {
            tree,
            source,
            flits,
            ports,
            setup_flits: 0,
        }
    }

    /// Returns the tree, rooted at the source.
    pub(super) fn rooted(&self) -> Tree {
        self.tree.rerooted(self.source)
    }

    /// Returns the lengths of an exchange, a row for each source.
    pub fn rows(&self) -> Vec<Vec<u64>> {
        rows(self.tree.len(), self.flits)
    }
}

/// Returns the lengths of an exchange among `pes` PEs, a row for each source.
pub(super) fn rows(pes: usize, flits: &[u64]) -> Vec<Vec<u64>> {
    flits.chunks(pes).map(<[u64]>::to_vec).collect()
}

/// The reason why an algorithm has no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPlanned {
    /// The algorithm does not support the PEs, the ports or the lengths.
    Unfit(String),
    /// The plan exceeds a limit.
    TooMuch(PlanTooLarge),
}

impl From<PlanTooLarge> for NotPlanned {
    fn from(fault: PlanTooLarge) -> NotPlanned {
        NotPlanned::TooMuch(fault)
    }
}

impl NotPlanned {
    /// Creates the error for PEs, ports or lengths that an algorithm does not support.
    pub(super) fn unfit(why: &str) -> NotPlanned {
        NotPlanned::Unfit(why.to_owned())
    }
}
