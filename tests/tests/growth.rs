//! The cost of a round's start, which grows with the number of its messages and not with their
//! lengths.

use std::process::Command;

use flitcast_tests::processes::peak_memory_kib;
use flitcast_tests::run::begin;
use flitcast_tests::{flitcast, reported, start};

/// Maximum of the memory that the coordinator, and a PE, allocate for any lengths.
const COORDINATOR_KIB: u64 = 64 << 10;
const PE_KIB: u64 = 12 << 10;

/// A round of months is planned, predicted and started quickly, and ends on a signal.
#[test]
fn the_longest_messages_take_no_more_memory_than_long_ones() {
    for operation in ["scatter", "gather", "broadcast", "gossip", "exchange"] {
        let line = format!("-v {operation} --tree kary:2:8 --size 100GiB --link rate=1gbit");
        let mut run = start(line.split(' '));
        run.wait_for(&["triggered"]);
        let coordinator = peak_memory_kib(run.pid()).expect("it runs");
        let pes = run.pes();
        assert_eq!(pes.len(), 8, "{operation}");
        let of_pes = pes.iter().map(|pe| peak_memory_kib(pe.pid as u32));
        let of_pes = of_pes.max().flatten().expect("they run");
        run.interrupt();
        let is_within = coordinator < COORDINATOR_KIB && of_pes < PE_KIB;
        assert!(is_within, "{operation}: {coordinator} and {of_pes} KiB");
    }
}

/// Messages with more flits than are planned one by one are sent in blocks, and arrive completely.
#[test]
fn messages_of_many_flits_are_sent_in_blocks() {
    for (operation, kib) in [("gossip", 1500), ("exchange", 1100)] {
        let line = format!("{operation} --tree kary:2:3 --size {kib}KiB --flit-size 64");
        let report = reported(&line);
        let pes = report.list("/pes").iter();
        let delivered: Vec<_> = pes.map(|pe| pe["bytes"].as_u64()).collect();
        assert_eq!(delivered, [Some(2 * kib * 1024); 3], "{line}");
    }
}

/// With as many PEs as a machine starts, a prediction takes bounded memory and processor time for any
/// length: the shell ends a command that takes more, as no correct one does by far.
#[test]
fn predictions_of_1024_pes_take_bounded_work_and_memory() {
    const LIMITS: &str = "ulimit -t 50 -v 1000000; exec \"$@\"";
    for line in [
        "scatter --tree kary:2:1024 --size 1TiB",
        "gather --tree path:1024 --size 1MiB",
        "broadcast --tree path:1024 --size 1MiB",
    ] {
        let words = format!("plan {line} --link rate=1gbit,latency=50us --format json");
        let mut command = Command::new("bash");
        command.args(["-c", LIMITS, "bash"]).arg(flitcast());
        command.args(words.split(' '));
        let plan = begin(command).finish().ok().report();
        assert_eq!(plan.list("/pes").len(), 1024, "{line}");
        let last = plan.float("/pes/1023/predicted_us");
        assert!(last > 0.0 || line.starts_with("gather"), "{line}");
        assert!(plan.float("/predicted_us") >= last, "{line}");
    }
}
