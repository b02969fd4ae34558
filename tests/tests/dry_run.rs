//! Dry runs: they connect, measure, choose and predict as a run does, report that, and change
//! nothing.

use std::fs;

use flitcast_tests::files::{assert_same, fill, names, snapshot};
use flitcast_tests::joining::Joining;
use flitcast_tests::pairs::Pairs;
use flitcast_tests::{Report, printed, reported, scratch};

const OPERATIONS: [&str; 5] = ["scatter", "gather", "broadcast", "gossip", "exchange"];
const TREE: &str = "--tree kary:2:4";

fn filled(operation: &str) -> Pairs {
    Pairs::filled(operation, 4, |(from, to)| 10_000 * (1 + from + to) as usize)
}

/// Checks that all deliveries are predicted and none is measured.
fn assert_only_predicted(report: &Report) {
    assert_eq!(report.value("/dry_run"), true);
    assert!(report.float("/round/predicted_us") > 0.0);
    assert!(report.value("/round/measured_us").is_null());
    let pes = report.list("/pes");
    assert!(pes.iter().any(|pe| pe["predicted_us"].is_number()));
    assert!(pes.iter().all(|pe| pe["measured_us"].is_null()));
}

#[test]
fn the_longest_messages_are_predicted_and_not_sent() {
    for line in [
        "scatter --tree kary:2:4",
        "gather --tree kary:2:4",
        "broadcast --tree kary:2:4",
        "gossip --tree kary:2:4",
        "exchange --tree kary:2:4",
        "gossip --network complete:4 --algorithm auto",
        "exchange --network complete:4",
    ] {
        let line = format!("{line} --size 100GiB --dry-run");
        let table = printed(&line);
        assert!(!table.contains("measured  "), "{table}");
        assert!(table.contains("\n  round        predicted "), "{table}");
        let end = "\n  dry run      nothing was sent (--dry-run)\n";
        assert!(table.ends_with(end), "{table}");
        assert_only_predicted(&reported(&line));
    }
}

/// Neither an output nor a folder above it is made.
#[test]
fn files_are_measured_and_nothing_is_written() {
    for operation in OPERATIONS {
        let files = filled(operation);
        let before = snapshot(files.dir());
        let report = files.run(&format!("{TREE} --dry-run --format json"));
        let report = report.ok().report();
        assert_only_predicted(&report);
        let whole = report.float("/phases/whole/predicted_us");
        assert!(whole >= report.float("/phases/transfer/predicted_us"));
        assert!(report.value("/phases/whole/measured_us").is_null());
        assert_same(&before, &snapshot(files.dir()));
        let real = files.run(&format!("{TREE} --format json")).ok().report();
        assert_eq!(real.number("/round/bytes"), report.number("/round/bytes"));
        assert_eq!(real.value("/dry_run"), false);
    }
}

/// A dry run compares the entries in the output with the messages, and changes neither them nor
/// leftovers.
#[test]
fn an_output_is_compared_and_left_alone() {
    for operation in OPERATIONS {
        let files = filled(operation);
        files.run(TREE).ok();
        let output = files.output();
        fill(&output.join(".flitcast-0123456789abcdef-p1.partial"), 10);
        let before = snapshot(&output);
        let dry = files.run(&format!("{TREE} --dry-run")).ok();
        dry.prints(&["\n  skipped      "]);
        assert_same(&before, &snapshot(&output));
        let forced = files.run(&format!("{TREE} --dry-run --force")).ok();
        assert!(!forced.stdout.contains("skipped"), "{}", forced.stdout);
        assert_same(&before, &snapshot(&output));
    }
}

#[test]
fn faults_are_those_of_a_run() {
    for operation in OPERATIONS {
        let files = filled(operation);
        files.run(TREE).ok();
        let refused = |expected: &str| {
            for more in ["--dry-run", ""] {
                files.run(&format!("{TREE} {more}")).fails(2, &[expected]);
            }
        };
        fill(&files.entry(files.all()[0]).join("below/some"), 7);
        refused("--force");
        fs::remove_dir_all(files.input()).expect("it is there");
        refused("/in");
    }
}

#[test]
fn absent_hosts_are_named() {
    let cluster = Joining::new(&[0, 0], "1s");
    fill(&cluster.path("in/p1"), 10);
    let dry = cluster.guarded("scatter --input DIR/in --output DIR/out --dry-run");
    dry.finish().fails(1, &["P1", "P2"]);
    assert!(!names(&cluster.path("")).contains(&"out".to_owned()));
}

/// With a profile a prediction depends on no measurement, and on no load of the machine.
#[test]
fn the_round_is_predicted_as_in_a_run() {
    let dir = scratch();
    let on = "--tree kary:2:4 --link rate=100mbit,latency=1ms";
    let calibrate = format!("calibrate {on} --seconds 1 --output @/profile.toml");
    dir.run(&calibrate).ok();
    for operation in OPERATIONS {
        let line = format!("{operation} {on} --size 50KiB --profile @/profile.toml");
        let report = |more| dir.report(&format!("{line} {more}"));
        let [dry, real] = ["--dry-run", "--rounds=1"].map(report);
        assert!(real.float("/round/measured_us/median") > 0.0, "{operation}");
        let of_pes = (0..4).map(|pe| format!("/pes/{pe}/predicted_us"));
        let all = "/round/predicted_us /flit_bytes /algorithm /parents".split(' ');
        for what in all.map(str::to_owned).chain(of_pes) {
            assert_eq!(dry.value(&what), real.value(&what), "{operation}");
        }
    }
}
