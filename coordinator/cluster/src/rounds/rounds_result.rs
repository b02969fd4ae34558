//! The raw results of rounds.

use std::time::Duration;

use flitcast_plan::predict::Prediction;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::spans::Span;
use flitcast_proto::wire::control::{Report, SkippedFiles};
use flitcast_proto::{DeliveryId, RoundId, Unkept};

use crate::job::decisions::Decisions;
use crate::job::host_costs::HostCosts;
use crate::job::host_costs::files::KnownFiles;
use crate::job::model::Measurement;
use crate::rounds::versions::SeenVersions;

/// The messages and files that are not sent because the output has them, and attributes that are not.
#[derive(Clone, Debug, Default)]
pub struct Unsent {
    /// The lengths of the messages by delivery, with what is not sent.
    pub lengths: Vec<u64>,
    /// Deliveries that equal what is at their destinations.
    pub messages: Vec<DeliveryId>,
    /// Number and bytes of the files that are left out of other messages.
    pub files: SkippedFiles,
    /// The entries some of whose attributes are not sent, or could not be set in the last round.
    pub unkept: Unkept,
}

/// The plan and the measurements of rounds.
#[derive(Debug)]
pub struct RoundsResult {
    /// The lengths by delivery of what the rounds sent, in bytes.
    pub bytes: Vec<u64>,
    /// The lengths of the whole messages, by delivery: the rounds sent nothing of a prefix that an
    /// earlier run had left.
    pub whole: Vec<u64>,
    /// Deliveries that were not sent because they existed with a receipt.
    pub found: Vec<DeliveryId>,
    /// The messages, files and attributes that were not sent.
    pub unsent: Unsent,
    /// The versions of messages made of files.
    pub seen: SeenVersions,
    /// The edges and the clocks; the clocks' uncertainty is that after the last round.
    pub measured: Measurement,
    /// The assumed costs of processes.
    pub costs: HostCosts,
    /// The assumed costs of files; `None` without files.
    pub files: Option<KnownFiles>,
    /// The decisions for the rounds.
    pub decisions: Decisions,
    /// The schedule of each PE, by PE index.
    pub schedules: Vec<PeSchedule>,
    /// The prediction of a round.
    pub prediction: Prediction,
    /// The threads of other programs that were busy on this machine before the rounds, as in the
    /// prediction.
    pub busy_threads: u32,
    /// Duration of the edges' measurement; `None` if a profile replaces it.
    pub probing: Option<Duration>,
    /// For each round, the PEs' reports by PE index, without their spans.
    pub reports: Vec<Vec<Report>>,
    /// The spans of the median round, if spans were requested.
    pub recorded: Option<MeasuredRound>,
}

/// The spans of a round.
#[derive(Debug)]
pub struct MeasuredRound {
    pub round: RoundId,
    /// The time of the round.
    pub round_ns: u64,
    /// When P0 was triggered, on the clock of the spans.
    pub started_ns: u64,
    /// The spans of each PE, by PE index.
    pub spans: Vec<Vec<Span>>,
}
