//! Trees of files: made, and compared to the last bit that a user could miss.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

/// Everything below a directory, by its path in there.
pub type Tree = BTreeMap<PathBuf, Node>;

/// What stands at a path.
#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is, and what is in it.
    pub kind: Kind,
    /// The permission bits; 0 of a symlink, which has none.
    pub mode: u32,
    /// Seconds and nanoseconds.
    pub mtime: (i64, i64),
}

/// What a node is.
#[derive(Clone, PartialEq, Eq)]
pub enum Kind {
    /// A regular file and its content.
    File(Vec<u8>),
    /// A directory.
    Directory,
    /// A symlink and its target.
    Symlink(PathBuf),
    /// A fifo, say.
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

/// What stands below `root`, which itself is not in it.
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

/// That two trees are the same: names, types, content, permissions and times.
#[track_caller]
pub fn assert_same(left: &Tree, right: &Tree) {
    let mut differences = Vec::new();
    for (path, node) in left {
        match right.get(path) {
            None => differences.push(format!("- {path:?}: {node:?}")),
            Some(other) if node != other => {
                differences.push(format!("- {path:?}: {node:?}\n+ {path:?}: {other:?}"));
            }
            Some(_) => {}
        }
    }
    let added = right.iter().filter(|(path, _)| !left.contains_key(*path));
    differences.extend(added.map(|(path, node)| format!("+ {path:?}: {node:?}")));
    assert!(
        differences.is_empty(),
        "the trees differ:\n{}",
        differences.join("\n")
    );
}

/// That the files below two directories are the same.
#[track_caller]
pub fn assert_same_below(left: &Path, right: &Path) {
    assert_same(&snapshot(left), &snapshot(right));
}

/// The names in a directory, sorted.
#[track_caller]
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let name = |entry: std::io::Result<fs::DirEntry>| entry.map(|e| e.file_name());
    let mut names: Vec<String> = entries
        .map(|entry| name(entry).expect("it is listed").display().to_string())
        .collect();
    names.sort();
    names
}

/// The names in an output directory but for the record that a failed round leaves there,
/// sorted.
#[track_caller]
pub fn messages(output: &Path) -> Vec<String> {
    let mut names = names(output);
    names.retain(|name| !name.starts_with(".flitcast-round-"));
    names
}

/// Writes a file of `bytes` bytes that no two paths have in common, and the
/// directories on the way to it.
#[track_caller]
pub fn fill(path: &Path, bytes: usize) {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).expect("a scratch directory can be written to");
    }
    let seed = path.as_os_str().as_bytes().iter();
    let mut state = seed.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let content = (0..bytes).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    });
    fs::write(path, content.collect::<Vec<u8>>()).expect("a scratch directory can be written to");
}

/// Makes directories below a root, each in the one before, and in the last of them a file
/// with this content; their path may be longer than any that can be opened at once.
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

/// What is in that file.
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
    let opened = openat(
        above,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY,
        Mode::empty(),
    );
    opened.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Makes a file of so many bytes that takes no room on the disk.
#[track_caller]
pub fn sparse(path: &Path, bytes: u64) {
    let file = File::create(path).expect("a scratch directory can be written to");
    file.set_len(bytes)
        .expect("the file system knows sparse files");
}

/// Sets the permission bits.
#[track_caller]
pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// Sets the time of last modification: of a file or directory, not of a symlink.
#[track_caller]
pub fn set_mtime(path: &Path, seconds: u64, nanos: u32) {
    let time = UNIX_EPOCH + Duration::new(seconds, nanos);
    let file = File::open(path).expect("it is there");
    file.set_times(FileTimes::new().set_modified(time))
        .expect("it is ours");
}
