//! Learning of the costs of processes from rounds of several kinds, with the filter that also
//! corrects them later (`job/host_costs`); and the fit of a profile to the rounds that were run.

use std::time::{Duration, Instant};

use flitcast_node::on_processors;
use flitcast_plan::calibration::cost_estimate::{CostEstimate, Observation, Prior};
use flitcast_plan::calibration::fit::MeasuredLink;
use flitcast_plan::cost::{COSTS, Host, Hosts};
use flitcast_proto::{PeId, Tree};

use super::calibration::{Calibration, Ran, significant};
use flitcast_cluster::files::profile::{Fit, Profile, Relay};
use flitcast_cluster::job::model::prior;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::rounds::learning::{first_lesson, lesson, lesson_beside_others, would_take};
use flitcast_cluster::rounds::outcome::Outcome;

/// The rounds of one kind, with their request.
pub type Run = (Request, Box<Outcome>);

/// The rounds of a run that an observation is of.
#[derive(Clone, Copy)]
enum Rounds {
    All,
    First,
    Quickest,
}

/// Returns the observations from a run: of all rounds and of the first one or, beside busy programs, of the
/// quickest quarter alone.
fn lessons((_, outcome): &Run) -> Option<Vec<(Rounds, Observation)>> {
    Some(match outcome.rounds.busy_threads {
        0 => vec![
            (Rounds::All, lesson(outcome)?),
            (Rounds::First, first_lesson(outcome)?),
        ],
        _ => vec![(Rounds::Quickest, lesson_beside_others(outcome)?)],
    })
}

/// Learns the costs of a host like `host` from these runs. Iterates for about `time`, but at least once.
pub fn learned(ran: &[Run], host: Host, encrypted: bool, time: Duration) -> CostEstimate<COSTS> {
    let of_run = |run| {
        let of_run = lessons(run).unwrap_or_default().into_iter();
        of_run.map(move |(rounds, lesson)| ((run, rounds), lesson))
    };
    let (of, lessons): (Vec<(&Run, Rounds)>, Vec<Observation>) =
        ran.iter().flat_map(of_run).unzip();
    let predict = |costs: &[f64; COSTS], index: usize| {
        let &(run @ (request, outcome), rounds) = of.get(index)?;
        let host = host.with_costs(*costs);
        let last = |times: Vec<f64>| times[..1].to_vec();
        match rounds {
            Rounds::All => would_take_later(run, host),
            Rounds::First => would_take(request, outcome, &Hosts::one(host)).map(last),
            Rounds::Quickest => would_take_later(run, host).map(last),
        }
    };
    let prior = prior(encrypted);
    let start = CostEstimate::assumed(&prior);
    let began = Instant::now();
    for index in 0..lessons.len() {
        predict(&start.costs, index);
    }
    let iteration = began.elapsed() * (COSTS as u32 + 1);
    let iterations = time.as_secs_f64() / iteration.as_secs_f64().max(1e-9);
    let prior = Prior {
        iterations: (iterations as usize).clamp(1, prior.iterations),
        ..prior
    };
    let predict_all = |points: &[[f64; COSTS]], index: usize| {
        on_processors(points.to_vec(), |costs| predict(&costs, index))
    };
    start.after(&lessons, &prior, &predict_all)
}

/// Predicts the rounds of a run with the costs of `host`, without the first round.
pub fn would_take_later((request, outcome): &Run, host: Host) -> Option<Vec<f64>> {
    would_take(request, outcome, &Hosts::one(host.in_later_rounds()))
}

impl Calibration {
    /// Learns the costs of the host from the runs.
    pub fn fit(
        &self,
        profile: &mut Profile,
        names: Vec<String>,
        ran: &[Run],
        time: Duration,
    ) -> Vec<Ran> {
        let learned = learned(ran, profile.host, self.guard.is_encrypted(), time);
        let costs = learned.costs.map(|cost| significant(cost, 4));
        profile.host = profile.host.with_costs(costs);
        profile.relay = relay(&self.topology.tree, profile);
        let fitted = names.iter().zip(ran).map(|(name, run)| {
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
        let fitted: Vec<Ran> = fitted.collect();
        let mut sizes: Vec<f64> = fitted.iter().map(|ran| ran.error_pct.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let at = |place: usize| significant(sizes.get(place).copied().unwrap_or(0.0), 3);
        profile.fit = Fit {
            workloads: names,
            median_residual_pct: at(sizes.len() / 2),
            worst_residual_pct: at(sizes.len().saturating_sub(1)),
        };
        fitted
    }
}

/// Returns the median arrival time of the last message in the rounds of a run.
pub fn round_ns((_, outcome): &Run) -> u64 {
    outcome.measured.map_or(0, |spread| spread.median)
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
    let relays = tree.pes().skip(1);
    let relays = relays.flat_map(|pe| tree.children(pe).iter().map(move |&c| (pe, c)));
    let ports = relays.flat_map(|(relay, child): (PeId, PeId)| {
        let (above, below) = (&profile.edges[relay.index()], &profile.edges[child.index()]);
        [(above.down, below.down), (below.up, above.up)]
    });
    let overlaps = ports.map(|(into, out)| {
        let port = |link: MeasuredLink| flit * link.ns_per_byte.value;
        let (receive, send) = (port(into), port(out));
        let period = receive.max(send).max(thread_ns);
        ((receive + send - period) / receive.min(send)).clamp(0.0, 1.0)
    });
    let mut overlaps: Vec<f64> = overlaps.collect();
    overlaps.sort_by(f64::total_cmp);
    Some(Relay {
        added_latency_ns: (host.wake_ns + 2.0 * host.flit_ns).round(),
        overlap: significant(*overlaps.get(overlaps.len() / 2)?, 3),
    })
}
