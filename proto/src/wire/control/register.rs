//! The first messages of a PE, and the answer to one that joins, to and from protobuf.

use super::counts::put_unkept;
use super::timeouts::Timeouts;
use super::version::{EntryListing, pairs, parse_present};
use crate::cost::MadeOf;
use crate::wire::Secret;
use crate::wire::codec::{Wire, record, required};
use crate::wire::flit::Digest;
use crate::{DeliveryId, PeId, Unkept};

/// First message of a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    pub cluster: u64,
    /// The PE that sends the message.
    pub pe: PeId,
    /// Oldest protocol version offered.
    pub min_version: u32,
    /// Newest protocol version offered.
    pub max_version: u32,
    /// Address for connections of the PE's children: "address:port".
    pub listen: String,
    /// Process id.
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
        message_bytes, delivered, standing, made_of, file_system, states, delivered_digests,
        standing_bytes, standing_digests,
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
    /// Whether the process runs commands.
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
    /// The timeouts of the cluster's processes.
    pub timeouts: Timeouts,
}

record! { Join = Join { pe, stays, commands } }

record! {
    Welcome = Welcome { cluster, secret, listen }
    put welcome { timeouts: Some(welcome.timeouts.put()) }
    parse welcome { timeouts: required(welcome.timeouts, "the timeouts")? }
}
