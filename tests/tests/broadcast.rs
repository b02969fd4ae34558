//! Broadcasts of a file or folder of P0 to all other PEs. `among_all` has what they share with other
//! operations.

use flitcast_tests::pairs::Pairs;
use flitcast_tests::{Report, reported, run};
use serde_json::{Value, json};

/// Broadcasts a folder, and checks that all PEs but its source have a copy.
fn copied(bytes: usize, pes: u32, from: u32, line: &str) -> Report {
    let files = Pairs::filled(&format!("broadcast --from P{from}"), pes, |_| bytes);
    let finished = files.run(&format!("{line} --format json")).ok();
    files.assert_there(files.all());
    finished.report()
}

/// In a complete network, a path or a tree with K children each is built, from any source.
#[test]
fn where_all_reach_each_other_a_tree_is_laid() {
    for (algorithm, root, parents) in [
        ("path", 2, json!([2, 0, null, 1, 3])),
        ("kary:3", 0, json!([null, 0, 0, 0, 1])),
    ] {
        let line = format!("--network complete:5 --algorithm {algorithm}");
        let report = copied(100_000, 5, root, &line);
        let found = report.list("/pes").iter().map(|pe| pe["parent"].clone());
        assert_eq!(found.collect::<Value>(), parents, "{algorithm}");
    }
}

/// A long message takes a path, a short one a flatter tree.
#[test]
fn auto_lays_the_tree_that_is_predicted_to_be_the_quickest() {
    let chosen = |size: &str| {
        let line = "broadcast --network complete:8 --algorithm auto";
        let link = "--link rate=100mbit,latency=1ms";
        let report = reported(&format!("{line} {link} --size {size}"));
        let considered = ["/choice/ways", "/choice/excluded"].map(|key| report.number(key));
        assert!(considered.iter().sum::<u64>() > 10, "{considered:?}");
        assert_eq!(report.value("/tree"), report.value("/choice/chosen/tree"));
        let depths = report.list("/pes").iter().map(|pe| pe["depth"].as_u64());
        depths.max().flatten().expect("there are PEs")
    };
    assert_eq!(chosen("8MiB"), 7);
    assert!(chosen("1KiB") < 4);
}

#[test]
fn a_relay_holds_a_flit() {
    let report = reported("broadcast --tree kary:4:9 --size 3MiB --link rate=200mbit");
    assert_eq!(report.number("/round/peak_buffered_flits"), 1);
}

/// Broadcasts in parts from several PEs, with several lengths, in every round; also on links that share a
/// port of each PE.
#[test]
fn a_message_in_parts_arrives_over_all_trees() {
    let link = "--flit-size 4KiB --link rate=200mbit,latency=1ms";
    let of_all = [("circulant", 9), ("circulant", 13), ("hypercube", 8)];
    let of_few = [
        ("circulant", 3),
        ("circulant", 2),
        ("hypercube", 4),
        ("hypercube", 2),
    ];
    let lengths = [(70_001, "--flit-size 4KiB"), (1 << 20, link)];
    let long = of_all.map(|one| lengths.map(|length| (one, length)));
    let short = of_few.map(|one| [1, 100_000].map(|bytes| (one, (bytes, ""))));
    let cases = long.as_flattened().iter().chain(short.as_flattened());
    for ((algorithm, pes), (bytes, more)) in cases {
        let line = format!("--network complete:{pes} --algorithm {algorithm} {more}");
        let report = copied(*bytes, *pes, pes / 2, &line);
        assert_eq!(report.value("/algorithm"), *algorithm);
    }
    for (algorithm, pes) in of_all {
        let line =
            format!("broadcast --network complete:{pes} --algorithm {algorithm} --size 300KiB");
        run(format!("{line} --rounds 3").split(' ')).ok();
    }
}
