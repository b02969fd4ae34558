//! However it ends, nothing that a command has started outlives it.

use flitcast_tests::Running;
use flitcast_tests::processes::{Process, eventually};
use rustix::process::Signal;

use super::Place;

const TWO: [(u32, &str); 2] = [(1, "one"), (3, "three")];

/// Has children of its own, one in a session of its own and one that ignores SIGTERM, writes
/// all the time, and does not end.
const STUBBORN: &str = "
    setsid sleep 1001 &
    (trap '' TERM; while :; do echo x >> more; sleep 0.01; done) &
    touch up
    sleep 1000";

/// Does not end, unless it is told to, and then says so.
const TIDY: &str =
    "trap 'echo tidied > ../../../../tidied; exit' TERM; touch up; while :; do sleep 0.01; done";

#[track_caller]
fn start(place: &Place, options: &[&str], script: &str) -> Running {
    let running = place.start(options, &["sh", "-c", script]);
    eventually("the command runs at both", || {
        let work = place.work()?;
        let is_up = |pe: u32| work.join(format!("tasks/p{pe}/directory/up")).exists();
        (is_up(1) && is_up(3)).then_some(())
    });
    running
}

/// Processes of the run that are neither the coordinator's nor a PE's own.
fn of_commands(running: &Running) -> Vec<Process> {
    let mut all = running.processes();
    all.retain(|process| {
        !process
            .arguments
            .iter()
            .any(|word| word == "map" || word == "node")
    });
    all
}

#[test]
fn ctrl_c_ends_commands_and_leaves_nothing() {
    let place = Place::new(&TWO);
    let running = start(&place, &[], STUBBORN);
    assert!(
        of_commands(&running).len() >= 8,
        "{:?}",
        running.processes()
    );
    running.signal(Signal::INT);
    // When the coordinator has ended, so has everything else.
    let ended = running.finish();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    super::says(&ended, &["interrupted: every process was stopped"]);
    place.assert_beside(&["in put"]);
}

#[test]
fn a_command_is_asked_to_end_before_it_is_killed() {
    let place = Place::new(&TWO);
    let running = start(&place, &[], TIDY);
    running.signal(Signal::TERM);
    let ended = running.finish();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    // Beside the working folder, which is gone.
    place.assert_beside(&["in put", "tidied"]);
}

#[test]
fn when_the_coordinator_is_killed_commands_end() {
    let place = Place::new(&TWO);
    let running = start(&place, &[], STUBBORN);
    // Waits until all are gone.
    running.kill();
}

#[test]
fn when_a_pe_is_killed_its_command_ends() {
    let place = Place::new(&TWO);
    let running = start(&place, &[], STUBBORN);
    let before = of_commands(&running).len();
    running.pe(3).signal(Signal::KILL);
    eventually("the command of P3 has ended", || {
        let left = of_commands(&running).len();
        (left <= before / 2).then_some(())
    });
    running.pe(1).signal(Signal::KILL);
    let ended = running.finish();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    place.assert_beside(&["in put"]);
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    let place = Place::new(&TWO);
    let done = place
        .shell(&[], "sleep 1000 & setsid sleep 1001 & echo done")
        .ok();
    assert_eq!(done.stderr, "");
    assert_eq!(place.result("p1/stdout"), "done\n");
    place.assert_results(&["p1", "p3"], &[]);
}

#[test]
fn a_supervisor_that_is_told_to_end_ends_its_command() {
    let place = Place::new(&TWO);
    let running = start(&place, &[], STUBBORN);
    for process in running.processes() {
        if process.arguments.iter().any(|word| word == "leash") {
            process.signal(Signal::TERM);
        }
    }
    let ended = running.finish();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    super::says(&ended, &["error: P1: it was told to end\n"]);
    place.assert_beside(&["in put"]);
}
