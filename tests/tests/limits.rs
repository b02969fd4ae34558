//! The resources of a PE, which do not grow with the message, and the size of a cluster.

use std::fs;
use std::path::Path;

use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::{Report, run, scratch};

const MIB: u64 = 1 << 20;

/// A small part of the messages sent here.
const MEMORY_BYTES: u64 = 24 * MIB;

/// Checks that every PE stayed within its memory, and reported the amount.
#[track_caller]
fn assert_within_memory(report: &Report) {
    let pes = report.list("/pes").len();
    let peaks: Vec<u64> = (0..pes)
        .map(|pe| report.number(&format!("/pes/{pe}/peak_resident_bytes")))
        .collect();
    // Every process needs at least this much.
    assert!(
        peaks.iter().all(|peak| (MIB..MEMORY_BYTES).contains(peak)),
        "{peaks:?}"
    );
    assert_eq!(
        Some(&report.number("/round/peak_resident_bytes")),
        peaks.iter().max()
    );
}

#[test]
fn a_gibibyte_down_a_path_and_up_again_takes_little_memory() {
    for operation in [
        &["scatter"][..],
        &["gather", "--algorithm", "shoulder-tap"],
        &["gather", "--algorithm", "certification", "--sync", "serial"],
        &[
            "gather",
            "--algorithm",
            "certification",
            "--sync",
            "pipelined",
        ],
    ] {
        let fixed = [
            "--tree",
            "path:4",
            "--lengths",
            "0,0,1GiB",
            "--format",
            "json",
        ];
        let report = run(operation.iter().chain(&fixed)).ok().report();
        assert_eq!(report.message_bytes(), [0, 0, 1024 * MIB]);
        report.assert_all_arrived();
        assert_within_memory(&report);
    }
}

/// The longest flits there are.
#[test]
fn long_flits_take_little_memory() {
    for operation in ["scatter", "gather"] {
        let fixed = [operation, "--tree", "path:4", "--lengths", "0,0,256MiB"];
        let more = ["--flit-size", "1MiB", "--format", "json"];
        let report = run(fixed.iter().chain(&more)).ok().report();
        report.assert_all_arrived();
        assert_within_memory(&report);
    }
}

/// Through the file system on both sides.
#[test]
fn a_long_file_takes_little_memory() {
    let dir = scratch();
    let path = |name: &str| {
        dir.path()
            .join(name)
            .to_str()
            .expect("it is UTF-8")
            .to_owned()
    };
    let (input, there, back) = (path("input"), path("there"), path("back"));
    fill(&Path::new(&input).join("p2/long"), 200 * MIB as usize);
    for (operation, from, to) in [("scatter", &input, &there), ("gather", &there, &back)] {
        let fixed = [
            operation, "--tree", "path:3", "--input", from, "--output", to,
        ];
        let report = run(fixed.iter().chain(&["--format", "json"])).ok().report();
        report.assert_all_arrived();
        assert_within_memory(&report);
    }
    assert_same_below(Path::new(&input), Path::new(&back));
}

/// Each small file is made durable, without accumulating memory.
#[test]
fn many_small_files_take_little_memory() {
    let dir = scratch();
    let (input, there) = (dir.path().join("input"), dir.path().join("there"));
    for folder in 0..20 {
        let folder = input.join(format!("p1/{folder}"));
        fs::create_dir_all(&folder).expect("it can be made");
        for file in 0..100 {
            fs::write(folder.join(format!("{file}")), [file]).expect("it can be written");
        }
    }
    let text = |path: &Path| path.to_str().expect("it is UTF-8").to_owned();
    let (from, to) = (text(&input), text(&there));
    let fixed = [
        "scatter", "--tree", "path:2", "--input", &from, "--output", &to,
    ];
    let report = run(fixed.iter().chain(&["--format", "json"])).ok().report();
    assert_within_memory(&report);
    assert_same_below(&input, &there);
}

/// No memory remains in use for a finished folder, at the source or at the destination.
#[test]
fn a_hundred_thousand_folders_take_little_memory() {
    // In memory, where syncs are fast.
    let dir = tempfile::tempdir_in("/dev/shm").expect("Linux has it");
    let (input, there) = (dir.path().join("input"), dir.path().join("there"));
    let long = "n".repeat(100);
    for folder in 0..100 {
        let folder = input.join(format!("p1/{folder:02} {long}"));
        fs::create_dir_all(&folder).expect("it can be made");
        for below in 0..1000 {
            fs::create_dir(folder.join(format!("{below:03} {long}"))).expect("it can be made");
        }
    }
    let text = |path: &Path| path.to_str().expect("it is UTF-8").to_owned();
    let (from, to) = (text(&input), text(&there));
    let fixed = [
        "scatter", "--tree", "path:2", "--input", &from, "--output", &to,
    ];
    let report = run(fixed.iter().chain(&["--format", "json"])).ok().report();
    assert_within_memory(&report);
    let folders = fs::read_dir(there.join("p1")).expect("it has arrived");
    let below = |folder: std::io::Result<fs::DirEntry>| {
        let folder = folder.expect("it is listed").path();
        fs::read_dir(folder).expect("it has arrived").count()
    };
    assert_eq!(folders.map(below).sum::<usize>(), 100_000);
}

#[test]
fn sixty_four_processes_play_a_round() {
    for operation in ["scatter", "gather"] {
        let fixed = [
            operation, "--tree", "star:64", "--size", "1KiB", "--format", "json",
        ];
        let report = run(fixed).ok().report();
        assert_eq!(report.message_bytes(), [1024; 63]);
        report.assert_all_arrived();
    }
}

/// A path is as deep as its number of PEs.
#[test]
fn a_deep_tree_plays_a_round() {
    for operation in ["scatter", "gather"] {
        let fixed = [
            operation, "--tree", "path:64", "--size", "10KiB", "--format", "json",
        ];
        let report = run(fixed).ok().report();
        assert_eq!(report.number("/pes/63/depth"), 63);
        report.assert_all_arrived();
    }
}
