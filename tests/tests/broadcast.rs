//! Broadcasts of a file or folder of P0 to all other PEs.

use std::fs;
use std::path::{Path, PathBuf};

use flitcast_tests::files::{assert_same_below, fill, names};
use flitcast_tests::processes::eventually;
use flitcast_tests::report::Report;
use flitcast_tests::{Finished, Running, rows, run, scratch, start};
use rustix::process::Signal;
use tempfile::TempDir;

/// The source and the output of broadcasts.
struct Files {
    dir: TempDir,
}

impl Files {
    fn new() -> Files {
        Files { dir: scratch() }
    }

    fn weights(&self) -> PathBuf {
        self.dir.path().join("weights")
    }

    fn output(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    fn line(&self, more: &[&str]) -> Vec<String> {
        let paths = [self.weights(), self.output()].map(|path| path.display().to_string());
        let [input, output] = &paths;
        let fixed = ["broadcast", "--input", input, "--output", output];
        let all = fixed.iter().chain(more);
        all.map(|text| (*text).to_owned()).collect()
    }

    #[track_caller]
    fn broadcast(&self, more: &[&str]) -> Finished {
        run(self.line(more))
    }

    #[track_caller]
    fn start(&self, more: &[&str]) -> Running {
        start(self.line(more))
    }

    /// Checks that exactly these PEs have a copy.
    #[track_caller]
    fn assert_copies(&self, pes: &[u32]) {
        let mut there = names(&self.output());
        there.retain(|name| !name.starts_with('.'));
        let mut expected: Vec<String> = pes.iter().map(|pe| format!("p{pe}")).collect();
        expected.sort();
        assert_eq!(there, expected);
        for name in there {
            let copy = self.output().join(name);
            match self.weights().is_dir() {
                true => assert_same_below(&self.weights(), &copy),
                false => assert_eq!(fs::read(copy).ok(), fs::read(self.weights()).ok()),
            }
        }
    }
}

/// Checks that every PE but P0 received a message of this length, as predicted and as measured.
#[track_caller]
fn assert_all_have(report: &Report, bytes: u64) {
    assert_eq!(report.value("/operation"), "broadcast");
    assert_eq!(report.value("/algorithm"), "rounds");
    assert_eq!(report.number("/round/messages"), 1);
    assert_eq!(
        report.number("/round/bytes"),
        bytes,
        "a message counts once"
    );
    for pe in 1..report.list("/pes").len() {
        let of = |what: &str| format!("/pes/{pe}/{what}");
        assert_eq!(report.number(&of("bytes")), bytes);
        assert!(report.float(&of("predicted_us")) > 0.0, "P{pe}");
        assert!(report.float(&of("measured_us/median")) > 0.0, "P{pe}");
    }
}

#[track_caller]
fn refused(line: &[&str], what: &str) {
    let finished = run(line);
    finished.fails(2, &[what]);
}

#[test]
fn every_pe_gets_a_copy_of_a_folder_but_its_source() {
    let files = Files::new();
    fill(&files.weights().join("layers/first"), 300_000);
    fill(&files.weights().join("empty"), 0);
    let finished = files
        .broadcast(&["--tree", "kary:2:8", "--format", "json"])
        .ok();
    files.assert_copies(&[1, 2, 3, 4, 5, 6, 7]);
    let report = finished.report();
    let bytes = report.number("/round/bytes");
    assert!(bytes > 300_000);
    assert_all_have(&report, bytes);
}

#[test]
fn so_it_does_of_a_file_over_any_tree() {
    for (tree, algorithm) in [
        ("path:4", "rounds"),
        ("star:5", "rounds"),
        ("kary:3:9", "rounds"),
        ("path:1", "rounds"),
        ("kary:2:6", "urgent"),
        ("kary:2:6", "child-by-child"),
    ] {
        let files = Files::new();
        fill(&files.weights(), 70_001);
        let line = format!("--tree {tree} --algorithm {algorithm} --flit-size 4KiB");
        files.broadcast(&line.split(' ').collect::<Vec<_>>()).ok();
        let pes: u32 = tree
            .rsplit(':')
            .next()
            .expect("a number")
            .parse()
            .expect("a number");
        files.assert_copies(&(1..pes).collect::<Vec<_>>());
    }
}

#[test]
fn messages_that_are_no_files_arrive_in_every_round() {
    let line = "broadcast --tree kary:2:7 --size 1MiB --rounds 3 --format json";
    let report = run(line.split(' ')).ok().report();
    assert_all_have(&report, 1 << 20);
    let nothing = run("broadcast --tree star:3 --size 0 --format json".split(' ')).ok();
    assert_eq!(nothing.report().number("/round/messages"), 0);
}

/// In a complete network, a path or a tree with K children each is built, from any source.
#[test]
fn where_all_reach_each_other_a_tree_is_laid() {
    for (algorithm, root, parents) in [
        ("path", "P2", vec![Some(2), Some(0), None, Some(1), Some(3)]),
        (
            "kary:3",
            "P0",
            vec![None, Some(0), Some(0), Some(0), Some(1)],
        ),
    ] {
        let files = Files::new();
        fill(&files.weights(), 100_000);
        let line =
            format!("--network complete:5 --algorithm {algorithm} --from {root} --format json");
        let more: Vec<&str> = line.split(' ').collect();
        let report = files.broadcast(&more).ok().report();
        let all = report.list("/pes").iter();
        let found: Vec<Option<u64>> = all.map(|pe| pe["parent"].as_u64()).collect();
        assert_eq!(found, parents, "{algorithm}");
        let source: u32 = root[1..].parse().expect("a number");
        files.assert_copies(&(0..5).filter(|pe| *pe != source).collect::<Vec<_>>());
    }
}

/// A long message takes a path, a short one a flatter tree.
#[test]
fn auto_lays_the_tree_that_is_predicted_to_be_the_quickest() {
    let chosen = |size: &str| {
        let line = format!(
            "broadcast --network complete:8 --algorithm auto --size {size} --format json --link"
        );
        let link = ["rate=100mbit,latency=1ms"];
        let report = run(line.split(' ').chain(link)).ok().report();
        assert!(report.number("/choice/ways") > 10);
        assert_eq!(report.value("/tree"), report.value("/choice/chosen/tree"));
        let depths = report.list("/pes").iter().map(|pe| pe["depth"].as_u64());
        depths.max().flatten().expect("there are PEs")
    };
    assert_eq!(chosen("8MiB"), 7);
    assert!(chosen("1KiB") < 4);
}

#[test]
fn copies_arrive_over_tls() {
    for (way, pes) in [
        ("--tree kary:2:5 --from P4", &[0, 1, 2, 3][..]),
        ("--tree path:4 --algorithm urgent", &[1, 2, 3]),
        ("--network complete:4 --algorithm hypercube", &[1, 2, 3]),
    ] {
        let files = Files::new();
        fill(&files.weights().join("a"), 300_000);
        let keys = files.dir.path().join("ca");
        let keys = keys.to_str().expect("it is UTF-8");
        let all = (pes.len() + 1).to_string();
        run(["ca", "init", keys, "--pes", &all]).ok();
        let line = format!("{way} --credentials {keys}");
        let finished = files.broadcast(&line.split(' ').collect::<Vec<_>>()).ok();
        assert!(finished.stdout.contains("TLS 1.3 both ways"), "{way}");
        files.assert_copies(pes);
    }
}

/// A relay stores one flit of a message, however many children it has.
#[test]
fn a_relay_holds_a_flit() {
    let link = "rate=200mbit";
    let line = "broadcast --tree kary:4:9 --size 3MiB --format json --link";
    let report = run(line.split(' ').chain([link])).ok().report();
    assert_all_have(&report, 3 << 20);
    assert_eq!(report.number("/round/peak_buffered_flits"), 1);
}

#[test]
fn what_cannot_be_broadcast_is_told_before_anything_begins() {
    let files = Files::new();
    let finished = files.broadcast(&["--tree", "path:3"]);
    finished.fails(2, &["weights"]);
    assert!(!files.output().exists());
    for [line, what] in rows("
        broadcast --tree path:3 --lengths 5,6 | a broadcast has one message
        broadcast --tree path:3 --algorithm path --size 5 | --algorithm path: it is for PEs that all reach each other: use --network complete:N
        broadcast --network ring:5 --algorithm kary:2 --size 5 | --algorithm kary:2: it is for PEs that all reach each other
        broadcast --network complete:6 --algorithm hypercube --size 5 | --algorithm hypercube: it is for 2, 4, 8 and so on PEs
        broadcast --tree kary:2:4 --algorithm hypercube --size 5 | --algorithm hypercube: it is for PEs that all reach each other: use --network complete:N
        broadcast --tree path:3 --from P3 --size 5 | --from: there is no P3 among 3 PEs
    ") {
        refused(&line.split(' ').collect::<Vec<_>>(), what);
    }
}

/// Over as many trees as the cube has dimensions, from any PE, with any length, and in every round;
/// also on links that share a port of each PE.
#[test]
fn a_hypercube_carries_parts_over_all_its_trees() {
    for (pes, from, bytes, more) in [
        (8, 0, 70_001, "--flit-size 4KiB"),
        (
            8,
            5,
            1 << 20,
            "--flit-size 4KiB --link rate=200mbit,latency=1ms",
        ),
        (4, 3, 1, ""),
        (2, 1, 100_000, ""),
        (16, 9, 300_000, "--flit-size 4KiB"),
    ] {
        let files = Files::new();
        fill(&files.weights(), bytes);
        let line = format!(
            "--network complete:{pes} --from {from} --algorithm hypercube --format json {more}"
        );
        let line: Vec<&str> = line.split_whitespace().collect();
        let report = files.broadcast(&line).ok().report();
        files.assert_copies(&(0..pes).filter(|pe| *pe != from).collect::<Vec<_>>());
        assert_eq!(report.value("/algorithm"), "hypercube");
    }
    let line = "broadcast --network complete:8 --algorithm hypercube --size 300KiB --rounds 3";
    run(line.split(' ')).ok();
}

/// The remaining PEs continue over one tree, and the missing copies can be delivered later.
#[test]
fn a_hypercube_that_lacks_a_pe_is_gone_on_with() {
    for (dies, left, code) in [(3, &[1, 2, 4, 5, 6, 7][..], 1), (0, &[], 1)] {
        let files = Files::new();
        fill(&files.weights(), 4 << 20);
        let line = "--network complete:8 --algorithm hypercube --link rate=20mbit --retry 1";
        let running = files.start(&line.split(' ').collect::<Vec<_>>());
        wait_for_arrival(&files.output());
        running.pe(dies).signal(Signal::KILL);
        let finished = running.finish();
        assert_eq!(finished.code, Some(code), "{}", finished.stderr);
        files.assert_copies(left);
        let mut record = names(&files.output());
        record.retain(|name| name.starts_with(".flitcast-round-"));
        let record = files.output().join(&record[0]);
        let record = record.to_str().expect("it is UTF-8");
        run(["resume", record, "--revive"]).ok();
        files.assert_copies(&[1, 2, 3, 4, 5, 6, 7]);
    }
}

/// The death of a leaf affects no other PE.
#[test]
fn a_leaf_that_dies_is_left_out() {
    let files = Files::new();
    fill(&files.weights(), 6 << 20);
    let line = "--tree kary:2:5 --link rate=20mbit --retry 1";
    let running = files.start(&line.split(' ').collect::<Vec<_>>());
    wait_for_arrival(&files.output());
    running.pe(4).signal(Signal::KILL);
    let finished = running.finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    files.assert_copies(&[1, 2, 3]);
}

/// The PEs below it receive from its parent, and those with a copy keep it.
#[test]
fn a_relay_that_dies_is_gone_around() {
    for way in [
        "--tree path:4",
        "--tree path:4 --algorithm urgent",
        "--network complete:4 --algorithm path",
    ] {
        let files = Files::new();
        fill(&files.weights().join("some"), 3 << 20);
        let line = format!("{way} --link rate=20mbit --retry 1");
        let running = files.start(&line.split(' ').collect::<Vec<_>>());
        wait_for_arrival(&files.output());
        running.pe(1).signal(Signal::KILL);
        let finished = running.finish();
        assert_eq!(finished.code, Some(1), "{}", finished.stderr);
        files.assert_copies(&[2, 3]);
    }
}

/// The round is over, and no partial files are left; missing messages can be delivered later.
#[test]
fn a_source_that_dies_leaves_no_half_copies() {
    let files = Files::new();
    fill(&files.weights(), 6 << 20);
    let running = files.start(&["--tree", "kary:2:5", "--link", "rate=20mbit"]);
    wait_for_arrival(&files.output());
    running.pe(0).signal(Signal::KILL);
    let finished = running.finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    files.assert_copies(&[]);
    let mut record = names(&files.output());
    record.retain(|name| name.starts_with(".flitcast-round-"));
    let record = files.output().join(&record[0]);
    let record = record.to_str().expect("it is UTF-8");
    run(["resume", record, "--revive"]).ok();
    files.assert_copies(&[1, 2, 3, 4]);
}

#[track_caller]
fn wait_for_arrival(output: &Path) {
    eventually("a copy arrives", || {
        let entries = fs::read_dir(output).ok()?;
        let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.any(|name| name.ends_with(".partial")).then_some(())
    });
}
