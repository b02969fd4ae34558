//! The steps of a calibration: the measurement of the edges, the rounds, and the fit.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use flitcast_plan::Algorithm;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::control::Payload;

use super::calibration::{Calibrated, Calibration};
use super::fit::{Run, round_ns};
use flitcast_cluster::files::profile::Profile;
use flitcast_cluster::job::decisions::Decisions;
use flitcast_cluster::job::planned_round::Planner;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::options::names::pacing_name;
use flitcast_cluster::options::workload::Lengths;
use flitcast_cluster::rounds::run::{self, Interrupted, RunResult};
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::whole_file::write_whole;

/// Lengths of the messages, in the format of `--lengths`, shortest first. Their sizes are unusual, so that
/// no evaluation uses lengths that were calibrated on.
const WORKLOADS: [&str; 6] = [
    "equal:1031",
    "equal:16411",
    "ramp:50021",
    "equal:98317",
    "uniform:37..300017:41",
    "equal:716813",
];

/// The workloads that are gathered with every pacing: short messages, long ones, and different
/// ones.
const PACED: [&str; 3] = ["equal:16411", "equal:98317", "uniform:37..300017:41"];
/// Fraction of the time for measuring edges; the rest is for rounds.
const EDGES_SHARE: f64 = 0.4;
/// Minimum time for one edge: less gives too few bursts.
const EDGE_LEAST: Duration = Duration::from_millis(15);
/// Maximum time for one edge: more gives no new information.
const EDGE_MOST: Duration = Duration::from_secs(1);
/// Minimum number of rounds of a workload, so that the median is meaningful.
const LEAST_ROUNDS: u64 = 5;
/// Maximum number of rounds of a workload: more do not help.
const MOST_ROUNDS: u64 = 25;
/// A workload whose minimum number of rounds takes at most this long is run even if the time is
/// over: most of its time is the launch, and the fit would be worse without it.
const SHORT: Duration = Duration::from_millis(100);
/// Time to stop a cluster and start the next, besides launching its processes.
const BETWEEN: Duration = Duration::from_millis(40);
/// Fraction of the rounds' time for learning from them.
const FIT_SHARE: f64 = 0.15;
/// Minimum advantage of one pacing over another to be preferred, as a difference of logarithms: 1 %
/// in each of the three workloads that decide.
const NOTICEABLE: f64 = 0.03;

#[derive(Default)]
struct Workloads {
    /// Names of those that were run.
    names: Vec<String>,
    ran: Vec<Run>,
    /// Names of those that were not run because time was short.
    left_out: Vec<String>,
}

impl Calibration {
    /// Describes the work ahead, for a user who waits.
    pub fn announcement(&self) -> String {
        let edges = self.topology.tree.len() - 1;
        format!(
            "measures {} and runs {} workloads, about {:.0} s",
            counted(edges as u64, "edge", "edges"),
            runs(self.gather(&self.topology.tree)).len(),
            self.seconds.max(1.0),
        )
    }

    pub async fn run(
        &self,
        logs: &[String],
        interrupts: &mut Interrupts,
    ) -> anyhow::Result<RunResult<Box<Calibrated>>> {
        let began = Instant::now();
        let announced = Duration::from_secs_f64(self.seconds);
        let edges = self.topology.tree.len() - 1;
        let budget = announced.mul_f64(EDGES_SHARE) / edges as u32;
        let budget = budget.clamp(EDGE_LEAST, EDGE_MOST);
        let nothing = vec![0; edges];
        let request = self.request(Algorithm::FARTHEST_FIRST, Pacing::default(), nothing, None);
        let measured = match run::measure(&request, logs, interrupts, budget).await? {
            RunResult::Done(measured) => measured,
            RunResult::Failed(failure) => return Ok(RunResult::Failed(failure)),
            RunResult::Interrupted(signal) => return Ok(RunResult::Interrupted(signal)),
        };
        let mut profile = self.profile(measured, &request);
        let Workloads {
            names,
            ran,
            left_out,
        } = match self.rounds(&profile, began, logs, interrupts).await? {
            RunResult::Done(done) => done,
            RunResult::Failed(failure) => return Ok(RunResult::Failed(failure)),
            RunResult::Interrupted(signal) => return Ok(RunResult::Interrupted(signal)),
        };
        profile.pacing = best_pacing(&ran);
        let time = announced.mul_f64((1.0 - EDGES_SHARE) * FIT_SHARE);
        let workloads = self.fit(&mut profile, names, &ran, time);
        if let Some(signal) = interrupts.earlier() {
            let interrupted = Interrupted::new(&request, signal);
            return Ok(RunResult::Interrupted(interrupted));
        }
        if let Some(output) = &self.output {
            let text = profile.text();
            write_whole(output, |out| out.write_all(text.as_bytes()))?;
        }
        Ok(RunResult::Done(Box::new(Calibrated {
            profile,
            workloads,
            left_out,
            announced,
            took: began.elapsed(),
            guard: self.guard.clone(),
            written: self.output.clone(),
        })))
    }

    /// Runs the rounds of the workloads, in the time that is left of the calibration.
    async fn rounds(
        &self,
        profile: &Profile,
        began: Instant,
        logs: &[String],
        interrupts: &mut Interrupts,
    ) -> anyhow::Result<RunResult<Workloads>> {
        let announced = Duration::from_secs_f64(self.seconds);
        let rounds_end = announced.mul_f64(1.0 - (1.0 - EDGES_SHARE) * FIT_SHARE);
        let mut done = Workloads::default();
        let mut launching = Duration::ZERO;
        // The slowdown of the previous rounds against their prediction.
        let mut slower = 1.0;
        let all = runs(self.gather(&self.topology.tree));
        for (left, (lengths, operation, pacing)) in (1..=all.len() as u32).rev().zip(all) {
            let mut name = format!("{} {lengths}", operation.collective().name());
            if let Some(pacing) = pacing_name(operation.gives_orders().then_some(pacing)) {
                name.push_str(&format!(", {pacing}"));
            }
            let invalid = |fault: String| anyhow!("a calibration workload: {fault}");
            let lengths: Lengths = lengths.parse().map_err(invalid)?;
            let lengths = lengths
                .deal(self.topology.tree.len() - 1)
                .map_err(invalid)?;
            let mut request = self.request(operation, pacing, lengths, Some(profile.clone()));
            let slot = rounds_end.saturating_sub(began.elapsed()) / left;
            // The first two are always run: without them there is no profile.
            let time = slot.saturating_sub(launching + BETWEEN);
            let time = time.div_f64(slower).max(SHORT);
            let rounds = match rounds_in(time, &request) {
                0 if done.ran.len() >= 2 => {
                    done.left_out.push(name);
                    continue;
                }
                rounds => rounds.max(LEAST_ROUNDS),
            };
            request.rounds = rounds;
            let outcome = match run::run(&request, logs, interrupts, &|_| None, |_| true).await? {
                RunResult::Done(outcome) => outcome,
                RunResult::Failed(failure) => return Ok(RunResult::Failed(failure)),
                RunResult::Interrupted(signal) => return Ok(RunResult::Interrupted(signal)),
            };
            launching = outcome.launching;
            let (predicted_ns, run) = (outcome.predicted_ns, (request, outcome));
            slower = (round_ns(&run) as f64 / predicted_ns.max(1) as f64).max(1.0);
            done.names.push(name);
            done.ran.push(run);
        }
        Ok(RunResult::Done(done))
    }
}

/// Returns the workloads: each is scattered and gathered. If PEs receive orders, some are gathered
/// with every pacing.
fn runs(gather: Algorithm) -> Vec<(&'static str, Algorithm, Pacing)> {
    let mut all = Vec::new();
    for lengths in WORKLOADS {
        all.push((lengths, Algorithm::FARTHEST_FIRST, Pacing::default()));
        all.push((lengths, gather, Pacing::Scheduled));
        if PACED.contains(&lengths) {
            all.push((lengths, gather, Pacing::Turns));
            all.push((lengths, gather, Pacing::Eager));
        }
    }
    all
}

/// Returns the pacing that was fastest in the workloads that all were run with; the first of
/// equals.
fn best_pacing(ran: &[Run]) -> Pacing {
    let pacings = [Pacing::Scheduled, Pacing::Turns, Pacing::Eager];
    let gathers = |pacing: Pacing| {
        let gathers = ran.iter();
        gathers.filter(move |(request, _)| request.way.pacing == Some(pacing))
    };
    let slowness = |pacing: Pacing| -> f64 {
        // Only workloads that were run with all three pacings count.
        let paced = gathers(pacing).filter(|(_, outcome)| {
            let bytes = &outcome.rounds.bytes;
            let has = |pacing| gathers(pacing).any(|(_, other)| other.rounds.bytes == *bytes);
            pacings.into_iter().all(has)
        });
        paced.map(|run| (round_ns(run).max(1) as f64).ln()).sum()
    };
    let mut best = Pacing::default();
    for pacing in pacings {
        // A smaller difference is noise.
        if slowness(pacing) < slowness(best) - NOTICEABLE {
            best = pacing;
        }
    }
    best
}

/// Returns the number of rounds that fit into a time; 0 if the minimum number does not fit.
fn rounds_in(time: Duration, request: &Request) -> u64 {
    let (Payload::Synthetic { lengths }, Some(profile)) =
        (&request.messages.payload, &request.profile)
    else {
        return 0;
    };
    let decisions = Decisions {
        pacing: request.way.pacing.unwrap_or_default(),
        ..request.decisions()
    };
    let (tree, model) = (&request.site.tree, profile.model());
    let bytes = request.way.operation.collective();
    let bytes = bytes.by_delivery(tree, lengths);
    let planner = Planner::new(tree, &decisions, &bytes, &model);
    let planned = planner.plan_and_predict(profile.flit_bytes);
    let round_ns = planned.map_or(0, |planned| planned.prediction.round_ns());
    match time.as_nanos() as u64 / round_ns.max(100_000) {
        0..LEAST_ROUNDS => 0,
        rounds => rounds.min(MOST_ROUNDS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flitcast_cluster::options::workload::Lengths;

    #[test]
    fn workloads_are_valid_and_sorted_by_length() {
        let totals = WORKLOADS.map(|text| {
            let lengths: Lengths = text.parse().unwrap();
            let bytes = lengths.deal(7).unwrap();
            // Users do not choose such sizes.
            assert!(
                bytes
                    .iter()
                    .all(|bytes| bytes % 1000 != 0 && bytes % 1024 != 0),
                "{text}"
            );
            bytes.iter().sum::<u64>()
        });
        assert!(totals.is_sorted(), "{totals:?}");
    }
}
