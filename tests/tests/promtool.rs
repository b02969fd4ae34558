//! The metrics page checked by Prometheus: `promtool check metrics`.
//!
//! `promtool` is part of Debian's package `prometheus`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use flitcast_tests::processes::eventually;
use flitcast_tests::scrape::{address, scrape};
use flitcast_tests::start;
use rustix::process::Signal;

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
    run.signal(Signal::INT);
    run.finish();
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is there");
    let mut input = promtool.stdin.take().expect("it is piped");
    input.write_all(page.text.as_bytes()).expect("it reads");
    drop(input);
    let said = promtool.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&said.stderr) + String::from_utf8_lossy(&said.stdout);
    assert!(
        said.status.success() && text.is_empty(),
        "{text}\n{}",
        page.text
    );
}
