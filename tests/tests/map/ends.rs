//! No process that a command has started outlives the run, whatever ends it.

use std::fs::{self, File};
use std::thread;

use flitcast_tests::Running;
use flitcast_tests::files::{names, set_mode};
use flitcast_tests::processes::{Process, eventually, until};
use flitcast_tests::run::begin;
use rustix::process::Signal;

use super::{Place, map_without_root};

const TWO: [(u32, &str); 2] = [(1, "one"), (3, "three")];

/// Has children, one in a separate session and one that ignores SIGTERM, writes all the time, and
/// does not end.
const STUBBORN: &str = "
    setsid sleep 1001 &
    (trap '' TERM; while :; do echo x >> more; sleep 0.01; done) &
    touch up
    sleep 1000";

/// A script that ends only on request, and records that.
const TIDY: &str =
    "trap 'echo tidied > ../../../../tidied; exit' TERM; touch up; while :; do sleep 0.01; done";

fn start(place: &Place, options: &str, script: &str) -> Running {
    let running = place.start(options, &["sh", "-c", script]);
    until("the command runs at both", || {
        [1, 3].iter().all(|pe| place.is_up(*pe))
    });
    running
}

/// Returns the processes of the run other than the coordinator's and the PEs' own.
fn of_commands(running: &Running) -> Vec<Process> {
    let is_own = |argument: &String| argument == "map" || argument == "node";
    let mut all = running.processes();
    all.retain(|process| !process.arguments.iter().any(is_own));
    all
}

#[test]
fn a_signal_ends_commands_and_leaves_nothing() {
    for (signal, code) in [(Signal::INT, 130), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let place = Place::new(&TWO);
        let running = start(&place, "", STUBBORN);
        let all = of_commands(&running);
        assert!(all.len() >= 8, "{all:?}");
        running.signal(signal);
        // When the coordinator has ended, so has everything else.
        let ended = running.finish().with_code(code);
        ended.stderr_has(&["interrupted: every process was stopped"]);
        place.assert_beside(&["in put"]);
    }
}

#[test]
fn a_command_can_end_by_itself_before_it_is_killed() {
    let place = Place::new(&TWO);
    let running = start(&place, "", TIDY);
    running.signal(Signal::TERM);
    running.finish().with_code(143);
    // The file is beside the working folder, which is gone.
    place.assert_beside(&["in put", "tidied"]);
}

#[test]
fn when_the_coordinator_is_killed_commands_end() {
    let place = Place::new(&TWO);
    let running = start(&place, "", STUBBORN);
    // Waits until all are gone.
    running.kill();
}

#[test]
fn when_a_pe_is_killed_its_command_ends() {
    let place = Place::new(&TWO);
    let running = start(&place, "", STUBBORN);
    let task = place.work().expect("they run in it").join("tasks/p3");
    let of_p3 = || of_commands(&running).iter().any(|it| it.is_in(&task));
    assert!(of_p3(), "{:?}", running.processes());
    running.pe(3).signal(Signal::KILL);
    until("the command of P3 has ended", || !of_p3());
    running.pe(1).signal(Signal::KILL);
    // The end of a PE's supervisors is not waited for if the PE was killed.
    until("its supervisors have ended, too", || {
        of_commands(&running).is_empty()
    });
    running.finish().with_code(1);
    place.assert_beside(&["in put"]);
}

#[test]
fn background_processes_end_with_their_command() {
    let place = Place::new(&TWO);
    let script = "sleep 1000 & setsid sleep 1001 & echo done";
    assert_eq!(place.shell("", script).ok().stderr, "");
    assert_eq!(place.result("p1/stdout"), "done\n");
    place.assert_results(&["p1", "p3"], &[]);
}

#[test]
fn a_terminated_supervisor_ends_its_command() {
    let place = Place::new(&TWO);
    let running = start(&place, "", STUBBORN);
    for process in leashes(&running) {
        process.signal(Signal::TERM);
    }
    let expected = "error: P1: it was told to end\n";
    running.finish().fails(1, &[expected]);
    place.assert_beside(&["in put"]);
}

/// No Ctrl-C is needed: it is detected like a stopped PE.
#[test]
fn a_supervisor_that_stands_still_is_noticed_and_its_command_ends() {
    let is_noticed = |lower| {
        let place = Place::new(&TWO);
        let running = start(&place, "", STUBBORN);
        let mut stopped = leashes(&running);
        stopped.retain(|it| it.arguments.iter().any(|argument| argument == "--lower") == lower);
        assert_eq!(stopped.len(), 2, "{stopped:?}");
        for process in stopped {
            process.signal(Signal::STOP);
        }
        let expected = "error: P1: the supervisor of the command was stopped by a signal for 3 s";
        running.finish().fails(1, &[expected]);
        place.assert_beside(&["in put"]);
    };
    thread::scope(|scope| {
        scope.spawn(|| is_noticed(true));
        is_noticed(false);
    });
}

/// Leaves no trace: it has a separate session, no parent, no environment and no open file, and
/// ignores requests to end. Its number is in a file.
const DAEMON: &str = "
    (env -i setsid /bin/sh -c 'echo $$ > daemon; trap : TERM HUP INT
        exec 0<&- 1>&- 2>&- 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
        while :; do /bin/sleep 0.1; done' &)
    until [ -s daemon ]; do sleep 0.01; done
    touch up; sleep 1000 & wait";

/// Returns the supervisors between PEs and commands.
fn leashes(running: &Running) -> Vec<Process> {
    let mut all = running.processes();
    all.retain(Process::is_leash);
    all
}

/// Returns the numbers of the daemons of the PEs that [`TWO`] names.
#[track_caller]
fn daemons(place: &Place) -> Vec<i32> {
    let work = place.work().expect("they run in it");
    let daemons = [1, 3].map(|pe| {
        let text = fs::read_to_string(work.join(format!("tasks/p{pe}/directory/daemon")));
        let number = text.expect("it is written").trim().parse();
        number.expect("a number")
    });
    daemons.into()
}

fn wait_until_ended(daemons: &[i32]) {
    until("the daemons are gone", || {
        !daemons.iter().any(|pid| Process::is_alive(*pid))
    });
}

#[test]
fn when_all_that_is_called_flitcast_is_killed_commands_end() {
    for script in [STUBBORN, DAEMON] {
        let place = Place::new(&TWO);
        let mut running = start(&place, "", script);
        let daemons = if script == DAEMON {
            daemons(&place)
        } else {
            Vec::new()
        };
        // By its name, as `pkill` finds it, or by its command line, as `pkill -f` does.
        let mut called_so = running.processes();
        called_so.retain(|process| {
            let mut words = process.arguments.iter().chain([&process.name]);
            words.any(|argument| argument.contains("flitcast"))
        });
        assert!(called_so.len() >= 3, "the coordinator and two PEs");
        for process in called_so {
            process.signal(Signal::KILL);
        }
        running.coordinator_ends();
        until("nothing is left", || running.processes().is_empty());
        wait_until_ended(&daemons);
    }
}

#[test]
fn whichever_supervisor_is_killed_the_other_ends_the_command() {
    let place = Place::new(&TWO);
    let running = start(&place, "", DAEMON);
    let daemons = daemons(&place);
    // The upper one of P1's and the lower one of P3's, or the other way round.
    let of = |processes: Vec<Process>, parents: &[Process]| -> Vec<Process> {
        let is_below = |process: &Process| parents.iter().any(|it| it.pid == process.parent);
        processes.into_iter().filter(is_below).collect()
    };
    let upper = of(leashes(&running), &running.pes());
    let lower = of(leashes(&running), &upper);
    assert_eq!((upper.len(), lower.len()), (2, 2));
    let beside = lower.iter().find(|it| it.parent != upper[0].pid);
    upper[0].signal(Signal::KILL);
    beside.expect("each has one").signal(Signal::KILL);
    let expected = "the supervisor of the command ended (signal: 9 (SIGKILL))";
    let [first, third] = [1, 3].map(|pe| format!("error: P{pe}: {expected}"));
    running.finish().fails(1, &[&first, &third]);
    wait_until_ended(&daemons);
    place.assert_beside(&["in put"]);
}

/// A script that writes into the shard's folder all the time, and records whether a process of an
/// earlier run is still running.
const JEALOUS: &str = "
    for old in $(cat ../../../../first 2>/dev/null); do
        ! grep -qs '^State:[[:space:]][^ZX]' /proc/$old/status || echo $old >> ../../../../beside
    done
    [ ! -e ../../../../first ] || exit 0
    setsid sh -c 'trap : TERM; while :; do echo x >> more; sleep 0.01; done' &
    (trap : TERM; while :; do echo x >> more; sleep 0.01; done) &
    echo $$ $! $(pgrep -P $$) >> ../../../../first
    touch up; sleep 1000";

#[test]
fn a_second_command_finds_nothing_of_the_first_however_that_was_left() {
    let place = Place::new(&[(1, "one")]);
    let running = place.start("--retry 1", &["sh", "-c", JEALOUS]);
    until("the command runs", || place.is_up(1));
    // All supervisors at once: none of them detects the end of the others.
    let mut watching = leashes(&running);
    watching.push(running.pe(1));
    for signal in [Signal::STOP, Signal::KILL] {
        watching.iter().for_each(|process| process.signal(signal));
    }
    let done = running.finish().ok();
    done.stderr_has(&["P1: was killed by signal 9 (SIGKILL); running it again"]);
    // The output was removed: the folder was cleared when no process wrote any more.
    assert_eq!(names(&place.output().join("p1")), ["stdout"]);
    place.assert_results(&["p1"], &["first"]);
}

#[test]
fn a_process_that_holds_the_stderr_of_an_ended_command_is_named() {
    let place = Place::new(&[(1, "one")]);
    let script = "echo $$ > ../../../../pid; until [ -e ../../../../go ]; do sleep 0.01; done";
    let running = place.start("", &["sh", "-c", script]);
    let pid = eventually("the PID is written", || {
        let text = fs::read_to_string(place.path("pid")).ok()?;
        text.trim().parse::<u32>().ok()
    });
    // This test is not a descendant of the command's processes, which may not end it.
    let stderr = format!("/proc/{pid}/fd/2");
    let stderr = File::options().write(true).open(stderr);
    let stderr = stderr.expect("it is a pipe");
    place.put("go", "");
    let failed = running.finish();
    drop(stderr);
    let holder = format!("still held by process {} (`", std::process::id());
    let expected = "error: P1: it ended with exit status 0, but its stderr is ";
    failed.fails(1, &[&format!("{expected}{holder}")]);
    place.assert_beside(&["go", "in put", "pid"]);
}

/// The folder stays at first: both the coordinator and the PEs are dead.
#[test]
fn the_next_run_removes_the_folder_of_a_killed_run() {
    let place = Place::new(&TWO);
    for killed in 1..=2 {
        start(&place, "--force", STUBBORN).kill();
        assert!(place.work().is_some(), "it was killed");
        let done = place.shell("--force", "cat").ok();
        assert_eq!(done.stderr, "", "{killed}");
        place.assert_results(&["p1", "p3"], &[]);
    }
}

#[test]
fn the_folders_of_active_and_kept_runs_stay() {
    let place = Place::new(&TWO);
    let kept = place.shell("--keep-work", "cat").ok();
    kept.stderr_has(&["the working folder is kept: "]);
    let kept = place.work().expect("it is kept");
    assert!(kept.join("in/p1").exists());
    fs::remove_dir_all(place.output()).expect("it is there");
    fs::rename(&kept, place.path("aside")).expect("it is there");
    let running = start(&place, "", STUBBORN);
    let active = place.work().expect("it runs in it");
    fs::rename(place.path("aside"), &kept).expect("it was there");
    // Beside both; its results are elsewhere.
    let (input, output) = (place.dir.shown("in put"), place.dir.shown("other"));
    let paths = ["--input", &input, "--output", &output];
    let words = [&["map", "--tree", "star:4"], &paths[..], &["--", "cat"]];
    flitcast_tests::run(words.concat()).ok();
    assert!(active.join("tasks/p1/directory/up").exists());
    assert!(kept.join("in/p1").exists());
    running.signal(Signal::INT);
    running.finish();
    assert!(!active.exists() && kept.exists());
}

/// Another user's process cannot be killed: here, one of root by `nobody`.
#[test]
#[ignore = "needs root"]
fn a_process_that_survives_sigkill_is_named_and_keeps_its_folder() {
    let place = Place::new(&[(1, "one")]);
    let rootly = place.path("rootly");
    let mut setpriv = ["/usr/bin/setpriv", "/bin/setpriv"].iter();
    let setpriv = setpriv.find(|path| fs::exists(path).is_ok_and(|is| is));
    fs::copy(setpriv.expect("util-linux has it"), &rootly).expect("it can be copied");
    set_mode(&rootly, 0o4755);
    let script = "
        ../../../../rootly --reuid=0 --regid=0 --clear-groups sleep 1000 >/dev/null 2>&1 &
        until grep -q sleep /proc/$!/comm; do sleep 0.01; done";
    let mut running = begin(map_without_root(&place, script));
    let failed = running.coordinator_ends();
    let mut left = running.processes();
    left.iter().for_each(|process| process.signal(Signal::KILL));
    let survivor = left.pop().expect("this test needs root");
    assert!(left.is_empty(), "{left:?}");
    let started = "error: P1: it ended with exit status 0, but of what it started";
    let pid = survivor.pid;
    let expected = format!("{started} process {pid} (`sleep`) survives SIGKILL\n");
    let folder = "cannot remove the working folder";
    failed.fails(1, &[&expected, folder, "an earlier command still holds"]);
    assert!(place.work().is_some(), "nobody removes it under that");
}
