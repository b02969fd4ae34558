//! The cases that were worked out independently of this code, and the forms that hold in classes
//! of scatters.

use flitcast_proto::PeId;
use flitcast_proto::seeded::SplitMix64;

use super::mixed::time_of as replay;
use super::model::{LinkCost, Run, best_count, messages};
use super::search::DEFAULT_NODES;
use super::tree::Scatter;
use super::*;
use crate::tests::{lengths, shaped, tree, with_root};

fn cost(text: &str) -> LinkCost {
    text.parse().expect("it is a set-up cost")
}

fn on_path(lengths: &[u64], beta: &str) -> (String, Vec<u64>) {
    let tree = tree(&format!("path:{}", lengths.len() + 1));
    let flits = with_root(lengths);
    let plan = plan(&tree, &flits, cost(beta), 0).expect("it is small");
    assert_eq!(plan.bound, plan.time, "{lengths:?}");
    assert_eq!(plan.time, replay(&tree, cost(beta), &plan.sequence));
    let count = |pe| {
        let runs = plan.sequence.iter().filter(|run| run.pe.index() == pe);
        runs.map(|run| run.packets).sum()
    };
    let counts = (1..flits.len()).map(count).collect();
    (cost(beta).exact(plan.time).to_string(), counts)
}

#[test]
fn one_message_has_its_best_count() {
    for (hops, flits, beta, packets, largest, alpha) in [
        (5, 3, "3", 3, 1, "28"),
        (7, 3, "5", 3, 1, "54"),
        (4, 5, "1", 5, 1, "16"),
        (11, 12, "1", 12, 1, "44"),
        (10, 1000, "1/2", 125, 8, "1139"),
        (7, 65536, "500", 28, 2341, "96582"),
        (2, 25, "1", 5, 5, "36"),
    ] {
        let mut lengths = vec![0; hops];
        lengths[hops - 1] = flits;
        let (time, counts) = on_path(&lengths, beta);
        assert_eq!((time.as_str(), counts[hops - 1]), (alpha, packets));
        assert_eq!(flits.div_ceil(packets), largest);
    }
    let (a, b, flits) = (50_000, 2380, 1 << 40);
    let packets = best_count(a, b, flits);
    let value = a * u128::from(packets) + b * u128::from(flits.div_ceil(packets));
    assert_eq!((packets, value), (228_770, 22_877_227_440));
}

#[test]
fn the_best_count_is_the_least_best_one_of_all() {
    let mut random = SplitMix64::new(3);
    for _ in 0..3000 {
        let (a, b) = (random.below(40), random.below(40));
        let flits = 1 + random.below(300);
        let value = |r: u64| a * r + b * flits.div_ceil(r);
        let best = (1..=flits).min_by_key(|&r| (value(r), r));
        let found = best_count(a.into(), b.into(), flits);
        assert_eq!(Some(found), best, "{a} {b} {flits}");
    }
}

/// No product leaves 128 bits at the limits.
#[test]
fn the_largest_numbers_are_reckoned_with() {
    for setup in [1, 1 << 16, 1 << 32] {
        for per_size in [1, 1 << 20, 1 << 36] {
            for flits in [1, 1 << 30, MAX_FLITS] {
                let packets = best_count(setup, per_size, flits);
                assert!((1..=flits).contains(&packets));
            }
        }
    }
}

#[test]
fn equal_messages_on_a_path_have_one_count() {
    for (first, last, flits, beta, time, packets) in [
        (2, 3, 2, "1", "9", 1),
        (3, 6, 12, "2", "80", 2),
        (5, 5, 25, "1", "50", 9),
        (1, 4, 9, "3", "48", 1),
    ] {
        let lengths = (1..=last).map(|pe| if pe >= first { flits } else { 0 });
        let lengths: Vec<u64> = lengths.collect();
        let (best, counts) = on_path(&lengths, beta);
        assert_eq!(best, time);
        let counts = &counts[first - 1..];
        assert!(counts.iter().all(|&count| count == packets), "{counts:?}");
    }
}

fn scatter(tree: &Tree, flits: &[u64], cost: LinkCost) -> Scatter {
    Scatter::new(tree, flits, cost).expect("it is small")
}

/// Ten flits for each of three leaves of two hops, beta = 5: 58 is the best. In grains of two flits a
/// search of four times that finds better than four times 58, and claims nothing.
#[test]
fn a_search_in_grains_proves_nothing() {
    let tree = tree("parents:0,1,0,3,0,5");
    let planned = |flits, beta, nodes| {
        let flits = with_root(&[0, flits, 0, flits, 0, flits]);
        let plan = plan(&tree, &flits, cost(beta), nodes).expect("it is small");
        (plan.time, plan.bound)
    };
    assert_eq!(planned(10, "5", DEFAULT_NODES), (58, 58));
    assert_eq!(planned(40, "20", 0).0, 240);
    for nodes in [1, DEFAULT_NODES] {
        let (time, bound) = planned(40, "20", nodes);
        assert!(time <= 4 * 58 && bound < time, "{time} {bound}");
    }
}

/// Section 5.4: 55 flits at depth 2, four single flits at depth 3, five branches.
#[test]
fn the_largest_tail_is_sent_first() {
    let mut parents = vec!["0".to_owned(), "1".to_owned()];
    let mut lengths = vec![0, 55];
    for branch in 0..4 {
        let first = 3 + 3 * branch;
        parents.extend(["0".to_owned(), first.to_string(), (first + 1).to_string()]);
        lengths.extend([0, 0, 1]);
    }
    let tree = tree(&format!("parents:{}", parents.join(",")));
    let flits = with_root(&lengths);
    let scatter = scatter(&tree, &flits, cost("10"));
    let (best, method) = scatter.best_cut(&EITHER);
    assert_eq!((best.time, method), (131, Method::LargestTailFirst));
    assert_eq!(bounds::from_the_beginning(&scatter), 130);
    // Farthest first, with the best count that the large message has there.
    let farthest = |count: u64| {
        let first = scatter.messages.iter().take(4);
        let singles = first.map(|message| Run::new(message.pe, 1, 1));
        let large = model::even(PeId(2), 55, count);
        let runs: Vec<Run> = singles.chain(large).collect();
        replay(&tree, scatter.cost, &runs)
    };
    assert_eq!((1..=55).map(farthest).min(), Some(157));
    let plan = plan(&tree, &flits, cost("10"), DEFAULT_NODES).expect("it is small");
    assert!(plan.time <= 131 && plan.bound >= 130, "{plan:?}");
}

#[test]
fn single_flits_take_the_time_of_the_closed_form() {
    let mut random = SplitMix64::new(5);
    for seed in 0..50 {
        let tree = tree(&format!("random:{}:{seed}", 3 + random.below(10)));
        let ones = vec![1; tree.len() - 1];
        let plan = plan(&tree, &with_root(&ones), cost("3/2"), 0).expect("it is small");
        let flits = with_root(&ones);
        let form = time_of_single_flits(cost("3/2"), &messages(&tree, &flits));
        assert_eq!((plan.time, plan.bound), (form, form));
        let lengths: Vec<u64> = ones.iter().map(|_| random.below(5)).collect();
        let flits = with_root(&lengths);
        let plan = super::plan(&tree, &flits, cost("0"), 0).expect("it is small");
        let took = replay(&tree, cost("0"), &plan.sequence);
        assert_eq!((plan.time, plan.bound), (took, took));
    }
}

/// A grid of caps gives a schedule and a bound of it.
#[test]
fn long_messages_on_a_path_have_a_proven_gap() {
    let flits: Vec<u64> = (0..50).map(|pe| (pe * pe * 7_919_321) << 5).collect();
    let plan = plan(&tree("path:50"), &flits, cost("700"), 0).expect("it fits");
    let (time, bound) = (plan.time, plan.bound);
    assert!(
        bound <= time && time * 1000 <= bound * 1001,
        "{time} {bound}"
    );
}

#[test]
fn a_set_up_cost_is_an_integer_or_a_fraction() {
    assert_eq!(cost("6/4"), cost("3/2"));
    assert_eq!(cost("3/2").packet(3), 9);
    assert_eq!(cost("0").packet(3), 3);
    for text in " -1 1.5 1/ /2 1/2/3 +1 1/0 99999999999999999999999 1/65537".split(' ') {
        assert!(text.parse::<LinkCost>().is_err(), "{text}");
    }
}

/// No requested order or cut of a message beats the plan without such a request, or its bound.
#[test]
fn no_request_beats_auto_or_the_bound() {
    let mut random = SplitMix64::new(17);
    for seed in 0..60 {
        let pes = 3 + random.below(8);
        let tree = shaped(&["kary", "random", "random"], pes, seed);
        let most = [3, 12, 60][random.below(3) as usize];
        let flits = lengths(pes, |_| random.below(most));
        let beta = ["0", "1/2", "2", "7"][random.below(4) as usize];
        let cost = cost(beta);
        let nodes = [0, 2000][seed as usize % 2];
        let auto = plan(&tree, &flits, cost, nodes).expect("it is small");
        let longest = flits.iter().copied().max().unwrap_or(0);
        let farthest: Vec<PeId> = messages(&tree, &flits).iter().map(|one| one.pe).collect();
        let mut nearest = farthest.clone();
        nearest.sort_by_key(|pe| (tree.depth(*pe), *pe));
        for order in [None, Some(&farthest[..]), Some(&nearest[..])] {
            let of_order = match order {
                Some(order) => plan_in_order(&tree, &flits, cost, order).expect("it is small"),
                None => auto.clone(),
            };
            let case = format!("{seed} {flits:?} {beta} {order:?}");
            assert!(auto.time <= of_order.time, "{case}");
            for count in 1..=longest {
                let split = Split::Count(count);
                let of_split = plan_split(&tree, &flits, cost, &split, order).expect("it is small");
                assert!(of_order.time <= of_split.time, "{case} {count}");
                assert!(
                    auto.bound.max(of_split.bound) <= of_split.time,
                    "{case} {count}"
                );
                if order == Some(&farthest[..]) {
                    let depths = of_split.sequence.iter().map(|run| tree.depth(run.pe));
                    assert!(depths.rev().is_sorted(), "{case} {count}");
                }
            }
        }
    }
}
