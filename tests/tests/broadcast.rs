//! Broadcasts of a file or folder of P0 to all other PEs.

use std::fs;
use std::path::PathBuf;

use flitcast_tests::files::{assert_same_below, fill, names, record, wait_for_partial};
use flitcast_tests::{Finished, Folder, Report, Running, reported, resume};
use flitcast_tests::{run, scratch};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The source and the output of broadcasts.
struct Files(Folder);

impl Files {
    /// Creates a source of `bytes` bytes: the file `weights`, or an entry of that folder.
    #[track_caller]
    fn of(entry: &str, bytes: usize) -> Files {
        let files = Files(scratch());
        fill(&files.0.join(entry), bytes);
        files
    }

    fn weights(&self) -> PathBuf {
        self.0.join("weights")
    }

    fn output(&self) -> PathBuf {
        self.0.join("out")
    }

    #[track_caller]
    fn start(&self, more: &str) -> Running {
        let line = format!("broadcast --input @/weights --output @/out {more}");
        self.0.start(&line)
    }

    #[track_caller]
    fn broadcast(&self, more: &str) -> Finished {
        self.start(more).finish()
    }

    /// Starts a broadcast, kills a PE when a copy arrives, and checks that the command fails and that
    /// exactly these PEs have a copy.
    #[track_caller]
    fn killing(&self, pe: u32, more: &str, left: &[u32]) {
        let running = self.start(more);
        wait_for_partial(&self.output());
        running.pe(pe).signal(Signal::KILL);
        running.finish().with_code(1);
        self.assert_copies(left.iter().copied());
    }

    /// Checks that exactly these PEs have a copy.
    #[track_caller]
    fn assert_copies(&self, pes: impl IntoIterator<Item = u32>) {
        let mut there = names(&self.output());
        there.retain(|name| !name.starts_with('.'));
        let mut expected: Vec<String> = pes.into_iter().map(|pe| format!("p{pe}")).collect();
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

    /// Checks that the record continues the run until these PEs have a copy.
    #[track_caller]
    fn assert_resumed(&self, pes: impl IntoIterator<Item = u32>) {
        resume(&record(&self.output()), "--revive").ok();
        self.assert_copies(pes);
    }
}

/// Broadcasts a file, and checks that all PEs but its source have a copy.
#[track_caller]
fn copied(bytes: usize, pes: u32, from: u32, line: &str) -> Report {
    let files = Files::of("weights", bytes);
    let finished = files.broadcast(&format!("{line} --format json")).ok();
    files.assert_copies((0..pes).filter(|pe| *pe != from));
    finished.report()
}

/// Checks that every PE but P0 received a message of this length, as predicted and as measured.
#[track_caller]
fn assert_all_have(report: &Report, bytes: u64) {
    assert_eq!(report.value("/operation"), "broadcast");
    assert_eq!(report.value("/algorithm"), "rounds");
    assert_eq!(report.number("/round/messages"), 1);
    let counted = report.number("/round/bytes");
    assert_eq!(counted, bytes, "a message counts once");
    for pe in 1..report.list("/pes").len() {
        let of = |what: &str| format!("/pes/{pe}/{what}");
        assert_eq!(report.number(&of("bytes")), bytes);
        assert!(report.float(&of("predicted_us")) > 0.0, "P{pe}");
        assert!(report.float(&of("measured_us/median")) > 0.0, "P{pe}");
    }
}

#[test]
fn every_pe_gets_a_copy_of_a_folder_but_its_source() {
    let files = Files::of("weights/layers/first", 300_000);
    fill(&files.weights().join("empty"), 0);
    let finished = files.broadcast("--tree kary:2:8 --format json").ok();
    files.assert_copies(1..8);
    let report = finished.report();
    let bytes = report.number("/round/bytes");
    assert!(bytes > 300_000);
    assert_all_have(&report, bytes);
}

#[test]
fn so_it_does_of_a_file_over_any_tree() {
    for (tree, pes, algorithm) in [
        ("path", 4, "rounds"),
        ("star", 5, "rounds"),
        ("kary:3", 9, "rounds"),
        ("path", 1, "rounds"),
        ("kary:2", 6, "urgent"),
        ("kary:2", 6, "child-by-child"),
    ] {
        let line = format!("--tree {tree}:{pes} --algorithm {algorithm} --flit-size 4KiB");
        copied(70_001, pes, 0, &line);
    }
}

#[test]
fn messages_that_are_no_files_arrive_in_every_round() {
    let report = reported("broadcast --tree kary:2:7 --size 1MiB --rounds 3");
    assert_all_have(&report, 1 << 20);
    let nothing = reported("broadcast --tree star:3 --size 0");
    assert_eq!(nothing.number("/round/messages"), 0);
}

/// In a complete network, a path or a tree with K children each is built, from any source.
#[test]
fn where_all_reach_each_other_a_tree_is_laid() {
    for (algorithm, root, parents) in [
        ("path", 2, json!([2, 0, null, 1, 3])),
        ("kary:3", 0, json!([null, 0, 0, 0, 1])),
    ] {
        let line = format!("--network complete:5 --algorithm {algorithm} --from P{root}");
        let report = copied(100_000, 5, root, &line);
        let found = report.list("/pes").iter().map(|pe| pe["parent"].clone());
        assert_eq!(found.collect::<Value>(), parents, "{algorithm}");
    }
}

/// A long message takes a path, a short one a flatter tree.
#[test]
fn auto_lays_the_tree_that_is_predicted_to_be_the_quickest() {
    let chosen = |size: &str| {
        let line = "broadcast --network complete:8 --algorithm auto";
        let link = "--link rate=100mbit,latency=1ms";
        let report = reported(&format!("{line} {link} --size {size}"));
        let considered = ["/choice/ways", "/choice/excluded"].map(|key| report.number(key));
        assert!(considered.iter().sum::<u64>() > 10, "{considered:?}");
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
        ("--tree kary:2:5 --from P4", 0..4),
        ("--tree path:4 --algorithm urgent", 1..4),
        ("--network complete:4 --algorithm hypercube", 1..4),
    ] {
        let files = Files::of("weights/a", 300_000);
        let pes_of_all = pes.len() + 1;
        files
            .0
            .run(&format!("ca init @/ca --pes {pes_of_all}"))
            .ok();
        let finished = files.broadcast(&format!("{way} --credentials @/ca")).ok();
        finished.prints(&["TLS 1.3 both ways"]);
        files.assert_copies(pes);
    }
}

/// A relay stores one flit of a message, however many children it has.
#[test]
fn a_relay_holds_a_flit() {
    let report = reported("broadcast --tree kary:4:9 --size 3MiB --link rate=200mbit");
    assert_all_have(&report, 3 << 20);
    assert_eq!(report.number("/round/peak_buffered_flits"), 1);
}

#[test]
fn what_cannot_be_broadcast_is_told_before_anything_begins() {
    let files = Files(scratch());
    files.broadcast("--tree path:3").fails(2, &["weights"]);
    assert!(!files.output().exists());
}

/// Over as many trees as the cube has dimensions, from any PE, with any length, and in every round;
/// also on links that share a port of each PE.
#[test]
fn a_hypercube_carries_parts_over_all_its_trees() {
    let link = "--flit-size 4KiB --link rate=200mbit,latency=1ms";
    for (pes, from, bytes, more) in [
        (8, 0, 70_001, "--flit-size 4KiB"),
        (8, 5, 1 << 20, link),
        (4, 3, 1, ""),
        (2, 1, 100_000, ""),
        (16, 9, 300_000, "--flit-size 4KiB"),
    ] {
        let line = format!("--network complete:{pes} --from {from} --algorithm hypercube {more}");
        let report = copied(bytes, pes, from, &line);
        assert_eq!(report.value("/algorithm"), "hypercube");
    }
    let line = "broadcast --network complete:8 --algorithm hypercube --size 300KiB --rounds 3";
    run(line.split(' ')).ok();
}

/// The remaining PEs continue over one tree, and the missing copies can be delivered later.
#[test]
fn a_hypercube_that_lacks_a_pe_is_gone_on_with() {
    for (dies, left) in [(3, &[1, 2, 4, 5, 6, 7][..]), (0, &[])] {
        let files = Files::of("weights", 4 << 20);
        let line = "--network complete:8 --algorithm hypercube --link rate=20mbit --retry 1";
        files.killing(dies, line, left);
        files.assert_resumed(1..8);
    }
}

/// The death of a leaf affects no other PE.
#[test]
fn a_leaf_that_dies_is_left_out() {
    let files = Files::of("weights", 6 << 20);
    let line = "--tree kary:2:5 --link rate=20mbit --retry 1";
    files.killing(4, line, &[1, 2, 3]);
}

/// The PEs below it receive from its parent, and those with a copy keep it.
#[test]
fn a_relay_that_dies_is_gone_around() {
    for way in [
        "--tree path:4",
        "--tree path:4 --algorithm urgent",
        "--network complete:4 --algorithm path",
    ] {
        let files = Files::of("weights/some", 3 << 20);
        let line = format!("{way} --link rate=20mbit --retry 1");
        files.killing(1, &line, &[2, 3]);
    }
}

/// The round is over, and no partial files are left; missing messages can be delivered later.
#[test]
fn a_source_that_dies_leaves_no_half_copies() {
    let files = Files::of("weights", 6 << 20);
    files.killing(0, "--tree kary:2:5 --link rate=20mbit", &[]);
    files.assert_resumed(1..5);
}
