//! A round before it runs: its input as one value, and its plan and prediction.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use flitcast_plan::cost::Model;
use flitcast_plan::predict::compressed_share;
use flitcast_proto::Tree;
use flitcast_proto::ops::Collective;
use flitcast_proto::round::ProtocolError;

use crate::algorithms::candidates;
use crate::job::decisions::{Choice, CompressionChoice, Decisions, Forecast};
use crate::job::flit_size::{may_pay, plan_with_best_flit_size};
use crate::job::order::ordered;
use crate::job::packets::plan_in_packets;
use crate::job::parallel_trees::ParallelTrees;
use crate::job::planned_round::{PlannedRound, Planner};
use crate::tuning::EQUAL_PREDICTIONS;

/// The input for the plan and the prediction of a round.
#[derive(Clone, Debug)]
pub struct Planned {
    pub tree: Arc<Tree>,
    pub decisions: Decisions,
    /// The decisions for other methods on the same links; the quickest method is used.
    pub others: Vec<Decisions>,
    /// Lengths by delivery.
    pub bytes: Vec<u64>,
    /// The trees on which messages may be sent at once.
    pub lanes: ParallelTrees,
    /// The costs of links and hosts.
    pub model: Model,
}

impl Planned {
    /// Makes the remaining decisions for the round and predicts it, by the method with the shortest
    /// predicted time.
    pub fn plan_and_predict(&self, given_up: &AtomicBool) -> Result<PlannedRound, ProtocolError> {
        let began = Instant::now();
        let usual = self.plan_packed(&self.decisions, given_up)?;
        let longest = self.bytes.iter().copied().max().unwrap_or(0);
        let others = self.others.iter().filter(|other| {
            let baseline = other.way.baseline;
            baseline.is_none_or(|it| it.spares_queues(longest))
                && may_pay(&self.tree, other.way.operation, &self.model)
        });
        let others = others.map(|other| self.plan_packed(other, given_up));
        let mut all = others.collect::<Result<Vec<_>, _>>()?;
        if all.is_empty() {
            return Ok(usual);
        }
        match self.decisions.way.operation.collective() {
            // The first of equal times is chosen: for a gather, a method without requests.
            Collective::Gather => all.push(usual),
            _ => all.insert(0, usual),
        }
        Ok(quickest(all, began))
    }

    /// Plans a round by these decisions. If flits can be compressed, they are where that is predicted to be
    /// quicker.
    fn plan_packed(
        &self,
        decisions: &Decisions,
        given_up: &AtomicBool,
    ) -> Result<PlannedRound, ProtocolError> {
        let Some(format) = self.model.compression().name() else {
            return self.plan(decisions, &self.model, given_up);
        };
        let plain = self.plan(decisions, &self.model.uncompressed(), given_up)?;
        let compressed = self.plan(decisions, &self.model, given_up)?;
        let choice = CompressionChoice {
            format,
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

    fn plan(
        &self,
        decisions: &Decisions,
        model: &Model,
        given_up: &AtomicBool,
    ) -> Result<PlannedRound, ProtocolError> {
        let planner = &Planner {
            tree: &self.tree,
            decisions,
            bytes: &self.bytes,
            model,
            given_up,
        };
        let way = &decisions.way;
        let one = match way.packets {
            Some(packets) => plan_in_packets(planner, packets)?,
            None => ordered(planner, &way.order, plan_with_best_flit_size(planner)?)?,
        };
        self.lanes.plan_and_predict(planner, one)
    }
}

/// Returns the planned round with the shortest predicted time; of equal ones, the first.
fn quickest(mut all: Vec<PlannedRound>, began: Instant) -> PlannedRound {
    let best_ns = all.iter().map(PlannedRound::ns).min().unwrap_or(0);
    let is_alike = |ns: u64| ns as f64 <= best_ns as f64 * EQUAL_PREDICTIONS;
    // Stable: those that are alike stay in their order.
    all.sort_by_key(|one| match is_alike(one.ns()) {
        true => 0,
        false => one.ns(),
    });
    let alike = all.iter().filter(|one| is_alike(one.ns())).count();
    let choice = Choice::of(all.iter().map(forecast).collect(), alike, began.elapsed());
    let mut chosen = all.swap_remove(0);
    chosen.decisions.choice = Some(Arc::new(choice));
    chosen
}

fn forecast(planned: &PlannedRound) -> Forecast {
    let decisions = &planned.decisions;
    let way = &decisions.way;
    let candidates = candidates::all(way.operation.collective().name());
    let named = candidates.iter().find(|one| {
        let has_pacing = one.pacing.is_none_or(|it| it == decisions.pacing);
        one.operation == way.operation && one.baseline == way.baseline && has_pacing
    });
    Forecast {
        algorithm: named.map_or(way.algorithm(), |one| one.name),
        tree: decisions.tree.clone(),
        flit_bytes: decisions.flit_bytes,
        predicted_ns: planned.ns(),
        steps: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::method::Method;
    use crate::job::model::links_alone;
    use crate::job::test_tree::tree;
    use crate::options::baseline::Baseline;
    use flitcast_plan::Algorithm;
    use flitcast_plan::cost::Ports;
    use flitcast_proto::cost::Link;
    use flitcast_proto::schedule::pace::Pacing;

    /// Plans a gather over links of 1 Gbit/s with this latency, if it may be by certification, one PE
    /// after the other, or four at a time.
    fn planned(latency_ns: f64, bytes: u64) -> Decisions {
        let tree = tree("star:9");
        let link = Link {
            latency_ns,
            setup_ns: 0.0,
            ns_per_byte: 8.0,
            burst_bytes: 0.0,
        };
        let by = |way: Method| Decisions::new("star:9".to_owned(), way, None, Pacing::Turns);
        let baseline = |it: Baseline| Method {
            baseline: Some(it),
            ..Method::of(it.operation("gather").unwrap())
        };
        let mut lengths = vec![bytes; tree.len()];
        lengths[0] = 0;
        let planned = Planned {
            model: links_alone(tree.len(), link, Ports::Single),
            tree,
            decisions: by(Method::of(Algorithm::CERTIFICATION_PIPELINED)),
            others: [Baseline::Window, Baseline::Linear]
                .map(|it| by(baseline(it)))
                .to_vec(),
            bytes: lengths,
            lanes: ParallelTrees {
                extra_trees: Vec::new(),
                alone: false,
                why_none: None,
            },
        };
        let planned = planned.plan_and_predict(&AtomicBool::new(false));
        planned.unwrap().decisions
    }

    #[test]
    fn of_several_methods_the_quickest_that_spares_queues_is_chosen() {
        for (latency_ns, bytes, algorithm) in [
            (10_000.0, 2 << 10, "window"),
            (1000.0, 64 << 10, "linear"),
            (50_000_000.0, 64 << 10, "certification"),
        ] {
            let decisions = planned(latency_ns, bytes);
            assert_eq!(decisions.way.algorithm(), algorithm, "{latency_ns} {bytes}");
            let choice = decisions.choice.unwrap();
            assert!(choice.chosen.algorithm.starts_with(algorithm), "{choice}");
            assert!(choice.all.iter().all(|one| {
                choice.chosen.predicted_ns as f64 <= one.predicted_ns as f64 * EQUAL_PREDICTIONS
            }));
        }
    }
}
