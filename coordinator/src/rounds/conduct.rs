//! From a launched cluster to a finished set of rounds: assign, measure, predict, and have the
//! conductor do the rest.

mod assign;
mod driver;
mod files;
mod hosts;
mod inventory;
mod lanes;
mod measure;

use std::time::Duration;

use tokio::time::Instant;

use crate::job::flit_size::{Foreseen, foresee_best};
use crate::job::host_costs::{CostSource, HostCosts};
use crate::job::model::{Measurement, measured_model, model_by};
use crate::job::order;
use crate::job::packets::foresee_in_packets;
use crate::job::request::Request;
use crate::launch::cluster::Cluster;
use crate::observe::console::Console;
use crate::observe::event::Event;
use crate::observe::phase::Phase;
use crate::observe::tell::tell;
use crate::rounds::conducted::Rounds;
use crate::rounds::conductor::{Plan, Trouble, Update};
use crate::rounds::outcome::Failure;
use crate::rounds::recording::Recording;
use crate::ways::way::Way;
use driver::{Driver, Halt};

/// What measuring an edge takes before a round that was not calibrated for: a command
/// should begin at once.
const SHORT_PROBE: Duration = Duration::from_millis(8);

/// Conducts all rounds of a request on a cluster.
pub async fn conduct(
    cluster: &mut Cluster,
    request: &Request,
    console: &Console,
) -> Result<Rounds, Failure> {
    let mut driver = Driver::new(cluster, request, console);
    match driver.rounds().await {
        Ok(rounds) => Ok(rounds),
        Err(halt) => Err(driver.failure(halt).await),
    }
}

/// Measures the edges and the clocks of a cluster, and no more; `budget` is for each
/// edge.
pub async fn measure(
    cluster: &mut Cluster,
    request: &Request,
    console: &Console,
    budget: Duration,
) -> Result<Measurement, Failure> {
    let mut driver = Driver::new(cluster, request, console);
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
    async fn rounds(&mut self) -> Result<Rounds, Halt> {
        let request = self.request;
        let found = self.assign().await?;
        self.enter(Phase::Probe);
        let began = Instant::now();
        let (mut measured, costs, mut model, probing) = match &request.profile {
            Some(profile) => {
                // An edge stays what it is; clocks drift.
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
        model.hosts = model.hosts.in_median_of(request.rounds);
        let measured_at = Instant::now();
        let files = self.know_files(&found, &mut model).await?;
        let tree = &request.site.tree;
        let Way {
            operation,
            flit_bytes,
            packets,
            searches_order,
            ..
        } = request.way;
        let pacing = request.pacing();
        let bytes = &found.bytes;
        let foreseen = match packets {
            Some(asked) => foresee_in_packets(tree, operation, pacing, bytes, asked, &model),
            None => foresee_best(tree, operation, pacing, bytes, flit_bytes, &model),
        };
        let foreseen = match searches_order {
            true => foreseen.and_then(|foreseen| order::search(tree, foreseen, &model)),
            false => foreseen,
        };
        let foreseen = foreseen.and_then(|one| {
            let round = (tree, &request.way, pacing);
            self.lanes.foresee(round, bytes, one, &model)
        });
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
            bytes,
            pacing,
            prediction: &prediction,
        });
        self.conduct(Plan {
            bytes: bytes.clone(),
            briefs: briefs.clone(),
            lanes,
            rounds: request.rounds,
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
            bytes: found.bytes,
            found: found.delivered,
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
            probing,
            reports,
            recorded: recording.median_round(),
        })
    }
}
