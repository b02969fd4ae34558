//! Tests of files that are not text files: without end, or never written to.

use std::fs;
use std::path::Path;

use flitcast_tests::run;
use flitcast_tests::scratch;
use rustix::fs::{CWD, FileType, Mode, mknodat};

/// Each place of a command line that names a file to be read; `@` stands for the file.
const LINES: [&str; 14] = [
    "check @",
    "plan scatter --tree file:@ --lengths 1,2",
    "plan broadcast --network edges:@ --size 2",
    "plan exchange --tree star:3 --matrix @",
    "compare broadcast --tree file:@ --size 4",
    "scatter --tree file:@ --size 1KiB",
    "scatter --cluster @ --size 1KiB",
    "scatter --tree star:3 --size 1KiB --profile @",
    "gossip --network edges:@ --size 1KiB",
    "exchange --tree star:3 --lengths @",
    "bench gather --cluster @ --size 1KiB",
    "resume @",
    "health @",
    "up @",
];

/// Checks that a command reports the error of `file` and ends.
#[track_caller]
fn assert_refused(line: &str, file: &Path, why: &str) {
    let shown = file.to_str().expect("scratch paths are UTF-8");
    let run = run(line
        .split_whitespace()
        .map(|argument| argument.replace('@', shown)));
    let output = format!("{}{}", run.stdout, run.stderr);
    assert_ne!(run.code, Some(0), "{line}: {output}");
    let is_explained = output.contains(shown) && output.contains(why);
    assert!(
        is_explained,
        "{line}: no `{shown}` and `{why}` in\n{output}"
    );
    assert!(output.len() < 2_000, "{line}: {} bytes", output.len());
}

#[test]
fn devices_and_fifos_are_refused_and_never_waited_for() {
    let dir = scratch();
    let fifo = dir.join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).expect("it can be made");
    for line in LINES {
        let device = Path::new("/dev/zero");
        assert_refused(line, device, "it is a device; name a regular file");
        assert_refused(line, &fifo, "it is a fifo; name a regular file");
        assert_refused(line, dir.path(), "it is a directory; name a regular file");
    }
}

/// A file that is one hole takes no space on the disk, and would take all memory.
#[test]
fn files_are_read_up_to_a_limit() {
    let dir = scratch();
    let make = |name: &str| {
        let path = dir.join(name);
        let made = fs::File::create(&path).and_then(|file| file.set_len(1 << 40));
        made.map(|()| path).expect("it can be made")
    };
    let long = make("long");
    for line in LINES {
        if !line.starts_with("health") {
            assert_refused(line, &long, "bytes");
        }
    }
    let [authority, ..] = ["ca.pem", "coordinator.pem", "coordinator.key"].map(make);
    let line = "scatter --tree star:3 --size 1 --credentials";
    let line = format!("{line} {}", dir.display());
    assert_refused(&line, &authority, "it has more than");
}
