//! Clusters that a file describes, on this machine's loopback addresses: all of
//! 127.0.0.0/8 is this machine. What the network lab needs of them is in `lab.rs`.

use std::path::PathBuf;

use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::{run, scratch};
use tempfile::TempDir;

/// A folder with this text in `cluster.toml`.
struct ClusterFile(TempDir);

impl ClusterFile {
    #[track_caller]
    fn of(text: &str) -> ClusterFile {
        let dir = scratch();
        std::fs::write(dir.path().join("cluster.toml"), text).expect("it can be written");
        ClusterFile(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A command line, `@` standing for the folder.
    fn words(&self, line: &str) -> Vec<String> {
        let dir = self.0.path().to_str().expect("its path is UTF-8");
        let line = format!("{line} --cluster @/cluster.toml");
        let words = line.split_whitespace();
        words.map(|word| word.replace('@', dir)).collect()
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
fn messages_go_to_where_the_file_says() {
    let cluster = ClusterFile::of(PER_EDGE);
    for (pe, bytes) in [(1, 1), (2, 300_000), (3, 65_536)] {
        fill(&cluster.path(&format!("input/p{pe}/file")), bytes);
    }
    for line in [
        "scatter --input @/input --output @/scattered",
        "gather --input @/scattered --output @/gathered",
    ] {
        let run = run(cluster.words(line)).ok();
        assert!(run.stdout.contains("four at home: 4 PEs"), "{}", run.stdout);
    }
    assert_same_below(&cluster.path("input"), &cluster.path("gathered"));
    let line = "gather --lengths 100KiB,1,0 --rounds 3 --format json";
    let report = run(cluster.words(line)).ok().report();
    report.assert_all_arrived();
    assert_eq!(report.message_bytes(), [100 << 10, 1, 0]);
}

#[test]
fn other_commands_take_its_tree() {
    let cluster = ClusterFile::of(PER_EDGE);
    let report = run(cluster.words("tree --format json")).ok().report();
    assert_eq!(report.value("/name"), "four at home");
    assert_eq!(
        report.value("/parents"),
        &serde_json::json!([null, 0, 1, 0])
    );
    let by_tree =
        run("plan gather --tree parents:0,1,0 --lengths 2,3,1 --format json".split_whitespace())
            .ok()
            .report();
    let by_file = run(cluster.words("plan gather --lengths 2,3,1 --format json"))
        .ok()
        .report();
    assert_eq!(by_file.value("/messages"), by_tree.value("/messages"));
}

/// Each is kept for documentation, so that no machine has it.
#[test]
fn an_address_that_this_machine_has_not_is_named() {
    for (mine, other, cause) in [
        (
            "127.0.5.1",
            "192.0.2.1",
            "cannot listen on 192.0.2.1 for the PEs: ",
        ),
        ("127.0.2.1", "192.0.2.7", "cannot listen on 192.0.2.7:0: "),
    ] {
        let cluster = ClusterFile::of(&PER_EDGE.replace(mine, other));
        let run = run(cluster.words("scatter --size 1KiB"));
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert!(
            run.stderr.contains("the cluster did not come up"),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains(cause), "{}", run.stderr);
    }
}

#[test]
fn what_cannot_be_run_is_named() {
    let text = PER_EDGE.replace("\"nice\"", "\"/no/such/program\"");
    let run = run(ClusterFile::of(&text).words("scatter --size 1KiB"));
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let cause = "cannot start a process: /no/such/program";
    assert!(run.stderr.contains(cause), "{}", run.stderr);
}
