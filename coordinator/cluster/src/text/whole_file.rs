//! Files that are written as a whole or not at all.

use std::fs::Permissions;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flitcast_node::payload::UNFINISHED_PREFIX;

use crate::system::process;

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    }
}

/// Checks whether a file can be written at `path`, as far as this is known before writing.
pub fn check_place(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err("it is a directory".to_owned()),
        Ok(metadata) if !metadata.is_file() => return Err("it is not a plain file".to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.to_string()),
        _ => {}
    }
    if path.file_name().is_none() {
        return Err("it does not name a file".to_owned());
    }
    let directory = directory(path);
    match std::fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(format!("{} is not a directory", directory.display())),
        Err(error) => return Err(format!("{}: {error}", directory.display())),
    }
    process::check_writable(directory)
        .map_err(|error| format!("{} is not writable: {error}", directory.display()))
}

/// Returns the path with all symbolic links resolved.
pub fn resolved(path: &Path) -> PathBuf {
    let by_directory = || Some(directory(path).canonicalize().ok()?.join(path.file_name()?));
    let resolved = path.canonicalize().ok().or_else(by_directory);
    resolved.unwrap_or_else(|| path.to_owned())
}

/// Writes a temporary file in the same directory and renames it to `path` when it is complete.
/// Errors name the file.
pub fn write_whole(
    path: &Path,
    content: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> io::Result<()> {
    write_with_mode(path, 0o666, content)
}

/// Writes a file as [`write_whole`] does, with these permissions at most.
pub fn write_with_mode(
    path: &Path,
    mode: u32,
    content: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> io::Result<()> {
    let write = || {
        let path = resolved(path);
        let beside = tempfile::Builder::new()
            .prefix(UNFINISHED_PREFIX)
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(directory(&path))?;
        let mut out = BufWriter::new(beside);
        content(&mut out)?;
        out.flush()?;
        let beside = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        beside.as_file().sync_all()?;
        beside.persist(&path)?;
        Ok(())
    };
    write().map_err(|error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("cannot write {}: {error}", path.display()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_by_a_whole_one_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.json");
        std::fs::write(&path, "old").unwrap();
        let failed = write_whole(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more room"))
        });
        let failed = failed.unwrap_err().to_string();
        assert!(failed.contains("out.json: no more room"), "{failed}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        write_whole(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        let left: Vec<_> = std::fs::read_dir(&dir).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn a_link_is_followed_and_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, |out| out.write_all(b"new")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    }
}
