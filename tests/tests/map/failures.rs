//! Commands that fail, and PEs that die while they run one: they are named, retried on request, and
//! the other results arrive.

use flitcast_tests::files::names;
use flitcast_tests::processes::until;
use rustix::process::Signal;

use super::Place;

/// A script that does not end at P2 for the first time.
const SLEEPS_ONCE: &str =
    "cat; [ $FLITCAST_PE != 2 ] || [ -e @/marker ] || { touch @/marker; sleep 1000; }";
const THREE: [(u32, &str); 3] = [(1, "one"), (2, "two"), (3, "three")];

#[test]
fn a_failed_command_is_named_and_the_others_are_gathered() {
    let place = Place::new(&THREE);
    let script = "cat; if [ $FLITCAST_PE = 2 ]; then for i in 1 2 3 4 5 6 7; do echo line $i; done >&2; exit 3; fi";
    let failed = place.shell("", script).with_code(1);
    let last = "line 3 / line 4 / line 5 / line 6 / line 7";
    failed.stderr_has(&[
        "P2| line 1\nP2| line 2\n",
        &format!("error: P2: the command ended with exit status 3; it last printed: {last}; "),
        &format!("its output is in {}/p2.failed\n", place.output().display()),
    ]);
    failed.prints(&["  results      2 of 3, "]);
    place.assert_results(&["p1", "p2.failed", "p3"], &[]);
    assert_eq!(place.result("p2.failed/stdout"), "two");
    let all: Vec<String> = (1..8).map(|i| format!("line {i}\n")).collect();
    assert_eq!(place.result("p2.failed/stderr"), all.concat());
    assert_eq!(place.result("p3/stdout"), "three");
}

#[test]
fn a_missing_command_is_reported_for_each_pe() {
    let place = Place::new(&THREE);
    let failed = place.run("", &["no such command"]).with_code(1);
    for pe in 1..=3 {
        let expected = format!("error: P{pe}: `no such command` cannot be started: No such file");
        failed.stderr_has(&[&expected]);
    }
    place.assert_beside(&["in put"]);
    let failed = place.run("", &["./here"]);
    failed.stderr_has(&["; it counts from the shard: give its path from the root\n"]);
}

#[test]
fn a_killed_command_is_reported_with_its_signal() {
    let place = Place::new(&THREE);
    let failed = place.shell("", "[ $FLITCAST_PE != 1 ] || kill -9 $$");
    let expected = "error: P1: the command was killed by signal 9 (SIGKILL); its output is in ";
    failed.fails(1, &[expected]);
    place.assert_results(&["p1.failed", "p2", "p3"], &[]);
}

#[test]
fn an_entry_that_cannot_be_sent_is_the_only_one_that_is_lost() {
    let place = Place::new(&THREE);
    let script = "case $FLITCAST_PE in
        1) mkdir d; mkfifo d/pipe pipe; ln -s /etc away; echo keep | tee keep > d/keep;;
        2) echo mine > stdout;; esac";
    let failed = place.shell("", script);
    failed.with_code(1).stderr_has(&[
        "error: P1: not in its result: `away` is refused: its target `/etc` is absolute",
        "error: P1: not in its result: `d/pipe` is refused: it is a fifo",
        "error: P1: not in its result: `pipe` is refused: it is a fifo",
        "error: P2: it wrote a file named `stdout`",
    ]);
    place.assert_results(&["p1", "p3"], &[]);
    assert_eq!(names(&place.output().join("p1")), ["d", "keep", "stdout"]);
    assert_eq!(place.result("p1/keep"), "keep\n");
    assert_eq!(place.result("p1/d/keep"), "keep\n");
}

/// The lines about them are bounded, and so is the message that has them.
#[test]
fn of_many_entries_that_cannot_be_sent_the_first_are_named() {
    let place = Place::new(&[(1, "one")]);
    let script =
        "for i in 1 2 3 4 5; do for j in 1 2 3 4 5; do mkfifo p$i$j; done; done; echo keep > keep";
    let failed = place.shell("--format json", script);
    let more = "error: P1: not in its result: 6 more\n";
    failed.fails(1, &["`p11` is refused", more]);
    let report = failed.report();
    assert_eq!(report.list("/pes/0/not_taken").len(), 20);
    assert_eq!(names(&place.output().join("p1")), ["keep", "stdout"]);
}

#[test]
fn a_command_that_runs_too_long_is_killed_as_a_whole() {
    let place = Place::new(&THREE);
    let script = "cat; [ $FLITCAST_PE != 2 ] || { setsid sleep 1001 & trap '' TERM; sleep 1000; }";
    let failed = place.shell("--time-limit 500ms", script);
    failed.fails(1, &["error: P2: it was killed: it ran longer than 500ms"]);
    place.assert_results(&["p1", "p2.failed", "p3"], &[]);
    assert_eq!(place.result("p2.failed/stdout"), "two");
    assert_eq!(place.result("p3/stdout"), "three");
}

#[test]
fn a_time_limit_counts_for_each_try_and_is_checked() {
    let place = Place::new(&[(1, "one"), (2, "two")]);
    let again = place.shell("--time-limit 1s --retry 1", SLEEPS_ONCE);
    let expected = "P2: it was killed: it ran longer than 1s; running it again (1 of 1)\n";
    again.ok().stderr_has(&[expected]);
    place.assert_results(&["p1", "p2"], &["marker"]);
    for limit in ["0", "1us", "soon", "5"] {
        let refused = place.shell(&format!("--time-limit {limit} --force"), "cat");
        refused.fails(2, &["--time-limit"]);
    }
}

#[test]
fn a_second_attempt_gets_the_original_shard() {
    let place = Place::new(&[(1, "one")]);
    place.put("in put/p2/two", "two");
    let script = "ls -A; mkdir made; echo new > made/by_$FLITCAST_PE
         [ -e @/marker ] || [ $FLITCAST_PE != 2 ] || { touch @/marker; exit 5; }";
    let again = place.shell("--retry 1", script).ok();
    again.stderr_has(&["P2: the command ended with exit status 5; running it again (1 of 1)\n"]);
    again.prints(&["  PE  shard  runs  exit "]);
    place.assert_results(&["p1", "p2"], &["marker"]);
    assert_eq!(place.result("p2/stdout"), "two\n");
    assert_eq!(place.result("p2/made/by_2"), "new\n");
    assert_eq!(place.result("p1/stdout"), "");
}

#[test]
fn the_number_of_retries_is_limited() {
    let place = Place::new(&THREE);
    let script = "cat; [ $FLITCAST_PE != 2 ] || { echo x >> @/count; exit 1; }";
    let failed = place.shell("--retry 2", script);
    let again = ["running it again (1 of 2)", "running it again (2 of 2)"];
    failed.fails(1, &[again[0], again[1], "error: P2: "]);
    assert_eq!(place.dir.read("count"), "x\nx\nx\n");
    place.assert_results(&["p1", "p2.failed", "p3"], &["count"]);
}

/// Waits until the command runs at P2, and sends the PE a signal.
fn signal_p2(place: &Place, signal: Signal, options: &str) -> flitcast_tests::Finished {
    let marker = place.path("marker");
    let running = place.start(options, &["sh", "-c", SLEEPS_ONCE]);
    until("the command runs at P2", || marker.exists());
    running.pe(2).signal(signal);
    running.finish()
}

#[test]
fn a_pe_that_dies_is_named_and_the_others_are_gathered() {
    let silence = "--timeouts heartbeat=100ms,silence=1s";
    for (signal, options, expected) in [
        (Signal::KILL, "", "was killed by signal 9 (SIGKILL)\n"),
        (Signal::STOP, silence, "has been silent for "),
    ] {
        let place = Place::new(&THREE);
        let failed = signal_p2(&place, signal, options);
        failed.fails(1, &[&format!("error: P2: {expected}")]);
        place.assert_results(&["p1", "p3"], &["marker"]);
        assert_eq!(place.result("p1/stdout"), "one");
    }
}

#[test]
fn a_pe_that_dies_gets_a_new_process() {
    let place = Place::new(&THREE);
    let done = signal_p2(&place, Signal::KILL, "--retry 1").ok();
    done.stderr_has(&["P2: was killed by signal 9 (SIGKILL); running it again (1 of 1)\n"]);
    place.assert_results(&["p1", "p2", "p3"], &["marker"]);
    assert_eq!(place.result("p2/stdout"), "two");
}
