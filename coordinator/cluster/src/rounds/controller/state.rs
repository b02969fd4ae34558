//! The cluster and the rounds to run, the schedules that the PEs receive before them, the state of the controller, and
//! its output: events, and the results of rounds that were given up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use flitcast_node::limits::Timeouts;
use flitcast_plan::Algorithm;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_proto::items::Message;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::wire::control::{Counts, FromPe, Pong, Prefix, Prepare, Report, ToPe};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{DeliveryId, MessageId, PeId, RoundId, Time, Tree};

use super::awaited::Awaited;
use super::beginning::Readings;
use super::failure_cause::FailureCause;
use super::stall_detector::StallDetector;
use crate::observe::phase::Phase;
use crate::rounds::outcome::MissingDelivery;

/// The properties of a cluster before the first round.
#[derive(Clone, Debug)]
pub struct ClusterInfo {
    pub tree: Arc<Tree>,
    /// The algorithm of the rounds.
    pub operation: Algorithm,
    pub timeouts: Timeouts,
    /// PEs that have joined. The end of such a process is only visible as the end of its channel.
    pub joined: BTreeSet<PeId>,
    /// Address at which each PE listens, by PE index, for error messages; `None`, or no element, if
    /// it is unknown.
    pub addresses: Vec<Option<String>>,
}

/// A number of equal rounds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Lengths by delivery.
    pub bytes: Vec<u64>,
    /// The schedule of each PE, by PE index, as used in the prediction.
    pub schedules: Vec<PeSchedule>,
    /// For each tree, the schedules of the PEs if messages are split over several trees; else
    /// empty.
    pub lanes: Vec<Vec<PeSchedule>>,
    /// The prefixes of messages that are not sent again.
    pub prefixes: Vec<Prefix>,
    pub rounds: u64,
    /// Clock offsets from P0's clock by PE index.
    pub clocks: Vec<ClockOffset>,
    /// The predicted time of a round.
    pub predicted_ns: u64,
}

impl Plan {
    /// Returns the deliveries to be made: the destination and the message of each nonnull one of
    /// `operation`.
    pub fn deliveries(
        &self,
        tree: &Tree,
        operation: Algorithm,
    ) -> BTreeMap<DeliveryId, (PeId, Message)> {
        let schedules = (0..).map(PeId).zip(&self.schedules);
        let takes =
            schedules.flat_map(|(pe, schedule)| schedule.receives.iter().map(move |it| (pe, *it)));
        takes
            .map(|(pe, it)| {
                let delivery = operation.collective().delivery(tree, it.id, pe);
                // A part counts as its whole message.
                let (id, _) = operation.collective().whole(tree, it.id);
                let bytes = self.bytes[delivery.index()];
                (delivery, (pe, Message { id, bytes, ..it }))
            })
            .collect()
    }

    /// Returns the message that prepares each PE.
    pub(super) fn prepares(&self, setting: &ClusterInfo) -> Vec<(PeId, Prepare)> {
        let (operation, tree) = (setting.operation, &setting.tree);
        let prepare = |(pe, whole): (PeId, &PeSchedule)| {
            let prefixes = self.prefixes.iter().copied();
            let prefixes = prefixes.filter(|it| has_part_in(operation, tree, pe, it.message));
            let mut lanes = self.lanes.iter().map(|lane| lane[pe.index()].clone());
            let prepare = Prepare {
                schedule: lanes.next().unwrap_or_else(|| whole.clone()),
                rounds: self.rounds,
                lanes: lanes.collect(),
                prefixes: prefixes.collect(),
            };
            (pe, prepare)
        };
        let schedules = tree.ids().zip(&self.schedules);
        let present = schedules.filter(|(pe, _)| tree.contains(*pe));
        present.map(prepare).collect()
    }
}

/// Returns whether a PE sends or takes a message.
pub fn has_part_in(operation: Algorithm, tree: &Tree, pe: PeId, message: MessageId) -> bool {
    let message = operation.address(tree, message);
    message.is_some_and(|message| message.source == pe || message.is_for(pe))
}

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
