//! Files that the output has already: `--update` and `--checksum`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};
use std::path::Path;

use flitcast_tests::files::{
    Kind, Tree, assert_same, assert_same_below, fill, names, record, set_mode, set_mtime, snapshot,
    wait_for_partial, without_folder_times,
};
use flitcast_tests::report::Report;
use flitcast_tests::{Folder, Running, from_to, refused, resume, rows, scratch};

/// Number of files in each folder, and their length.
const FILES: usize = 20;
const BYTES: usize = 3000;

/// Fills a folder with files, an empty one, one with a hole, one that cannot be written to, and a symlink.
fn fill_folder(folder: &Path) {
    for file in 0..FILES {
        fill(&folder.join(format!("some/below/{file}")), BYTES);
    }
    fill(&folder.join("empty"), 0);
    fill(&folder.join("locked"), 100);
    set_mode(&folder.join("locked"), 0o400);
    let sparse = fs::File::create(folder.join("sparse")).expect("it can be created");
    sparse.write_all_at(b"end", 1 << 20).expect("it is written");
    symlink("some/below/1", folder.join("link")).expect("it is created");
}

/// Changes some files of a folder: the content of one, the mode of another, and the names of two.
fn change(folder: &Path) {
    let below = folder.join("some/below");
    fill(&below.join("0"), BYTES + 1);
    set_mode(&below.join("1"), 0o640);
    fs::remove_file(below.join("2")).expect("it is there");
    fill(&below.join("new"), 10);
}

/// Number of files in a changed folder that are as before, but for their mode.
const KEPT: u64 = FILES as u64 - 2 + 2;

fn inode(path: &Path) -> u64 {
    let found = fs::symlink_metadata(path);
    found
        .unwrap_or_else(|error| panic!("{error}: {}", path.display()))
        .ino()
}

#[track_caller]
fn updated(dir: &Folder, line: &str, more: &str) -> Report {
    let files = "--input @/in --output @/out --format json";
    dir.run(&format!("{line} {files} {more}")).ok().report()
}

/// The operations, each with the entries of its input and those of the output that these are copied to.
pub const OPERATIONS: &str = "
    scatter --tree path:3 | p1=p1 p2=p2
    gather --tree star:3 | p1=p1 p2=p2
    broadcast --tree star:3 | =p1 =p2
    gossip --network complete:2 | p0=p1/p0 p1=p0/p1
    exchange --network complete:2 | p0/p1=p1/p0 p1/p0=p0/p1
";

#[test]
fn only_changed_files_are_sent() {
    for [line, copies] in rows(OPERATIONS) {
        let dir = scratch();
        let (input, output) = (dir.join("in"), dir.join("out"));
        let copies = from_to(copies);
        let entries: BTreeSet<&str> = copies.iter().map(|(entry, _)| *entry).collect();
        for entry in &entries {
            fill_folder(&input.join(entry));
        }
        let whole = updated(&dir, line, "--update");
        assert_eq!(whole.number("/unchanged/files"), 0, "{line}");
        for entry in &entries {
            change(&input.join(entry));
        }
        let inodes = || {
            let kept = copies
                .iter()
                .map(|(_, to)| output.join(to).join("some/below/5"));
            kept.map(|path| inode(&path)).collect::<Vec<u64>>()
        };
        let before = inodes();
        let report = updated(&dir, line, "--update");
        for (entry, to) in &copies {
            assert_same_below(&input.join(entry), &output.join(to));
        }
        assert_eq!(inodes(), before, "{line}");
        let count = copies.len() as u64;
        assert_eq!(report.number("/unchanged/files"), KEPT * count, "{line}");
        let sent = report.number("/round/bytes");
        let least = (BYTES as u64 + 11) * entries.len() as u64;
        assert!((least..2 * least).contains(&sent), "{line}: {sent} bytes");
        assert!(
            names(&output).iter().all(|name| !name.starts_with('.')),
            "{line}"
        );
    }
}

#[test]
fn an_unchanged_input_moves_nothing() {
    for [line, copies] in rows(OPERATIONS) {
        for option in ["--update", "--checksum"] {
            let dir = scratch();
            let copies = from_to(copies);
            let entries: BTreeSet<&str> = copies.iter().map(|(entry, _)| *entry).collect();
            for entry in entries {
                fill_folder(&dir.join("in").join(entry));
            }
            updated(&dir, line, option);
            let (_, to) = copies[0];
            let before = (snapshot(&dir.join("out")), inode(&dir.join("out").join(to)));
            let files = "--input @/in --output @/out";
            let again = dir.run(&format!("{line} {files} {option}")).ok();
            let nothing = "nothing to send: everything is there already";
            again.prints(&[
                nothing,
                "\n  skipped      2 messages in the output already: ",
            ]);
            let after = (snapshot(&dir.join("out")), inode(&dir.join("out").join(to)));
            assert_same(&before.0, &after.0);
            assert_eq!(before.1, after.1, "{line}");
        }
    }
}

/// All files below the input are distributed over new folders.
#[test]
fn distributed_files_are_compared() {
    let dir = scratch();
    fill_folder(&dir.join("in"));
    let line = "scatter --tree star:3 --spread";
    updated(&dir, line, "--update");
    let again = updated(&dir, line, "--update");
    assert_eq!(again.number("/round/bytes"), 0);
    set_mode(&dir.join("in/some/below/7"), 0o600);
    let again = updated(&dir, line, "--update");
    assert!(again.number("/unchanged/files") > 5, "{again:?}");
}

/// A part of a file is always sent, since another part may have its length, unless contents are compared.
#[test]
fn parts_of_a_file_are_compared_by_content() {
    let dir = scratch();
    fill(&dir.join("in"), 40_000);
    let line = "scatter --tree star:3 --split 2";
    for (option, again) in [("--update", 40_000), ("--checksum", 0)] {
        updated(&dir, line, option);
        let sent = updated(&dir, line, option).number("/round/bytes");
        assert!((again..again + 200).contains(&sent), "{option}: {sent}");
    }
}

#[test]
fn contents_are_compared_on_request() {
    let dir = scratch();
    let line = "scatter --tree star:2";
    let (input, output) = (dir.join("in/p1"), dir.join("out/p1"));
    fill_folder(&input);
    updated(&dir, line, "");
    let (same_time, other_time) = (input.join("some/below/1"), input.join("some/below/2"));
    for folder in [&input, &output] {
        set_mtime(&folder.join("some/below/1"), 1 << 30, 5);
    }
    let before = snapshot(&output);
    fs::write(&same_time, vec![7; BYTES]).expect("it can be written to");
    set_mtime(&same_time, 1 << 30, 5);
    let blind = updated(&dir, line, "--update");
    assert_eq!(blind.number("/round/bytes"), 0);
    assert_same(&before, &snapshot(&output));

    set_mtime(&other_time, 1 << 29, 3);
    let report = updated(&dir, line, "--checksum");
    assert_same_below(&input, &output);
    // The other file has a new time, but no new content.
    let sent = report.number("/round/bytes");
    assert!((BYTES as u64..2 * BYTES as u64).contains(&sent), "{sent}");
    assert_eq!(report.number("/unchanged/files"), FILES as u64 + 1);
}

/// A message that is one file, of another length or with another mode, and one that replaces a folder.
#[test]
fn a_message_can_be_a_file() {
    let dir = scratch();
    let line = "gather --tree star:4";
    for pe in ["p1", "p2"] {
        fill(&dir.join("in").join(pe), BYTES);
    }
    fill(&dir.join("in/p3/below"), BYTES);
    updated(&dir, line, "");
    set_mode(&dir.join("in/p1"), 0o600);
    fill(&dir.join("in/p2"), BYTES + 1);
    fs::remove_dir_all(dir.join("in/p3")).expect("it is there");
    fill(&dir.join("in/p3"), 10);
    let report = updated(&dir, line, "--update");
    assert_same_below(&dir.join("in"), &dir.join("out"));
    assert_eq!(report.number("/unchanged/files"), 1);
}

/// Starts an update of a folder with a long new file, and waits until that arrives. Returns the old state.
fn begin_update(dir: &Folder) -> (Tree, Running) {
    let input = dir.join("in/p1");
    fill_folder(&input);
    dir.run(UPDATE).ok();
    let old = snapshot(&dir.join("out/p1"));
    change(&input);
    fill(&input.join("zoo/long"), 2 << 20);
    let running = dir.start(UPDATE);
    wait_for_partial(&dir.join("out"));
    (old, running)
}

const UPDATE: &str = "scatter --tree path:2 --bwlimit 8mbit --update --input @/in --output @/out";

/// Checks that the new state is there, and nothing else.
fn assert_is_updated(dir: &Folder) {
    let (input, output) = (dir.join("in/p1"), dir.join("out/p1"));
    assert_same_below(&input, &output);
    assert_eq!(names(&dir.join("out")), ["p1"]);
    for (path, node) in snapshot(&output) {
        let found = fs::symlink_metadata(output.join(&path)).expect("it is there");
        let is_folder = node.kind == Kind::Directory;
        assert!(is_folder || found.nlink() == 1, "{path:?} has two names");
    }
}

#[test]
fn a_run_that_is_killed_or_interrupted_leaves_the_old_state() {
    for is_killed in [true, false] {
        let dir = scratch();
        let (old, running) = begin_update(&dir);
        match is_killed {
            true => running.kill_all(),
            false => drop(running.interrupt()),
        }
        assert_same(&old, &snapshot(&dir.join("out/p1")));
        if is_killed {
            dir.run(UPDATE).ok();
        } else {
            let text = fs::read_to_string(record(&dir.join("out"))).expect("it is there");
            assert!(text.contains("\nupdate = \"time\"\n"), "{text}");
            let resumed = resume(&record(&dir.join("out")), "").ok();
            resumed.prints(&["\n  unchanged    "]);
        }
        assert_is_updated(&dir);
    }
}

#[test]
fn a_dry_run_compares() {
    let dir = scratch();
    let line = "scatter --tree star:2";
    fill_folder(&dir.join("in/p1"));
    updated(&dir, line, "");
    change(&dir.join("in/p1"));
    let before = without_folder_times(&dir.join("out"));
    let dry = updated(&dir, line, "--update --dry-run");
    assert_same(&before, &without_folder_times(&dir.join("out")));
    let real = updated(&dir, line, "--update");
    assert_eq!(dry.number("/round/bytes"), real.number("/round/bytes"));
    assert_eq!(dry.value("/unchanged"), real.value("/unchanged"));
}

#[test]
fn options_need_an_output() {
    for option in ["--update", "--checksum"] {
        let cause = format!("{option} goes with --output, which is not there");
        refused(
            &format!("scatter --tree star:2 --size 1 {option}"),
            &[&cause],
        );
    }
}
