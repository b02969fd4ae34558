//! `flitcast calibrate`: measures the edges and the clocks of a cluster, then runs rounds on it,
//! learns the costs of its processes from their durations, and writes a profile. This file defines
//! the order of the steps; the submodules contain the command line, the learning, the workloads and
//! the output.

mod args;
mod ended;
mod learn;
mod report;
mod rounded;
mod this_host;
mod workloads;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use flitcast_proto::calibration::MeasuredEdge;
use flitcast_proto::calibration::fit::MeasuredLink;
use flitcast_proto::cost::Host;
use flitcast_proto::ops::Operation;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::control::Payload;
use flitcast_proto::{PeId, Tree};
use futures_util::FutureExt as _;

use crate::files::profile::{Fit, Profile, Relay, parents};
use crate::job::foreseen::foresee;
use crate::job::model::{Measurement, assumed_host, ports};
use crate::job::request::{Messages, Request, Site, gather_operation};
use crate::launch::log_args::LogArgs;
use crate::options::format::Format;
use crate::options::link_spec::LinkSpec;
use crate::options::names::pacing_name;
use crate::options::order::MessageOrder;
use crate::options::pictures::Pictures;
use crate::options::workload::Lengths;
use crate::rounds::run::{self, Ended, Interrupted};
use crate::site::guard::Guard;
use crate::site::topology::Topology;
use crate::system::interrupts::Interrupts;
use crate::tuning::BUFFER_BYTES;
use crate::ways::way::Way;
use learn::{Run, learned, would_take_later};
use workloads::{PACED, WORKLOADS};

pub use args::CalibrateArgs;
pub use ended::{calibrate_and_report, measure_host_and_report};
use report::{json, table};
use this_host::measure_host;

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

/// A valid calibration.
#[derive(Debug)]
pub struct Calibration {
    topology: Topology,
    link: Option<LinkSpec>,
    flit_bytes: u32,
    output: Option<PathBuf>,
    seconds: f64,
    guard: Guard,
    /// Output format.
    pub format: Format,
}

/// The result of a calibration.
#[derive(Debug)]
pub struct Calibrated {
    /// The profile.
    pub profile: Profile,
    /// Workloads that were run.
    pub workloads: Vec<Ran>,
    /// Names of the workloads that were not run because time was short.
    pub left_out: Vec<String>,
    /// Announced duration.
    pub announced: Duration,
    /// Actual duration.
    pub took: Duration,
    /// Security of connections.
    pub guard: Guard,
    /// Path of the written profile.
    pub written: Option<PathBuf>,
}

/// One workload of a calibration.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Name, such as `gather equal:1031`.
    pub name: String,
    /// Number of rounds.
    pub rounds: u64,
    /// Median of the measured durations.
    pub measured_ns: u64,
    /// Predicted duration with the fitted costs.
    pub predicted_ns: u64,
    /// Error of the prediction, in percent.
    pub error_pct: f64,
}

impl Calibration {
    /// Describes the work ahead, for a user who waits.
    pub fn announcement(&self) -> String {
        let edges = self.topology.tree.len() - 1;
        format!(
            "measures {edges} {} and runs {} workloads, about {:.0} s",
            if edges == 1 { "edge" } else { "edges" },
            runs(self.gather(&self.topology.tree)).len(),
            self.seconds.max(1.0),
        )
    }

    /// Runs the calibration.
    ///
    /// # Errors
    ///
    /// Returns an error if a cluster did not start or the profile cannot be written.
    pub async fn run(
        &self,
        logs: &LogArgs,
        interrupts: &mut Interrupts,
    ) -> anyhow::Result<Ended<Box<Calibrated>>> {
        let began = Instant::now();
        let announced = Duration::from_secs_f64(self.seconds);
        let budget = announced.mul_f64(EDGES_SHARE) / (self.topology.tree.len() - 1) as u32;
        let budget = budget.clamp(EDGE_LEAST, EDGE_MOST);
        let nothing = vec![0; self.topology.tree.len() - 1];
        let request = self.request(Operation::Scatter, Pacing::default(), nothing, None);
        let measured = match run::measure(&request, logs, interrupts, budget).await? {
            Ended::Done(measured) => measured,
            Ended::Failed(failure) => return Ok(Ended::Failed(failure)),
            Ended::Interrupted(signal) => return Ok(Ended::Interrupted(signal)),
        };
        let mut profile = self.profile(measured, &request);
        let tree = request.site.tree.clone();
        let mut names = Vec::new();
        let mut ran: Vec<Run> = Vec::new();
        let mut left_out = Vec::new();
        let mut launching = Duration::ZERO;
        // The slowdown of the previous rounds against their prediction.
        let mut slower = 1.0;
        let gather = self.gather(&tree);
        let all = runs(gather);
        let mut left = all.len() as u32;
        for (lengths, operation, pacing) in all {
            let mut name = format!("{} {lengths}", operation.name());
            if let Some(pacing) = pacing_name(operation.gives_orders().then_some(pacing)) {
                name.push_str(&format!(", {pacing}"));
            }
            let lengths: Lengths = lengths.parse().context("a calibration workload")?;
            let lengths = lengths
                .deal(tree.len() - 1)
                .context("a calibration workload")?;
            let mut request = self.request(operation, pacing, lengths, Some(profile.clone()));
            let rounds_end = announced.mul_f64(1.0 - (1.0 - EDGES_SHARE) * FIT_SHARE);
            let slot = rounds_end.saturating_sub(began.elapsed()) / left;
            left -= 1;
            // The first two are always run: without them there is no profile.
            let time = slot.saturating_sub(launching + BETWEEN);
            let time = time.div_f64(slower).max(SHORT);
            let rounds = match rounds_in(time, &request) {
                0 if ran.len() >= 2 => {
                    left_out.push(name);
                    continue;
                }
                rounds => rounds.max(LEAST_ROUNDS),
            };
            request.rounds = rounds;
            let outcome = match run::run(&request, logs, interrupts, &|_| None, |_| true).await? {
                Ended::Done(outcome) => outcome,
                Ended::Failed(failure) => return Ok(Ended::Failed(failure)),
                Ended::Interrupted(signal) => return Ok(Ended::Interrupted(signal)),
            };
            launching = outcome.launching;
            let measured_ns = outcome.measured.map_or(0, |spread| spread.median);
            slower = (measured_ns as f64 / outcome.predicted_ns.max(1) as f64).max(1.0);
            names.push(name);
            ran.push((request, outcome));
        }
        profile.pacing = best_pacing(&ran);
        let time = announced.mul_f64((1.0 - EDGES_SHARE) * FIT_SHARE);
        let workloads = self.fit(&mut profile, names, &ran, time);
        if let Some(signal) = interrupts.next().now_or_never() {
            let interrupted = Interrupted::new(&request, signal, None);
            return Ok(Ended::Interrupted(interrupted));
        }
        if let Some(output) = &self.output {
            let text = profile.text();
            crate::text::whole_file::write_whole(output, |out| out.write_all(text.as_bytes()))?;
        }
        Ok(Ended::Done(Box::new(Calibrated {
            profile,
            workloads,
            left_out,
            announced,
            took: began.elapsed(),
            guard: self.guard.clone(),
            written: self.output.clone(),
        })))
    }

    fn gather(&self, tree: &Tree) -> Operation {
        gather_operation(tree, &self.topology.name, None, None)
            .expect("every tree has a gather of its own")
    }

    fn request(
        &self,
        operation: Operation,
        pacing: Pacing,
        lengths: Vec<u64>,
        profile: Option<Profile>,
    ) -> Request {
        let bytes = std::iter::once(0).chain(lengths.iter().copied()).collect();
        Request {
            site: Site::of(self.topology.clone(), self.link, self.guard.clone()),
            way: Way {
                operation,
                baseline: None,
                pacing: operation.gives_orders().then_some(pacing),
                flit_bytes: Some(self.flit_bytes),
                packets: None,
                order: MessageOrder::Tail,
                covers: false,
            },
            choice: None,
            messages: Messages::new(Payload::Synthetic { lengths }, bytes),
            retries: 0,
            again: true,
            commands: false,
            timeouts: self.topology.settings.timeouts,
            rounds: 1,
            profile: profile.map(Arc::new),
            format: self.format,
            pictures: Pictures::default(),
        }
    }

    /// Returns the profile after the edges have been measured.
    fn profile(&self, measured: Measurement, request: &Request) -> Profile {
        let Measurement {
            edges,
            clocks,
            shared_cores,
            ..
        } = measured;
        let edges: Vec<MeasuredEdge> = edges.into_iter().map(rounded::edge).collect();
        let now = humantime::format_rfc3339_seconds(SystemTime::now());
        Profile {
            measured: now.to_string(),
            tree_name: self.topology.name.clone(),
            parents: parents(&self.topology.tree),
            links: request.site.links_name(),
            encrypted: self.guard.is_encrypted(),
            pacing: Pacing::default(),
            flit_bytes: self.flit_bytes,
            host: Host {
                shared_cores,
                ..assumed_host()
            },
            ports: ports(&request.site),
            buffer_bytes: BUFFER_BYTES,
            relay: None,
            fit: Fit::default(),
            edges,
            clocks,
        }
    }

    /// Learns the costs of the host from the runs.
    fn fit(
        &self,
        profile: &mut Profile,
        names: Vec<String>,
        ran: &[Run],
        time: Duration,
    ) -> Vec<Ran> {
        let learned = learned(ran, profile.host, self.guard.is_encrypted(), time);
        profile.host = rounded::host(profile.host.with_costs(learned.costs));
        profile.relay = relay(&self.topology.tree, profile);
        let told = names.iter().zip(ran).map(|(name, run)| {
            let measured_ns = round_ns(run);
            let predicted = would_take_later(run, profile.host);
            let predicted_ns = predicted.map_or(0, |times| times[0] as u64);
            Ran {
                name: name.clone(),
                rounds: run.0.rounds,
                measured_ns,
                predicted_ns,
                error_pct: (predicted_ns as f64 / measured_ns.max(1) as f64 - 1.0) * 100.0,
            }
        });
        let told: Vec<Ran> = told.collect();
        let mut sizes: Vec<f64> = told.iter().map(|ran| ran.error_pct.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let at = |place: usize| rounded::significant(sizes.get(place).copied().unwrap_or(0.0), 3);
        profile.fit = Fit {
            workloads: names,
            median_residual_pct: at(sizes.len() / 2),
            worst_residual_pct: at(sizes.len().saturating_sub(1)),
        };
        told
    }
}

/// Returns the workloads: each is scattered and gathered. If PEs receive orders, some are gathered
/// with every pacing.
fn runs(gather: Operation) -> Vec<(&'static str, Operation, Pacing)> {
    let mut all = Vec::new();
    for lengths in WORKLOADS {
        all.push((lengths, Operation::Scatter, Pacing::default()));
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

/// Returns the median arrival time of the last message in the rounds of a run.
fn round_ns((_, outcome): &Run) -> u64 {
    outcome.measured.map_or(0, |spread| spread.median)
}

/// Returns the number of rounds that fit into a time; 0 if the minimum number does not fit.
fn rounds_in(time: Duration, request: &Request) -> u64 {
    let (Payload::Synthetic { lengths }, Some(profile)) =
        (&request.messages.payload, &request.profile)
    else {
        return 0;
    };
    let pacing = request.way.pacing.unwrap_or_default();
    let (tree, operation, flit_bytes) = (
        &request.site.tree,
        request.way.operation,
        profile.flit_bytes,
    );
    let bytes = operation.by_delivery(tree, lengths);
    let foreseen = foresee(
        tree,
        operation,
        pacing,
        &bytes,
        flit_bytes,
        &profile.model(),
        &AtomicBool::new(false),
    );
    let round_ns = foreseen
        .map_or(0, |(_, prediction)| prediction.round_ns())
        .max(100_000);
    let rounds = time.as_nanos() as u64 / round_ns;
    match rounds {
        0..LEAST_ROUNDS => 0,
        _ => rounds.min(MOST_ROUNDS),
    }
}

/// Returns the cost of a relay: the median over all relays and both directions through each.
///
/// The latency is the time of its process for a flit at both ends, and the time until the process
/// runs. The receive port is busy as long as one link takes for a flit, the send port as long as
/// the other, and the thread as long as it computes; the maximum of the three is the time per flit
/// in a long stream.
fn relay(tree: &Tree, profile: &Profile) -> Option<Relay> {
    let host = &profile.host;
    let flit = f64::from(profile.flit_bytes);
    let thread_ns = 2.0 * host.flit_ns + flit * (host.send_ns_per_byte + host.receive_ns_per_byte);
    let relays = tree
        .pes()
        .skip(1)
        .flat_map(|pe| tree.children(pe).iter().map(move |&c| (pe, c)));
    let mut overlaps: Vec<f64> = relays
        .flat_map(|(relay, child): (PeId, PeId)| {
            let (above, below) = (&profile.edges[relay.index()], &profile.edges[child.index()]);
            [(above.down, below.down), (below.up, above.up)]
        })
        .map(|(into, out)| {
            let port = |link: MeasuredLink| flit * link.ns_per_byte.value;
            let (receive, send) = (port(into), port(out));
            let period = receive.max(send).max(thread_ns);
            ((receive + send - period) / receive.min(send)).clamp(0.0, 1.0)
        })
        .collect();
    overlaps.sort_by(f64::total_cmp);
    Some(Relay {
        added_latency_ns: (host.wake_ns + 2.0 * host.flit_ns).round(),
        overlap: rounded::significant(*overlaps.get(overlaps.len() / 2)?, 3),
    })
}
