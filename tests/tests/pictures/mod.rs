//! `--report` and `--trace`: their content agrees with the run and its output, they are written as
//! a whole or not at all, and the page draws itself in a browser.

mod browser;
mod data;
mod ordered;
mod place;
mod planned;
mod recorded;
mod traced;

use std::path::Path;

use flitcast_tests::{Report, run};
use serde_json::Value;

/// Runs a command that must succeed, with both pictures; returns its output.
#[track_caller]
fn drawn(dir: &Path, command: &[&str]) -> Report {
    let (report, trace) = (dir.join("out.html"), dir.join("out.json"));
    let fixed = ["--format", "json", "--report"].map(str::to_owned);
    let mut arguments: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    arguments.extend(fixed);
    arguments.push(report.to_str().expect("it is UTF-8").to_owned());
    arguments.push("--trace".to_owned());
    arguments.push(trace.to_str().expect("it is UTF-8").to_owned());
    run(arguments).ok().report()
}

#[track_caller]
fn trace(dir: &Path) -> Value {
    let text = std::fs::read_to_string(dir.join("out.json")).expect("a trace was written");
    serde_json::from_str(&text).expect("a trace is JSON")
}

#[track_caller]
fn page(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("out.html")).expect("a page was written")
}
