//! Any PE is the source of a scatter or a broadcast, or the destination of a gather.

use std::fs;
use std::path::Path;

use flitcast_tests::files::{assert_same_below, fill, names, record, wait_for_partial};
use flitcast_tests::{Finished, Folder, reported, resume, rows, scratch};
use rustix::process::Signal;

/// Creates an entry for each of these PEs, a file or a folder.
fn put_entries(input: &Path, pes: &[u32]) {
    for pe in pes {
        let below = ["", "/below"][*pe as usize % 2];
        let entry = input.join(format!("p{pe}{below}"));
        fill(&entry, 1000 + 30_000 * *pe as usize);
    }
}

/// Runs an operation on files from `in` to `out`.
#[track_caller]
fn done(dir: &Folder, line: &str) -> Finished {
    dir.run(&format!("{line} --input @/in --output @/out"))
}

/// Returns the names of the delivered messages.
fn delivered(output: &Path) -> Vec<String> {
    let mut names = names(output);
    names.retain(|name| !name.starts_with('.'));
    names
}

#[test]
fn what_p3_scatters_it_can_gather() {
    let dir = scratch();
    let [input, output, back] = ["in", "out", "back"].map(|name| dir.join(name));
    put_entries(&input, &[0, 1, 2, 4, 5, 6]);
    for [scatter, gather] in rows("
        scatter --tree kary:2:7 --from P3 | gather --tree kary:2:7 --to 3
        scatter --network ring:7 --from 3 --algorithm auto | gather --network mesh:7 --to P3 --algorithm auto
        scatter --tree path:7 --from 3 --algorithm listed | gather --tree path:7 --to 3 --sync serial
    ") {
        done(&dir, scatter).ok();
        assert_same_below(&input, &output);
        let report = dir.report(&format!("{gather} --input @/out --output @/back"));
        assert_same_below(&input, &back);
        assert!(report.value("/pes/3/parent").is_null());
        assert!(report.number("/pes/0/bytes") >= 1000);
        assert!(report.float("/pes/0/measured_us/median") > 0.0);
        for folder in [&output, &back] {
            fs::remove_dir_all(folder).expect("it is there");
        }
    }
}

/// A path is one from its other end, but not from its middle.
#[test]
fn a_path_is_one_from_either_end() {
    let algorithm = |to: &str| {
        let report = reported(&format!("gather --tree path:5 --to {to} --size 10KiB"));
        assert_eq!(report.number("/round/messages"), 4);
        report.value("/algorithm").clone()
    };
    assert_eq!(algorithm("P4"), "shoulder-tap");
    assert_eq!(algorithm("P2"), "certification");
}

#[test]
fn a_broadcast_from_p2_reaches_p0() {
    let dir = scratch();
    let [input, output] = ["in", "out"].map(|name| dir.join(name));
    fill(&input.join("weights"), 200_000);
    done(&dir, "broadcast --tree kary:2:6 --from P2").ok();
    assert_eq!(delivered(&output), ["p0", "p1", "p3", "p4", "p5"]);
    for copy in delivered(&output) {
        assert_same_below(&input, &output.join(copy));
    }
}

/// Files are distributed over all other PEs, and each edge keeps the two directions of its file.
#[test]
fn dealt_files_and_unlike_links_go_from_p1() {
    let dir = scratch();
    let [input, output] = ["in", "out"].map(|name| dir.join(name));
    for file in ["a", "b", "c"] {
        fill(&input.join(file), 50_000);
    }
    let edge = "{ child = 1, rate = '400mbit', up = { rate = '100mbit' } }";
    dir.put("tree.toml", format!("parents = [0, 1]\nedges = [{edge}]\n"));
    let line = "scatter --tree file:@/tree.toml --from P1 --spread --format json";
    let report = done(&dir, line).ok().report();
    assert_eq!(delivered(&output), ["p0", "p2"]);
    // Data that was sent up is now sent down.
    let edge = report.list("/edges")[0].clone();
    assert_eq!((&edge["parent"], &edge["child"]), (&1.into(), &0.into()));
    let rate = |way: &str| edge["shaped"][way]["ns_per_byte"].as_f64();
    assert_eq!((rate("down"), rate("up")), (Some(80.0), Some(20.0)));
}

#[test]
fn messages_go_from_p2_and_to_p1_over_tls() {
    let dir = scratch();
    let [input, output, back] = ["in", "out", "back"].map(|name| dir.join(name));
    dir.run("ca init @/ca --pes 5").ok();
    put_entries(&input, &[0, 3, 4]);
    for (line, to) in [
        ("scatter --from P2 --input @/in --output @/out", &output),
        ("gather --to P1 --input @/out --output @/back", &back),
    ] {
        let line = format!("{line} --tree kary:2:5 --credentials @/ca");
        dir.run(&line).ok().prints(&["TLS 1.3 both ways"]);
        assert_same_below(&input, to);
    }
}

/// P3, P0, P2, P1 are one below the other. P0 is a relay like any other, and its death is routed
/// around. The death of a leaf affects no other PE. The death of the source or the destination
/// leaves no partial file. Missing messages can be delivered later.
#[test]
fn whoever_dies_is_gone_around() {
    for (operation, dies, left) in [
        ("scatter --from P3", 0, &["p1", "p2"][..]),
        ("scatter --from P3", 1, &["p0", "p2"]),
        ("scatter --from P3", 3, &[]),
        ("gather --to P3", 0, &["p1", "p2"]),
        ("gather --to P3", 1, &["p0", "p2"]),
        ("gather --to P3", 3, &[]),
    ] {
        let dir = scratch();
        let [input, output] = ["in", "out"].map(|name| dir.join(name));
        for pe in [0, 1, 2] {
            fill(&input.join(format!("p{pe}")), 3 << 20);
        }
        let line = format!("{operation} --tree parents:2,0,0 --link rate=20mbit --retry 1");
        let running = dir.start(&format!("{line} --input @/in --output @/out"));
        wait_for_partial(&output);
        running.pe(dies).signal(Signal::KILL);
        running.finish().with_code(1);
        assert_eq!(delivered(&output), left, "{operation}, P{dies} dies");
        resume(&record(&output), "--revive").ok();
        assert_same_below(&input, &output);
    }
}

#[test]
fn nobody_starts_from_a_pe_that_there_is_not() {
    let dir = scratch();
    put_entries(&dir.join("in"), &[0, 2]);
    let finished = done(&dir, "scatter --tree path:3 --from P2");
    let told = "`p2` is the root of the tree, which has no message; this tree has p0..p1";
    finished.fails(2, &[told]);
}
