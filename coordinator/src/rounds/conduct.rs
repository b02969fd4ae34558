//! From a launched cluster to the end of its rounds: assigns PEs, measures and predicts, and lets
//! the controller do the rest.

mod aside;
mod assign;
mod driver;
mod files;
mod hosts;
mod inventory;
pub mod lanes;
mod measure;
mod prefixes;

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::job::flit_size::Foreseen;
use crate::job::host_costs::{CostSource, HostCosts, is_here};
use crate::job::model::{Measurement, measured_model, model_by};
use crate::job::planned::Planned;
use crate::job::request::Request;
use crate::launch::cluster::Cluster;
use crate::observe::console::Console;
use crate::observe::event::Event;
use crate::observe::phase::Phase;
use crate::observe::tell::tell;
use crate::options::order::MessageOrder;
use crate::rounds::conducted::Rounds;
use crate::rounds::conductor::{Plan, Trouble, Update};
use crate::rounds::outcome::{Failure, Recorder};
use crate::rounds::recording::Recording;
use crate::system::machine::BusyThreads;
use driver::{Driver, Halt};

/// Budget for the measurement of an edge before an uncalibrated round, short because commands
/// should start quickly.
const SHORT_PROBE: Duration = Duration::from_millis(8);

/// Runs all rounds of a request on a cluster, or gives them up when `ends` is cancelled.
pub async fn conduct(
    cluster: &mut Cluster,
    request: &Request,
    console: &Console,
    ends: &CancellationToken,
    recorder: Recorder<'_>,
) -> Result<Rounds, Failure> {
    let mut driver = Driver::new(cluster, request, console, ends);
    match driver.rounds(recorder).await {
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
    async fn rounds(&mut self, recorder: Recorder<'_>) -> Result<Rounds, Halt> {
        let request = self.request;
        let found = self.assign().await?;
        let mut others = BusyThreads::default();
        others.count();
        if let Some(record) = recorder(&self.known()) {
            self.aside(move |_| record()).await?;
        }
        let prefixes = self.common_prefixes(&found).await?;
        self.sent = self.without_prefixes(&found, &prefixes);
        self.check_order()?;
        self.enter(Phase::Probe);
        let began = Instant::now();
        let (mut measured, costs, mut model, probing) = match &request.profile {
            Some(profile) => {
                // Edges do not change, but clocks drift.
                let clocks = self.clocks().await?;
                let edges = profile.edges.clone();
                let measured = Measurement {
                    alike: vec![None; edges.len()],
                    edges,
                    clocks,
                    fits: Vec::new(),
                    shared_cores: profile.host.shared_cores,
                };
                let model = model_by(profile, &request.site);
                let costs = HostCosts::one(profile.host, CostSource::Profile);
                (measured, costs, model, None)
            }
            None => {
                let measured = self.measure(SHORT_PROBE, false).await?;
                let probing = began.elapsed();
                let costs = self.know_hosts().await?;
                let hosts = costs.hosts.clone();
                let model = measured_model(&measured.edges, hosts, &request.site);
                (measured, costs, model, Some(probing))
            }
        };
        others.count();
        model.hosts = model.hosts.in_median_of(request.rounds.max(1));
        let measured_at = Instant::now();
        let files = self.know_files(&found, &mut model).await?;
        others.count();
        // A profile was measured beside whatever runs on its machine.
        let busy_threads = match is_here(&request.site) && request.profile.is_none() {
            true => others.number(),
            false => 0,
        };
        model.hosts = model.hosts.beside(busy_threads);
        let tree = &request.site.tree;
        let operation = request.way.operation;
        let pacing = request.pacing();
        self.enter(Phase::Predict);
        tracing::info!("predicting the round");
        let planned = Planned {
            tree: tree.clone(),
            way: request.way.clone(),
            pacing,
            bytes: self.sent.clone(),
            lanes: self.lanes.clone(),
            model,
        };
        let foreseen = self
            .aside(move |given_up| planned.plan_and_predict(given_up))
            .await?;
        let Foreseen {
            flit_bytes,
            chosen,
            packets,
            order,
            trees,
            briefs,
            lanes,
            prediction,
        } = foreseen.map_err(Trouble::from)?;
        let pacing = operation.gives_orders().then_some(pacing);
        tell(Event::Foreseen {
            bytes: &self.sent,
            pacing,
            prediction: &prediction,
        });
        self.conduct(Plan {
            bytes: self.sent.clone(),
            briefs: briefs.clone(),
            lanes,
            prefixes,
            rounds: request.rounds,
            clocks: measured.clocks.clone(),
            predicted_ns: prediction.round_ns() + prediction.commit_ns(),
        });
        let mut reports = Vec::new();
        let mut recording = Recording::default();
        while let Some(answer) = self.next_answer().await? {
            let Update::RoundReported(mut round) = answer else {
                continue;
            };
            tell(Event::RoundReported {
                reports: &round,
                clocks: &measured.clocks,
            });
            self.check_versions(&round)?;
            if request.pictures.wanted() {
                recording.keep(&mut round, &measured.clocks);
            }
            reports.push(round);
        }
        let age_ns = measured_at.elapsed().as_nanos() as u64;
        for clock in &mut measured.clocks {
            *clock = clock.aged(age_ns);
        }
        Ok(Rounds {
            bytes: self.sent.clone(),
            whole: found.bytes,
            found: found.delivered,
            seen: self.seen.clone(),
            measured,
            costs,
            files,
            flit_bytes,
            flit_size: chosen,
            packets,
            order,
            trees,
            pacing,
            briefs,
            prediction,
            busy_threads,
            probing,
            reports,
            recorded: recording.median_round(),
        })
    }
}

impl Driver<'_> {
    /// Checks that a given order names all messages, whose lengths PEs on other hosts have reported.
    fn check_order(&self) -> Result<(), Trouble> {
        let MessageOrder::Given(given) = &self.request.way.order else {
            return Ok(());
        };
        match given.missing(&self.request.site.tree, &self.sent) {
            None => Ok(()),
            Some(fault) => Err(Trouble::Order(fault)),
        }
    }
}
