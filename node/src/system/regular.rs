//! Files that a user names, opened and read so that none of them can hang a process or fill its
//! memory: regular files only, and up to a limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

/// Opens a regular file for reading. A symlink to one is followed; the writer of a fifo is not
/// waited for. The error for any other kind of file names the kind.
pub fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let found = file.metadata()?.file_type();
    let kind = match () {
        () if found.is_file() => return Ok(file),
        () if found.is_dir() => "a directory",
        () if found.is_fifo() => "a fifo",
        () if found.is_socket() => "a socket",
        () => "a device",
    };
    let why = format!("it is {kind}; name a regular file");
    Err(io::Error::other(why))
}

/// Reads a regular file of at most `max_bytes`.
pub fn read_file(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let file = open_file(path)?;
    file.take(max_bytes.saturating_add(1))
        .read_to_end(&mut content)?;
    match content.len() as u64 > max_bytes {
        true => {
            let why = format!("it has more than {max_bytes} bytes");
            Err(io::Error::new(io::ErrorKind::FileTooLarge, why))
        }
        false => Ok(content),
    }
}

/// Reads a regular file of text in UTF-8, of at most `max_bytes`.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let content = read_file(path, max_bytes)?;
    String::from_utf8(content)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symlinks_are_followed_and_text_is_in_utf_8() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "five!")?;
        std::os::unix::fs::symlink(&file, &link)?;
        assert_eq!(read_text(&link, 5)?, "five!");
        std::fs::write(&file, [0xFF])?;
        let refused = read_text(&file, 5).expect_err("no text").to_string();
        assert!(refused.contains("UTF-8"), "{refused}");
        Ok(())
    }
}
