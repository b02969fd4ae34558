//! Targets for the receiver of a message made of files: its entries, and whole messages.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use flitcast_node::payload::{self, Entry, Unpacker, remove};
use flitcast_proto::wire::pb::{Archived, ExtendedAttribute, FileEntry, file_entry::Kind};
use prost::Message as _;
use tempfile::TempDir;

use super::Target;
use crate::files::names;

/// A single entry.
pub(super) const ENTRY: Target = Target {
    name: "entry",
    feed: entry,
    examples: || entries().iter().map(FileEntry::encode_to_vec).collect(),
    words: WORDS,
};

/// A whole message, after a byte that defines the size of its pieces.
pub(super) const UNPACKER: Target = Target {
    name: "unpacker",
    feed: unpacker,
    examples: messages,
    words: WORDS,
};

const WORDS: &str = "a|/|..|../|a/b|.|\0|link|a/file|user.note|\x10\x01|\x10\x02";

/// Checks that a valid entry is encoded and parsed to the same value, and that the error for any
/// other is printable.
fn entry(bytes: &[u8]) -> Result<String, String> {
    let entry = match Entry::decode(bytes) {
        Ok(entry) => entry,
        Err(error) => return printable(error.to_string()),
    };
    let written = entry.encode();
    let mut body = &written[..];
    let length = prost::decode_length_delimiter(&mut body);
    if length.as_ref() != Ok(&body.len()) {
        return Err(format!("{entry:?} is written with a length of {length:?}"));
    }
    match Entry::decode(body) {
        Ok(again) if again == entry => Ok(format!("{entry:?}")),
        other => Err(format!("{entry:?} is written and read as {other:?}")),
    }
}

fn printable(message: String) -> Result<String, String> {
    match message.contains(char::is_control) {
        true => Err(format!("control characters in a fault: {message:?}")),
        false => Ok(message),
    }
}

thread_local! {
    /// A directory in memory: an output, and beside it a file that must not change.
    static PLACE: TempDir = place();
}

fn place() -> TempDir {
    let place = tempfile::tempdir_in("/dev/shm").expect("Linux has it");
    fs::create_dir(place.path().join("out")).expect("it can be made");
    fs::write(place.path().join("kept"), "kept").expect("it can be written");
    place
}

/// Checks that a message becomes visible as a whole or not at all, leaves nothing else, and changes
/// nothing outside its output.
fn unpacker(input: &[u8]) -> Result<String, String> {
    let Some((piece, message)) = input.split_first() else {
        return Ok("nothing".to_owned());
    };
    PLACE.with(|place| {
        let destination = place.path().join("out/p1");
        let result = deliver(message, usize::from(*piece) + 1, &destination);
        // The delivered message and its receipt.
        let both = [".flitcast-0000000000000007-p1.receipt", "p1"];
        let expected: &[&str] = if result.is_ok() { &both } else { &[] };
        let out = place.path().join("out");
        let left = names(&out);
        let removed = remove(&destination).and(remove(&out.join(both[0])));
        if left != expected {
            return Err(format!("the output holds {left:?} after {result:?}"));
        }
        removed.map_err(|error| format!("what was delivered cannot be removed: {error}"))?;
        let kept = fs::read(place.path().join("kept"));
        if names(place.path()) != ["kept", "out"] || kept.ok().as_deref() != Some(b"kept") {
            return Err("something beside the output was touched".to_owned());
        }
        let result = result.map(|()| "delivered".to_owned());
        let result = result.or_else(printable)?;
        Ok(result.replace(&*place.path().to_string_lossy(), ""))
    })
}

fn deliver(message: &[u8], piece: usize, destination: &Path) -> Result<(), String> {
    let deliver = || {
        let target = payload::Target {
            destination: destination.to_owned(),
            replace: false,
            run: 7,
            job: 7,
            is_kept: false,
            is_archive: true,
            ..payload::Target::default()
        };
        let mut unpacker = Unpacker::create(target, Arc::default())?;
        for bytes in message.chunks(piece) {
            unpacker.write(bytes)?;
        }
        unpacker.commit().map(drop)
    };
    deliver().map_err(|error: flitcast_node::payload::PayloadError| error.to_string())
}

fn made(kind: Kind, path: &str) -> FileEntry {
    FileEntry {
        path: path.as_bytes().to_vec().into(),
        kind: kind.into(),
        mode: 0o750,
        mtime_seconds: 1_700_000_000,
        mtime_nanos: 5,
        ..FileEntry::default()
    }
}

fn hard_link(path: &str, target: &str) -> FileEntry {
    FileEntry {
        path: path.as_bytes().to_vec().into(),
        kind: Kind::HardLink.into(),
        target: target.as_bytes().to_vec().into(),
        ..FileEntry::default()
    }
}

fn entries() -> Vec<FileEntry> {
    let file = FileEntry {
        size: 7,
        ..made(Kind::File, "a/file")
    };
    let sparse = FileEntry {
        size: 200_000,
        extents: vec![70_000, 5, 129_995],
        ..made(Kind::File, "a/sparse")
    };
    let link = FileEntry {
        target: b"../b/file".to_vec().into(),
        ..made(Kind::Symlink, "a/link")
    };
    let archived = FileEntry {
        archived: Some(Archived {
            uid: 1000,
            gid: 1000,
            extended: vec![ExtendedAttribute {
                name: b"user.note".to_vec().into(),
                value: b"value".to_vec().into(),
            }],
        }),
        ..made(Kind::File, "b/third")
    };
    vec![
        made(Kind::Directory, ""),
        made(Kind::Directory, "a"),
        file,
        sparse,
        link,
        made(Kind::Directory, "a/deeper"),
        made(Kind::File, "a/deeper/empty"),
        made(Kind::Directory, "b"),
        made(Kind::File, "b/file"),
        hard_link("b/second", "a/file"),
        archived,
    ]
}

fn messages() -> Vec<Vec<u8>> {
    let message = |piece: u8, entries: &[FileEntry]| {
        let mut message = vec![piece];
        for entry in entries {
            message.extend(entry.encode_length_delimited_to_vec());
            let data = match entry.extents.is_empty() {
                true => entry.size,
                false => entry.extents.iter().skip(1).step_by(2).sum(),
            };
            message.extend((0..data).map(|place| place as u8));
        }
        message
    };
    let all = entries();
    let file = FileEntry {
        size: 3,
        ..made(Kind::File, "")
    };
    vec![
        message(255, &all),
        message(2, &all),
        message(40, &all[..2]),
        message(9, &[file]),
    ]
}
