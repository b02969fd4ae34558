//! Inputs that cannot be sent, and outputs that cannot be written.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use flitcast_tests::files::fill;

use super::{TO_OUTPUT, refused_each_in, refused_in, with_input};

#[test]
fn entries_that_belong_to_no_pe() {
    for operation in ["scatter", "gather"] {
        let dir = with_input();
        for name in ["p0", "p9", "p01", "P1", "q3", "notes.txt"] {
            fill(&dir.join("input").join(name), 1);
        }
        fs::remove_dir_all(dir.join("input/p1")).expect("it is there");
        let line = format!("{operation} --tree path:20 {TO_OUTPUT}");
        let all = "`p0` is the root, `p01`, `P1`, `q3`, `notes.txt`, p1..p19";
        refused_in(&dir, &line, &all.split(", ").collect::<Vec<_>>());
    }
}

/// The error names the reason why the input does not give the number of PEs.
#[test]
fn an_input_that_names_no_pe() {
    let dir = with_input();
    fs::create_dir(dir.join("empty")).expect("it can be made");
    for name in ["any/a", "any/b", "other/1", "other/P2", "one/shard1"] {
        fill(&dir.join(name), 1);
    }
    refused_each_in(
        &dir,
        "",
        "
        scatter --input @/empty --output @/o | /empty: the folder has no entries; put p1, p2, ..
        gather --input @/empty --output @/o | /empty: the folder has no entries; put p1, p2, ..
        scatter --input @/any --output @/o | no entry is named like a PE (p1); use -n 2 --spread
        gather --input @/any --output @/o | none of 2 entries is named like a PE (p1, p2, ..)
        scatter --input @/other --output @/o | no entry is named like a PE; did you mean p1 by `1`?
        scatter -n 2 --input @/other --output @/o | /other` names a PE (`1`, ..); this tree has p1..p2; did you mean p1 by `1`?
        scatter -n 2 --input @/any --output @/o | /any` names a PE (`a`, ..); this tree has p1..p2; rename them
        scatter -n 2 --input @/one --output @/o | `shard1` names no PE; this tree has p1..p2
        scatter -n 2 --spread --input @/any/a --output @/o | Not a directory
        broadcast --input @/any --output @/o | error: no PEs are given; use -n N, --hosts HOSTS or --cluster FILE
    ",
    );
    // One line each, without advice on the number of PEs, which is not at fault.
    for name in ["host/p0/a.db", "host/p1/a.db", "host/p2/a.db"] {
        fill(&dir.join(name), 1);
    }
    for line in [
        "scatter --input @/any",
        "scatter -n 2 --input @/other",
        "gather --input @/host/p*/*.log",
    ] {
        let run = dir.run(&format!("{line} --output @/o")).with_code(2);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
}

/// Entries that not even root can send.
#[test]
fn an_input_that_cannot_be_sent() {
    for operation in ["scatter", "gather"] {
        let dir = with_input();
        let input = dir.join("input");
        let _socket = UnixListener::bind(input.join("p1/socket")).expect("it can be made");
        symlink("/etc/passwd", input.join("p2/absolute")).expect("it can be made");
        fs::remove_dir_all(input.join("p3")).expect("it is there");
        symlink("p1", input.join("p3")).expect("it can be made");
        let line = format!("{operation} --tree path:4 {TO_OUTPUT}");
        refused_in(&dir, &line, &["/input/p3", "cannot be a symlink itself"]);
        fs::remove_file(input.join("p3")).expect("it is there");
        let [socket, link] = [
            ["/p1/socket", "it is a socket"],
            ["/p2/absolute", "/etc/passwd"],
        ];
        refused_in(&dir, &line, &[socket, link].concat());
    }
    let dir = with_input();
    symlink("../../../p1", dir.join("input/p2/up")).expect("it can be made");
    let line = format!("scatter --spread --tree path:4 {TO_OUTPUT}");
    refused_in(&dir, &line, &["/up", "leaves the message"]);
}

#[test]
fn an_output_that_cannot_be_written_to() {
    for operation in ["scatter", "gather"] {
        let dir = with_input();
        fill(&dir.join("full/notes.txt"), 1);
        fill(&dir.join("a-file"), 1);
        refused_each_in(
            &dir,
            &format!("{operation} --tree path:4 --input @/input --output"),
            "
            @/full | /full | holds files already | --force
            @/a-file | --output | /a-file | not a directory
            @/a-file/x/y | --output | /a-file | ot a directory
            @/a-file/x/y --force | --output | /a-file | ot a directory
            @/input/output | inside the input
            @/input/p1/x/output --force | inside the input
            @/input --force | inside the input
        ",
        );
    }
}
