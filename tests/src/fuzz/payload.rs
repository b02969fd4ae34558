//! What is fed to the receiver of a message made of files: its entries, and whole messages.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use flitcast_node::payload::{Entry, Unpacker, remove};
use flitcast_proto::wire::pb::{FileEntry, file_entry::Kind};
use prost::Message as _;
use tempfile::TempDir;

use super::Target;

/// One entry.
pub(super) const ENTRY: Target = Target {
    name: "entry",
    feed: entry,
    examples: || entries().iter().map(FileEntry::encode_to_vec).collect(),
    words: WORDS,
};

/// A whole message, ahead of which stands in what pieces it comes.
pub(super) const UNPACKER: Target = Target {
    name: "unpacker",
    feed: unpacker,
    examples: messages,
    words: WORDS,
};

const WORDS: &[&str] = &[
    "a", "/", "..", "../", "a/b", ".", "\0", "link", "\x10\x01", "\x10\x02",
];

/// What is understood is written again and understood as the same; what is not is told in
/// words that a terminal can take.
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

fn printable(told: String) -> Result<String, String> {
    match told.contains(char::is_control) {
        true => Err(format!("control characters in a fault: {told:?}")),
        false => Ok(told),
    }
}

thread_local! {
    /// In memory: an output, and beside it what nobody may touch.
    static PLACE: TempDir = place();
}

fn place() -> TempDir {
    let place = tempfile::tempdir_in("/dev/shm").expect("Linux has it");
    fs::create_dir(place.path().join("out")).expect("it can be made");
    fs::write(place.path().join("kept"), "kept").expect("it can be written");
    place
}

/// A message becomes visible whole or not at all, leaves nothing else, and nothing but its
/// output is touched.
fn unpacker(input: &[u8]) -> Result<String, String> {
    let Some((piece, message)) = input.split_first() else {
        return Ok("nothing".to_owned());
    };
    PLACE.with(|place| {
        let destination = place.path().join("out/p1");
        let told = deliver(message, usize::from(*piece) + 1, &destination);
        let told = match told {
            Ok(()) => Ok("delivered".to_owned()),
            Err(error) => Err(error),
        };
        // What was delivered, and the receipt that says so.
        let both = [".flitcast-0000000000000007-p1.receipt", "p1"];
        let expected: &[&str] = if told.is_ok() { &both } else { &[] };
        let out = place.path().join("out");
        let left = names(&out);
        let removed = remove(&destination).and(remove(&out.join(both[0])));
        if left != expected {
            return Err(format!("the output holds {left:?} after {told:?}"));
        }
        removed.map_err(|error| format!("what was delivered cannot be removed: {error}"))?;
        let kept = fs::read(place.path().join("kept"));
        if names(place.path()) != ["kept", "out"] || kept.ok().as_deref() != Some(b"kept") {
            return Err("something beside the output was touched".to_owned());
        }
        let told = told.or_else(printable)?;
        Ok(told.replace(&*place.path().to_string_lossy(), ""))
    })
}

fn deliver(message: &[u8], piece: usize, destination: &Path) -> Result<(), String> {
    let deliver = || {
        let mut unpacker = Unpacker::create(destination.to_owned(), false, 7, 7, Arc::default())?;
        for bytes in message.chunks(piece) {
            unpacker.write(bytes)?;
        }
        unpacker.commit()
    };
    deliver().map_err(|error: flitcast_node::payload::PayloadError| error.to_string())
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
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

fn entries() -> Vec<FileEntry> {
    let file = FileEntry {
        size: 7,
        ..made(Kind::File, "a/file")
    };
    let link = FileEntry {
        target: b"../b/file".to_vec().into(),
        ..made(Kind::Symlink, "a/link")
    };
    vec![
        made(Kind::Directory, ""),
        made(Kind::Directory, "a"),
        file,
        link,
        made(Kind::Directory, "a/deeper"),
        made(Kind::File, "a/deeper/empty"),
        made(Kind::Directory, "b"),
        made(Kind::File, "b/file"),
    ]
}

fn messages() -> Vec<Vec<u8>> {
    let message = |piece: u8, entries: &[FileEntry]| {
        let mut message = vec![piece];
        for entry in entries {
            message.extend(entry.encode_length_delimited_to_vec());
            message.extend((0..entry.size).map(|place| place as u8));
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
