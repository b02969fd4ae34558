//! Times of a core for a PE's work: before it begins, and for each frame.

use flitcast_proto::PeId;
use flitcast_proto::items::Message;
use flitcast_proto::ops::{HELD_IN_MEMORY, POLL_ATTEMPTS};
use flitcast_proto::round::{Action, Sized};

use super::predicted_pe::{FlitsOut, Work};
use super::prediction_state::PredictionState;
use crate::cost::{
    COALESCED_FRAME_COST, COLD_BYTE_COST, HELD_BYTE_COST, HELD_IN_CACHE, HELD_IN_NEW_MEMORY_COST,
    HELD_ON_HEAP,
};

impl PredictionState<'_> {
    /// Returns the nanoseconds until a PE that has waited for `waited_ns` continues, or begins the
    /// round.
    pub(super) fn wake_ns(&self, at: PeId, waited_ns: u64, begins: bool) -> f64 {
        let hosts = &self.model.hosts;
        let host = hosts.of(at);
        let look_ns = host.look_ns(self.residents[hosts.machine_of(at)]);
        let is_awake = self.stations[at.index()].polls_before_sleep
            && !begins
            && waited_ns as f64 <= POLL_ATTEMPTS as f64 * look_ns;
        match is_awake {
            true => host.wake_ns.min(look_ns),
            false => host.wake_ns,
        }
    }

    /// Returns the nanoseconds of a core for a piece of work.
    pub(super) fn core_ns(&self, at: PeId, work: &Work) -> u64 {
        let host = self.model.hosts.of(at);
        let station = &self.stations[at.index()];
        let (piece, per_byte, along) = match work {
            Work::Out(action) => match FlitsOut::of(action) {
                Some(FlitsOut { to, piece, .. }) => {
                    (piece, host.send_ns_per_byte, station.gathered.is_for(to))
                }
                None => return host.control_ns.round() as u64,
            },
            Work::In(_, Sized::Flits(piece), along) => (*piece, host.receive_ns_per_byte, *along),
            Work::In(..) => return host.control_ns.round() as u64,
        };
        let (message, bytes) = (piece.message, piece.bytes);
        let flits = self.flits(message, bytes) as f64;
        let calls = if along { COALESCED_FRAME_COST } else { 1.0 };
        let mut bytes_ns = per_byte * self.compression.wire_bytes(message.id, bytes) as f64;
        bytes_ns += self.compression.core_ns(work, message.id, bytes);
        let (ends, first_or_last) = match work {
            // The bytes were prepared for the first neighbour.
            Work::Out(Action::SendAgain { .. }) => (false, false),
            Work::Out(_) => {
                let is_first = piece.offset == 0 && !station.set_up.contains(&message.id);
                (message.source == at, is_first)
            }
            Work::In(..) => (message.is_for(at), piece.is_last()),
        };
        if ends {
            bytes_ns += host.end_ns_per_byte * bytes as f64;
        }
        if matches!(work, Work::Out(Action::SendHeld { .. })) {
            bytes_ns += self.held_ns(at, piece.message, bytes);
        }
        // The following flits pass the same memory.
        if host.first_ns > 0.0 && piece.offset == 0 {
            bytes_ns += COLD_BYTE_COST * bytes_ns / flits.max(1.0);
        }
        let message_ns = if ends && first_or_last {
            host.message_ns
        } else {
            0.0
        };
        (host.flit_ns * flits * calls + bytes_ns + message_ns).round() as u64
    }

    /// Returns the nanoseconds of a core for storing bytes of a message and for loading them again.
    fn held_ns(&self, at: PeId, message: Message, bytes: u64) -> f64 {
        let host = self.model.hosts.of(at);
        let held = self.stations[at.index()].round.held_flits();
        let flit_bytes = self.packets.get(&message.id).copied().unwrap_or(1);
        let held_bytes = held.saturating_mul(flit_bytes);
        let is_in_new_memory = match host.first_ns > 0.0 {
            true => held_bytes > HELD_ON_HEAP,
            false => held_bytes > HELD_IN_MEMORY as u64,
        };
        let cost = if is_in_new_memory {
            HELD_IN_NEW_MEMORY_COST
        } else if held_bytes > HELD_IN_CACHE {
            HELD_BYTE_COST
        } else {
            0.0
        };
        cost * (host.send_ns_per_byte + host.receive_ns_per_byte) * bytes as f64
    }
}
