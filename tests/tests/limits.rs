//! The resources of a PE, which do not grow with the message, and the size of a cluster.

use std::fs;

use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::{Report, reported, scratch};

const MIB: u64 = 1 << 20;

/// Memory beyond that of a PE in a round of short messages: a small part of the messages sent here. The
/// second term is what the pattern of synthetic messages has in the longest flits beyond short ones. The
/// third is for pages of the program itself, which are resident too: how many the kernel maps around a fault
/// depends on what its page cache holds.
const MORE_BYTES: u64 = 4 * MIB + (MIB - 64 * 1024) + 2 * MIB;

/// Checks that every PE stayed within its memory, and reported the amount.
#[track_caller]
fn assert_within_memory(report: &Report) {
    let pes = report.list("/pes").iter();
    let peaks = pes.map(|pe| pe["peak_resident_bytes"].as_u64());
    let peaks: Vec<u64> = peaks.map(|peak| peak.expect("a number")).collect();
    // Every process needs at least this much.
    let short = reported("scatter --tree path:4 --size 1KiB");
    let of_short = short.number("/round/peak_resident_bytes");
    let is_within = |peak| (MIB..of_short + MORE_BYTES).contains(peak);
    assert!(peaks.iter().all(is_within), "{peaks:?}");
    let most = report.number("/round/peak_resident_bytes");
    assert_eq!(Some(&most), peaks.iter().max());
}

/// Also in the longest flits there are.
#[test]
fn a_long_message_down_a_path_and_up_again_takes_little_memory() {
    for operation in [
        "scatter",
        "gather --algorithm shoulder-tap",
        "gather --algorithm certification --sync serial",
        "gather --algorithm certification --sync pipelined",
        "scatter --flit-size 1MiB",
        "gather --flit-size 1MiB",
    ] {
        let report = reported(&format!("{operation} --tree path:4 --lengths 0,0,256MiB"));
        assert_eq!(report.message_bytes(), [0, 0, 256 * MIB]);
        report.assert_all_arrived();
        assert_within_memory(&report);
    }
}

/// Through the file system on both sides.
#[test]
fn a_long_file_takes_little_memory() {
    let dir = scratch();
    fill(&dir.join("input/p2/long"), 200 * MIB as usize);
    for line in [
        "scatter --tree path:3 --input @/input --output @/there",
        "gather --tree path:3 --input @/there --output @/back",
    ] {
        let report = dir.report(line);
        report.assert_all_arrived();
        assert_within_memory(&report);
    }
    assert_same_below(&dir.join("input"), &dir.join("back"));
}

/// Each small file is made durable, without accumulating memory.
#[test]
fn many_small_files_take_little_memory() {
    let dir = scratch();
    for (folder, file) in (0..20).flat_map(|folder| (0..100).map(move |file| (folder, file))) {
        dir.put(&format!("input/p1/{folder}/{file}"), [file]);
    }
    let report = dir.report("scatter --tree path:2 --input @/input --output @/there");
    assert_within_memory(&report);
    assert_same_below(&dir.join("input"), &dir.join("there"));
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
    let (from, to) = (input.display(), there.display());
    let line = format!("scatter --tree path:2 --input {from} --output {to}");
    assert_within_memory(&reported(&line));
    let folders = fs::read_dir(there.join("p1")).expect("it has arrived");
    let below = |folder: std::io::Result<fs::DirEntry>| {
        let folder = folder.expect("it is listed").path();
        fs::read_dir(folder).expect("it has arrived").count()
    };
    assert_eq!(folders.map(below).sum::<usize>(), 100_000);
}

/// Side by side, and as deep as there are PEs.
#[test]
fn sixty_four_processes_play_a_round() {
    for operation in ["scatter", "gather"] {
        for (tree, depth) in [("star:64", 1), ("path:64", 63)] {
            let report = reported(&format!("{operation} --tree {tree} --size 1KiB"));
            assert_eq!(report.message_bytes(), [1024; 63]);
            assert_eq!(report.number("/pes/63/depth"), depth);
            report.assert_all_arrived();
        }
    }
}
