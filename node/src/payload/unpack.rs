//! Writes a message made of files, as its bytes come in.
//!
//! The sender is not trusted. Names are checked before they reach the file system
//! ([`super::entry`]), everything is created anew below a directory of ours, and
//! symlinks are made last, so that nothing is ever written through one. Where the
//! message goes when it is whole is [`super::staging`]'s business.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps, UTIME_OMIT};

use super::entry::{ENTRY_BYTES_MAX, Entry, Kind, Mtime, Refusal, Remembered};
use super::error::PayloadError;
use super::staging::{Staging, sync_directory};

/// What the bytes of a length up to [`ENTRY_BYTES_MAX`] can take.
const PREFIX_BYTES_MAX: usize = 3;

/// Puts a message together beside its destination; dropped before
/// [`commit`](Self::commit), it leaves nothing behind.
pub struct Unpacker {
    staging: Staging,
    replace: bool,
    /// After an error: what is staged is not the message.
    broken: bool,
    root: Root,
    /// The incomplete next entry, with its length prefix.
    head: Vec<u8>,
    /// The regular file whose content comes next.
    body: Option<Body>,
    /// In the order of the message: each directory before those in it.
    directories: Vec<Entry>,
    symlinks: Vec<Symlink>,
    remembered: Remembered,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    Awaited,
    File,
    Directory,
}

struct Body {
    file: File,
    entry: Entry,
    remaining: u64,
}

struct Symlink {
    path: PathBuf,
    target: PathBuf,
    mtime: Mtime,
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
            broken: false,
            root: Root::Awaited,
            head: Vec::new(),
            body: None,
            directories: Vec::new(),
            symlinks: Vec::new(),
            remembered: Remembered::default(),
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
        let look = || match body.file.metadata()?.nlink() {
            // Not all file systems count: there it is the path that tells.
            0 => fs::symlink_metadata(self.place(&body.entry.path)).map(|_| ()),
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
    pub fn commit(self) -> Result<(), PayloadError> {
        let mid_entry = self.body.is_some() || !self.head.is_empty();
        if self.broken || mid_entry || self.root == Root::Awaited {
            return Err(PayloadError::Incomplete {
                destination: self.staging.destination().to_owned(),
            });
        }
        for symlink in &self.symlinks {
            self.make_symlink(symlink)?;
        }
        // Deepest first: a directory's mode may lock us out of it, and whatever is
        // made in it touches its time.
        for directory in self.directories.iter().rev() {
            self.finish_directory(directory)?;
        }
        self.staging.publish(self.replace)
    }

    /// Returns what is left of `bytes` behind the file's content.
    fn write_body<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], PayloadError> {
        let Some(mut body) = self.body.take() else {
            return Ok(bytes);
        };
        let most =
            usize::try_from(body.remaining).map_or(bytes.len(), |left| left.min(bytes.len()));
        let (content, rest) = bytes.split_at(most);
        body.file
            .write_all(content)
            .map_err(|error| self.io("write", &body.entry.path, error))?;
        body.remaining -= most as u64;
        if body.remaining == 0 {
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
        self.check_place(&entry)
            .and_then(|()| self.remembered.add(&entry))
            .map_err(|why| PayloadError::refused(&entry.path, why))?;
        match &entry.kind {
            Kind::File { size } => self.begin_file(*size, entry),
            Kind::Directory => self.begin_directory(entry),
            Kind::Symlink { target } => self.begin_symlink(&entry, target.clone()),
        }
    }

    fn check_place(&self, entry: &Entry) -> Result<(), Refusal> {
        match (self.root, entry.is_root()) {
            (Root::Awaited, true) | (Root::Directory, false) => Ok(()),
            (Root::Awaited, false) => Err(Refusal::BeforeRoot),
            (Root::File, false) => Err(Refusal::BesideFile),
            (_, true) => Err(Refusal::Duplicate),
        }
    }

    fn begin_file(&mut self, size: u64, entry: Entry) -> Result<(), PayloadError> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.place(&entry.path))
            .map_err(|error| self.misplaced(&entry.path, error))?;
        self.created(&entry, Root::File);
        let body = Body {
            file,
            entry,
            remaining: size,
        };
        if size == 0 {
            return self.finish_file(&body);
        }
        self.body = Some(body);
        Ok(())
    }

    fn begin_directory(&mut self, entry: Entry) -> Result<(), PayloadError> {
        // Ours to write to until the commit, whatever its mode will be.
        DirBuilder::new()
            .mode(0o700)
            .create(self.place(&entry.path))
            .map_err(|error| self.misplaced(&entry.path, error))?;
        self.created(&entry, Root::Directory);
        self.directories.push(entry);
        Ok(())
    }

    fn begin_symlink(&mut self, entry: &Entry, target: PathBuf) -> Result<(), PayloadError> {
        let parent = entry.path.parent().unwrap_or(Path::new(""));
        match fs::symlink_metadata(self.place(parent)) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(PayloadError::refused(&entry.path, Refusal::NoParent)),
            Err(error) => return Err(self.misplaced(&entry.path, error)),
        }
        self.symlinks.push(Symlink {
            path: entry.path.clone(),
            target,
            mtime: entry.mtime,
        });
        Ok(())
    }

    fn created(&mut self, entry: &Entry, root: Root) {
        if entry.is_root() {
            self.root = root;
            self.staging.claim();
        }
    }

    fn finish_file(&self, body: &Body) -> Result<(), PayloadError> {
        let finish = || {
            // The mode last but for the sync: writing clears some bits of it.
            rustix::fs::futimens(&body.file, &timestamps(body.entry.mtime))?;
            rustix::fs::fchmod(&body.file, Mode::from_raw_mode(body.entry.mode))?;
            body.file.sync_all()
        };
        finish().map_err(|error| self.io("finish", &body.entry.path, error))
    }

    fn finish_directory(&self, entry: &Entry) -> Result<(), PayloadError> {
        let finish = || {
            let directory = File::open(self.place(&entry.path))?;
            if !(entry.is_root() && entry.mtime == Mtime::LEAVE) {
                rustix::fs::futimens(&directory, &timestamps(entry.mtime))?;
            }
            rustix::fs::fchmod(&directory, Mode::from_raw_mode(entry.mode))?;
            sync_directory(&directory)
        };
        finish().map_err(|error| self.io("finish", &entry.path, error))
    }

    fn make_symlink(&self, symlink: &Symlink) -> Result<(), PayloadError> {
        let place = self.place(&symlink.path);
        std::os::unix::fs::symlink(&symlink.target, &place)
            .map_err(|error| self.misplaced(&symlink.path, error))?;
        let times = timestamps(symlink.mtime);
        rustix::fs::utimensat(CWD, &place, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| self.io("finish", &symlink.path, error.into()))
    }

    /// Where the entry of this path is being staged.
    fn place(&self, path: &Path) -> PathBuf {
        below(self.staging.path(), path)
    }

    /// Creating an entry failed: by the message's fault, or by our file system's.
    fn misplaced(&self, path: &Path, error: io::Error) -> PayloadError {
        use io::ErrorKind::{AlreadyExists, NotADirectory, NotFound};
        // The root has no place in the message that could be wrong.
        if path.as_os_str().is_empty() {
            return PayloadError::io("create", self.staging.path())(error);
        }
        match error.kind() {
            // Or by whoever has removed all of it.
            NotFound if fs::symlink_metadata(self.staging.path()).is_err() => {
                self.io("create", path, error)
            }
            AlreadyExists => PayloadError::refused(path, Refusal::Duplicate),
            NotFound | NotADirectory => PayloadError::refused(path, Refusal::NoParent),
            _ => self.io("create", path, error),
        }
    }

    /// Names the path under the destination, which the user knows.
    fn io(&self, action: &'static str, path: &Path, error: io::Error) -> PayloadError {
        PayloadError::io(action, &below(self.staging.destination(), path))(error)
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
