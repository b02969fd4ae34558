//! PEs that are started elsewhere: they join, run rounds, stay or leave, and may be missing.

use std::time::{Duration, Instant};

use flitcast_tests::files::{assert_same_below, fill, names, snapshot};
use flitcast_tests::joining::{Joining, dismiss, leave};
use rustix::process::Signal;

/// P0 with P1 and P2, P3 below P1.
const TREE: [u32; 3] = [0, 0, 1];

const GUARD: &str = "--credentials DIR/ca";

/// A command that does not end during a test: 8 MiB each, at 10 Mbit/s.
const LONG: &str = "gather --size 8MiB --link rate=10mbit -v";

#[test]
fn a_round_of_files_and_everybody_leaves() {
    let cluster = Joining::new(&TREE, "60s");
    for (pe, bytes) in [(1, 1), (2, 300_000), (3, 3_000_000)] {
        fill(&cluster.path(&format!("in/h{pe}")), bytes);
    }
    let nodes = cluster.nodes("");
    let there = cluster.guarded("scatter --input DIR/in --output DIR/out");
    let there = there.finish().ok();
    assert_same_below(&cluster.path("in"), &cluster.path("out"));
    let expected = "security     TLS 1.3 both ways, certificates in ";
    there.prints(&[expected]);
    for node in nodes {
        assert_eq!(node.finish().ok().stderr, "");
    }
}

/// On any host: all entries are reported together, and no PE is excluded for them.
#[test]
fn existing_output_is_found_before_anything_is_sent() {
    let cluster = Joining::new(&TREE, "60s");
    for pe in 1..4 {
        fill(&cluster.path(&format!("in/h{pe}")), 200_000);
    }
    for older in ["out/h1", "out/h2", "back/h3"] {
        fill(&cluster.path(older), 10);
    }
    let nodes = cluster.nodes("--stay");
    let in_scatter = ["/out/h1 at P1 h1\n", "/out/h2 at P2 h2\n"];
    for (operation, output, stands) in [
        ("scatter", "out", &in_scatter[..]),
        ("gather", "back", &["/back/h3 at P0 h0\n"]),
    ] {
        let outputs = || ["out", "back"].map(|output| snapshot(&cluster.path(output)));
        let before = outputs();
        let line = format!("{operation} --input DIR/in --output DIR/{output} --retry 1");
        let refused = cluster.guarded(&line).finish().with_code(2);
        refused.stderr_has(stands);
        refused.stderr_has(&["--force", "nothing was sent"]);
        assert!(!refused.stderr.contains("is dead"), "{}", refused.stderr);
        assert_eq!(outputs(), before, "{}", refused.stderr);
        cluster.guarded(&format!("{line} --force")).finish().ok();
        assert_same_below(&cluster.path("in"), &cluster.path(output));
    }
    dismiss(nodes);
}

#[test]
fn a_staying_pe_joins_the_next_command_until_it_is_stopped() {
    let cluster = Joining::new(&TREE, "60s");
    for pe in 1..4 {
        fill(&cluster.path(&format!("in/h{pe}")), 200_000);
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
    let bench = "bench gather --size 1KiB --rounds 3 --algorithms certification-pipelined";
    cluster.guarded(bench).finish().ok();
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
        let stderr = node.finish().ok().stderr;
        assert_eq!(
            stderr.matches("cannot write --health").count(),
            1,
            "{stderr}"
        );
    }
    let wrong = cluster.node(0, &format!("{GUARD} --health DIR/health/of0"));
    let expected = ["cannot write --health", "No such file"];
    wrong.finish().fails(1, &expected);
}

#[test]
fn a_long_list_of_faults_is_shortened_after_the_cause() {
    let cluster = Joining::new(&TREE, "60s");
    std::fs::create_dir(cluster.path("in")).expect("it can be made");
    // One names a PE, so that each of the others is a fault.
    std::fs::File::create(cluster.path("in/p1")).expect("it can be made");
    for wrong in 0..50_000 {
        let name = format!("in/{wrong:0100}");
        std::fs::File::create(cluster.path(&name)).expect("it can be made");
    }
    let nodes = cluster.nodes("");
    let scatter = cluster.guarded("scatter --input DIR/in --output DIR/out");
    let refused = scatter.finish();
    let expected = "has 50001 entries for 3 PEs; this tree has p1..p3";
    refused.fails(1, &["error: P0 h0: ", expected, "and 49901 more faults"]);
    assert!(refused.stderr.lines().count() < 200, "{}", refused.stderr);
    for node in nodes {
        node.finish();
    }
}

#[test]
fn late_pes_are_awaited_and_reported() {
    let cluster = Joining::new(&TREE, "60s");
    let mut running = cluster.guarded("gather --size 1KiB --timeouts heartbeat=100ms,silence=1s");
    let nodes = [0, 1, 2].map(|pe| cluster.node(pe, GUARD));
    let at = cluster.at();
    running.wait_for(&["waiting up to 60 s for ", "P3 h3 to join at ", &at]);
    let late = cluster.node(3, GUARD);
    running.finish().ok();
    leave(nodes.into_iter().chain([late]));
}

#[test]
fn absent_pes_are_named_and_the_others_leave() {
    let cluster = Joining::new(&TREE, "4s");
    let nodes = [0, 2].map(|pe| cluster.node(pe, GUARD));
    let failed = cluster.guarded("gather --size 1KiB").finish();
    let at = cluster.at();
    let expected =
        format!("after 4 s P1 h1, P3 h3 have yet to join at {at}: start what plays each");
    failed.fails(1, &[&expected]);
    leave(nodes);
    // The same without a listening command.
    let began = Instant::now();
    let alone = cluster.node(3, &format!("{GUARD} --wait 1s")).finish();
    let expected = format!("P3 could not join at {at} within 1 s: ");
    alone.fails(1, &[&expected, "Connection refused", "--wait waits longer"]);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_closed_channel_means_that_its_pe_is_dead() {
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
            "error: P1 h1 is gone: its process has ended",
            "where: P1 h1, joined from 127.",
            ", child of P0",
            "cut off with it: P3",
            "when: round 1 of the gather, ",
        ],
    );
    // Half a second for a better cause, two for the last reports.
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert_eq!(victim.finish().code, None);
    leave(nodes);
}

#[test]
fn a_retry_needs_staying_pes_and_continues_with_them() {
    let cluster = Joining::new(&TREE, "60s");
    let nodes = cluster.nodes("");
    let failed = cluster.guarded("gather --size 1KiB --retry 1").finish();
    let expected = "P0 h0, P1 h1, P2 h2, P3 h3 would leave after one cluster, and this command may need several";
    failed.fails(1, &[expected, "--stay"]);
    leave(nodes);
    let mut nodes = cluster.nodes("--stay");
    let mut running = cluster.guarded(&format!("{} --retry 1", LONG.replace("8MiB", "1MiB")));
    running.wait_for(&["triggered"]);
    let victim = nodes.remove(1);
    victim.signal(Signal::KILL);
    let finished = running.finish();
    // The message of the dead PE is lost.
    finished.fails(1, &["P1 h1 is dead (gone: its ", "P3 h3 moves to P0"]);
    finished.prints(&["P3 h3  P0 "]);
    assert_eq!(victim.finish().code, None);
    dismiss(nodes);
}

#[test]
fn a_second_process_for_a_pe_is_refused_with_both_addresses() {
    let cluster = Joining::new(&TREE, "60s");
    let mut running = cluster.guarded("gather --size 1KiB -v");
    let first = cluster.node(1, GUARD);
    running.wait_for(&["joined", "pe=P1"]);
    let second = cluster.node(1, GUARD).finish();
    second.fails(1, &["P1: registered twice: the process at 127."]);
    running.wait_for(&["P1: registered twice", "is refused"]);
    let others = [0, 2, 3].map(|pe| cluster.node(pe, GUARD));
    running.finish().ok();
    leave(others.into_iter().chain([first]));
}

#[test]
fn certificates_on_one_side_only_are_reported() {
    let cluster = Joining::new(&TREE, "60s");
    let mut running = cluster.command("gather --size 1KiB --insecure");
    running.wait_for(&["waiting up to"]);
    let guarded = cluster.node(1, GUARD).finish();
    guarded.fails(1, &["P1 may not join at ", "or was told to do without"]);
    running.wait_for(&["it shows a certificate, and this command was told --insecure"]);
    // Without credentials on both sides, the run succeeds with a notice.
    let nodes = [0, 1, 2, 3].map(|pe| cluster.node(pe, "--insecure"));
    running.finish().ok().prints(&["INSECURE"]);
    leave(nodes);

    let mut running = cluster.guarded("gather --size 1KiB");
    running.wait_for(&["waiting up to"]);
    let open = cluster.node(1, "--insecure").finish();
    let expected = "it wants certificates: give --credentials DIR";
    open.fails(1, &["P1 may not join at ", expected]);
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
    let disguised = cluster.node(2, GUARD).finish();
    disguised.fails(2, &["p2.pem: the certificate is for P1, not for P2"]);
    // From this authority, but for another PE.
    let folder = cluster.path("ca").display().to_string();
    flitcast_tests::run(["ca", "issue", &folder, "p7"]).ok();
    let seventh = cluster.node(7, GUARD).finish();
    seventh.fails(1, &["this command waits for P0, P1, P2, P3 only"]);
    running.interrupt();
    assert!(!names(&cluster.path("")).is_empty());
}

#[test]
fn all_errors_of_joining_are_reported_at_once() {
    let cluster = Joining::new(&TREE, "60s");
    let open = cluster.command("scatter --input in --output out").finish();
    let input = "--input in: it is a path on the hosts of the PEs, which run elsewhere";
    let expected = "processes that join must show who they are: --credentials DIR";
    open.fails(2, &[input, "--output out: ", expected]);
}
