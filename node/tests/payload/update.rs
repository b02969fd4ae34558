//! Files that are taken from the entry that a message replaces.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use flitcast_node::payload::{PayloadError, Refusal, Target, Unpacker, prefix_bytes};
use flitcast_proto::Update;
use flitcast_proto::wire::pb::{FileEntry, file_entry::Kind};
use prost::Message as _;

use crate::support::{
    self, NONCE, Scratch, UNDERTAKING, describe, names, rich_tree, target, touch, write_in,
};

fn updating(destination: &Path, run: u64) -> Target {
    Target {
        run,
        replace: true,
        is_kept: true,
        is_update: true,
        ..target(destination)
    }
}

/// Returns the message of `source` without the files that `destination` has.
fn rest(source: &Path, destination: &Path, update: Update) -> Vec<u8> {
    let rest = support::rest(source, destination, update, false);
    rest.expect("all can be read").0
}

fn deliver(message: &[u8], destination: &Path) -> Result<(), PayloadError> {
    let target = Target {
        is_kept: false,
        ..updating(destination, NONCE)
    };
    write_in(Unpacker::create(target, Arc::default())?, message, &[77])
}

/// Creates a source, and a destination that has an earlier state of it.
fn both() -> io::Result<Scratch> {
    let dir = Scratch::new()?;
    for root in [dir.join("source"), dir.join("out/p1")] {
        rich_tree(&root)?;
    }
    let source = dir.join("source");
    touch(
        &source.join("deep/er/still/file"),
        &[2; 3000],
        0o644,
        1 << 30,
        1235,
    )?;
    touch(
        &source.join("deep/run"),
        b"#!/bin/sh\n",
        0o700,
        -1_000,
        999_999_999,
    )?;
    touch(&source.join("zoo"), b"new", 0o600, 1, 1)?;
    Ok(dir)
}

#[test]
fn a_message_without_present_files_is_as_the_whole_one() -> io::Result<()> {
    for update in [Update::ByTime, Update::ByContent] {
        let dir = both()?;
        let (source, destination) = (dir.join("source"), dir.join("out/p1"));
        let kept = destination.join("locked/inside");
        let inode = fs::metadata(&kept)?.ino();
        let message = rest(&source, &destination, update);
        let whole = rest(&source, Path::new("nowhere"), update);
        // The files are short; a digest of the content can be longer than they are.
        assert!(update == Update::ByContent || message.len() < whole.len());
        deliver(&message, &destination).expect("it is complete");
        assert_eq!(describe(&destination)?, describe(&source)?);
        assert_eq!(fs::metadata(&kept)?.ino(), inode);
        assert_eq!(fs::metadata(&kept)?.nlink(), 1);
        assert_eq!(names(&dir.join("out"))?, ["p1"]);
    }
    Ok(())
}

/// A message that is cut off at any byte leaves the old state, and a later run continues it.
#[test]
fn a_message_can_be_cut_off_anywhere() -> io::Result<()> {
    let dir = both()?;
    let (source, old) = (dir.join("source"), dir.join("out/p1"));
    let message = rest(&source, &old, Update::ByTime);
    for cut in (0..message.len()).step_by(61) {
        let dir = both()?;
        let destination = dir.join("out/p1");
        let before = describe(&destination)?;
        let unpacker = Unpacker::create(updating(&destination, NONCE), Arc::default());
        let mut unpacker = unpacker.expect("it replaces what is there");
        unpacker
            .write(&message[..cut])
            .expect("it is a good message");
        drop(unpacker);
        assert_eq!(describe(&destination)?, before);
        let there = prefix_bytes(destination.clone(), UNDERTAKING, false);
        assert!(there <= cut as u64);
        let next_run = updating(&destination, NONCE + 1);
        let unpacker = match there {
            0 => Unpacker::create(next_run, Arc::default()),
            _ => Unpacker::resume(next_run, there, Arc::default()).map(|(unpacker, _)| unpacker),
        };
        let unpacker = unpacker.expect("the prefix is there");
        write_in(unpacker, &message[there as usize..], &[77]).expect("it is complete");
        assert_eq!(describe(&destination)?, describe(&source)?);
        assert_eq!(names(&dir.join("out"))?, ["p1"]);
    }
    Ok(())
}

/// A file of the destination that is not what was compared ends the message; the old state stays.
#[test]
fn a_file_that_has_changed_is_not_taken() -> io::Result<()> {
    let elsewhere = Scratch::new()?;
    rich_tree(&elsewhere.join("rich"))?;
    let changes: [fn(&Path, &Path) -> io::Result<()>; 5] = [
        |file, _| fs::write(file, "other"),
        |file, _| fs::remove_file(file),
        |file, _| touch(file, b"read-only direct0ry", 0o644, 9, 9),
        |file, elsewhere| {
            fs::remove_file(file)?;
            symlink(elsewhere.join("locked/inside"), file)
        },
        |file, elsewhere| {
            let folder = file.parent().expect("it is in a folder");
            fs::remove_dir_all(folder)?;
            symlink(elsewhere.join("locked"), folder)
        },
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let dir = both()?;
        let (source, destination) = (dir.join("source"), dir.join("out/p1"));
        let message = rest(&source, &destination, Update::ByContent);
        let file = destination.join("locked/inside");
        fs::set_permissions(destination.join("locked"), Permissions::from_mode(0o700))?;
        fs::set_permissions(&file, Permissions::from_mode(0o600))?;
        change(&file, &elsewhere.join("rich"))?;
        let before = describe(&destination)?;
        let refused = deliver(&message, &destination).expect_err("it is not there any more");
        assert!(
            matches!(refused, PayloadError::NoLongerPresent(_)),
            "{i}: {refused}"
        );
        assert_eq!(describe(&destination)?, before, "{i}");
        assert_eq!(names(&dir.join("out"))?, ["p1"], "{i}");
    }
    Ok(())
}

/// Setting the mode of a second name would set that of the replaced entry's file.
#[test]
fn a_file_with_other_attributes_is_copied() -> io::Result<()> {
    let dir = both()?;
    let (source, destination) = (dir.join("source"), dir.join("out/p1"));
    let file = destination.join("deep/run");
    fs::set_permissions(&file, Permissions::from_mode(0o4700))?;
    let inode = fs::metadata(&file)?.ino();
    let message = rest(&source, &destination, Update::ByTime);
    deliver(&message, &destination).expect("it is complete");
    assert_eq!(describe(&destination)?, describe(&source)?);
    assert_ne!(fs::metadata(&file)?.ino(), inode);
    Ok(())
}

#[test]
fn only_whole_files_are_present() -> io::Result<()> {
    let entry = |kind: Kind, path: &[u8]| FileEntry {
        path: path.to_vec().into(),
        kind: kind.into(),
        mode: 0o755,
        present: true,
        ..FileEntry::default()
    };
    let sparse = FileEntry {
        size: 4,
        extents: vec![2, 2],
        ..entry(Kind::File, b"")
    };
    let short_digest = FileEntry {
        content: vec![1; 15].into(),
        ..entry(Kind::File, b"")
    };
    let digest_alone = FileEntry {
        content: vec![1; 16].into(),
        present: false,
        ..entry(Kind::File, b"")
    };
    for entry in [
        entry(Kind::Directory, b""),
        sparse,
        short_digest,
        digest_alone,
    ] {
        let dir = Scratch::new()?;
        let message = entry.encode_length_delimited_to_vec();
        let refused = deliver(&message, &dir.join("p1")).expect_err("it is malformed");
        let is_malformed = matches!(refused, PayloadError::Refused(_, Refusal::Malformed(_)));
        assert!(is_malformed, "{refused}");
    }
    // Without an entry that is replaced.
    let dir = Scratch::new()?;
    let message = entry(Kind::File, b"").encode_length_delimited_to_vec();
    let refused = deliver(&message, &dir.join("p1")).expect_err("it is not there");
    assert!(
        matches!(refused, PayloadError::NoLongerPresent(_)),
        "{refused}"
    );
    assert!(names(dir.path())?.is_empty());
    Ok(())
}
