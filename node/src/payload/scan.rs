//! The walk over the files of a message, for measuring and for sending.
//!
//! Nothing here reads the content of a file ([`super::Packer`] does) or assigns files to messages
//! ([`super::read_input_dir`] and [`super::deal`] do).

mod attributes;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::Hasher as _;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use flitcast_proto::Unkept;
use prost::Message as _;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use twox_hash::XxHash3_64;

use super::cursor::{Cursor, DirectoryNames};
use super::entry::{Content, Entry, EntryKind, Mtime};
use super::error::{PayloadError, Refusal};
use super::extents::Extents;
use super::hidden::HiddenName;
use super::inode::{HardLinks, Inode};
use super::selection::{Choice, Selection};
use crate::system::process::user;

/// An entry of a message to be sent.
#[derive(Debug)]
pub(super) struct FoundEntry {
    pub entry: Entry,
    /// Path of the entry; the base for the root of a dealt message.
    pub source: PathBuf,
    /// The inode; a blank one for the root of a dealt message.
    pub inode: Inode,
    /// Whether the entry is a file that this process can read, as its owner, and that has no holes: to
    /// measure it, it need not be opened.
    pub is_plain: bool,
    /// The position of the first byte in the file, and the bytes of the whole file, if the entry is a
    /// part of it.
    pub part: Option<(u64, u64)>,
    /// The result of `stat`; `None` for the root of a dealt message.
    stat: Option<Stat>,
    /// The open file, in an archive.
    file: Option<Arc<File>>,
}

impl FoundEntry {
    fn new(entry: Entry, source: PathBuf, stat: Option<Stat>) -> Self {
        Self {
            inode: stat.as_ref().map(Inode::of).unwrap_or_default(),
            entry,
            source,
            is_plain: false,
            part: None,
            stat,
            file: None,
        }
    }

    /// Returns a hash of all that the file system reports of the entry: its path, kind, length,
    /// mode, time and inode. The time of the inode's last change counts for files only.
    pub fn state(&self) -> u64 {
        let (entry, mut hash) = (&self.entry, XxHash3_64::new());
        let mut add = |bytes: &[u8]| {
            hash.write(&(bytes.len() as u64).to_le_bytes());
            hash.write(bytes);
        };
        add(entry.path.as_os_str().as_bytes());
        add(&entry.mode.to_le_bytes());
        add(&self.inode.number.to_le_bytes());
        let mut add_time = |time: Mtime| {
            add(&time.seconds.to_le_bytes());
            add(&time.nanos.to_le_bytes());
        };
        add_time(entry.mtime);
        match &entry.kind {
            EntryKind::File { size, .. } => {
                add_time(self.inode.changed);
                add(&size.to_le_bytes());
                if let Some((at, whole)) = self.part {
                    add(&at.to_le_bytes());
                    add(&whole.to_le_bytes());
                }
            }
            EntryKind::Directory => add(b"directory"),
            EntryKind::Symlink { target } | EntryKind::HardLink { target } => {
                add(target.as_os_str().as_bytes());
            }
        }
        if let Some(archived) = &entry.archived {
            add(&archived.to_wire().encode_to_vec());
        }
        hash.finish()
    }
}

/// The entries of a message in the order in which they are sent: depth first, each directory before
/// its entries, by name. Symlinks are not followed, and hidden files of Flitcast are left out. One
/// directory is open at a time; of each one above it, the remaining names are in memory.
pub(super) struct Walk {
    base: PathBuf,
    state: WalkState,
    /// Which entries below a root directory are found.
    selection: Selection,
    /// Number of files and folders that have been left out.
    pub left_out: u64,
    /// In an archive: the files with several names.
    archive: Option<HardLinks>,
    /// Outside of an archive: the entries so far some of whose attributes are not sent.
    pub unkept: Unkept,
}

enum WalkState {
    /// Before the root of this message.
    Begun(Content),
    /// Behind a root that is not a directory.
    AtFile,
    /// Inside of the root, with the listings of the directories from the root down to the cursor.
    Below(Cursor, Vec<DirectoryNames>),
    /// Inside of a dealt message, with its files and the index of the next one.
    Dealt(Cursor, Arc<[PathBuf]>, usize),
    /// A root that is one open file, with the inode it had when opened, and whether it was
    /// returned.
    Open(Arc<File>, Inode, bool),
}

impl Iterator for Walk {
    type Item = Result<FoundEntry, PayloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.next_found()?;
        Some(found.and_then(|found| match self.archive {
            Some(_) => self.archived(found),
            None => {
                self.count_unkept(&found);
                Ok(found)
            }
        }))
    }
}

impl Walk {
    fn next_found(&mut self) -> Option<Result<FoundEntry, PayloadError>> {
        match &mut self.state {
            WalkState::Begun(content) => {
                let content = content.clone();
                Some(self.begin(content))
            }
            WalkState::AtFile => None,
            WalkState::Below(cursor, listings) => next_below(
                &self.base,
                cursor,
                listings,
                &self.selection,
                &mut self.left_out,
            ),
            WalkState::Dealt(cursor, files, next) => next_dealt(&self.base, cursor, files, next),
            WalkState::Open(.., is_found) if *is_found => None,
            WalkState::Open(file, inode, is_found) => {
                *is_found = true;
                let (file, inode) = (file.clone(), *inode);
                Some(self.entry(&file, inode))
            }
        }
    }

    pub fn of(content: &Content) -> Self {
        Self::at(content.path(), WalkState::Begun(content.clone()))
    }

    /// Walks over a message that is one open file, which had this inode when it was opened.
    pub fn of_open(path: &Path, file: Arc<File>, inode: Inode) -> Self {
        Self::at(path, WalkState::Open(file, inode, false))
    }

    fn at(path: &Path, state: WalkState) -> Self {
        Self {
            base: path.to_owned(),
            state,
            selection: Selection::default(),
            left_out: 0,
            archive: None,
            unkept: Unkept::default(),
        }
    }

    /// Finds entries with all attributes that an archive keeps, if this `is` one.
    pub fn archiving(self, is: bool) -> Self {
        Self {
            archive: is.then(HardLinks::default),
            ..self
        }
    }

    /// Finds only what is selected.
    pub fn of_selected(path: &Path, selection: &Selection) -> Self {
        Self {
            selection: selection.clone(),
            ..Self::of(&Content::Entry(path.to_owned()))
        }
    }

    /// Returns the entry of the open file as it is now.
    fn entry(&self, file: &File, inode: Inode) -> Result<FoundEntry, PayloadError> {
        let found = fstat(file).map_err(PayloadError::io("read", &self.base))?;
        let kind = EntryKind::File {
            size: found.st_size as u64,
            extents: Extents::default(),
        };
        let entry = Entry::of(&found, PathBuf::new(), kind);
        let now = FoundEntry::new(entry, self.base.clone(), Some(found));
        Ok(match inode.is_still(&found) {
            true => FoundEntry { inode, ..now },
            false => now,
        })
    }

    fn begin(&mut self, content: Content) -> Result<FoundEntry, PayloadError> {
        let unread = || PayloadError::io("read", &self.base);
        self.state = WalkState::AtFile;
        match content {
            Content::Entry(path) => {
                let root = examine(path, PathBuf::new())?;
                if root.entry.kind == EntryKind::Directory {
                    let cursor = Cursor::open(&self.base).map_err(unread())?;
                    let listing = cursor.list().map_err(unread())?;
                    self.state = WalkState::Below(cursor, vec![listing]);
                }
                Ok(root)
            }
            Content::Dealt {
                base,
                files,
                with_root,
            } => {
                let cursor = Cursor::open(&base).map_err(unread())?;
                self.state = WalkState::Dealt(cursor, files, 0);
                match with_root {
                    true => examine(base, PathBuf::new()),
                    false => Ok(FoundEntry::new(Entry::dealt_root(), base, None)),
                }
            }
            Content::Part { path, at, bytes } => part_of(path, at, bytes),
        }
    }

    /// Opens the regular file that was found last, and adds its holes to its entry.
    pub fn open(&self, found: &mut FoundEntry) -> Result<Arc<File>, PayloadError> {
        let file = match found.file.take() {
            Some(file) => file,
            None => self.open_file(found)?,
        };
        // A part of a file is sent without holes.
        if let (EntryKind::File { size, extents }, None) = (&mut found.entry.kind, found.part)
            && !found.is_plain
        {
            let extents_of_file = Extents::of(&file, *size);
            *extents = extents_of_file.map_err(PayloadError::io("read", &found.source))?;
        }
        Ok(file)
    }

    /// Opens the regular file that was found last.
    fn open_file(&self, found: &FoundEntry) -> Result<Arc<File>, PayloadError> {
        let opened = match (&self.state, found.entry.path.file_name()) {
            (WalkState::Open(file, ..), _) => return Ok(file.clone()),
            (WalkState::Below(cursor, _) | WalkState::Dealt(cursor, ..), Some(name)) => {
                open_regular(cursor.here(), Path::new(name), &found.source)
            }
            _ => open_regular(CWD, &found.source, &found.source),
        };
        opened.map(Arc::new)
    }
}

/// Opens a regular file for reading by its path from a directory; errors contain `source`. If
/// another kind of entry has taken its place, this neither follows a symlink nor waits for the
/// writer of a fifo.
pub(super) fn open_regular(
    directory: BorrowedFd<'_>,
    path: &Path,
    source: &Path,
) -> Result<File, PayloadError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(directory, path, flags, Mode::empty()).map(File::from);
    opened.map_err(PayloadError::io("read", source))
}

fn next_below(
    base: &Path,
    cursor: &mut Cursor,
    listings: &mut Vec<DirectoryNames>,
    selection: &Selection,
    left_out: &mut u64,
) -> Option<Result<FoundEntry, PayloadError>> {
    loop {
        if let Some(name) = listings.last_mut()?.next() {
            if HiddenName::parse(&name).is_some() {
                *left_out += 1;
                continue;
            }
            if !selection.is_empty() && !is_selected(cursor, &name, selection) {
                continue;
            }
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

/// Returns whether the entry `name` of the cursor's directory is taken, or may have entries that are. One
/// that cannot be examined is: its error is reported later.
fn is_selected(cursor: &Cursor, name: &OsStr, selection: &Selection) -> bool {
    let Ok(found) = statat(cursor.here(), name, AtFlags::SYMLINK_NOFOLLOW) else {
        return true;
    };
    let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    match selection.choose(&cursor.path().join(name), is_folder) {
        Choice::Taken => true,
        Choice::Open => is_folder,
        Choice::LeftOut => false,
    }
}

/// Returns the next entry of a dealt message. The files are sorted, so those below one directory
/// are consecutive.
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
    let found = step(base, cursor, name).and_then(|found| match found.entry.kind {
        EntryKind::Directory => Ok(found),
        _ => Err(PayloadError::Changed(found.source)),
    });
    Some(found)
}

/// Examines the entry `name` of the cursor's directory, and enters it if it is a directory.
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
    let left = cursor.leave().map(drop);
    left.map_err(|error| PayloadError::io("read", &base.join(cursor.path()))(error))
}

/// Examines the entry at `source`; returns an error if it cannot be sent.
pub(super) fn examine(source: PathBuf, path: PathBuf) -> Result<FoundEntry, PayloadError> {
    let name = source.clone();
    look(CWD, name.as_os_str(), source, path)
}

/// Examines a part of a file; returns an error if the file has become shorter.
fn part_of(source: PathBuf, at: u64, bytes: u64) -> Result<FoundEntry, PayloadError> {
    let mut found = examine(source, PathBuf::new())?;
    match &mut found.entry.kind {
        EntryKind::File { size, .. } if *size >= at + bytes => {
            found.part = Some((at, *size));
            *size = bytes;
            Ok(found)
        }
        _ => Err(PayloadError::Changed(found.source)),
    }
}

/// Returns whether this process owns the file, and its owner may read it.
fn is_read_by_owner(found: &Stat) -> bool {
    static USER: LazyLock<u32> = LazyLock::new(user);
    found.st_uid == *USER && Mode::from_raw_mode(found.st_mode).contains(Mode::RUSR)
}

/// Examines the entry `name` of a directory.
fn look(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    source: PathBuf,
    path: PathBuf,
) -> Result<FoundEntry, PayloadError> {
    let unread = || PayloadError::io("read", &source);
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(unread())?;
    let refused = |why| PayloadError::Refused(source.clone(), why);
    let kind = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => EntryKind::File {
            // Never negative.
            size: found.st_size as u64,
            // Set when the file is opened.
            extents: Extents::default(),
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
    let entry = Entry::of(&found, path, kind);
    let is_plain = entry.is_file() && Extents::are_none(&found) && is_read_by_owner(&found);
    match entry.check() {
        Ok(()) => Ok(FoundEntry {
            is_plain,
            ..FoundEntry::new(entry, source, Some(found))
        }),
        Err(why) => Err(refused(why)),
    }
}
