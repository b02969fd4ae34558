//! Checks which files read which clock. The wall clock can be set forwards or back during a round,
//! so no wait and no measurement uses it, and the files that read the time of day are listed here.

use std::collections::{BTreeMap, BTreeSet};

use flitcast_tests::rows;

use super::source::{ALL, sources};

/// Types of the wall clock's time; every use has one of these.
const WALL: &str = "DateTime OffsetDateTime Realtime RealtimeCoarse SystemTime UNIX_EPOCH UnixTime";

/// The files that read it, and the purpose.
const ALLOWED: &str = "
    coordinator/cluster/src/site/authority.rs | from when until when a certificate is good
    coordinator/src/commands/ca.rs | until when they are, as is printed, and since when they are revoked
    coordinator/cluster/src/site/ca.rs | until when they are: `flitcast ca` notes it
    coordinator/src/commands/calibrate/calibration.rs | when a profile was made: a comment in it
    coordinator/cluster/src/job/host_costs/cache.rs | how long ago this machine was measured: a report prints it
    coordinator/src/commands/running_cluster/daemon.rs | since when a PE is up: `flitcast status` prints it
    coordinator/cluster/src/site/running_cluster/rounds.rs | when a command ended: `flitcast status` prints it
    coordinator/cluster/src/site/running_cluster/state.rs | since when a cluster and its PEs are up, on the disk
    coordinator/src/commands/running_cluster/status.rs | how long ago all that was
    coordinator/src/commands/running_cluster/up.rs | since when a cluster is up
    coordinator/cluster/src/observe/otel/export.rs | when a command began: spans are counted from there by the monotonic clock
    coordinator/cluster/src/observe/otel/spans.rs | when a span began and ended
    coordinator/cluster/src/rounds/run.rs | when a command ended, for `flitcast status`
    coordinator/src/commands/map/joblog.rs | when a command began, as `--joblog` notes it
    coordinator/src/commands/map/queue.rs | when a command began, for the same
    node/src/dates.rs | dates as texts
    node/src/health.rs | how old a file is: after a jump forwards it is old until it is written again, 1 s later
    node/src/security.rs | whether a certificate is good today
    node/src/security/peer_verifier.rs | whether an authority has ended today
    node/src/security/explain.rs | a certificate's dates, as an error shows them
    node/src/security/peer_verifier.rs | since when a certificate is revoked, as its list shows it
";

#[test]
fn only_listed_files_read_the_wall_clock() {
    let mut readers: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for source in sources(&ALL) {
        for name in WALL.split(' ') {
            if !source.places(name).is_empty() {
                readers.entry(source.file.clone()).or_default().insert(name);
            }
        }
    }
    for (file, names) in &readers {
        let is_allowed = rows(ALLOWED).iter().any(|[allowed, _]| allowed == file);
        let fault = "reads a clock that can be set";
        assert!(is_allowed, "{file} {fault}: {names:?}");
    }
    for [file, why] in rows(ALLOWED) {
        assert!(readers.contains_key(file), "{file} no more: {why}");
    }
}

/// The kernel's timers and the node's clock use the monotonic clock, as the runtime's timers and
/// `Instant` do. A thread's own clock measures processor time and not the time of day.
#[test]
fn timers_and_measurements_use_the_monotonic_clock() {
    let mut seen = BTreeSet::new();
    for source in sources(&ALL) {
        for name in ["ClockId", "TimerfdClockId"] {
            seen.extend(source.below(name).map(|(_, clock)| clock.to_owned()));
        }
    }
    let known = ["Monotonic", "MonotonicCoarse", "ThreadCPUTime"];
    assert_eq!(Vec::from_iter(seen), known);
}

/// Code that the storm runs in virtual time receives the time, and neither reads nor waits for it:
/// the controller of rounds, and the rules between two runs.
#[test]
fn code_in_virtual_time_uses_nothing_real() {
    const REAL: [&str; 9] = [
        "async", "await", "fs", "net", "process", "spawn", "thread", "tokio", "Instant",
    ];
    let driven = |file: &str| {
        file.starts_with("coordinator/cluster/src/rounds/controller/")
            || file == "coordinator/cluster/src/retry/progress.rs"
    };
    let sources = sources(&["coordinator/cluster"]);
    let driven = sources.iter().filter(|source| driven(&source.file));
    assert!(driven.clone().count() > 8, "the controller has moved");
    for source in driven {
        for name in REAL {
            let places = source.places(name).into_iter();
            let places: Vec<_> = places.map(|at| source.line(at)).collect();
            assert!(places.is_empty(), "{} {name}: {places:?}", source.file);
        }
    }
}
