//! The PEs that may join a cluster, and until when.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use flitcast_node::limits::Timeouts;
use flitcast_proto::PeId;

use super::plan::LaunchPlan;

/// The PEs that may join.
#[derive(Debug)]
pub struct Joining {
    /// Listen address of each PE.
    pub listen: BTreeMap<PeId, IpAddr>,
    /// Time limits that the PEs receive.
    pub timeouts: Timeouts,
    /// Address where PEs join.
    pub at: SocketAddr,
    /// Total time for all PEs to join.
    pub wait: Duration,
    /// Whether further clusters follow this one.
    pub again: bool,
    /// Whether all PEs must join.
    pub require_all: bool,
    /// Whether the PEs must run commands.
    pub commands: bool,
}

impl Joining {
    /// Derives the PEs that may join from a launch plan.
    pub fn new(plan: &LaunchPlan<'_>, at: SocketAddr, wait: Duration) -> Joining {
        let listen = |&pe: &PeId| (pe, plan.placement.places[pe.index()].listen);
        Joining {
            listen: plan.pes.iter().map(listen).collect(),
            timeouts: *plan.timeouts,
            at,
            wait,
            // PEs that this launch's starter starts are started again for the next cluster.
            again: plan.again && plan.placement.starter().is_none(),
            require_all: plan.require_all,
            commands: plan.commands,
        }
    }
}
