//! Removing whole trees, however deep and whatever the permissions in them.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, chmodat, fchmod, unlinkat};
use rustix::io::Errno;

use super::cursor::{Cursor, DirectoryNames};

/// Removes a file or a whole tree, read-only directories included, if it is there.
pub fn remove(path: &Path) -> io::Result<()> {
    let is_dir = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.is_dir(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !is_dir {
        return fs::remove_file(path);
    }
    let mut cursor = match Cursor::open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            rustix::fs::chmod(path, Mode::RWXU)?;
            Cursor::open(path)?
        }
        opened => opened?,
    };
    clear(&mut cursor)?;
    fs::remove_dir(path)
}

/// Removes everything below the cursor's directory.
fn clear(cursor: &mut Cursor) -> io::Result<()> {
    let mut listings = vec![list(cursor)?];
    while let Some(listing) = listings.last_mut() {
        if let Some(name) = listing.next() {
            match unlinkat(cursor.here(), &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR) => {
                    enter(cursor, &name)?;
                    listings.push(list(cursor)?);
                }
                Err(error) => return Err(error.into()),
            }
        } else {
            listings.pop();
            let name = cursor.path().file_name().map(OsStr::to_owned);
            if let Some(name) = name {
                cursor.leave()?;
                unlinkat(cursor.here(), &name, AtFlags::REMOVEDIR)?;
            }
        }
    }
    Ok(())
}

fn enter(cursor: &mut Cursor, name: &OsStr) -> io::Result<()> {
    match cursor.enter(name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            chmodat(cursor.here(), name, Mode::RWXU, AtFlags::empty())?;
            cursor.enter(name)
        }
        entered => entered,
    }
}

/// Lists the cursor's directory, and makes it one whose entries can be removed.
fn list(cursor: &Cursor) -> io::Result<DirectoryNames> {
    // This fails for a directory of another user, whose entries may be removable all the same.
    let _ = fchmod(cursor.here(), Mode::RWXU);
    cursor.list()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Whichever permissions its directories have.
    #[test]
    fn a_tree_without_permissions_is_removed() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let tree = dir.path().join("tree");
        for mode in (0..0o1000).step_by(0o100) {
            fs::create_dir_all(tree.join("a/b"))?;
            fs::write(tree.join("a/b/file"), "")?;
            fs::create_dir_all(tree.join("c"))?;
            for locked in ["a/b", "a", "c", ""] {
                fs::set_permissions(tree.join(locked), fs::Permissions::from_mode(mode))?;
            }
            remove(&tree)?;
            assert!(fs::symlink_metadata(&tree).is_err(), "{mode:o}");
        }
        remove(&tree)
    }

    #[test]
    fn what_links_lead_to_stays() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        fs::create_dir_all(dir.path().join("kept/inside"))?;
        fs::create_dir(dir.path().join("tree"))?;
        symlink("../kept", dir.path().join("tree/link"))?;
        symlink("kept", dir.path().join("link"))?;
        remove(&dir.path().join("tree"))?;
        remove(&dir.path().join("link"))?;
        assert!(dir.path().join("kept/inside").is_dir());
        Ok(())
    }

    /// The depth exceeds the number of descriptors and the length of a path.
    #[test]
    fn a_tree_of_any_depth_is_removed() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let tree = dir.path().join("tree");
        fs::create_dir(&tree)?;
        let mut cursor = Cursor::open(&tree)?;
        for _ in 0..3000 {
            rustix::fs::mkdirat(cursor.here(), "d", Mode::RWXU)?;
            cursor.enter(OsStr::new("d"))?;
        }
        drop(cursor);
        remove(&tree)?;
        assert!(fs::symlink_metadata(&tree).is_err());
        Ok(())
    }
}
