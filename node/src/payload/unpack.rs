//! Writes a message made of files, as its bytes come in.
//!
//! The sender is not trusted. Names are checked before they reach the file system
//! ([`super::entry`]), and everything is created anew, by its name alone, in a directory
//! of ours that is held open; so nothing is ever written through a symlink, and no path is
//! too long. Entries come depth first: a directory is finished as soon as the next entry
//! stands outside of it, and of all that came before, only the directories on the way to
//! that entry are remembered. Where the message goes when it is whole is
//! [`super::staging`]'s business.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};
use rustix::fs::{fchmod, futimens, mkdirat, openat, statat, symlinkat, utimensat};

use super::cursor::Cursor;
use super::entry::{ENTRY_BYTES_MAX, Entry, EntryKind, Mtime, Refusal};
use super::error::PayloadError;
use super::holes::NewFile;
use super::staging::{Staging, sync_directory};
use crate::pulse::Pulse;

/// What the bytes of a length up to [`ENTRY_BYTES_MAX`] can take.
const PREFIX_BYTES_MAX: usize = 3;

/// Puts a message together beside its destination; dropped before
/// [`commit`](Self::commit), it leaves nothing behind.
pub struct Unpacker {
    staging: Staging,
    replace: bool,
    /// Told of each entry that is finished: what the disk is doing shows nowhere else.
    pulse: Arc<Pulse>,
    /// After an error: what is staged is not the message.
    broken: bool,
    root: Root,
    /// The incomplete next entry, with its length prefix.
    head: Vec<u8>,
    /// The regular file whose content comes next.
    body: Option<StagedFile>,
}

enum Root {
    Awaited,
    File,
    Directory(Unfinished),
}

/// The directories on the way to what comes next.
struct Unfinished {
    cursor: Cursor,
    /// What becomes of each, the root first.
    entries: Vec<Attributes>,
}

/// What is told of an entry last, since writing to it would change that again.
#[derive(Clone, Copy)]
struct Attributes {
    mode: u32,
    mtime: Option<Mtime>,
}

struct StagedFile {
    file: NewFile,
    entry: Entry,
    size: u64,
}

impl Unpacker {
    /// For a message that becomes `destination`, whose parent directory must be
    /// there. Of one output directory, each destination has one Unpacker at a time. What
    /// `undertaking` itself has put there gives way, and what else there is only if it is to
    /// be replaced.
    pub fn create(
        destination: PathBuf,
        replace: bool,
        nonce: u64,
        undertaking: u64,
        pulse: Arc<Pulse>,
    ) -> Result<Self, PayloadError> {
        let staging = Staging::beside(destination, nonce, undertaking)?;
        staging.check_parent()?;
        if !replace {
            // Again at commit; but now no round has been wasted yet.
            staging.check_free()?;
        }
        Ok(Self {
            staging,
            replace,
            pulse,
            broken: false,
            root: Root::Awaited,
            head: Vec::new(),
            body: None,
        })
    }

    /// Takes the next bytes of the message, however it was cut. After an error the
    /// message is lost.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), PayloadError> {
        let taken = self.check_staged().and_then(|()| self.take(bytes));
        self.broken |= taken.is_err();
        taken
    }

    /// Fails if the file that is being written was removed behind our back. Its bytes
    /// would go nowhere, and that would show at the end only.
    fn check_staged(&self) -> Result<(), PayloadError> {
        let Some(body) = &self.body else {
            return Ok(());
        };
        let look = || match body.file.file().metadata()?.nlink() {
            // Not all file systems count: there it is the name that tells.
            0 => match (&self.root, body.entry.path.file_name()) {
                (Root::Directory(open), Some(name)) => {
                    let found = statat(open.cursor.here(), name, AtFlags::SYMLINK_NOFOLLOW);
                    found.map(|_| ()).map_err(io::Error::from)
                }
                _ => fs::symlink_metadata(self.staging.path()).map(|_| ()),
            },
            _ => Ok(()),
        };
        look().map_err(|error| self.io("write", &body.entry.path, error))
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), PayloadError> {
        while !bytes.is_empty() {
            bytes = if self.body.is_some() {
                self.write_body(bytes)?
            } else {
                self.read_head(bytes)?
            };
        }
        Ok(())
    }

    /// Makes the message visible at its destination, and returns when that is durable.
    pub fn commit(mut self) -> Result<(), PayloadError> {
        let mid_entry = self.body.is_some() || !self.head.is_empty();
        if self.broken || mid_entry || matches!(self.root, Root::Awaited) {
            return Err(PayloadError::Incomplete {
                destination: self.staging.destination().to_owned(),
            });
        }
        while let Root::Directory(open) = &self.root
            && !open.entries.is_empty()
        {
            self.leave()?;
        }
        self.staging.publish(self.replace)
    }

    /// Returns what is left of `bytes` behind the file's content.
    fn write_body<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], PayloadError> {
        let Some(mut body) = self.body.take() else {
            return Ok(bytes);
        };
        let remaining = body.size - body.file.bytes();
        let most = usize::try_from(remaining).map_or(bytes.len(), |left| left.min(bytes.len()));
        let (content, rest) = bytes.split_at(most);
        body.file
            .write(content)
            .map_err(|error| self.io("write", &body.entry.path, error))?;
        if body.file.bytes() == body.size {
            self.finish_file(&body)?;
        } else {
            self.body = Some(body);
        }
        Ok(rest)
    }

    /// Returns what is left of `bytes` behind the entry, or nothing.
    fn read_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], PayloadError> {
        // While the length is not known yet, one byte more is certain.
        let wanted = self.head_bytes()?.unwrap_or(self.head.len() + 1);
        let more = (wanted - self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(more);
        self.head.extend_from_slice(head);
        if self.head_bytes()? == Some(self.head.len()) {
            let head = std::mem::take(&mut self.head);
            let mut encoded = head.as_slice();
            // Known to be complete, this only steps over the prefix.
            let length = prost::decode_length_delimiter(&mut encoded);
            debug_assert_eq!(length.ok(), Some(encoded.len()));
            self.begin(Entry::decode(encoded)?)?;
        }
        Ok(rest)
    }

    /// The length of the entry with its prefix, once the prefix is complete.
    fn head_bytes(&self) -> Result<Option<usize>, PayloadError> {
        let malformed = || {
            let why = Refusal::Malformed("longer than any entry can be");
            PayloadError::refused(Path::new("an entry"), why)
        };
        let Some(prefix) = self.head.iter().position(|byte| byte & 0x80 == 0) else {
            return match self.head.len() {
                0..PREFIX_BYTES_MAX => Ok(None),
                _ => Err(malformed()),
            };
        };
        match prost::decode_length_delimiter(self.head.as_slice()) {
            Ok(length) if length <= ENTRY_BYTES_MAX => Ok(Some(prefix + 1 + length)),
            _ => Err(malformed()),
        }
    }

    fn begin(&mut self, entry: Entry) -> Result<(), PayloadError> {
        let refused = |why| Err(PayloadError::refused(&entry.path, why));
        match (&self.root, entry.is_root()) {
            (Root::Awaited, true) => self.begin_root(entry),
            (Root::Awaited, false) => refused(Refusal::BeforeRoot),
            (Root::File, false) => refused(Refusal::BesideFile),
            (_, true) => refused(Refusal::Duplicate),
            (Root::Directory(_), false) => {
                self.go_to_parent(&entry.path)?;
                self.begin_here(entry)
            }
        }
    }

    fn begin_root(&mut self, entry: Entry) -> Result<(), PayloadError> {
        let staged = self.staging.path().to_owned();
        let create = || PayloadError::io("create", &staged);
        match entry.kind {
            EntryKind::File { size } => {
                let mut made = OpenOptions::new();
                let made = made.write(true).create_new(true).mode(0o600).open(&staged);
                let file = made.map_err(create())?;
                self.staging.claim();
                self.root = Root::File;
                self.begin_body(file, entry, size)
            }
            // No symlink: that was checked.
            EntryKind::Directory | EntryKind::Symlink { .. } => {
                // Ours to write to until it is finished, whatever its mode will be.
                let made = DirBuilder::new().mode(0o700).create(&staged);
                made.map_err(create())?;
                self.staging.claim();
                self.root = Root::Directory(Unfinished {
                    cursor: Cursor::open(&staged).map_err(create())?,
                    entries: vec![entry.attributes()],
                });
                Ok(())
            }
        }
    }

    /// Finishes directories until the one is reached that an entry stands in.
    fn go_to_parent(&mut self, path: &Path) -> Result<(), PayloadError> {
        let parent = path.parent().unwrap_or(Path::new(""));
        while let Root::Directory(open) = &self.root
            && open.cursor.path() != parent
        {
            if open.cursor.is_at_root() || parent.starts_with(open.cursor.path()) {
                return Err(PayloadError::refused(path, Refusal::NoParent));
            }
            self.leave()?;
        }
        Ok(())
    }

    /// Makes an entry of the directory that comes next.
    fn begin_here(&mut self, entry: Entry) -> Result<(), PayloadError> {
        let (Root::Directory(open), Some(name)) = (&mut self.root, entry.path.file_name()) else {
            return Err(PayloadError::refused(&entry.path, Refusal::BeforeRoot));
        };
        let here = open.cursor.here();
        match &entry.kind {
            EntryKind::File { size } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let made = openat(here, name, flags, Mode::RUSR | Mode::WUSR);
                let size = *size;
                let file = made.map_err(|error| self.not_made(&entry.path, error.into()))?;
                self.begin_body(file.into(), entry, size)
            }
            EntryKind::Directory => {
                let made = mkdirat(here, name, Mode::RWXU).map_err(io::Error::from);
                let entered = made.and_then(|()| open.cursor.enter(name));
                open.entries.push(entry.attributes());
                entered.map_err(|error| self.not_made(&entry.path, error))
            }
            EntryKind::Symlink { target } => {
                let made = symlinkat(target, here, name).map_err(io::Error::from);
                made.map_err(|error| self.not_made(&entry.path, error))?;
                self.finish_symlink(&entry)
            }
        }
    }

    fn begin_body(&mut self, file: File, entry: Entry, size: u64) -> Result<(), PayloadError> {
        let file = NewFile::new(file);
        let body = StagedFile { file, entry, size };
        if size == 0 {
            return self.finish_file(&body);
        }
        self.body = Some(body);
        Ok(())
    }

    fn finish_file(&self, body: &StagedFile) -> Result<(), PayloadError> {
        let finish = || {
            body.file.finish()?;
            let file = body.file.file();
            // The mode last but for the sync: writing clears some bits of it.
            body.entry.attributes().set(file.as_fd())?;
            file.sync_all()
        };
        finish().map_err(|error| self.io("finish", &body.entry.path, error))?;
        self.pulse.worked();
        Ok(())
    }

    fn finish_symlink(&self, entry: &Entry) -> Result<(), PayloadError> {
        if let (Root::Directory(open), Some(name)) = (&self.root, entry.path.file_name()) {
            let (here, times) = (open.cursor.here(), timestamps(entry.mtime));
            utimensat(here, name, &times, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| self.io("finish", &entry.path, error.into()))?;
        }
        self.pulse.worked();
        Ok(())
    }

    /// Finishes the directory that entries were made in, and goes to the one above. The root
    /// stays open: it has none.
    fn leave(&mut self) -> Result<(), PayloadError> {
        let Root::Directory(open) = &mut self.root else {
            return Ok(());
        };
        let path = open.cursor.path().to_owned();
        let attributes = open.entries.pop();
        let finish = |directory: BorrowedFd<'_>| {
            if let Some(attributes) = attributes {
                attributes.set(directory)?;
            }
            sync_directory(directory)
        };
        let finished = match open.cursor.is_at_root() {
            true => finish(open.cursor.here()),
            // Left first: its mode may lock us out of `..`.
            false => open
                .cursor
                .leave()
                .and_then(|left: OwnedFd| finish(left.as_fd())),
        };
        finished.map_err(|error| self.io("finish", &path, error))?;
        self.pulse.worked();
        Ok(())
    }

    /// An entry could not be made: by the message's fault, or by our file system's.
    fn not_made(&self, path: &Path, error: io::Error) -> PayloadError {
        match error.kind() {
            io::ErrorKind::AlreadyExists => PayloadError::refused(path, Refusal::Duplicate),
            _ => self.io("create", path, error),
        }
    }

    /// Names the path under the destination, which the user knows.
    fn io(&self, action: &'static str, path: &Path, error: io::Error) -> PayloadError {
        PayloadError::io(action, &below(self.staging.destination(), path))(error)
    }
}

impl Entry {
    fn attributes(&self) -> Attributes {
        let is_left =
            self.kind == EntryKind::Directory && self.is_root() && self.mtime == Mtime::LEAVE;
        Attributes {
            mode: self.mode,
            mtime: (!is_left).then_some(self.mtime),
        }
    }
}

impl Attributes {
    fn set(self, of: BorrowedFd<'_>) -> io::Result<()> {
        if let Some(mtime) = self.mtime {
            futimens(of, &timestamps(mtime))?;
        }
        Ok(fchmod(of, Mode::from_raw_mode(self.mode))?)
    }
}

/// Joined, without the slash that joining the root's empty path would add.
fn below(root: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() {
        return root.to_owned();
    }
    root.join(path)
}

fn timestamps(mtime: Mtime) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: mtime.seconds,
            tv_nsec: mtime.nanos.into(),
        },
    }
}
