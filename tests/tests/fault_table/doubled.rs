//! Row 21: duplicate frames.

use std::time::Instant;

use flitcast_tests::doubling::Doubling;
use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::{reported, scratch};

use crate::{alone, measured, timed};

const PATH: &[u32] = &[0, 1, 2];
const TREE: &[u32] = &[0, 0, 1, 1, 2, 2];
const STAR: &[u32] = &[0, 0, 0, 0];

/// Every algorithm on a tree that it works on.
const GATHERS: [(&str, &[u32]); 5] = [
    ("--algorithm shoulder-tap", PATH),
    ("--algorithm certification --sync serial", TREE),
    ("--algorithm certification --sync pipelined", TREE),
    ("--algorithm linear", STAR),
    ("--algorithm window", STAR),
];

/// Messages are checked byte by byte at their destinations; the frames of every edge are duplicated
/// in both directions, from the first one.
#[test]
fn row_21_half_of_all_frames_come_twice() {
    let _alone = alone();
    let mut lines = vec![("scatter".to_owned(), TREE), ("scatter".to_owned(), PATH)];
    for (algorithm, parents) in GATHERS {
        let pacings: &[&str] = match parents == STAR {
            true => &[""],
            false => &["--pacing scheduled", "--pacing turns", "--pacing eager"],
        };
        let lines_of = |pacing: &&str| (format!("gather {algorithm} {pacing}"), parents);
        lines.extend(pacings.iter().map(lines_of));
    }
    for combining in ["binomial", "adaptive"] {
        for operation in ["scatter", "gather"] {
            lines.push((format!("{operation} --algorithm {combining}"), STAR));
        }
    }
    let shaped = "scatter, gather --pacing turns, gather --pacing scheduled";
    for line in shaped.split(", ") {
        lines.push((format!("{line} --link rate=400mbit,latency=1ms"), TREE));
    }
    for (seed, (line, parents)) in (0..).zip(lines) {
        let cluster = Doubling::of(parents, seed);
        let case = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = format!(
            "{line} --lengths uniform:1..200000:7 --flit-size 4KiB --rounds 2 --cluster {}",
            cluster.file().display()
        );
        let began = Instant::now();
        let report = reported(&line);
        let took = began.elapsed();
        // Arrived bytes are checked against the pattern; they are complete, or the run has failed.
        assert_eq!(report.number("/round/messages"), parents.len() as u64);
        let (dropped, doubled) = (report.number("/round/repeated_frames"), cluster.doubled());
        // After the last frame that a PE waits for, its duplicate is not read.
        let is_right = (doubled * 8 / 10..=doubled).contains(&dropped) && dropped > 50;
        assert!(is_right, "{dropped} of {doubled}");
        measured("21", &format!("{dropped} frames twice, {case}"), None, took);
    }
}

/// Files are scattered and gathered again.
#[test]
fn row_21_files_are_what_they_were() {
    let _alone = alone();
    let dir = scratch();
    let input = dir.join("input");
    for pe in 1..=TREE.len() {
        fill(&input.join(format!("p{pe}/some/file")), 300_000 + pe);
        fill(&input.join(format!("p{pe}/other")), pe - 1);
    }
    timed("21", "files, there and back", None, || {
        for (operation, from, to) in [("scatter", "input", "there"), ("gather", "there", "back")] {
            let cluster = Doubling::of(TREE, 5);
            let file = cluster.file();
            let line = format!("{operation} --input @/{from} --output @/{to} --cluster");
            let finished = dir.run(&format!("{line} {}", file.display())).ok();
            finished.prints(&["frames that had come before were dropped"]);
        }
    });
    assert_same_below(&input, &dir.join("back"));
}
