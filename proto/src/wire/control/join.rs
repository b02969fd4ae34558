//! Messages with which a PE that was not started for this launch joins, to and from protobuf.

use super::codec::missing;
use crate::PeId;
use crate::wire::{Secret, WireError, pb};

/// Longest permitted timeout: one day.
const LONGEST_NS: u64 = 24 * 3600 * 1_000_000_000;

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
    pub timeouts: TimeoutsNs,
}

/// Timeouts of the processes of a cluster, each from 1 ns to a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutsNs {
    /// Time from one ping to the next.
    pub heartbeat_ns: u64,
    /// Time without a byte from the other end.
    pub silence_ns: u64,
    /// Time for a new connection to authenticate.
    pub handshake_ns: u64,
    /// Time for making a connection.
    pub connect_ns: u64,
    /// Time without a byte accepted by the other end.
    pub write_ns: u64,
    /// Time without a byte moved by any PE while a PE reads or writes files.
    pub disk_ns: u64,
}

impl Join {
    pub(super) fn put(self) -> pb::Join {
        pb::Join {
            pe: self.pe.0,
            stays: self.stays,
            commands: self.commands,
        }
    }

    pub(super) fn parse(join: pb::Join) -> Join {
        Join {
            pe: PeId(join.pe),
            stays: join.stays,
            commands: join.commands,
        }
    }
}

impl Welcome {
    pub(super) fn put(self) -> pb::Welcome {
        pb::Welcome {
            cluster: self.cluster,
            secret: self.secret.to_bytes(),
            listen: self.listen,
            timeouts: Some(self.timeouts.put()),
        }
    }

    pub(super) fn parse(welcome: pb::Welcome) -> Result<Welcome, WireError> {
        let timeouts = welcome.timeouts.ok_or_else(|| missing("the timeouts"))?;
        Ok(Welcome {
            cluster: welcome.cluster,
            secret: Secret::parse(&welcome.secret)?,
            listen: welcome.listen,
            timeouts: TimeoutsNs::parse(timeouts)?,
        })
    }
}

impl TimeoutsNs {
    fn put(self) -> pb::Timeouts {
        pb::Timeouts {
            heartbeat_ns: self.heartbeat_ns,
            silence_ns: self.silence_ns,
            handshake_ns: self.handshake_ns,
            connect_ns: self.connect_ns,
            write_ns: self.write_ns,
            disk_ns: self.disk_ns,
        }
    }

    fn parse(timeouts: pb::Timeouts) -> Result<TimeoutsNs, WireError> {
        let read = TimeoutsNs {
            heartbeat_ns: timeouts.heartbeat_ns,
            silence_ns: timeouts.silence_ns,
            handshake_ns: timeouts.handshake_ns,
            connect_ns: timeouts.connect_ns,
            write_ns: timeouts.write_ns,
            disk_ns: timeouts.disk_ns,
        };
        let all = [
            read.heartbeat_ns,
            read.silence_ns,
            read.handshake_ns,
            read.connect_ns,
            read.write_ns,
            read.disk_ns,
        ];
        match all.iter().all(|ns| (1..=LONGEST_NS).contains(ns)) {
            true => Ok(read),
            false => Err(WireError::malformed("a timeout of nothing, or over a day")),
        }
    }
}
