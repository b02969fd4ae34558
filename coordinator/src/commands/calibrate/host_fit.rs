//! What the processes cost, by rounds that were run: the host with which a prediction
//! comes closest to what was measured inside the operation.
//!
//! Pure arithmetic: who predicts is passed in. The measure is |ln(predicted /
//! measured)|, so that a short round counts as much as a long one and twice too much
//! as much as half; the absolute value, not its square, so that a round that something
//! disturbed pulls no harder than any other. The search is Hooke and Jeeves' in the
//! logarithms of the costs: it needs no derivative, which such a measure does not have
//! everywhere. Costs that only show together make a ridge, on which every step along
//! one of them leads down; so steps in directions drawn at random are tried as well.
//! Where nothing depends on a cost, a weak prior keeps it where it was.

use flitcast_proto::cost::{COSTS, Host, Model};
use flitcast_proto::ops::{Brief, Operation};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::seeded::SplitMix64;

/// Rounds of one workload.
#[derive(Clone, Debug)]
pub struct Observation {
    /// What the rounds did.
    pub operation: Operation,
    /// How orders were obeyed, where there were any.
    pub pacing: Pacing,
    /// Bytes of M_i, by PE index.
    pub bytes: Vec<u64>,
    /// What each PE was told beforehand, by PE index.
    pub briefs: Vec<Brief>,
    /// By PE index: when M_i arrived, the median over the rounds; `None` if it is null.
    pub arrivals_ns: Vec<Option<u64>>,
    /// How far the rounds differ: from the quickest to the median, as a part of the
    /// latter.
    pub spread: f64,
}

impl Observation {
    /// The last arrival; 0 of none.
    pub fn round_ns(&self) -> u64 {
        self.arrivals_ns
            .iter()
            .copied()
            .flatten()
            .max()
            .unwrap_or(0)
    }
}

/// By PE index: when M_i will arrive.
pub type Predict<'a> = &'a dyn Fn(&Model, &Observation) -> Vec<Option<u64>>;

/// A fitted host.
#[derive(Clone, Debug)]
pub struct HostFit {
    /// The costs.
    pub host: Host,
    /// Of each observation: what its last arrival is predicted to be with them.
    pub predicted_ns: Vec<u64>,
}

impl HostFit {
    /// How far each prediction is off, in percent of what was measured.
    pub fn residuals_pct(&self, observations: &[Observation]) -> Vec<f64> {
        let pairs = self.predicted_ns.iter().zip(observations);
        pairs
            .map(|(&predicted, observed)| {
                let measured = observed.round_ns().max(1) as f64;
                (predicted as f64 / measured - 1.0) * 100.0
            })
            .collect()
    }
}

/// A cost is looked for within this factor of where the search starts.
const FARTHEST: f64 = 30.0;
/// The first step is this factor, and each further one its square root, ...
const FIRST_STEP: f64 = 2.0;
/// ... until a step is less than this factor.
const LAST_STEP: f64 = 1.03;
/// Directions drawn at random that are tried before a smaller step is.
const DIRECTIONS: usize = 3 * COSTS;
/// What a factor of e away from the start costs: a tenth of a percent of error, for one of the
/// costs. It decides where the observations do not.
const PRIOR: f64 = 0.001;
/// A round that spreads so much counts half.
const HALF_WEIGHT_SPREAD: f64 = 0.1;
/// Where a prediction is missing, or one is where there should be none.
const NO_PREDICTION: f64 = 10.0;

/// Fits the host, from `start`, looking at no more than `most` hosts. `model` gives
/// the model of a host: the edges depend on it, since they are measured from outside.
pub fn fit_host(
    observations: &[Observation],
    start: Host,
    model: &dyn Fn(Host) -> Model,
    predict: Predict<'_>,
    most: usize,
) -> HostFit {
    let scale = start.costs();
    let host = |place: &[f64; COSTS]| {
        let mut all = scale;
        for (cost, log) in all.iter_mut().zip(place) {
            *cost *= log.exp();
        }
        start.with_costs(all)
    };
    let mut looked_at = 0;
    let mut badness = |place: &[f64; COSTS]| {
        looked_at += 1;
        let model = model(host(place));
        let prior: f64 = place.iter().map(|log| PRIOR * log * log).sum();
        (
            prior + misfit(observations, &model, predict),
            looked_at >= most,
        )
    };
    let mut best = [0.0; COSTS];
    let (mut least, mut done) = badness(&best);
    let mut step = FIRST_STEP.ln();
    let mut random = SplitMix64::new(1);
    while step >= LAST_STEP.ln() && !done && !observations.is_empty() {
        let mut tried = best;
        let mut tried_least = least;
        explore(&mut tried, &mut tried_least, step, &mut done, &mut badness);
        if tried_least >= least {
            ridge(
                &mut tried,
                &mut tried_least,
                step,
                &mut done,
                &mut random,
                &mut badness,
            );
        }
        if tried_least >= least {
            step /= 2.0;
            continue;
        }
        // Once more as far in the same direction, and around there.
        while tried_least < least && !done {
            let mut leap = tried;
            for ((leap, tried), best) in leap.iter_mut().zip(tried).zip(best) {
                *leap = within(2.0 * tried - best);
            }
            (best, least) = (tried, tried_least);
            (tried_least, done) = badness(&leap);
            tried = leap;
            explore(&mut tried, &mut tried_least, step, &mut done, &mut badness);
        }
        if tried_least < least {
            (best, least) = (tried, tried_least);
        }
    }
    let host = host(&best);
    let model = model(host);
    let last = |observed| predict(&model, observed).into_iter().flatten().max();
    HostFit {
        host,
        predicted_ns: observations.iter().map(|o| last(o).unwrap_or(0)).collect(),
    }
}

/// A step to either side in each direction in turn, kept where it helps.
fn explore(
    place: &mut [f64; COSTS],
    least: &mut f64,
    step: f64,
    done: &mut bool,
    badness: &mut impl FnMut(&[f64; COSTS]) -> (f64, bool),
) {
    for direction in 0..COSTS {
        for side in [step, -step] {
            if *done {
                return;
            }
            let mut there = *place;
            there[direction] = within(there[direction] + side);
            let bad;
            (bad, *done) = badness(&there);
            if bad < *least {
                (*place, *least) = (there, bad);
                break;
            }
        }
    }
}

/// Steps in directions drawn at random, until one helps.
fn ridge(
    place: &mut [f64; COSTS],
    least: &mut f64,
    step: f64,
    done: &mut bool,
    random: &mut SplitMix64,
    badness: &mut impl FnMut(&[f64; COSTS]) -> (f64, bool),
) {
    for _ in 0..DIRECTIONS {
        let direction = place.map(|_| random.below(2_001) as f64 / 1_000.0 - 1.0);
        for side in [step, -step] {
            if *done {
                return;
            }
            let mut there = *place;
            for (cost, direction) in there.iter_mut().zip(direction) {
                *cost = within(*cost + side * direction);
            }
            let bad;
            (bad, *done) = badness(&there);
            if bad < *least {
                (*place, *least) = (there, bad);
                return;
            }
        }
    }
}

fn within(log: f64) -> f64 {
    log.clamp(-FARTHEST.ln(), FARTHEST.ln())
}

/// How far predictions are off, weighted by how sure the observations are.
fn misfit(observations: &[Observation], model: &Model, predict: Predict<'_>) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for observed in observations {
        let weight = 1.0 / (1.0 + observed.spread / HALF_WEIGHT_SPREAD);
        sum += weight * distance(&predict(model, observed), &observed.arrivals_ns);
        weights += weight;
    }
    if weights > 0.0 { sum / weights } else { 0.0 }
}

/// Half of it is the last arrival's, half the mean of all.
fn distance(predicted: &[Option<u64>], measured: &[Option<u64>]) -> f64 {
    let log = |predicted: u64, measured: u64| {
        (predicted.max(1) as f64 / measured.max(1) as f64)
            .ln()
            .abs()
    };
    let pairs = predicted.iter().zip(measured);
    let distances: Vec<f64> = pairs
        .filter_map(|pair| match pair {
            (Some(predicted), Some(measured)) => Some(log(*predicted, *measured)),
            (None, None) => None,
            _ => Some(NO_PREDICTION),
        })
        .collect();
    let last = |all: &[Option<u64>]| all.iter().copied().flatten().max();
    match (last(predicted), last(measured)) {
        (Some(predicted), Some(measured)) => {
            let mean = distances.iter().sum::<f64>() / distances.len() as f64;
            (log(predicted, measured) + mean) / 2.0
        }
        (None, None) => 0.0,
        _ => NO_PREDICTION,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::job::model::assumed_host;

    const FLIT_BYTES: f64 = 16_384.0;

    fn model(host: Host) -> Model {
        Model {
            host,
            ..Model::unit(0)
        }
    }

    /// A chain in which every cost shows: P_i is i hops away.
    fn toy(model: &Model, observed: &Observation) -> Vec<Option<u64>> {
        let Host {
            wake_ns,
            control_ns,
            flit_ns,
            send_ns_per_byte,
            receive_ns_per_byte,
            end_ns_per_byte,
            message_ns,
            ..
        } = model.host;
        let mut sent = 0.0;
        let arrivals = observed.bytes.iter().enumerate().map(|(hops, &bytes)| {
            let (hops, bytes) = (hops as f64, bytes as f64);
            let flits = (bytes / FLIT_BYTES).ceil();
            let control = match observed.operation {
                Operation::Scatter => 0.0,
                _ => 2.0 * control_ns,
            };
            sent += message_ns + flits * flit_ns + bytes * (send_ns_per_byte + end_ns_per_byte);
            let way = hops * (wake_ns + control + flit_ns) + bytes * receive_ns_per_byte * hops;
            (bytes > 0.0).then_some((sent + way) as u64)
        });
        arrivals.collect()
    }

    /// Rounds of `truth` in which each time is off by up to 3 %, and each `wild`th
    /// observation three times too long.
    fn observe(truth: Host, wild: usize) -> Vec<Observation> {
        let mut random = SplitMix64::new(5);
        let operations = [Operation::Scatter, Operation::ShoulderTap];
        let sizes = [100, 3_000, 17_000, 130_000, 900_000];
        // Many messages, one far away, one nearby.
        let patterns = [[0, 1, 1, 0, 2], [0, 0, 0, 0, 1], [0, 1, 0, 0, 0]];
        let mut all = Vec::new();
        let cases = operations.iter().flat_map(|&operation| {
            let pairs = patterns
                .iter()
                .flat_map(|&pattern| sizes.map(|size| (pattern, size)));
            pairs.map(move |(pattern, size)| (operation, pattern, size))
        });
        for (operation, pattern, size) in cases {
            let mut observed = Observation {
                operation,
                pacing: Pacing::Scheduled,
                bytes: pattern.map(|part| part * size).to_vec(),
                briefs: Vec::new(),
                arrivals_ns: Vec::new(),
                spread: 0.02,
            };
            let factor = if wild > 0 && all.len() % wild == 1 {
                3.0
            } else {
                1.0
            };
            let arrivals = toy(&model(truth), &observed).into_iter();
            observed.arrivals_ns = arrivals
                .map(|ns| {
                    let noise = 0.97 + random.below(60) as f64 / 1000.0;
                    ns.map(|ns| (ns as f64 * factor * noise) as u64)
                })
                .collect();
            all.push(observed);
        }
        all
    }

    fn truth() -> Host {
        Host {
            wake_ns: 70_000.0,
            control_ns: 2_000.0,
            flit_ns: 9_000.0,
            send_ns_per_byte: 0.4,
            receive_ns_per_byte: 0.3,
            end_ns_per_byte: 0.1,
            message_ns: 60_000.0,
            ..assumed_host()
        }
    }

    #[test]
    fn known_costs_are_found_despite_wild_rounds() {
        for wild in [0, 7] {
            let observations = observe(truth(), wild);
            let fit = fit_host(&observations, assumed_host(), &model, &toy, 3_000);
            let off = fit.residuals_pct(&observations);
            let good = off.iter().filter(|off| off.abs() < 6.0).count();
            let wild_ones = (1..observations.len()).step_by(wild.max(1)).count();
            let wild_ones = if wild > 0 { wild_ones } else { 0 };
            assert_eq!(good, observations.len() - wild_ones, "{off:?}");
            // What the toy tells apart: a flit goes with a hop, a message or its bytes.
            let shown = |host: &Host| {
                let a_byte = host.send_ns_per_byte + host.end_ns_per_byte;
                [
                    host.wake_ns + host.flit_ns,
                    host.message_ns + host.flit_ns,
                    host.receive_ns_per_byte,
                    a_byte + host.flit_ns / FLIT_BYTES,
                ]
            };
            for (found, truth) in shown(&fit.host).into_iter().zip(shown(&truth())) {
                assert!(
                    (found / truth - 1.0).abs() < 0.15,
                    "{found} for {truth}: {:?}",
                    fit.host
                );
            }
        }
    }

    #[test]
    fn what_nothing_depends_on_stays_where_it_was() {
        let blind = |_: &Model, observed: &Observation| observed.arrivals_ns.clone();
        let observations = observe(truth(), 0);
        let fit = fit_host(&observations, assumed_host(), &model, &blind, 1_000);
        assert_eq!(fit.host, assumed_host());
        assert!(
            fit.residuals_pct(&observations)
                .iter()
                .all(|&off| off == 0.0)
        );
        assert_eq!(
            fit_host(&[], assumed_host(), &model, &toy, 1_000).host,
            assumed_host()
        );
    }

    #[test]
    fn no_more_hosts_are_looked_at_than_allowed() {
        let observations = observe(truth(), 0);
        let looks = Cell::new(0);
        let counting = |model: &Model, observed: &Observation| {
            looks.set(looks.get() + 1);
            toy(model, observed)
        };
        fit_host(&observations, assumed_host(), &model, &counting, 50);
        // The last one is for the residuals.
        assert!(looks.get() <= 51 * observations.len(), "{}", looks.get());
    }

    #[test]
    fn a_prediction_that_is_not_there_is_as_bad_as_can_be() {
        assert_eq!(distance(&[None, Some(3)], &[None, Some(3)]), 0.0);
        assert_eq!(distance(&[None, None], &[None, None]), 0.0);
        assert_eq!(distance(&[None, None], &[None, Some(3)]), NO_PREDICTION);
        assert!(distance(&[Some(3), Some(3)], &[None, Some(3)]) > 2.0);
    }
}
