//! What a message is made of, how long it is, and the one walk over its files.
//!
//! Measuring finds every fault that can be found before a round. Nothing here
//! reads the content of a file ([`super::Packer`] does) or decides whose message
//! it is ([`super::read_input_dir`], [`super::deal`]).

use std::fs::{self, File, FileType, Metadata};
use std::io;
use std::iter;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use walkdir::WalkDir;

use super::entry::{Entry, Kind, Mtime, Refusal, Remembered};
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
        files: Vec<PathBuf>,
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
        let mut bytes: u64 = 0;
        let mut remembered = Remembered::default();
        for found in walk(self) {
            let Found { entry, source } = found?;
            if let Kind::File { .. } = entry.kind {
                // The only check of permissions that no file system or user escapes.
                open_regular(&source)?;
            }
            remembered
                .add(&entry)
                .map_err(|why| PayloadError::refused(&source, why))?;
            bytes = entry
                .message_bytes()
                .and_then(|more| bytes.checked_add(more))
                .ok_or(PayloadError::TooLong { path: source })?;
        }
        Ok(bytes)
    }
}

/// An entry of a message to be sent.
#[derive(Debug)]
pub(super) struct Found {
    pub entry: Entry,
    /// Where it stands; for the root of a dealt message, the base.
    pub source: PathBuf,
}

/// The entries of a message in the order in which they are sent: each directory
/// before what is in it, by name. Holds one listing per level in memory.
pub(super) type Walk = Box<dyn Iterator<Item = Result<Found, PayloadError>> + Send>;

pub(super) fn walk(content: &Content) -> Walk {
    match content {
        Content::Entry(root) => Box::new(walk_below(root)),
        Content::Dealt { base, files } => Box::new(walk_dealt(base.clone(), files.clone())),
    }
}

/// `root` and everything below it; symlinks are not followed.
pub(super) fn walk_below(
    root: &Path,
) -> impl Iterator<Item = Result<Found, PayloadError>> + Send + use<> {
    let base = root.to_owned();
    WalkDir::new(root)
        .follow_root_links(false)
        .sort_by_file_name()
        .into_iter()
        .map(move |item| {
            let source = item.map_err(|error| walk_error(error, &base))?.into_path();
            // Everything that is found below `base` begins with it.
            let path = source.strip_prefix(&base).unwrap_or(&source).to_owned();
            examine(source, path)
        })
}

fn walk_error(error: walkdir::Error, base: &Path) -> PayloadError {
    let path = error.path().unwrap_or(base).to_owned();
    // The only other cause is a loop of links, and none are followed.
    let source = error.into_io_error().unwrap_or(io::ErrorKind::Other.into());
    PayloadError::io("read", &path)(source)
}

fn walk_dealt(
    base: PathBuf,
    files: Vec<PathBuf>,
) -> impl Iterator<Item = Result<Found, PayloadError>> + Send {
    let root = Found {
        entry: Entry::dealt_root(),
        source: base.clone(),
    };
    let mut last_parent = PathBuf::new();
    let below = files.into_iter().flat_map(move |file| {
        // Since the files are sorted, what is below one directory stands together:
        // a directory that does not contain the last file was not sent yet.
        let parent = file.parent().unwrap_or(Path::new(""));
        let mut steps: Vec<PathBuf> = parent
            .ancestors()
            .take_while(|directory| !last_parent.starts_with(directory))
            .map(Path::to_owned)
            .collect();
        steps.reverse();
        last_parent = parent.to_owned();
        steps.push(file);
        let base = base.clone();
        steps
            .into_iter()
            .map(move |path| examine(base.join(&path), path))
    });
    iter::once(Ok(root)).chain(below)
}

/// Makes an entry of what stands at `source`, or says why that cannot be sent.
pub(super) fn examine(source: PathBuf, path: PathBuf) -> Result<Found, PayloadError> {
    let metadata = fs::symlink_metadata(&source).map_err(PayloadError::io("read", &source))?;
    let kind = kind_of(&metadata, &source)?;
    let entry = Entry {
        path,
        kind,
        mode: metadata.permissions().mode() & 0o777,
        mtime: Mtime::of(&metadata),
    };
    match entry.check() {
        Ok(()) => Ok(Found { entry, source }),
        Err(why) => Err(PayloadError::refused(&source, why)),
    }
}

/// Opens a regular file for reading. Should something else stand there by now,
/// this neither follows a symlink nor waits for a fifo's writer.
pub(super) fn open_regular(source: &Path) -> Result<File, PayloadError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(source, flags, Mode::empty())
        .map(File::from)
        .map_err(PayloadError::io("read", source))
}

impl Mtime {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            seconds: metadata.mtime(),
            // Below 10^9, as the kernel has it.
            nanos: metadata.mtime_nsec() as u32,
        }
    }
}

fn kind_of(metadata: &Metadata, source: &Path) -> Result<Kind, PayloadError> {
    let file_type = metadata.file_type();
    if file_type.is_file() {
        let size = metadata.len();
        Ok(Kind::File { size })
    } else if file_type.is_dir() {
        Ok(Kind::Directory)
    } else if file_type.is_symlink() {
        let target = fs::read_link(source).map_err(PayloadError::io("read", source))?;
        Ok(Kind::Symlink { target })
    } else {
        let why = Refusal::Special(special(file_type));
        Err(PayloadError::refused(source, why))
    }
}

fn special(file_type: FileType) -> &'static str {
    if file_type.is_fifo() {
        "a fifo"
    } else if file_type.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}
