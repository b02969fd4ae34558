//! The sizes of outgoing flits.

use std::collections::BTreeMap;

use crate::MessageId;
use crate::ops::PeSchedule;

/// The sizes of outgoing flits.
#[derive(Debug)]
pub(super) struct FlitSizes {
    pub(super) flit_bytes: u32,
    /// Flit sizes of the own messages with separate ones.
    packet_bytes: BTreeMap<MessageId, u32>,
    /// Number of flits that are sent at a time.
    pub(super) piece_flits: u64,
}

impl FlitSizes {
    pub(super) fn new(schedule: &PeSchedule) -> FlitSizes {
        let own_ids = schedule.sends.iter().map(|message| message.id);
        FlitSizes {
            flit_bytes: schedule.flit_bytes,
            packet_bytes: own_ids.zip(schedule.packet_bytes.iter().copied()).collect(),
            piece_flits: 1,
        }
    }

    /// Returns the payload bytes that are sent at a time: of a message, or of most messages.
    #[inline]
    pub(super) fn piece_bytes(&self, message: Option<MessageId>) -> u64 {
        let own = message.and_then(|id| self.packet_bytes.get(&id));
        let flit_bytes = own.copied().unwrap_or(self.flit_bytes);
        self.piece_flits.saturating_mul(flit_bytes.into())
    }
}
