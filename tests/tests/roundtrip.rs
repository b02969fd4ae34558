//! Scatters followed by gathers with real processes, which must restore the messages: every shape
//! of tree of 1 to 16 PEs, every algorithm, and messages of nothing, a byte, about one flit, and
//! megabytes.

use std::path::Path;

use flitcast_tests::files::{Tree, assert_same, assert_same_below, fill, snapshot};
use flitcast_tests::{Report, reported, scratch};

const SIZES: [usize; 6] = [1, 2, 3, 5, 8, 16];
const KIB: usize = 1024;

/// Small flits and the default ones alternate.
fn flit_bytes(pes: usize) -> usize {
    match pes {
        2 | 5 | 16 => 4 * KIB,
        _ => 64 * KIB,
    }
}

/// Returns the lengths that could matter. P_i's message has the `i + turn`-th of them, cyclically.
fn length_kinds(flit: usize) -> [usize; 6] {
    [flit + 1, flit, 3 * KIB * KIB + 5, flit - 1, 0, 1]
}

fn lengths(pes: usize, turn: usize) -> Vec<usize> {
    let kinds = length_kinds(flit_bytes(pes)).into_iter().cycle();
    kinds.skip(turn).take(pes - 1).collect()
}

fn joined(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    numbers.join(",")
}

/// Returns the turns in which each length is sent at least once; few PEs need several.
fn turns(pes: usize) -> Vec<usize> {
    let kinds = length_kinds(flit_bytes(pes)).len();
    match pes {
        1 => vec![0],
        _ => (0..kinds).step_by((pes - 1).min(kinds)).collect(),
    }
}

/// Returns every gather that the tree allows, with the name of its algorithm.
fn gathers(is_path: bool) -> impl Iterator<Item = (String, &'static str)> {
    let all = [
        ("certification", " --sync serial"),
        ("certification", " --sync pipelined"),
        ("shoulder-tap", ""),
    ];
    let all = all.into_iter().take(if is_path { 3 } else { 2 });
    all.map(|(name, sync)| (format!("gather --algorithm {name}{sync}"), name))
}

#[track_caller]
fn report(line: &str, tree: &str, pes: usize) -> Report {
    let flit = flit_bytes(pes);
    let report = reported(&format!("{line} --tree {tree} --flit-size {flit}"));
    assert_eq!(report.list("/pes").len(), pes, "{tree}");
    assert_eq!(report.number("/flit_bytes"), flit as u64);
    assert!(line.starts_with(report.value("/operation").as_str().expect("a name")));
    report.assert_all_arrived();
    report
}

/// Receivers verify every byte of a synthetic message, and fail the run otherwise.
fn synthetic(tree: &str, pes: usize, is_path: bool) {
    for turn in turns(pes) {
        let lengths = lengths(pes, turn);
        let list = match pes {
            // There is no destination; the list has the same length.
            1 => "--size 1MiB".to_owned(),
            _ => format!("--lengths {}", joined(&lengths)),
        };
        let expected: Vec<u64> = lengths.iter().map(|&bytes| bytes as u64).collect();
        let scattered = report(&format!("scatter {list}"), tree, pes);
        assert_eq!(scattered.message_bytes(), expected, "{tree}");
        for (gather, algorithm) in gathers(is_path) {
            let gathered = report(&format!("{gather} {list}"), tree, pes);
            assert_eq!(gathered.value("/algorithm"), algorithm);
            assert_eq!(gathered.message_bytes(), expected, "{tree}");
        }
    }
}

/// Creates shards: for each PE a folder with files of its length, and none if the length is 0.
fn shards(directory: &Path, pes: usize) -> Tree {
    std::fs::create_dir(directory).expect("a scratch directory can be written to");
    for (i, &bytes) in (1..).zip(&lengths(pes, pes)) {
        if bytes > 0 {
            let own = directory.join(format!("p{i}"));
            fill(&own.join("data.bin"), bytes);
            fill(&own.join("part").join("small"), i);
        }
    }
    snapshot(directory)
}

fn files(tree: &str, pes: usize, is_path: bool) {
    let dir = scratch();
    let path = |name: &str| dir.shown(name);
    let (input, scattered) = (path("input"), path("scattered"));
    let shards = shards(Path::new(&input), pes);
    let line = format!("scatter --input {input} --output {scattered}");
    let sent = report(&line, tree, pes).message_bytes();
    assert_same(&shards, &below(&scattered));
    for (i, (gather, algorithm)) in gathers(is_path).enumerate() {
        let gathered = path(&format!("gathered{i}"));
        // If all messages were null, there is no output to gather from.
        let from = if shards.is_empty() {
            &input
        } else {
            &scattered
        };
        let line = format!("{gather} --input {from} --output {gathered}");
        let back = report(&line, tree, pes);
        assert_eq!(back.value("/algorithm"), algorithm);
        assert_eq!(back.message_bytes(), sent, "{tree}: the same messages");
        assert_same(&shards, &below(&gathered));
    }
    assert_same(&shards, &snapshot(Path::new(&input)));
}

/// Returns the entries of an output, which may be missing if it is empty.
#[track_caller]
fn below(output: &str) -> Tree {
    match Path::new(output).exists() {
        true => snapshot(Path::new(output)),
        false => Tree::new(),
    }
}

/// Returns two paths from P0, numbered from their far ends: parents have greater numbers than their
/// children.
fn two_arms(pes: usize) -> Vec<usize> {
    let parent = |i: usize| match i + 2 {
        above if above < pes => above,
        _ => 0,
    };
    (1..pes).map(parent).collect()
}

/// Checks trees of some sizes.
fn assert_restored(name: impl Fn(usize) -> String, sizes: &[usize], is_path: bool) {
    for &pes in sizes {
        synthetic(&name(pes), pes, is_path);
        files(&name(pes), pes, is_path);
    }
}

#[test]
fn a_path() {
    assert_restored(|pes| format!("path:{pes}"), &SIZES, true);
}

#[test]
fn a_tree_of_each_shape() {
    // Smaller ones are paths, or have two arms.
    for shape in ["star:N", "kary:2:N", "kary:3:N", "binomial:N", "random:N:7"] {
        let name = |pes: usize| shape.replace('N', &pes.to_string());
        assert_restored(name, &SIZES[3..], false);
    }
}

#[test]
fn a_tree_given_by_its_parents() {
    let name = |pes| format!("parents:{}", joined(&two_arms(pes)));
    assert_restored(name, &SIZES[2..], false);
}

/// More PEs than in any other test, each with descriptors, a listener and a name. Every seventh has
/// a null message.
#[test]
fn a_hundred_and_fifty_processes() {
    let dir = scratch();
    for pe in (1..150).filter(|pe| pe % 7 != 0) {
        fill(&dir.join(format!("input/p{pe}/data")), 37 * pe);
    }
    for line in [
        "scatter --tree kary:4:150 --input @/input --output @/there",
        "gather --tree kary:4:150 --input @/there --output @/back",
    ] {
        let report = dir.report(line);
        report.assert_all_arrived();
        assert_eq!(report.number("/round/messages"), 128, "{line}");
    }
    assert_same_below(&dir.join("input"), &dir.join("back"));
}
