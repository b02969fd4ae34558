//! An alternative of a choice, and its predictions.

use std::cmp::Reverse;
use std::sync::atomic::AtomicBool;

use flitcast_plan::cost::Model;
use flitcast_proto::ops::Collective;
use flitcast_proto::round::ProtocolError;
use flitcast_proto::wire::MAX_FLIT_BYTES;

use super::budget::Budget;
use super::checked::Request;
use crate::algorithms::candidates::Candidate;
use crate::job::choice::Forecast;
use crate::job::flit_size::{are_slow, plan_with_best_flit_size_within, usual_flit};
use crate::job::planned_round::{Planner, plan_and_predict};
use crate::tuning::{COARSE_FLIT_BYTES, COARSE_FLITS, OTHER_FLIT_BYTES, SEGMENT_FLIT_BYTES};

/// An algorithm on a tree, as a request for it, and its best prediction so far.
pub struct Alternative<'a> {
    /// The algorithm.
    pub candidate: &'a Candidate,
    /// The request for it.
    pub request: Request,
    /// The costs of links and hosts on its tree.
    pub model: Model,
    /// A lower bound of its time.
    pub least_ns: u64,
    /// The shortest predicted time, and the flit size for it.
    pub best: Option<(u64, u32)>,
    /// Whether that time is an estimate, by longer flits than those of this size.
    pub is_estimated: bool,
}

impl Alternative<'_> {
    /// Returns the order of alternatives by time; those without a prediction are last.
    pub fn rank(&self) -> u64 {
        self.best.map_or(u64::MAX, |(ns, _)| ns)
    }

    /// Returns the order of alternatives of equal times.
    pub fn depth(&self) -> (Option<u32>, Reverse<u32>) {
        let tree = &self.request.site.tree;
        let depth = tree.pes().map(|pe| tree.depth(pe)).max();
        (
            depth,
            Reverse(self.best.map_or(0, |(_, flit_bytes)| flit_bytes)),
        )
    }

    /// Returns the best prediction.
    pub fn forecast(&self) -> Option<Forecast> {
        let (predicted_ns, flit_bytes) = self.best?;
        Some(Forecast {
            algorithm: self.candidate.name,
            tree: self.request.site.name.clone(),
            flit_bytes,
            predicted_ns,
            steps: None,
        })
    }

    /// Predicts a round of few long flits, in little time. The result estimates the time of rounds of shorter
    /// flits if these are to be used.
    pub fn estimate(&mut self, bytes: &[u64], budget: &mut Budget) -> Result<(), ProtocolError> {
        let coarse_bytes = self.coarse_flit(bytes);
        let flit_bytes = match self.request.way.flit_bytes {
            Some(requested_bytes) => requested_bytes,
            None if self.may_be_longer() => coarse_bytes,
            None => self.usual_flit(bytes),
        };
        let longest = bytes.iter().copied().max().unwrap_or(0);
        let has_few = longest <= COARSE_FLITS * u64::from(flit_bytes);
        self.is_estimated = !has_few && flit_bytes < coarse_bytes;
        let predicted_bytes = if self.is_estimated {
            coarse_bytes
        } else {
            flit_bytes
        };
        let ns = self.predicted_ns(bytes, predicted_bytes, budget)?;
        self.best = Some((ns, flit_bytes));
        Ok(())
    }

    /// Discards an estimate, which is not comparable with predictions.
    pub fn drop_estimate(&mut self) {
        self.best = self.best.filter(|_| !self.is_estimated);
    }

    /// Returns whether flits may be longer than the default. Where software is the limit, an exchange takes as
    /// long with them, and a PE has memory for one from each other PE.
    fn may_be_longer(&self) -> bool {
        let (tree, operation) = (&self.request.site.tree, self.request.way.operation);
        operation.collective() != Collective::Exchange || are_slow(tree, operation, &self.model)
    }

    /// Returns the size of few long flits.
    fn coarse_flit(&self, bytes: &[u64]) -> u32 {
        let (tree, operation) = (&self.request.site.tree, self.request.way.operation);
        let longest = bytes.iter().copied().max().unwrap_or(0);
        let few = longest.div_ceil(COARSE_FLITS);
        let (few, shortest) = match are_slow(tree, operation, &self.model) {
            true => (few, COARSE_FLIT_BYTES),
            // Frames of whole segments.
            false => (
                few - few % u64::from(SEGMENT_FLIT_BYTES),
                self.usual_flit(bytes).into(),
            ),
        };
        few.clamp(shortest, MAX_FLIT_BYTES.into()) as u32
    }

    /// Returns the default flit size.
    pub fn usual_flit(&self, bytes: &[u64]) -> u32 {
        let (tree, operation) = (&self.request.site.tree, self.request.way.operation);
        usual_flit(tree, operation, &self.model, bytes)
    }

    /// Predicts rounds of the flits that a round would have.
    pub fn search_flits(
        &mut self,
        bytes: &[u64],
        budget: &mut Budget,
    ) -> Result<(), ProtocolError> {
        if self.request.way.flit_bytes.is_some() {
            return Ok(());
        }
        let (request, model) = (&self.request, &self.model);
        let (tree, operation) = (&request.site.tree, request.way.operation);
        if !are_slow(tree, operation, model) {
            let longest = bytes.iter().copied().max().unwrap_or(0);
            let usual_bytes = self.usual_flit(bytes);
            for flit_bytes in OTHER_FLIT_BYTES {
                // No message would be cut in another way.
                let is_other = longest > u64::from(flit_bytes.min(usual_bytes));
                let is_allowed = flit_bytes < usual_bytes || self.may_be_longer();
                if is_other && is_allowed && budget.has_left(1.0) {
                    self.predict(bytes, flit_bytes, budget)?;
                }
            }
            return Ok(());
        }
        let planner = Planner {
            tree,
            decisions: &request.decisions(),
            bytes,
            model,
            given_up: &AtomicBool::new(false),
        };
        let left_ns = budget.left_ns();
        let mut predicted = |ns| budget.predicted(ns);
        let found = plan_with_best_flit_size_within(&planner, |_| left_ns, &mut predicted)?;
        self.take(found.ns(), found.decisions.flit_bytes);
        Ok(())
    }

    /// Predicts a round of flits of this size, or of the size that the user requested.
    pub fn predict(
        &mut self,
        bytes: &[u64],
        flit_bytes: u32,
        budget: &mut Budget,
    ) -> Result<(), ProtocolError> {
        let flit_bytes = self.request.way.flit_bytes.unwrap_or(flit_bytes);
        let is_predicted = self.best.is_some_and(|(_, size)| size == flit_bytes);
        if is_predicted && !self.is_estimated {
            return Ok(());
        }
        let ns = self.predicted_ns(bytes, flit_bytes, budget)?;
        self.take(ns, flit_bytes);
        Ok(())
    }

    /// Returns the predicted time of a round of flits of this size.
    fn predicted_ns(
        &self,
        bytes: &[u64],
        flit_bytes: u32,
        budget: &mut Budget,
    ) -> Result<u64, ProtocolError> {
        let planned = plan_and_predict(
            &self.request.site.tree,
            self.request.way.operation,
            self.request.pacing(),
            bytes,
            flit_bytes,
            &self.model,
            &AtomicBool::new(false),
        );
        let ns = planned?.1.round_ns();
        budget.predicted(ns);
        Ok(ns)
    }

    /// Keeps a prediction if it is the best one, or instead of an estimate.
    fn take(&mut self, ns: u64, flit_bytes: u32) {
        if self.is_estimated || self.best.is_none_or(|(best, _)| ns < best) {
            self.best = Some((ns, flit_bytes));
            self.is_estimated = false;
        }
    }
}
