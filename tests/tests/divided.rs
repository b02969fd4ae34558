//! One file, or standard input, divided over the PEs, and messages that are written to standard output.

use std::io::Write as _;
use std::process::{Command, Stdio};

use flitcast_tests::files::{fill, names};
use flitcast_tests::run::run_program;
use flitcast_tests::{Folder, flitcast, rows, scratch};

/// Runs a command with this standard input and returns its standard output.
#[track_caller]
fn piped(dir: &Folder, line: &str, input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(flitcast())
        .args(dir.words(line))
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("flitcast was built");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    stdin.write_all(input).expect("it is read");
    drop(stdin);
    let done = child.wait_with_output().expect("it ends");
    assert!(done.status.success(), "{line}");
    done.stdout
}

fn lines(count: u32) -> String {
    let line = |number: u32| format!("line {number} {}\n", "x".repeat(number as usize % 100));
    (0..count).map(line).collect()
}

#[test]
fn a_file_is_divided_at_the_ends_of_its_lines() {
    let dir = scratch();
    let text = lines(10_000);
    dir.put("whole", &text);
    let report = dir.report("scatter --tree kary:2:6 --lines --input @/whole --output @/parts");
    report.assert_all_arrived();
    assert_eq!(names(&dir.join("parts")), ["p1", "p2", "p3", "p4", "p5"]);
    let parts: Vec<String> = (1..6).map(|pe| dir.read(&format!("parts/p{pe}"))).collect();
    assert_eq!(parts.concat(), text);
    for part in &parts {
        assert!(part.ends_with('\n'));
        assert!(part.len().abs_diff(text.len() / 5) < 200, "{}", part.len());
    }
    let back = piped(
        &dir,
        "gather --tree kary:2:6 --input @/parts --output -",
        b"",
    );
    assert_eq!(back, text.as_bytes());
    let report = dir.run("gather --tree kary:2:6 --input @/parts --output -");
    report
        .ok()
        .stderr_has(&["every digest matched; the messages are on standard output\n"]);
}

/// Only a gather has one message after the other for one reader.
#[test]
fn other_operations_do_not_write_to_standard_output() {
    let dir = scratch();
    dir.put("in/p1", "text\n");
    for line in [
        "scatter -n 1",
        "broadcast -n 1",
        "gossip -n 1",
        "exchange -n 1",
    ] {
        let why = "--output -: only a gather writes to standard output; give a folder";
        dir.run(&format!("{line} --input @/in --output -"))
            .fails(2, &[why]);
    }
    let map = "map --input @/in --output - -- cat";
    dir.run(map).fails(2, &["only a gather writes"]);
}

#[test]
fn a_number_of_parts_gives_the_number_of_pes() {
    let dir = scratch();
    fill(&dir.join("whole"), 1_000_003);
    dir.run("scatter --split 3 --input @/whole --output @/parts")
        .ok();
    let parts = ["parts/p1", "parts/p2", "parts/p3"].map(|name| std::fs::read(dir.join(name)));
    let parts = parts.map(|part| part.expect("it arrived"));
    assert_eq!(parts.each_ref().map(Vec::len), [333_334, 333_334, 333_335]);
    assert_eq!(
        parts.concat(),
        std::fs::read(dir.join("whole")).expect("it is there")
    );
    // A repeated command sends nothing.
    dir.run("scatter --split 3 --input @/whole --output @/parts")
        .ok()
        .prints(&["  round        nothing to send: everything is there already\n"]);
    dir.run("scatter -n 2 --size 0")
        .ok()
        .prints(&["  round        nothing to send: every message is null\n"]);
    let blocks = "scatter --tree star:4 --blocks 1000 --input @/whole --output @/blocks";
    dir.run(blocks).ok();
    let first = std::fs::read(dir.join("blocks/p1")).expect("it arrived");
    assert_eq!(first.len(), 333_000);
}

#[test]
fn standard_input_is_a_message_or_divided() {
    let dir = scratch();
    let text = lines(1000);
    let scatter = "scatter --tree star:4 --lines --input - --output @/parts";
    piped(&dir, scatter, text.as_bytes());
    let parts: String = (1..4).map(|pe| dir.read(&format!("parts/p{pe}"))).collect();
    assert_eq!(parts, text);
    piped(
        &dir,
        "broadcast -n 2 --input - --output @/copies",
        text.as_bytes(),
    );
    assert_eq!(dir.read("copies/p2"), text);
}

/// A shell has read a part of the file.
#[test]
fn the_rest_of_standard_input_is_sent() {
    let dir = scratch();
    dir.put("lines", "first\nsecond\n");
    let script = format!(
        "{{ read line; '{}' scatter -n 1 --lines --input - --output out; }} < lines",
        flitcast().display()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(dir.path());
    run_program(&mut shell).ok();
    // A shell may read a whole block of a file, but sets it back to the end of the line.
    assert_eq!(dir.read("out/p1"), "second\n");
}

#[test]
fn invalid_divisions_are_refused() {
    let dir = scratch();
    dir.put("whole", "text\n");
    dir.put("folder/p1/file", "text\n");
    for [line, why] in rows(
        "
        LINE --lines --input @/folder | is not a file, and one file is divided
        LINE --split 3 --input @/whole | 3 parts for 2 PEs
        LINE --blocks 0 --input @/whole | a block has at least a byte
        LINE --blocks 7x --input @/whole | --blocks
        LINE --lines --input @/missing | No such file
        LINE --input @/whole | whole: it is a file; divide it with --lines, --blocks SIZE or --split N
        LINE --input - | --input -: it is one file; add --lines, --blocks SIZE or --split N
        scatter --lines --input @/whole --output @/out | error: the number of parts is not given; add -n N, --split N
        scatter --spread --input @/folder --output @/out | error: --spread: the number of PEs is not given; add -n N
        LINE --split 0 --input @/whole | at least 1 part
        LINE --split x --input @/whole | not a number of parts
        gather --tree star:2 --input @/folder/p* --output - | --output -: the message of P1 is a folder; give a folder
        gather --tree star:2 --input @/folder/p*/file --output - | what matches a pattern arrives as a folder
        scatter --tree star:3 --size 1KiB --split 2 | goes with --input
        LINE --lines --spread --input @/whole | cannot be used with
        scatter --cluster c.toml --lines --input - --output /out | P0 may be on another host
    ",
    ) {
        let line = line.replace("LINE", "scatter --tree star:3 --output @/out");
        dir.run(&line).fails(2, &[why]);
    }
    assert!(!dir.join("out").exists());
    let folders = "gather --tree star:2 --input @/folder --output -";
    let refused = dir.run(folders);
    refused.fails(2, &["P1 is a folder"]);
    assert!(!refused.stderr.contains("kept"), "{}", refused.stderr);
}
