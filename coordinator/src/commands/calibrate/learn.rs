//! Learning of the costs of processes from rounds of several kinds, with the filter that also
//! corrects them later (`job/host_costs`).

use std::time::{Duration, Instant};

use flitcast_node::on_processors;
use flitcast_plan::calibration::cost_estimate::{CostEstimate, Observation, Prior};
use flitcast_plan::cost::{COSTS, Host, Hosts};

use flitcast_cluster::job::host_costs::prior;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::rounds::learning::{first_lesson, lesson, would_take};
use flitcast_cluster::rounds::outcome::Outcome;

/// The rounds of one kind, with their request.
pub type Run = (Request, Box<Outcome>);

/// Learns the costs of a host like `host` from these runs: from all rounds of each, and from its
/// first one. Iterates for about `time`, but at least once.
pub fn learned(ran: &[Run], host: Host, encrypted: bool, time: Duration) -> CostEstimate<COSTS> {
    let of_run = |(_, outcome): &Run| Some([lesson(outcome)?, first_lesson(outcome)?]);
    let (mut runs, mut lessons): (Vec<&Run>, Vec<Observation>) = Default::default();
    for run in ran {
        if let Some(observations) = of_run(run) {
            runs.push(run);
            lessons.extend(observations);
        }
    }
    let predict = |costs: &[f64; COSTS], index: usize| {
        let run @ (request, outcome) = runs.get(index / 2)?;
        let host = host.with_costs(*costs);
        match index % 2 {
            0 => would_take_later(run, host),
            _ => Some(would_take(request, outcome, &Hosts::one(host))?[..1].to_vec()),
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
