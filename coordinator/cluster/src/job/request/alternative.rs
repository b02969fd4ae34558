//! An alternative of a choice and its predictions, and the time that these may take.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use flitcast_plan::algorithms::schedules::most_hops;
use flitcast_plan::cost::Model;
use flitcast_proto::round::ProtocolError;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::MAX_FLIT_BYTES;

use super::checked::Request;
use crate::algorithms::candidates::Candidate;
use crate::job::decisions::{Decisions, Forecast};
use crate::job::flit_size::{
    SearchTime, are_slow, looking_ns, plan_with_best_flit_size_within, usual_flit,
};
use crate::job::planned_round::{PlannedRound, Planner};
use crate::system::machine::thread_cpu_ns;
use crate::tuning::{
    CHOICE_PART, CHOICE_UNNOTICED_NS, COARSE_FLIT_BYTES, COARSE_FLITS, EAGER_MESSAGE_BYTES,
    EQUAL_PREDICTIONS, SEGMENT_FLIT_BYTES, SHORT_FLIT_BYTES,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestPrediction {
    /// Predicted duration in nanoseconds.
    pub ns: u64,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// Maximum number of bytes of other PEs' messages that a PE holds at once.
    pub held_bytes: u64,
    /// The largest number of edges that a message crosses one after the other.
    pub hops: u64,
}

impl BestPrediction {
    /// Returns the result of a prediction of this time.
    fn of(planned: &PlannedRound, ns: u64) -> BestPrediction {
        let flit_bytes = planned.decisions.flit_bytes;
        BestPrediction {
            ns,
            flit_bytes,
            held_bytes: planned.prediction.held_flits * u64::from(flit_bytes),
            hops: most_hops(&planned.schedules),
        }
    }
}

/// An algorithm on a tree, as a request for it, and its best prediction so far.
pub struct Alternative<'a> {
    pub candidate: &'a Candidate,
    pub request: Request,
    /// The costs of links and hosts on its tree.
    pub model: Model,
    /// A lower bound of its time.
    pub least_ns: u64,
    /// The prediction with the shortest time.
    pub best: Option<BestPrediction>,
    /// Whether that time is an estimate, by longer flits than those of this size.
    pub is_estimated: bool,
    /// The expected processor time of further predictions.
    pub expected: Expected,
}

/// The processor time that predictions of an alternative will take, in nanoseconds, by that of its last one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// With usual flits.
    pub usual_ns: u64,
    /// With [`SHORT_FLIT_BYTES`].
    pub short_ns: u64,
}

impl Alternative<'_> {
    /// Returns the order of alternatives by time; those without a prediction are last.
    pub fn rank(&self) -> u64 {
        self.best.map_or(u64::MAX, |best| best.ns)
    }

    /// Returns the order of alternatives of equal times: by the MiB that PEs hold, then by the edges that messages
    /// cross one after the other, each of which may be late, and then by flits.
    pub fn tie_break(&self) -> Option<(u64, u64, Reverse<u32>)> {
        let tree = &self.request.site.tree;
        let best = self.best?;
        let hops = match best.hops {
            0 => tree.height().into(),
            hops => hops,
        };
        Some((best.held_bytes >> 20, hops, Reverse(best.flit_bytes)))
    }

    pub fn forecast(&self) -> Option<Forecast> {
        let best = self.best?;
        Some(Forecast {
            algorithm: self.candidate.name,
            tree: self.request.site.name.clone(),
            flit_bytes: best.flit_bytes,
            predicted_ns: best.ns,
            steps: None,
        })
    }

    /// Predicts a round of few long flits, in little time. The result estimates the time of rounds of shorter
    /// flits if these are to be used.
    pub fn estimate(&mut self, budget: &mut Budget) -> Result<(), ProtocolError> {
        let coarse_bytes = self.coarse_flit();
        let flit_bytes = match self.request.way.flit_bytes {
            Some(requested_bytes) => requested_bytes,
            None if self.has_slow_links() => coarse_bytes,
            None => self.usual_flit(),
        };
        let has_few = self.longest() <= COARSE_FLITS * u64::from(flit_bytes);
        self.is_estimated = !has_few && flit_bytes < coarse_bytes;
        let predicted_bytes = if self.is_estimated {
            coarse_bytes
        } else {
            flit_bytes
        };
        let predicted = self.predicted(predicted_bytes, budget)?;
        self.best = Some(BestPrediction {
            flit_bytes,
            ..predicted
        });
        Ok(())
    }

    fn longest(&self) -> u64 {
        let lengths = self.request.messages.bytes.iter();
        lengths.copied().max().unwrap_or(0)
    }

    /// Discards an estimate, which is not comparable with predictions.
    pub fn drop_estimate(&mut self) {
        self.best = self.best.filter(|_| !self.is_estimated);
    }

    /// Returns whether links are the limit, and not software. Where software is, flits are at most as long as
    /// the default: longer ones do not fit into the caches of a core, and take more memory.
    pub fn has_slow_links(&self) -> bool {
        let (tree, operation) = (&self.request.site.tree, self.request.way.operation);
        are_slow(tree, operation, &self.model)
    }

    /// Returns whether this has the algorithm and the tree of `other` and eager pacing, where software is the
    /// limit and the buffers of connections hold each message.
    pub fn is_eager_form_of(&self, other: &Alternative<'_>) -> bool {
        self.candidate.pacing == Some(Pacing::Eager)
            && self.candidate.operation == other.candidate.operation
            && self.request.site.name == other.request.site.name
            && self.longest() <= EAGER_MESSAGE_BYTES
            && !self.has_slow_links()
    }

    /// Returns the size of few long flits.
    fn coarse_flit(&self) -> u32 {
        let few = self.longest().div_ceil(COARSE_FLITS);
        let (few, shortest) = match self.has_slow_links() {
            true => (few, COARSE_FLIT_BYTES),
            // Frames of whole segments.
            false => (
                few - few % u64::from(SEGMENT_FLIT_BYTES),
                self.usual_flit().into(),
            ),
        };
        few.clamp(shortest, MAX_FLIT_BYTES.into()) as u32
    }

    pub fn usual_flit(&self) -> u32 {
        let (tree, operation) = (&self.request.site.tree, self.request.way.operation);
        usual_flit(tree, operation, &self.model, &self.request.messages.bytes)
    }

    /// Predicts rounds of the flits that a round would have.
    pub fn search_flits(&mut self, budget: &mut Budget) -> Result<(), ProtocolError> {
        if self.request.way.flit_bytes.is_some() {
            return Ok(());
        }
        if !self.has_slow_links() {
            let is_long = self.longest() > SHORT_FLIT_BYTES.into();
            if is_long && budget.has_left_ns(self.expected.short_ns) {
                let short = self.predicted(SHORT_FLIT_BYTES, budget)?;
                self.take(short);
            }
            return Ok(());
        }
        let decisions = self.request.decisions();
        let planner = self.planner(&decisions);
        let found = plan_with_best_flit_size_within(&planner, budget)?;
        self.take(BestPrediction::of(&found, found.ns()));
        Ok(())
    }

    /// Predicts a round of flits of the default size, or of the size that the user requested. Longer flits
    /// are kept only if they save time, because they take more memory.
    pub fn predict_usual(&mut self, budget: &mut Budget) -> Result<(), ProtocolError> {
        let requested = self.request.way.flit_bytes;
        let flit_bytes = requested.unwrap_or_else(|| self.usual_flit());
        let is_predicted = self.best.is_some_and(|best| best.flit_bytes == flit_bytes);
        if is_predicted && !self.is_estimated {
            return Ok(());
        }
        let usual = self.predicted(flit_bytes, budget)?;
        let equal_ns = (usual.ns as f64 / EQUAL_PREDICTIONS) as u64;
        self.best = self.best.filter(|best| best.ns < equal_ns);
        self.take(usual);
        Ok(())
    }

    fn planner<'b>(&'b self, decisions: &'b Decisions) -> Planner<'b> {
        let (site, bytes) = (&self.request.site, &self.request.messages.bytes);
        Planner::new(&site.tree, decisions, bytes, &self.model)
    }

    /// Predicts a round of flits of this size.
    fn predicted(
        &mut self,
        flit_bytes: u32,
        budget: &mut Budget,
    ) -> Result<BestPrediction, ProtocolError> {
        budget.begin_prediction();
        let decisions = self.request.decisions();
        let planner = self.planner(&decisions);
        let planned = planner.plan_and_predict(flit_bytes)?;
        let ns = planned.prediction.round_ns();
        let looking_ns = |flit_bytes| looking_ns(planner.tree, &planned.schedules, flit_bytes);
        budget.predicted(ns, looking_ns(flit_bytes));
        self.expected = Expected {
            usual_ns: budget.expected_ns(looking_ns(self.usual_flit())),
            short_ns: budget.expected_ns(looking_ns(SHORT_FLIT_BYTES)),
        };
        Ok(BestPrediction::of(&planned, ns))
    }

    /// Keeps a prediction if it is the best one, or instead of an estimate.
    fn take(&mut self, next: BestPrediction) {
        if self.is_estimated || self.best.is_none_or(|best| next.ns < best.ns) {
            self.best = Some(next);
            self.is_estimated = false;
        }
    }
}

/// The predictions of a choice, and the time that is left for more. It is measured on the processor,
/// so that a choice on a busy machine is as good as on an idle one.
#[derive(Debug)]
pub struct Budget {
    began: Instant,
    began_cpu_ns: u64,
    /// The shortest predicted time, [`u64::MAX`] before the first prediction.
    pub best_ns: u64,
    pub predictions: usize,
    has_limit: bool,
    /// When the last prediction ended.
    ended_ns: u64,
    /// The time that it took, as a multiple of [`looking_ns`].
    factor: f64,
}

impl Budget {
    /// Starts a choice, which may take any time if it has no limit.
    pub fn new(has_limit: bool) -> Budget {
        Budget {
            began: Instant::now(),
            began_cpu_ns: thread_cpu_ns(),
            best_ns: u64::MAX,
            predictions: 0,
            has_limit,
            ended_ns: 0,
            factor: 0.0,
        }
    }

    /// Returns the time since the choice began.
    pub fn took(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns whether less than a part of the budget, from 0 to 1, is used. The first prediction is
    /// always made.
    pub fn has_left(&self, part: f64) -> bool {
        self.predictions == 0 || (self.used_ns() as f64) < part * self.most_ns() as f64
    }

    /// Returns whether there is time for a prediction that is expected to take `ns`.
    pub fn has_left_ns(&self, ns: u64) -> bool {
        self.used_ns().saturating_add(ns) <= self.most_ns()
    }

    /// Returns the expected time of a prediction like the last one, for which [`looking_ns`] is `looking_ns`.
    fn expected_ns(&self, looking_ns: u64) -> u64 {
        (self.factor * looking_ns as f64) as u64
    }

    /// Excludes the time until now from that of the next prediction.
    pub fn begin_prediction(&mut self) {
        self.ended_ns = self.used_ns();
    }

    /// Returns the processor time since the choice began.
    pub fn used_ns(&self) -> u64 {
        thread_cpu_ns().saturating_sub(self.began_cpu_ns)
    }

    fn most_ns(&self) -> u64 {
        match self.predictions {
            _ if !self.has_limit => u64::MAX,
            0 => CHOICE_UNNOTICED_NS,
            _ => (self.best_ns / CHOICE_PART).max(CHOICE_UNNOTICED_NS),
        }
    }
}

impl SearchTime for Budget {
    fn predicted(&mut self, predicted_ns: u64, looking_ns: u64) {
        self.predictions += 1;
        self.best_ns = self.best_ns.min(predicted_ns);
        let ended_ns = self.used_ns();
        self.factor = (ended_ns - self.ended_ns) as f64 / looking_ns.max(1) as f64;
        self.ended_ns = ended_ns;
    }

    fn has_time_for(&self, looking_ns: u64) -> bool {
        self.has_left_ns(self.expected_ns(looking_ns))
    }
}
