//! `--report` and `--trace`: their content agrees with the run and its output, they are written as
//! a whole or not at all, and the page draws itself in a browser.

mod browser;
mod data;
mod ordered;
mod overlap;
mod place;
mod planned;
mod recorded;
mod traced;

use flitcast_tests::{Folder, Report};
use serde_json::Value;

/// Runs a command that must succeed, with both pictures; returns its output.
#[track_caller]
fn drawn(dir: &Folder, line: &str) -> Report {
    dir.report(&format!("{line} --report @/out.html --trace @/out.json"))
}

#[track_caller]
fn trace(dir: &Folder) -> Value {
    serde_json::from_str(&dir.read("out.json")).expect("a trace is JSON")
}

#[track_caller]
fn page(dir: &Folder) -> String {
    dir.read("out.html")
}
