//! Messages with which a PE that was not started for this launch joins, to and from protobuf.

use super::timeouts::Timeouts;
use crate::PeId;
use crate::wire::Secret;
use crate::wire::codec::{record, required};

/// Request of a PE to join a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The PE.
    pub pe: PeId,
    /// Whether the process joins the next cluster when this one has ended.
    pub stays: bool,
    /// Whether the process runs commands.
    pub commands: bool,
}

/// The data of a cluster for a PE that joins it; other PEs receive them when they are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Id of the cluster.
    pub cluster: u64,
    /// Random secret of this launch.
    pub secret: Secret,
    /// The address at which the PE listens for its children.
    pub listen: String,
    /// The timeouts of the cluster's processes.
    pub timeouts: Timeouts,
}

record! { Join = Join { pe, stays, commands } }

record! {
    Welcome = Welcome { cluster, secret, listen }
    put welcome { timeouts: Some(welcome.timeouts.put()) }
    parse welcome { timeouts: required(welcome.timeouts, "the timeouts")? }
}
