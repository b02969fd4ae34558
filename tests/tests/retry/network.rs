//! Recovery in networks in which not all PEs can be neighbours.

use flitcast_tests::files::{assert_same_below, fill, names, record, wait_for_partial};
use flitcast_tests::{Finished, Running, hosts, resume, scratch};

use super::{Files, LINK, kill, numbers};

/// Kills P1, without which no PE above P2 reaches it.
fn stranded(files: &Files, running: Running) -> Finished {
    files.wait_for("");
    kill(&running, 1);
    let finished = running.finish();
    finished.fails(1, &["no living ancestor can reach P2", "; 3 of 3 messages"]);
    finished
}

/// P0 to P3 in a ring, P2 below P1: without P1, only P3 could reach P2, and P3 is not an ancestor
/// of it.
#[test]
fn unreachable_pes_are_named() {
    let files = Files::new(2);
    std::fs::remove_dir_all(files.input().join("p4")).expect("it is there");
    let ring = "scatter --network ring:4 --retry 1 --format json";
    let running = files.start(&format!("{ring} {LINK}"));
    // P2's message has the farthest destination, and is sent first.
    let finished = stranded(&files, running);
    assert_eq!(numbers(&finished, "/retries/0/stranded"), [2]);
    assert_eq!(numbers(&finished, "/retries/0/sent"), [3]);
    let report = finished.report();
    assert_eq!(report.value("/undelivered/0/why"), "dead");
    assert_eq!(report.value("/undelivered/1/why"), "stranded");
    let before = files.there();
    files.assert_there(&["p3"], &before);
    files.resume("--revive").ok();
    files.assert_there(&["p1", "p2", "p3"], &before);
}

/// No process can be started, and P0's must not be excluded.
#[test]
fn a_launch_that_fails_is_retried_without_the_one_that_did() {
    let dir = scratch();
    let fails = "parent = 'a'\nrun = ['sh', '-c', 'exit 127']";
    dir.put("c.toml", hosts(&["", fails, "parent = 'b'"]));
    let line = "scatter --size 1KiB --format json --cluster @/c.toml --retry 1";
    let finished = dir.run(line).with_code(1);
    let dead = "P1 b is dead (ended with exit status 127 before it registered); going on";
    finished.stderr_has(&[
        dead,
        "P2 c moves to P0 a",
        "P1 b's message was not delivered",
    ]);
    assert_eq!(numbers(&finished, "/retries/0/sent"), [2]);
    assert_eq!(finished.report().number("/round/messages"), 1);
}

/// In a complete network, a broadcast builds its own tree over the PEs of a cluster file, and any
/// PE may be the source. The resumed run reads the PEs from the file again, and no tree.
#[test]
fn a_round_over_another_tree_than_the_cluster_files_is_resumed() {
    for (operation, gets) in [
        ("broadcast --algorithm path", &["b", "c", "d"][..]),
        ("broadcast --algorithm hypercube", &["b", "c", "d"]),
        ("scatter --from P2", &["a", "b", "d"]),
        ("gather --to P2", &["a", "b", "d"]),
    ] {
        let dir = scratch();
        let [input, output] = ["in", "out"].map(|name| dir.join(name));
        let pes = hosts(&["", "parent = 'a'", "parent = 'b'", "parent = 'b'"]);
        let text = format!("link = 'rate=20mbit,latency=1ms'\n{pes}");
        dir.put("c.toml", &text);
        for pe in gets {
            fill(&input.join(pe).join("file"), 1 << 20);
        }
        let files = "--input @/in --output @/out --cluster @/c.toml";
        let running = dir.start(&format!("{operation} {files}"));
        wait_for_partial(&output);
        kill(&running, 3);
        running.finish().with_code(1);
        let record = record(&output);

        dir.put("c.toml", text.replace("\"d\"", "\"e\""));
        let refused = resume(&record, "--revive");
        refused.fails(2, &["c.toml has other PEs", "P3 was \"d\", and is \"e\""]);
        dir.put("c.toml", text);
        resume(&record, "--revive").ok();
        assert_eq!(names(&output), gets, "{operation}");
        for pe in gets {
            let message = match operation.starts_with("broadcast") {
                true => input.clone(),
                false => input.join(pe),
            };
            assert_same_below(&message, &output.join(pe));
        }
    }
}

/// A ring of these PEs in a cluster file, with another root: when the round continues, the
/// neighbours are read from the file again.
#[test]
fn a_round_over_the_network_of_a_cluster_file_is_resumed() {
    let files = Files::new(2);
    std::fs::remove_dir_all(files.input().join("p4")).expect("it is there");
    // From c: P1 is a, below it P2, which is b; P3 is d.
    for (number, name) in [("p1", "a"), ("p2", "b"), ("p3", "d")] {
        let [from, to] = [number, name].map(|entry| files.input().join(entry));
        std::fs::rename(from, to).expect("it is there");
    }
    let edges = "[['a', 'b'], ['b', 'd'], ['d', 'c'], ['c', 'a']]";
    let pes = hosts(&[""; 4]);
    let text = format!("link = 'rate=20mbit,latency=20ms'\n[network]\nedges = {edges}\n{pes}");
    files.dir.put("c.toml", &text);
    let running = files.start("scatter --cluster @/c.toml --root c --retry 1");
    stranded(&files, running);
    let before = files.there();
    files.assert_there(&["d"], &before);
    let other = text.replace("'c', 'a'", "'d', 'a'");
    files.dir.put("c.toml", other);
    let expected = ["c.toml has other PEs or another tree", "are no neighbours"];
    files.resume("--revive").fails(2, &expected);
    files.dir.put("c.toml", text);
    files.resume("--revive").ok();
    files.assert_there(&["a", "b", "d"], &before);
}
