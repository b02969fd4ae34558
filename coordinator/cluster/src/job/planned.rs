//! A round before it runs: its input as one value, and its plan and prediction.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flitcast_plan::cost::Model;
use flitcast_proto::Tree;
use flitcast_proto::round::ProtocolError;

use crate::job::decisions::Decisions;
use crate::job::flit_size::plan_with_best_flit_size;
use crate::job::order::ordered;
use crate::job::packets::foresee_in_packets;
use crate::job::parallel_trees::ParallelTrees;
use crate::job::planned_round::{PlannedRound, Planner};

/// The input for the plan and the prediction of a round.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The tree.
    pub tree: Arc<Tree>,
    /// The decisions of the request.
    pub decisions: Decisions,
    /// Lengths by delivery.
    pub bytes: Vec<u64>,
    /// The trees on which messages may be sent at once.
    pub lanes: ParallelTrees,
    /// The costs of links and hosts.
    pub model: Model,
}

impl Planned {
    /// Makes the remaining decisions for the round and predicts it.
    pub fn plan_and_predict(&self, given_up: &AtomicBool) -> Result<PlannedRound, ProtocolError> {
        let planner = &Planner {
            tree: &self.tree,
            decisions: &self.decisions,
            bytes: &self.bytes,
            model: &self.model,
            given_up,
        };
        let way = &self.decisions.way;
        let one = match way.packets {
            Some(asked) => foresee_in_packets(planner, asked)?,
            None => ordered(planner, &way.order, plan_with_best_flit_size(planner)?)?,
        };
        self.lanes.plan_and_predict(planner, one)
    }
}
