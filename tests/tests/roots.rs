//! Any PE is the source of a scatter or a broadcast, or the destination of a gather.

use std::fs;
use std::path::Path;

use flitcast_tests::files::{assert_same_below, fill, names};
use flitcast_tests::{Finished, Folder, reported, rows, scratch};

/// Creates an entry for each of these PEs, a file or a folder.
fn put_entries(input: &Path, pes: &[u32]) {
    for pe in pes {
        let below = ["", "/below"][*pe as usize % 2];
        let entry = input.join(format!("p{pe}{below}"));
        fill(&entry, 1000 + 30_000 * *pe as usize);
    }
}

fn done(dir: &Folder, line: &str) -> Finished {
    dir.run(&format!("{line} --input @/in --output @/out"))
}

fn delivered(output: &Path) -> Vec<String> {
    let mut names = names(output);
    names.retain(|name| !name.starts_with('.'));
    names
}

#[test]
fn p3_gathers_the_messages_that_it_scattered() {
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

/// Files are distributed over all other PEs, and each edge keeps the two directions of its file.
#[test]
fn dealt_files_over_different_links_are_sent_from_p1() {
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
fn the_root_cannot_have_a_message() {
    let dir = scratch();
    put_entries(&dir.join("in"), &[0, 2]);
    let finished = done(&dir, "scatter --tree path:3 --from P2");
    let expected = "`p2` is the root of the tree, which has no message; this tree has p0..p1";
    finished.fails(2, &[expected]);
}
