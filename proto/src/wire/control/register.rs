//! The first messages of a PE, and the answer to one that joins, to and from protobuf.

use std::time::Duration;

use super::counts::put_unkept;
use super::version::{EntryListing, pairs, parse_present};
use crate::cost::MadeOf;
use crate::wire::Secret;
use crate::wire::codec::{Wire, ensure, record, required};
use crate::wire::flit::Digest;
use crate::{DeliveryId, PeId, Unkept};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    pub cluster: u64,
    pub pe: PeId,
    /// Oldest protocol version offered.
    pub min_version: u32,
    /// Newest protocol version offered.
    pub max_version: u32,
    /// Address for connections of the PE's children: "address:port".
    pub listen: String,
    pub pid: u32,
    /// Name of the PE's monotonic clock: equal names are one clock. Empty if unknown.
    pub clock: String,
    /// Name of the processor by the kernel; empty if unknown.
    pub processor: String,
    /// Number of cores that the PE may run on; 0 if unknown.
    pub cores: u32,
    /// The host's own name; empty if it has none.
    pub host: String,
    /// Proof that the PE belongs to this launch.
    pub secret: Secret,
}

/// Entries that a PE has found at the places of its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Lengths in bytes of the messages sent by this PE, by id: M_1..M_n from P0 in a scatter, its
    /// own message from another PE in a gather.
    pub message_bytes: Vec<u64>,
    /// Deliveries to this PE that exist and have a receipt of this job.
    pub delivered: Vec<DeliveryId>,
    /// Deliveries to this PE whose places have another entry, which must not be replaced.
    pub standing: Vec<DeliveryId>,
    /// Number of entries and of cold bytes of each message of files, in the order of
    /// `message_bytes`.
    pub made_of: Vec<MadeOf>,
    /// Number of the file system that the PE writes messages to, or reads its own from, among those
    /// of its host; 0 without files.
    pub file_system: u64,
    /// Free bytes of the file system that the PE writes messages to; `None` if it writes none, or if
    /// some content takes less space there than its length.
    pub free_bytes: Option<u64>,
    /// States of the sources of messages made of files, in the order of `message_bytes`.
    pub states: Vec<u64>,
    /// Digests in the receipts of `delivered`, in the same order.
    pub delivered_digests: Vec<Digest>,
    /// Lengths in bytes of the entries at `standing`, read as messages, in the same order; 0 if an
    /// entry cannot be a message.
    pub standing_bytes: Vec<u64>,
    /// Digests of the entries at `standing`, in the same order.
    pub standing_digests: Vec<Digest>,
    /// Deliveries to this PE of which an earlier run of the job left a prefix, with its length in
    /// bytes.
    pub prefixes: Vec<(DeliveryId, u64)>,
    /// The listings of an update. Boxed, since most rounds have none.
    pub update: Box<Listings>,
    /// Entries of the messages sent by this PE some of whose attributes are not sent.
    pub unkept: Box<Unkept>,
}

/// The listings of a PE's messages, and of the entries at its destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listings {
    /// Digests of the listings of this PE's messages, in the order of `message_bytes`.
    pub sent: Vec<Digest>,
    /// The entries that messages for this PE replace.
    pub present: Vec<EntryListing>,
}

record! {
    Register = Register {
        cluster, pe, min_version, max_version, listen, pid, clock, processor, cores, host, secret,
    }
}
record! { MadeOf = MadeOf { entries, cold_bytes, packed_bytes, pack_ns, unpack_ns } }

record! {
    Ready = Ready {
        message_bytes, delivered, standing, made_of, file_system, free_bytes, states,
        delivered_digests, standing_bytes, standing_digests,
    }
    put ready {
        prefixes: ready.prefixes.iter().map(|(of, _)| of.0).collect(),
        prefix_bytes: ready.prefixes.iter().map(|(_, bytes)| *bytes).collect(),
        listings: ready.update.sent.put(),
        present: ready.update.present.iter().map(|it| it.delivery.0).collect(),
        present_listings: ready.update.present.iter().flat_map(|it| it.digest).collect(),
        present_counts: ready.update.present.iter().map(|it| it.files.len() as u64).collect(),
        present_files: ready.update.present.iter().flat_map(|it| &it.files).copied().collect(),
        unkept: put_unkept(*ready.unkept),
    }
    parse ready {
        prefixes: pairs(ready.prefixes, ready.prefix_bytes)?,
        update: Box::new(Listings {
            sent: Wire::parse(ready.listings)?,
            present: parse_present(
                ready.present, ready.present_listings, &ready.present_counts, &ready.present_files,
            )?,
        }),
        unkept: Box::new(Wire::parse(ready.unkept.unwrap_or_default())?),
    }
}

/// Request of a PE to join a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    pub pe: PeId,
    /// Whether the process joins the next cluster when this one has ended.
    pub stays: bool,
    pub commands: bool,
}

/// The data of a cluster for a PE that joins it; other PEs receive them when they are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    pub cluster: u64,
    /// Random secret of this launch.
    pub secret: Secret,
    /// The address at which the PE listens for its children.
    pub listen: String,
    pub timeouts: Timeouts,
}

record! { Join = Join { pe, stays, commands } }

record! {
    Welcome = Welcome { cluster, secret, listen }
    put welcome { timeouts: Some(welcome.timeouts.put()) }
    parse welcome { timeouts: required(welcome.timeouts, "the timeouts")? }
}

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
