//! Writing of a message made of files, as its bytes arrive.
//!
//! The sender is not trusted. Names are checked before they reach the file system
//! ([`super::entry`]), and each entry is created by its own name in a directory that this process
//! has created and holds open. So nothing is written through a symlink, and no path is too long.
//! Entries arrive depth first: a directory is finished when an entry outside of it begins, and only
//! the directories on the path of that entry are remembered. [`super::staging`] moves the complete
//! message to its destination.

mod hard_link;
mod present;
mod replay;
mod staged_file;

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_proto::Unkept;
use flitcast_proto::wire::flit::Digest;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, fchmod, mkdirat, openat, statat, symlinkat, utimensat,
};
use rustix::io::Errno;
use twox_hash::XxHash3_128;

use super::archived::forget_inherited;
use super::cursor::Cursor;
use super::durability::Unsynced;
use super::entry::{ARCHIVE_ENTRY_BYTES_MAX, ENTRY_BYTES_MAX, Entry, EntryKind};
use super::error::{PayloadError, Refusal};
use super::extents::NewFile;
use super::staging::{Staging, Target};
use crate::activity_monitor::ActivityMonitor;
use replay::Existing;
use staged_file::{Attributes, StagedFile, timestamps};

pub use replay::prefix_bytes;

/// Maximum length of the encoding of a length up to [`ARCHIVE_ENTRY_BYTES_MAX`], in bytes.
const PREFIX_BYTES_MAX: usize = 3;

/// Writer of a message to a staging place beside its destination. If it is dropped before
/// [`commit`](Self::commit), it removes what it has written, unless the target specifies that an
/// incomplete message is kept.
pub struct Unpacker {
    /// The regular file whose content comes next. Fields are dropped in this order: its last write ends before
    /// another process may continue with the staging place.
    body: Option<StagedFile>,
    staging: Staging,
    /// The record of progress: each complete entry counts.
    pulse: Arc<ActivityMonitor>,
    /// The entries that exist in the staging place.
    existing: Existing,
    unsynced: Unsynced,
    /// Whether an error has occurred: the staging place does not have the message.
    broken: bool,
    /// The hash and the length of the message so far.
    hash: Box<XxHash3_128>,
    bytes: u64,
    /// In an update: the hash of the entries without content, and the current directory of the entry that
    /// is replaced.
    listing: Option<Box<XxHash3_128>>,
    replaced: Option<Cursor>,
    /// In an archive: the directory of the file that a hard link was made to, and the entries so far some
    /// of whose attributes could not be set.
    linked: Option<Cursor>,
    unkept: Unkept,
    root: Root,
    /// The incomplete next entry, with its length prefix.
    head: Vec<u8>,
}

enum Root {
    Awaited,
    File,
    Directory(Unfinished),
}

/// The current directory, and the attributes of the directories on its path.
struct Unfinished {
    cursor: Cursor,
    /// Attributes of each directory, the root first.
    entries: Vec<Attributes>,
}

impl Unpacker {
    /// Creates the writer of a message. No file is created before its first bytes. Fails if the
    /// target has no name or no parent directory, or if its place is taken and not to be replaced.
    pub fn create(target: Target, pulse: Arc<ActivityMonitor>) -> Result<Self, PayloadError> {
        let unsynced = Unsynced::new(target.durability);
        let listing = target.is_update.then(Box::default);
        let staging = Staging::beside(target)?;
        // Also checked at commit; an error here costs no round.
        staging.check()?;
        Ok(Self {
            staging,
            pulse,
            existing: Existing::Nothing,
            unsynced,
            broken: false,
            hash: Box::default(),
            bytes: 0,
            listing,
            replaced: None,
            linked: None,
            unkept: Unkept::default(),
            root: Root::Awaited,
            head: Vec::new(),
            body: None,
        })
    }

    /// Writes the next bytes of the message, in pieces of any length. After an error the message
    /// cannot be completed.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), PayloadError> {
        self.hash.write(bytes);
        self.bytes += bytes.len() as u64;
        let taken = self.check_staged().and_then(|()| self.take(bytes));
        match &taken {
            Ok(()) => self.staging.flush_heads(),
            Err(_) => {
                self.broken = true;
                self.staging.forgo();
            }
        }
        taken
    }

    /// Returns an error if another process has removed the file that is being written. Without this
    /// check the loss would show only at the end.
    fn check_staged(&self) -> Result<(), PayloadError> {
        let Some(body) = &self.body else {
            return Ok(());
        };
        let look = || {
            // Not all file systems count links; on those the name is checked.
            if body.file.file().metadata()?.nlink() == 0 {
                match (&self.root, body.entry.path.file_name()) {
                    (Root::Directory(open), Some(name)) => {
                        statat(open.cursor.here(), name, AtFlags::SYMLINK_NOFOLLOW)?;
                    }
                    _ => {
                        fs::symlink_metadata(self.staging.path())?;
                    }
                }
            }
            Ok(())
        };
        look().map_err(|error| self.io("write", &body.entry.path, error))
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), PayloadError> {
        while !bytes.is_empty() {
            bytes = match self.body.is_some() {
                true => self.write_body(bytes)?,
                false => self.read_head(bytes)?,
            };
        }
        Ok(())
    }

    /// Makes the message visible at its destination, and returns its digest when that is durable.
    pub fn commit(mut self) -> Result<Digest, PayloadError> {
        let mid_entry = self.body.is_some() || !self.head.is_empty();
        if self.broken || mid_entry || matches!(self.root, Root::Awaited) {
            return Err(self.incomplete());
        }
        while let Root::Directory(open) = &self.root
            && !open.entries.is_empty()
        {
            self.leave()?;
        }
        let synced = self.unsynced.sync();
        synced.map_err(|error| self.io("make durable", Path::new(""), error))?;
        let hash = self.listing.as_ref().unwrap_or(&self.hash);
        let digest = hash.finish_128().to_be_bytes();
        self.staging.publish(self.bytes, &digest)?;
        self.pulse.counters().left_unkept(self.unkept);
        Ok(digest)
    }

    fn incomplete(&self) -> PayloadError {
        PayloadError::Incomplete(self.staging.destination().to_owned())
    }

    /// Writes to the current file, and returns the part of `bytes` behind its content.
    fn write_body<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], PayloadError> {
        let Some(mut body) = self.body.take() else {
            return Ok(bytes);
        };
        let remaining = body.end - body.file.bytes();
        let most = usize::try_from(remaining).map_or(bytes.len(), |left| left.min(bytes.len()));
        let (content, rest) = bytes.split_at(most);
        let written = body.file.write(content);
        written.map_err(|error| self.io("write", &body.entry.path, error))?;
        let end = body.file.bytes();
        self.unsynced
            .content(body.file.file(), &mut body.written_back, end);
        self.continue_or_finish(body)?;
        Ok(rest)
    }

    /// Finishes a file if it is complete; otherwise its content comes next.
    fn continue_or_finish(&mut self, mut body: StagedFile) -> Result<(), PayloadError> {
        if body.is_done() {
            return self.finish_file(body);
        }
        self.body = Some(body);
        Ok(())
    }

    /// Reads the head of the next entry, and returns the part of `bytes` behind it.
    fn read_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], PayloadError> {
        // Until the length is known, at least one more byte belongs to the head.
        let length = self.head_length()?.unwrap_or(self.head.len() + 1);
        let more = (length - self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(more);
        self.head.extend_from_slice(head);
        if self.head_length()? == Some(self.head.len()) {
            let head = std::mem::take(&mut self.head);
            let mut encoded = head.as_slice();
            // The head is complete, so this only skips its length prefix.
            let length = prost::decode_length_delimiter(&mut encoded);
            debug_assert_eq!(length.ok(), Some(encoded.len()));
            self.begin(Entry::decode(encoded)?)?;
            if !self.existing.is_replay()
                && let Some(heads) = self.staging.heads()
            {
                heads.push(&head);
            }
        }
        Ok(rest)
    }

    /// Returns the length of an entry's head with its length prefix, once the latter is complete.
    fn head_length(&self) -> Result<Option<usize>, PayloadError> {
        let head = &self.head[..];
        let most = match self.staging.is_archive() {
            true => ARCHIVE_ENTRY_BYTES_MAX,
            false => ENTRY_BYTES_MAX,
        };
        let malformed = || {
            let why = Refusal::Malformed("longer than any entry can be");
            PayloadError::Refused("an entry".into(), why)
        };
        let Some(prefix) = head.iter().position(|byte| byte & 0x80 == 0) else {
            return match head.len() {
                0..PREFIX_BYTES_MAX => Ok(None),
                _ => Err(malformed()),
            };
        };
        match prost::decode_length_delimiter(head) {
            Ok(length) if length <= most => Ok(Some(prefix + 1 + length)),
            _ => Err(malformed()),
        }
    }

    fn begin(&mut self, entry: Entry) -> Result<(), PayloadError> {
        if let Some(listing) = &mut self.listing {
            listing.write(&entry.listed().encode());
        }
        let refused = |why| Err(PayloadError::Refused(entry.path.clone(), why));
        if entry.is_archived() && !self.staging.is_archive() {
            return refused(Refusal::NotArchive);
        }
        match (&self.root, entry.is_root()) {
            (Root::Awaited, true) => self.begin_root(entry),
            (Root::Awaited, false) => refused(Refusal::BeforeRoot),
            (Root::File, false) => refused(Refusal::BesideFile),
            (_, true) => refused(Refusal::Duplicate),
            (Root::Directory(_), false) => {
                self.leave_to_parent(&entry.path)?;
                self.begin_here(entry)
            }
        }
    }

    fn begin_root(&mut self, entry: Entry) -> Result<(), PayloadError> {
        self.staging.make_way(self.existing.is_replay());
        let staged = self.staging.path().to_owned();
        let create = || PayloadError::io("create", &staged);
        match entry.kind {
            EntryKind::File { .. } => {
                let file = open_file(CWD, &staged, self.existing).map_err(create())?;
                let claimed = self.staging.claim(file.file().as_fd());
                claimed.map_err(create())?;
                if self.staging.is_archive() && self.existing != Existing::Measured {
                    let writable = forget_inherited(file.file(), Mode::RUSR | Mode::WUSR);
                    writable.map_err(create())?;
                }
                self.root = Root::File;
                match entry.present {
                    Some(how) => self.copy_root(file, entry, how),
                    None => self.begin_content(file, entry),
                }
            }
            // `Entry::decode` has refused links.
            EntryKind::Directory | EntryKind::Symlink { .. } | EntryKind::HardLink { .. } => {
                // Writable until it is finished, whatever its final mode is.
                if !self.existing.is_replay() {
                    let made = mkdirat(CWD, &staged, Mode::RWXU);
                    made.map_err(io::Error::from).map_err(create())?;
                }
                let cursor = Cursor::open(&staged).map_err(create())?;
                self.staging.claim(cursor.here()).map_err(create())?;
                if self.existing != Existing::Measured {
                    if self.staging.is_archive() {
                        let writable = forget_inherited(cursor.here(), Mode::RWXU);
                        writable.map_err(create())?;
                    }
                    self.unsynced.begin_folder(cursor.here());
                }
                self.root = Root::Directory(Unfinished {
                    cursor,
                    entries: vec![Attributes::of(&entry)],
                });
                Ok(())
            }
        }
    }

    /// Finishes directories up to the parent of an entry.
    fn leave_to_parent(&mut self, path: &Path) -> Result<(), PayloadError> {
        let parent = path.parent().unwrap_or(Path::new(""));
        while let Root::Directory(open) = &self.root
            && open.cursor.path() != parent
        {
            if open.cursor.is_at_root() || parent.starts_with(open.cursor.path()) {
                return Err(PayloadError::Refused(path.to_owned(), Refusal::NoParent));
            }
            self.leave()?;
        }
        Ok(())
    }

    /// Creates an entry in the current directory.
    fn begin_here(&mut self, entry: Entry) -> Result<(), PayloadError> {
        if let Some(how) = entry.present {
            return self.take_over(entry, how);
        }
        let (Root::Directory(open), Some(name)) = (&mut self.root, entry.path.file_name()) else {
            return Err(PayloadError::Refused(entry.path, Refusal::BeforeRoot));
        };
        let (here, existing) = (open.cursor.here(), self.existing);
        let make_way = || existing.make_way(here, name);
        match &entry.kind {
            EntryKind::File { .. } => {
                let file = make_way().and_then(|()| open_file(here, Path::new(name), existing));
                let file = file.map_err(|error| self.not_made(&entry.path, error))?;
                self.begin_content(file, entry)
            }
            EntryKind::Directory => {
                let made = match existing.is_replay() {
                    true => Ok(()),
                    false => match mkdirat(here, name, Mode::RWXU) {
                        Err(Errno::EXIST) if existing == Existing::Replaced => Ok(()),
                        made => made.map_err(io::Error::from),
                    },
                };
                let entered = made.and_then(|()| open.cursor.enter(name));
                // A complete directory may have a mode that keeps its owner from writing to it.
                let writable = entered.and_then(|()| match existing {
                    Existing::Read | Existing::Replaced if self.staging.is_archive() => {
                        forget_inherited(open.cursor.here(), Mode::RWXU)
                    }
                    Existing::Read | Existing::Replaced => {
                        Ok(fchmod(open.cursor.here(), Mode::RWXU)?)
                    }
                    Existing::Nothing | Existing::Measured => Ok(()),
                });
                open.entries.push(Attributes::of(&entry));
                writable.map_err(|error| self.not_made(&entry.path, error))
            }
            EntryKind::Symlink { target } => {
                if existing.is_replay() {
                    let checked = replay::check_symlink(here, name, target);
                    return checked.map_err(|error| self.io("read", &entry.path, error));
                }
                let times = timestamps(entry.mtime);
                let made = make_way().and_then(|()| {
                    symlinkat(target, here, name)?;
                    if let Some(archived) = &entry.archived {
                        self.unkept += archived.set_symlink(here, Path::new(name));
                    }
                    Ok(utimensat(here, name, &times, AtFlags::SYMLINK_NOFOLLOW))
                });
                let timed = made.map_err(|error| self.not_made(&entry.path, error))?;
                timed.map_err(|error| self.io("finish", &entry.path, error.into()))?;
                self.pulse.worked();
                Ok(())
            }
            EntryKind::HardLink { target } => self.link(&entry, target),
        }
    }

    /// Begins the content of a regular file, which may be there already.
    fn begin_content(&mut self, file: NewFile, entry: Entry) -> Result<(), PayloadError> {
        let mut body = StagedFile::of(file, entry);
        if !self.existing.is_replay() {
            let bytes = body.entry.content_bytes();
            body.direct = self.unsynced.begin_file(&mut body.file, bytes);
        }
        self.continue_or_finish(body)
    }

    fn finish_file(&mut self, mut body: StagedFile) -> Result<(), PayloadError> {
        if self.existing == Existing::Measured {
            return Ok(());
        }
        // The file may end with a hole.
        body.file.skip_to(body.entry.size());
        let (unsynced, is_lent) = (&mut self.unsynced, self.staging.is_lent());
        let mut finish = || {
            body.file.finish()?;
            let file = body.file.file();
            // The mode is set behind the last write, which clears some bits of it.
            let unkept = Attributes::of(&body.entry).set(file.as_fd(), is_lent)?;
            unsynced.file(file, body.entry.size())?;
            Ok(unkept)
        };
        let finished = finish().map_err(|error| self.io("finish", &body.entry.path, error));
        self.unkept += finished?;
        self.pulse.worked();
        Ok(())
    }

    /// Finishes the current directory, and goes to its parent. The root stays open, since it has
    /// none.
    fn leave(&mut self) -> Result<(), PayloadError> {
        let Root::Directory(open) = &mut self.root else {
            return Ok(());
        };
        let path = open.cursor.path().to_owned();
        let attributes = open.entries.pop();
        let is_measured = self.existing == Existing::Measured;
        let (unsynced, is_lent) = (&mut self.unsynced, self.staging.is_lent());
        let finish = |directory: BorrowedFd<'_>| {
            if is_measured {
                return Ok(Unkept::default());
            }
            let set = attributes.map(|attributes| attributes.set(directory, is_lent));
            unsynced.directory(directory)?;
            set.unwrap_or(Ok(Unkept::default()))
        };
        let finished = match open.cursor.is_at_root() {
            true => finish(open.cursor.here()),
            // Left first, since its mode may deny access to `..`.
            false => open.cursor.leave().and_then(|left| finish(left.as_fd())),
        };
        self.unkept += finished.map_err(|error| self.io("finish", &path, error))?;
        self.pulse.worked();
        Ok(())
    }

    /// Converts an error of creating an entry: if the entry exists, the message is at fault.
    fn not_made(&self, path: &Path, error: io::Error) -> PayloadError {
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                PayloadError::Refused(path.to_owned(), Refusal::Duplicate)
            }
            _ => self.io("create", path, error),
        }
    }

    /// Returns an I/O error with the path below the destination, not the staging place.
    fn io(&self, action: &'static str, path: &Path, error: io::Error) -> PayloadError {
        PayloadError::io(action, &below(self.staging.destination(), path))(error)
    }
}

/// Opens a file of a prefix, or creates a new one.
fn open_file(directory: BorrowedFd<'_>, name: &Path, existing: Existing) -> io::Result<NewFile> {
    if existing.is_replay() {
        return replay::open_file(directory, name, existing);
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let made = openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(NewFile::new(made.into(), 0))
}

/// Joins two paths, without the slash that an empty `path` would add.
fn below(root: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() {
        return root.to_owned();
    }
    root.join(path)
}
