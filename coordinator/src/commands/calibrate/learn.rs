//! Learning of the costs of processes from rounds of several kinds, with the filter that also
//! corrects them later (`job/host_costs`).

use std::time::{Duration, Instant};

use flitcast_cluster::job::model::prior;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::rounds::learning::{first_lesson, lesson, lesson_beside_others, would_take};
use flitcast_cluster::rounds::outcome::Outcome;
use flitcast_node::on_processors;
use flitcast_plan::calibration::cost_estimate::{CostEstimate, Observation, Prior};
use flitcast_plan::cost::{COSTS, Host, Hosts};

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
