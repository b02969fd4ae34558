//! Paths of pictures: faults are reported before anything is launched, and a file is written
//! completely or not changed.

use std::fs;
use std::path::Path;

use flitcast_tests::{run, scratch, start};
use rustix::process::Signal;

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("it can be read");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("likewise").file_name();
    let mut names: Vec<String> = entries
        .map(|entry| name(entry).into_string().expect("it is UTF-8"))
        .collect();
    names.sort();
    names
}

/// Returns a gather of two PEs with more arguments, in which `DIR` is replaced by a directory.
fn arguments(dir: &Path, more: &str) -> Vec<String> {
    let dir = dir.to_str().expect("it is UTF-8");
    let line = format!("gather --tree path:2 --size 1KiB {more}");
    line.split(' ')
        .map(|word| word.replace("DIR", dir))
        .collect()
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_anything_is_launched() {
    let dir = scratch();
    fs::write(dir.join("file"), "old").expect("it can be written");
    fs::create_dir(dir.join("folder")).expect("likewise");
    for (more, causes) in [
        ("--report DIR", &["--report", "it is a directory"][..]),
        (
            "--trace DIR/folder",
            &["--trace", "folder: it is a directory"],
        ),
        (
            "--trace DIR/none/t.json",
            &["--trace", "none/t.json", "none: No such file"],
        ),
        (
            "--report DIR/file/r.html",
            &["--report", "file/r.html", "Not a directory"],
        ),
        (
            "--report /dev/null",
            &["--report /dev/null", "not a plain file"],
        ),
        ("--report DIR/..", &["--report", "it is a directory"]),
        (
            "--report DIR/x --trace DIR/x",
            &["--trace and --report are both"],
        ),
        (
            "--report DIR/x --trace DIR/folder/../x",
            &["--trace and --report are both"],
        ),
        // All errors at once, including those of other options.
        (
            "--report DIR --trace DIR/none/t --flit-size 1",
            &["--report", "--trace", "--flit-size"],
        ),
    ] {
        let refused = run(arguments(dir.path(), more));
        assert_eq!(refused.code, Some(2), "{more}\n{}", refused.stderr);
        assert_eq!(refused.stdout, "", "{more}");
        for cause in causes {
            let stderr = &refused.stderr;
            assert!(stderr.contains(cause), "{more}: no `{cause}` in\n{stderr}");
        }
    }
    assert_eq!(names(dir.path()), ["file", "folder"]);
}

#[test]
fn an_old_file_is_replaced_and_the_table_names_the_new_one() {
    let dir = scratch();
    let old = dir.join("r.html");
    fs::write(&old, "old").expect("it can be written");
    let finished = run(arguments(dir.path(), "--report DIR/r.html")).ok();
    assert!(
        fs::read_to_string(&old)
            .expect("it is there")
            .starts_with("<!doctype html>")
    );
    assert_eq!(names(dir.path()), ["r.html"]);
    let line = finished
        .stdout
        .lines()
        .find(|line| line.contains("pictures"));
    assert!(line.expect("a line for it").ends_with("r.html"));
}

#[test]
fn a_run_that_fails_or_is_interrupted_writes_nothing() {
    for (signal_all, code) in [(false, 1), (true, 130)] {
        let dir = scratch();
        fs::write(dir.join("t.json"), "old").expect("it can be written");
        let more = "--report DIR/r.html --trace DIR/t.json -vv";
        let line = arguments(dir.path(), more);
        let line = line.iter().map(|word| word.replace("1KiB", "400GiB"));
        let mut running = start(line);
        running.wait_for(&["triggered"]);
        match signal_all {
            true => running.signal(Signal::INT),
            false => running.pe(1).signal(Signal::KILL),
        }
        running.finish().with_code(code);
        assert_eq!(names(dir.path()), ["t.json"]);
        let kept = fs::read_to_string(dir.join("t.json"));
        assert_eq!(kept.expect("it is there"), "old");
    }
}
