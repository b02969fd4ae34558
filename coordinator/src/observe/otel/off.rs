//! Built without the feature `otel`: nothing is traced. What each word means, `spans` says.

use flitcast_proto::calibration::clock::ClockOffset;
use flitcast_proto::predict::Prediction;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::control::Report;
use flitcast_proto::{PeId, RoundId};

use crate::job::request::Request;
use crate::observe::phase::Phase;

/// Takes every word, and keeps none.
pub static NOW: Off = Off;

#[derive(Debug)]
pub struct Off;

/// A cluster, as long as there is one.
#[derive(Debug)]
pub struct RunEnds;

impl Off {
    pub fn begin(&self, _command: &str) {}

    pub fn end(&self, _went_well: bool) {}

    pub fn launching(&self, _request: &Request) -> RunEnds {
        RunEnds
    }

    pub fn launched(&self) {}

    pub fn enter(&self, _phase: Phase) {}

    pub fn foreseen(&self, _bytes: &[u64], _pacing: Option<Pacing>, _prediction: &Prediction) {}

    pub fn round_begins(&self, _round: RoundId) {}

    pub fn round_done(&self) {}

    pub fn reported(&self, _reports: &[Report], _clocks: &[ClockOffset]) {}

    pub fn failed(&self, _kind: &'static str, _pe: Option<PeId>, _cause: &str) {}

    pub fn interrupted(&self) {}

    pub fn stopping(&self) {}
}
