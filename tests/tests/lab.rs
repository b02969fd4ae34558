//! The network lab: hosts in network namespaces, joined by shaped links, and real runs
//! on them.

use std::fs;
use std::path::Path;
use std::process::Command;

use flitcast_tests::files::{assert_same_below, fill, long, messages, set_mode};
use flitcast_tests::lab::{Call, Lab, Turn, interfaces, namespaces, script};
use flitcast_tests::processes::until;
use flitcast_tests::run::run_program;
use flitcast_tests::{Folder, Report, Running, rows, run, scratch, start};
use rustix::process::Signal;
use serde_json::Value;

const KIB: usize = 1024;

/// Messages of all kinds for P1..P6: none, short ones, several flits.
const LENGTHS: &str = "--lengths 100KiB,0,1,64KiB,65537,5KiB";

#[track_caller]
fn report(lab: &Lab, line: &str) -> Report {
    let line = format!("{line} --format json");
    run(lab.arguments(&line)).ok().report()
}

fn fill_input(input: &Path) {
    for (pe, bytes) in [(1, 100 * KIB), (2, 1), (4, 0), (5, 70 * KIB), (6, 3 * KIB)] {
        fill(&input.join(format!("fc{pe}/file")), bytes);
    }
    fill(&input.join("fc6/folder/another"), 11 * KIB);
}

/// Checks a scatter and a gather, of files and of synthetic messages.
fn carries_everything(lab: &Lab) {
    for operation in ["scatter", "gather"] {
        let report = report(lab, &format!("{operation} {LENGTHS} --rounds 2"));
        assert_eq!(report.value("/security"), "tls", "it is a network");
        report.assert_all_arrived();
        assert_eq!(report.list("/pes").len(), 7);
    }
    let dir = scratch();
    fill_input(&dir.join("input"));
    for line in [
        "scatter --input @/input --output @/scattered",
        "gather --input @/scattered --output @/gathered",
    ] {
        let line = dir.words(line).join(" ");
        run(lab.arguments(&line)).ok();
    }
    assert_same_below(&dir.join("input"), &dir.join("gathered"));
}

/// Checks the rate of links: at 100 Mbit/s, a link carries 12.5 bytes in a microsecond and no more,
/// except for its burst in the beginning. On a busy machine it takes longer, so this cannot fail by
/// chance.
fn keeps_to_its_rate(lab: &Lab, bytes_on_the_busiest_link: u64) {
    const AT_ONCE: u64 = 4096;
    for operation in ["scatter", "gather"] {
        let report = report(lab, &format!("{operation} --size 256KiB --rounds 3"));
        let least = (bytes_on_the_busiest_link - AT_ONCE) as f64 / 12.5;
        let measured = report.float("/round/measured_us/min");
        assert!(measured >= least, "{operation}: {measured} of {least} us");
    }
}

/// P0 has P1 and P2, and P1 has P3 and P4. Edge i's network is 198.18.0.2i to 2i + 1.
#[test]
#[ignore = "needs root and iproute2"]
fn a_tree_joins_neighbours_and_nobody_else() {
    let lab = Lab::up("--tree kary:2:7 --rate 100mbit");
    carries_everything(&lab);
    // Three messages to, or from, each of P0's children.
    keeps_to_its_rate(&lab, 3 * 256 * 1024);

    assert_eq!(lab.call("fc3", "198.18.0.6"), Call::Answered, "its parent");
    assert_eq!(lab.call("fc1", "198.18.0.7"), Call::Answered, "its child");
    assert_eq!(lab.call("fc3", "198.18.0.3"), Call::NoWay, "P1, from above");
    assert_eq!(lab.call("fc3", "198.18.0.2"), Call::NoWay, "P0");
    assert_eq!(lab.call("fc3", "198.18.0.9"), Call::NoWay, "P4, its sister");
    // Not even if all are connected to the coordinator.
    let management = ["198.19.255.254", "198.19.0.1", "198.19.0.5"];
    let calls = std::thread::scope(|scope| {
        let calls = management.map(|address| scope.spawn(|| lab.call("fc3", address)));
        calls.map(|call| call.join().expect("the call does not panic"))
    });
    assert_eq!(calls, [Call::Answered, Call::NoWay, Call::NoWay]);

    assert_eq!(lab.down().stdout, "the lab is down\n");
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_rack_joins_all() {
    let lab = Lab::up("--tree kary:2:7 --rate 100mbit --layout rack --queue 30000");
    carries_everything(&lab);
    // All of them by P0's only link.
    keeps_to_its_rate(&lab, 6 * 256 * 1024);
    for other in [1, 2, 4, 5, 6, 7] {
        let address = format!("198.18.0.{other}");
        assert_eq!(lab.call("fc2", &address), Call::Answered, "{address}");
    }
}

/// A link for each edge, and a card for each link: a cover uses all of them at once. At 100 Mbit/s
/// one link carries 12.5 bytes in a microsecond, and P0 has four.
#[test]
#[ignore = "needs root and iproute2"]
fn a_network_has_a_link_for_each_edge() {
    let lab = Lab::up("--network torus:3x3 --rate 100mbit");
    let call = |address: &str| lab.call("fc4", address);
    assert_eq!(call("198.18.0.13"), Call::Answered, "a neighbour");
    assert_eq!(call("198.18.0.2"), Call::NoWay, "P0 is none");
    for operation in ["scatter", "gather"] {
        let report = report(&lab, &format!("{operation} --cover --size 1MiB"));
        report.assert_all_arrived();
        assert_eq!(report.number("/trees/count"), 4, "{operation}");
    }
    for (operation, algorithm) in [
        ("gossip", "approach1"),
        ("gossip", "flood"),
        ("exchange", "tree"),
    ] {
        let line = format!("{operation} --algorithm {algorithm} --size 256KiB");
        let report = report(&lab, &line);
        assert_eq!(report.value("/algorithm"), algorithm);
        assert_eq!(report.value("/ports"), "multi", "{line}");
    }
    let one = report(&lab, "scatter --size 64KiB");
    assert!(one.value("/trees").is_null());
}

/// Two cards for each host, each with a separate switch.
#[test]
#[ignore = "needs root and iproute2"]
fn a_rack_with_two_rails_has_two_ways_to_all() {
    let lab = Lab::up("--tree star:4 --rate 100mbit --layout rack --rails 2");
    for address in ["198.18.0.2", "198.18.16.2"] {
        assert_eq!(lab.call("fc3", address), Call::Answered, "{address}");
    }
    for operation in ["scatter", "gather"] {
        let report = report(&lab, &format!("{operation} --size 1MiB"));
        report.assert_all_arrived();
        assert_eq!(report.number("/trees/count"), 2, "{operation}");
    }
}

#[track_caller]
fn netns(line: &str) -> String {
    let words = line.split(' ');
    run_program(Command::new("ip").arg("netns").args(words))
        .ok()
        .stdout
}

/// Returns the number of segments that a host's TCP has retransmitted, on any connection.
#[track_caller]
fn sent_again(host: usize) -> u64 {
    let stdout = netns(&format!("exec fc{host} cat /proc/net/snmp"));
    // A line of names, and one of numbers below it.
    let mut lines = stdout.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let [names, numbers] = [lines.next(), lines.next()].map(|line| line.expect("TCP is there"));
    let mut pairs = names.split(' ').zip(numbers.split(' '));
    let found = pairs.find(|(name, _)| *name == "RetransSegs");
    let (_, number) = found.expect("it counts them");
    number.parse().expect("a number")
}

/// The switch queues two frames for P0, and all PEs send to it at once. TCP sends dropped segments
/// again; the report contains their number and their sender.
#[test]
#[ignore = "needs root and iproute2"]
fn packets_that_a_shallow_switch_drops_are_counted_at_their_senders() {
    let lab = Lab::up("--tree star:5 --rate 20mbit --layout rack --queue 3028");
    let line = "gather --pacing eager --size 256KiB";
    let before: Vec<u64> = (0..5).map(sent_again).collect();
    let report = report(&lab, line);
    report.assert_all_arrived();
    let retransmitted = |pe: usize| report.number(&format!("/pes/{pe}/retransmitted_packets"));
    for (pe, before) in before.iter().enumerate() {
        // The host's count also includes the connections of measurements.
        assert!(
            retransmitted(pe) <= sent_again(pe) - before,
            "P{pe}: {}",
            retransmitted(pe)
        );
    }
    let all: u64 = (0..5).map(retransmitted).sum();
    assert_eq!(report.number("/round/retransmitted_packets"), all);
    assert!(
        all > retransmitted(0),
        "P0 sends no data, the others lost some"
    );
    let shown = run(lab.arguments(line)).ok().stdout;
    assert!(shown.contains("TCP retransmitted "), "{shown}");
    // The run is not reported as slow, regardless of its duration.
    assert!(!shown.contains("; slow"), "{shown}");
}

/// Between hosts, a gather is chosen when the links are measured: one PE after the other behind a switch,
/// several at a time only if their messages fit into its queue.
#[test]
#[ignore = "needs root and iproute2"]
fn measured_links_decide_how_to_gather() {
    let rack = Lab::up("--tree star:9 --rate 100mbit --layout rack");
    for (line, algorithms) in [
        ("--size 256B", "orders window"),
        ("--size 256KiB", "linear orders"),
        ("--size 256KiB --token pipelined", "certification"),
        ("--size 256KiB --pacing turns", "certification"),
    ] {
        let report = report(&rack, &format!("gather {line}"));
        let algorithm = report.value("/algorithm").as_str().expect("a name");
        let is_listed = algorithms.split(' ').any(|one| one == algorithm);
        assert!(is_listed, "{line}: {algorithm}");
        let is_named = line.contains("--token") || line.contains("--pacing");
        assert_eq!(*report.value("/choice") == Value::Null, is_named, "{line}");
    }
    drop(rack);
    let deep = Lab::up("--tree path:4 --rate 100mbit --layout rack");
    let report = report(&deep, "gather --size 256KiB");
    assert_eq!(report.value("/algorithm"), "shoulder-tap");
}

/// The links also decide on a broadcast to hosts that reach each other, without a given tree or algorithm.
#[test]
#[ignore = "needs root and iproute2"]
fn measured_links_decide_how_to_broadcast() {
    let rack = Lab::up("--tree kary:2:6 --rate 40mbit --layout rack");
    let line = "broadcast --size 256KiB";
    assert_eq!(report(&rack, line).value("/choice"), &Value::Null);
    let text = fs::read_to_string(&rack.cluster_file).expect("it is there");
    let is_edge = |line: &&str| !line.starts_with("parent =");
    let hosts: Vec<&str> = text.lines().filter(is_edge).collect();
    let text = hosts.join("\n") + "\n[network]\nkind = 'complete:6'\n";
    fs::write(&rack.cluster_file, text).expect("root may");
    for (line, algorithm) in [
        ("--size 256KiB", "circulant"),
        ("--size 1B", "rounds"),
        ("--size 256KiB --algorithm urgent", "urgent"),
        ("--size 256KiB --spanning bfs", "rounds"),
    ] {
        let report = report(&rack, &format!("broadcast {line}"));
        let choice = report.value("/choice");
        assert_eq!(report.value("/algorithm"), algorithm, "{line}: {choice:#}");
        let is_named = line.contains("--algorithm") || line.contains("--spanning");
        assert_eq!(*report.value("/choice") == Value::Null, is_named, "{line}");
    }
}

/// A baseline builds its own tree, for which a rack has the links.
#[test]
#[ignore = "needs root and iproute2"]
fn a_baseline_runs_on_a_rack_and_not_on_a_tree() {
    let line = "scatter --algorithm binomial --size 10KiB";
    let rack = Lab::up("--tree star:5 --rate 1gbit --layout rack");
    let report = report(&rack, line);
    assert_eq!(report.number("/round/messages"), 4);
    drop(rack);
    let tree = Lab::up("--tree star:5 --rate 1gbit");
    let expected = "--algorithm binomial is for PEs that can all reach each other";
    run(tree.arguments(line)).fails(2, &[expected]);
    run(tree.arguments("scatter --algorithm linear --size 10KiB")).ok();
}

#[track_caller]
fn processes(hosts: usize) -> String {
    let pids = |host: usize| netns(&format!("pids fc{host}"));
    (0..hosts).map(pids).collect()
}

/// A scatter along a path of four, first to P2 and then a message to P1 that takes minutes on this
/// link.
struct Endless {
    lab: Lab,
    dir: Folder,
    running: Running,
}

impl Endless {
    #[track_caller]
    fn start() -> Endless {
        let lab = Lab::up("--tree path:4 --rate 100mbit");
        let dir = scratch();
        fill(&dir.join("input/fc2/short"), KIB);
        long(&dir.join("input/fc1"), 10 << 30);
        let line = dir.words("scatter --input @/input --output @/output -vv");
        let mut running = start(lab.arguments(&line.join(" ")));
        running.wait_for(&["P1| ", "of=P1 ", "take message"]);
        until("P2 has its message", || dir.join("output/fc2").is_dir());
        Endless { lab, dir, running }
    }
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_host_that_dies_is_named_and_nothing_is_left() {
    let endless = Endless::start();
    let victim = endless.running.pe(3);
    let pes = endless.running.pes();
    let count = processes(4).lines().count();
    assert_eq!(count, 4, "each host plays one PE: {pes:?}");
    assert_eq!(netns("pids fc3").trim(), victim.pid.to_string());
    victim.signal(Signal::KILL);
    let expected = [
        "error: P3 fc3 was killed by signal 9 (SIGKILL)",
        &format!("where: P3 fc3, process {} at ", victim.pid),
        ", child of P2",
        "delivered: 1 message, and kept: P2",
    ];
    endless.running.finish().fails(1, &expected);
    let whole = messages(&endless.dir.join("output"));
    assert_eq!(whole, ["fc2"], "whole messages, and nothing else");
    assert_eq!(processes(4), "");
    assert_eq!(endless.lab.down().stderr, "", "nothing was running in it");
}

#[test]
#[ignore = "needs root and iproute2"]
fn nothing_outlives_its_coordinator() {
    let endless = Endless::start();
    endless.running.kill();
    assert_eq!(processes(4), "");
    drop(endless.lab);

    let endless = Endless::start();
    endless.running.interrupt();
    assert_eq!(messages(&endless.dir.join("output")), ["fc2"]);
    assert_eq!(processes(4), "");
}

/// First letters of the names that other tests create.
const OF_OTHER_TESTS: [&str; 3] = ["fc6-", "fcslurm", "fcssh"];

/// Returns the parts of a lab outside of its hosts.
fn all_there_is() -> ([Vec<String>; 2], bool) {
    let without_others = |mut names: Vec<String>| {
        names.retain(|name| !OF_OTHER_TESTS.iter().any(|other| name.starts_with(other)));
        names
    };
    let state = Path::new("/run/flitcast-lab").exists();
    let all = [namespaces(), interfaces()].map(without_others);
    (all, state)
}

#[test]
#[ignore = "needs root and iproute2"]
fn down_leaves_what_was_there_before() {
    let turn = Turn::take();
    let before = all_there_is();
    drop(turn);
    for layout in ["tree", "rack"] {
        let lab = Lab::up(&format!("--tree star:5 --rate 1gbit --layout {layout}"));
        let up = all_there_is();
        let grown = |at: usize| up.0[at].len() - before.0[at].len();
        assert!(grown(0) >= 6, "{up:?}");
        assert_eq!(grown(1), 1, "{up:?}");

        // A second one is not built, and does not touch the first.
        run_program(&mut up_star()).fails(1, &["a lab is up already"]);
        assert_eq!(all_there_is(), up);
        run(lab.arguments("scatter --size 1KiB")).ok();

        assert_eq!(lab.down().code, Some(0));
        let _turn = Turn::take();
        assert_eq!(all_there_is(), before);
        let again = run_program(&mut script("down", [""; 0]));
        assert_eq!((again.code, &*again.stdout), (Some(0), "no lab is up\n"));
    }
}

/// Returns a command that builds a lab of five hosts.
fn up_star() -> Command {
    script("up", ["--tree", "star:5", "--rate", "1gbit"])
}

/// A namespace of the test, which is removed on drop.
struct Stranger(&'static str);

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", self.0]).output();
    }
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_namespace_of_somebody_else_stays() {
    let _turn = Turn::take();
    netns("add fc3");
    let _stranger = Stranger("fc3");
    let before = all_there_is();
    let why = "there is a namespace fc3 already, which is not the lab's";
    run_program(&mut up_star()).fails(1, &[why]);
    assert_eq!(all_there_is(), before);
}

#[test]
#[ignore = "needs root and iproute2"]
fn an_up_that_fails_half_way_leaves_nothing() {
    let _turn = Turn::take();
    let before = all_there_is();
    // At its first call, all hosts exist already.
    let broken = scratch();
    let tc = broken.put("tc", "#!/bin/sh\necho no shaping today >&2; exit 1\n");
    set_mode(&tc, 0o755);
    let path = std::env::var("PATH").expect("there is one");
    let path = format!("{}:{path}", broken.display());
    let failed = run_program(up_star().env("PATH", path));
    failed.fails(1, &["no shaping today", "cannot shape the links"]);
    assert_eq!(all_there_is(), before);
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_program_that_is_missing_is_named_with_its_package() {
    let _turn = Turn::take();
    let few = scratch();
    for program in ["bash", "readlink", "dirname", "id"] {
        let at =
            run_program(Command::new("/bin/sh").args(["-c", &format!("command -v {program}")]));
        let link = few.join(program);
        std::os::unix::fs::symlink(at.stdout.trim(), link).expect("it can be made");
    }
    let line =
        |name| format!("no `{name}` here: Debian and Ubuntu have it in the package iproute2");
    let refused = run_program(up_star().env("PATH", few.path()));
    refused.fails(1, &[&line("ip"), &line("tc")]);
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_command_line_that_is_wrong_builds_nothing() {
    let _turn = Turn::take();
    let before = all_there_is();
    for [line, code, cause] in rows(
        "
        | 2 | --tree kary:2:7
        --tree star:5 | 2 | --rate 100mbit
        --tree star:5 --rate fast | 2 | --rate fast: like 100mbit
        --tree star:5 --rate 1mbit --layout ring | 2 | --layout ring: tree or rack
        --tree star:5 --rate 1mbit --queue 100 | 2 | --queue 100: a number of bytes, at least 3028
        --tree star:5 --rate 1kbit | 2 | from 100kbit
        --tree ring:5 --rate 1mbit | 2 | no tree shape is called `ring`
        --tree star:5 --rate 1mbit --latency 1ms | 2 | up knows no `--latency`
        --tree star:1 --rate 1gbit | 1 | one PE has no links
        --tree star:251 --rate 1gbit | 1 | at most 250
    ",
    ) {
        let code = code.parse().expect("a number");
        run_program(&mut script("up", line.split_whitespace())).fails(code, &[cause]);
    }
    assert_eq!(run_program(&mut script("down", ["now"])).code, Some(2));
    assert_eq!(all_there_is(), before);
    let help = run_program(&mut script("up", ["--help"]));
    help.ok().prints(&["--layout"]);
}
