//! Values for the tests of rounds.

use flitcast_proto::PeId;
use flitcast_proto::wire::control::Arrival;

/// Returns the arrival of a PE's message of a scatter, of one byte.
pub fn arrival(pe: PeId) -> Arrival {
    Arrival {
        message: pe.into(),
        source: PeId::ROOT,
        destination: pe,
        bytes_received: 1,
        bytes_total: 1,
        delivered: true,
        at_ns: 1,
        delivered_ns: 1,
        digest: None,
    }
}
