//! The state of the controller.

use std::collections::{BTreeSet, VecDeque};

use flitcast_proto::wire::control::{Report, ToPe};
use flitcast_proto::{PeId, RoundId, Time};

use super::awaited::Awaited;
use super::beginning::Readings;
use super::failure_cause::FailureCause;
use super::plan::{ClusterInfo, Plan};
use super::stall_detector::StallDetector;
use super::update::{ControllerEvent, GaveUp};
use crate::observe::phase::Phase;

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
