//! Messages that no correct sender creates: each is refused and leaves no trace.

use std::fs;
use std::io;
use std::path::Path;

use std::sync::Arc;

use crate::support::{NONCE, names, target};
use flitcast_node::payload::{PayloadError, Refusal, Target, Unpacker};
use flitcast_proto::wire::pb::{Archived, ExtendedAttribute, FileEntry, file_entry::Kind};
use prost::Message;

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

/// Returns a directory, a file and a symlink with this path.
fn of_each_kind(path: &str) -> [FileEntry; 3] {
    [directory(path), file(path), symlink(path, "target")]
}

fn symlink(path: &str, target: &str) -> FileEntry {
    FileEntry {
        target: target.as_bytes().to_vec().into(),
        ..entry(Kind::Symlink, path)
    }
}

/// Delivers these bytes into a directory that must be empty afterwards.
fn refusal_of(message: &[u8]) -> io::Result<PayloadError> {
    refusal_at(message, false)
}

fn refusal_at(message: &[u8], is_archive: bool) -> io::Result<PayloadError> {
    let dir = tempfile::tempdir()?;
    let target = Target {
        is_archive,
        ..target(&dir.path().join("p1"))
    };
    let deliver = || {
        let mut unpacker = Unpacker::create(target, Arc::default())?;
        message
            .chunks(5)
            .try_for_each(|piece| unpacker.write(piece))?;
        unpacker.commit().map(drop)
    };
    let refused = deliver();
    assert!(names(dir.path())?.is_empty(), "staging is gone");
    Ok(refused.expect_err("it must be refused"))
}

#[track_caller]
fn assert_refused(entries: &[FileEntry], expected: Refusal) {
    assert_refused_in(false, entries, expected);
}

#[track_caller]
fn assert_refused_in(is_archive: bool, entries: &[FileEntry], expected: Refusal) {
    let encoded = entries.iter().map(Message::encode_length_delimited_to_vec);
    let message: Vec<u8> = encoded.flatten().collect();
    match refusal_at(&message, is_archive).expect("a temporary directory") {
        PayloadError::Refused(_, why) => assert_eq!(why, expected),
        other => panic!("{other}"),
    }
}

#[test]
fn paths_that_could_leave() {
    for path in "/ /etc/passwd .. ../x a/.. a/../b . ./a a/. a//b a/ a\0b".split(' ') {
        for odd in of_each_kind(path) {
            assert_refused(&[directory(""), directory("a"), odd], Refusal::PathNotPlain);
        }
    }
    let long = file(&"n/".repeat(2049));
    assert_refused(&[directory(""), long], Refusal::PathTooLong);
}

#[test]
fn symlinks_that_could_leave() {
    for target in ["/etc/passwd", "..", "../x", "a/../../x", ""] {
        let refused = Refusal::SymlinkLeaves(target.into());
        assert_refused(&[directory(""), symlink("link", target)], refused);
    }
    let long = symlink("link", &"t".repeat(4097));
    assert_refused(&[directory(""), long], Refusal::PathTooLong);
    assert_refused(&[symlink("", "target")], Refusal::RootSymlink);
}

fn hard_link(path: &str, target: &str) -> FileEntry {
    FileEntry {
        target: target.as_bytes().to_vec().into(),
        mode: 0,
        ..entry(Kind::HardLink, path)
    }
}

/// A hard link has the path of an earlier regular file, without symlinks on the way.
#[test]
fn hard_links_that_could_leave() {
    let before = [
        directory(""),
        directory("d"),
        file("d/f"),
        symlink("l", "d"),
    ];
    let with = |last: FileEntry| [&before[..], &[last]].concat();
    for target in "/etc/passwd ../p2 d/../d/f ./d/f d//f d/f/".split(' ') {
        assert_refused_in(true, &with(hard_link("x", target)), Refusal::PathNotPlain);
    }
    for target in [
        "",
        "nothing",
        "d",
        "d/nothing",
        "nothing/f",
        "l",
        "l/f",
        "d/f/g",
        "x",
    ] {
        assert_refused_in(true, &with(hard_link("x", target)), Refusal::HardLinkTarget);
    }
    assert_refused_in(true, &with(hard_link("d", "d/f")), Refusal::Duplicate);
    assert_refused_in(true, &[hard_link("", "f")], Refusal::HardLinkTarget);
    assert_refused(&with(hard_link("x", "d/f")), Refusal::NotArchive);
    let why = Refusal::Malformed("attributes that its kind does not have");
    let with_mode = FileEntry {
        mode: 0o777,
        ..hard_link("x", "d/f")
    };
    assert_refused_in(true, &with(with_mode), why);
}

#[test]
fn attributes_that_are_not_of_an_archive() {
    let one = |name: &str, bytes| ExtendedAttribute {
        name: name.as_bytes().to_vec().into(),
        value: vec![0; bytes].into(),
    };
    let archived = |uid, extended: &[ExtendedAttribute]| {
        let archived = Archived {
            uid,
            gid: 0,
            extended: extended.to_vec(),
        };
        FileEntry {
            archived: Some(archived),
            ..file("")
        }
    };
    let refused = |entry, why| assert_refused_in(true, &[entry], why);
    let is_none = || Refusal::Malformed("an owner that is not one");
    refused(archived(u32::MAX, &[]), is_none());
    let are_not_sent = || Refusal::Malformed("extended attributes that are not sent");
    for name in "trusted.overlay.opaque security.selinux system.other user user.\0 .".split(' ') {
        refused(archived(0, &[one(name, 1)]), are_not_sent());
    }
    let twice = [one("user.a", 1), one("user.a", 1)];
    refused(archived(0, &twice), are_not_sent());
    refused(
        archived(0, &[one("user.a", 128 << 10)]),
        Refusal::ExtendedTooLong,
    );
    let symlink = FileEntry {
        archived: archived(0, &[one("user.a", 1)]).archived,
        ..symlink("link", "target")
    };
    let why = Refusal::Malformed("attributes that its kind does not have");
    assert_refused_in(true, &[directory(""), symlink], why);
    assert_refused(&[archived(0, &[])], Refusal::NotArchive);
}

#[test]
fn entries_out_of_place() {
    assert_refused(&[file("a")], Refusal::BeforeRoot);
    assert_refused(&[file(""), file("a")], Refusal::BesideFile);
    assert_refused(&[file(""), file("")], Refusal::Duplicate);
    assert_refused(&[directory(""), directory("")], Refusal::Duplicate);
    // The content of a directory must follow it directly.
    for below in of_each_kind("a/b") {
        let left = [directory("a"), directory("b")];
        // Nothing is written through a symlink, which is not created yet.
        let link = [directory("d"), symlink("a", "d")];
        for before in [&left[..], &[], &[file("a")], &link] {
            let entries = [&[directory("")], before, std::slice::from_ref(&below)];
            assert_refused(&entries.concat(), Refusal::NoParent);
        }
    }
}

#[test]
fn the_same_path_twice() {
    for first in of_each_kind("a") {
        for second in of_each_kind("a") {
            let twice = [directory(""), first.clone(), second];
            assert_refused(&twice, Refusal::Duplicate);
        }
    }
    // The directory of a link's name is real until the commit, which refuses it.
    let [directory, _, link] = of_each_kind("a");
    let hidden = [self::directory(""), link, directory, file("a/x")];
    assert_refused(&hidden, Refusal::Duplicate);
}

#[test]
fn invalid_entries() {
    let refused = |mut entry: FileEntry, why, spoil: &dyn Fn(&mut FileEntry)| {
        spoil(&mut entry);
        assert_refused(&[entry], Refusal::Malformed(why));
    };
    let why = "unknown kind";
    refused(file(""), why, &|entry| entry.kind = 77);
    refused(FileEntry::default(), why, &|_| {});
    let why = "more nanoseconds than a second has";
    refused(file(""), why, &|entry| entry.mtime_nanos = 1_000_000_000);
    let why = "content without a file";
    refused(directory(""), why, &|entry| entry.size = 1);
    refused(directory(""), why, &|entry| entry.extents = vec![1]);
    let why = "extents that are not those of its size";
    for (extents, size) in [
        (vec![1], 2),
        (vec![3], 2),
        (vec![0, 1, 0, 1], 2),
        (vec![1, 0], 1),
        (vec![u64::MAX, 3], 2),
        (vec![1; 1026], 1026),
    ] {
        refused(file(""), why, &|entry| {
            entry.size = size;
            entry.extents = extents.clone();
        });
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
        let expected = "longer than any entry can be";
        assert!(refused.contains(expected), "{refused}");
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
    crate::support::unpack(&message, &[100], &destination, false)
        .expect("file systems clamp the time");
    assert_eq!(crate::support::describe(&destination)?[0].mode, 0o100_777);
    Ok(())
}

#[test]
fn after_a_refusal_nothing_can_be_committed() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut unpacker = crate::support::unpacker(&dir.path().join("p1"), false).expect("it is free");
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
    let error = crate::support::unpack(&root, &[9], &dir.path().join("p1"), false)
        .expect_err("the name is taken");
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
        let refused = crate::support::unpacker(Path::new(destination), false);
        let error = refused.err().expect("it cannot be").to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(!Path::new("/dev/null/p1").exists());
}
