//! The schedule of a round and its prediction, for decisions that are made or tried. All predictions of
//! this program before a round are made here. Each function of `job` that predicts returns the error of a
//! state machine, which is a bug in the schedule.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flitcast_plan::Algorithm;
use flitcast_plan::cost::Model;
use flitcast_plan::predict::{Prediction, predict_unless};
use flitcast_plan::timing::Timing;
use flitcast_proto::Tree;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::round::ProtocolError;
use flitcast_proto::wire::MIN_FLIT_BYTES;

use crate::job::decisions::Decisions;

/// The decisions for a round, and its prediction.
#[derive(Debug)]
pub struct PlannedRound {
    pub decisions: Decisions,
    /// The schedule of each PE, by PE index.
    pub schedules: Vec<PeSchedule>,
    /// The schedules of each PE on each tree, if messages are sent on several trees.
    pub lanes: Vec<Vec<PeSchedule>>,
    pub prediction: Prediction,
}

impl PlannedRound {
    /// Returns the predicted duration of the round and of making its files durable, in nanoseconds.
    pub fn ns(&self) -> u64 {
        self.prediction.round_ns() + self.prediction.commit_ns()
    }

    #[cfg(test)]
    pub fn scatter_order(&self) -> crate::job::decisions::ScatterOrder {
        match self.decisions.order {
            Some(crate::job::decisions::OrderChoice::Scatter(choice)) => choice,
            other => panic!("not of a scatter: {other:?}"),
        }
    }
}

/// Plans and predicts a round on one tree, for decisions that are tried.
#[derive(Clone, Copy, Debug)]
pub struct Planner<'a> {
    pub tree: &'a Arc<Tree>,
    /// The decisions that are already made.
    pub decisions: &'a Decisions,
    /// Lengths by delivery.
    pub bytes: &'a [u64],
    /// The costs of links and hosts.
    pub model: &'a Model,
    /// Whether the result is not needed any more.
    pub given_up: &'a AtomicBool,
}

/// The flag of predictions whose results are needed in any case.
static NEEDED: AtomicBool = AtomicBool::new(false);

impl<'a> Planner<'a> {
    /// Creates a planner whose results are needed in any case.
    pub fn new(
        tree: &'a Arc<Tree>,
        decisions: &'a Decisions,
        bytes: &'a [u64],
        model: &'a Model,
    ) -> Planner<'a> {
        Planner {
            tree,
            decisions,
            bytes,
            model,
            given_up: &NEEDED,
        }
    }

    pub fn operation(&self) -> Algorithm {
        self.decisions.way.operation
    }

    pub fn plan_and_predict(&self, flit_bytes: u32) -> Result<PlannedRound, ProtocolError> {
        let timing = Timing::of(self.model, flit_bytes, self.decisions.pacing);
        self.plan_and_predict_in(&timing, |_| flit_bytes)
    }

    /// Plans and predicts the round with full flits of these sizes, by message id.
    pub fn plan_and_predict_cut(
        &self,
        packet_bytes: Vec<u32>,
    ) -> Result<PlannedRound, ProtocolError> {
        let largest = packet_bytes.iter().copied().max();
        let largest = largest.unwrap_or(MIN_FLIT_BYTES);
        let timing = Timing::of(self.model, largest, self.decisions.pacing);
        let usual = self.decisions.flit_bytes;
        self.plan_and_predict_in(&timing.in_packets(packet_bytes), |schedules| {
            schedules
                .first()
                .map_or(usual, |schedule| schedule.flit_bytes)
        })
    }

    fn plan_and_predict_in(
        &self,
        timing: &Timing,
        flit_bytes: impl Fn(&[PeSchedule]) -> u32,
    ) -> Result<PlannedRound, ProtocolError> {
        let schedules = self.operation().schedules(self.tree, self.bytes, timing);
        let decisions = Decisions {
            flit_bytes: flit_bytes(&schedules),
            ..self.decisions.clone()
        };
        self.predict(schedules, decisions)
    }

    /// Predicts a round by these schedules and decisions.
    pub fn predict(
        &self,
        schedules: Vec<PeSchedule>,
        decisions: Decisions,
    ) -> Result<PlannedRound, ProtocolError> {
        let prediction = predict_unless(self.given_up, self.tree, &schedules, self.model)?;
        Ok(PlannedRound {
            decisions,
            schedules,
            lanes: Vec::new(),
            prediction,
        })
    }
}
