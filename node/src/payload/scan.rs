//! What a message is made of, how long it is, and the one walk over its files.
//!
//! Measuring finds every fault that can be found before a round. Nothing here
//! reads the content of a file ([`super::Packer`] does) or decides whose message
//! it is ([`super::read_input_dir`], [`super::deal`]).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_proto::cost::MadeOf;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};

use super::cold::cold_bytes;
use super::cursor::{Cursor, DirectoryNames};
use super::entry::{Entry, EntryKind, Mtime, Refusal};
use super::error::PayloadError;

/// What a message is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A regular file, or a directory and everything below it.
    Entry(PathBuf),
    /// Some of the files below a directory, and the directories on the way to them.
    Dealt {
        /// The directory; it is not itself part of the message.
        base: PathBuf,
        /// Regular files and symlinks, relative to `base`, sorted, none twice.
        files: Arc<[PathBuf]>,
    },
}

impl Content {
    /// Where it stands.
    pub fn path(&self) -> &Path {
        match self {
            Self::Entry(path) | Self::Dealt { base: path, .. } => path,
        }
    }

    /// The exact length of the message in bytes, once all of it is known to be
    /// readable and fit to be sent.
    pub fn measure(&self) -> Result<u64, PayloadError> {
        self.measure_telling(&|| {}).map(|measured| measured.bytes)
    }

    /// The same, and what it is made of; tells of each entry that it gets on.
    pub(super) fn measure_telling(&self, tell: &dyn Fn()) -> Result<Measured, PayloadError> {
        let mut bytes: u64 = 0;
        let mut entries = 0;
        let mut looked_at = Sample::default();
        let mut walk = Walk::of(self);
        while let Some(found) = walk.next() {
            let found = found?;
            if let EntryKind::File { size } = found.entry.kind {
                // The only check of permissions that no file system or user escapes.
                let file = walk.open(&found)?;
                looked_at.take(&file, size);
            }
            entries += 1;
            bytes = found
                .entry
                .message_bytes()
                .and_then(|more| bytes.checked_add(more))
                .ok_or(PayloadError::TooLong { path: found.source })?;
            tell();
        }
        Ok(Measured {
            bytes,
            made_of: MadeOf {
                entries,
                cold_bytes: looked_at.cold_bytes(),
            },
        })
    }
}

/// A message before it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Its exact length.
    pub bytes: u64,
    /// What it is made of.
    pub made_of: MadeOf,
}

/// Of a message's files, the first, and later ones more and more rarely: what of them is not
/// in memory tells about all.
#[derive(Default)]
struct Sample {
    files: u64,
    bytes: u64,
    looked_at: u64,
    cold: u64,
}

impl Sample {
    /// All files up to this number are looked at.
    const FIRST: u64 = 64;

    fn take(&mut self, file: &File, size: u64) {
        let every = (self.files / Self::FIRST).next_power_of_two();
        if self.files.is_multiple_of(every) {
            self.looked_at += size;
            self.cold += cold_bytes(file, size);
        }
        self.files += 1;
        self.bytes = self.bytes.saturating_add(size);
    }

    fn cold_bytes(&self) -> u64 {
        let all = u128::from(self.bytes) * u128::from(self.cold);
        (all / u128::from(self.looked_at.max(1))) as u64
    }
}

/// An entry of a message to be sent.
#[derive(Debug)]
pub(super) struct FoundEntry {
    pub entry: Entry,
    /// Where it stands; for the root of a dealt message, the base.
    pub source: PathBuf,
}

/// The entries of a message in the order in which they are sent: depth first, each directory
/// before what is in it, by name. Symlinks are not followed. Holds one directory open, and of
/// each one above it the names that are still to come.
pub(super) struct Walk {
    base: PathBuf,
    state: WalkState,
}

enum WalkState {
    /// The root comes first; of a dealt message, with the files that it has.
    Begun(Option<Arc<[PathBuf]>>),
    /// The root was all there is.
    AtFile,
    /// Everything, by the listings of the directories from the root down to the cursor.
    Below(Cursor, Vec<DirectoryNames>),
    /// These files, from that one on, and the directories on the way to them.
    Dealt(Cursor, Arc<[PathBuf]>, usize),
}

impl Iterator for Walk {
    type Item = Result<FoundEntry, PayloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.state {
            WalkState::Begun(files) => {
                let files = files.take();
                Some(self.begin(files))
            }
            WalkState::AtFile => None,
            WalkState::Below(cursor, listings) => next_below(&self.base, cursor, listings),
            WalkState::Dealt(cursor, files, next) => next_dealt(&self.base, cursor, files, next),
        }
    }
}

impl Walk {
    pub fn of(content: &Content) -> Self {
        let files = match content {
            Content::Entry(_) => None,
            Content::Dealt { files, .. } => Some(files.clone()),
        };
        Self {
            base: content.path().to_owned(),
            state: WalkState::Begun(files),
        }
    }

    fn begin(&mut self, files: Option<Arc<[PathBuf]>>) -> Result<FoundEntry, PayloadError> {
        let base = self.base.clone();
        let unread = || PayloadError::io("read", &self.base);
        let root = match files.is_some() {
            true => FoundEntry {
                entry: Entry::dealt_root(),
                source: base,
            },
            false => examine(base, PathBuf::new())?,
        };
        self.state = match (files, &root.entry.kind) {
            (Some(files), _) => {
                let cursor = Cursor::open(&self.base).map_err(unread())?;
                WalkState::Dealt(cursor, files, 0)
            }
            (None, EntryKind::Directory) => {
                let cursor = Cursor::open(&self.base).map_err(unread())?;
                let listing = cursor.list().map_err(unread())?;
                WalkState::Below(cursor, vec![listing])
            }
            (None, _) => WalkState::AtFile,
        };
        Ok(root)
    }

    /// Opens the regular file that was found last.
    pub fn open(&self, found: &FoundEntry) -> Result<File, PayloadError> {
        match (&self.state, found.entry.path.file_name()) {
            (WalkState::Below(cursor, _) | WalkState::Dealt(cursor, ..), Some(name)) => {
                open_regular(cursor.here(), Path::new(name), &found.source)
            }
            _ => open_regular(CWD, &found.source, &found.source),
        }
    }
}

/// Opens a regular file for reading, whose path is `source`, by its path from a directory.
/// Should something else stand there by now, this neither follows a symlink nor waits for a
/// fifo's writer.
pub(super) fn open_regular(
    directory: BorrowedFd<'_>,
    path: &Path,
    source: &Path,
) -> Result<File, PayloadError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(directory, path, flags, Mode::empty());
    opened
        .map(File::from)
        .map_err(PayloadError::io("read", source))
}

fn next_below(
    base: &Path,
    cursor: &mut Cursor,
    listings: &mut Vec<DirectoryNames>,
) -> Option<Result<FoundEntry, PayloadError>> {
    loop {
        if let Some(name) = listings.last_mut()?.next() {
            let found = step(base, cursor, &name).and_then(|found| {
                if found.entry.kind == EntryKind::Directory {
                    let listing = cursor.list();
                    listings.push(listing.map_err(PayloadError::io("read", &found.source))?);
                }
                Ok(found)
            });
            return Some(found);
        }
        listings.pop();
        if !listings.is_empty()
            && let Err(fault) = leave(base, cursor)
        {
            return Some(Err(fault));
        }
    }
}

/// Since the files are sorted, what is below one directory stands together.
fn next_dealt(
    base: &Path,
    cursor: &mut Cursor,
    files: &[PathBuf],
    next: &mut usize,
) -> Option<Result<FoundEntry, PayloadError>> {
    let file = files.get(*next)?;
    let parent = file.parent().unwrap_or(Path::new(""));
    while !parent.starts_with(cursor.path()) {
        if let Err(fault) = leave(base, cursor) {
            return Some(Err(fault));
        }
    }
    let Some(name) = cursor.next_towards(parent) else {
        *next += 1;
        return Some(step(base, cursor, file.file_name()?));
    };
    Some(
        step(base, cursor, name).and_then(|found| match found.entry.kind {
            EntryKind::Directory => Ok(found),
            _ => Err(PayloadError::changed(&found.source)),
        }),
    )
}

/// What stands there by this name; into a directory, the cursor goes.
fn step(base: &Path, cursor: &mut Cursor, name: &OsStr) -> Result<FoundEntry, PayloadError> {
    let path = cursor.path().join(name);
    let found = look(cursor.here(), name, base.join(&path), path)?;
    if found.entry.kind == EntryKind::Directory {
        let entered = cursor.enter(name);
        entered.map_err(PayloadError::io("read", &found.source))?;
    }
    Ok(found)
}

fn leave(base: &Path, cursor: &mut Cursor) -> Result<(), PayloadError> {
    let left = cursor.leave();
    let above = left.map_err(|error| (base.join(cursor.path()), error));
    above
        .map(drop)
        .map_err(|(path, error)| PayloadError::io("read", &path)(error))
}

/// Makes an entry of what stands at `source`, or says why that cannot be sent.
pub(super) fn examine(source: PathBuf, path: PathBuf) -> Result<FoundEntry, PayloadError> {
    let name = source.clone();
    look(CWD, name.as_os_str(), source, path)
}

/// Examines what has this name in a directory.
fn look(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    source: PathBuf,
    path: PathBuf,
) -> Result<FoundEntry, PayloadError> {
    let unread = || PayloadError::io("read", &source);
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(unread())?;
    let refused = |why| PayloadError::refused(&source, why);
    let kind = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => EntryKind::File {
            // Never negative.
            size: found.st_size as u64,
        },
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => {
            let target = readlinkat(directory, name, Vec::new()).map_err(unread())?;
            EntryKind::Symlink {
                target: OsString::from_vec(target.into_bytes()).into(),
            }
        }
        FileType::Fifo => return Err(refused(Refusal::Special("a fifo"))),
        FileType::Socket => return Err(refused(Refusal::Special("a socket"))),
        _ => return Err(refused(Refusal::Special("a device"))),
    };
    let entry = Entry {
        path,
        kind,
        mode: found.st_mode & 0o777,
        mtime: Mtime::of(&found),
    };
    match entry.check() {
        Ok(()) => Ok(FoundEntry { entry, source }),
        Err(why) => Err(refused(why)),
    }
}

impl Mtime {
    pub(super) fn of(found: &Stat) -> Self {
        Self {
            seconds: found.st_mtime,
            // Below 10^9, as the kernel has it.
            nanos: found.st_mtime_nsec as u32,
        }
    }
}
