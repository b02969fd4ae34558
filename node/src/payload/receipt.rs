//! Receipts: what an undertaking has put into an output, said by a hidden file beside it.
//!
//! A PE that has died cannot tell any more whether its message became visible, and what
//! stands at the destination may be somebody else's. So, when a message is whole and
//! durable in its staging, and before the rename that shows it, a receipt is written that
//! names the undertaking and the very entry: its inode, and when that was born. A rename
//! keeps both. Where the entry that stands is the one of the receipt, it was delivered by
//! this undertaking, wherever and whenever one looks. Where it is not, the rename never
//! came, or somebody else was here since, and the receipt says nothing.
//!
//! Receipts go when their undertaking is over, or when a record of it says the same.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::error::PayloadError;
use super::scan::open_regular;
use super::staging::hidden_name;

/// How the name of a receipt ends.
pub(super) const SUFFIX: &str = ".receipt";

/// No receipt is longer; what is, is none.
const LONGEST: u64 = 200;

/// What stands at a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Nothing,
    /// What this undertaking has put there.
    Delivered,
    /// Something else.
    Another,
}

/// The receipt of one message.
#[derive(Clone, Debug)]
pub struct Receipt {
    path: PathBuf,
    destination: PathBuf,
}

impl Receipt {
    /// Of the message that becomes `destination`; nothing is looked at.
    pub fn of(destination: &Path, undertaking: u64) -> Receipt {
        let parent = destination.parent().unwrap_or(Path::new(""));
        let name = destination.file_name().unwrap_or_default();
        Receipt::named(parent, name, destination, undertaking)
    }

    /// Of the message that becomes `destination`, whose file name is `name`, in `parent`.
    pub(super) fn named(
        parent: &Path,
        name: &OsStr,
        destination: &Path,
        undertaking: u64,
    ) -> Receipt {
        Receipt {
            path: parent.join(hidden_name(undertaking, name, SUFFIX)),
            destination: destination.to_owned(),
        }
    }

    /// What stands at the destination.
    pub fn look(&self) -> Result<Standing, PayloadError> {
        let standing = match identity(&self.destination) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::Nothing),
            identity => identity.map_err(PayloadError::io("look at", &self.destination))?,
        };
        let file = match open_regular(CWD, &self.path, &self.path) {
            Err(PayloadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(Standing::Another);
            }
            opened => opened?,
        };
        let mut text = Vec::new();
        let read = file.take(LONGEST).read_to_end(&mut text);
        read.map_err(PayloadError::io("read", &self.path))?;
        Ok(match text == standing.as_bytes() {
            true => Standing::Delivered,
            false => Standing::Another,
        })
    }

    /// Says that what is staged at `staged` is about to become visible; durable when this
    /// returns. The directory that holds it is synced with the rename that follows: what
    /// was done in it first is not lost alone.
    pub(super) fn write(&self, staged: &Path) -> Result<(), PayloadError> {
        self.remove()?;
        let write = || {
            let text = identity(staged)?;
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&self.path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(PayloadError::io("write the receipt", &self.path))
    }

    /// Removes it, if it is there.
    pub fn remove(&self) -> Result<(), PayloadError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(PayloadError::io("remove the receipt", &self.path)(error))
            }
            _ => Ok(()),
        }
    }
}

/// What tells the entry at a path from every other one, renamed or not, in words.
fn identity(path: &Path) -> io::Result<String> {
    let asked = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, asked)?;
    let inode = found.stx_ino;
    // An inode's number may be given to another one later; not all file systems know when.
    let knows = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let born = match knows {
        true => format!("{}.{:09}", found.stx_btime.tv_sec, found.stx_btime.tv_nsec),
        false => "at an unknown time".to_owned(),
    };
    Ok(format!("inode {inode}, born {born}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(output: &Path) -> Receipt {
        Receipt::of(&output.join("p3"), 0xab)
    }

    fn standing(output: &Path) -> Standing {
        receipt(output).look().expect("it can be looked at")
    }

    #[test]
    fn a_receipt_is_for_one_entry_and_one_undertaking() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (output, staged) = (dir.path(), dir.path().join("staged"));
        let there = output.join("p3");
        fs::create_dir(&staged)?;
        assert_eq!(standing(output), Standing::Nothing);
        receipt(output).write(&staged).expect("it can be written");
        assert!(
            output
                .join(".flitcast-00000000000000ab-p3.receipt")
                .exists()
        );

        // A crash before the rename; then somebody else comes, and changes what he has.
        assert_eq!(standing(output), Standing::Nothing);
        fs::create_dir(&there)?;
        assert_eq!(standing(output), Standing::Another);
        fs::write(there.join("file"), "")?;
        assert_eq!(standing(output), Standing::Another);
        fs::remove_dir_all(&there)?;

        // What was delivered stays so, whatever its owner does with it.
        fs::rename(&staged, &there)?;
        assert_eq!(standing(output), Standing::Delivered);
        fs::write(there.join("file"), "")?;
        assert_eq!(standing(output), Standing::Delivered);
        let other = Receipt::of(&there, 0xac).look();
        assert_eq!(other.expect("it can be looked at"), Standing::Another);
        receipt(output).remove().expect("it is there");
        receipt(output).remove().expect("it need not be");
        assert_eq!(standing(output), Standing::Another);
        Ok(())
    }

    #[test]
    fn what_is_cut_or_no_file_is_no_receipt() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (output, there) = (dir.path(), dir.path().join("p3"));
        fs::write(&there, "message")?;
        receipt(output).write(&there).expect("it can be written");
        assert_eq!(standing(output), Standing::Delivered);
        let path = receipt(output).path;
        let whole = fs::read(&path)?;
        fs::write(&path, &whole[..whole.len() - 1])?;
        assert_eq!(standing(output), Standing::Another);
        fs::write(&path, [&whole[..], &[b' '; 1000]].concat())?;
        assert_eq!(standing(output), Standing::Another);
        fs::remove_file(&path)?;
        std::os::unix::fs::symlink(&there, &path)?;
        assert!(receipt(output).look().is_err(), "it is not followed");
        receipt(output).write(&there).expect("it is replaced");
        assert_eq!(standing(output), Standing::Delivered);
        assert_eq!(fs::read(&there)?, b"message");
        Ok(())
    }
}
