//! The metrics page checked by Prometheus: `promtool check metrics`.
//!
//! `promtool` is part of Debian's package `prometheus`.

use std::fs::File;
use std::process::Command;

use flitcast_tests::processes::eventually;
use flitcast_tests::run::run_program;
use flitcast_tests::scrape::{address, scrape};
use flitcast_tests::{scratch, start};

#[test]
#[ignore = "needs prometheus"]
fn prometheus_finds_nothing_wrong() {
    let line = "gather --tree path:4 --size 100kB --rounds 100000 --metrics 127.0.0.1:0";
    let mut run = start(line.split_whitespace());
    let at = address(&mut run);
    let page = eventually("some rounds are over", || {
        let page = scrape(at)?;
        page.text.contains("outcome=\"done\"").then_some(page)
    });
    run.interrupt();
    let dir = scratch();
    let file = File::open(dir.put("page", &page.text)).expect("it was written");
    let mut promtool = Command::new("promtool");
    let output = run_program(promtool.args(["check", "metrics"]).stdin(file)).ok();
    assert_eq!(output.stdout + &output.stderr, "", "{}", page.text);
}
