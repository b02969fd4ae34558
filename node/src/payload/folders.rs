//! The folders that an output needs, made so that no power cut takes them away again with
//! what was delivered into them.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use rustix::fs::syncfs;

use super::staging::sync_directory;

/// How the name of a working folder of `flitcast map` begins. A PE touches no other.
pub const WORK_PREFIX: &str = ".flitcast-map-";

/// Makes a folder and those above it, and returns when their names are durable, up to that
/// of one that was there.
///
/// Another PE may have made them a moment ago, and not have come to sync the last one yet:
/// so the name of the one that is there is synced as well. Those above were before it was made.
pub fn create_durable(folder: &Path) -> io::Result<()> {
    let parent = match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        // The root of all.
        None => return Ok(()),
    };
    let made = match make(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_durable(parent)?;
            make(folder)
        }
        made => made,
    };
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        made => made?,
    }
    match File::open(parent) {
        // One may make folders where one may not look: there it is all or nothing.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(syncfs(File::open(folder)?)?)
        }
        opened => sync_directory(opened?.as_fd()),
    }
}

/// Makes one folder. A working folder of `flitcast map` is for its user alone, on whichever host.
fn make(folder: &Path) -> io::Result<()> {
    let is_work = |part: &OsStr| part.as_bytes().starts_with(WORK_PREFIX.as_bytes());
    let mut builder = DirBuilder::new();
    if folder.iter().any(is_work) {
        builder.mode(0o700);
    }
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_made_or_found() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let deep = dir.path().join("a/b/c");
        create_durable(&deep)?;
        create_durable(&deep)?;
        create_durable(&dir.path().join("a/b/d"))?;
        create_durable(Path::new("/"))?;
        assert!(deep.is_dir() && dir.path().join("a/b/d").is_dir());
        std::fs::write(dir.path().join("file"), "")?;
        assert!(create_durable(&dir.path().join("file")).is_err());
        assert!(create_durable(&dir.path().join("file/below")).is_err());
        Ok(())
    }
}
