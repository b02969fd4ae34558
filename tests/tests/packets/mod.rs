//! Plans in packets with set-up costs: the output is compared with independently computed cases,
//! replayed packet by packet, and impossible requests are rejected; also rounds whose messages are
//! sent in packets.

mod brute_force;
mod replay;
mod rounds;

use flitcast_proto::seeded::SplitMix64;
use flitcast_tests::{numbers, parsed, rows};
use replay::{FLIT, replay, replay_certified, ticks};
use serde_json::Value;

use crate::replay::{list, number};

#[track_caller]
fn planned(line: &str) -> Value {
    parsed(&format!("plan {line} --format json"))
}

#[test]
fn scatters_and_their_mirrors_take_what_was_worked_out() {
    for [rest, time] in rows(
        r#"
        --tree parents:0,1,2,0,4,5,6 --lengths 0,0,3,0,0,0,1 --setup 3/2 | "27/2"
        --tree parents:0,1,2,0,4,5,6 --lengths 0,0,3,0,0,0,1 --setup 2 | 16
        --tree parents:0,1,2,0,4,5,6 --lengths 0,0,3,0,0,0,1 --setup 5/2 | "37/2"
        --tree parents:0,0,1,2 --lengths 0,0,3,4 --setup 1 | 12
        --tree parents:0,0,1,2,3,5,5 --lengths 0,0,0,4,1,1,0 --setup 2 | 17
        --tree path:6 --lengths 2,3,0,2,1 --setup 2 | 19
        --tree path:6 --lengths 9,0,1,0,12 --setup 3 | 48
        --tree path:8 --lengths 40,7,19,3,25,0,8 --setup 5 | 137
        --tree path:5 --lengths 2,2,0,2 --setup 1 | 10
        --tree path:7 --lengths 0,0,12,12,12,12 --setup 2 | 80
        --tree path:3 --lengths 0,25 --setup 1 | 36
        --tree path:11 --lengths 0,0,0,0,0,0,0,0,0,1000 --setup 1/2 | 1139
        --tree star:4 --lengths 3,0,2 --setup 0 | 5
        --tree star:4 --lengths 0,0,0 --setup 7 | 0
    "#,
    ) {
        let scatter = planned(&format!("scatter {rest}"));
        let gather = planned(&format!("gather {rest}"));
        assert_eq!(replay(&scatter), replay(&gather), "{rest}");
        assert_eq!(scatter["time"].to_string(), time, "{rest}");
        assert_eq!(scatter["proof"], "optimal", "{rest}");
        assert_eq!(gather["algorithm"], "mirror");
    }
}

/// Paper 003, section 4.1: all four ways to scatter farthest destination first, and two that are
/// faster for 1 < beta < 3.
#[test]
fn each_order_and_cut_takes_the_time_in_the_thesis() {
    let thesis = "--tree parents:0,1,2,0,4,5,6 --lengths 0,0,3,0,0,0,1";
    let ways = [
        ("--order fdf --packets 1", "fdf", [4, 10]),
        ("--order fdf --packets 2", "fdf", [5, 8]),
        ("--packets sequence:7x1,3x1,3x2", "given", [5, 8]),
        ("--order fdf --packets 3", "fdf", [6, 6]),
        ("--order given:3,7 --packets 1", "given", [5, 7]),
        ("--order nearest-first --packets 1", "nearest-first", [5, 7]),
        ("--packets sequence:3x2,7x1,3x1", "given", [5, 6]),
    ];
    for (beta, twice) in [("1", 2), ("3/2", 3), ("2", 4), ("5/2", 5), ("3", 6)] {
        let mut of_fdf = Vec::new();
        for (way, name, [per_setup, constant]) in ways {
            let plan = planned(&format!("scatter {thesis} --setup {beta} {way}"));
            let time = (per_setup * twice + 2 * constant) * FLIT / 2;
            assert_eq!(ticks(&plan, "time"), time, "beta {beta}, {way}");
            assert_eq!(plan["algorithm"], name, "beta {beta}, {way}");
            assert_eq!(replay(&plan), time, "beta {beta}, {way}");
            if name == "fdf" {
                of_fdf.push(time);
            }
        }
        // The best cut in this order, and the best of everything.
        let fdf = planned(&format!("scatter {thesis} --setup {beta} --order fdf"));
        assert_eq!(of_fdf.iter().min(), Some(&ticks(&fdf, "time")));
        assert_eq!(number(&list(&fdf, "packets")[0], "pe"), 7);
        let search = planned(&format!("scatter {thesis} --setup {beta} --order search"));
        assert!(ticks(&search, "time") <= ticks(&fdf, "time"));
        assert_eq!(fdf["bound"], search["bound"]);
    }
}

#[test]
fn certification_takes_what_was_worked_out() {
    // The cap, the lags, the times of the streams, the orders, and when P0 has the last certificate and the
    // last message.
    for [rest, cap, lags, streams, after, times] in rows(
        "
        --tree path:6 --lengths 2,3,0,2,1 --packets cap:1 | 1 | 6 6 9 3 0 | 24 18 9 9 3 | 6 6 9 3 3 | 30 63
        --tree path:6 --lengths 2,3,0,2,1 --packets cap:2 | 2 | 13 10 10 3 0 | 18 14 7 7 3 | 13 10 10 3 1 | 30 64
        --tree parents:0,0,1,1,2,3 --lengths 3,4,2,5,6,7 --packets cap:3 | 3 | 6 3 4 0 0 0 | 31 18 17 9 10 13 | 6 34 12 0 34 8 | 18 76
        --tree parents:0,0,1,1,2,3 --lengths 3,4,2,5,6,7 | 7 | 10 5 8 0 0 0 | 25 14 13 7 8 9 | 22 5 22 12 0 14 | 18 68
    ",
    ) {
        let plan = planned(&format!("gather {rest} --setup 2 --algorithm certification"));
        let found = ["certified", "time"].map(|key| number(&plan, key));
        assert_eq!(found[..], numbers(times), "{rest}");
        assert_eq!(replay_certified(&plan), FLIT * found[1], "{rest}");
        assert_eq!(number(&plan, "cap"), numbers(cap)[0], "{rest}");
        let of = |all: &str, key: &str| -> Vec<u64> {
            let mut all = list(&plan, all).to_vec();
            all.sort_by_key(|one| number(one, "pe"));
            all.iter().map(|one| number(one, key)).collect()
        };
        assert_eq!(of("certificates", "lag"), numbers(lags), "{rest}");
        let flits = of("certificates", "flits").into_iter();
        let promised = flits.zip(of("certificates", "packets"));
        let promised: Vec<u64> = promised.map(|(flits, packets)| flits + 2 * packets).collect();
        assert_eq!(promised, numbers(streams), "{rest}");
        assert_eq!(of("orders", "after"), numbers(after), "{rest}");
        let bound = if rest.contains("path") { 19 } else { 39 };
        assert_eq!(number(&plan, "bound"), bound, "{rest}");
    }
    let unsplit = "--tree parents:0,1,1,2,4,5 --lengths 1,0,6,3,1,3 --setup 1 --packets cap:6";
    let unsplit = planned(&format!("gather {unsplit} --algorithm certification"));
    assert_eq!(unsplit["time"], 50);
}

#[test]
fn printed_plans_on_random_trees_keep_the_rules() {
    let mut random = SplitMix64::new(9);
    let setups = ["0", "1/2", "1", "3/2", "4", "11", "25/3"];
    for seed in 0..25 {
        let pes = 2 + random.below(14);
        let most = [1, 8, 60][random.below(3) as usize];
        let setup = setups[random.below(7) as usize];
        let rest = format!(
            "--tree random:{pes}:{seed} --lengths uniform:0..{most}:{seed} --setup {setup}"
        );
        let search = format!("{rest} --search {}", random.below(3000));
        let scatter = planned(&format!("scatter {search}"));
        let time = replay(&scatter);
        assert!(time <= ticks(&scatter, "unsplit_time"), "{rest}");
        assert!(time <= ticks(&scatter, "single_flits_time"), "{rest}");
        assert_eq!(replay(&planned(&format!("gather {search}"))), time);
        let certified = format!("gather {rest} --algorithm certification");
        let best = replay_certified(&planned(&certified));
        let cap = 1 + random.below(most);
        let capped = format!("{certified} --packets cap:{cap}");
        assert!(best <= replay_certified(&planned(&capped)), "{rest}");
        replay_certified(&planned(&format!("{capped} --control free")));
    }
}

#[test]
fn one_message_is_cut_as_somebody_wants_it() {
    let rest = "--tree parents:0,1,2,2 --lengths 0,0,9,0 --setup 1/2";
    let best = replay(&planned(&format!("scatter {rest}")));
    for (packets, sizes) in [
        ("1", &[9][..]),
        ("4", &[3, 2, 2, 2]),
        ("9", &[1; 9]),
        ("sizes:1,4,4", &[1, 4, 4]),
    ] {
        for operation in ["scatter", "gather"] {
            let plan = planned(&format!("{operation} {rest} --packets {packets}"));
            assert!(replay(&plan) >= best);
            assert_eq!(ticks(&plan, "bound"), best);
            let printed = list(&plan, "packets").iter();
            let mut printed: Vec<u64> = printed.map(|packet| number(packet, "flits")).collect();
            if operation == "gather" {
                printed.reverse();
            }
            assert_eq!(printed, sizes, "{operation} {packets}");
        }
    }
}

#[test]
fn long_messages_and_many_pes_are_planned() {
    let rest = "--tree path:8 --lengths 0,0,0,0,0,0,1099511627776 --setup 500 --summary";
    assert_eq!(planned(&format!("scatter {rest}"))["proof"], "optimal");
    let rest = "--tree path:10000 --lengths uniform:0..99:1 --setup 50 --summary";
    assert_eq!(planned(&format!("gather {rest}"))["proof"], "optimal");
    let rest = "--tree kary:2:50000 --lengths equal:3 --setup 5 --summary";
    assert_eq!(planned(&format!("scatter {rest}"))["proof"], "optimal");
    let certified = planned(&format!("gather {rest} --algorithm certification"));
    assert!(ticks(&certified, "time") > ticks(&certified, "bound"));
    // Trees on which no search is complete.
    let rest = "--tree random:40:3 --lengths onebig:100000 --setup 300 --summary";
    let plan = planned(&format!("scatter {rest}"));
    assert!(ticks(&plan, "bound") < ticks(&plan, "time"));
    assert!(plan["proof"].to_string().contains("gap"), "{plan}");
}

/// Figure 6.2 of the thesis: packets of the first two messages that carry flits of the third are fewer
/// and faster than those of an optimal schedule in which each packet has one message.
#[test]
fn packets_that_mix_messages_are_fewer_and_faster() {
    let line = "scatter --tree path:7 --lengths 0,0,0,8,8,8 --setup 4";
    let figure = "sequence:6x4+4x1,6x4+4x1,5x4+4x1,5x4+4x1,4x4";
    for (packets, count, time, proof) in [
        ("2", 6, 72, "optimal"),
        (figure, 5, 71, "gap 1.4%"),
        ("mixed", 4, 70, "optimal"),
    ] {
        let plan = planned(&format!("{line} --packets {packets}"));
        assert_eq!(plan["packet_count"], count, "{packets}");
        assert_eq!(plan["time"], time, "{packets}");
        assert_eq!(plan["proof"], proof, "{packets}");
    }
    let plan = planned(&format!("{line} --packets mixed"));
    let second = &plan["packets"][1];
    assert_eq!([number(second, "pe"), number(second, "flits")], [6, 6]);
    let parts = serde_json::json!([
        {"pe": 6, "flits": 2, "end": 66}, {"pe": 5, "flits": 4, "end": 60}
    ]);
    assert_eq!(second["parts"], parts);
    // The mirror of a scatter, in which packets grow on their way.
    let gather = planned("gather --tree path:7 --lengths 0,0,0,8,8,8 --setup 4 --packets mixed");
    assert_eq!(gather["time"], 70);
    assert_eq!(gather["packets"][2]["parts"][1]["start"], 10);
}
