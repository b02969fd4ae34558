//! Clusters described by a file, on loopback addresses of this machine (127.0.0.0/8). `lab.rs`
//! tests cluster files of the network lab.

mod ipv6;
mod names;

use std::path::PathBuf;

use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::{Finished, Folder, Report, hosts, reported, run, scratch};
use serde_json::json;

/// A folder with this text in `cluster.toml`.
struct ClusterFile(Folder);

impl ClusterFile {
    #[track_caller]
    fn of(text: &str) -> ClusterFile {
        let dir = scratch();
        dir.put("cluster.toml", text);
        ClusterFile(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates messages for the PEs with these names.
    fn fill_input(&self, names: [&str; 3]) {
        for (name, bytes) in names.into_iter().zip([1, 300_000, 65_536]) {
            fill(&self.path(&format!("input/{name}/file")), bytes);
        }
    }

    fn words(&self, line: &str) -> Vec<String> {
        self.0.words(&format!("{line} --cluster @/cluster.toml"))
    }

    #[track_caller]
    fn run(&self, line: &str) -> Finished {
        run(self.words(line))
    }

    /// Returns the report of a command that must succeed; its line lacks `--format json`.
    #[track_caller]
    fn report(&self, line: &str) -> Report {
        self.0.report(&format!("{line} --cluster @/cluster.toml"))
    }
}

/// P0 - P1 - P2, and P3 below P0, which its children reach at two addresses.
const PER_EDGE: &str = r#"
name = "four at home"
coordinator = "127.0.5.1"
[[pe]]
name = "root"
address = "127.0.1.1"
run = ["env", "--"]
[[pe]]
name = "relay"
address = "127.0.2.1"
parent = "root"
[[pe]]
name = "leaf"
address = "127.0.3.1"
parent = "relay"
run = ["nice", "-n", "1"]
[[pe]]
name = "beside"
address = "127.0.4.1"
parent = "root"
parent_address = "127.0.1.2"
"#;

#[test]
fn messages_arrive_over_the_edges_of_the_file() {
    let cluster = ClusterFile::of(PER_EDGE);
    cluster.fill_input(["relay", "leaf", "beside"]);
    for line in [
        "scatter --input @/input --output @/scattered",
        "gather --input @/scattered --output @/gathered",
    ] {
        cluster
            .run(line)
            .ok()
            .prints(&["four at home by ", ": 4 PEs, "]);
    }
    assert_same_below(&cluster.path("input"), &cluster.path("gathered"));
    let report = cluster.report("gather --lengths 100KiB,1,0 --rounds 3");
    report.assert_all_arrived();
    assert_eq!(report.message_bytes(), [100 << 10, 1, 0]);
}

#[test]
fn other_commands_take_its_tree() {
    let cluster = ClusterFile::of(PER_EDGE);
    let report = cluster.report("tree");
    assert_eq!(report.value("/name"), "four at home");
    assert_eq!(report.value("/parents"), &json!([null, 0, 1, 0]));
    let by_tree = reported("plan gather --tree parents:0,1,0 --lengths 2,3,1");
    let by_file = cluster.report("plan gather --lengths 2,3,1");
    assert_eq!(by_file.value("/messages"), by_tree.value("/messages"));
}

/// Addresses that are reserved for documentation, so that no machine has them.
#[test]
fn an_address_that_this_machine_has_not_is_named() {
    let coordinator = "cannot listen on 192.0.2.1 for the PEs: ";
    for (mine, other, cause) in [
        ("127.0.5.1", "192.0.2.1", coordinator),
        ("127.0.2.1", "192.0.2.7", "cannot listen on 192.0.2.7:0: "),
    ] {
        let cluster = ClusterFile::of(&PER_EDGE.replace(mine, other));
        let failed = cluster.run("scatter --size 1KiB");
        failed.fails(1, &["the cluster did not come up", cause]);
    }
}

#[test]
fn a_program_that_cannot_be_run_is_named() {
    let text = PER_EDGE.replace("\"nice\"", "\"/no/such/program\"");
    let failed = ClusterFile::of(&text).run("scatter --size 1KiB");
    failed.fails(1, &["cannot start /no/such/program"]);
}

/// A ring of three with a tail, of which `c` is the middle.
const NETWORK: &str = r#"
link = "rate=1gbit"
[network]
edges = [["a", "b"], ["b", "c"], ["c", "a"], ["c", "d"]]
[security]
credentials = "keys"
[timeouts]
silence = "5s"
"#;

fn network(text: &str) -> ClusterFile {
    let pes = hosts(&["", "", "", "link = \"latency=1ms\""]);
    ClusterFile::of(&format!("{text}{pes}"))
}

#[test]
fn a_network_is_spanned_from_any_root() {
    let cluster = network(&NETWORK.replace("credentials = \"keys\"", ""));
    cluster.fill_input(["a", "b", "d"]);
    for line in [
        "scatter --input @/input --output @/scattered --root c",
        "gather --input @/scattered --output @/gathered --root c",
    ] {
        let done = cluster.run(line).ok();
        done.prints(&[" from c "]);
        let rows = done.stdout.lines().map(str::split_whitespace);
        let names = rows.filter_map(|mut row| Some([row.next()?, row.next()?]));
        let names: Vec<_> = names.filter(|[pe, _]| pe.starts_with('P')).collect();
        let expected = [["P0", "c"], ["P1", "a"], ["P2", "b"], ["P3", "d"]];
        assert_eq!(names[1..], expected, "{}", done.stdout);
    }
    assert_same_below(&cluster.path("input"), &cluster.path("gathered"));
    let parents = |line: &str| {
        let report = cluster.report(line);
        json!([report.value("/parents"), report.value("/nodes")])
    };
    let expected = json!([[null, 0, 0, 2], [0, 1, 2, 3]]);
    assert_eq!(parents("tree"), expected);
    let expected = json!([[null, 3, 3, 0], [3, 0, 1, 2]]);
    assert_eq!(parents("tree --root d --spanning bfs"), expected);
    // Only neighbours are connected: no star, and no path in the order of the file.
    let auto = cluster.report("gather --size 1KiB --tree auto");
    let tree = auto.value("/tree").to_string();
    assert!(tree.contains(" root a "), "{tree}");
    let refused = cluster.run("gather --size 1KiB --root c --algorithm binomial");
    refused.with_code(2);
}

#[test]
fn options_override_the_file() {
    let cluster = network(NETWORK);
    cluster.0.run("ca init @/keys --pes 4").ok();
    let report = |more: &str| cluster.report(&format!("gather --size 1KiB {more}"));
    let from_file = report("");
    assert_eq!(from_file.value("/security"), "tls");
    let shaped = |report: &Report| -> Vec<String> {
        let edges = report.value("/edges").as_array().expect("a list").iter();
        edges.map(|edge| edge["shaped"].to_string()).collect()
    };
    let by_file = shaped(&from_file);
    assert_eq!(by_file[0], by_file[1]);
    assert_ne!(by_file[0], by_file[2]);
    let typed = report("--insecure --link rate=2gbit");
    assert_eq!(typed.value("/security"), "insecure");
    let by_hand = shaped(&typed);
    assert_ne!(by_hand[0], by_file[0]);
    assert_eq!(by_hand[2], by_file[2], "the file has a link for this edge");
    // The option is checked against the timeout in the file.
    let hasty = cluster.run("gather --size 1KiB --timeouts heartbeat=2s");
    let expected = "--timeouts: silence: 5s is less than 3 heartbeats of 2s";
    hasty.fails(2, &[expected]);
}

#[test]
fn links_across_hosts_are_not_shaped() {
    let cluster = ClusterFile::of(&PER_EDGE.replace("127.0.2.1", "192.0.2.7"));
    let refused = cluster.run("gather --size 1KiB --link rate=1mbit");
    let expected = "--link: only links between processes of one host are shaped, by the clock that all of them read, and relay has an address of a network, 192.0.2.7";
    refused.fails(2, &[expected]);
}

#[test]
fn stderr_of_a_pe_is_forwarded_to_its_end() {
    let noise = "printf 'not \\377 UTF-8\\n' >&2; head -c 40000 /dev/zero | tr '\\0' x >&2; \
        echo >&2; echo heard >&2; printf 'no end of a line' >&2; exec 2>&-; exec \"$@\"";
    let noisy = format!("\"sh\", \"-c\", {noise:?}, \"sh\"");
    let cluster = ClusterFile::of(&PER_EDGE.replace("\"env\", \"--\"", &noisy));
    let stderr = cluster.run("scatter --size 1KiB").ok().stderr;
    let begins = stderr.starts_with("P0| not \u{fffd} UTF-8\nP0| xxxx");
    let ends = stderr.ends_with("x\nP0| heard\nP0| no end of a line\n");
    assert!(begins && ends, "{stderr:.200}");
    // A very long line is reported in parts.
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(stderr.bytes().filter(|byte| *byte == b'x').count(), 40_000);
}
