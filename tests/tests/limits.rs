//! The resources of a PE and of a round's start, which do not grow with the messages, and the size of a cluster.

use std::fs;
use std::process::Command;

use flitcast_proto::cost::DIRECT_BUFFER_BYTES;
use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::processes::peak_memory_kib;
use flitcast_tests::run::begin;
use flitcast_tests::{Report, flitcast, reported, scratch, start};

const MIB: u64 = 1 << 20;

/// Memory beyond that of a PE in a round of short messages: a small part of the messages sent here. The
/// second term is what the pattern of synthetic messages has in the longest flits beyond short ones. The
/// third is for pages of the program itself, which are resident too: how many the kernel maps around a fault
/// depends on what its page cache holds.
const MORE_BYTES: u64 = 4 * MIB + (MIB - 64 * 1024) + 2 * MIB;

/// Checks that every PE stayed within its memory, with `more` bytes, and reported the amount.
fn assert_within_memory(report: &Report, more: u64) {
    let pes = report.list("/pes").iter();
    let peaks = pes.map(|pe| pe["peak_resident_bytes"].as_u64());
    let peaks: Vec<u64> = peaks.map(|peak| peak.expect("a number")).collect();
    // Every process needs at least this much.
    let short = reported("scatter --tree path:4 --size 1KiB");
    let of_short = short.number("/round/peak_resident_bytes");
    let is_within = |peak| (MIB..of_short + MORE_BYTES + more).contains(peak);
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
        assert_within_memory(&report, 0);
    }
}

/// Through the file system on both sides, and past the page cache, with two more buffers.
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
        assert_within_memory(&report, 2 * DIRECT_BUFFER_BYTES as u64);
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
    assert_within_memory(&report, 0);
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
    assert_within_memory(&reported(&line), 0);
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

/// Maximum of the memory that the coordinator, and a PE, allocate for any lengths.
const COORDINATOR_KIB: u64 = 64 << 10;
const PE_KIB: u64 = 12 << 10;

/// A round of months is planned, predicted and started quickly, and ends on a signal.
#[test]
fn the_longest_messages_take_no_more_memory_than_long_ones() {
    for operation in ["scatter", "gather", "broadcast", "gossip", "exchange"] {
        let line = format!("-v {operation} --tree kary:2:8 --size 100GiB --link rate=1gbit");
        let mut run = start(line.split(' '));
        run.wait_for(&["triggered"]);
        let coordinator = peak_memory_kib(run.pid()).expect("it runs");
        let pes = run.pes();
        assert_eq!(pes.len(), 8, "{operation}");
        let of_pes = pes.iter().map(|pe| peak_memory_kib(pe.pid as u32));
        let of_pes = of_pes.max().flatten().expect("they run");
        run.interrupt();
        let is_within = coordinator < COORDINATOR_KIB && of_pes < PE_KIB;
        assert!(is_within, "{operation}: {coordinator} and {of_pes} KiB");
    }
}

/// Messages with more flits than are planned one by one are sent in blocks, and arrive completely.
#[test]
fn messages_of_many_flits_are_sent_in_blocks() {
    for (operation, kib) in [("gossip", 1500), ("exchange", 1100)] {
        let line = format!("{operation} --tree kary:2:3 --size {kib}KiB --flit-size 64");
        let report = reported(&line);
        let pes = report.list("/pes").iter();
        let delivered: Vec<_> = pes.map(|pe| pe["bytes"].as_u64()).collect();
        assert_eq!(delivered, [Some(2 * kib * 1024); 3], "{line}");
    }
}

/// With as many PEs as a machine starts, a prediction takes bounded memory and processor time for any
/// length: the shell ends a command that takes more, as no correct one does by far.
#[test]
fn predictions_of_1024_pes_take_bounded_work_and_memory() {
    const LIMITS: &str = "ulimit -t 50 -v 1000000; exec \"$@\"";
    for line in [
        "scatter --tree kary:2:1024 --size 1TiB",
        "gather --tree path:1024 --size 1MiB",
        "broadcast --tree path:1024 --size 1MiB",
    ] {
        let words = format!("plan {line} --link rate=1gbit,latency=50us --format json");
        let mut command = Command::new("bash");
        command.args(["-c", LIMITS, "bash"]).arg(flitcast());
        command.args(words.split(' '));
        let plan = begin(command).finish().ok().report();
        assert_eq!(plan.list("/pes").len(), 1024, "{line}");
        let last = plan.float("/pes/1023/predicted_us");
        assert!(last > 0.0 || line.starts_with("gather"), "{line}");
        assert!(plan.float("/predicted_us") >= last, "{line}");
    }
}
