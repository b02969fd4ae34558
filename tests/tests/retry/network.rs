//! Where not everybody can be everybody's neighbour.

use super::{Files, LINK, kill, numbers, says};
use flitcast_tests::{Finished, Running, run};

/// P1 dies, and nobody above P2 reaches it.
#[track_caller]
fn stranded(files: &Files, running: Running) -> Finished {
    files.wait_for(&[]);
    kill(&running, 1);
    let finished = running.finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let told = "no living ancestor can reach P2; 3 of 3 messages";
    says(&finished, &[told]);
    finished
}

/// P0 to P3 in a ring, P2 below P1: without P1, only P3 could reach P2, and that is no
/// ancestor of it.
#[test]
fn who_cannot_be_reached_is_named() {
    let files = Files::new(2);
    std::fs::remove_dir_all(files.input().join("p4")).expect("it is there");
    let ring = ["--network", "ring:4", "--retry", "1", "--format", "json"];
    let running = files.start("scatter", &[&ring[..], &LINK].concat());
    // P2's is the farthest, and goes first.
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

/// No process comes up, and P0's is none that can be left out.
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
    says(
        &finished,
        &[dead, "P2 moves to P0", "P1's message was not delivered"],
    );
    assert_eq!(numbers(&finished, "/retries/0/sent"), [2]);
    assert_eq!(finished.report().number("/round/messages"), 1);
}

/// The same ring in a cluster file, its root elsewhere: who is whose neighbour is looked up
/// there again when the round goes on.
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
    assert_eq!(other.code, Some(2), "{}", other.stderr);
    says(&other, &["c.toml has another tree", "are no neighbours"]);
    std::fs::write(&file, text).expect("it can be written");
    files.resume(&["--revive"]).ok();
    files.assert_there(&["p1", "p2", "p3"], &before);
}
