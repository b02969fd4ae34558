//! Plans over covers, trees that share no arc, replayed flit by flit.

use std::collections::{BTreeMap, BTreeSet};

use super::replay::{list, number, planned_of, replay};

/// Control items of a gather: on each tree a token down and a certificate up every edge, an order to
/// every PE whose subtree has flits, and no edge with two items or flits in one direction in a step.
#[test]
fn a_gather_lists_what_synchronises_each_tree() {
    for (network, lengths) in [
        ("torus:3x3", "equal:2"),
        ("mesh:3x4 --root 4", "0,0,5,0,1,0,0,9,0,0,2"),
        ("hypercube:3", "uniform:0..6:1"),
        ("ring:5", "equal:0"),
    ] {
        for deal in ["whole", "striped"] {
            let line = format!("--network {network} --cover --lengths {lengths} --deal {deal}");
            let plan = planned_of("gather", &line);
            let pes = number(&plan, "pes");
            let control = list(&plan, "control");
            let mut used = BTreeSet::new();
            for item in control {
                let crossing = ["step", "from", "to"].map(|key| number(item, key));
                assert!(used.insert(crossing), "{line}: {item}");
            }
            let mut first = BTreeMap::new();
            for hop in list(&plan, "crossings") {
                let [from, to, begin, flits] =
                    ["from", "to", "first_step", "flits"].map(|key| number(hop, key));
                let steps = (0..flits).map(|flit| [begin + flit, from, to]);
                let before = used.len();
                used.extend(steps);
                assert_eq!(used.len() as u64, before as u64 + flits, "{line}: {hop}");
                let (step, sum) = first.entry([from, to]).or_insert((begin, 0));
                *step = begin.min(*step);
                *sum += flits;
            }
            let trees = list(&plan, "trees");
            for (index, tree) in trees.iter().enumerate() {
                for pe in 1..pes {
                    let parent = tree[pe as usize].as_u64().expect("a parent");
                    let of_kind = |kind: &str, from: u64, to: u64| {
                        let mut items = control.iter().filter(|item| {
                            item["tree"] == index
                                && item["kind"] == kind
                                && item["from"] == from
                                && item["to"] == to
                        });
                        let one = items.next();
                        assert_eq!(items.next(), None, "{line}");
                        one
                    };
                    let token = of_kind("token", parent, pe).expect("a token");
                    let certificate = of_kind("certificate", pe, parent).expect("a certificate");
                    let certified = number(certificate, "step");
                    assert!(number(token, "step") < certified, "{line}");
                    let stream = first.get(&[pe, parent]);
                    let flits = stream.map_or(0, |(_, flits)| *flits);
                    assert_eq!(number(certificate, "stream_flits"), flits, "{line}");
                    let order = of_kind("order", parent, pe);
                    let begins = order.map(|order| {
                        assert!(number(order, "step") > certified, "{line}");
                        let after = number(order, "after_steps");
                        assert!(after >= number(certificate, "lag_steps"), "{line}");
                        number(order, "step") + after
                    });
                    assert_eq!(begins, stream.map(|(step, _)| *step), "{line}");
                }
            }
            let summary = planned_of("gather", &format!("{line} --summary"));
            assert_eq!(number(&summary, "control_items"), control.len() as u64);
        }
    }
}

/// One tree for each port of P0: arcs are shared, and no arc carries two flits in a step.
#[test]
fn trees_that_share_arcs_are_planned_one_message_after_the_other() {
    let networks = [
        ("mesh:4x4 --root 5", 4),
        ("mesh:3x4 --root 4", 3),
        ("debruijn:2:4 --root 5", 3),
        ("hypercube:3 --root 6", 3),
        ("complete:6", 5),
        ("mesh:1x6", 1),
        ("complete:1", 1),
    ];
    for (seed, (network, trees)) in networks.into_iter().enumerate() {
        for lengths in [format!("uniform:0..5:{seed}"), "equal:8".to_owned()] {
            for deal in ["auto", "whole", "striped", "levelled"] {
                let line = format!("--network {network} --cover --shared --lengths {lengths}");
                let plan = planned_of("scatter", &format!("{line} --deal {deal}"));
                assert_eq!(list(&plan, "trees").len(), trees, "{network}");
                let steps = replay(&plan);
                assert!(steps >= number(&plan, "bound_steps"), "{line}");
            }
        }
    }
}

#[test]
fn unequal_lengths_keep_the_rules() {
    let networks = "ring:7|mesh:3x4 --root 4|torus:3x4 --root 7|torus:2x5|hypercube:3 --root 6|\
        debruijn:2:3 --root 3|complete:6|mesh:1x6|complete:1";
    for (seed, network) in networks.split('|').enumerate() {
        let line = format!("--network {network} --cover --lengths uniform:0..5:{seed} --deal");
        let scatters = ["whole", "striped", "levelled"].map(|deal| {
            let scatter = replay(&planned_of("scatter", &format!("{line} {deal}")));
            let gather = replay(&planned_of("gather", &format!("{line} {deal}")));
            assert!(scatter <= gather, "{network}");
            scatter
        });
        let best = replay(&planned_of("scatter", &format!("{line} auto")));
        assert_eq!(Some(best), scatters.into_iter().min(), "{network}");
        replay(&planned_of("gather", &format!("{line} auto")));
        for flits in [0, 1, 7] {
            let line = format!("--network {network} --cover --size {flits}");
            let plan = planned_of("broadcast", &line);
            replay(&plan);
            let is_relayed = list(&plan, "crossings").iter().any(|hop| hop["from"] != 0);
            assert_eq!(number(&plan, "kept_flits") > 0, is_relayed, "{line}");
        }
    }
}
