use flitcast_proto::seeded::SplitMix64;

use super::*;

const COSTS: usize = 7;
const UNSURE: f64 = 1.1;

/// Costs of a wake-up, a control frame, a flit, a byte sent, a byte received, a byte at an end,
/// and a message.
const PRIOR: Prior<COSTS> = Prior {
    costs: [15e3, 5e3, 6e3, 0.12, 0.12, 0.05, 20e3],
    log_deviations: [UNSURE; COSTS],
    common: 0.0,
    min_deviation: 0.03,
    drift: 0.02,
    common_drift: 0.0,
    sitting: 0.3,
    sitting_each: 0.02,
    iterations: 10,
};
const TRUTH: [f64; COSTS] = [60e3, 9e3, 4e3, 0.3, 0.2, 0.1, 45e3];

/// Hops, messages, bytes and control frames of rounds of one kind.
const ROUNDS: [[f64; 4]; 6] = [
    [1.0, 7.0, 1e3, 0.0],
    [3.0, 7.0, 1e3, 20.0],
    [7.0, 1.0, 1e6, 0.0],
    [1.0, 7.0, 2e6, 20.0],
    [2.0, 3.0, 6e4, 8.0],
    [7.0, 7.0, 3e5, 20.0],
];

fn times_of(costs: &[f64; COSTS], round: usize) -> Option<Vec<f64>> {
    let [hops, messages, bytes, control_items] = ROUNDS[round % ROUNDS.len()];
    let [wake, control, flit, send, receive, end, message] = *costs;
    let flits = bytes / 65_536.0;
    let last = hops * (wake + flit)
        + messages * message
        + bytes * (send + receive + end)
        + flits * flit
        + control_items * control;
    Some(vec![last, last / 2.0 + wake])
}

/// Returns a prediction of lessons that all take the same times.
fn each(
    times: impl Fn(&[f64; COSTS]) -> Option<Vec<f64>>,
) -> impl Fn(&[[f64; COSTS]], usize) -> Vec<Option<Vec<f64>>> {
    move |points, _| points.iter().map(&times).collect()
}

/// Predicts lessons whose index is that of their round.
fn each_of(points: &[[f64; COSTS]], round: usize) -> Vec<Option<Vec<f64>>> {
    each(|costs| times_of(costs, round))(points, round)
}

fn observation(times_ns: Vec<f64>, deviation: f64, rounds: u64) -> Observation {
    Observation {
        times_ns,
        deviation,
        rounds,
    }
}

fn lessons(wild: &[usize], count: usize) -> Vec<Observation> {
    let mut chance = SplitMix64::new(3);
    let mut noise = || 0.97 + chance.below(60) as f64 / 1000.0;
    let lesson = |round: usize| {
        let factor = if wild.contains(&round) { 4.0 } else { 1.0 };
        let times = times_of(&TRUTH, round).expect("each has a prediction");
        let times = times.iter().map(|ns| ns * factor * noise());
        observation(times.collect(), 0.1, 5)
    };
    (0..count).map(lesson).collect()
}

#[track_caller]
fn assert_predicts(learned: &CostEstimate<COSTS>, within: f64) {
    for round in 0..ROUNDS.len() {
        let (found, truth) = (times_of(&learned.costs, round), times_of(&TRUTH, round));
        for (found, truth) in found.into_iter().flatten().zip(truth.into_iter().flatten()) {
            let off = (found / truth - 1.0).abs();
            assert!(off < within, "{off} in round {round}: {learned:?}");
        }
    }
}

/// Wild rounds count little.
#[test]
fn a_few_lessons_at_once_predict_rounds() {
    for (wild, count, within) in [(&[][..], 6, 0.08), (&[4, 7, 15], 24, 0.15)] {
        let all = lessons(wild, count);
        let learned = CostEstimate::assumed(&PRIOR).after(&all, &PRIOR, &each_of);
        assert_predicts(&learned, within);
        assert_eq!(learned.rounds, 5 * count as u64);
        assert!(learned.is_sound());
    }
}

#[test]
fn single_lessons_give_the_same_costs() {
    let mut learned = CostEstimate::assumed(&PRIOR);
    for (round, lesson) in lessons(&[], 30).into_iter().enumerate() {
        let predict = each(move |costs| times_of(costs, round));
        learned = learned.after(&[lesson], &PRIOR, &predict);
        assert!(learned.is_sound(), "{learned:?}");
    }
    assert_predicts(&learned, 0.12);
}

#[test]
fn costs_without_lessons_stay_and_stay_uncertain() {
    let predict = each(|costs| Some(vec![costs[6] * 3.0]));
    let lesson = observation(vec![90e3], 0.05, 1);
    let before = CostEstimate::assumed(&PRIOR);
    let learned = before.after(&[lesson], &PRIOR, &predict);
    assert!((learned.costs[6] / 30e3 - 1.0).abs() < 0.02);
    assert!(learned.covariance[6][6] < 0.01);
    for i in 0..COSTS - 1 {
        let (was, is) = (before.costs[i], learned.costs[i]);
        assert!((is / was - 1.0).abs() < 1e-9, "cost {i}: {is} for {was}");
        assert!((learned.covariance[i][i] / (UNSURE * UNSURE) - 1.0).abs() < 1e-6);
    }
}

#[test]
fn no_cost_exceeds_its_bound_whatever_is_measured() {
    let predict = each(|costs| Some(vec![costs[6]]));
    let lesson = observation(vec![1e15], 0.01, 1);
    let mut learned = CostEstimate::assumed(&PRIOR);
    for _ in 0..50 {
        learned = learned.after(std::slice::from_ref(&lesson), &PRIOR, &predict);
    }
    assert!(learned.costs[6] <= 20e3 * FARTHEST * 1.001);
    assert!(learned.is_sound());
}

#[test]
fn without_a_prediction_nothing_is_learned() {
    let learned = CostEstimate::assumed(&PRIOR);
    let none = each(|_| None);
    assert_eq!(learned.after(&lessons(&[], 3), &PRIOR, &none), learned);
    let short = each(|_| Some(vec![1.0]));
    assert_eq!(learned.after(&lessons(&[], 3), &PRIOR, &short), learned);
    let mut broken = learned;
    broken.covariance[2][2] = f64::NAN;
    assert!(!broken.is_sound());
}

/// A machine whose costs are mostly alike, as processors differ.
const ALIKE: Prior<COSTS> = Prior {
    log_deviations: [0.5; COSTS],
    common: 0.9,
    common_drift: 0.05,
    ..PRIOR
};

/// Returns the estimate after single rounds that take `factors` of the true times.
fn after_rounds(mut learned: CostEstimate<COSTS>, factors: &[f64]) -> CostEstimate<COSTS> {
    for (round, factor) in factors.iter().enumerate() {
        let times = times_of(&TRUTH, round).expect("each has a prediction");
        let lesson = observation(times.iter().map(|ns| ns * factor).collect(), 0.25, 1);
        let predict = each(move |costs| times_of(costs, round));
        learned = learned.after(&[lesson], &ALIKE, &predict);
    }
    learned
}

#[test]
fn one_kind_of_rounds_reveals_a_faster_processor() {
    let prior = CostEstimate::assumed(&ALIKE);
    let faster = prior.costs.map(|cost| cost / 3.0);
    let predict = each(|costs| times_of(costs, 1));
    let lesson = observation(times_of(&faster, 1).expect("each has a prediction"), 0.1, 9);
    let learned = prior.after(&[lesson], &ALIKE, &predict);
    for (i, (is, truth)) in learned.costs.iter().zip(faster).enumerate() {
        let off = (is / truth).ln().abs();
        assert!(off < 0.35, "cost {i}: {off}");
    }
}

#[test]
fn a_loaded_sitting_does_not_outlast_quiet_ones() {
    let usual = CostEstimate::assumed(&ALIKE).after(&lessons(&[], 6), &ALIKE, &each_of);
    let mut earlier = vec![usual.costs];
    let quiet = after_rounds(usual.in_new_sitting(&[], &ALIKE), &[1.0; 6]);
    earlier.push(quiet.costs);
    let loaded = quiet.in_new_sitting(&earlier, &ALIKE);
    let loaded = after_rounds(loaded, &[2.2; 12]);
    let next = loaded.in_new_sitting(&earlier, &ALIKE);
    // At once, before any round.
    assert_predicts(&next, 0.25);
}

#[test]
fn an_odd_first_sitting_is_forgotten_within_three_rounds() {
    let odd = after_rounds(CostEstimate::assumed(&ALIKE), &[2.5; 30]);
    let next = after_rounds(odd.in_new_sitting(&[], &ALIKE), &[1.0; 3]);
    assert_predicts(&next, 0.25);
}

#[test]
fn a_disturbed_round_moves_a_known_machine_little() {
    let usual = CostEstimate::assumed(&ALIKE).after(&lessons(&[], 6), &ALIKE, &each_of);
    assert_predicts(&after_rounds(usual, &[1.0, 6.0]), 0.25);
}
