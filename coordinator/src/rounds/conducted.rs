//! What is known of rounds that were conducted, before anybody makes figures of it.

use std::time::Duration;

use flitcast_proto::ops::Brief;
use flitcast_proto::predict::Prediction;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::spans::Span;
use flitcast_proto::wire::control::Report;
use flitcast_proto::{DeliveryId, RoundId};

use crate::job::flit_size::FlitSize;
use crate::job::host_costs::HostCosts;
use crate::job::host_costs::files::KnownFiles;
use crate::job::lanes::LaneChoice;
use crate::job::model::Measurement;
use crate::job::order::OrderChoice;
use crate::job::packets::PacketChoice;

/// All that was planned and measured.
#[derive(Debug)]
pub struct Rounds {
    /// Bytes of M_i, by PE index; `[0]` is 0.
    pub bytes: Vec<u64>,
    /// Whose messages were not sent, since each was there with a receipt.
    pub found: Vec<DeliveryId>,
    /// The edges and the clocks, the latter as sure as they were after the last round.
    pub measured: Measurement,
    /// What the processes were taken to cost.
    pub costs: HostCosts,
    /// What was known of files; `None` where there are none.
    pub files: Option<KnownFiles>,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// Why, if that was chosen and is not the usual size.
    pub flit_size: Option<FlitSize>,
    /// How messages were cut, if packets were asked for.
    pub packets: Option<PacketChoice>,
    /// In which order messages left, if one was searched for.
    pub order: Option<OrderChoice>,
    /// On how many trees they went, where there could be several.
    pub trees: Option<LaneChoice>,
    /// How orders were obeyed; `None` where there are none.
    pub pacing: Option<Pacing>,
    /// What each PE was told beforehand, by PE index.
    pub briefs: Vec<Brief>,
    /// What a round was expected to take.
    pub prediction: Prediction,
    /// How long measuring the edges took; `None` where a profile stands for that.
    pub probing: Option<Duration>,
    /// Per round, each PE's report, by PE index; without its spans.
    pub reports: Vec<Vec<Report>>,
    /// The spans of the median round, if spans were asked for.
    pub recorded: Option<MeasuredRound>,
}

/// What the PEs did in a round.
#[derive(Debug)]
pub struct MeasuredRound {
    /// The round.
    pub round: RoundId,
    /// What it took.
    pub round_ns: u64,
    /// When P0 was triggered, on the clock of the spans.
    pub started_ns: u64,
    /// By PE index.
    pub spans: Vec<Vec<Span>>,
}
