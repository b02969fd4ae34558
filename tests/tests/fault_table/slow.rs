//! Row 13: a slow disk, and the state of the disk after a command has reported success. `strace`
//! delays each fsync and records what is synced.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::joining::Joining;
use flitcast_tests::run::begin;
use flitcast_tests::{Running, flitcast, scratch};

use crate::{beside, words};

/// Starts a command whose processes take this time for each fsync.
#[track_caller]
fn traced(line: &str, fsync_us: u32, log: &Path) -> Running {
    let mut command = Command::new("strace");
    let options = "--follow-forks --seccomp-bpf --decode-fds=path -qq --trace=fsync,syncfs";
    let delay = format!("--inject=fsync:delay_enter={fsync_us}");
    command.args(words(options));
    command.args([&delay, "--output"]).arg(log);
    command.arg(flitcast()).args(words(line));
    begin(command)
}

#[track_caller]
fn synced(log: &Path, call: &str) -> Vec<PathBuf> {
    let text = fs::read_to_string(log).expect("strace writes it, which Debian has by that name");
    // `1234 fsync(5</a/path>) = 0`
    let call = format!(" {call}(");
    let path = |line: &str| {
        let (_, rest) = line.split_once(&call)?;
        let path = rest.split_once('<')?.1.rsplit_once('>')?.0;
        Some(PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

/// Checks that a message below `old/new/newer/out` in the folder is durable, with its parent
/// folders.
fn assert_durable(root: &Path, logs: &[PathBuf]) {
    let all = |call| -> Vec<PathBuf> { logs.iter().flat_map(|log| synced(log, call)).collect() };
    let synced = all("fsync");
    let root = root.canonicalize().expect("it is there");
    for folder in ["old", "old/new", "old/new/newer", "old/new/newer/out"] {
        assert!(synced.contains(&root.join(folder)), "{folder}: {synced:?}");
    }
    // The content of the message, under its name at that time: each part, unless all of it at once.
    let together = all("syncfs");
    let has = |all: &[PathBuf], part: &str| {
        let is_it = |path: &PathBuf| path.to_string_lossy().ends_with(part);
        all.iter().any(is_it)
    };
    for part in ["file", "folder", ".partial"] {
        let is_durable = has(&together, ".partial") || has(&synced, part);
        assert!(is_durable, "{part}: {synced:?}, {together:?}");
    }
}

const FILES: &str = "--input DIR/input --output DIR/old/new/newer/out";

#[test]
#[ignore = "needs strace"]
fn row_13_folders_that_the_output_needs_are_durable() {
    let _beside = beside();
    let dir = scratch();
    let (root, log) = (dir.path(), dir.join("log"));
    for number in 0..20 {
        fill(&root.join(format!("input/p1/folder/{number}file")), 10);
    }
    fs::create_dir(root.join("old")).expect("it can be made");
    let files = FILES.replace("DIR", &root.display().to_string());
    let line = format!("scatter --tree path:2 {files}");
    traced(&line, 0, &log).finish().ok();
    assert_durable(root, &[log]);
}

/// PEs that join make their folders, unless the coordinator made them on the same host for its
/// record.
#[test]
#[ignore = "needs strace"]
fn row_13_folders_that_a_pe_makes_are_durable() {
    let _beside = beside();
    let joining = Joining::new(&[0], "20s");
    let root = joining.path("");
    fill(&root.join("input/p1/folder/file"), 10);
    fs::create_dir(root.join("old")).expect("it can be made");
    let (logs, at) = (["log0", "log1"].map(|log| joining.path(log)), joining.at());
    let of_cluster = |line: &str| line.replace("DIR", &root.display().to_string());
    let line = format!("node --pe 1 --join {at} --credentials DIR/ca --files DIR");
    let p1 = traced(&of_cluster(&line), 0, &logs[0]);
    let p0 = joining.node(0, "--credentials DIR/ca --files DIR");
    let line = format!("scatter {FILES} --cluster DIR/cluster.toml --credentials DIR/ca");
    traced(&of_cluster(&line), 0, &logs[1]).finish().ok();
    p0.finish().ok();
    p1.finish().ok();
    assert_durable(&root, &logs);
}

/// No fsync takes longer than the limit of disks, but all of them together do: more than a second.
#[test]
#[ignore = "needs strace"]
fn row_13_a_message_of_many_files_may_take_longer_than_each_of_them() {
    let _beside = beside();
    let dir = scratch();
    let (input, output) = (dir.join("input"), dir.join("out"));
    for number in 0..60 {
        // Long enough to be synced by itself.
        fill(&input.join(format!("p1/{number}/file")), 1 << 20);
    }
    let files = format!("--input {} --output {}", input.display(), output.display());
    let line = format!("scatter --tree path:2 --timeouts disk=1s {files}");
    let log = dir.join("log");
    traced(&line, 20_000, &log).finish().ok();
    let synced = synced(&log, "fsync");
    assert!(synced.len() >= 60, "{synced:?}");
    assert_same_below(&input, &output);
}

/// A power cut costs what is not synced; what is synced too often costs time.
#[test]
#[ignore = "needs strace"]
fn row_13_files_are_synced_when_the_user_wants_it() {
    let _beside = beside();
    let dir = scratch();
    for number in 0..30 {
        fill(&dir.join(format!("many/p1/{number}file")), 10);
    }
    fill(&dir.join("few/p1/file"), 10);
    let count = |paths: &[PathBuf], part: &str| {
        let is_it = |path: &&PathBuf| path.to_string_lossy().ends_with(part);
        paths.iter().filter(is_it).count()
    };
    // Syncs of files one by one, of the message at once, and of the folder that has its name. Files are
    // synced one by one as well while the disk has much to write of other programs.
    for (input, sync, expected) in [
        ("many", "message", &[[0, 1, 1], [30, 0, 1]][..]),
        ("few", "message", &[[1, 0, 1]]),
        ("many", "file", &[[30, 0, 1]]),
        ("many", "none", &[[0, 0, 0]]),
        ("few", "none", &[[0, 0, 0]]),
    ] {
        let (output, log) = (format!("{input}-{sync}-out"), dir.join("log"));
        // Made before, so that only the message's name is synced in it.
        fs::create_dir(dir.join(&output)).expect("it is new");
        let files = format!("--input @/{input} --output @/{output} --sync {sync}");
        let line = dir
            .words(&format!("scatter --tree path:2 {files}"))
            .join(" ");
        traced(&line, 0, &log).finish().ok();
        assert_same_below(&dir.join(input), &dir.join(&output));
        let (each, together) = (synced(&log, "fsync"), synced(&log, "syncfs"));
        let found = [
            count(&each, "file"),
            count(&together, ".partial"),
            count(&each, &output),
        ];
        let is_so = expected.contains(&found);
        assert!(is_so, "{input}, {sync}: {found:?}, {each:?}, {together:?}");
    }
}
