//! The output of the controller: events, and the results of rounds that were given up.

use std::collections::BTreeMap;
use std::time::Duration;

use flitcast_proto::wire::control::{Counts, FromPe, Pong, Report};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{DeliveryId, PeId, RoundId};

use super::failure_cause::FailureCause;
use crate::observe::phase::Phase;
use crate::rounds::outcome::MissingDelivery;

/// An event that the driver receives.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerEvent {
    /// A PE has answered a request.
    Answered(PeId, FromPe),
    /// A new phase begins.
    Enters(Phase),
    /// A PE has answered a ping.
    Pong(PeId, Pong),
    /// P0 gets the trigger of a round.
    RoundBegins(RoundId),
    /// P0 has sent or received bytes of the round.
    Progress {
        /// Number of bytes.
        bytes: u64,
        /// Time since the round began.
        elapsed: Duration,
    },
    /// A round takes much longer than predicted.
    Slow {
        round: RoundId,
        /// Ratio of the elapsed to the predicted time.
        times: f64,
        phase: Phase,
    },
    /// P0 has finished the round.
    RoundDone,
    /// A PE has reported the round, with its counters.
    Reported(PeId, Box<Counts>),
    /// All PEs have reported a round: reports by PE index, blank for absent PEs.
    RoundReported(Vec<Report>),
    /// No answer of a PE, which may be stopped, is expected any more: its process is to be killed.
    GivesUpOn(PeId),
    /// An error has occurred; all following events are its consequences.
    Failed {
        /// The kind of the error.
        kind: &'static str,
        /// The PE at fault.
        pe: Option<PeId>,
        /// The first error.
        cause: String,
    },
}

/// The results of rounds that were given up.
#[derive(Debug)]
pub struct GaveUp {
    /// The first error.
    pub trouble: FailureCause,
    /// The phase of the error.
    pub phase: Phase,
    /// The round of the error; `None` before the first.
    pub round: Option<RoundId>,
    /// Deliveries that were made in the round, in increasing order.
    pub delivered: Vec<DeliveryId>,
    /// Known digests of these deliveries.
    pub digests: BTreeMap<DeliveryId, Digest>,
    /// Deliveries of nonnull messages that were not made.
    pub lacking: Vec<MissingDelivery>,
}
