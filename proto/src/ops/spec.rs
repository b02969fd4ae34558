//! The properties of an algorithm, and values that several algorithms have in common.

use std::sync::Arc;

use super::messages::Messages;
use super::operation::{Algorithm, AllPorts, StartSignal, TreeRequirement};
use super::pe_schedule::PeSchedule;
use super::role::{PePosition, Role};
use super::steps::Plan;
use crate::items::ScheduledHop;
use crate::schedule::pace::{Pacing, Timing};
use crate::{MessageId, PeId, Tree};

/// The use of a PE's ports.
pub(super) struct PortUse {
    /// Whether there is a separate port for the control items of each neighbour.
    pub for_control: bool,
    /// Whether a PE sends and receives at the same time.
    pub is_duplex: bool,
    /// Whether PEs use the links to all neighbours at the same time.
    pub all: AllPorts,
}

/// A PE sends or receives, one frame at a time.
pub(super) const ONE_AT_A_TIME: PortUse = PortUse {
    for_control: false,
    is_duplex: false,
    all: AllPorts::Never,
};

/// A PE sends a frame and receives a frame at the same time.
pub(super) const DUPLEX: PortUse = PortUse {
    is_duplex: true,
    ..ONE_AT_A_TIME
};

/// A PE sends a frame and receives a frame over each link at the same time, if the links are
/// separate.
pub(super) const DUPLEX_ON_OWN_LINKS: PortUse = PortUse {
    all: AllPorts::WithOwnLinks,
    ..DUPLEX
};

/// Computes the lock-step schedule; message lengths are in flits.
type Planner = fn(&Arc<Tree>, Algorithm, &[u64]) -> Plan;

/// The properties of an algorithm; methods of [`Algorithm`] return most of them.
pub(super) struct AlgorithmSpec {
    pub algorithm: &'static str,
    pub sync: Option<&'static str>,
    /// Names of the methods that users may choose or compare, each with its pacing if it has one.
    /// Empty if users cannot choose the algorithm, or only on a baseline's tree.
    pub ways: &'static [(&'static str, Option<Pacing>)],
    pub code: i32,
    pub fits: TreeRequirement,
    pub gives_orders: bool,
    pub begins_on: StartSignal,
    pub ports: PortUse,
    /// The PEs to which a PE connects outside the tree. May contain the PE itself, tree neighbours
    /// and absent PEs, which [`Algorithm::peers`] removes.
    pub peers: fn(&Tree, PeId) -> Vec<PeId>,
    pub messages: Messages,
    /// The nonnull messages, those of each source in sending order. Lengths are by delivery.
    pub order: fn(&Tree, &[u64], &Timing) -> Vec<MessageId>,
    /// All crossings of the static schedule by first step; empty without one. Lengths are by
    /// delivery.
    pub hops: fn(&Tree, &[u64], &Timing) -> Vec<ScheduledHop>,
    /// Computes the lock-step schedule without simulation, if that is possible.
    pub plan: Option<Planner>,
    /// Lower bound on the steps of any algorithm for the operation. Lengths are in flits.
    pub bound: fn(&Tree, &[u64]) -> u64,
    /// Creates the state machine of a PE.
    pub role: fn(&PePosition, PeSchedule) -> Box<dyn Role>,
}

/// Returns the nonnull messages by id, for algorithms in which each source has one message.
pub(super) fn by_id(_tree: &Tree, bytes: &[u64], _timing: &Timing) -> Vec<MessageId> {
    let ids = (0..).map(MessageId).zip(bytes);
    ids.filter(|(_, bytes)| **bytes > 0)
        .map(|(id, _)| id)
        .collect()
}

/// Returns all other PEs.
pub(super) fn everybody(tree: &Tree, pe: PeId) -> Vec<PeId> {
    tree.pes().filter(|other| *other != pe).collect()
}

/// Returns no PE.
pub(super) fn no_peers(_tree: &Tree, _pe: PeId) -> Vec<PeId> {
    Vec::new()
}

/// Returns no static schedule.
pub(super) fn no_hops(_tree: &Tree, _bytes: &[u64], _timing: &Timing) -> Vec<ScheduledHop> {
    Vec::new()
}
