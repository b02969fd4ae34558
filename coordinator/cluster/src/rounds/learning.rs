//! Observations from rounds about the costs of processes and files. `host_costs` contains the
//! estimation and the cache.

use flitcast_node::on_processors;
use flitcast_plan::calibration::cost_estimate::Observation;
use flitcast_plan::cost::{COSTS, Hosts, Model};
use flitcast_plan::predict::predict;
use flitcast_proto::wire::control::Payload;

use crate::job::host_costs::files::{CachedFiles, Factors, assumed};
use crate::job::host_costs::{self, geometric_mean};
use crate::job::model::{measured_model, model_of, prior, wires};
use crate::job::request::Request;
use crate::rounds::outcome::{Outcome, RoundsResult, by_row};
use crate::tuning::{
    FILES_OFF_ALWAYS, FILES_OFF_BESIDE_OTHERS, FILES_OFF_ONCE, LEARNED_FLITS,
    LEARNED_FLITS_WITH_FILES, OFF_ALWAYS, OFF_BESIDE_OTHERS, OFF_ON_WIRES, OFF_ONCE,
};

/// Returns the observation from rounds of one kind: the median times of the last byte and of all
/// messages (geometric mean).
pub fn lesson(outcome: &Outcome) -> Option<Observation> {
    let measured = outcome.measured?;
    let arrivals = outcome.pes.iter().filter_map(|pe| pe.measured);
    let mean_ns = geometric_mean(arrivals.map(|spread| spread.median))?;
    let times_ns = vec![measured.median as f64, mean_ns];
    Some(observation(outcome, times_ns))
}

/// Returns the observation from the first round: the time of the last byte.
pub fn first_lesson(outcome: &Outcome) -> Option<Observation> {
    Some(Observation {
        times_ns: vec![*outcome.rounds_ns.first()? as f64],
        deviation: deviation([OFF_ALWAYS, OFF_ONCE], 1, &outcome.rounds),
        rounds: 0,
    })
}

/// Returns the observation from rounds beside busy programs: the lower quartile of their times. The rounds
/// above it may have waited for a time slice, which takes longer than a short round.
pub fn lesson_beside_others(outcome: &Outcome) -> Option<Observation> {
    let times_ns = vec![lower_quartile(&outcome.rounds_ns)? as f64];
    Some(observation(outcome, times_ns))
}

fn observation(outcome: &Outcome, times_ns: Vec<f64>) -> Observation {
    let rounds = outcome.rounds_ns.len();
    Observation {
        times_ns,
        deviation: deviation([OFF_ALWAYS, OFF_ONCE], rounds, &outcome.rounds),
        rounds: rounds as u64,
    }
}

/// Returns the lower quartile by nearest rank.
fn lower_quartile(times: &[u64]) -> Option<u64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted
        .get(times.len().div_ceil(4).saturating_sub(1))
        .copied()
}

/// Returns the relative deviation of the median of `rounds` rounds, from the deviation that all
/// rounds have, that of a single one, and the other programs beside which they ran.
fn deviation([always, once]: [f64; 2], count: usize, rounds: &RoundsResult) -> f64 {
    let machines = rounds.costs.hosts.machines().iter();
    let cores = machines.filter_map(|host| host.shared_cores).min();
    let cores = f64::from(cores.unwrap_or(1));
    let beside = OFF_BESIDE_OTHERS * f64::from(rounds.busy_threads) / cores;
    let once = once * once / count.max(1) as f64;
    (always * always + once + beside * beside).sqrt()
}

/// Predicts the observed times of executed rounds for other costs of hosts, with the schedule that
/// was executed, which depended on the costs known then.
pub fn would_take(request: &Request, outcome: &Outcome, hosts: &Hosts) -> Option<Vec<f64>> {
    let edges = &outcome.rounds.measured.edges;
    let hosts = hosts.beside(outcome.rounds.busy_threads);
    let model = measured_model(edges, hosts, &request.site);
    let prediction = predict(&request.site.tree, &outcome.rounds.schedules, &model);
    let (operation, tree) = (request.way.operation, &request.site.tree);
    host_costs::comparable_arrivals(&by_row(operation, tree, &prediction.ok()?.arrivals_ns))
}

/// Learns the costs of processes on each machine from rounds of synthetic messages on unshaped
/// links; from rounds with files, the costs of files and their effect on processes.
pub fn learn(request: &Request, outcome: &Outcome) {
    // On several trees, PEs do not follow the schedules for one tree.
    let trees = outcome.rounds.decisions.trees.as_ref();
    if trees.is_some_and(|trees| trees.count > 1) {
        return;
    }
    learn_files(request, outcome);
    let costs = &outcome.rounds.costs;
    let machines = costs.keys.len();
    let is_informative = matches!(request.messages.payload, Payload::Synthetic { .. })
        && !request.site.is_shaped()
        && request.site.limit.is_none()
        && request.profile.is_none()
        && flits_on_edges(request, outcome).saturating_mul(machines as u64) <= LEARNED_FLITS;
    let Some(lesson) = lesson(outcome).filter(|_| is_informative) else {
        return;
    };
    let encrypted = request.site.guard.is_encrypted();
    let hosts = costs.hosts.in_median_of(lesson.rounds);
    let would_take = |hosts: &Hosts| would_take(request, outcome, hosts);
    // Unknown costs of other machines, and of the wires between, increase the deviation of a
    // machine's part in the times.
    let unsure = |place: usize| match machines {
        1 => 0.0,
        _ => {
            let known = costs.keys[place].as_ref().and_then(host_costs::known);
            let deviations = match known {
                Some((learned, _)) => std::array::from_fn(|i| learned.covariance[i][i].sqrt()),
                None => prior(encrypted).log_deviations,
            };
            unsure_of(deviations, &hosts, place, &would_take)
        }
    };
    let unsure: Vec<f64> = (0..machines).map(unsure).collect();
    let wires = match host_costs::is_here(&request.site) {
        true => 0.0,
        false => OFF_ON_WIRES * OFF_ON_WIRES,
    };
    for (place, key) in costs.keys.iter().enumerate() {
        let Some(key) = key else {
            continue;
        };
        let others: f64 = unsure.iter().sum::<f64>() - unsure[place];
        let deviation = (lesson.deviation * lesson.deviation + others + wires).sqrt();
        let lesson = Observation {
            deviation,
            ..lesson.clone()
        };
        let count = lesson.rounds;
        let predict = |points: &[[f64; COSTS]], _: usize| {
            on_processors(points.to_vec(), |costs| {
                would_take(&hosts.map(|other, host| match other == place {
                    true => host.with_costs(costs).in_median_of(count),
                    false => host,
                }))
            })
        };
        host_costs::learn(key, lesson, &predict);
    }
}

/// Returns the variance of the logarithm of a round's time due to the costs of one machine, if each
/// cost deviates independently by the given deviation of its logarithm.
fn unsure_of(
    deviations: [f64; COSTS],
    hosts: &Hosts,
    place: usize,
    would_take: &dyn Fn(&Hosts) -> Option<Vec<f64>>,
) -> f64 {
    let log = |hosts: &Hosts| Some(would_take(hosts)?.first()?.max(1.0).ln());
    let Some(usual) = log(hosts) else {
        return 0.0;
    };
    let shifts = deviations.iter().enumerate().filter_map(|(i, deviation)| {
        let shifted = hosts.map(|other, host| {
            let mut costs = host.costs();
            costs[i] *= if other == place { deviation.exp() } else { 1.0 };
            host.with_costs(costs)
        });
        Some(log(&shifted)? - usual)
    });
    shifts.map(|shift| shift * shift).sum()
}

/// Learns the costs of files on the file system to which all were written.
fn learn_files(request: &Request, outcome: &Outcome) {
    let rounds = &outcome.rounds;
    let (Some(known), Some(phases)) = (&rounds.files, &outcome.phases) else {
        return;
    };
    let Some((written, place)) = &known.written else {
        return;
    };
    // A measurement beside busy programs may exceed its limit, so rounds correct the assumed costs there.
    let assumed = || CachedFiles::new(written, assumed());
    let kept = CachedFiles::load(written).or_else(|| known.load.is_busy().then(assumed));
    let Some(kept) = kept else {
        return;
    };
    let count = outcome.rounds_ns.len();
    let hosts = rounds.costs.hosts.in_median_of(count as u64);
    let hosts = hosts.beside(rounds.busy_threads);
    let edges = wires(&rounds.measured.edges, &rounds.costs.hosts, &request.site);
    let wires_alone = model_of(edges, hosts, &request.site);
    let times = |phases: [u64; 2]| phases.map(|ns| ns as f64).to_vec();
    let would_take = |factors: &Factors| {
        let mut files = known.files.clone();
        *files.disks.get_mut(*place)? = kept.costs_by(factors);
        let model = Model {
            hosts: wires_alone.hosts.map(|_, host| match known.changes_host {
                true => factors.host(host),
                false => host,
            }),
            files: Some(files),
            ..wires_alone.clone()
        };
        let prediction = predict(&request.site.tree, &rounds.schedules, &model).ok()?;
        let transfer_ns = prediction.round_ns();
        let whole_ns = transfer_ns + prediction.commit_ns();
        Some(times([transfer_ns, whole_ns]))
    };
    let [transfer, whole] = [phases.transfer, phases.whole].map(|it| it.measured);
    let (Some(transfer), Some(whole)) = (transfer, whole) else {
        return;
    };
    let beside = FILES_OFF_BESIDE_OTHERS * known.load.disk_share;
    let lesson = Observation {
        times_ns: times([transfer.median, whole.median]),
        deviation: deviation([FILES_OFF_ALWAYS, FILES_OFF_ONCE], count, rounds).hypot(beside),
        rounds: count as u64,
    };
    if flits_on_edges(request, outcome) <= LEARNED_FLITS_WITH_FILES {
        kept.after(lesson, &would_take).store();
    }
}

/// Returns the sum over all messages of flits times edges on their way.
fn flits_on_edges(request: &Request, outcome: &Outcome) -> u64 {
    let flit_bytes = u64::from(outcome.rounds.decisions.flit_bytes);
    let flits = outcome.pes.iter().map(|pe| {
        let edges = request.site.tree.depth(pe.pe);
        pe.bytes.div_ceil(flit_bytes) * u64::from(edges)
    });
    flits.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside a busy program, most rounds wait for a time slice of 4 ms.
    #[test]
    fn the_lower_quartile_is_of_rounds_that_did_not_wait() {
        let waited = 4_000;
        assert_eq!(lower_quartile(&[]), None);
        assert_eq!(lower_quartile(&[waited]), Some(waited));
        assert_eq!(lower_quartile(&[8_000, 520, waited, 500, 8_100]), Some(520));
        let rounds = [waited, 130, waited, 120, 140, waited, waited, 110];
        assert_eq!(lower_quartile(&rounds), Some(120));
    }
}
