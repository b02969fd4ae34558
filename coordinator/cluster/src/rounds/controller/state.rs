//! The state of the controller and its output: events, and the results of rounds that were given up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use flitcast_proto::wire::control::{Counts, FromPe, Pong, Report, ToPe};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{DeliveryId, PeId, RoundId, Time};

use super::awaited::Awaited;
use super::beginning::Readings;
use super::failure_cause::FailureCause;
use super::plan::{ClusterInfo, Plan};
use super::stall_detector::StallDetector;
use crate::observe::phase::Phase;
use crate::rounds::outcome::MissingDelivery;

#[derive(Debug)]
pub enum State {
    /// For answers of PEs, if any were requested.
    AwaitingAnswers,
    /// For P0, which runs a round.
    Round(UnderWay),
    /// For the other PEs' reports on a round, until this time.
    Reporting(Time),
    /// For an event that explains this error, until this time.
    Seeking(FailureCause, Time),
    /// For the last reports of the remaining PEs, until this time.
    GivingUp(FailureCause, Time),
    Over,
}

/// A round that P0 has begun and not finished.
#[derive(Debug)]
pub struct UnderWay {
    pub watch: StallDetector,
    pub began: Time,
    /// The last reported ratio of the elapsed to the predicted time.
    pub slow: f64,
    /// When to check the round if no PE answers a ping before.
    pub next_look: Time,
}

/// A controller of rounds on a cluster.
#[derive(Debug)]
pub struct RoundController {
    pub(super) setting: ClusterInfo,
    pub(super) state: State,
    pub(super) awaited: Awaited,
    /// The rounds, once they are known.
    pub(super) plan: Option<Plan>,
    /// The readings of the PEs' clocks for the begin of the next round.
    pub(super) readings: Option<Readings>,
    /// The current or last round; 0 before the first.
    pub(super) round: RoundId,
    /// The latest report of each PE on that round.
    pub(super) last_reports: Vec<Option<Report>>,
    pub(super) phase: Phase,
    /// PEs whose processes have ended, or from which no answer is expected any more.
    pub(super) ended_pes: BTreeSet<PeId>,
    pub(super) wants_look: bool,
    pub(super) commands: VecDeque<(PeId, ToPe)>,
    pub(super) updates: VecDeque<ControllerEvent>,
    pub(super) gave_up: Option<GaveUp>,
}

/// An event that the driver receives.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerEvent {
    Answered(PeId, FromPe),
    Enters(Phase),
    Pong(PeId, Pong),
    /// P0 gets the trigger of a round.
    RoundBegins(RoundId),
    /// P0 has sent or received bytes of the round.
    Progress {
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
        kind: &'static str,
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
