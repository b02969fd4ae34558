//! Rows 24 and 25: hostile names and trees.

use std::fs;
use std::path::Path;

use flitcast_proto::items::Message;
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit;
use flitcast_proto::wire::pb::{FileEntry, file_entry::Kind};
use flitcast_proto::{PeId, RoundId};
use flitcast_tests::files::{assert_same_below, names};
use flitcast_tests::impostor::Stage;
use flitcast_tests::{Finished, run, scratch, start};
use prost::Message as _;
use twox_hash::XxHash3_128;

use crate::{alone, served, timed, words};

/// Runs a command that is refused before anything is started, with a line for each error.
#[track_caller]
fn refused(row: &str, case: &str, words: Vec<String>) -> Finished {
    let finished = timed(row, case, Some(1.0), || run(words));
    assert_eq!(finished.stdout, "");
    finished.with_code(2)
}

/// Sends an entry from P1, which the test impersonates, to P0 in a gather of files.
fn sent(entry: FileEntry) -> Finished {
    let payload = entry.encode_length_delimited_to_vec();
    let stage = Stage::path(2, 1);
    let (input, output) = (stage.path_of("in"), stage.path_of("out"));
    fs::create_dir(&input).expect("it can be");
    let (from, to) = (input.display(), output.display());
    let line = format!("gather --input {from} --output {to}");
    let running = start(stage.arguments(&line));
    let impostor = stage.enter();
    let mut edge = impostor.call_parent(&impostor.assignment());
    impostor.get_ready(&mut edge, vec![payload.len() as u64]);
    while !matches!(edge.receive(), EdgeFrame::Control { .. }) {}
    let message = Message::between(PeId(1), PeId::ROOT, payload.len() as u64);
    let digest = XxHash3_128::oneshot(&payload).to_be_bytes();
    let mut frame = Vec::new();
    let head = Some((RoundId(1), message));
    flit::put_prefix(head, Some(&digest), payload.len(), &mut frame);
    frame.extend_from_slice(&payload);
    edge.outgoing.send(&frame).expect("P0 reads");
    let finished = served(running, impostor);
    let mut left = names(&output);
    left.retain(|name| !name.ends_with(".toml"));
    assert!(left.is_empty(), "{left:?}");
    assert!(!stage.path_of("evil").exists(), "it got out");
    finished.with_code(1)
}

#[test]
fn row_24_paths_that_lead_out() {
    let _alone = alone();
    let entry = |path: &str| FileEntry {
        path: path.as_bytes().to_vec().into(),
        kind: Kind::File.into(),
        mode: 0o4755,
        ..FileEntry::default()
    };
    timed("24", "paths that lead out, 3 rounds", Some(3.0), || {
        for path in ["../evil", "/tmp/evil", "a/../../evil"] {
            let expected = "its path is not a plain relative one";
            sent(entry(path)).stderr_has(&[expected]);
        }
    });
}

#[test]
fn row_24_names_in_a_cluster_file() {
    let _alone = alone();
    let dir = scratch();
    let long = "x".repeat(1 << 20);
    let text = format!(
        "name = \"\\u001b[2J$(touch evil)\"\n[[pe]]\nname = \"{long}\\u0007\"\naddress = \"; reboot\"\n\
         [[pe]]\nname = \"../b\"\naddress = \"127.0.0.1\"\nparent = \"{long}\"\n"
    );
    dir.put("c.toml", text);
    let line = dir.words("gather --size 1 --cluster @/c.toml");
    let finished = refused("24", "control characters and 1 MB names", line);
    let stderr = &finished.stderr;
    assert!(stderr.len() < 4096, "{} bytes", stderr.len());
    let is_plain = |c: char| c == '\n' || !c.is_control();
    assert!(stderr.chars().all(is_plain), "{stderr:?}");
    finished.stderr_has(&["c.toml:1:", "c.toml:3:", "c.toml:4:", "c.toml:8:"]);
}

#[test]
fn row_24_names_of_files() {
    let _alone = alone();
    let dir = scratch();
    let names = "$(touch evil)|; reboot|\u{1b}[2J\n|-rf|' \"*|...";
    for name in names.split('|') {
        dir.put(&format!("in/p1/{name}"), name);
    }
    let line = "scatter --tree path:2 --input @/in --output @/out";
    let case = "names for a shell, there as they were";
    timed("24", case, Some(1.0), || dir.run(line)).ok();
    assert_same_below(&dir.join("in"), &dir.join("out"));
    assert!(!Path::new("evil").exists(), "nobody runs a name");
}

#[test]
fn row_25_trees_that_are_none() {
    let _alone = alone();
    let dir = scratch();
    let text = "root = 0\n[[pe]]\nid = 0\n[[pe]]\nid = 1\nparent = 9\n[[pe]]\nid = 2\nparent = 3\n\
                [[pe]]\nid = 3\nparent = 2\n[[pe]]\nid = 4\n";
    dir.put("t.toml", text);
    let line = dir.words("scatter --size 1 --tree file:@/t.toml");
    let finished = refused("25", "a cycle, two roots, an orphan", line);
    finished.stderr_has(&[
        "t.toml:6:10: P1: parent P9 does not exist",
        "t.toml:9:10: cycle: P2 -> P3 -> P2",
        "t.toml:14:6: several roots: P4",
    ]);
    let line = words("scatter --size 1 --tree path:1000000");
    let finished = refused("25", "a million PEs on one machine", line);
    finished.stderr_has(&["path:1000000 has 1000000 PEs: at most 1024"]);
}
