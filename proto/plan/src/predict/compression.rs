//! Compressed flits of a round: fewer bytes on the wires, and more work for the PEs.

use std::collections::BTreeMap;

use flitcast_proto::Compression;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::round::Action;
use flitcast_proto::{MessageId, Tree};

use super::predicted_pe::Work;
use crate::cost::Model;

/// Number of bytes to which [`MadeOf`](crate::cost::MadeOf) refers.
const SAMPLE_BYTES: f64 = 1024.0 * 1024.0;

/// The compression of all messages, parts included; none is compressed unless the schedules require it.
#[derive(Debug)]
pub(super) struct CompressedMessages(BTreeMap<MessageId, CompressionCosts>);

/// The costs of compressing the flits of a message, for each byte of its payload.
#[derive(Clone, Copy, Debug)]
struct CompressionCosts {
    wire_bytes: f64,
    pack_ns: f64,
    unpack_ns: f64,
}

/// Returns the bytes of the compressed messages of these schedules, as a share of those before.
pub fn compressed_share(tree: &Tree, schedules: &[PeSchedule], model: &Model) -> f64 {
    let compression = CompressedMessages::new(tree, schedules, model);
    let sent = schedules.iter().flat_map(|schedule| &schedule.sends);
    let (mut plain, mut packed) = (0.0, 0.0);
    for message in sent {
        plain += message.bytes as f64;
        packed += compression.wire_bytes(message.id, message.bytes) as f64;
    }
    packed / f64::max(plain, 1.0)
}

impl CompressedMessages {
    /// Returns the compression by these schedules.
    pub fn new(tree: &Tree, schedules: &[PeSchedule], model: &Model) -> CompressedMessages {
        let compressing = schedules
            .iter()
            .filter(|schedule| schedule.compression != Compression::Never);
        let sent = compressing.flat_map(|schedule| {
            let sent = schedule.sends.iter();
            sent.map(move |message| (message.id, schedule.collective.whole(tree, message.id)))
        });
        let costs = sent.filter_map(|(id, (whole, _))| {
            let made_of = model.files.as_ref()?.made_of.get(whole.index())?;
            let for_each_byte = |of_sample: u64| of_sample as f64 / SAMPLE_BYTES;
            (made_of.packed_bytes > 0).then_some((
                id,
                CompressionCosts {
                    wire_bytes: for_each_byte(made_of.packed_bytes).min(1.0),
                    pack_ns: for_each_byte(made_of.pack_ns),
                    unpack_ns: for_each_byte(made_of.unpack_ns),
                },
            ))
        });
        CompressedMessages(costs.collect())
    }

    /// Returns the bytes on a wire for this payload of a message, without prefixes.
    pub fn wire_bytes(&self, message: MessageId, payload_bytes: u64) -> u64 {
        match self.0.get(&message) {
            Some(costs) => (payload_bytes as f64 * costs.wire_bytes).ceil() as u64,
            None => payload_bytes,
        }
    }

    /// Returns the nanoseconds of a core for compressing or decompressing this payload. A relay sends a
    /// flit on as it has arrived, but decompresses it to examine it.
    pub fn core_ns(&self, work: &Work, message: MessageId, payload_bytes: u64) -> f64 {
        let costs = self.0.get(&message);
        let for_each_byte = costs.map_or(0.0, |costs| match work {
            Work::Out(Action::Forward { .. }) => 0.0,
            Work::Out(_) => costs.pack_ns,
            Work::In(..) => costs.unpack_ns,
        });
        for_each_byte * payload_bytes as f64
    }
}
