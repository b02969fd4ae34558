//! Flitcast's own hidden files: never input, and gone after the next run that uses their folder.

use std::fs;
use std::path::{Path, PathBuf};

use flitcast_tests::files::{
    assert_same, assert_same_below, fill, names, record, snapshot, wait_for_partial,
    without_folder_times,
};
use flitcast_tests::joining::{Joining, dismiss};
use flitcast_tests::{Finished, Folder, Running, resume, scratch};
use rustix::process::Signal;

/// Names of all forms.
const HIDDEN: [&str; 7] = [
    ".flitcast-0123456789abcdef-p1.partial",
    ".flitcast-0123456789abcdef-p1.receipt",
    ".flitcast-0123456789abcdef-p1.replaced",
    ".flitcast-held-17",
    ".flitcast-map-0123456789abcdef",
    ".flitcast-round-0123456789abcdef.toml",
    ".flitcast-unfinished-a1b2c3",
];
/// A user's file whose name begins like a hidden one.
const NOTES: &str = ".flitcast-notes";
/// A link on which a message of a megabyte takes longer than any test needs to see it.
const SLOW: &str = "--link rate=4mbit";
/// The length of a message that does not arrive on that link before the test kills a process. It is not
/// so long that a later run would continue it.
const LONG: usize = 3 << 20;

/// Creates a folder with an input of messages of this length, of each PE or for each PE as the operation
/// needs them; outputs are beside it.
fn place(operation: &str, bytes: usize) -> Folder {
    let dir = scratch();
    for pe in 0..4 {
        for other in 0..4 {
            let entry = match operation {
                "exchange" if pe != other => format!("p{pe}/p{other}"),
                "gossip" => format!("p{pe}"),
                "scatter" | "gather" | "broadcast" if pe > 0 => format!("p{pe}"),
                _ => continue,
            };
            fill(&dir.join("in").join(entry).join("below/some"), bytes);
        }
    }
    dir
}

fn start(dir: &Folder, operation: &str, output: &str, more: &str) -> Running {
    let files = format!("--tree star:4 --input @/in --output @/{output}");
    dir.start(&format!("{operation} {files} {more}"))
}

fn run(dir: &Folder, operation: &str, output: &str, more: &str) -> Finished {
    start(dir, operation, output, more).finish()
}

/// Puts hidden files of all forms into a folder.
fn litter(folder: &Path) {
    for name in HIDDEN {
        fill(&folder.join(name), 10);
    }
}

/// Checks that two trees have the same content, apart from the times of their folders.
fn assert_same_content(left: &Path, right: &Path) {
    assert_same(&without_folder_times(left), &without_folder_times(right));
}

fn assert_nothing_hidden(output: &Path) {
    let hidden = |path: &PathBuf| path.display().to_string().contains(".flitcast-");
    let left: Vec<PathBuf> = snapshot(output).into_keys().filter(hidden).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn hidden_files_are_no_input_of_any_operation() {
    for operation in ["scatter", "gather", "broadcast", "gossip", "exchange"] {
        let dir = place(operation, 1000);
        run(&dir, operation, "clean", "").ok();
        let folders = match operation {
            "exchange" => ["in", "in/p1", "in/p1/p2", "in/p1/p2/below"],
            _ => ["in", "in/p1", "in/p1/below", "in/p1"],
        };
        for folder in folders {
            litter(&dir.join(folder));
        }
        let done = run(&dir, operation, "out", "").ok();
        assert_same_content(&dir.join("clean"), &dir.join("out"));
        let count = done.stderr.matches("not sent").count();
        assert_eq!(count, 1, "{}", done.stderr);
    }
}

#[test]
fn hidden_files_are_not_dealt_nor_mapped() {
    let dir = place("scatter", 1000);
    litter(&dir.join("in"));
    litter(&dir.join("in/p2/below"));
    run(&dir, "scatter", "out", "--spread").ok();
    assert_nothing_hidden(&dir.join("out"));
    run(&dir, "map", "mapped", "-- find .").ok();
    for pe in 1..4 {
        let found = fs::read_to_string(dir.join(format!("mapped/p{pe}/stdout")));
        assert_eq!(found.expect("it was mapped"), ".\n./below\n./below/some\n");
    }
}

/// A name that only begins like a hidden one is sent inside a message, and refused as the name of
/// one.
#[test]
fn a_users_own_hidden_file_is_sent() {
    let dir = place("scatter", 1000);
    fill(&dir.join("in/p1").join(NOTES), 10);
    run(&dir, "scatter", "out", "").ok();
    assert_same_below(&dir.join("in"), &dir.join("out"));
    fill(&dir.join("in").join(NOTES), 10);
    let refused = run(&dir, "scatter", "again", "");
    refused.fails(2, &["`.flitcast-notes` names no PE"]);
}

#[test]
fn the_next_run_removes_leftovers_of_a_killed_one() {
    for operation in ["scatter", "gather", "broadcast", "gossip", "exchange"] {
        let dir = place(operation, LONG);
        let running = start(&dir, operation, "out", SLOW);
        wait_for_partial(&dir.join("out"));
        running.kill_all();
        wait_for_partial(&dir.join("out"));
        // It is not in the way of the same command, without --force.
        run(&dir, operation, "out", "").ok();
        assert_nothing_hidden(&dir.join("out"));
        run(&dir, operation, "whole", "").ok();
        assert_same_content(&dir.join("whole"), &dir.join("out"));
    }
}

#[test]
fn the_output_of_a_killed_run_is_an_input() {
    let dir = place("scatter", LONG);
    let running = start(&dir, "scatter", "out", SLOW);
    wait_for_partial(&dir.join("out"));
    running.kill_all();
    fs::rename(dir.join("in"), dir.join("kept")).expect("it is there");
    fs::rename(dir.join("out"), dir.join("in")).expect("it is there");
    let sent = names(&dir.join("in"));
    let is_hidden = |name: &String| name.starts_with(".flitcast-");
    assert!(sent.iter().all(is_hidden), "{sent:?}");
    fs::rename(dir.join("kept/p2"), dir.join("in/p2")).expect("it is there");
    run(&dir, "gather", "out", "").ok();
    assert_eq!(names(&dir.join("out")), ["p2"]);
}

#[test]
fn of_two_runs_into_one_output_one_is_refused() {
    for operation in ["scatter", "gather", "exchange"] {
        // Together they take some seconds.
        let bytes = if operation == "exchange" {
            160_000
        } else {
            500_000
        };
        let dir = place(operation, bytes);
        let first = start(&dir, operation, "out", SLOW);
        wait_for_partial(&dir.join("out"));
        for more in ["", "--force"] {
            let second = run(&dir, operation, "out", more);
            second.fails(2, &["another run is writing to it"]);
        }
        first.finish().ok();
        assert_nothing_hidden(&dir.join("out"));
    }
}

/// Both check the output before either has begun: at most one finds it free.
#[test]
fn of_two_runs_at_the_same_moment_one_at_least_is_complete() {
    let dir = place("scatter", 1 << 20);
    let both = [0, 1].map(|_| start(&dir, "scatter", "out", ""));
    let codes = both.map(|running| running.finish().code);
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert_same_below(&dir.join("in"), &dir.join("out"));
}

#[test]
fn a_record_that_can_be_resumed_stays_with_what_it_needs() {
    let dir = place("scatter", 600_000);
    let running = start(&dir, "scatter", "out", SLOW);
    wait_for_partial(&dir.join("out"));
    running.pe(1).signal(Signal::KILL);
    running.finish().with_code(1);
    let record = record(&dir.join("out"));
    // A run into the same output that ends at once leaves it, too.
    let other = run(&dir, "scatter", "out", "--force --timeouts connect=1ms");
    assert!(record.exists(), "{}", other.stderr);
    resume(&record, "--revive --force").ok();
    assert_same_below(&dir.join("in"), &dir.join("out"));
}

/// On another host only a PE there can see it.
#[test]
#[ignore = "needs root"]
fn the_next_run_removes_leftovers_of_a_killed_pe_on_its_host() {
    let cluster = Joining::new(&[0, 0], "60s");
    for pe in [1, 2] {
        fill(&cluster.path(&format!("in/h{pe}/file")), LONG);
    }
    let out = |pe: u32| cluster.path(&format!("host{pe}/out"));

    let nodes = (0..3).map(|pe| cluster.node_apart(pe, "out", "--stay"));
    let mut first: Vec<Running> = nodes.collect();
    let scatter = "scatter --input DIR/in --output DIR/out";
    let running = cluster.guarded(&format!("{scatter} --link rate=4mbit"));
    wait_for_partial(&out(2));
    let victim = first.remove(2);
    victim.signal(Signal::KILL);
    running.finish().with_code(1);
    victim.finish();
    wait_for_partial(&out(2));
    first.push(cluster.node_apart(2, "out", "--stay"));
    cluster.guarded(&format!("{scatter} --force")).finish().ok();
    for pe in [1, 2] {
        assert_nothing_hidden(&out(pe));
        let name = format!("h{pe}");
        assert_same_below(&cluster.path("in").join(&name), &out(pe).join(&name));
    }
    dismiss(first);
}
