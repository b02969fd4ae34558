//! Files with holes, which are neither sent nor stored.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::support::{Scratch, describe, measured, pack, set_mtime, unpack};
use flitcast_node::payload::{Content, Packer};

#[test]
fn files_with_holes_arrive_as_they_are_however_they_are_cut() -> io::Result<()> {
    const PIECE: u64 = 256 << 10;
    let dir = tempfile::tempdir()?;
    // Data at the start, at the end, alternating, in each piece, and nowhere.
    for data in [vec![0], vec![7], vec![1, 3, 5], (0..8).collect(), vec![]] {
        let source = dir.path().join("source");
        let file = File::create(&source)?;
        file.set_len(8 * PIECE)?;
        for piece in &data {
            file.write_all_at(&[*piece as u8 + 1; 5000], piece * PIECE)?;
        }
        set_mtime(&source, 1_000_000, 5)?;
        let content = Content::Entry(source.clone());
        let bytes = content.measure().expect("it can be sent");
        assert!(bytes < 8 * 12_288 + 200, "{data:?}: {bytes} bytes");
        for cut in [1, 100, 4096, 64 << 10] {
            let message = pack(&content, &[cut]);
            assert_eq!(message.len() as u64, bytes, "{data:?}");
            let arrived = dir.path().join("p1");
            unpack(&message, &[cut], &arrived, true).expect("it is a good message");
            assert!(describe(&arrived)? == describe(&source)?, "{data:?}, {cut}");
        }
    }
    // One hole, longer than any disk.
    let source = dir.path().join("source");
    File::create(&source)?.set_len(1 << 43)?;
    let message = pack(&Content::Entry(source), &[64]);
    assert!(message.len() < 100, "{} bytes", message.len());
    let arrived = dir.path().join("p1");
    unpack(&message, &[7], &arrived, true).expect("it is a good message");
    assert_eq!(fs::metadata(&arrived)?.len(), 1 << 43);
    Ok(())
}

/// The measured version of a file includes its holes.
#[test]
fn a_hole_that_is_filled_before_it_is_sent_is_a_change() -> io::Result<()> {
    let dir = tempfile::tempdir()?;
    let source = dir.path().join("source");
    let file = File::create(&source)?;
    file.set_len(1 << 20)?;
    let content = Content::Entry(source.clone());
    let change = |at: u64| -> io::Result<String> {
        let message = measured(&content);
        file.write_all_at(&[1; 4096], at)?;
        // A user may set the time with the intent to deceive.
        set_mtime(&source, 1_000_000, 5)?;
        let packed = Packer::of(&message).and_then(|mut packer| {
            let mut buffer = vec![0; 1 << 20];
            while packer.fill(&mut buffer)? > 0 {}
            Ok(())
        });
        Ok(packed.expect_err("the change is noticed").to_string())
    };
    set_mtime(&source, 1_000_000, 5)?;
    for at in [512 << 10, 0] {
        let error = change(at)?;
        assert!(error.contains("changed while it was being read"), "{error}");
    }
    Ok(())
}

#[test]
fn holes_are_not_counted() -> io::Result<()> {
    let dir = Scratch::new()?;
    // A total length that exceeds 64 bits, if the file system supports such files.
    for name in ["a", "b", "c"] {
        let file = File::create(dir.path().join(name))?;
        let lengths = [(1 << 63) - 1, 1 << 40, 1 << 20];
        let is_possible = |&bytes: &u64| file.set_len(bytes).is_ok();
        assert!(lengths.iter().any(is_possible));
    }
    let measured = Content::Entry(dir.path().into()).measure();
    assert!((1..200).contains(&measured.expect("it can be measured")));
    Ok(())
}
