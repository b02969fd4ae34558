//! Rows 4 to 7, in the network lab: hosts that disappear, paths that close, slow links.

use std::process::Command;
use std::time::Duration;

use flitcast_tests::lab::Lab;
use flitcast_tests::run::run_program;
use flitcast_tests::{Finished, start};

use crate::{alone, beside, endless, failing, timed, words};

/// Runs `ip` or `tc` in a host of the lab.
#[track_caller]
fn within(host: &str, tool: &str, line: &str) {
    let mut command = Command::new(tool);
    command.args([if tool == "ip" { "-n" } else { "-netns" }, host]);
    run_program(command.args(words(line))).ok();
}

fn assert_one_cause(finished: &Finished) {
    let lines = finished.stderr.lines();
    let causes = lines.filter(|line| line.starts_with("error: "));
    assert_eq!(causes.count(), 1, "{}", finished.stderr);
}

/// P0 - P1 - P2 - P3: P2 on fc2 has links to fc1 and to fc3, and one to the coordinator.
#[test]
#[ignore = "needs root and iproute2"]
fn row_04_a_host_vanishes() {
    let _alone = alone();
    let lab = Lab::up("--tree path:4 --rate 100mbit");
    let running = endless(lab.arguments("scatter --size 400GiB"));
    let finished = failing("4", "host vanishes", Some(4.0), running, |_| {
        for interface in ["mgmt", "fc1", "fc3"] {
            within("fc2", "ip", &format!("link set dev {interface} down"));
        }
    });
    finished.stderr_has(&[
        "error: P2 ",
        " for 3.",
        "where: P2 fc2, ",
        "cut off with it: P3",
    ]);
}

/// Frames from one host to the other are lost: the address behind the wire is wrong.
#[test]
#[ignore = "needs root and iproute2"]
fn row_05_a_link_carries_one_direction_only() {
    let _alone = alone();
    let lab = Lab::up("--tree path:3 --rate 100mbit");
    // Edge 2 is the network of 198.18.0.4, P1, and 198.18.0.5, P2.
    for (from, interface, to, operation) in [
        ("fc1", "fc2", "198.18.0.5", "gather"),
        ("fc2", "fc1", "198.18.0.4", "scatter"),
    ] {
        let case = format!("{from} to {interface} is lost, {operation}");
        let running = endless(lab.arguments(&format!("{operation} --lengths 0,400GiB")));
        let finished = failing("5", &case, Some(5.0), running, |_| {
            let astray = "lladdr 02:00:00:00:00:99";
            let line = format!("neigh replace {to} {astray} dev {interface} nud permanent");
            within(from, "ip", &line);
        });
        within(from, "ip", &format!("neigh del {to} dev {interface}"));
        assert_one_cause(&finished);
        // Buffers along the path fill for a while; then the host at the other end may miss the
        // answers to its keepalives before the stall is reported.
        let stalled = [
            " cannot be reached from ",
            "it acknowledges nothing",
            "nothing has moved for 3.",
        ];
        let cut = [" cannot be reached any more: Connection timed out"];
        match finished.stderr.contains("nothing has moved for ") {
            true => finished.stderr_has(&stalled),
            false => finished.stderr_has(&cut),
        }
        let cause = &finished.stderr[finished.stderr.find("error: ").unwrap_or(0)..];
        let ends = ["P1 fc1 at 198.18.0.4:", "P2 fc2 at 198.18.0.5:"];
        assert!(ends.iter().any(|end| cause.contains(end)), "{cause}");
    }
}

/// Another edge is busy meanwhile, and will be for a day.
#[test]
#[ignore = "needs root and iproute2"]
fn row_05_a_link_that_is_idle_is_cut() {
    let _alone = alone();
    let lab = Lab::up("--tree star:3 --rate 100mbit");
    let running = endless(lab.arguments("gather --lengths 400GiB,0"));
    let finished = failing("5", "an idle link is down", Some(5.0), running, |_| {
        within("fc2", "ip", "link set dev fc0 down");
    });
    finished.stderr_has(&["P0", "P2", " cannot be reached any more: "]);
}

#[test]
#[ignore = "needs root and iproute2"]
fn row_06_links_stop_and_come_back() {
    let _beside = beside();
    let lab = Lab::up("--tree path:4 --rate 100mbit");
    let line = "gather --size 4MiB --format json";
    let running = endless(lab.arguments(line));
    let edges = [("fc1", "fc0"), ("fc2", "fc1"), ("fc3", "fc2")];
    let set = |(host, interface), state| {
        within(host, "ip", &format!("link set dev {interface} {state}"));
    };
    timed("6", "links down for 0.7 s, then done", None, || {
        for edge in edges {
            set(edge, "down");
        }
        std::thread::sleep(Duration::from_millis(700));
        for place in [1, 2, 0] {
            set(edges[place], "up");
        }
        running.finish().ok().report().assert_all_arrived();
    });
    let running = endless(lab.arguments(line));
    let finished = failing("6", "links down for good", None, running, |_| {
        for edge in edges {
            set(edge, "down");
        }
    });
    assert_one_cause(&finished);
}

/// The edges were measured when they were faster.
#[test]
#[ignore = "needs root and iproute2"]
fn row_07_an_edge_is_slow() {
    let _beside = beside();
    // A round takes 0.3 s, so that it is under way when the edge is slow.
    let lab = Lab::up("--tree path:3 --rate 8mbit");
    for operation in ["gather", "scatter"] {
        let line = format!("{operation} --lengths 0,320KiB --format json -vv");
        let mut running = start(lab.arguments(&line));
        running.wait_for(&["triggered"]);
        let shape = |rate: &str| {
            for (host, interface) in [("fc2", "fc1"), ("fc1", "fc2")] {
                let shape = format!("root tbf burst 3200 {rate}");
                let line = format!("qdisc replace dev {interface} {shape}");
                within(host, "tc", &line);
            }
        };
        let case = format!("1 Mbit/s and 200 ms, {operation} done");
        let finished = timed("7", &case, None, || {
            // A queue of 25 kB takes 200 ms to leave.
            shape("rate 1mbit limit 25000");
            running.finish().ok()
        });
        finished.report().assert_all_arrived();
        let slowdown = finished.report().float("/round/slowdown");
        assert!(slowdown > 2.0, "{slowdown}");
        finished.stderr_has(&["round 1 is slow, x ", "against the prediction so far"]);
        shape("rate 8mbit limit 1mb");
    }
}
