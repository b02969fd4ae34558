//! The log of commands, and what `--resume` runs again.

use flitcast_tests::files::{identity, names, names_if_any};
use flitcast_tests::processes::until;
use flitcast_tests::{Finished, Running};
use rustix::process::Signal;

use super::Place;

/// Returns the columns of all lines of the log but the first.
#[track_caller]
fn log(place: &Place) -> Vec<Vec<String>> {
    let text = place.dir.read("log");
    let mut lines = text.lines();
    let columns =
        "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\tShard";
    assert_eq!(lines.next(), Some(columns));
    let cells = |line: &str| line.split('\t').map(str::to_owned).collect();
    lines.map(cells).collect()
}

/// Returns the shards in the order in which their commands ended.
fn shards(log: &[Vec<String>]) -> Vec<&str> {
    log.iter().map(|line| line[9].as_str()).collect()
}

#[test]
fn each_end_of_a_command_has_a_line() {
    let place = Place::new(&[]);
    for shard in ["a", "b c", "d"] {
        place.put(&format!("in put/{shard}"), "12345");
    }
    // The shard `a` ends after the others, although it begins first.
    let script = "case $0 in a) until [ $(wc -l < @/log) = 3 ]; do sleep 0.01; done; kill -9 $$;;
         d) exit 4;; esac; echo done";
    let options = "--joblog @/log --tree star:3";
    place.run(options, &["sh", "-c", script, "{}"]).with_code(1);
    let log = log(&place);
    assert_eq!(shards(&log), ["b c", "d", "a"]);
    for (line, expected) in log.iter().zip([
        ["2", "P2", "5", "5", "0", "0", "'b c'"],
        ["3", "P2", "5", "0", "4", "0", "d"],
        ["1", "P1", "5", "0", "0", "9", "a"],
    ]) {
        let [seq, host, send, receive, exit, signal, shard] = expected;
        assert_eq!([&line[0], &line[1]], [seq, host]);
        let figures = [send, receive, exit, signal];
        assert_eq!([&line[4], &line[5], &line[6], &line[7]], figures);
        assert!(line[8].starts_with("sh -c 'case $0 in"), "{line:?}");
        assert!(line[8].ends_with(shard), "{line:?}");
        let began: f64 = line[2].parse().expect("seconds");
        assert!(began > 1e9, "{began}");
    }
}

#[test]
fn only_missing_shards_are_run_again() {
    let place = Place::named(&["a", "b", "c", "d", "e"]);
    let script = "cat; echo {} >> @/count; test {} != b || [ -e @/count2 ]";
    let options = "--joblog @/log --halt soon,fail=1 --tree star:2";
    let failed = place.shell(options, script);
    failed.fails(
        1,
        &["error: b at P1: the command ended", "3 shards were not run"],
    );
    place.assert_results(&["a", "b.failed"], &["count", "log"]);
    let first = identity(&place.output().join("a/stdout"));
    place.put("count2", "");

    // The result of `c` was removed, and that of `e` is of another run.
    let resumed = "--joblog @/log --resume";
    place.put("results/e/stdout", "old");
    let done = place.shell(resumed, script).ok();
    done.prints(&["  earlier      1 shard has results already\n", "4 of 4"]);
    let beside = ["count", "count2", "log"];
    place.assert_results(&["a", "b", "c", "d", "e"], &beside);
    assert_eq!(place.result("e/stdout"), "e");
    assert_eq!(identity(&place.output().join("a/stdout")), first);
    assert_eq!(log(&place).len(), 6);

    std::fs::remove_dir_all(place.output().join("c")).expect("it is there");
    place.shell(resumed, script).ok();
    assert_eq!(log(&place).len(), 7);
    assert_eq!(place.result("c/stdout"), "c");
    let ran = place.dir.read("count");
    assert_eq!(ran.lines().filter(|line| *line == "a").count(), 1);
    assert_eq!(ran.lines().filter(|line| *line == "c").count(), 2);

    let json = format!("{resumed} --format json");
    let nothing = place.shell(&json, script).ok();
    assert_eq!(nothing.report().number("/resumed"), 5);
    assert!(nothing.report().list("/shards").is_empty());
    assert_eq!(place.dir.read("count"), ran);
    assert_eq!(names(&place.output()), ["a", "b", "c", "d", "e"]);
}

#[test]
fn invalid_resumes_are_refused() {
    let place = Place::new(&[(1, "x")]);
    place.run("--resume", &["true"]).fails(2, &["--joblog"]);
    place.put("log", "something else");
    let refused = place.run("--resume --joblog @/log", &["true"]);
    refused.fails(2, &["it is not a log of `flitcast map`"]);
    let failed = place.run("--joblog @/no/log", &["true"]);
    failed.fails(1, &["--joblog", "it cannot be written"]);
    place.assert_beside(&["in put", "log"]);
    // Shards of PEs are logged and resumed as well.
    place.run("--joblog @/log", &["cat"]).ok();
    assert_eq!(shards(&log(&place)), ["p1"]);
    place.put("in put/p2", "y");
    place.run("--joblog @/log --resume", &["cat"]).ok();
    assert_eq!(shards(&log(&place)), ["p1", "p2"]);
    assert_eq!(place.result("p2/stdout"), "y");
}

/// Starts a map of the shards a to d at two PEs, in which c and d do not end until the file `go` exists.
/// Returns it when a and b have ended, and c and d run.
fn start_of_four(options: &str) -> (Place, Running) {
    let place = Place::named(&["a", "b", "c", "d"]);
    let script = "echo of {}; case {} in a|b) exit 0;; esac
         trap 'exit 0' TERM; touch '@/up {}'; until [ -e @/go ]; do sleep 0.01; done";
    let running = place.start(options, &["sh", "-c", script]);
    until("c and d run", || {
        ["up c", "up d"].iter().all(|up| place.path(up).exists())
    });
    (place, running)
}

fn finish_by(running: Running, signal: Signal, code: i32) -> Finished {
    running.signal(signal);
    running.finish().with_code(code)
}

#[test]
fn an_interruption_gathers_what_has_ended_and_resume_runs_the_others() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let options = "--tree star:3 --joblog @/log";
        let (place, running) = start_of_four(options);
        let ended = finish_by(running, signal, code);
        let output = place.output();
        ended.stderr_has(&[&format!(
            "interrupted: every process was stopped; 2 of 4 shards are done, in `{}`; the same \
             command with --resume runs the others\n",
            output.display()
        )]);
        ended.prints(&["  killed  ", "  results      2 of 4, "]);
        assert!(!ended.stderr.contains("error:"), "{}", ended.stderr);
        place.assert_results(&["a", "b"], &["log", "up c", "up d"]);
        let logged = log(&place);
        let mut ended = shards(&logged);
        ended.sort_unstable();
        assert_eq!(ended, ["a", "b"]);
        let first = identity(&output.join("a/stdout"));

        place.put("go", "");
        let resumed = format!("{options} --resume");
        let done = place.run(&resumed, &["echo", "of", "{}"]).ok();
        done.prints(&["  earlier      2 shards have results already\n", "2 of 2"]);
        let mut ran: Vec<String> = log(&place).iter().map(|line| line[9].clone()).collect();
        ran.sort_unstable();
        assert_eq!(ran, ["a", "b", "c", "d"]);
        assert_eq!(identity(&output.join("a/stdout")), first);
        assert_eq!(place.result("d/stdout"), "of d\n");
    }
}

#[test]
fn after_an_interruption_without_a_log_all_shards_are_run_again() {
    let (place, running) = start_of_four("--tree star:3");
    let ended = finish_by(running, Signal::INT, 130);
    ended.stderr_has(&["; another map runs all shards again, because --resume needs a --joblog\n"]);
    place.assert_results(&["a", "b"], &["up c", "up d"]);
}

/// The result of P2 takes a quarter of a minute, and that of P1 arrives before.
#[test]
fn an_interruption_of_the_gather_keeps_the_results_that_have_arrived() {
    let place = Place::named(&["a", "b"]);
    let options = "--tree star:3 --joblog @/log";
    let script = "echo of {}; [ {} = a ] || yes | head -c 20000000";
    let slow = format!("{options} --link rate=10mbit");
    let running = place.start(&slow, &["sh", "-c", script]);
    until("the first result has arrived", || {
        let gathered = names_if_any(&place.output());
        gathered
            .iter()
            .any(|name| place.output().join(name).join("p1").exists())
    });
    let ended = finish_by(running, Signal::INT, 130);
    ended.stderr_has(&[
        "error: b at P2: its result was not gathered\n",
        "interrupted: every process was stopped; 1 of 2 shards are done, in `",
        "; the same command with --resume runs the others\n",
    ]);
    ended.prints(&["  gather       interrupted\n", "  results      1 of 2, "]);
    place.assert_results(&["a"], &["log"]);
    assert_eq!(place.result("a/stdout"), "of a\n");
    let resumed = format!("{options} --resume");
    place.run(&resumed, &["echo", "of", "{}"]).ok();
    place.assert_results(&["a", "b"], &["log"]);
}

#[test]
fn a_second_signal_ends_a_map_without_its_results() {
    let place = Place::named(&["a", "b"]);
    let script = "[ {} = b ] || exit 0; trap \"touch '@/up told'\" TERM; touch @/up
         while :; do sleep 0.01; done";
    let running = place.start("--tree star:2", &["sh", "-c", script]);
    until("b runs", || place.path("up").exists());
    running.signal(Signal::INT);
    until("b was told to end", || place.path("up told").exists());
    let ended = finish_by(running, Signal::INT, 130);
    ended
        .stderr_has(&["interrupted twice: every process was stopped; 1 result was not gathered\n"]);
    place.assert_beside(&["in put", "up", "up told"]);
}
