//! Row 13: once a full disk has room again, the printed command continues the run, exactly as
//! printed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use flitcast_tests::files::{assert_same_below, fill, fill_with_short, messages, names};
use flitcast_tests::run::begin;
use flitcast_tests::{Finished, flitcast, scratch};

use crate::alone;
use crate::disks::SmallDisk;

const FULL: &str = "No space left on device";

/// Runs a line of a shell in a folder, with `flitcast` in PATH.
#[track_caller]
fn shell(folder: &Path, line: &str) -> Finished {
    let path = std::env::var("PATH").expect("there is one");
    let path = format!("{}:{path}", folder.join("bin").display());
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("PATH", path);
    command.current_dir(folder);
    begin(command).finish()
}

/// The moment at which a disk is found to be too small.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    /// Before a byte crosses, because the messages are longer than its free space.
    Before,
    /// During the round, because each of the short files takes more than its length.
    During,
}

impl Found {
    const BOTH: [Found; 2] = [Found::Before, Found::During];

    /// Makes a message of the first length, or one of short files that takes as much of a disk.
    fn fill(self, message: &Path, bytes: usize) {
        match self {
            Found::Before => fill(&message.join("file"), bytes),
            Found::During => fill_with_short(message, bytes / 4096),
        }
    }
}

/// Runs an operation for which a disk of 10 MiB is too small, and the printed command once there is more room;
/// returns the disk.
fn resumed_with_room(found: Found, folder: &Path, line: &str) -> SmallDisk {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).expect("a scratch directory");
    symlink(flitcast(), bin.join("flitcast")).expect("a scratch directory");
    let place = folder.join("my disk");
    let disk = SmallDisk::mounted(&place, "size=10m");
    let line = format!("flitcast {line} --input in --output 'my disk/out'");
    if found == Found::Before {
        let dry = shell(folder, &format!("{line} --dry-run"));
        dry.fails(1, &["`my disk/out` has 10 MiB free, and "]);
        assert!(names(&place).is_empty(), "nothing is written");
    }
    let failed = shell(folder, &line);
    match found {
        Found::Before => {
            let fault = "error: `my disk/out` has 10 MiB free, and ";
            failed.fails(1, &[fault, "would arrive there for ", "nothing was sent"]);
            assert!(messages(&place.join("out")).is_empty());
        }
        // A PE whose message was whole has no room for its receipt.
        Found::During => failed.fails(1, &["cannot write ", "`my disk/out/", FULL]),
    };
    let mut lines = failed.stderr.lines();
    let printed = lines.find_map(|line| line.strip_prefix("to go on: "));
    let printed = printed.unwrap_or_else(|| panic!("no command in\n{}", failed.stderr));
    disk.grow("64m");
    shell(folder, printed).ok();
    disk
}

#[test]
#[ignore = "needs root"]
fn row_13_a_scatter_is_resumed_once_there_is_room() {
    let _alone = alone();
    for (found, retry) in Found::BOTH.into_iter().zip(["", " --retry 1"]) {
        let dir = scratch();
        // P1's message is missing as well, and P3's is there after a retry.
        for (pe, bytes) in [(1, 1_000), (3, 1_000)] {
            fill(&dir.join(format!("in/p{pe}/file")), bytes);
        }
        // A resumed run continues a long message where it was cut off.
        fill(&dir.join("in/p2/a long one"), 6 << 20);
        found.fill(&dir.join("in/p2"), 6 << 20);
        let _disk = resumed_with_room(found, &dir, &format!("scatter --tree path:4{retry}"));
        assert_same_below(&dir.join("in"), &dir.join("my disk/out"));
    }
}

/// With a retry, the PEs whose messages do not fit are left out, and those with shorter ones are not.
#[test]
#[ignore = "needs root"]
fn row_13_messages_that_fit_are_sent_without_those_that_do_not() {
    let _alone = alone();
    let dir = scratch();
    for (pe, bytes) in [(1, 1_000), (2, 12 << 20), (3, 1_000)] {
        fill(&dir.join(format!("in/p{pe}/file")), bytes);
    }
    let disk = SmallDisk::mounted(&dir.join("disk"), "size=10m");
    let line = "scatter --tree path:4 --input @/in --output @/disk/out";
    dir.run(&format!("{line} --retry 1"))
        .fails(1, &["P2 is dead", "MiB free, and 12 MiB"]);
    assert_eq!(messages(&dir.join("disk/out")), ["p1", "p3"]);
    disk.grow("64m");
    dir.run(line).ok();
    assert_same_below(&dir.join("in"), &dir.join("disk/out"));
}

#[test]
#[ignore = "needs root"]
fn row_13_a_gather_is_resumed_once_there_is_room() {
    let _alone = alone();
    for found in Found::BOTH {
        let dir = scratch();
        for pe in 1..4 {
            found.fill(&dir.join(format!("in/p{pe}")), 4 << 20);
        }
        let _disk = resumed_with_room(found, &dir, "gather --tree path:4");
        assert_same_below(&dir.join("in"), &dir.join("my disk/out"));
    }
}

#[test]
#[ignore = "needs root"]
fn row_13_a_broadcast_is_resumed_once_there_is_room() {
    let _alone = alone();
    for found in Found::BOTH {
        let dir = scratch();
        found.fill(&dir.join("in"), 5 << 20);
        let _disk = resumed_with_room(found, &dir, "broadcast --tree path:4");
        let output = dir.join("my disk/out");
        assert_eq!(names(&output), ["p1", "p2", "p3"]);
        for pe in names(&output) {
            assert_same_below(&dir.join("in"), &output.join(pe));
        }
    }
}

#[test]
#[ignore = "needs root"]
fn row_13_a_gossip_is_resumed_once_there_is_room() {
    let _alone = alone();
    for found in Found::BOTH {
        let dir = scratch();
        let input = dir.join("in");
        for pe in 0..4 {
            found.fill(&input.join(format!("p{pe}")), 1 << 20);
        }
        let _disk = resumed_with_room(found, &dir, "gossip --tree path:4");
        for at in names(&input) {
            let output = dir.join("my disk/out").join(&at);
            assert_eq!(names(&output).len(), 3, "{at}");
            for of in names(&output) {
                assert_same_below(&input.join(&of), &output.join(&of));
            }
        }
    }
}

#[test]
#[ignore = "needs root"]
fn row_13_an_exchange_is_resumed_once_there_is_room() {
    let _alone = alone();
    for found in Found::BOTH {
        let dir = scratch();
        let (input, output) = (dir.join("in"), dir.join("my disk/out"));
        let pairs = (0..3).flat_map(|from| (0..3).map(move |to| (from, to)));
        let pairs: Vec<(u32, u32)> = pairs.filter(|(from, to)| from != to).collect();
        for (from, to) in &pairs {
            found.fill(&input.join(format!("p{from}/p{to}")), 2 << 20);
        }
        let _disk = resumed_with_room(found, &dir, "exchange --network complete:3");
        for (from, to) in &pairs {
            let sent = input.join(format!("p{from}/p{to}"));
            assert_same_below(&sent, &output.join(format!("p{to}/p{from}")));
        }
    }
}
