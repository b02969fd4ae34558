//! A command that cannot be executed is rejected with exit status 2: stderr names every cause,
//! stdout is empty, and nothing was launched or written.

mod files;
mod profile;
mod tree;
mod unreadable;

use std::process::Command;

use flitcast_tests::files::{assert_same, fill, snapshot};
use flitcast_tests::run::run_program;
use flitcast_tests::table::refusals;
use flitcast_tests::{Finished, Folder, flitcast, scratch};

/// Runs a command that logs all steps. `@` stands for the folder.
fn run_loudly(dir: &Folder, line: &str) -> Finished {
    dir.run(&format!("-vv {line}"))
}

/// Checks that a command is refused, and that stderr contains every one of `causes`.
#[track_caller]
fn refused_in(dir: &Folder, line: &str, causes: &[&str]) {
    let before = snapshot(dir);
    let run = run_loudly(dir, line);
    run.fails(2, causes);
    assert_eq!(run.stdout, "", "{line}");
    assert!(run.stderr.starts_with("error: "), "{line}\n{}", run.stderr);
    for trace in ["launched", "assigned", "P0|"] {
        assert!(!run.stderr.contains(trace), "{line}\n{}", run.stderr);
    }
    assert_same(&before, &snapshot(dir));
}

/// Checks with [`refused_in`] that each command of a table is refused for its causes.
fn refused_each_in(dir: &Folder, command: &str, table: &str) {
    for (line, causes) in refusals(command, table) {
        refused_in(dir, &line, &causes);
    }
}

/// Entries `p1`, `p2`, `p3` in a folder `input`.
fn with_input() -> Folder {
    let dir = scratch();
    for pe in 1..=3 {
        fill(&dir.join(format!("input/p{pe}/file")), 1000);
    }
    dir
}

const TO_OUTPUT: &str = "--input @/input --output @/output";

/// The traces that the other tests must not find are present in a valid run.
#[test]
fn a_good_command_launches_and_writes() {
    let dir = with_input();
    let run = run_loudly(&dir, &format!("scatter --tree path:4 {TO_OUTPUT}")).ok();
    run.stderr_has(&["launched", "assigned", "P0|"]);
    assert!(dir.join("output").is_dir());
}

/// The commands that fail whatever is on the disk: each operation and each option that is not available, and
/// the error. `@/input` has a folder for each of three PEs.
#[test]
fn each_command_of_the_table_is_refused_for_its_causes() {
    refused_each_in(&with_input(), "", include_str!("refused.txt"));
}

#[test]
fn all_faults_of_a_command_are_listed_at_once() {
    let dir = with_input();
    fill(&dir.join("output/old"), 1);
    fill(&dir.join("input/p77"), 1);
    let line = format!("scatter --tree path:4 --flit-size 1 {TO_OUTPUT}");
    let all = ["--flit-size", "holds files already", "`p77`"];
    refused_in(&dir, &line, &all);
}

#[test]
fn a_fault_of_the_algorithm_hides_no_other() {
    let dir = with_input();
    fill(&dir.join("input/p77"), 1);
    let line = format!("gather --tree star:4 --algorithm shoulder-tap {TO_OUTPUT}");
    refused_in(&dir, &line, &["P0 has 3 children", "`p77`"]);
}

/// The error is printed once, not by every PE.
#[test]
fn a_log_filter_that_is_none() {
    let mut command = Command::new(flitcast());
    command.args(["scatter", "--tree", "path:4", "--size", "1"]);
    let run = run_program(command.env("RUST_LOG", "info,=x="));
    run.fails(2, &["RUST_LOG info,=x="]);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.stdout.is_empty());
}
