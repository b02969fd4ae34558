//! Invalid sizes, flits and algorithms, and options that exclude each other.

use flitcast_tests::run::run_program;

/// The error is printed once, not by every PE.
#[test]
fn a_log_filter_that_is_none() {
    let mut command = std::process::Command::new(flitcast_tests::flitcast());
    command.args(["scatter", "--tree", "path:4", "--size", "1"]);
    let run = run_program(command.env("RUST_LOG", "info,=x="));
    run.fails(2, &["RUST_LOG info,=x="]);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.stdout.is_empty());
}
