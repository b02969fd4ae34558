//! How long a PE waits, and how much it holds. No wait is without a bound.

use std::time::Duration;

use flitcast_proto::wire::control::TimeoutsNs;

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
    /// For a new connection to say who it is, or to be gone. A round trip and a few dozen
    /// bytes.
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

    /// How long a new connection may take, for it to be gone when the time for a
    /// handshake is over.
    pub fn greeting(&self) -> Duration {
        self.handshake - self.handshake / 10
    }
}

impl From<TimeoutsNs> for Timeouts {
    fn from(ns: TimeoutsNs) -> Timeouts {
        Timeouts {
            heartbeat: Duration::from_nanos(ns.heartbeat_ns),
            silence: Duration::from_nanos(ns.silence_ns),
            handshake: Duration::from_nanos(ns.handshake_ns),
            connect: Duration::from_nanos(ns.connect_ns),
            write: Duration::from_nanos(ns.write_ns),
            disk: Duration::from_nanos(ns.disk_ns),
        }
    }
}

impl From<Timeouts> for TimeoutsNs {
    fn from(timeouts: Timeouts) -> TimeoutsNs {
        // A day, the most that may be asked for, is far below what fits.
        let ns = |time: Duration| time.as_nanos() as u64;
        TimeoutsNs {
            heartbeat_ns: ns(timeouts.heartbeat),
            silence_ns: ns(timeouts.silence),
            handshake_ns: ns(timeouts.handshake),
            connect_ns: ns(timeouts.connect),
            write_ns: ns(timeouts.write),
            disk_ns: ns(timeouts.disk),
        }
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

/// After a first try to join that failed: the listener of the next command may be there
/// any moment. Each further pause is twice as long, ...
pub const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// ... up to this: who comes up is joined within half a second, and a thousand PEs that
/// wait are 2000 refused connections a second, which a host does not notice.
pub const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// For a name to be looked up: a resolver asks a second server after 5 s.
pub const LOOKUP: Duration = Duration::from_secs(10);

/// How often the file is written that says how a PE fares.
pub const HEALTH: Duration = Duration::from_secs(1);

/// For all neighbours to be connected, once the PE knows them.
pub const NEIGHBOURS: Duration = Duration::from_secs(10);

/// Connections that are being asked who they are, where there are descriptors for so many
/// (`descriptors.rs`). When there are more, some have to make way (`door.rs`). Somebody in the
/// middle of TLS takes up to 22 KiB, so all of these take less than 16 MiB.
pub const GREETINGS: usize = 704;

/// Where there are few descriptors: with none at all, nobody who belongs here would come in.
pub const FEWEST_GREETINGS: usize = 8;

/// That somebody who has come keeps its place, whoever else comes: a PE speaks as soon as it
/// is connected, however far away it is, and its host may be busy. So 10,000 strangers a second
/// are let in and turned away again.
pub const GRACE: Duration = Duration::from_millis(100);

/// The same from when it has begun as a PE begins and was answered, or has taken what it is
/// given: to the other end of the earth and back is 300 ms, and a packet that was lost comes
/// again within a second.
pub const ROUND_TRIP: Duration = Duration::from_secs(1);

/// Bytes that somebody may send in all before its certificate was found good, its first word
/// behind that included. What `flitcast ca` issues takes a quarter of them, a certificate with an
/// RSA key of 4096 bits two thirds; and what is held for somebody grows by their double.
pub const UNKNOWN_BYTES: usize = 4 * 1024;

/// Descriptors that a PE needs, its neighbours apart: 16 messages that are being made durable,
/// nine that are read, each with a file, its folder and a link on the way; a scan ten folders
/// deep; 16 who scrape; and a dozen of its own.
pub const DESCRIPTORS: u64 = 128;

/// And for a neighbour: its connection, and a clock where the link is shaped.
pub const DESCRIPTORS_PER_NEIGHBOUR: u64 = 2;

/// Connections that the kernel holds for a listener until they are accepted: as many as
/// Linux allows unless told otherwise. Who finds this queue full tries again a second
/// later, and then two seconds after that.
pub const BACKLOG: u32 = 4096;

/// Calls of somebody who is cut off before anything was said: one is enough but in a crowd,
/// and nobody is turned away five times by chance.
pub const CALLS: u32 = 5;

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

/// To find out what files cost on a file system; it takes some tenths of a second.
pub const MEASURE_FILES: Duration = Duration::from_secs(3);

/// To find out what processes cost on a host; it takes a tenth of a second.
pub const MEASURE_HOST: Duration = Duration::from_secs(2);

/// Bytes of others' messages that a PE holds in memory where it sends them on later; what is more
/// goes into a file.
pub const HELD_IN_MEMORY: usize = 64 << 20;

/// Messages that are being made durable while later ones come in. More would
/// only queue at the disk.
pub const COMMITS_UNDER_WAY: usize = 16;

/// Messages that are opened before their turn. Each holds two disk blocks, so these
/// are 4 MiB; with short messages the disk is that far ahead of the links.
pub const OPENED_AHEAD: usize = 8;

/// For the first bytes of these to be here before a round begins: any disk that is awake answers
/// sooner, and nobody waits long for one that hangs.
pub const OPENING: Duration = Duration::from_secs(1);

/// For a command that is told to end, by SIGTERM, to tidy up; then its group is killed. Less
/// than a PE is given to leave.
pub const GRACE_OF_COMMANDS: Duration = Duration::from_secs(2);

/// For whom SIGKILL was sent to be gone: longer only in the system, at a disk that hangs.
pub const DYING: Duration = Duration::from_millis(500);

/// For all of a command to be ended, or for what is left of it to be named: by
/// [`GRACE_OF_COMMANDS`], and [`DYING`] for those that have left its group and once more for what
/// it has said on stderr, on a machine that is busy.
pub const ENDING_OF_COMMANDS: Duration = Duration::from_secs(4);

/// For what an earlier PE of the same number was running to have been ended by its
/// supervisors, within [`ENDING_OF_COMMANDS`]; then whoever is left is killed.
pub const LOCK: Duration = Duration::from_secs(5);

/// Between two looks whether processes have ended that cannot be waited for: seldom enough to
/// cost nothing, and it is only looked while a command ends.
pub const POLL: Duration = Duration::from_millis(5);

/// For a PE whose parent process has died to leave as the end of its channel tells it to. What
/// it makes durable then, and tidies away, takes a disk a moment; one that hangs is not waited
/// for.
pub const ORPHANED: Duration = Duration::from_secs(5);
