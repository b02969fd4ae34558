//! How long a PE waits, and how much it holds. No wait is without a bound.

use std::time::Duration;

/// To reach the coordinator or the parent. Both listen before anybody is told
/// their address, so only a host that is gone takes longer.
pub const CONNECT: Duration = Duration::from_secs(5);

/// For a new connection to say who it is. A round trip and a few dozen bytes.
pub const HANDSHAKE: Duration = Duration::from_secs(2);

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
