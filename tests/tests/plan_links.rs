//! The time of plans on links, with `--link`.

use flitcast_tests::{numbers, parsed, rows};

use crate::replay::{list, number, planned_of};

#[track_caller]
fn on_links(operation: &str, line: &str) -> [u64; 2] {
    let plan = planned_of(operation, &format!("{line} --link-flit 8192"));
    let on_links = &plan["on_links"];
    assert_eq!(number(on_links, "flit_bytes"), 8192);
    let time_us = on_links["time_us"].as_f64().expect("a time");
    [time_us.round() as u64, number(on_links, "packets")]
}

/// Microseconds, and packets. Control items take a latency for each edge, nothing waits for the end of a
/// step, and a port pays a set-up for each of its packets. On a network a packet over several edges has its
/// own link, so the two sides of a line are independent.
#[test]
fn a_plan_has_a_time_on_links() {
    for [operation, line, figures] in rows("
        scatter | --tree path:6 --lengths equal:1 --link latency=20ms | 100000 15
        scatter | --tree kary:2:7 --lengths equal:1 --link latency=20ms | 40000 10
        scatter | --tree kary:2:7 --lengths equal:1 --link rate=3.2768mbit | 120425 10
        gather | --tree path:6 --lengths equal:1 --link setup=20ms | 100000 15
        gather | --tree path:6 --lengths equal:1 --algorithm shoulder-tap --link latency=20ms | 200000 15
        gather | --tree path:6 --lengths equal:1 --algorithm certification --sync serial --link latency=20ms | 400000 15
        gather | --tree path:6 --lengths equal:1 --algorithm certification --link latency=20ms | 400000 15
        gather | --tree kary:2:7 --lengths equal:1 --algorithm certification --link latency=20ms | 160000 10
        gather | --tree kary:2:7 --lengths equal:1 --algorithm certification --link setup=20ms | 120000 10
        broadcast | --tree kary:2:7 --size 4 --algorithm urgent --link setup=20ms | 200000 24
        gossip | --tree kary:2:7 --lengths equal:1 --ports multi --link setup=20ms | 120000 42
        gossip | --network complete:9 --lengths equal:1 --algorithm dissemination --link latency=20ms | 60000 72
        gossip | --network complete:9 --lengths equal:1 --algorithm dissemination --link setup=20ms | 80000 36
        gossip | --network complete:8 --lengths equal:1 --algorithm direct --link setup=20ms | 140000 56
        gossip | --network complete:8 --lengths equal:3 --algorithm circulate --link setup=20ms | 140000 56
        gossip | --network complete:8 --lengths equal:1 --algorithm neighbour --link setup=20ms | 80000 32
        gossip | --network ring:9 --lengths equal:1 --algorithm approach1 --link latency=20ms | 80000 72
        gossip | --network torus:3x3 --lengths equal:1 --algorithm approach2 --link latency=20ms | 80000 24
        gossip | --network mesh:4x4 --lengths equal:1 --algorithm approach1 --link latency=20ms | 120000 96
        gossip | --network mesh:4x4 --lengths equal:1 --algorithm approach2 --link setup=20ms | 120000 48
        exchange | --network complete:8 --lengths each:1 --link setup=20ms | 140000 56
    ") {
        let found = on_links(operation, line);
        assert_eq!(found[..], numbers(figures), "{operation} {line}");
    }
    // Token, certificates and orders have 33 bytes each at 4 Mbit/s.
    let line = "--tree path:6 --lengths equal:1 --algorithm certification --link rate=4mbit";
    let [time_us, _] = on_links("gather", line);
    assert!((82_210..83_500).contains(&time_us), "{time_us}");
}

#[test]
fn comparisons_have_the_times_of_baselines() {
    let of = |operation: &str, algorithm: &str| {
        let line = "--network complete:8 --lengths equal:1 --link latency=20ms --format json";
        let compared = parsed(&format!("compare {operation} {line}"));
        let mut rows = list(&compared, "results").iter();
        let named = rows.find(|row| row["algorithm"] == algorithm && row["on_links"].is_object());
        let on_links = named.expect("the algorithm")["on_links"]["time_us"].as_f64();
        on_links.expect("a time") / 1000.0
    };
    assert_eq!(of("gather", "linear"), 280.0);
    assert_eq!(of("gather", "linear, window of 4"), 80.0);
    // The token, then the messages.
    assert_eq!(of("gather", "binomial, combining"), 120.0);
    assert_eq!(of("scatter", "adaptive (Träff)"), 60.0);
}
