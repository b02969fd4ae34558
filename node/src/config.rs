//! Who a PE is, and what it was told when it was started.

use std::net::SocketAddr;

use flitcast_proto::PeId;
use flitcast_proto::wire::Secret;

use crate::allowed::Allowed;
use crate::counters::Tally;
use crate::limits::Timeouts;
use crate::security::Security;

/// Who a PE is and whom it belongs to.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Which PE.
    pub pe: PeId,
    /// Where the coordinator listens.
    pub coordinator: SocketAddr,
    /// Names the cluster.
    pub cluster: u64,
    /// What shows that it is of this launch: who does not know it is turned away.
    pub secret: Secret,
    /// How its connections are guarded.
    pub security: Security,
    /// How long it waits for what.
    pub timeouts: Timeouts,
    /// What it counts.
    pub tally: Tally,
    /// What it does at the coordinator's word.
    pub allowed: Allowed,
}
