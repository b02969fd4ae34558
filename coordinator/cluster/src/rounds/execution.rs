//! From a launched cluster to the end of its rounds: assigns PEs, measures and predicts, and lets
//! the controller do the rest.

mod assign;
mod costs;
mod driver;
mod existing;
mod inventory;
mod measure;
pub mod parallel_trees;
mod room;

use std::time::Duration;

use driver::{Driver, StopReason};
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::cost::Model;
use flitcast_proto::wire::control::{Payload, Report};
use inventory::Found;
use tokio_util::sync::CancellationToken;

use crate::job::model::Measurement;
use crate::job::planned::Planned;
use crate::job::planned_round::PlannedRound;
use crate::job::request::{Request, check_crossings};
use crate::launch::cluster::Cluster;
use crate::observe::console::Console;
use crate::observe::emit::emit;
use crate::observe::event::Event;
use crate::observe::phase::Phase;
use crate::options::order::MessageOrder;
use crate::rounds::controller::{ControllerEvent, FailureCause, Plan};
use crate::rounds::outcome::{Failure, MeasuredRound, Recorder, RoundsResult};
use crate::rounds::recording::Recording;
use crate::system::machine::BusyThreads;
use crate::text::stderr;

/// Runs all rounds of a request on a cluster, or gives them up when `ends` is cancelled. `launch_waits` is
/// the share of the time of launching in which threads of other programs waited for disks.
pub async fn run_rounds(
    cluster: &mut Cluster,
    request: &Request,
    console: &Console,
    ends: &CancellationToken,
    (recorder, launch_waits): (Recorder<'_>, f64),
) -> Result<RoundsResult, Failure> {
    let mut driver = Driver::new(cluster, request, console, ends);
    match driver.rounds(recorder, launch_waits).await {
        Ok(rounds) => Ok(rounds),
        Err(halt) => Err(driver.failure(halt).await),
    }
}

/// Measures only the edges and the clocks of a cluster; `budget` is for each edge.
pub async fn measure(
    cluster: &mut Cluster,
    request: &Request,
    console: &Console,
    ends: &CancellationToken,
    budget: Duration,
) -> Result<Measurement, Failure> {
    let mut driver = Driver::new(cluster, request, console, ends);
    let measured = async {
        driver.assign().await?;
        driver.enter(Phase::Probe);
        driver.measure_well(budget).await
    };
    match measured.await {
        Ok(measured) => Ok(measured),
        Err(halt) => Err(driver.failure(halt).await),
    }
}

impl Driver<'_> {
    async fn rounds(
        &mut self,
        recorder: Recorder<'_>,
        launch_waits: f64,
    ) -> Result<RoundsResult, StopReason> {
        let found = self.assign().await?;
        self.warn_if_no_file_matches(&found);
        let mut others = BusyThreads::default();
        others.count();
        if let Some(record) = recorder(&self.known) {
            self.aside(move |_| record()).await?;
        }
        let prefixes = self.common_prefixes(&found).await?;
        self.sent = self.without_prefixes(&found, &prefixes);
        self.check_order()?;
        self.check_crossings()?;
        self.check_room(&found)?;
        self.enter(Phase::Probe);
        let known = self.know_costs(&found, others, launch_waits).await?;
        let planned = self.plan_and_predict(known.model).await?;
        let (mut measured, prediction) = (known.measured, planned.prediction);
        self.run_rounds(Plan {
            bytes: self.sent.clone(),
            schedules: planned.schedules.clone(),
            lanes: planned.lanes,
            prefixes,
            rounds: self.request.rounds,
            clocks: measured.clocks.clone(),
            predicted_ns: prediction.round_ns() + prediction.commit_ns(),
        });
        let (reports, recorded) = self.reports(&measured.clocks).await?;
        let mut unsent = found.unsent;
        for report in reports.last().into_iter().flatten() {
            unsent.unkept += report.counts.unkept;
        }
        let age_ns = known.measured_at.elapsed().as_nanos() as u64;
        for clock in &mut measured.clocks {
            *clock = clock.aged(age_ns);
        }
        Ok(RoundsResult {
            bytes: self.sent.clone(),
            whole: found.bytes,
            found: found.delivered,
            unsent,
            seen: self.known.seen.clone(),
            measured,
            costs: known.hosts,
            files: known.files,
            decisions: planned.decisions,
            schedules: planned.schedules,
            prediction,
            busy_threads: known.busy_threads,
            probing: known.probing,
            reports,
            recorded,
        })
    }

    /// Makes the remaining decisions for the rounds, and predicts them.
    async fn plan_and_predict(&mut self, model: Model) -> Result<PlannedRound, StopReason> {
        self.enter(Phase::Predict);
        tracing::info!("predicting the round");
        let planned = Planned {
            tree: self.request.site.tree.clone(),
            decisions: self.request.decisions(),
            others: self.request.other_decisions(),
            bytes: self.sent.clone(),
            lanes: self.lanes.clone(),
            model,
        };
        let planned = self
            .aside(move |given_up| planned.plan_and_predict(given_up))
            .await?;
        let planned = planned.map_err(FailureCause::from)?;
        emit(Event::Predicted {
            algorithm: planned.decisions.way.algorithm(),
            bytes: &self.sent,
            pacing: planned.decisions.pacing_of_orders(),
            prediction: &planned.prediction,
        });
        Ok(planned)
    }

    /// Collects the reports of all rounds, and the spans of the median one.
    async fn reports(
        &mut self,
        clocks: &[ClockOffset],
    ) -> Result<(Vec<Vec<Report>>, Option<MeasuredRound>), StopReason> {
        let mut reports = Vec::new();
        let mut recording = Recording::default();
        while let Some(answer) = self.next_answer().await? {
            let ControllerEvent::RoundReported(mut round) = answer else {
                continue;
            };
            emit(Event::RoundReported {
                reports: &round,
                clocks,
            });
            self.check_versions(&round)?;
            if self.request.pictures.wanted() {
                recording.keep(&mut round, clocks);
            }
            reports.push(round);
        }
        Ok((reports, recording.median_round()))
    }

    /// Warns if the patterns of `--include` match no file of any message. Later runs of a job send what
    /// is missing.
    fn warn_if_no_file_matches(&self, found: &Found) {
        let messages = &self.request.messages;
        let Payload::Files(files) = &messages.payload else {
            return;
        };
        // These rules come first.
        let patterns = files.rules.iter().map_while(|rule| rule.strip_prefix('!'));
        let patterns: Vec<String> = patterns.map(|it| format!("`{it}`")).collect();
        // The folder of a message is an entry.
        let is_empty = found.made_of.iter().all(|of| of.entries <= 1);
        if is_empty && messages.versions.is_empty() && !patterns.is_empty() {
            let patterns = patterns.join(", ");
            stderr::warning(format_args!("--include: no file matches {patterns}"));
        }
    }

    /// Checks that a given order names all messages, whose lengths PEs on other hosts have reported.
    fn check_order(&self) -> Result<(), FailureCause> {
        let MessageOrder::Given(given) = &self.request.way.order else {
            return Ok(());
        };
        let missing = given.missing(&self.request.site.tree, &self.sent);
        missing.map_or(Ok(()), |fault| {
            let text = format!("--order: {fault}");
            Err(FailureCause::Other("input", None, text))
        })
    }

    /// Checks that a static schedule of messages, whose lengths PEs on other hosts have reported, can be
    /// planned.
    fn check_crossings(&self) -> Result<(), FailureCause> {
        let (site, operation) = (&self.request.site, self.request.way.operation);
        let checked = check_crossings(operation, &site.tree, &site.name, &self.sent);
        checked.map_err(|fault| FailureCause::Other("input", None, fault.to_string()))
    }
}
