//! PEs with separate files: shards that wait behind a slow command, or at a PE that died, are sent to
//! another PE.

use std::path::Path;

use flitcast_tests::kept::Kept;
use flitcast_tests::processes::until;
use flitcast_tests::{Running, hosts};
use rustix::process::Signal;

use super::Place;

/// Returns a place with the shards `a` and `c`, which P1 gets, `b` and `d`, which P2 gets, and a cluster
/// whose PEs may be on different hosts; P2 is started by a shell with this script, in which `@` is the
/// folder of the place.
#[track_caller]
fn place(script: &str) -> Place {
    let place = Place::new(&[]);
    for shard in ["a", "b", "c/file", "d"] {
        place.put(&format!("in put/{shard}"), "x");
    }
    let script = script.replace("@/", &place.dir.shown(""));
    let below = |run: &str| format!("parent = 'a'\nrun = [{run}]");
    let second = below(&format!("'sh', '-c', '{script}'"));
    place.put("cluster", &hosts(&["", &below("'env'"), &second]));
    place
}

/// The script that starts a PE.
const STARTING: &str = "exec \"$0\" \"$@\"";

/// Returns a script that starts a PE, but does something else for the first time that there is a flag.
fn starting_again(other: &str) -> String {
    format!("[ -e @/flag ] && mkdir @/again && {other}; {STARTING}")
}

/// Shards and results of hosts that share nothing are meanwhile in a folder that each of them has.
#[test]
fn hosts_work_below_var_tmp() {
    let place = place(STARTING);
    place.run("--cluster @/cluster", &["pwd"]).ok();
    for shard in ["a", "b"] {
        let directory = place.dir.read(&format!("results/{shard}/stdout"));
        let below = directory.strip_prefix("/var/tmp/").expect(&directory);
        let (work, _) = below.split_once('/').expect("it is deeper");
        assert!(work.starts_with(".flitcast-map-"), "{directory}");
        assert!(!Path::new("/var/tmp").join(work).exists(), "{directory}");
    }
}

/// Starts `map` with these options and a script in which `@` is the folder of the place.
#[track_caller]
fn map(place: &Place, options: &str, script: &str) -> Running {
    let options = format!("--work @/work --joblog @/log --cluster @/cluster {options}");
    place.start(&options, &["sh", "-c", script])
}

/// Returns the shards that have lines in the log, with the PE and the exit status.
#[track_caller]
fn log(place: &Place) -> Vec<[String; 3]> {
    let log = place.dir.read("log");
    let line = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        [cells[9], cells[1], cells[6]].map(str::to_owned)
    };
    let mut lines: Vec<_> = log.lines().skip(1).map(line).collect();
    lines.sort();
    lines
}

/// The shard `a` waits for `c`, which waits behind it.
#[test]
fn a_shard_behind_a_slow_command_is_run_by_an_idle_pe() {
    let place = place(STARTING);
    let script = "case {} in a) until [ -e @/flag ]; do sleep 0.01; done;; c) touch @/flag;; esac
        cat file 2>/dev/null || cat; echo $FLITCAST_PE > pe";
    map(&place, "--time-limit 50s", script).finish().ok();
    place.assert_results(&["a", "b", "c", "d"], &["cluster", "flag", "log", "work"]);
    let ran = [("a", "P1"), ("b", "P2"), ("c", "P2"), ("d", "P2")];
    assert_eq!(log(&place), ran.map(|(shard, pe)| [shard, pe, "0"]));
    for (shard, pe) in ran {
        assert_eq!(place.result(&format!("{shard}/stdout")), "x");
        assert_eq!(
            place.result(&format!("{shard}/pe")),
            format!("{}\n", &pe[1..])
        );
    }
}

/// The shard `a` is moved when no other is left: its first command does not end by itself.
#[test]
fn a_shard_whose_command_takes_long_is_moved_to_an_idle_pe() {
    let place = place(STARTING);
    let script = "[ {} != a ] || mkdir @/first && [ {} = a ] && sleep 1000; cat";
    let options = "--time-limit 50s --speculate 1ms";
    let done = map(&place, options, script).finish().ok();
    done.stderr_has(&["a takes long at P1 b: P2 c runs it as well, and the first result counts\n"]);
    let ran = [
        ["a", "P1", "-1"],
        ["a", "P2", "0"],
        ["b", "P2", "0"],
        ["c", "P2", "0"],
        ["d", "P2", "0"],
    ];
    assert_eq!(log(&place), ran);
    assert_eq!(place.result("a/stdout"), "x");
}

/// The processes of `flitcast up` run commands, and lend no folders.
#[test]
fn a_running_cluster_moves_shards() {
    let below = |pe| {
        if pe > 0 {
            "parent = 'h0'\nrun = ['env']"
        } else {
            ""
        }
    };
    let mut cluster = Kept::new(3, "", |pe| below(pe).to_owned());
    for shard in ["a", "b", "c", "d"] {
        cluster.dir.put(&format!("in/{shard}"), "x");
    }
    let first = cluster.dir.shown("first");
    let script = format!("[ $1 != a ] || mkdir '{first}' && [ $1 = a ] && sleep 1000; cat");
    cluster.dir.put("script", script);
    cluster.up("up FILE").ok();
    let options = "--cluster FILE --time-limit 50s --speculate 1ms";
    let script = cluster.dir.shown("script");
    let line = format!("map --input in --output results {options} -- sh {script} {{}}");
    let done = cluster.run(&line).ok();
    done.stderr_has(&[
        "a takes long at P1 h1: P2 h2 runs it as well, and the first result counts\n",
    ]);
    for shard in ["a", "b", "c", "d"] {
        assert_eq!(cluster.dir.read(&format!("results/{shard}/stdout")), "x");
    }
    cluster.run("down FILE").ok();
}

#[test]
fn the_shards_of_a_pe_that_died_are_run_by_another() {
    let script =
        "[ {} != a ] || [ -e @/marker ] || { touch @/marker; sleep 1000; }; echo $FLITCAST_PE";
    for retry in ["0", "1"] {
        let place = place(STARTING);
        let running = map(&place, &format!("--retry {retry}"), script);
        until("the command runs on a", || place.path("marker").exists());
        running.pe(1).signal(Signal::KILL);
        let ended = running.finish();
        let mut ran = vec![
            ["a", "P1", "-1"],
            ["b", "P2", "0"],
            ["c", "P2", "0"],
            ["d", "P2", "0"],
        ];
        if retry == "0" {
            ended.fails(1, &["error: a at P1 b: was killed by signal 9 (SIGKILL)"]);
            assert_eq!(log(&place), ran);
            // Only what has failed is run again.
            map(&place, "--resume", script).finish().ok();
            ran.insert(1, ["a", "P1", "0"]);
        } else {
            ended.ok();
            ran.insert(1, ["a", "P2", "0"]);
        }
        assert_eq!(log(&place), ran);
        for [shard, pe, _] in &ran[1..] {
            assert_eq!(
                place.result(&format!("{shard}/stdout")),
                format!("{}\n", &pe[1..])
            );
        }
    }
}

/// The shard `a` waits until P2 has been started again, to move `c` there, which does not succeed.
#[test]
fn a_shard_that_does_not_arrive_is_run_where_it_is() {
    let script = "case {} in a) until [ -e @/go ]; do sleep 0.01; done;; d) touch @/flag;; esac";
    let exits = ("exit 3", Some("c cannot be moved to P2 c: "));
    for (again, note) in [exits, ("exec sleep 1000", None)] {
        let place = place(&starting_again(again));
        let mut running = map(&place, "--time-limit 50s", script);
        until("the move has begun", || place.path("again").exists());
        note.map(|note| running.wait_for(&[note]));
        place.put("go", "");
        running.finish().ok();
        let ran = [("a", "P1"), ("b", "P2"), ("c", "P1"), ("d", "P2")];
        assert_eq!(log(&place), ran.map(|(shard, pe)| [shard, pe, "0"]));
    }
}

#[test]
fn a_signal_ends_a_move_and_leaves_nothing() {
    let place = place(&starting_again("exec sleep 1000"));
    let script = "case {} in a) sleep 1000;; d) touch @/flag;; esac";
    let running = map(&place, "", script);
    until("the move has begun", || place.path("again").exists());
    running.signal(Signal::INT);
    let ended = running.finish().with_code(130);
    ended.stderr_has(&["interrupted: every process was stopped"]);
}
