//! Estimation of costs from rounds as they are run.
//!
//! The costs are a normal distribution of their logarithms. A round yields the arrival times of its
//! messages, and the prediction yields the expected ones. The most likely costs given both are
//! found by the Gauss-Newton method with Huber's weights, so that a disturbed round counts little
//! (an iterated extended Kalman filter). Costs that do not influence a round keep their values and
//! uncertainties, apart from what all costs have in common: a faster processor makes all of them
//! lower.
//!
//! A sitting is a sequence of rounds with short pauses, in which the machine does the same other
//! work. The next sitting begins with the median of the earlier ones, and with the uncertainty that
//! machines have between sittings, so that its first rounds outweigh all earlier ones.
//!
//! This module is pure arithmetic. The coordinator defines the costs and the rounds, and stores the
//! results.

type Matrix<const N: usize> = [[f64; N]; N];

/// Maximum factor between a learned cost and the assumed one.
const FARTHEST: f64 = 30.0;
/// Residual, in deviations, from which residuals count less (Huber's constant).
const HUBER: f64 = 1.345;
/// Step for numerical derivatives.
const SLOPE: f64 = 0.1;
/// Maximum factor by which one iteration changes a cost, as a logarithm.
const LONGEST_STEP: f64 = std::f64::consts::LN_2;
/// Length of a step that ends the iterations.
const SHORT_STEP: f64 = 0.01;

/// The assumed costs and the parameters of learning.
#[derive(Clone, Copy, Debug)]
pub struct Prior<const N: usize> {
    /// Costs for unmeasured hosts; learned costs stay near them.
    pub costs: [f64; N],
    /// Uncertainties of `costs` apart from the common factor: standard deviations of their
    /// logarithms.
    pub log_deviations: [f64; N],
    /// Uncertainty of the factor that all costs have in common.
    pub common: f64,
    /// Minimum standard deviation, because machines and rounds change.
    pub min_deviation: f64,
    /// Standard deviation of the drift of a cost between two lessons.
    pub drift: f64,
    /// Standard deviation of the drift of the common factor between two lessons.
    pub common_drift: f64,
    /// Standard deviation of the common factor's difference between two sittings.
    pub sitting: f64,
    /// Standard deviation of a cost's difference between two sittings, apart from the common factor.
    pub sitting_each: f64,
    /// Maximum number of iterations; each takes N + 1 predictions.
    pub iterations: usize,
}

/// The estimate of the costs.
#[derive(Clone, Debug, PartialEq)]
pub struct CostEstimate<const N: usize> {
    /// Most likely costs.
    pub costs: [f64; N],
    /// Covariances of their logarithms.
    pub covariance: Matrix<N>,
    /// Number of rounds that they were learned from.
    pub rounds: u64,
}

/// The measurements of rounds of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Measured times in nanoseconds; as many as the lesson's prediction has.
    pub times_ns: Vec<f64>,
    /// Relative standard deviation of each time.
    pub deviation: f64,
    /// Number of rounds whose medians these are.
    pub rounds: u64,
}

/// Predicts the times of a lesson, in nanoseconds, for each of several sets of costs, from these and the
/// lesson's index: as many times as the lesson has, or `None` if there is no prediction.
pub type Predict<'a, const N: usize> = dyn Fn(&[[f64; N]], usize) -> Vec<Option<Vec<f64>>> + 'a;

impl<const N: usize> CostEstimate<N> {
    /// Returns the assumed costs.
    pub fn assumed(prior: &Prior<N>) -> CostEstimate<N> {
        let own = |i: usize| prior.log_deviations[i] * prior.log_deviations[i];
        CostEstimate {
            costs: prior.costs,
            covariance: drifted(&[[0.0; N]; N], own, prior.common),
            rounds: 0,
        }
    }

    /// Returns whether this can be an estimate: all values are finite, and positive where required.
    pub fn is_sound(&self) -> bool {
        let is_positive = |cost: &f64| cost.is_finite() && *cost > 0.0;
        (0..N).all(|i| self.covariance[i][i] > 0.0)
            && self.costs.iter().all(is_positive)
            && self.covariance.as_flattened().iter().all(|c| c.is_finite())
            && inverse(&self.covariance).is_some()
    }

    /// Returns the estimate at the begin of a new sitting: the median of the costs now and at the
    /// ends of `earlier` sittings, so that one that was odd does not count.
    #[must_use]
    pub fn in_new_sitting(&self, earlier: &[[f64; N]], prior: &Prior<N>) -> CostEstimate<N> {
        let median = |i: usize| {
            let all = earlier.iter().chain([&self.costs]);
            let mut logs: Vec<f64> = all.map(|costs| costs[i].ln()).collect();
            logs.sort_by(f64::total_cmp);
            let middle = logs.len() / 2;
            f64::midpoint(logs[middle], logs[(logs.len() - 1) / 2]).exp()
        };
        let own = |_: usize| prior.sitting_each * prior.sitting_each;
        let covariance = drifted(&self.covariance, own, prior.sitting);
        CostEstimate {
            costs: std::array::from_fn(median),
            covariance: unsure(covariance, prior),
            rounds: self.rounds,
        }
    }

    /// Returns the estimate after these lessons.
    #[must_use]
    pub fn after(
        &self,
        lessons: &[Observation],
        prior: &Prior<N>,
        predict: &Predict<'_, N>,
    ) -> CostEstimate<N> {
        let own = |_: usize| prior.drift * prior.drift;
        let drifted = drifted(&self.covariance, own, prior.common_drift);
        let Some(information) = inverse(&drifted) else {
            return self.clone();
        };
        let start = self.costs.map(f64::ln);
        let problem = Problem {
            lessons,
            predict,
            start,
            information,
            bounds: prior.costs.map(f64::ln),
        };
        let mut at = start;
        let Some(mut here) = problem.linearised(&at) else {
            return self.clone();
        };
        for _ in 0..prior.iterations {
            let Some(inverse) = inverse(&here.hessian) else {
                break;
            };
            let step = times(&inverse, &here.gradient);
            let longest = step.iter().fold(0.0_f64, |most, part| most.max(part.abs()));
            if longest < SHORT_STEP {
                break;
            }
            // The step is shortened until it helps, because the linearisation holds near `at` only.
            let mut part = (LONGEST_STEP / longest).min(1.0);
            let better = loop {
                let there = problem.bounded(&at, &step, part);
                match problem.linearised(&there) {
                    Some(found) if found.badness < here.badness => break Some((there, found)),
                    _ if part * longest < SHORT_STEP => break None,
                    _ => part /= 2.0,
                }
            };
            let Some(found) = better else { break };
            (at, here) = found;
        }
        let covariance = inverse(&here.hessian).unwrap_or(drifted);
        CostEstimate {
            costs: at.map(f64::exp),
            covariance: unsure(covariance, prior),
            rounds: self.rounds + lessons.iter().map(|lesson| lesson.rounds).sum::<u64>(),
        }
    }
}

/// Returns the covariances after a drift: of each cost by its `own` variance, and of all by a common
/// factor with the deviation `common`.
fn drifted<const N: usize>(
    covariance: &Matrix<N>,
    own: impl Fn(usize) -> f64,
    common: f64,
) -> Matrix<N> {
    let entry = |i: usize, j: usize| {
        let own = if i == j { own(i) } else { 0.0 };
        covariance[i][j] + own + common * common
    };
    std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)))
}

/// Limits the variances: at least the minimum of the prior, at most those of the start.
fn unsure<const N: usize>(covariance: Matrix<N>, prior: &Prior<N>) -> Matrix<N> {
    let scale: [f64; N] = std::array::from_fn(|i| {
        let variance = covariance[i][i];
        let least = prior.min_deviation * prior.min_deviation;
        let most = prior.log_deviations[i] * prior.log_deviations[i] + prior.common * prior.common;
        (variance.clamp(least, most) / variance).sqrt()
    });
    let row = |i: usize| std::array::from_fn(|j| scale[i] * covariance[i][j] * scale[j]);
    std::array::from_fn(row)
}

struct Problem<'a, const N: usize> {
    lessons: &'a [Observation],
    predict: &'a Predict<'a, N>,
    start: [f64; N],
    information: Matrix<N>,
    bounds: [f64; N],
}

/// The linearised problem at one point.
struct Linearised<const N: usize> {
    badness: f64,
    gradient: [f64; N],
    hessian: Matrix<N>,
}

impl<const N: usize> Problem<'_, N> {
    fn bounded(&self, at: &[f64; N], step: &[f64; N], part: f64) -> [f64; N] {
        std::array::from_fn(|i| {
            let farthest = FARTHEST.ln();
            let bound = self.bounds[i];
            (at[i] + part * step[i]).clamp(bound - farthest, bound + farthest)
        })
    }

    /// Returns the logarithms of a lesson's times at a point, and at each point behind it: the costs of
    /// `at`, and those with one of them increased.
    fn predicted(&self, at: &[f64; N], lesson: usize) -> Vec<Option<Vec<f64>>> {
        let increased = (0..N).map(|i| {
            let mut there = *at;
            there[i] += SLOPE;
            there.map(f64::exp)
        });
        let points: Vec<[f64; N]> = [at.map(f64::exp)].into_iter().chain(increased).collect();
        let wanted = self.lessons[lesson].times_ns.len();
        let logarithms = |times: Option<Vec<f64>>| {
            let times = times.filter(|times| times.len() == wanted)?;
            Some(times.iter().map(|ns| ns.max(1.0).ln()).collect())
        };
        let all = (self.predict)(&points, lesson).into_iter();
        all.map(logarithms).collect()
    }

    /// Linearises the problem; returns `None` if no lesson has a prediction.
    fn linearised(&self, at: &[f64; N]) -> Option<Linearised<N>> {
        let away: [f64; N] = std::array::from_fn(|i| at[i] - self.start[i]);
        let pull = times(&self.information, &away);
        let mut here = Linearised {
            badness: (0..N).map(|i| away[i] * pull[i]).sum::<f64>() / 2.0,
            gradient: pull.map(|part| -part),
            hessian: self.information,
        };
        let mut has_prediction = false;
        for (index, lesson) in self.lessons.iter().enumerate() {
            let all = self.predicted(at, index);
            let Some((Some(predicted), increased)) = all.split_first() else {
                continue;
            };
            has_prediction = true;
            for (place, &expected) in predicted.iter().enumerate() {
                let off = (lesson.times_ns[place].max(1.0).ln() - expected) / lesson.deviation;
                // Beyond Huber's constant, the badness grows linearly with the residual.
                let weight = (HUBER / off.abs()).min(1.0);
                here.badness += match weight < 1.0 {
                    true => HUBER * (off.abs() - HUBER / 2.0),
                    false => off * off / 2.0,
                };
                let slope: [f64; N] = std::array::from_fn(|i| {
                    let there = increased.get(i).and_then(Option::as_ref);
                    let there = there.map_or(expected, |there| there[place]);
                    (there - expected) / SLOPE / lesson.deviation
                });
                for i in 0..N {
                    here.gradient[i] += weight * slope[i] * off;
                    for j in 0..N {
                        here.hessian[i][j] += weight * slope[i] * slope[j];
                    }
                }
            }
        }
        has_prediction.then_some(here)
    }
}

fn times<const N: usize>(matrix: &Matrix<N>, vector: &[f64; N]) -> [f64; N] {
    std::array::from_fn(|i| (0..N).map(|j| matrix[i][j] * vector[j]).sum())
}

/// Inverts a positive definite matrix by Cholesky decomposition; returns `None` for any other
/// matrix.
fn inverse<const N: usize>(matrix: &Matrix<N>) -> Option<Matrix<N>> {
    let mut lower = [[0.0; N]; N];
    for i in 0..N {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let left = matrix[i][j] - dot;
            lower[i][j] = match i == j {
                true if left > 0.0 => left.sqrt(),
                true => return None,
                false => left / lower[j][j],
            };
        }
    }
    let mut found = [[0.0; N]; N];
    for column in 0..N {
        let mut solved: [f64; N] = [0.0; N];
        for i in 0..N {
            let dot: f64 = (0..i).map(|k| lower[i][k] * solved[k]).sum();
            let unit = if i == column { 1.0 } else { 0.0 };
            solved[i] = (unit - dot) / lower[i][i];
        }
        for i in (0..N).rev() {
            let dot: f64 = (i + 1..N).map(|k| lower[k][i] * solved[k]).sum();
            solved[i] = (solved[i] - dot) / lower[i][i];
        }
        for (row, value) in found.iter_mut().zip(solved) {
            row[column] = value;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests;
