//! What is said when a PE joins that nobody has started for this launch.

use super::missing;
use crate::PeId;
use crate::wire::{Secret, WireError, pb};

/// A day: above this, nobody is waiting any more.
const LONGEST_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Who wants to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Which PE it plays.
    pub pe: PeId,
    /// Whether it joins the next cluster when this one is over.
    pub stays: bool,
    /// Whether it runs commands.
    pub commands: bool,
}

/// What makes it one of the cluster: what who starts a PE would have told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Names the cluster.
    pub cluster: u64,
    /// Drawn for this launch.
    pub secret: Secret,
    /// The address that its children reach it at.
    pub listen: String,
    /// How long the processes of this cluster wait for what.
    pub timeouts: TimeoutsNs,
}

/// How long the processes of a cluster wait for what, each from 1 ns to a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutsNs {
    /// From one ping to the next.
    pub heartbeat_ns: u64,
    /// Without a byte from the other end.
    pub silence_ns: u64,
    /// For a new connection to say who it is.
    pub handshake_ns: u64,
    /// For a connection to be made.
    pub connect_ns: u64,
    /// Without a byte taken.
    pub write_ns: u64,
    /// Without a byte moved while files are read or written.
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
