//! The properties of a cluster that the controller needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use flitcast_node::limits::Timeouts;
use flitcast_plan::Algorithm;
use flitcast_proto::{PeId, Tree};

/// The properties of a cluster before the first round.
#[derive(Clone, Debug)]
pub struct ClusterInfo {
    /// The tree of PEs.
    pub tree: Arc<Tree>,
    /// The algorithm of the rounds.
    pub operation: Algorithm,
    /// Limits of all waits.
    pub timeouts: Timeouts,
    /// PEs that have joined. The end of such a process is only visible as the end of its channel.
    pub joined: BTreeSet<PeId>,
    /// Address at which each PE listens, by PE index, for error messages; `None`, or no element, if
    /// it is unknown.
    pub addresses: Vec<Option<String>>,
}
