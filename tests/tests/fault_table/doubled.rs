//! Row 21: duplicate frames.

use std::time::Instant;

use flitcast_tests::doubling::Doubling;
use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::{reported, scratch};

use crate::{alone, measured, timed};

const PATH: &[u32] = &[0, 1, 2];
const TREE: &[u32] = &[0, 0, 1, 1, 2, 2];
const STAR: &[u32] = &[0, 0, 0, 0];

/// One algorithm for each role of a PE; the storm has all of them in virtual time.
const LINES: [(&str, &[u32]); 6] = [
    ("scatter", TREE),
    ("gather --algorithm shoulder-tap --pacing turns", PATH),
    ("gather --algorithm certification --sync serial", TREE),
    (
        "gather --algorithm certification --link rate=400mbit,latency=1ms",
        TREE,
    ),
    ("gather --algorithm window", STAR),
    ("scatter --algorithm adaptive", STAR),
];

/// Messages are checked byte by byte at their destinations; the frames of every edge are duplicated
/// in both directions, from the first one.
#[test]
fn row_21_half_of_all_frames_come_twice() {
    let _alone = alone();
    for (seed, (case, parents)) in (0..).zip(LINES) {
        let cluster = Doubling::of(parents, seed);
        let line = format!(
            "{case} --lengths uniform:1..200000:7 --flit-size 4KiB --rounds 2 --cluster {}",
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
