//! Messages that were cut off and are continued by a later run of the same job.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::support::{
    NONCE, Scratch, UNDERTAKING, describe, measured, names, pack, rich_message, rich_tree, target,
    touch,
};
use flitcast_node::payload::{Content, Packer, PayloadError, Target, Unpacker, prefix_bytes};
use flitcast_proto::wire::flit::Digest;
use proptest::prelude::*;
use twox_hash::XxHash3_128;

/// Returns the place of a message that is kept, as a run has it.
fn kept(destination: &Path, run: u64) -> Target {
    Target {
        run,
        is_kept: true,
        ..target(destination)
    }
}

/// Changes the heads of a message that is kept in this directory as `p1`.
fn damage(dir: &Scratch, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
    let path = dir.join(&format!(".flitcast-{UNDERTAKING:016x}-p1.heads"));
    let mut content = fs::read(&path)?;
    change(&mut content);
    fs::write(&path, content)
}

/// Delivers all of a message where a part of it has been left.
fn deliver_whole(message: &[u8], destination: &Path) {
    let whole = Unpacker::create(kept(destination, NONCE + 1), Arc::default());
    let mut whole = whole.expect("nothing of it is visible");
    whole.write(message).expect("what was left makes way");
    whole.commit().expect("it is complete");
}

fn digest(bytes: &[u8]) -> Digest {
    XxHash3_128::oneshot(bytes).to_be_bytes()
}

/// Writes the beginning of a message and stops there, as a PE does that is killed.
fn cut_off(message: &[u8], destination: &Path) {
    let unpacker = Unpacker::create(kept(destination, NONCE), Arc::default());
    let mut unpacker = unpacker.expect("the place is free");
    for piece in message.chunks(100) {
        unpacker.write(piece).expect("it is a good message");
    }
}

/// Continues a message behind its first `bytes` bytes, and delivers it.
fn continue_delivery(message: &[u8], bytes: usize, destination: &Path) -> Result<(), PayloadError> {
    let next_run = kept(destination, NONCE + 1);
    let (mut unpacker, prefix) = Unpacker::resume(next_run, bytes as u64, Arc::default())?;
    assert_eq!(prefix, digest(&message[..bytes]));
    for piece in message[bytes..].chunks(77) {
        unpacker.write(piece)?;
    }
    let whole = unpacker.commit()?;
    assert_eq!(whole, digest(message));
    Ok(())
}

/// Cuts a message off at each of these lengths, and continues it behind all and behind a part of
/// what has arrived.
fn assert_continued(source: &Path, cuts: impl IntoIterator<Item = usize>) -> io::Result<()> {
    let message = pack(&Content::Entry(source.to_owned()), &[4096]);
    let sent = describe(source)?;
    for cut in cuts.into_iter().filter(|cut| *cut < message.len()) {
        for part in [1, 2] {
            let dir = Scratch::new()?;
            let destination = dir.join("p1");
            cut_off(&message[..cut], &destination);
            let there = prefix_bytes(destination.clone(), UNDERTAKING, false) as usize;
            assert!(there <= cut, "{there} of {cut}");
            let other_job = prefix_bytes(destination.clone(), UNDERTAKING + 1, false);
            assert_eq!(other_job, 0);
            let bytes = there / part;
            // A prefix ends behind the message's first head at the earliest.
            if bytes > 40 {
                continue_delivery(&message, bytes, &destination).expect("it is as it was left");
            } else {
                deliver_whole(&message, &destination);
            }
            assert_eq!(describe(&destination)?, sent, "{bytes} of {cut}");
            assert_eq!(names(dir.path())?, ["p1"], "{bytes} of {cut}");
        }
    }
    Ok(())
}

#[test]
fn a_tree_of_all_kinds_is_continued_wherever_it_was_cut() -> io::Result<()> {
    let dir = Scratch::new()?;
    let source = dir.join("source");
    rich_tree(&source)?;
    assert_continued(&source, (0..).step_by(41).take(200))
}

#[test]
fn a_file_with_zeros_is_continued() -> io::Result<()> {
    let dir = Scratch::new()?;
    let source = dir.join("source");
    let parts = [(1, 5000), (0, 20_000), (2, 10_000), (0, 9000)];
    let content = parts.map(|(byte, count)| vec![byte; count]).concat();
    touch(&source, &content, 0o440, 7, 7)?;
    assert_continued(&source, (0..).step_by(1999).take(40))?;
    // The measured length is at least that of the data that has arrived.
    let message = pack(&Content::Entry(source), &[4096]);
    let destination = dir.join("p1");
    cut_off(&message[..30_000], &destination);
    let there = prefix_bytes(destination, UNDERTAKING, false);
    assert!((29_000..=30_000).contains(&there), "{there}");
    Ok(())
}

#[test]
fn damaged_heads_are_never_taken_for_what_arrived() -> io::Result<()> {
    let (dir, source, message) = rich_message()?;
    let damages: [fn(&mut Vec<u8>); 4] = [
        |heads| heads.clear(),
        |heads| heads[0] = 0xff,
        |heads| heads[10] ^= 0x40,
        |heads| heads.extend([0xff; 20]),
    ];
    for change in damages {
        let destination = dir.join("p1");
        cut_off(&message[..message.len() - 500], &destination);
        damage(&dir, change)?;
        let bytes = prefix_bytes(destination.clone(), UNDERTAKING, false) as usize;
        let resumed = Unpacker::resume(kept(&destination, 9), bytes as u64, Arc::default());
        let is_right = |found: Digest| bytes > 0 && found == digest(&message[..bytes]);
        match resumed {
            // Behind the heads of what has arrived, damage does not matter.
            Ok((mut unpacker, found)) if is_right(found) => {
                unpacker.write(&message[bytes..]).expect("it is the rest");
                unpacker.commit().expect("it is complete");
            }
            resumed => {
                drop(resumed);
                deliver_whole(&message, &destination);
            }
        }
        assert_eq!(describe(&destination)?, describe(&source)?);
        assert_eq!(names(dir.path())?, ["p1", "source"]);
        flitcast_node::payload::remove(&destination)?;
    }
    Ok(())
}

/// Two runs of a job never write to the same place.
#[test]
fn a_part_that_is_being_written_is_left_alone() -> io::Result<()> {
    let dir = Scratch::new()?;
    let source = dir.join("source");
    fs::write(&source, vec![7; 10_000])?;
    let message = pack(&Content::Entry(source), &[4096]);
    let destination = dir.join("p1");
    let first = Unpacker::create(kept(&destination, NONCE), Arc::default());
    let mut first = first.expect("it is free");
    first.write(&message[..5000]).expect("it is a good message");
    assert_eq!(prefix_bytes(destination.clone(), UNDERTAKING, false), 0);
    deliver_whole(&message, &destination);
    first.write(&message[5000..]).expect("nothing was removed");
    first.commit().expect("the job replaces what was delivered");
    assert_eq!(fs::read(&destination)?, vec![7; 10_000]);
    assert_eq!(names(dir.path())?, ["p1", "source"]);
    Ok(())
}

#[test]
fn a_source_skips_bytes_that_are_not_sent() -> io::Result<()> {
    let (_dir, source, message) = rich_message()?;
    let measured = measured(&Content::Entry(source));
    for skipped in (0..=message.len()).step_by(13).chain([message.len()]) {
        let mut packer = Packer::of(&measured).expect("it is readable");
        packer.skip(skipped as u64).expect("it is as long");
        let mut rest = vec![0; message.len() - skipped + 1];
        let filled = packer.fill(&mut rest).expect("nothing changes");
        assert_eq!(rest[..filled], message[skipped..]);
    }
    let mut packer = Packer::of(&measured).expect("it is readable");
    assert!(packer.skip(message.len() as u64 + 1).is_err());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_tree_is_continued(
        files in prop::collection::btree_map(
            "[a-c](/[a-c ]){0,3}[.]f",
            (prop::collection::vec(0u8..3, 0..300), 0u32..0o1000),
            1..12,
        ),
        cut in 41usize..2000,
    ) {
        let dir = Scratch::new()?;
        let source = dir.join("source");
        fs::create_dir(&source)?;
        for (name, (content, mode)) in files {
            touch(&source.join(name), &content, mode | 0o400, 7, 7)?;
        }
        assert_continued(&source, [cut])?;
    }
}
