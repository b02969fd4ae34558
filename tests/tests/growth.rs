//! The cost of a round's start, which grows with the number of its messages and not with their
//! lengths.

use flitcast_tests::processes::memory_kib;
use flitcast_tests::{parsed, start};
use rustix::process::Signal;

/// Maximum memory of the coordinator, and of a PE, for any lengths.
const COORDINATOR_KIB: u64 = 100 << 10;
const PE_KIB: u64 = 24 << 10;

/// A round of months is planned, predicted and started quickly, and ends on a signal.
#[test]
fn the_longest_messages_take_no_more_memory_than_long_ones() {
    for operation in ["scatter", "gather", "broadcast", "gossip", "exchange"] {
        let line = format!("-v {operation} --tree kary:2:8 --size 100GiB --link rate=1gbit");
        let mut run = start(line.split(' '));
        run.wait_for(&["triggered"]);
        let coordinator = memory_kib(run.pid(), "VmHWM");
        let pes = run.pes();
        assert_eq!(pes.len(), 8, "{operation}");
        let of_pes = pes.iter().map(|pe| memory_kib(pe.pid as u32, "VmHWM"));
        let of_pes = of_pes.max().unwrap_or(0);
        run.signal(Signal::INT);
        assert_eq!(run.finish().code, Some(130), "{operation}");
        assert!(
            coordinator < COORDINATOR_KIB,
            "{operation}: {coordinator} KiB"
        );
        assert!(of_pes < PE_KIB, "{operation}: {of_pes} KiB");
    }
}

/// Messages with more flits than are planned one by one are sent in blocks, and arrive completely.
#[test]
fn messages_of_many_flits_are_sent_in_blocks() {
    for (line, delivered) in [
        ("gossip --tree kary:2:3 --size 1500KiB --flit-size 64", 3000),
        (
            "exchange --tree kary:2:3 --size 1100KiB --flit-size 64",
            2200,
        ),
    ] {
        let report = parsed(&format!("{line} --format json"));
        let pes = report["pes"].as_array().expect("a list");
        assert_eq!(pes.len(), 3, "{line}");
        for pe in pes {
            assert_eq!(pe["bytes"], delivered << 10, "{line}");
        }
    }
}
