//! A shard whose command takes long is run at an idle PE as well, and the first result counts.

use flitcast_tests::Running;
use flitcast_tests::processes::until;

use super::Place;

/// Starts a map of the shards `a`, `b` and `c`, of which P1, P2 and P3 get one each. In the script, `FIRST` is
/// whether a command is the first one on its shard, and `WAIT` waits for a file.
#[track_caller]
fn map(place: &Place, options: &str, script: &str) -> Running {
    let script = script.replace("FIRST", "mkdir @/first-$FLITCAST_SHARD 2>/dev/null");
    let script = script.replace("WAIT", "flitcast_wait");
    let script = format!(
        "flitcast_wait() {{ until [ -e $1 ]; do sleep 0.01; done; }}; {script}; echo $FLITCAST_PE"
    );
    let limit = if options.contains("never") {
        "1s"
    } else {
        "100s"
    };
    let options = format!("--joblog @/log --time-limit {limit} {options}");
    place.start(&options, &["sh", "-c", &script])
}

/// Returns the PEs and exit statuses of the commands on the shard `a`, in the order of the log.
fn ends(place: &Place) -> Vec<String> {
    let log = place.dir.read("log");
    let of_a = log.lines().filter(|line| line.ends_with("\ta"));
    let cells = of_a.map(|line| line.split('\t').collect::<Vec<_>>());
    cells
        .map(|cells| format!("{} {}", cells[1], cells[6]))
        .collect()
}

const AT_ONCE: &str = "--speculate 1ms";

/// The first command on `a` does not end by itself; `c` waits for its end.
#[test]
fn the_first_command_is_ended_when_the_second_has_succeeded() {
    let place = Place::named(&["a", "b", "c"]);
    let script = "case $FLITCAST_SHARD in
        a) if FIRST; then trap 'touch @/ended; exit' TERM; while :; do sleep 0.01; done; fi;;
        c) WAIT @/ended;; esac";
    let options = format!("{AT_ONCE} --format json");
    let done = map(&place, &options, script).finish().ok();
    done.stderr_has(&["a takes long at P1: P2 runs it as well, and the first result counts\n"]);
    assert_eq!(place.result("a/stdout"), "2\n");
    assert_eq!(ends(&place), ["P1 -1", "P2 0"]);
    let report = done.report();
    assert_eq!(report.number("/shards/0/pe"), 2);
    assert_eq!(report.number("/shards/0/runs"), 2);
    let beside = ["ended", "first-a", "log"];
    place.assert_results(&["a", "b", "c"], &beside);
}

#[test]
fn the_second_command_is_ended_when_the_first_has_succeeded() {
    let place = Place::named(&["a", "b", "c"]);
    let script = "case $FLITCAST_SHARD in
        a) if FIRST; then WAIT @/second; else touch @/second; sleep 1000; fi;; esac";
    map(&place, AT_ONCE, script).finish().ok();
    assert_eq!(place.result("a/stdout"), "1\n");
    // P2 or P3 was idle first.
    let [second, first] = ends(&place).try_into().expect("two lines");
    assert!(
        second.ends_with(" -1") && first == "P1 0",
        "{second} {first}"
    );
    // A shard is done if the last of its lines says so.
    let resumed = map(&place, "--resume", "exit 3").finish().ok();
    resumed.prints(&["  earlier      3 shards have results already\n"]);
}

#[test]
fn a_first_command_that_fails_leaves_the_shard_to_the_second() {
    let place = Place::named(&["a", "b", "c"]);
    let script = "case $FLITCAST_SHARD in
        a) if FIRST; then WAIT @/second; exit 3; else touch @/second; WAIT @/go; fi;; esac";
    let mut running = map(&place, AT_ONCE, script);
    running
        .wait_for(&["a at P1: the command ended with exit status 3; another PE runs it as well"]);
    place.put("go", "");
    running.finish().ok();
    assert_eq!(ends(&place).len(), 2);
    place.assert_results(&["a", "b", "c"], &["first-a", "go", "log", "second"]);
}

/// Both commands fail; the retry that is left is a third one.
#[test]
fn a_second_command_is_not_a_retry() {
    let place = Place::named(&["a", "b", "c"]);
    let script = "case $FLITCAST_SHARD in
        a) if FIRST; then WAIT @/second; exit 3; fi; touch @/second
           if mkdir @/other 2>/dev/null; then WAIT @/go; exit 4; fi;; esac";
    let options = format!("{AT_ONCE} --retry 1");
    let mut running = map(&place, &options, script);
    running
        .wait_for(&["a at P1: the command ended with exit status 3; another PE runs it as well"]);
    place.put("go", "");
    let done = running.finish().ok();
    done.stderr_has(&[": the command ended with exit status 4; running it again (1 of 1)\n"]);
    assert_eq!(ends(&place).len(), 3);
}

/// With a limit that a first command exceeds, a second one would have a result.
#[test]
fn never_is_no_shard_run_twice() {
    let place = Place::named(&["a", "b", "c"]);
    let script = "case $FLITCAST_SHARD in a) if FIRST; then sleep 1000; fi;; esac";
    let failed = map(&place, "--speculate never", script).finish();
    failed.fails(1, &["error: a at P1: "]);
    assert_eq!(ends(&place).len(), 1);
    let refused = place.shell("--force --speculate 5", "true");
    refused.fails(2, &["--speculate", "has no unit"]);
}

/// The first command runs at a PE that dies meanwhile.
#[test]
fn a_pe_that_dies_does_not_end_the_second_command() {
    let place = Place::named(&["a", "b", "c"]);
    let script = "case $FLITCAST_SHARD in
        a) if FIRST; then sleep 1000; else touch @/second; WAIT @/go; fi;; esac";
    let running = map(&place, AT_ONCE, script);
    until("the second command runs", || place.path("second").exists());
    running.pe(1).signal(rustix::process::Signal::KILL);
    place.put("go", "");
    running.finish().ok();
    let ends = ends(&place);
    assert!(ends[1] != "P1 0" && ends[1].ends_with(" 0"), "{ends:?}");
}
