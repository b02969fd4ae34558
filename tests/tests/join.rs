//! PEs that are started elsewhere: they join, run rounds, stay or leave, and may be missing.

use std::time::{Duration, Instant};

use flitcast_tests::files::{assert_same_below, fill, names, snapshot};
use flitcast_tests::joining::{Joining, dismiss};
use flitcast_tests::refused;
use rustix::process::Signal;

/// P0 with P1 and P2, P3 below P1.
const TREE: [u32; 3] = [0, 0, 1];

/// A command that does not end during a test: 8 MiB each, at 10 Mbit/s.
const LONG: &str = "gather --size 8MiB --link rate=10mbit -v";

#[test]
fn a_round_of_files_and_everybody_leaves() {
    let cluster = Joining::new(&TREE, "60s");
    for (pe, bytes) in [(1, 1), (2, 300_000), (3, 3_000_000)] {
        fill(&cluster.path(&format!("in/p{pe}")), bytes);
    }
    let nodes = cluster.nodes("");
    let there = cluster.guarded("scatter --input DIR/in --output DIR/out");
    let there = there.finish().ok();
    assert_same_below(&cluster.path("in"), &cluster.path("out"));
    let said = "security     TLS 1.3 both ways, certificates in ";
    there.prints(&[said]);
    for node in nodes {
        assert_eq!(node.finish().ok().stderr, "");
    }
}

/// On any host: all entries are reported together, and no PE is excluded for them.
#[test]
fn what_stands_in_an_output_is_found_before_anything_is_sent() {
    let cluster = Joining::new(&TREE, "60s");
    for pe in 1..4 {
        fill(&cluster.path(&format!("in/p{pe}")), 200_000);
    }
    for older in ["out/p1", "out/p2", "back/p3"] {
        fill(&cluster.path(older), 10);
    }
    let before = ["out", "back"].map(|output| snapshot(&cluster.path(output)));
    let nodes = cluster.nodes("--stay");
    let scatter = "scatter --input DIR/in --output DIR/out --retry 1";
    let gather = "gather --input DIR/in --output DIR/back --retry 1";
    for (line, stands) in [
        (
            scatter,
            &["/out/p1 at P1 on h1\n", "/out/p2 at P2 on h2\n"][..],
        ),
        (gather, &["/back/p3 at P0 on h0\n"][..]),
    ] {
        let refused = cluster.guarded(line).finish().with_code(2);
        refused.says(stands);
        refused.says(&["--force", "nothing was sent"]);
        assert!(!refused.stderr.contains("is dead"), "{}", refused.stderr);
        let after = ["out", "back"].map(|output| snapshot(&cluster.path(output)));
        assert_eq!(after, before, "{}", refused.stderr);
    }
    cluster.guarded(&format!("{scatter} --force")).finish().ok();
    assert_same_below(&cluster.path("in"), &cluster.path("out"));
    cluster.guarded(&format!("{gather} --force")).finish().ok();
    assert_same_below(&cluster.path("in"), &cluster.path("back"));
    dismiss(nodes);
}

#[test]
fn who_stays_joins_the_next_command_until_it_is_stopped() {
    let cluster = Joining::new(&TREE, "60s");
    for pe in 1..4 {
        fill(&cluster.path(&format!("in/p{pe}")), 200_000);
    }
    let nodes = cluster.nodes("--stay --health DIR/health{pe}");
    let there = cluster.guarded("scatter --input DIR/in --output DIR/out");
    there.finish().ok();
    let back = cluster.guarded("gather --input DIR/out --output DIR/back");
    back.finish().ok();
    assert_same_below(&cluster.path("in"), &cluster.path("back"));
    let health = cluster.path("health2").display().to_string();
    let healthy = flitcast_tests::run(["health", &health]).ok();
    assert!(healthy.stdout.starts_with("P2 "), "{}", healthy.stdout);
    // Timed on three clusters, one after the other.
    let bench =
        cluster.guarded("bench gather --size 1KiB --rounds 3 --algorithms certification-pipelined");
    bench.finish().ok();
    dismiss(nodes);
}

#[test]
fn a_health_file_that_cannot_be_written_any_more_ends_no_round() {
    let cluster = Joining::new(&TREE, "60s");
    std::fs::create_dir(cluster.path("health")).expect("it can be made");
    let mut nodes = cluster.nodes("--stay --health DIR/health/of{pe}");
    let mut running = cluster.guarded("gather --size 1MiB --link rate=10mbit -v");
    running.wait_for(&["triggered"]);
    // Replaced as a whole, because the PEs write there meanwhile.
    std::fs::rename(cluster.path("health"), cluster.path("gone")).expect("it is there");
    for node in &mut nodes {
        node.wait_for(&["WARN", "cannot write --health", "/health/of"]);
    }
    // Longer than the interval between attempts.
    running.finish().ok();
    for node in nodes {
        node.signal(Signal::TERM);
        let said = node.finish().ok().stderr;
        assert_eq!(said.matches("cannot write --health").count(), 1, "{said}");
    }
    let wrong = cluster.node(0, "--credentials DIR/ca --health DIR/health/of0");
    let wrong = wrong.finish();
    wrong.fails(1, &["cannot write --health", "No such file"]);
}

#[test]
fn however_much_is_wrong_with_the_input_the_cause_is_told() {
    let cluster = Joining::new(&TREE, "60s");
    std::fs::create_dir(cluster.path("in")).expect("it can be made");
    for wrong in 0..200_000 {
        let name = format!("in/{wrong:0100}");
        std::fs::File::create(cluster.path(&name)).expect("it can be made");
    }
    let nodes = cluster.nodes("");
    let refused = cluster
        .guarded("scatter --input DIR/in --output DIR/out")
        .finish();
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    let told = "has 200000 entries for 3 PEs; this tree has p1..p3";
    refused.says(&["error: P0: ", told, "and 199901 more faults"]);
    assert!(refused.stderr.lines().count() < 200, "{}", refused.stderr);
    for node in nodes {
        node.finish();
    }
}

#[test]
fn who_is_late_is_waited_for_and_told_of() {
    let cluster = Joining::new(&TREE, "60s");
    let mut running = cluster.guarded("gather --size 1KiB --timeouts heartbeat=100ms,silence=1s");
    let mut nodes: Vec<_> = (0..3)
        .map(|pe| cluster.node(pe, "--credentials DIR/ca"))
        .collect();
    let at = cluster.at();
    running.wait_for(&["waiting up to 60 s for ", "P3 to join at ", &at]);
    nodes.push(cluster.node(3, "--credentials DIR/ca"));
    running.finish().ok();
    for node in nodes {
        node.finish().ok();
    }
}

#[test]
fn who_never_comes_is_named_and_the_others_leave() {
    let cluster = Joining::new(&TREE, "4s");
    let nodes: Vec<_> = [0, 2]
        .map(|pe| cluster.node(pe, "--credentials DIR/ca"))
        .into();
    let failed = cluster.guarded("gather --size 1KiB").finish().with_code(1);
    let at = cluster.at();
    let told = format!("after 4 s P1, P3 have yet to join at {at}: start what plays each");
    failed.says(&[&told]);
    for node in nodes {
        node.finish().ok();
    }
    // The same without a listening command.
    let began = Instant::now();
    let alone = cluster.node(3, "--credentials DIR/ca --wait 1s").finish();
    alone.fails(
        1,
        &[
            &format!("P3 could not join at {at} within 1 s: "),
            "Connection refused",
            "--wait waits longer",
        ],
    );
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn the_end_of_a_channel_is_the_death_of_who_joined() {
    let cluster = Joining::new(&TREE, "60s");
    let mut nodes = cluster.nodes("");
    let mut running = cluster.guarded(LONG);
    running.wait_for(&["triggered"]);
    let began = Instant::now();
    let victim = nodes.remove(1);
    victim.signal(Signal::KILL);
    let failed = running.finish();
    let took = began.elapsed();
    failed.fails(
        1,
        &[
            "error: P1 is gone: its process has ended",
            "where: P1, joined from 127.",
            " on h1, child of P0",
            "cut off with it: P3",
            "when: round 1 of the gather, ",
        ],
    );
    // Half a second for a better cause, two for the last reports.
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert_eq!(victim.finish().code, None);
    for node in nodes {
        node.finish().ok();
    }
}

#[test]
fn a_retry_needs_who_stays_and_goes_on_with_them() {
    let cluster = Joining::new(&TREE, "60s");
    let nodes = cluster.nodes("");
    let failed = cluster.guarded("gather --size 1KiB --retry 1").finish();
    failed.fails(
        1,
        &[
            "P0, P1, P2, P3 would leave after one cluster, and this command may need several",
            "--stay",
        ],
    );
    for node in nodes {
        node.finish().ok();
    }

    let mut nodes = cluster.nodes("--stay");
    let mut running = cluster.guarded(&format!("{} --retry 1", LONG.replace("8MiB", "1MiB")));
    running.wait_for(&["triggered"]);
    let victim = nodes.remove(1);
    victim.signal(Signal::KILL);
    let finished = running.finish();
    finished.says(&["P1 is dead (gone: its ", "P3 moves to P0"]);
    // The message of the dead PE is lost.
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    finished.prints(&["P3  P0 "]);
    assert_eq!(victim.finish().code, None);
    dismiss(nodes);
}

#[test]
fn a_second_process_for_a_pe_is_refused_with_both_addresses() {
    let cluster = Joining::new(&TREE, "60s");
    let mut running = cluster.guarded("gather --size 1KiB -v");
    let first = cluster.node(1, "--credentials DIR/ca");
    running.wait_for(&["joined", "pe=P1"]);
    let second = cluster.node(1, "--credentials DIR/ca").finish();
    second.fails(1, &["P1: registered twice: the process at 127."]);
    running.wait_for(&["P1: registered twice", "is refused"]);
    let others: Vec<_> = [0, 2, 3]
        .map(|pe| cluster.node(pe, "--credentials DIR/ca"))
        .into();
    running.finish().ok();
    for node in others.into_iter().chain([first]) {
        node.finish().ok();
    }
}

#[test]
fn one_side_alone_with_certificates_is_told() {
    let cluster = Joining::new(&TREE, "60s");
    let mut running = cluster.command("gather --size 1KiB --insecure");
    running.wait_for(&["waiting up to"]);
    let guarded = cluster.node(1, "--credentials DIR/ca").finish();
    guarded.fails(1, &["P1 may not join at ", "or was told to do without"]);
    running.wait_for(&["it shows a certificate, and this command was told --insecure"]);
    // Without credentials on both sides, the run succeeds with a notice.
    let nodes: Vec<_> = (0..4).map(|pe| cluster.node(pe, "--insecure")).collect();
    let done = running.finish().ok();
    done.prints(&["INSECURE"]);
    for node in nodes {
        node.finish().ok();
    }

    let mut running = cluster.guarded("gather --size 1KiB");
    running.wait_for(&["waiting up to"]);
    let open = cluster.node(1, "--insecure").finish();
    open.fails(
        1,
        &[
            "P1 may not join at ",
            "it wants certificates: give --credentials DIR",
        ],
    );
    running.wait_for(&["turned a connection away", "what came is not TLS"]);
    running.interrupt();
}

#[test]
fn a_wrong_certificate_lets_nobody_in() {
    let cluster = Joining::new(&TREE, "60s");
    cluster.found("other");
    let mut running = cluster.guarded("gather --size 1KiB");
    running.wait_for(&["waiting up to"]);
    let stranger = cluster.node(1, "--credentials DIR/other").finish();
    stranger.fails(1, &["P1 may not join at ", "issued by another authority"]);
    for end in ["pem", "key"] {
        let at = |name: &str| cluster.path(&format!("ca/{name}.{end}"));
        std::fs::copy(at("p1"), at("p2")).expect("it can be");
    }
    let disguised = cluster.node(2, "--credentials DIR/ca").finish();
    disguised.fails(2, &["p2.pem: the certificate is for P1, not for P2"]);
    // From this authority, but for another PE.
    let folder = cluster.path("ca").display().to_string();
    flitcast_tests::run(["ca", "issue", &folder, "p7"]).ok();
    let seventh = cluster.node(7, "--credentials DIR/ca").finish();
    seventh.fails(1, &["this command waits for P0, P1, P2, P3 only"]);
    running.interrupt();
    assert!(!names(&cluster.path("")).is_empty());
}

#[test]
fn all_that_is_wrong_with_joining_is_told_at_once() {
    refused(
        "node --pe 3 --join nowhere --wait soon",
        &[
            "--join nowhere: ",
            "--wait: ",
            "who joins must show who it is",
        ],
    );
    let cluster = Joining::new(&TREE, "60s");
    let open = cluster.command("scatter --input in --output out").finish();
    open.fails(
        2,
        &[
            "--input in: it is a path on the hosts of the PEs, which run elsewhere",
            "--output out: ",
            "processes that join must show who they are: --credentials DIR",
        ],
    );
}
