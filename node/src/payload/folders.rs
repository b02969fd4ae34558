//! Creation of the folders of an output, so that a power cut does not remove them together with the
//! messages delivered to them.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::syncfs;

use super::durability::sync;
use super::hidden::WORK_PREFIX;
use crate::system::process::user;

/// Creates a folder and its missing parents, and returns when their names are durable.
///
/// Another PE may have created a parent without having synced it yet, so the name of the lowest
/// parent that exists is synced as well. The names above it were synced before it was created.
pub fn create_durable(folder: &Path) -> io::Result<()> {
    let Some(parent) = above(folder) else {
        return Ok(());
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
    check_private(folder)?;
    sync_folder(parent, folder)
}

/// Makes the names in a folder durable, of which one is that of `entry`.
pub(super) fn sync_folder(folder: &Path, entry: &Path) -> io::Result<()> {
    match File::open(folder) {
        // A folder may be writable but not readable; then the whole file system is synced.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(syncfs(File::open(entry)?)?)
        }
        opened => sync(opened?.as_fd()),
    }
}

/// Creates one folder. A working folder of `flitcast map` is accessible to its user alone.
fn make(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    if folder.iter().any(is_work) {
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Returns whether this is the name of a working folder of `flitcast map`.
fn is_work(name: &OsStr) -> bool {
    name.as_bytes().starts_with(WORK_PREFIX.as_bytes())
}

/// Checks that a working folder is accessible to this user alone if all users may create folders beside it:
/// another one could have created it first, to read shards or to replace them.
fn check_private(folder: &Path) -> io::Result<()> {
    let mut above = folder.ancestors();
    let Some(work) = above.find(|above| above.file_name().is_some_and(is_work)) else {
        return Ok(());
    };
    let beside = above.next().map(std::fs::symlink_metadata).transpose()?;
    if beside.is_none_or(|beside| beside.mode() & 0o002 == 0) {
        return Ok(());
    }
    let found = std::fs::symlink_metadata(work)?;
    if found.is_dir() && found.uid() == user() && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let why = format!("`{}` is accessible to other users", work.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Returns the folder that an entry is in; `None` for the root.
pub fn above(path: &Path) -> Option<&Path> {
    let parent = path.parent()?;
    Some(match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

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

    fn refused() -> Result<(), io::ErrorKind> {
        Err(io::ErrorKind::PermissionDenied)
    }

    #[test]
    fn a_working_folder_is_for_one_user() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let inside = |name: &str| dir.path().join(format!("{WORK_PREFIX}{name}/in"));
        let above = |name: &str| dir.path().join(format!("{WORK_PREFIX}{name}"));
        create_durable(&inside("own"))?;
        create_durable(&inside("own"))?;
        assert_eq!(above("own").metadata()?.mode() & 0o777, 0o700);
        DirBuilder::new().mode(0o755).create(above("open"))?;
        std::os::unix::fs::symlink(above("own"), above("link"))?;
        let created = |name| create_durable(&inside(name)).map_err(|error| error.kind());
        // Only this user creates folders here, whatever a file system reports about their owner.
        assert_eq!(created("open"), Ok(()));
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o1777))?;
        for (name, expected) in [("own", Ok(())), ("open", refused()), ("link", refused())] {
            assert_eq!(created(name), expected, "{name}");
        }
        Ok(())
    }
}
