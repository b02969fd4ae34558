//! The directory through which running commands of one user find each other. Only that user can
//! read it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};

use crate::system::process;
use crate::text::phrases::at;

/// Returns `$XDG_RUNTIME_DIR/flitcast`, or `/tmp/flitcast-UID` if that variable is not set. The
/// directory is created if it does not exist.
///
/// # Errors
///
/// Returns an error if the directory cannot be created, or if others than this user have access to
/// it.
pub fn runtime_dir() -> anyhow::Result<PathBuf> {
    let user = process::user();
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let path = match given.filter(|given| given.is_absolute()) {
        Some(given) => given.join("flitcast"),
        None => PathBuf::from(format!("/tmp/flitcast-{user}")),
    };
    make_own(&path, user)?;
    Ok(path)
}

/// Creates a directory that only `user` can read, or checks that an existing one is.
fn make_own(path: &Path, user: u32) -> anyhow::Result<()> {
    let shown = path.display();
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(at(path)(error)),
    }
    // Metadata of the link itself, if it is one: another user may have created it.
    let found = fs::symlink_metadata(path).map_err(at(path))?;
    ensure!(found.is_dir(), "{shown} is not a directory; remove it");
    let owner = found.uid();
    ensure!(
        owner == user,
        "{shown} belongs to user {owner}: set XDG_RUNTIME_DIR to a directory of your own"
    );
    if found.mode() & 0o077 != 0 {
        bail!("{shown} can be read by others: chmod 700 {shown}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn it_is_made_for_one_user_and_found_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("flitcast");
        let user = process::user();
        for _ in 0..2 {
            make_own(&path, user).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        }
        let refused = make_own(&path, user + 1).unwrap_err().to_string();
        assert!(refused.contains("belongs to user"), "{refused}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let refused = make_own(&path, user).unwrap_err().to_string();
        assert!(refused.contains("chmod 700"), "{refused}");
    }

    #[test]
    fn a_link_or_a_file_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let user = process::user();
        let (link, file) = (place.path().join("link"), place.path().join("file"));
        symlink(place.path(), &link).unwrap();
        fs::write(&file, "").unwrap();
        for path in [link, file] {
            let refused = make_own(&path, user).unwrap_err().to_string();
            let expected = format!("{} is not a directory; remove it", path.display());
            assert_eq!(refused, expected);
        }
        let nowhere = make_own(&place.path().join("not/there"), user).unwrap_err();
        assert!(nowhere.to_string().contains("not/there"), "{nowhere}");
    }
}
