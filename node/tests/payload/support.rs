//! Trees of files, messages made of them, and descriptions of both.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_node::payload::{Content, Listing, Outgoing, Packer, PayloadError, Target, Unpacker};
use flitcast_proto::Update;
use flitcast_proto::wire::pb;
use prost::Message;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

/// The number of all runs in these tests.
pub const NONCE: u64 = 0x5eed;

/// The number of the job of all tests, in their receipts.
pub const UNDERTAKING: u64 = 0xacc0;

/// A temporary directory that can be removed by users other than root too, when
/// there are read-only directories in it.
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> io::Result<Self> {
        tempfile::tempdir().map(Self)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for entry in walkdir::WalkDir::new(self.path()).into_iter().flatten() {
            if entry.file_type().is_dir() {
                // Failing here, the directory stays behind: no reason to fail a test.
                let _ = fs::set_permissions(entry.path(), Permissions::from_mode(0o700));
            }
        }
    }
}

/// The description of one entry of a tree.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Described {
    pub path: PathBuf,
    /// With the bits of its type.
    pub mode: u32,
    pub mtime: (i64, i64),
    /// The content of a file, or a symlink's target.
    pub content: Vec<u8>,
}

/// Returns everything at and below `root`, in order.
pub fn describe(root: &Path) -> io::Result<Vec<Described>> {
    let mut all = Vec::new();
    for entry in walkdir::WalkDir::new(root).sort_by_file_name() {
        let entry = entry?;
        let metadata = fs::symlink_metadata(entry.path())?;
        let content = if metadata.is_file() {
            fs::read(entry.path())?
        } else if metadata.is_symlink() {
            let target = fs::read_link(entry.path())?;
            target.into_os_string().into_encoded_bytes()
        } else {
            Vec::new()
        };
        let path = entry.path().strip_prefix(root).expect("it is below");
        all.push(Described {
            path: path.to_owned(),
            mode: metadata.mode(),
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            content,
        });
    }
    Ok(all)
}

/// The name of a file, its content, its mode, and its time in seconds and nanoseconds.
type Touched<'a> = (&'a [u8], &'a [u8], u32, i64, u32);

/// Creates entries of all kinds that can be sent.
pub fn rich_tree(root: &Path) -> io::Result<()> {
    let files: [Touched; 7] = [
        (b"deep/er/still/file", &[1; 3000], 0o644, 1 << 30, 1234),
        (b"deep/run", b"#!/bin/sh\n", 0o755, -1_000, 999_999_999),
        (b"empty", b"", 0o600, 1, 0),
        (b"read only", b"r", 0o400, 1 << 33, 1),
        (b"a\nline \"break\"\\", b"odd", 0o640, 5, 5),
        (b"\xff\xfe not utf-8", b"bytes", 0o644, 7, 7),
        (b"locked/inside", b"read-only directory", 0o444, 9, 9),
    ];
    for (name, content, mode, seconds, nanos) in files {
        let path = root.join(OsStr::from_bytes(name));
        touch(&path, content, mode, seconds, nanos)?;
    }
    for (link, target, seconds) in [
        ("deep/er/link", "../../empty", 11),
        ("to a directory", "deep", 12),
        ("dangling", "is not there", -13),
    ] {
        symlink(target, root.join(link))?;
        set_mtime(&root.join(link), seconds, 17)?;
    }
    fs::create_dir(root.join("nothing"))?;
    for (directory, mode, seconds) in [
        ("deep/er/still", 0o711, 3),
        ("deep/er", 0o755, 4),
        ("nothing", 0o700, 5),
        ("locked", 0o500, 6),
        ("", 0o755, 8),
    ] {
        let directory = root.join(directory);
        fs::set_permissions(&directory, Permissions::from_mode(mode))?;
        set_mtime(&directory, seconds, 987_654_321)?;
    }
    Ok(())
}

/// Creates a tree of all kinds of entries below a new directory, as `source`, and packs it.
pub fn rich_message() -> io::Result<(Scratch, PathBuf, Vec<u8>)> {
    let dir = Scratch::new()?;
    let source = dir.join("source");
    rich_tree(&source)?;
    let message = pack(&Content::Entry(source.clone()), &[4096]);
    Ok((dir, source, message))
}

/// Writes a file with its parents, its mode and its time.
pub fn touch(path: &Path, content: &[u8], mode: u32, seconds: i64, nanos: u32) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, content)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    set_mtime(path, seconds, nanos)
}

pub fn set_mtime(path: &Path, seconds: i64, nanos: u32) -> io::Result<()> {
    let time = Timespec {
        tv_sec: seconds,
        tv_nsec: nanos.into(),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Returns the sorted names in a directory, without receipts.
pub fn names(dir: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().display().to_string());
    let mut names: Vec<String> = fs::read_dir(dir)?.map(name).collect::<io::Result<_>>()?;
    names.retain(|name| !name.ends_with(".receipt"));
    names.sort();
    Ok(names)
}

/// Measures a message that is not an archive.
pub fn measured(content: &Content) -> Outgoing {
    Outgoing::measure(content.clone(), false, &|| {}).expect("all is readable")
}

/// Returns the message, read in pieces of these sizes, over and over.
pub fn pack(content: &Content, pieces: &[usize]) -> Vec<u8> {
    read_in(&measured(content), pieces)
}

/// Returns a measured message, read in pieces of these sizes, over and over.
pub fn read_in(measured: &Outgoing, pieces: &[usize]) -> Vec<u8> {
    let mut packer = Packer::of(measured).expect("it has just been measured");
    let mut message = Vec::new();
    for &piece in pieces.iter().cycle() {
        let mut buf = vec![0; piece];
        let filled = packer.fill(&mut buf).expect("nothing changes");
        message.extend_from_slice(&buf[..filled]);
        if filled < piece {
            break;
        }
    }
    assert_eq!(packer.fill(&mut [0]).expect("nothing changes"), 0);
    assert_eq!(message.len() as u64, measured.measured.bytes);
    message
}

/// Returns the message of `source`, an archive or not, without the files that `destination` has, and the
/// number of them.
pub fn rest(
    source: &Path,
    destination: &Path,
    update: Update,
    archive: bool,
) -> Result<(Vec<u8>, u64), PayloadError> {
    let content = Content::Entry(source.to_owned());
    let there = Listing::at(destination, update, (archive, false), &|| {});
    let keys = there.map_or(Vec::new(), |there| there.keys(usize::MAX));
    let listing = Listing::of(&content, update, archive, &|| {})?;
    let whole = Outgoing::measure(content, archive, &|| {})?;
    let (message, skipped) = whole.without_files(&listing, keys, &|| {})?;
    assert_eq!(message.measured.bytes, skipped.message_bytes);
    Ok((read_in(&message, &[4096]), skipped.files))
}

/// Delivers a message that arrives in pieces of these sizes, over and over.
pub fn unpack(
    message: &[u8],
    pieces: &[usize],
    destination: &Path,
    replace: bool,
) -> Result<(), PayloadError> {
    write_in(unpacker(destination, replace)?, message, pieces)
}

/// Writes a message in pieces of these sizes, over and over, and completes it.
pub fn write_in(
    mut unpacker: Unpacker,
    message: &[u8],
    pieces: &[usize],
) -> Result<(), PayloadError> {
    let mut rest = message;
    for &piece in pieces.iter().cycle() {
        let (head, tail) = rest.split_at(piece.min(rest.len()));
        unpacker.write(head)?;
        rest = tail;
        if rest.is_empty() {
            break;
        }
    }
    unpacker.commit().map(drop)
}

/// Creates an unpacker of a PE without an observer.
pub fn unpacker(destination: &Path, replace: bool) -> Result<Unpacker, PayloadError> {
    let target = Target {
        replace,
        ..target(destination)
    };
    Unpacker::create(target, Arc::default())
}

/// Returns the place of a message that replaces nothing and is not kept.
pub fn target(destination: &Path) -> Target {
    Target {
        destination: destination.to_owned(),
        replace: false,
        run: NONCE,
        job: UNDERTAKING,
        is_kept: false,
        ..Target::default()
    }
}

/// Returns whether the next entry of a message is a directory.
pub fn is_directory(mut rest: &[u8]) -> bool {
    let entry = pb::FileEntry::decode_length_delimited(&mut rest).expect("it was packed");
    entry.kind() == pb::file_entry::Kind::Directory
}

/// Returns the ends of a message's entries, contents included.
pub fn entry_ends(message: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let entry = pb::FileEntry::decode_length_delimited(&mut rest).expect("it was packed");
        rest = &rest[entry.size as usize..];
        ends.push(message.len() - rest.len());
    }
    ends
}
