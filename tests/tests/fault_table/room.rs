//! Row 13: once a full disk has room again, the printed command continues the run, exactly as
//! printed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use flitcast_tests::files::{assert_same_below, fill, names};
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

/// Runs an operation that fails for a small disk, and the printed command once there is more room;
/// returns the disk.
fn resumed_with_room(folder: &Path, line: &str) -> SmallDisk {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).expect("a scratch directory");
    symlink(flitcast(), bin.join("flitcast")).expect("a scratch directory");
    let disk = SmallDisk::mounted(&folder.join("my disk"), "size=4m");
    let line = format!("flitcast {line} --input in --output 'my disk/out'");
    let failed = shell(folder, &line);
    // A PE whose message was whole has no room for its receipt.
    failed.fails(1, &["cannot write ", "`my disk/out/", FULL]);
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
    for retry in ["", " --retry 1"] {
        let dir = scratch();
        // P1's message is missing as well, and P3's is there.
        for (pe, bytes) in [(1, 1_000), (2, 6 << 20), (3, 1_000)] {
            fill(&dir.join(format!("in/p{pe}/file")), bytes);
        }
        let _disk = resumed_with_room(&dir, &format!("scatter --tree path:4{retry}"));
        assert_same_below(&dir.join("in"), &dir.join("my disk/out"));
    }
}

#[test]
#[ignore = "needs root"]
fn row_13_a_broadcast_is_resumed_once_there_is_room() {
    let _alone = alone();
    let dir = scratch();
    fill(&dir.join("in/file"), 2 << 20);
    let _disk = resumed_with_room(&dir, "broadcast --tree path:4");
    let output = dir.join("my disk/out");
    assert_eq!(names(&output), ["p1", "p2", "p3"]);
    for pe in names(&output) {
        assert_same_below(&dir.join("in"), &output.join(pe));
    }
}

#[test]
#[ignore = "needs root"]
fn row_13_a_gossip_is_resumed_once_there_is_room() {
    let _alone = alone();
    let dir = scratch();
    let input = dir.join("in");
    for pe in 0..4 {
        fill(&input.join(format!("p{pe}/file")), 1 << 20);
    }
    let _disk = resumed_with_room(&dir, "gossip --tree path:4");
    for at in names(&input) {
        let output = dir.join("my disk/out").join(&at);
        assert_eq!(names(&output).len(), 3, "{at}");
        for of in names(&output) {
            assert_same_below(&input.join(&of), &output.join(&of));
        }
    }
}
