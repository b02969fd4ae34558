//! The table of faults: what happens, what the user is told, and how soon. Each row is a
//! test with real processes, named after its number, runs alone or beside others that only wait,
//! and prints what it measured:
//!
//!     FLITCAST_BOUNDS=exact cargo test -p flitcast-tests --release --test fault_table -- \
//!         --nocapture
//!
//! A bound here is a promise, so it is asserted; on a machine that others use with some slack.
//! Rows
//! 4 to 7 need the network lab, and 13 a file system of its own: these need root. Which
//! rows are tested elsewhere, `tests/README.md` says.

mod credentials;
mod crowds;
mod deaths;
mod disks;
mod doubled;
mod flood;
mod full;
mod guarded;
mod hostile;
mod inputs;
mod limits;
mod network;
mod random_kills;
mod scrapes;
mod silence;
mod slow;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use flitcast_tests::{Finished, Running, flitcast, start};

/// Rows that have the machine for themselves wait for those that share it, and the reverse.
static ROWS: RwLock<()> = RwLock::new(());

/// Nothing else of this program runs meanwhile, and no row is charged with building the command.
fn alone() -> RwLockWriteGuard<'static, ()> {
    flitcast();
    ROWS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Rows that only wait, for a silence to be long enough say, do that side by side.
fn beside() -> RwLockReadGuard<'static, ()> {
    flitcast();
    ROWS.read().unwrap_or_else(PoisonError::into_inner)
}

/// A run whose message does not end in a day, in mid-round.
#[track_caller]
fn endless(arguments: impl IntoIterator<Item = String>) -> Running {
    let mut running = start(arguments.into_iter().chain(["-vv".to_owned()]));
    running.wait_for(&["P0| ", "message"]);
    running
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Does something to a run, and waits for its end: with exit status 1, and in time.
#[track_caller]
fn failing(
    row: &str,
    case: &str,
    bound: Option<f64>,
    running: Running,
    fault: impl FnOnce(&Running),
) -> Finished {
    let began = Instant::now();
    fault(&running);
    let finished = running.finish();
    measured(row, case, bound, began.elapsed());
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    finished
}

/// How many times a bound a case may take: on a machine that others may use, half as much again;
/// where nobody does (`FLITCAST_BOUNDS=exact`), no more.
fn slack() -> f64 {
    match std::env::var("FLITCAST_BOUNDS").as_deref() {
        Ok("exact") => 1.0,
        _ => 1.5,
    }
}

/// Prints a line of the table.
#[track_caller]
fn measured(row: &str, case: &str, bound: Option<f64>, took: Duration) {
    let took = took.as_secs_f64();
    match bound {
        Some(bound) => {
            println!("| {row} | {case} | {took:.2} s | {bound} s |");
            let limit = bound * slack();
            assert!(took <= limit, "{case}: {took:.2} s, and not {bound} s");
        }
        None => println!("| {row} | {case} | {took:.2} s | - |"),
    }
}

/// That the user is told all of this.
#[track_caller]
fn says(finished: &Finished, parts: &[&str]) {
    for part in parts {
        let stderr = &finished.stderr;
        assert!(stderr.contains(part), "no `{part}` in\n{stderr}");
    }
}
