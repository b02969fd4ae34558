//! Messages that no correct sender creates: each is refused and leaves no trace.

mod support;

use std::fs;
use std::io;
use std::path::Path;

use flitcast_node::payload::{PayloadError, Refusal};
use flitcast_proto::wire::pb::{FileEntry, file_entry::Kind};
use prost::Message;
use support::{NONCE, names};

fn entry(kind: Kind, path: &str) -> FileEntry {
    FileEntry {
        path: path.as_bytes().to_vec().into(),
        kind: kind.into(),
        mode: 0o755,
        ..FileEntry::default()
    }
}

fn directory(path: &str) -> FileEntry {
    entry(Kind::Directory, path)
}

/// Returns an empty file.
fn file(path: &str) -> FileEntry {
    entry(Kind::File, path)
}

fn symlink(path: &str, target: &str) -> FileEntry {
    FileEntry {
        target: target.as_bytes().to_vec().into(),
        ..entry(Kind::Symlink, path)
    }
}

/// Delivers these bytes into a directory that must be empty afterwards.
fn refusal_of(message: &[u8]) -> io::Result<PayloadError> {
    let dir = tempfile::tempdir()?;
    let refused = support::unpack(message, &[5], &dir.path().join("p1"), false);
    assert!(names(dir.path())?.is_empty(), "staging is gone");
    Ok(refused.expect_err("it must be refused"))
}

#[track_caller]
fn assert_refused(entries: &[FileEntry], expected: Refusal) {
    let message: Vec<u8> = entries
        .iter()
        .flat_map(Message::encode_length_delimited_to_vec)
        .collect();
    match refusal_of(&message).expect("a temporary directory") {
        PayloadError::Refused(_, why) => assert_eq!(why, expected),
        other => panic!("{other}"),
    }
}

#[test]
fn paths_that_could_leave() {
    for path in [
        "/",
        "/etc/passwd",
        "..",
        "../x",
        "a/..",
        "a/../b",
        ".",
        "./a",
        "a/.",
        "a//b",
        "a/",
        "a\0b",
    ] {
        for odd in [directory(path), file(path), symlink(path, "target")] {
            assert_refused(&[directory(""), directory("a"), odd], Refusal::PathNotPlain);
        }
    }
    assert_refused(
        &[directory(""), file(&"n/".repeat(2049))],
        Refusal::PathTooLong,
    );
}

#[test]
fn symlinks_that_could_leave() {
    for target in ["/etc/passwd", "..", "../x", "a/../../x", ""] {
        let refused = Refusal::SymlinkLeaves(target.into());
        assert_refused(&[directory(""), symlink("link", target)], refused);
    }
    let long = "t".repeat(4097);
    assert_refused(
        &[directory(""), symlink("link", &long)],
        Refusal::PathTooLong,
    );
    assert_refused(&[symlink("", "target")], Refusal::RootSymlink);
}

#[test]
fn entries_out_of_place() {
    assert_refused(&[file("a")], Refusal::BeforeRoot);
    assert_refused(&[file(""), file("a")], Refusal::BesideFile);
    assert_refused(&[file(""), file("")], Refusal::Duplicate);
    assert_refused(&[directory(""), directory("")], Refusal::Duplicate);
    // The content of a directory must follow it directly.
    for late in [directory("a/b"), file("a/b"), symlink("a/b", "c")] {
        let left = [directory(""), directory("a"), directory("b"), late];
        assert_refused(&left, Refusal::NoParent);
    }
    for below in [directory("a/b"), file("a/b"), symlink("a/b", "c")] {
        assert_refused(&[directory(""), below.clone()], Refusal::NoParent);
        assert_refused(
            &[directory(""), file("a"), below.clone()],
            Refusal::NoParent,
        );
        // Nothing is written through a symlink, which is not created yet.
        let through = [directory(""), directory("d"), symlink("a", "d"), below];
        assert_refused(&through, Refusal::NoParent);
    }
}

#[test]
fn the_same_path_twice() {
    let all = [directory("a"), file("a"), symlink("a", "b")];
    for first in &all {
        for second in &all {
            let twice = [directory(""), first.clone(), second.clone()];
            assert_refused(&twice, Refusal::Duplicate);
        }
    }
    // The directory of a link's name is real until the commit, which refuses it.
    let hidden = [
        directory(""),
        symlink("a", "b"),
        directory("a"),
        file("a/x"),
    ];
    assert_refused(&hidden, Refusal::Duplicate);
}

#[test]
fn entries_that_are_none() {
    let unknown = FileEntry {
        kind: 77,
        ..file("")
    };
    assert_refused(&[unknown], Refusal::Malformed("unknown kind"));
    assert_refused(&[FileEntry::default()], Refusal::Malformed("unknown kind"));
    let late = FileEntry {
        mtime_nanos: 1_000_000_000,
        ..file("")
    };
    assert_refused(
        &[late],
        Refusal::Malformed("more nanoseconds than a second has"),
    );
    let full = FileEntry {
        size: 1,
        ..directory("")
    };
    assert_refused(&[full], Refusal::Malformed("content without a file"));
    let holes = FileEntry {
        extents: vec![1],
        ..directory("")
    };
    assert_refused(&[holes], Refusal::Malformed("content without a file"));
    for extents in [vec![2], vec![u64::MAX, 3], vec![0, 1, 0, 1], vec![1; 4000]] {
        let wrong = FileEntry {
            size: 1,
            extents,
            ..file("")
        };
        let why = "extents that are not those of its size";
        assert_refused(&[wrong], Refusal::Malformed(why));
    }
}

#[test]
fn lengths_beyond_the_bound() -> io::Result<()> {
    for prefix in [
        // 16 KiB and one byte; 2^21; bytes without an end.
        &[0x81, 0x80, 0x01][..],
        &[0x80, 0x80, 0x80, 0x01],
        &[0xff; 20],
    ] {
        let refused = refusal_of(prefix)?.to_string();
        assert!(
            refused.contains("longer than any entry can be"),
            "{refused}"
        );
    }
    let garbage = refusal_of(&[3, 0xff, 0xff, 0xff])?.to_string();
    assert!(garbage.contains("not a FileEntry"), "{garbage}");
    Ok(())
}

#[test]
fn mode_and_mtime_of_any_value_are_survived() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let destination = dir.path().join("p1");
    let extreme = FileEntry {
        mode: u32::MAX,
        mtime_seconds: i64::MAX,
        mtime_nanos: 999_999_999,
        ..file("")
    };
    let message = extreme.encode_length_delimited_to_vec();
    support::unpack(&message, &[100], &destination, false).expect("file systems clamp the time");
    assert_eq!(support::describe(&destination)?[0].mode, 0o100_777);
    Ok(())
}

#[test]
fn after_a_refusal_nothing_can_be_committed() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut unpacker = support::unpacker(&dir.path().join("p1"), false).expect("it is free");
    let root = directory("").encode_length_delimited_to_vec();
    unpacker.write(&root).expect("it is a good root");
    unpacker.write(&root).expect_err("it is a second root");
    let error = unpacker.commit().expect_err("it is not whole");
    assert!(matches!(error, PayloadError::Incomplete { .. }), "{error}");
    assert!(names(dir.path())?.is_empty());
    Ok(())
}

#[test]
fn leftover_of_the_same_name_is_not_ours() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let leftover = format!(".flitcast-{NONCE:016x}-p1.partial");
    fs::write(dir.path().join(&leftover), "another's")?;
    let root = directory("").encode_length_delimited_to_vec();
    let error =
        support::unpack(&root, &[9], &dir.path().join("p1"), false).expect_err("the name is taken");
    assert!(error.to_string().contains(&leftover), "{error}");
    assert_eq!(names(dir.path())?, [leftover]);
    Ok(())
}

#[test]
fn destinations_that_cannot_be() {
    for (destination, why) in [
        ("/nowhere/at/all/p1", "No such file"),
        ("/dev/null/p1", "Not a directory"),
        ("/", "no file name"),
    ] {
        let refused = support::unpacker(Path::new(destination), false);
        let error = refused.err().expect("it cannot be").to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(!Path::new("/dev/null/p1").exists());
}
