//! Recovery in networks in which not all PEs can be neighbours.

use std::fs;

use flitcast_tests::files::{assert_same_below, fill, names};
use flitcast_tests::processes::eventually;
use flitcast_tests::{Finished, Running, run, scratch, start};

use super::{Files, LINK, kill, numbers};

/// Kills P1, without which no PE above P2 reaches it.
#[track_caller]
fn stranded(files: &Files, running: Running) -> Finished {
    files.wait_for(&[]);
    kill(&running, 1);
    let finished = running.finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let told = "no living ancestor can reach P2; 3 of 3 messages";
    finished.says(&[told]);
    finished
}

/// P0 to P3 in a ring, P2 below P1: without P1, only P3 could reach P2, and P3 is not an ancestor
/// of it.
#[test]
fn who_cannot_be_reached_is_named() {
    let files = Files::new(2);
    std::fs::remove_dir_all(files.input().join("p4")).expect("it is there");
    let ring = ["--network", "ring:4", "--retry", "1", "--format", "json"];
    let running = files.start("scatter", &[&ring[..], &LINK].concat());
    // P2's message has the farthest destination, and is sent first.
    let finished = stranded(&files, running);
    assert_eq!(numbers(&finished, "/retries/0/stranded"), [2]);
    assert_eq!(numbers(&finished, "/retries/0/sent"), [3]);
    let report = finished.report();
    assert_eq!(report.value("/undelivered/0/why"), "dead");
    assert_eq!(report.value("/undelivered/1/why"), "stranded");
    let before = files.there();
    files.assert_there(&["p3"], &before);
    files.resume(&["--revive"]).ok();
    files.assert_there(&["p1", "p2", "p3"], &before);
}

/// No process can be started, and P0's must not be excluded.
#[test]
fn a_launch_that_fails_is_retried_without_the_one_that_did() {
    let dir = flitcast_tests::scratch();
    let file = dir.path().join("cluster.toml");
    let text = "name = \"three\"\ncoordinator = \"127.0.0.1\"\n\
        [[pe]]\nname = \"a\"\naddress = \"127.0.1.1\"\n\
        [[pe]]\nname = \"b\"\naddress = \"127.0.2.1\"\nparent = \"a\"\n\
        run = [\"sh\", \"-c\", \"exit 127\"]\n\
        [[pe]]\nname = \"c\"\naddress = \"127.0.3.1\"\nparent = \"b\"\n";
    std::fs::write(&file, text).expect("it can be written");
    let file = file.to_str().expect("it is UTF-8");
    let line = [
        "scatter",
        "--size",
        "1KiB",
        "--format",
        "json",
        "--cluster",
        file,
    ];
    let finished = run(line.iter().chain(&["--retry", "1"]));
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let dead = "P1 is dead (ended with exit status 127 before it registered); going on";
    finished.says(&[dead, "P2 moves to P0", "P1's message was not delivered"]);
    assert_eq!(numbers(&finished, "/retries/0/sent"), [2]);
    assert_eq!(finished.report().number("/round/messages"), 1);
}

/// In a complete network, a broadcast builds its own tree over the PEs of a cluster file, and any
/// PE may be the source. The resumed run reads the PEs from the file again, and no tree.
#[test]
fn a_round_over_another_tree_than_the_cluster_files_is_resumed() {
    for (operation, gets) in [
        ("broadcast --algorithm path", &["p1", "p2", "p3"][..]),
        ("broadcast --algorithm hypercube", &["p1", "p2", "p3"]),
        ("scatter --from P2", &["p0", "p1", "p3"]),
        ("gather --to P2", &["p0", "p1", "p3"]),
    ] {
        let dir = scratch();
        let [input, output, file] = ["in", "out", "c.toml"].map(|name| dir.path().join(name));
        let text = "link = \"rate=20mbit,latency=1ms\"\n\
            [[pe]]\nname = \"a\"\naddress = \"127.0.1.1\"\n\
            [[pe]]\nname = \"b\"\naddress = \"127.0.2.1\"\nparent = \"a\"\n\
            [[pe]]\nname = \"c\"\naddress = \"127.0.3.1\"\nparent = \"b\"\n\
            [[pe]]\nname = \"d\"\naddress = \"127.0.4.1\"\nparent = \"b\"\n";
        fs::write(&file, text).expect("it can be written");
        for pe in gets {
            fill(&input.join(pe).join("file"), 1 << 20);
        }
        let words = operation.split(' ').map(str::to_owned);
        let paths = [
            ("--input", &input),
            ("--output", &output),
            ("--cluster", &file),
        ];
        let paths = paths.map(|(name, path)| [name.to_owned(), path.display().to_string()]);
        let running = start(words.chain(paths.into_iter().flatten()));
        eventually("a message arrives", || {
            let is_partial = |name: &String| name.ends_with(".partial");
            let arrives = output.is_dir() && names(&output).iter().any(is_partial);
            arrives.then_some(())
        });
        kill(&running, 3);
        assert_eq!(running.finish().code, Some(1), "{operation}");
        let mut record = names(&output);
        record.retain(|name| name.starts_with(".flitcast-round-"));
        let record = output.join(&record[0]).display().to_string();

        let others = text.replace("\"d\"", "\"e\"");
        fs::write(&file, others).expect("it can be written");
        let refused = run(["resume", &record, "--revive"]);
        refused.fails(2, &["c.toml has other PEs", "P3 was \"d\", and is \"e\""]);
        fs::write(&file, text).expect("it can be written");
        run(["resume", &record, "--revive"]).ok();
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
fn a_round_over_the_network_of_a_cluster_file_goes_on() {
    let files = Files::new(2);
    std::fs::remove_dir_all(files.input().join("p4")).expect("it is there");
    let file = files.input().parent().expect("it is below").join("c.toml");
    // From c: P1 is a, below it P2, which is b; P3 is d.
    let text = "link = \"rate=20mbit,latency=20ms\"\n\
        [network]\nedges = [[\"a\", \"b\"], [\"b\", \"d\"], [\"d\", \"c\"], [\"c\", \"a\"]]\n\
        [[pe]]\nname = \"a\"\naddress = \"127.0.1.1\"\n\
        [[pe]]\nname = \"b\"\naddress = \"127.0.2.1\"\n\
        [[pe]]\nname = \"c\"\naddress = \"127.0.3.1\"\n\
        [[pe]]\nname = \"d\"\naddress = \"127.0.4.1\"\n";
    std::fs::write(&file, text).expect("it can be written");
    let cluster = file.to_str().expect("it is UTF-8");
    let line = ["--cluster", cluster, "--root", "c", "--retry", "1"];
    let running = files.start("scatter", &line);
    stranded(&files, running);
    let before = files.there();
    files.assert_there(&["p3"], &before);
    std::fs::write(&file, text.replace("\"c\", \"a\"", "\"d\", \"a\"")).expect("it can be");
    let other = files.resume(&["--revive"]);
    other.fails(
        2,
        &["c.toml has other PEs or another tree", "are no neighbours"],
    );
    std::fs::write(&file, text).expect("it can be written");
    files.resume(&["--revive"]).ok();
    files.assert_there(&["p1", "p2", "p3"], &before);
}
