//! Files that a destination has already and that are not sent again (`--update`).
//!
//! A destination lists the entry that a message replaces, and the source lists the message. Equal
//! listings are equal messages. Otherwise the source gets the hashes of the files that all
//! destinations of the message have, and sends the entries of these files without their content;
//! the destinations take them from the entries that are replaced.

use std::hash::Hasher as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use flitcast_proto::Update;
use flitcast_proto::wire::control::{SkippedFiles, Version};
use flitcast_proto::wire::flit::Digest;
use rustix::fs::Mode;
use twox_hash::{XxHash3_64, XxHash3_128};

use super::deal::dealt_whole;
use super::entry::{Content, EntryKind, Mtime, Present};
use super::error::PayloadError;
use super::outgoing::{Measured, Outgoing};
use super::pack::Packer;
use super::scan::{FoundEntry, Walk};
use super::selection::Selection;
use crate::limits::DISK_BLOCK_BYTES;

/// The listing of a message or of an entry at a destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// A digest of all entries: names, kinds, permissions, times, and sizes or contents.
    pub digest: Digest,
    /// Each regular file in the order of the entries.
    files: Vec<ListedFile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListedFile {
    /// A hash of the path, the size, and the time or the content; `None` for a file that is always sent.
    key: Option<u64>,
    how: Present,
}

impl Listing {
    /// Lists a message; calls `on_progress` for each entry and each block that is read.
    pub fn of(
        content: &Content,
        update: Update,
        archive: bool,
        on_progress: &dyn Fn(),
    ) -> Result<Self, PayloadError> {
        Self::list(
            Walk::of(content).archiving(archive),
            update,
            false,
            on_progress,
        )
    }

    /// Lists the entry at a destination, dealt from a folder if it `is_dealt`; returns `None` if it is not
    /// a message, or cannot be read.
    pub fn at(
        path: &Path,
        update: Update,
        (archive, is_dealt): (bool, bool),
        on_progress: &dyn Fn(),
    ) -> Option<Self> {
        if path.symlink_metadata().ok()?.is_symlink() {
            return None;
        }
        let walk = Walk::of(&Content::Entry(path.to_owned())).archiving(archive);
        Self::list(walk, update, is_dealt, on_progress).ok()
    }

    /// Returns the hashes of the first files, `most` at most.
    pub fn keys(&self, most: usize) -> Vec<u64> {
        let keys = self.files.iter().filter_map(|file| file.key);
        keys.take(most).collect()
    }

    fn list(
        mut walk: Walk,
        update: Update,
        is_dealt: bool,
        on_progress: &dyn Fn(),
    ) -> Result<Self, PayloadError> {
        let (mut hash, mut files) = (XxHash3_128::new(), Vec::new());
        while let Some(found) = walk.next() {
            let mut found = found?;
            if is_dealt && found.entry.is_root() {
                found.entry.mtime = Mtime::LEAVE;
                found.entry.archived = None;
            }
            // Before it is opened: holes are not compared.
            hash.write(&found.entry.encode());
            if found.entry.is_file() {
                let how = match update {
                    Update::ByContent => {
                        Present::ByContent(content_digest(&walk, &mut found, on_progress)?)
                    }
                    Update::ByTime | Update::Never => Present::ByTime,
                };
                let file = ListedFile {
                    key: key(&found, how),
                    how,
                };
                match (how, found.part) {
                    (Present::ByContent(content), _) => hash.write(&content),
                    // Another part of the file may have the same size.
                    (Present::ByTime, Some((at, bytes))) => {
                        hash.write(&at.to_le_bytes());
                        hash.write(&bytes.to_le_bytes());
                    }
                    (Present::ByTime, None) => {}
                }
                files.push(file);
            }
            on_progress();
        }
        Ok(Self {
            digest: hash.finish_128().to_be_bytes(),
            files,
        })
    }
}

/// Returns the hash by which two hosts compare a file; `None` for a file that is always sent: an empty
/// one, one that its owner cannot read, and a part of a file without a look at its content.
fn key(found: &FoundEntry, how: Present) -> Option<u64> {
    let (entry, mut hash) = (&found.entry, XxHash3_64::new());
    let is_readable = Mode::from_raw_mode(entry.mode).contains(Mode::RUSR);
    if entry.size() == 0 || !is_readable {
        return None;
    }
    hash.write(entry.path.as_os_str().as_bytes());
    hash.write(&entry.size().to_le_bytes());
    match how {
        Present::ByContent(content) => hash.write(&content),
        Present::ByTime if found.part.is_some() => return None,
        Present::ByTime => {
            hash.write(&entry.mtime.seconds.to_le_bytes());
            hash.write(&entry.mtime.nanos.to_le_bytes());
        }
    }
    Some(hash.finish())
}

/// Reads the file that was found last, and returns the digest of its content.
fn content_digest(
    walk: &Walk,
    found: &mut FoundEntry,
    on_progress: &dyn Fn(),
) -> Result<Digest, PayloadError> {
    let file = walk.open(found)?;
    let (first, _) = found.part.unwrap_or_default();
    digest_of(&file, first, found.entry.size(), on_progress)
        .map_err(PayloadError::io("read", &found.source))
}

/// Returns the digest of `bytes` bytes of a file from `first` on.
pub(super) fn digest_of(
    file: &std::fs::File,
    first: u64,
    bytes: u64,
    on_progress: &dyn Fn(),
) -> std::io::Result<Digest> {
    let (mut hash, mut block) = (XxHash3_128::new(), vec![0; DISK_BLOCK_BYTES]);
    let (mut at, end) = (first, first + bytes);
    while at < end {
        let most = usize::try_from(end - at).map_or(block.len(), |left| left.min(block.len()));
        let block = &mut block[..most];
        file.read_exact_at(block, at)?;
        hash.write(block);
        at += most as u64;
        on_progress();
    }
    Ok(hash.finish_128().to_be_bytes())
}

impl Outgoing {
    /// Returns the message without the content of the files that its destinations have; `keys` are their
    /// hashes. `listing` is that of the message. Fails if the message has changed since it was measured.
    pub fn without_files(
        &self,
        listing: &Listing,
        mut keys: Vec<u64>,
        on_progress: &dyn Fn(),
    ) -> Result<(Outgoing, SkippedFiles), PayloadError> {
        keys.sort_unstable();
        let (mut skipped, mut present) = (SkippedFiles::default(), Vec::new());
        let (mut files, mut walk) = (listing.files.iter(), self.walk());
        while let Some(found) = walk.next() {
            let mut found = found?;
            self.check(present.len(), &found)?;
            if let EntryKind::File { size, .. } = found.entry.kind {
                let is_there = |key: &u64| keys.binary_search(key).is_ok();
                let file = files
                    .next()
                    .filter(|file| file.key.is_some_and(|key| is_there(&key)));
                found.entry.present = file.map(|file| file.how);
                match file {
                    Some(_) => {
                        skipped.files += 1;
                        skipped.file_bytes += size;
                    }
                    None if !found.is_plain => drop(walk.open(&mut found)?),
                    None => {}
                }
            }
            let bytes = found.entry.message_bytes();
            let bytes = bytes.and_then(|bytes| bytes.checked_add(skipped.message_bytes));
            skipped.message_bytes = bytes.ok_or(PayloadError::TooLong(found.source))?;
            present.push(found.entry.present);
            on_progress();
        }
        let mut message = self.clone();
        message.measured.bytes = skipped.message_bytes;
        message.present = present.into();
        Ok((message, skipped))
    }
}

/// Returns an error if a message is not the version that an earlier run has measured or delivered.
/// The content is read only if length and state cannot decide; `on_progress` is called for each block.
pub fn check_version(
    message: &Outgoing,
    known: &Version,
    on_progress: &dyn Fn(),
) -> Result<(), PayloadError> {
    let Measured { bytes, state, .. } = message.measured;
    let why = match known.digest {
        _ if (bytes, state) == (known.bytes, known.state) => return Ok(()),
        _ if bytes != known.bytes => {
            let was = known.bytes;
            format!("changed since the run began: the message had {was} bytes, and has {bytes} now")
        }
        // A time or an inode differs.
        None => "changed since the run began, or was written anew".to_owned(),
        Some(digest) if digest == prefix_digest(message, u64::MAX, on_progress)? => return Ok(()),
        Some(_) => "changed since the run began: the content is not what was delivered".to_owned(),
    };
    let path = message.path().to_owned();
    Err(PayloadError::OtherVersion(path, known.message, why))
}

/// Returns the error of a message that was known to be at `path` and no longer exists.
pub fn removed(path: PathBuf, known: &Version) -> PayloadError {
    let why = "it was there when the run began, and is gone".to_owned();
    PayloadError::OtherVersion(path, known.message, why)
}

/// Reads the entry at `path` as a message, an `archive` or not, dealt from a folder if it `is_dealt`, and
/// returns its length and digest; `None` if it cannot be sent. Calls `on_progress` for each block.
pub fn version_at(
    path: &Path,
    (archive, is_dealt): (bool, bool),
    on_progress: &dyn Fn(),
) -> Option<(u64, Digest)> {
    if path.symlink_metadata().ok()?.is_symlink() {
        return None;
    }
    let content = match is_dealt {
        true => match dealt_whole(path.to_owned(), &Selection::default(), false).ok()? {
            Content::Dealt { files, .. } if files.is_empty() => return None,
            dealt => dealt,
        },
        false => Content::Entry(path.to_owned()),
    };
    let message = Outgoing::measure(content, archive, on_progress).ok()?;
    let digest = prefix_digest(&message, u64::MAX, on_progress).ok()?;
    Some((message.measured.bytes, digest))
}

/// Reads the first `bytes` bytes of a message, or all of a shorter one, and returns their XXH3-128;
/// calls `on_progress` for each block.
pub fn prefix_digest(
    message: &Outgoing,
    bytes: u64,
    on_progress: &dyn Fn(),
) -> Result<Digest, PayloadError> {
    let mut packer = Packer::of(message)?;
    let (mut hash, mut block) = (XxHash3_128::new(), vec![0; DISK_BLOCK_BYTES]);
    let mut left = bytes;
    while left > 0 {
        let most = usize::try_from(left).map_or(block.len(), |left| left.min(block.len()));
        let filled = packer.fill(&mut block[..most])?;
        if filled == 0 {
            break;
        }
        hash.write(&block[..filled]);
        left -= filled as u64;
        on_progress();
    }
    Ok(hash.finish_128().to_be_bytes())
}
