//! Trees of files: created, and compared in every detail that a user could notice.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

use crate::processes::until;

/// Everything below a directory, by relative path.
pub type Tree = BTreeMap<PathBuf, Node>;

#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    pub kind: Kind,
    /// Permission bits; 0 for a symlink, which has none.
    pub mode: u32,
    /// Time of modification in seconds and nanoseconds.
    pub mtime: (i64, i64),
}

#[derive(Clone, PartialEq, Eq)]
pub enum Kind {
    File(Vec<u8>),
    Directory,
    Symlink(PathBuf),
    /// Any other type, such as a fifo.
    Other,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::File(content) => {
                let begin = String::from_utf8_lossy(&content[..content.len().min(24)]);
                write!(f, "file of {} bytes, {begin:?}..", content.len())?;
            }
            Kind::Directory => f.write_str("directory")?,
            Kind::Symlink(target) => write!(f, "symlink to {target:?}")?,
            Kind::Other => f.write_str("special file")?,
        }
        write!(
            f,
            ", mode {:03o}, mtime {}.{:09}",
            self.mode, self.mtime.0, self.mtime.1
        )
    }
}

/// Returns the entries below `root`, without `root` itself.
#[track_caller]
pub fn snapshot(root: &Path) -> Tree {
    let mut tree = Tree::new();
    collect(root, Path::new(""), &mut tree);
    tree
}

#[track_caller]
fn collect(root: &Path, below: &Path, tree: &mut Tree) {
    let directory = root.join(below);
    let entries = fs::read_dir(&directory);
    for entry in entries.unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
        let entry = entry.expect("a directory that is left alone can be listed");
        let path = below.join(entry.file_name());
        let metadata = entry.metadata().expect("what is listed is there");
        let kind = match metadata.file_type() {
            t if t.is_file() => Kind::File(fs::read(entry.path()).expect("it can be read")),
            t if t.is_dir() => Kind::Directory,
            t if t.is_symlink() => Kind::Symlink(fs::read_link(entry.path()).expect("it is one")),
            _ => Kind::Other,
        };
        let is_link = matches!(kind, Kind::Symlink(_));
        let mode = metadata.permissions().mode() & 0o7777;
        let node = Node {
            mode: if is_link { 0 } else { mode },
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            kind,
        };
        if node.kind == Kind::Directory {
            collect(root, &path, tree);
        }
        tree.insert(path, node);
    }
}

/// Returns the entries below `root`; all folders have the same time.
#[track_caller]
pub fn without_folder_times(root: &Path) -> Tree {
    let mut tree = snapshot(root);
    for node in tree.values_mut() {
        if node.kind == Kind::Directory {
            node.mtime = (0, 0);
        }
    }
    tree
}

/// Checks that two trees are the same: names, types, content, permissions and times.
#[track_caller]
pub fn assert_same(left: &Tree, right: &Tree) {
    let only = |sign: char, these: &Tree, those: &Tree| -> String {
        let differ = these
            .iter()
            .filter(|(path, node)| those.get(*path) != Some(node));
        let lines = differ.map(|(path, node)| format!("{sign} {path:?}: {node:?}\n"));
        lines.collect()
    };
    let differences = only('-', left, right) + &only('+', right, left);
    assert!(differences.is_empty(), "the trees differ:\n{differences}");
}

/// Checks that the files below two directories are the same.
#[track_caller]
pub fn assert_same_below(left: &Path, right: &Path) {
    assert_same(&snapshot(left), &snapshot(right));
}

/// Returns the names in a directory, sorted.
#[track_caller]
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let names = entries.map(|entry| entry.expect("it is listed").file_name());
    let mut names: Vec<String> = names.map(|name| name.display().to_string()).collect();
    names.sort();
    names
}

/// Returns the names in a directory, sorted; none if it is missing.
#[track_caller]
pub fn names_if_any(directory: &Path) -> Vec<String> {
    match directory.is_dir() {
        true => names(directory),
        false => Vec::new(),
    }
}

/// Returns the names in an output directory, sorted, without records and what belongs to them.
#[track_caller]
pub fn messages(output: &Path) -> Vec<String> {
    let mut names = names(output);
    let all = names.clone();
    let can_be_continued = |name: &str| {
        let name = name.strip_suffix(".partial");
        name.is_some_and(|name| all.contains(&format!("{name}.heads")))
    };
    names.retain(|name| {
        let is_record = name.starts_with(".flitcast-round-");
        let belongs_to_one = name.ends_with(".receipt") || name.ends_with(".heads");
        !is_record && !belongs_to_one && !can_be_continued(name)
    });
    names
}

/// Returns the only record in an output directory.
#[track_caller]
pub fn record(output: &Path) -> PathBuf {
    let mut records = names(output);
    records.retain(|name| name.starts_with(".flitcast-round-"));
    assert_eq!(records.len(), 1, "{}: {records:?}", output.display());
    output.join(&records[0])
}

/// Waits until a message is being written in an output directory or in a row of it.
#[track_caller]
pub fn wait_for_partial(output: &Path) {
    until("a message arrives", || {
        let entries = |folder: &Path| {
            let listed = fs::read_dir(folder).into_iter().flatten().flatten();
            listed.map(|entry| entry.path())
        };
        // In a hidden folder the PE measures the costs of files.
        let is_row = |path: &PathBuf| !path.display().to_string().contains("/.flitcast-");
        let below = entries(output).filter(is_row).flat_map(|row| entries(&row));
        let mut all = entries(output).chain(below);
        all.any(|path| path.extension().is_some_and(|ending| ending == "partial"))
    });
}

/// Returns values that change if an entry is written again: its inode and the time of its last change.
#[track_caller]
pub fn identity(path: &Path) -> (u64, i64) {
    let found = fs::symlink_metadata(path);
    let found = found.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (found.ino(), found.ctime_nsec())
}

/// Writes a file of `bytes` bytes whose content depends on its path, and creates its directories.
#[track_caller]
pub fn fill(path: &Path, bytes: usize) {
    let parent = path.parent().expect("it is below a directory");
    fs::create_dir_all(parent).expect("a scratch directory can be written to");
    let seed = path.as_os_str().as_bytes().iter();
    let mut state = seed.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // A prime, so that pieces that are misplaced by whole flits or blocks never have the expected bytes.
    const PERIOD: usize = 65_537;
    let pattern = (0..PERIOD.min(bytes)).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    });
    let pattern: Vec<u8> = pattern.collect();
    let mut content = Vec::with_capacity(bytes);
    while content.len() < bytes {
        content.extend_from_slice(&pattern[..PERIOD.min(bytes - content.len())]);
    }
    fs::write(path, content).expect("a scratch directory can be written to");
}

/// Creates nested directories below a root, and a file with this content in the innermost. The path
/// may be longer than the system can open at once.
#[track_caller]
pub fn fill_deep(root: &Path, names: &[&str], content: &[u8]) {
    fs::create_dir_all(root).expect("a scratch directory can be written to");
    let mut here = open_directory(CWD, root);
    for name in names {
        mkdirat(&here, *name, Mode::RWXU).expect("a scratch directory can be written to");
        here = open_directory(here.as_fd(), Path::new(name));
    }
    let file = openat(here, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR);
    let mut file = File::from(file.expect("a scratch directory can be written to"));
    file.write_all(content)
        .expect("a scratch directory can be written to");
}

/// Makes short files in a directory: each takes a page of a disk, and far fewer bytes of a message.
#[track_caller]
pub fn fill_with_short(directory: &Path, files: usize) {
    fs::create_dir_all(directory).expect("a scratch directory can be written to");
    for number in 0..files {
        let path = directory.join(format!("short {number:04}"));
        fs::write(path, [7; 50]).expect("a scratch directory can be written to");
    }
}

/// Returns the content of a file that [`fill_deep`] created.
#[track_caller]
pub fn read_deep(root: &Path, names: &[&str]) -> Vec<u8> {
    let mut here = open_directory(CWD, root);
    for name in names {
        here = open_directory(here.as_fd(), Path::new(name));
    }
    let file = openat(here, "file", OFlags::RDONLY, Mode::empty());
    let mut content = Vec::new();
    let mut file = File::from(file.expect("it is there"));
    file.read_to_end(&mut content).expect("it can be read");
    content
}

#[track_caller]
fn open_directory(above: BorrowedFd<'_>, path: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let opened = openat(above, path, flags, Mode::empty());
    opened.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Creates a folder whose files have this number of bytes in total and take the room of one: they are
/// names of one file of zeros, each read and sent separately, and none has holes.
#[track_caller]
pub fn long(path: &Path, bytes: u64) {
    const ONE: u64 = 64 << 20;
    let first = path.join("0");
    let make = || {
        fs::create_dir_all(path)?;
        fs::write(&first, vec![0; bytes.min(ONE) as usize])?;
        (1..bytes.div_ceil(ONE)).try_for_each(|at| fs::hard_link(&first, path.join(at.to_string())))
    };
    make().expect("a scratch directory can be written to");
}

#[track_caller]
pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

#[track_caller]
pub fn set_mtime(path: &Path, seconds: u64, nanos: u32) {
    let time = UNIX_EPOCH + Duration::new(seconds, nanos);
    let file = File::open(path).expect("it is there");
    file.set_times(FileTimes::new().set_modified(time))
        .expect("it is ours");
}
