//! How long a PE waits, and how much it holds. No wait is without a bound.

use std::time::Duration;

/// How long is waited for what. All processes of a cluster have the same; who starts
/// them chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From one ping of the coordinator to the next. Often enough that several are lost
    /// before anybody is taken for dead, too seldom to be seen in a measurement.
    pub heartbeat: Duration,
    /// Without a byte from the other end of a control channel, or without an
    /// acknowledgement of what was sent to a neighbour. In that time TCP repeats a
    /// lost segment four times.
    pub silence: Duration,
    /// For a new connection to say who it is. A round trip and a few dozen bytes.
    pub handshake: Duration,
    /// To reach the coordinator or the parent, or to tell that it cannot be. Both listen before anybody is told
    /// their address, so only a host that is gone takes longer.
    pub connect: Duration,
    /// Without a byte taken by a peer whose host is there, while nobody in the cluster
    /// moves any, until that is told. Longer than the pauses of a machine that is short of memory.
    pub write: Duration,
    /// Without a byte moved by anybody while a PE reads or writes files, or looks through
    /// its input: a slow disk takes a minute or two for a million files, or to make
    /// 10 GiB durable.
    pub disk: Duration,
}

impl Timeouts {
    /// How long the wait itself may be, for everybody to have heard of its end within
    /// `limit`: two heartbeats are left out, but not more than half.
    pub fn within(&self, limit: Duration) -> Duration {
        limit.saturating_sub(2 * self.heartbeat).max(limit / 2)
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

/// For the coordinator's first word to a PE that has registered: it may still be starting
/// others, a thousand on a busy machine.
pub const FIRST_WORD: Duration = Duration::from_secs(30);

/// Words that wait to go to or come from the coordinator. There are a few a round, and
/// the coordinator waits for an answer to most.
pub const WORDS: usize = 16;

/// For all neighbours to be connected, once the PE knows them.
pub const NEIGHBOURS: Duration = Duration::from_secs(10);

/// Connections that are being asked who they are. Strangers above this wait in
/// the kernel's queue; a PE's own children are let in as others are turned away.
pub const GREETINGS: usize = 256;

/// For an edge to be measured, beyond the budget that the coordinator gives: the
/// longest burst is 1 MiB, which a link of 1 Mbit/s carries in 8 s.
pub const PROBE: Duration = Duration::from_secs(20);

/// The largest budget: for an edge, a minute is more than any calibration takes.
pub const PROBE_BUDGET: Duration = Duration::from_secs(60);

/// After a fault, for the coordinator to say what becomes of the round.
pub const AFTER_FAULT: Duration = Duration::from_secs(3);

/// How often P0 tells the coordinator how far the round is: often enough for a
/// progress bar, too seldom to be seen in a measurement.
pub const PROGRESS: Duration = Duration::from_millis(200);

/// What is read from or written to disk at once. Two of these are in memory for
/// each message that is being read or written: one with the disk, one with the
/// network.
pub const DISK_BLOCK_BYTES: usize = 256 * 1024;

/// Messages that are being made durable while later ones come in. More would
/// only queue at the disk.
pub const COMMITS_UNDER_WAY: usize = 16;

/// Messages that are opened before their turn. Each holds two disk blocks, so these
/// are 4 MiB; with short messages the disk is that far ahead of the links.
pub const OPENED_AHEAD: usize = 8;
