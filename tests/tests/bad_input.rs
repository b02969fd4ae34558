//! A command that cannot be carried out is refused with exit status 2: stderr names
//! every cause, stdout stays empty, and nothing was launched or written.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use flitcast_tests::files::{assert_same, fill, snapshot};
use flitcast_tests::{Finished, run, scratch};
use tempfile::TempDir;

/// The words of a command line. `@` stands for the scratch directory.
fn words(dir: &Path, line: &str) -> Vec<String> {
    let dir = dir.to_str().expect("scratch paths are UTF-8");
    line.split_whitespace()
        .map(|word| word.replace('@', dir))
        .collect()
}

fn run_loudly(dir: &Path, line: &str) -> Finished {
    run(["-vv".to_owned()].into_iter().chain(words(dir, line)))
}

/// That a command is refused, and that every one of `causes` stands in stderr.
#[track_caller]
fn refused_in(dir: &Path, line: &str, causes: &[&str]) {
    let before = snapshot(dir);
    let run = run_loudly(dir, line);
    assert_eq!(run.code, Some(2), "{line}\n{}", run.stderr);
    assert_eq!(run.stdout, "", "{line}");
    for cause in causes {
        assert!(
            run.stderr.contains(cause),
            "{line}: no `{cause}` in\n{}",
            run.stderr
        );
    }
    assert!(run.stderr.starts_with("error: "), "{line}\n{}", run.stderr);
    for trace in ["launched", "assigned", "P0|"] {
        assert!(!run.stderr.contains(trace), "{line}\n{}", run.stderr);
    }
    assert_same(&before, &snapshot(dir));
}

#[track_caller]
fn refused(line: &str, causes: &[&str]) {
    refused_in(scratch().path(), line, causes);
}

/// Entries `p1`, `p2`, `p3` in a folder `input`.
fn with_input() -> TempDir {
    let dir = scratch();
    for pe in 1..=3 {
        fill(&dir.path().join(format!("input/p{pe}/file")), 1000);
    }
    dir
}

const TO_OUTPUT: &str = "--input @/input --output @/output";

/// What the other tests look for in vain is there when all is well.
#[test]
fn a_good_command_launches_and_writes() {
    let dir = with_input();
    let run = run_loudly(dir.path(), &format!("scatter --tree path:4 {TO_OUTPUT}")).ok();
    for trace in ["launched", "assigned", "P0|"] {
        assert!(run.stderr.contains(trace), "{}", run.stderr);
    }
    assert!(dir.path().join("output").is_dir());
}

#[test]
fn a_shape_that_is_unknown() {
    for operation in ["scatter", "gather"] {
        let line = format!("{operation} --tree ring:4 --size 1");
        refused(
            &line,
            &[
                "--tree",
                "no tree shape is called `ring`",
                "path:N",
                "file:PATH",
            ],
        );
    }
    refused("scatter --tree pth:4 --size 1", &["did you mean `path`?"]);
    refused("scatter --tree kary:4 --size 1", &["`kary:4`", "kary:K:N"]);
    refused("scatter --size 1", &["--tree"]);
}

#[test]
fn no_pe_at_all() {
    for tree in ["path:0", "star:0", "kary:2:0", "binomial:0", "random:0:7"] {
        let line = format!("scatter --tree {tree} --size 1");
        refused(&line, &["N must be a whole number from 1", "`0`"]);
    }
    refused(
        "scatter --tree parents: --size 1",
        &["needs the parent of P1"],
    );
}

#[test]
fn a_list_of_parents_that_is_no_tree() {
    refused(
        "scatter --tree parents:0,3,2 --size 1",
        &["cycle: P2 -> P3 -> P2"],
    );
    refused(
        "scatter --tree parents:1 --size 1",
        &["P1 is its own parent"],
    );
    refused(
        "scatter --tree parents:0,9 --size 1",
        &["P2: parent P9 does not exist"],
    );
    refused(
        "scatter --tree parents:0,,1 --size 1",
        &["the parent of P2 must be an index"],
    );
    let all = [
        "P1: parent P7 does not exist",
        "P2 is its own parent",
        "cycle: P3 -> P4 -> P3",
    ];
    refused("gather --tree parents:7,2,4,3,3 --size 1", &all);
    refused(
        "gather --tree parents:7,2,4,3,3 --size 1",
        &["P5 hangs below it"],
    );
}

#[test]
fn a_tree_file_that_is_no_tree() {
    let dir = scratch();
    let text = "root = 0\n\
                [[pe]]\nid = 0\n\
                [[pe]]\nid = 1\nparent = 9\n\
                [[pe]]\nid = 2\nparent = 3\n\
                [[pe]]\nid = 3\nparent = 2\n\
                [[pe]]\nid = 4\n";
    fs::write(dir.path().join("t.toml"), text).expect("it can be written");
    let all = [
        "t.toml:6: P1: parent P9 does not exist",
        "t.toml:9: cycle: P2 -> P3 -> P2",
        "t.toml:14: several roots: P4",
    ];
    refused_in(dir.path(), "scatter --tree file:@/t.toml --size 1", &all);
    let causes = ["/none.toml", "No such file"];
    refused_in(
        dir.path(),
        "scatter --tree file:@/none.toml --size 1",
        &causes,
    );
    fs::write(dir.path().join("t.toml"), "parents = [0,\n0").expect("it can be written");
    refused_in(
        dir.path(),
        "scatter --tree file:@/t.toml --size 1",
        &["t.toml:2:"],
    );
    refused_in(
        dir.path(),
        "scatter --tree file:@ --size 1",
        &["cannot read the tree file"],
    );
}

#[test]
fn more_pes_than_a_machine_takes() {
    let line = "scatter --tree path:2000 --size 1";
    refused(line, &["path:2000 has 2000 PEs", "at most 1024"]);
    refused(
        "scatter --tree star:99999999 --size 1",
        &["`99999999`", "1048576"],
    );
}

#[test]
fn entries_that_belong_to_no_pe() {
    for operation in ["scatter", "gather"] {
        let dir = with_input();
        let line = format!("{operation} --tree path:3 {TO_OUTPUT}");
        refused_in(
            dir.path(),
            &line,
            &["input", "3 entries", "this tree has p1..p2"],
        );
        for name in ["p0", "p9", "p01", "P1", "q3", "notes.txt"] {
            fill(&dir.path().join("input").join(name), 1);
        }
        fs::remove_dir_all(dir.path().join("input/p1")).expect("it is there");
        let line = format!("{operation} --tree path:20 {TO_OUTPUT}");
        let all = [
            "`p0` is the root",
            "`p01`",
            "`P1`",
            "`q3`",
            "`notes.txt`",
            "p1..p19",
        ];
        refused_in(dir.path(), &line, &all);
    }
}

#[test]
fn an_input_that_is_not_there_or_no_directory() {
    for operation in ["scatter", "gather"] {
        let dir = with_input();
        let line = format!("{operation} --tree path:4 --input @/none --output @/output");
        refused_in(dir.path(), &line, &["--input", "/none", "No such file"]);
        let line = format!("{operation} --tree path:4 --input @/input/p1/file --output @/output");
        refused_in(
            dir.path(),
            &line,
            &["--input", "/input/p1/file", "Not a directory"],
        );
    }
}

/// Not even root can send these.
#[test]
fn an_input_that_cannot_be_sent() {
    for operation in ["scatter", "gather"] {
        let dir = with_input();
        let input = dir.path().join("input");
        let _socket = UnixListener::bind(input.join("p1/socket")).expect("it can be made");
        symlink("/etc/passwd", input.join("p2/absolute")).expect("it can be made");
        fs::remove_dir_all(input.join("p3")).expect("it is there");
        symlink("p1", input.join("p3")).expect("it can be made");
        let line = format!("{operation} --tree path:4 {TO_OUTPUT}");
        refused_in(
            dir.path(),
            &line,
            &["/input/p3", "cannot be a symlink itself"],
        );
        fs::remove_file(input.join("p3")).expect("it is there");
        let all = [
            "/p1/socket",
            "it is a socket",
            "/p2/absolute",
            "/etc/passwd",
        ];
        refused_in(dir.path(), &line, &all);
    }
    let dir = with_input();
    symlink("../../../p1", dir.path().join("input/p2/up")).expect("it can be made");
    let line = format!("scatter --spread --tree path:4 {TO_OUTPUT}");
    refused_in(dir.path(), &line, &["/up", "leaves the message"]);
}

#[test]
fn files_for_nobody() {
    let dir = with_input();
    let line = format!("scatter --spread --tree path:1 {TO_OUTPUT}");
    refused_in(dir.path(), &line, &["dealt to nobody", "no PE but P0"]);
}

#[test]
fn an_output_that_cannot_be_written_to() {
    for operation in ["scatter", "gather"] {
        let dir = with_input();
        fill(&dir.path().join("full/notes.txt"), 1);
        fill(&dir.path().join("a-file"), 1);
        let line =
            |output: &str| format!("{operation} --tree path:4 --input @/input --output @/{output}");
        refused_in(
            dir.path(),
            &line("full"),
            &["/full", "holds files already", "--force"],
        );
        refused_in(
            dir.path(),
            &line("a-file"),
            &["--output", "/a-file", "not a directory"],
        );
        let below = &["--output", "/a-file", "ot a directory"];
        refused_in(dir.path(), &line("a-file/x/y"), below);
        refused_in(dir.path(), &line("a-file/x/y --force"), below);
        refused_in(dir.path(), &line("input/output"), &["inside the input"]);
        refused_in(
            dir.path(),
            &line("input/p1/x/output --force"),
            &["inside the input"],
        );
        refused_in(dir.path(), &line("input --force"), &["inside the input"]);
    }
}

/// What even root cannot write to, and what only a look at the bits would allow.
#[test]
fn an_output_that_nobody_may_write_to() {
    let dir = with_input();
    let line = "scatter --tree path:4 --input @/input --output /proc/flitcast/output";
    refused_in(dir.path(), line, &["--output", "/proc"]);
}

#[test]
fn sizes_that_overflow() {
    let too_many = ["9223372036854775807"];
    refused("scatter --tree path:3 --size 17EiB", &["`17EiB`", "2^64-1"]);
    refused(
        "scatter --tree path:3 --lengths 1,99999999999999999999",
        &["M2", "2^64-1"],
    );
    refused("scatter --tree path:3 --size 15EiB", &too_many);
    refused("gather --tree path:4 --lengths 4EiB,4EiB,4EiB", &too_many);
    refused("gather --tree path:4 --lengths ramp:7EiB", &too_many);
    refused("gather --tree path:4 --lengths halfnull:15EiB", &too_many);
}

#[test]
fn sizes_that_are_none() {
    refused(
        "scatter --tree path:3 --size much",
        &["`much` is not a size"],
    );
    refused("scatter --tree path:3 --size -1", &["-1"]);
    refused(
        "scatter --tree path:3 --lengths 1,5XB",
        &["M2", "unknown unit `XB`"],
    );
    refused(
        "scatter --tree path:3 --lengths bell:1",
        &["neither a size nor a pattern"],
    );
    refused(
        "scatter --tree path:4 --lengths 1,2",
        &["2 length", "3 needed", "P3"],
    );
    refused(
        "gather --tree path:3 --lengths 1,2,3",
        &["3 length", "2 needed", "P2"],
    );
    refused(
        "gather --tree path:3 --lengths uniform:2..1:7",
        &["is more than"],
    );
}

#[test]
fn flits_that_are_none() {
    for size in ["0", "63", "1048577", "8GiB"] {
        let line = format!("gather --tree path:3 --size 1 --flit-size {size}");
        refused(&line, &["--flit-size", "64 B to 1 MiB"]);
    }
    refused(
        "gather --tree path:3 --size 1 --flit-size big",
        &["--flit-size", "`big`"],
    );
}

#[test]
fn algorithms_that_do_not_fit() {
    let line = "gather --size 1 --algorithm shoulder-tap --tree";
    refused(
        &format!("{line} star:4"),
        &["shoulder-tap", "star:4", "P0 has 3 children"],
    );
    refused(
        &format!("{line} kary:2:4"),
        &["paths only", "P0 has 2 children"],
    );
    refused(
        &format!("{line} path:4 --sync serial"),
        &["--sync", "certification"],
    );
    refused(
        "gather --tree path:3 --size 1 --algorithm quick",
        &["--algorithm", "quick"],
    );
    refused(
        "scatter --tree path:3 --size 1 --algorithm certification",
        &["--algorithm"],
    );
}

#[test]
fn options_that_lack_another_or_exclude_it() {
    let dir = with_input();
    refused_in(
        dir.path(),
        "scatter --tree path:4 --input @/input",
        &["--output"],
    );
    refused_in(
        dir.path(),
        "gather --tree path:4 --input @/input",
        &["--output"],
    );
    refused("scatter --tree path:4 --output @/output", &["--input"]);
    refused("scatter --tree path:4", &["--size", "--input"]);
    refused(
        "scatter --tree path:3 --size 1 --lengths 1,2",
        &["--size", "--lengths"],
    );
    let line = format!("scatter --tree path:4 --size 1 {TO_OUTPUT}");
    refused_in(dir.path(), &line, &["--size", "--input"]);
    refused("scatter --tree path:3 --size 1 --spread", &["--spread"]);
    refused(
        "scatter --tree path:3 --size 1 --rounds 0",
        &["--rounds", "0"],
    );
    refused(
        "scatter --tree path:3 --size 1 --format xml",
        &["--format", "xml"],
    );
}

/// Nothing would be written there, and nobody would be told.
#[test]
fn an_output_for_messages_that_are_not_files() {
    refused(
        "scatter --tree path:3 --size 1 --output @/output",
        &["--output", "--input"],
    );
    refused(
        "gather --tree path:3 --lengths 1,2 --output @/output",
        &["--output", "--input"],
    );
}

#[test]
fn all_faults_of_a_command_are_listed_at_once() {
    let dir = with_input();
    fill(&dir.path().join("output/old"), 1);
    fill(&dir.path().join("input/p77"), 1);
    let line = format!("scatter --tree path:4 --flit-size 1 {TO_OUTPUT}");
    let all = ["--flit-size", "holds files already", "`p77`"];
    refused_in(dir.path(), &line, &all);
}

/// The algorithm has nothing to do with what is wrong with the input.
#[test]
fn a_fault_of_the_algorithm_hides_no_other() {
    let dir = with_input();
    fill(&dir.path().join("input/p77"), 1);
    let line = format!("gather --tree star:4 --algorithm shoulder-tap {TO_OUTPUT}");
    refused_in(dir.path(), &line, &["P0 has 3 children", "`p77`"]);
    let line = "gather --tree star:4 --algorithm shoulder-tap --lengths 1,2";
    refused(line, &["P0 has 3 children", "3 needed"]);
}

/// Nor has the shape's name with the flit size.
#[test]
fn a_fault_in_a_value_hides_no_other() {
    let line = "scatter --tree ring:4 --size much --flit-size big";
    refused(line, &["`ring`", "`much`", "`big`"]);
}
