//! Messages made of files, from the sender's tree to the receiver's: delivered entries, and the
//! directories on both sides after errors.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::support::{
    Scratch, describe, entry_ends, measured, names, pack, rich_message, set_mtime, touch, unpack,
    unpacker,
};
use flitcast_node::activity_monitor::ActivityMonitor;
use flitcast_node::payload::{Content, Others, Packer, PayloadError, Selection, Unpacker, deal};
use flitcast_proto::PeId;
use proptest::prelude::*;

fn among(pes: usize) -> Others<'static> {
    Others {
        root: Some(PeId::ROOT),
        ..Others::all(pes)
    }
}

#[test]
fn file_arrives_as_it_was() -> io::Result<()> {
    let dir = Scratch::new()?;
    for content in ["", "content"] {
        let source = dir.path().join("source");
        fs::write(&source, content)?;
        fs::set_permissions(&source, Permissions::from_mode(0o4751))?;
        // Unlike a directory's, a file's time is kept even if it is 0.
        set_mtime(&source, 0, 0)?;
        let message = pack(&Content::Entry(source), &[3]);
        let destination = dir.path().join("p1");
        unpack(&message, &[2], &destination, true).expect("it is a good message");
        let arrived = describe(&destination)?;
        assert_eq!(arrived.len(), 1);
        assert_eq!(arrived[0].mode, 0o100_751, "setuid is stripped");
        assert_eq!(arrived[0].mtime, (0, 0));
        assert_eq!(arrived[0].content, content.as_bytes());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_tree_in_any_pieces(
        files in prop::collection::btree_map(
            "[a-c](/[a-c ]){0,3}[.]f",
            (prop::collection::vec(any::<u8>(), 0..300), 0u32..0o1000, any::<i32>(), 0u32..1_000_000_000),
            0..12,
        ),
        sent_in in prop::collection::vec(1usize..200, 1..8),
        received_in in prop::collection::vec(1usize..200, 1..8),
        pes in 2usize..5,
    ) {
        let dir = Scratch::new()?;
        let source = dir.path().join("source");
        fs::create_dir(&source)?;
        for (name, (content, mode, seconds, nanos)) in files {
            touch(&source.join(name), &content, mode | 0o400, i64::from(seconds), nanos)?;
        }
        // `pack` asserts that the message has the measured length.
        let whole = Content::Entry(source.clone());
        let dealt = deal(&source, &Selection::default(), among(pes)).expect("it is readable");
        for (pe, content) in dealt.iter().flatten().chain([&whole]).enumerate() {
            let message = pack(content, &sent_in);
            let destination = dir.path().join(format!("p{pe}"));
            unpack(&message, &received_in, &destination, false).expect("it is good");
            let (arrived, sent) = (describe(&destination)?, describe(&source)?);
            if *content == whole {
                prop_assert_eq!(arrived, sent);
            } else {
                prop_assert_eq!(arrived[0].mode, 0o040_755);
                prop_assert!(arrived[1..].iter().all(|entry| sent.contains(entry)));
            }
        }
    }
}

/// A time much longer than the resolution of the clock.
const QUIET_MS: u64 = 40;

/// An observer of a PE sees its progress, file by file.
#[test]
fn each_entry_that_is_finished_shows() -> io::Result<()> {
    let (dir, _, message) = rich_message()?;
    let pulse = Arc::new(ActivityMonitor::default());
    let unpacker = Unpacker::create(crate::support::target(&dir.join("p1")), pulse.clone());
    let mut unpacker = unpacker.expect("it is free");
    let mut start = 0;
    for end in entry_ends(&message) {
        while pulse.pong(false).files_quiet_ms < QUIET_MS {
            std::thread::yield_now();
        }
        let began = Instant::now();
        let entry = &message[start..end];
        unpacker.write(entry).expect("it is a good message");
        let quiet_ms = u128::from(pulse.pong(false).files_quiet_ms);
        let took_ms = began.elapsed().as_millis();
        // A directory is finished when it is left.
        let is_done = quiet_ms <= took_ms + u128::from(QUIET_MS / 2);
        let is_directory = crate::support::is_directory(entry);
        assert!(is_done || is_directory, "{quiet_ms} of {took_ms} ms");
        start = end;
    }
    unpacker.commit().expect("it is whole");
    Ok(())
}

/// Packs `dir/big` and `dir/later` half, applies `change`, and packs on.
fn change_while_packing(change: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<String> {
    let dir = Scratch::new()?;
    touch(&dir.path().join("big"), &[7; 1000], 0o644, 1_000_000, 5)?;
    touch(&dir.path().join("later"), b"later", 0o644, 1_000_000, 5)?;
    let message = measured(&Content::Entry(dir.path().into()));
    let mut packer = Packer::of(&message).expect("it has just been measured");
    let mut buf = [0; 500];
    let half = packer.fill(&mut buf).expect("nothing has changed yet");
    change(dir.path())?;
    let mut given_out = half as u64;
    let error = loop {
        match packer.fill(&mut buf) {
            Ok(0) => panic!("the change went unnoticed"),
            Ok(bytes) => given_out += bytes as u64,
            Err(error) => break error,
        }
    };
    assert!(given_out <= message.measured.bytes);
    assert!(matches!(error, PayloadError::Changed { .. }), "{error}");
    let dir = dir.path().display().to_string();
    Ok(error.to_string().replace(&dir, "dir"))
}

type Change<'a> = &'a dyn Fn(&Path) -> io::Result<()>;

#[test]
fn change_while_packing_is_noticed() -> io::Result<()> {
    let big = |dir: &Path| File::options().write(true).open(dir.join("big"));
    let later = |dir: &Path, content: &str| fs::write(dir.join("later"), content);
    let write = |dir: &Path| touch(&dir.join("big"), &[8; 1000], 0o644, 2, 0);
    let changes: [(&str, Change); 6] = [
        ("`dir/big`", &|dir| big(dir)?.set_len(600)),
        ("`dir/big`", &|dir| big(dir)?.set_len(2000)),
        ("`dir/big`", &write),
        ("`dir/later`", &|dir| fs::remove_file(dir.join("later"))),
        ("`dir/later`", &|dir| later(dir, "longer")),
        ("`dir/later`", &|dir| later(dir, "l")),
    ];
    for (place, change) in changes {
        let error = change_while_packing(change)?;
        let expected = format!("{place} changed while it was being read");
        assert!(error.starts_with(&expected), "{expected}: {error}");
    }
    let dir = Scratch::new()?;
    fs::write(dir.join("gone"), "")?;
    let message = measured(&Content::Entry(dir.join("gone")));
    fs::remove_file(dir.join("gone"))?;
    let missing = Packer::of(&message);
    assert!(matches!(missing, Err(PayloadError::Changed { .. })));
    Ok(())
}

#[test]
fn existing_destination_stays_unless_replaced() -> io::Result<()> {
    let (dir, source, message) = rich_message()?;
    let destination = dir.join("p2");
    fs::write(&destination, "precious")?;
    let early = unpack(&message, &[4096], &destination, false).expect_err("it is taken");
    assert!(matches!(early, PayloadError::Exists { .. }), "{early}");
    assert_eq!(fs::read(&destination)?, b"precious");
    // Taken only after the message began.
    fs::remove_file(&destination)?;
    let mut unpacker = unpacker(&destination, false).expect("it is free");
    unpacker.write(&message).expect("it is a good message");
    fs::write(&destination, "precious")?;
    let late = unpacker.commit().expect_err("it is taken");
    assert!(matches!(late, PayloadError::Exists { .. }), "{late}");
    assert_eq!(fs::read(&destination)?, b"precious");
    assert_eq!(names(dir.path())?, ["p2", "source"]);

    // A directory replaces a file, and then itself.
    for _ in 0..2 {
        unpack(&message, &[4096], &destination, true).expect("it may be replaced");
        assert_eq!(describe(&destination)?, describe(&source)?);
        assert_eq!(names(dir.path())?, ["p2", "source"]);
    }
    Ok(())
}

#[test]
fn no_part_of_a_message_is_ever_visible() -> io::Result<()> {
    let (dir, _, message) = rich_message()?;
    let output = dir.join("output");
    fs::create_dir(&output)?;
    let ends = entry_ends(&message);
    let around = |&end: &usize| [end / 2, end - 1, end, end + 1];
    for end in ends.iter().flat_map(around) {
        let end = end.min(message.len());
        let mut unpacker = unpacker(&output.join("p2"), false).expect("it is free");
        unpacker.write(&message[..end]).expect("so far it is good");
        if ends.contains(&end) {
            // Complete as far as this check goes; the digest detects more.
            drop(unpacker);
        } else {
            let error = unpacker.commit().expect_err("it ends in mid-entry");
            assert!(matches!(error, PayloadError::Incomplete { .. }), "{error}");
        }
        assert!(names(&output)?.is_empty());
    }
    Ok(())
}

/// If the staged entry is removed, its bytes are lost, which is detected before the end.
#[test]
fn a_removed_staging_is_noticed_at_the_next_block() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let input = dir.path().join("input");
    fs::create_dir(&input)?;
    fs::write(input.join("a"), vec![7; 1000])?;
    fs::write(input.join("b"), vec![8; 1000])?;
    let message = pack(&Content::Entry(input.clone()), &[64 * 1024]);
    let ends = entry_ends(&message);
    for (cut, action) in [(ends[1] - 1, "write"), (ends[1], "create")] {
        let output = dir.path().join("output");
        fs::create_dir(&output)?;
        let unpacker = unpacker(&output.join("p1"), false);
        let mut unpacker = unpacker.expect("it is free");
        unpacker.write(&message[..cut]).expect("it is there");
        fs::remove_dir_all(&output)?;
        let error = unpacker.write(&message[cut..]).expect_err("it is gone");
        let text = error.to_string();
        let place = output.join("p1").display().to_string();
        assert!(text.contains(action) && text.contains(&place), "{text}");
        assert!(text.contains("No such file or directory"), "{text}");
    }
    Ok(())
}

/// The inode distinguishes a file of the same path, length and time, and the time of its last
/// change a file that was written in place.
#[test]
fn every_reading_is_of_the_version_that_was_measured() -> io::Result<()> {
    let dir = Scratch::new()?;
    let root = dir.path().join("p1");
    let file = root.join("file");
    let write = |bytes: &[u8], path: &Path| -> io::Result<()> {
        fs::write(path, bytes)?;
        File::options()
            .write(true)
            .open(path)?
            .set_modified(std::time::UNIX_EPOCH)
    };
    fs::create_dir(&root)?;
    write(b"old", &file)?;
    File::open(&root)?.set_modified(std::time::UNIX_EPOCH)?;
    let measured = measured(&Content::Entry(root.clone()));
    let read = || {
        let mut all = [0; 1000];
        let filled = Packer::of(&measured)?.fill(&mut all)?;
        Ok::<_, PayloadError>(all[..filled].to_vec())
    };
    let whole = read().expect("it is as it was");
    assert_eq!(read().expect("it is as it was"), whole);
    let changes: [&dyn Fn() -> io::Result<()>; 2] = [&|| write(b"new", &file), &|| {
        write(b"old", &dir.path().join("aside"))?;
        fs::rename(dir.path().join("aside"), &file)
    }];
    for change in changes {
        change()?;
        File::open(&root)?.set_modified(std::time::UNIX_EPOCH)?;
        let error = read().expect_err("it is another version");
        assert!(error.to_string().contains("file` changed"), "{error}");
    }
    Ok(())
}

/// A process that has a file open reads it to its end, even if its name is given to another file.
#[test]
fn a_message_of_one_file_is_kept_open() -> io::Result<()> {
    let dir = Scratch::new()?;
    let file = dir.path().join("p1");
    fs::write(&file, "old")?;
    let mut measured = measured(&Content::Entry(file.clone()));
    measured.hold_open().expect("it is as it was");
    fs::write(dir.path().join("aside"), "new")?;
    fs::rename(dir.path().join("aside"), &file)?;
    for _ in 0..2 {
        let mut all = [0; 1000];
        let mut packer = Packer::of(&measured).expect("it is open");
        let filled = packer.fill(&mut all).expect("it is as it was");
        assert!(all[..filled].ends_with(b"old"));
    }
    Ok(())
}
