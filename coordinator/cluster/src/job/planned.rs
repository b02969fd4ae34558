//! A round before it runs: its input as one value, and its plan and prediction.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flitcast_plan::cost::Model;
use flitcast_plan::predict::compressed_share;
use flitcast_proto::Tree;
use flitcast_proto::round::ProtocolError;

use crate::job::decisions::{CompressionChoice, Decisions};
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
    /// Makes the remaining decisions for the round and predicts it. If flits can be compressed, they are
    /// where that is predicted to be quicker.
    pub fn plan_and_predict(&self, given_up: &AtomicBool) -> Result<PlannedRound, ProtocolError> {
        if !self.model.compresses() {
            return self.plan(&self.model, given_up);
        }
        let plain = self.plan(&self.model.uncompressed(), given_up)?;
        let compressed = self.plan(&self.model, given_up)?;
        let choice = CompressionChoice {
            share: compressed_share(&self.tree, &compressed.schedules, &self.model),
            predicted_ns: compressed.ns(),
            plain_ns: plain.ns(),
        };
        let mut quicker = match choice.compresses() {
            true => compressed,
            false => plain,
        };
        quicker.decisions.compression = Some(choice);
        Ok(quicker)
    }

    fn plan(&self, model: &Model, given_up: &AtomicBool) -> Result<PlannedRound, ProtocolError> {
        let planner = &Planner {
            tree: &self.tree,
            decisions: &self.decisions,
            bytes: &self.bytes,
            model,
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
