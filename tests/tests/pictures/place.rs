//! Paths of pictures: faults are reported before anything is launched, and a file is written
//! completely or not changed.

use std::fs;

use flitcast_tests::files::names;
use flitcast_tests::{rows, scratch};
use rustix::process::Signal;

const GATHER: &str = "gather --tree path:2";

#[test]
fn a_place_that_cannot_be_written_is_refused_before_anything_is_launched() {
    let dir = scratch();
    dir.put("file", "old");
    fs::create_dir(dir.join("folder")).expect("likewise");
    for [more, causes] in rows(
        "
        --report @ | --report, it is a directory
        --trace @/folder | --trace, folder: it is a directory
        --trace @/none/t.json | --trace, none/t.json, none: No such file
        --report @/file/r.html | --report, file/r.html, Not a directory
        --report /dev/null | --report /dev/null, not a plain file
        --report @/.. | --report, it is a directory
        --report @/x --trace @/x | --trace and --report are both
        --report @/x --trace @/folder/../x | --trace and --report are both
        # All errors at once, including those of other options.
        --report @ --trace @/none/t --flit-size 1 | --report, --trace, --flit-size
    ",
    ) {
        let refused = dir.run(&format!("{GATHER} --size 1KiB {more}"));
        refused.fails(2, &causes.split(", ").collect::<Vec<_>>());
        assert_eq!(refused.stdout, "", "{more}");
    }
    assert_eq!(names(&dir), ["file", "folder"]);
}

#[test]
fn an_old_file_is_replaced_and_the_table_names_the_new_one() {
    let dir = scratch();
    dir.put("r.html", "old");
    let line = format!("{GATHER} --size 1KiB --report @/r.html");
    let table = dir.run(&line).ok().stdout;
    assert!(dir.read("r.html").starts_with("<!doctype html>"));
    assert_eq!(names(&dir), ["r.html"]);
    let line = table.lines().find(|line| line.contains("pictures"));
    assert!(line.expect("a line for it").ends_with("r.html"));
}

#[test]
fn a_run_that_fails_or_is_interrupted_writes_nothing() {
    for (signal_all, code) in [(false, 1), (true, 130)] {
        let dir = scratch();
        dir.put("t.json", "old");
        let more = "--size 400GiB --report @/r.html --trace @/t.json -vv";
        let mut running = dir.start(&format!("{GATHER} {more}"));
        running.wait_for(&["triggered"]);
        match signal_all {
            true => running.signal(Signal::INT),
            false => running.pe(1).signal(Signal::KILL),
        }
        running.finish().with_code(code);
        assert_eq!(names(&dir), ["t.json"]);
        assert_eq!(dir.read("t.json"), "old");
    }
}
