//! The identity of a PE, and the settings with which it was started.

use std::net::SocketAddr;

use flitcast_proto::PeId;
use flitcast_proto::wire::Secret;

use crate::counters::Tally;
use crate::limits::Timeouts;
use crate::permissions::Permissions;
use crate::security::Security;

#[derive(Clone, Debug)]
pub struct NodeConfig {
    pub pe: PeId,
    pub coordinator: SocketAddr,
    pub cluster: u64,
    /// The secret of this launch; a process without it is rejected.
    pub secret: Secret,
    pub security: Security,
    pub timeouts: Timeouts,
    pub tally: Tally,
    pub allowed: Permissions,
}
