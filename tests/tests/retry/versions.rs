//! A run, with all its retries and resumes, has one version of its input: whatever happens to the
//! source in between, no two destinations have different bytes, and the run reports why it stops.

use std::fs;
use std::path::Path;

use flitcast_tests::files::{assert_same_below, fill, names};
use flitcast_tests::processes::until;
use flitcast_tests::{Finished, Running, resume, run};

use super::{Files, LINK, LONG, kill};

const CHANGED: &str = "changed since the run began";
const WHILE_READ: &str = "changed while it was being read";

/// Replaces the content of a file, as editors do: a new file is renamed over it.
#[track_caller]
fn replace(path: &Path, bytes: &[u8]) {
    let aside = path.with_extension("new");
    fs::write(&aside, bytes).expect("it can be written");
    fs::rename(&aside, path).expect("it can be renamed");
}

/// Returns bytes that [`fill`] never writes.
fn others(len: usize) -> Vec<u8> {
    vec![b'N'; len]
}

/// Writes a new file with the same bytes and the same time.
fn rewrite(path: &Path) {
    let modified = fs::metadata(path).and_then(|found| found.modified());
    let bytes = fs::read(path).expect("it is there");
    replace(path, &bytes);
    let file = fs::File::options().write(true).open(path);
    let set = file.and_then(|file| file.set_modified(modified?));
    set.expect("it can be set");
}

/// Returns the printed command to continue, with additional options.
fn printed(finished: &Finished) -> Vec<String> {
    let mut lines = finished.stderr.lines();
    let line = lines.find_map(|line| line.split_once(": flitcast resume "));
    let (_, line) = line.unwrap_or_else(|| panic!("no command in\n{}", finished.stderr));
    let (record, options) = line.split_once(".toml").expect("it names a record");
    let record = format!("{}.toml", record.trim_matches([' ', '\'']));
    let options = options.trim_matches([' ', '\'']).split_whitespace();
    let mut all = vec!["resume".to_owned(), record];
    all.extend(options.map(str::to_owned));
    all
}

/// Starts a broadcast of one file, child by child: P1 has it, and P3 is killed, so no other PE has
/// it.
fn broadcast_begun(files: &Files, more: &str) -> Running {
    fill(&files.dir.join("model"), LONG / 8);
    let line = "broadcast --tree star:4 --algorithm child-by-child";
    let paths = "--input @/model --output @/output";
    // A copy takes 1.3 s, so that P3 is killed in time on a busy machine, too.
    let slow = "--link rate=5mbit,latency=5ms";
    let running = files.dir.start(&format!("{line} {paths} {slow} {more}"));
    until("P1 has its copy", || files.output().join("p1").exists());
    running
}

/// Returns the files of a broadcast that P3's death has cut off.
fn broadcast_cut() -> Files {
    let files = Files::new(2);
    let running = broadcast_begun(&files, "");
    kill(&running, 3);
    running.finish().with_code(1);
    files
}

/// Returns the files of a scatter that P4 has left, with P3's message delivered, and its end.
fn scatter_cut(line: &str) -> (Files, Finished) {
    let files = Files::new(2);
    let (finished, _) = files.killing(line, "p3", 4);
    (files, finished.with_code(1))
}

/// Checks that all copies are equal to the current model.
fn assert_copies(files: &Files) {
    let model = fs::read(files.dir.join("model")).expect("it is there");
    for pe in 1..4 {
        let copy = fs::read(files.output().join(format!("p{pe}")));
        assert!(copy.expect("it is there") == model, "P{pe} has other bytes");
    }
    assert_eq!(names(&files.output()).len(), 3, "nothing hidden is left");
}

#[test]
fn a_resumed_broadcast_of_another_version_is_refused_or_goes_to_all() {
    for len in [LONG / 8, LONG / 8 - 7] {
        let files = broadcast_cut();
        let model = files.dir.join("model");
        let old = fs::read(files.output().join("p1")).expect("it is there");
        replace(&model, &others(len));
        let refused = files.resume("--revive");
        refused.fails(1, &["/model`: changed since the run began", "--force"]);
        let is_old = fs::read(files.output().join("p1")).expect("it is there") == old;
        assert!(is_old, "nothing was replaced");
        let mut command = printed(&refused);
        assert!(command.contains(&"--force".to_owned()), "{command:?}");
        command.push("--revive".to_owned());
        run(command).ok();
        assert_copies(&files);
    }
}

/// Another inode may have the same bytes: the source reads them, and the run continues.
#[test]
fn a_rewritten_source_with_the_same_bytes_is_resumed() {
    let files = broadcast_cut();
    rewrite(&files.dir.join("model"));
    files.resume("--revive").ok();
    assert_copies(&files);
}

#[test]
fn a_retry_does_not_send_another_version() {
    let files = Files::new(2);
    let running = broadcast_begun(&files, "--retry 1");
    replace(&files.dir.join("model"), &others(LONG / 8));
    kill(&running, 3);
    let stopped = running.finish();
    stopped.fails(1, &["P3 is dead", CHANGED, "--force"]);
    let mut command = printed(&stopped);
    command.push("--revive".to_owned());
    run(command).ok();
    assert_copies(&files);
}

/// The source of a delivered message may be missing, but not changed.
#[test]
fn a_resumed_scatter_has_one_version_of_each_message() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 3] = [
        ("p3", |file| replace(file, &others(50_000))),
        ("p2", |file| replace(file, &others(50_000))),
        ("p2", |file| replace(file, &others(49_000))),
    ];
    for (of, change) in changes {
        let (files, _) = scatter_cut("scatter");
        let before = files.there();
        change(&files.input().join(of).join("some"));
        let refused = files.resume("--revive");
        refused.fails(1, &[&format!("in put/{of}`: {CHANGED}"), "--force"]);
        assert_eq!(files.there(), before, "nothing was sent");
        files.resume("--revive --force").ok();
        files.assert_complete(&Default::default());
    }
}

#[test]
fn a_resumed_gossip_has_one_version_of_each_message() {
    let files = Files::new(1);
    fill(&files.input().join("p0/some"), 50_000);
    let running = files.start(&format!("gossip --tree path:5 {LINK}"));
    let first = files.output().join("p1/p0");
    until("P1 has P0's message", || first.exists());
    kill(&running, 4);
    running.finish().with_code(1);
    replace(&files.input().join("p0/some"), &others(50_000));
    let refused = files.resume("--revive");
    refused.fails(1, &[&format!("in put/p0`: {CHANGED}"), "--force"]);
    files.resume("--revive --force").ok();
    for at in 0..5 {
        for of in (0..5).filter(|of| *of != at) {
            let sent = files.input().join(format!("p{of}"));
            assert_same_below(&sent, &files.output().join(format!("p{at}/p{of}")));
        }
        assert_eq!(names(&files.output().join(format!("p{at}"))).len(), 4);
    }
}

/// Several neighbours receive the message, each at another time. A folder whose file was replaced
/// by then is reported as changed; a file that is the message itself is kept open, so its
/// replacement does not matter.
#[test]
fn an_input_that_is_replaced_during_a_gossip_has_changed_and_is_not_damaged() {
    for is_folder in [true, false] {
        let files = Files::new(1);
        fs::remove_dir_all(files.input()).expect("it is there");
        let path = |pe: u32| match is_folder {
            true => files.input().join(format!("p{pe}/file")),
            false => files.input().join(format!("p{pe}")),
        };
        for pe in 0..7 {
            fill(&path(pe), 400_000);
        }
        let old = fs::read(path(1)).expect("it is there");
        let running = files.start(&format!("gossip --tree kary:2:7 {LINK}"));
        let arrives = |pe: u32| {
            let folder = files.output().join(format!("p{pe}"));
            folder.exists() && !names(&folder).is_empty()
        };
        until("something arrives", || (0..7).any(arrives));
        for pe in 0..7 {
            replace(&path(pe), &others(400_000));
        }
        let finished = running.finish();
        assert!(!finished.stderr.contains("damaged"), "{}", finished.stderr);
        if is_folder {
            finished.fails(1, &[WHILE_READ]);
            continue;
        }
        finished.ok();
        for at in (0..7).filter(|at| *at != 1) {
            let copy = fs::read(files.output().join(format!("p{at}/p1")));
            assert!(copy.expect("it is there") == old, "P{at} has other bytes");
        }
    }
}

#[test]
fn a_record_applies_to_the_output_that_contains_it() {
    let (files, _) = scatter_cut("scatter");
    let record = files.record();
    let name = record.file_name().expect("it has one");
    // A copy of the record in another folder cannot be resumed.
    let stray = files.dir.join("stray");
    fs::create_dir(&stray).expect("it is not there");
    fs::copy(&record, stray.join(name)).expect("it can be copied");
    resume(&stray.join(name), "").fails(2, &["put it back into the output"]);

    let (output, moved) = (files.output(), files.dir.join("moved"));
    fs::rename(&output, &moved).expect("it can be moved");
    resume(&moved.join(name), "--revive").ok();
    assert!(!output.exists(), "nothing is written where it was");
    fs::rename(&moved, &output).expect("it can be moved back");
    files.assert_complete(&Default::default());
}

#[test]
fn the_printed_command_resumes() {
    let (files, failed) = scatter_cut("scatter --retry 1");
    run(printed(&failed)).ok();
    files.assert_complete(&Default::default());
}
