//! The timeouts of the processes of a cluster.

use std::time::Duration;

use crate::wire::codec::{ensure, record};

/// Longest permitted timeout: one day.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Time limits, the same for all processes of a cluster; the coordinator sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Time from one ping of the coordinator to the next: short enough that several are lost before a
    /// PE counts as dead, too long to be visible in a measurement.
    pub heartbeat: Duration,
    /// Time without a byte from the other end of a control channel, or without an acknowledgement from
    /// a neighbour. In that time TCP repeats a lost segment four times.
    pub silence: Duration,
    /// Time for a new connection to authenticate, which takes a round trip and a few dozen bytes.
    pub handshake: Duration,
    /// Time to reach the coordinator or the parent, or to report that they cannot be reached. Both
    /// listen before their address is sent to any PE, so only a dead host takes longer.
    pub connect: Duration,
    /// Time without a byte accepted by a peer whose host answers, while no PE of the cluster moves any;
    /// then that is reported. Longer than the pauses of a machine that is short of memory.
    pub write: Duration,
    /// Time without a byte moved by any PE while a PE reads or writes files, or examines its input: a
    /// slow disk takes a minute or two for a million files, or to make 10 GiB durable.
    pub disk: Duration,
}

impl Timeouts {
    /// Returns the limit of a wait whose end all PEs must receive within `limit`: two heartbeats less,
    /// but at least half of it.
    pub fn within(&self, limit: Duration) -> Duration {
        limit.saturating_sub(2 * self.heartbeat).max(limit / 2)
    }

    /// Returns the time after which a PE ends because the coordinator's host is gone. It is longer than
    /// `silence`, so that the coordinator reports a PE whose host is gone, and not the PE's exit.
    pub fn coordinator_gone(&self) -> Duration {
        self.silence + 2 * self.heartbeat
    }

    /// Returns the time limit of a new connection, so that it is closed when the time for a handshake
    /// has passed.
    pub fn greeting(&self) -> Duration {
        self.handshake - self.handshake / 10
    }
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            heartbeat: Duration::from_millis(500),
            silence: Duration::from_secs(3),
            handshake: Duration::from_secs(2),
            connect: Duration::from_secs(5),
            write: Duration::from_secs(10),
            disk: Duration::from_secs(300),
        }
    }
}

record! {
    Timeouts = Timeouts {
        heartbeat_ns as heartbeat, silence_ns as silence, handshake_ns as handshake,
        connect_ns as connect, write_ns as write, disk_ns as disk,
    },
    |it: &Timeouts| {
        let all = [it.heartbeat, it.silence, it.handshake, it.connect, it.write, it.disk];
        let are_sound = all.iter().all(|limit| !limit.is_zero() && *limit <= LONGEST);
        ensure(are_sound, "a timeout of nothing, or over a day")
    }
}
