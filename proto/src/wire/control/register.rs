//! The first messages of a PE, to and from protobuf.

use super::version::{parse_digests, put_digests};
use crate::cost::MadeOf;
use crate::wire::flit::Digest;
use crate::wire::{Secret, WireError, pb};
use crate::{DeliveryId, PeId};

/// First message of a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Id of the cluster.
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
}

impl Register {
    /// Returns the message as protobuf.
    pub(super) fn put(self) -> pb::Register {
        pb::Register {
            cluster: self.cluster,
            pe: self.pe.0,
            min_version: self.min_version,
            max_version: self.max_version,
            listen: self.listen,
            pid: self.pid,
            clock: self.clock,
            processor: self.processor,
            cores: self.cores,
            secret: self.secret.to_bytes(),
        }
    }

    /// Parses a message.
    pub(super) fn parse(register: pb::Register) -> Result<Register, WireError> {
        Ok(Register {
            cluster: register.cluster,
            pe: PeId(register.pe),
            min_version: register.min_version,
            max_version: register.max_version,
            listen: register.listen,
            pid: register.pid,
            clock: register.clock,
            processor: register.processor,
            cores: register.cores,
            secret: Secret::parse(&register.secret)?,
        })
    }
}

impl Ready {
    /// Returns the message as protobuf.
    pub(super) fn put(self) -> pb::Ready {
        pb::Ready {
            message_bytes: self.message_bytes,
            delivered: self.delivered.into_iter().map(|it| it.0).collect(),
            standing: self.standing.into_iter().map(|it| it.0).collect(),
            made_of: self.made_of.iter().map(put_made_of).collect(),
            file_system: self.file_system,
            states: self.states,
            delivered_digests: put_digests(self.delivered_digests.iter()),
            standing_bytes: self.standing_bytes,
            standing_digests: put_digests(self.standing_digests.iter()),
            prefixes: self.prefixes.iter().map(|(of, _)| of.0).collect(),
            prefix_bytes: self.prefixes.iter().map(|(_, bytes)| *bytes).collect(),
        }
    }

    /// Parses a message.
    pub(super) fn parse(ready: pb::Ready) -> Result<Ready, WireError> {
        Ok(Ready {
            message_bytes: ready.message_bytes,
            delivered: ready.delivered.into_iter().map(DeliveryId).collect(),
            standing: ready.standing.into_iter().map(DeliveryId).collect(),
            made_of: ready.made_of.iter().map(parse_made_of).collect(),
            file_system: ready.file_system,
            states: ready.states,
            delivered_digests: parse_digests(&ready.delivered_digests)?,
            standing_bytes: ready.standing_bytes,
            standing_digests: parse_digests(&ready.standing_digests)?,
            prefixes: parse_kept(&ready.prefixes, &ready.prefix_bytes)?,
        })
    }
}

fn put_made_of(made_of: &MadeOf) -> pb::MadeOf {
    pb::MadeOf {
        entries: made_of.entries,
        cold_bytes: made_of.cold_bytes,
    }
}

fn parse_made_of(made_of: &pb::MadeOf) -> MadeOf {
    MadeOf {
        entries: made_of.entries,
        cold_bytes: made_of.cold_bytes,
    }
}

fn parse_kept(deliveries: &[u32], bytes: &[u64]) -> Result<Vec<(DeliveryId, u64)>, WireError> {
    if deliveries.len() != bytes.len() {
        return Err(WireError::malformed("not one length for each prefix"));
    }
    let pairs = deliveries.iter().zip(bytes);
    Ok(pairs.map(|(of, bytes)| (DeliveryId(*of), *bytes)).collect())
}
