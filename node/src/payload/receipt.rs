//! Receipts: hidden files beside an output that prove what a job has delivered.
//!
//! After the death of a PE, its coordinator cannot query whether its message became visible, and
//! the entry at the destination may come from elsewhere. So when a message is complete and durable
//! in its staging place, and before the rename that makes it visible, a receipt is written. It
//! contains the inode of the entry and the inode's time of birth, which a rename keeps, and the
//! length and digest of the message. If the entry at the destination is that of the receipt, this
//! job has delivered it. If not, the rename did not happen or the entry was replaced later, and the
//! receipt proves nothing.
//!
//! A receipt is removed when its job has ended, or when a record of the job contains the delivery.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flitcast_proto::wire::flit::Digest;
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

use super::error::{PayloadError, shown};
use super::folders::above;
use super::hidden::{RECEIPT, name_beside};
use super::scan::open_regular;

use crate::limits::RECEIPT_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationState {
    /// No entry exists.
    Nothing,
    /// The entry is a message that this job has delivered, with this digest.
    Delivered(Digest),
    /// The entry is something else.
    Another,
}

#[derive(Clone, Debug)]
pub struct Receipt {
    path: PathBuf,
    /// The path at which the message becomes visible.
    pub destination: PathBuf,
}

impl Receipt {
    /// Returns the receipt of the message for `destination`, without accessing any file.
    pub fn of(destination: &Path, job_id: u64) -> Receipt {
        let parent = destination.parent().unwrap_or(Path::new(""));
        let name = destination.file_name().unwrap_or_default();
        Receipt {
            path: parent.join(name_beside(name, job_id, RECEIPT)),
            destination: destination.to_owned(),
        }
    }

    /// Returns the folder that the receipt and its destination are in.
    pub fn folder(&self) -> PathBuf {
        above(&self.path).unwrap_or(&self.path).to_owned()
    }

    /// Determines the state of the destination.
    pub fn look(&self) -> Result<DestinationState, PayloadError> {
        let standing = match identity(&self.destination) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(DestinationState::Nothing);
            }
            identity => identity.map_err(PayloadError::io("look at", &self.destination))?,
        };
        let file = match open_regular(CWD, &self.path, &self.path) {
            Err(PayloadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(DestinationState::Another);
            }
            opened => opened?,
        };
        let mut text = Vec::new();
        let read = file.take(RECEIPT_BYTES).read_to_end(&mut text);
        read.map_err(PayloadError::io("read", &self.path))?;
        let version = text.strip_prefix(standing.as_bytes());
        let digest = version.and_then(parse_version);
        Ok(digest.map_or(DestinationState::Another, DestinationState::Delivered))
    }

    /// Checks that the message can be renamed to the destination: that no folder on the path is a
    /// symlink to a path that does not exist, and that the destination is not a mount point.
    pub fn check_reachable(&self) -> Result<(), PayloadError> {
        for folder in self.destination.ancestors().skip(1) {
            let is_link = fs::symlink_metadata(folder).is_ok_and(|found| found.is_symlink());
            if is_link && fs::metadata(folder).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
                return Err(PayloadError::Unusable(format!(
                    "{}: a symlink to what does not exist; make the folder that it leads to, or remove the symlink",
                    shown(folder)
                )));
            }
        }
        let (at, how) = (&self.destination, AtFlags::SYMLINK_NOFOLLOW);
        match statx(CWD, at, how, StatxFlags::BASIC_STATS) {
            Ok(found) if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) => {
                Err(PayloadError::Unusable(format!(
                    "{}: a mount point, which cannot be replaced; unmount it, or choose an output below it",
                    shown(&self.destination)
                )))
            }
            // Kernels before 5.8 do not report mount points; a missing entry is not an error.
            _ => Ok(()),
        }
    }

    /// Writes the receipt of the complete message of `bytes` bytes at `staged`, which is about to
    /// become visible. If it `is_durable`, it is so on return, but for its name, which is synced with the
    /// rename that follows.
    pub(super) fn write(
        &self,
        staged: &Path,
        bytes: u64,
        digest: &Digest,
        is_durable: bool,
    ) -> Result<(), PayloadError> {
        self.remove()?;
        let write = || {
            let text = identity(staged)? + &version_line(bytes, digest);
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&self.path)?;
            file.write_all(text.as_bytes())?;
            match is_durable {
                true => file.sync_all(),
                false => Ok(()),
            }
        };
        write().map_err(PayloadError::io("write the receipt", &self.path))
    }

    /// Removes the receipt, if it exists.
    pub fn remove(&self) -> Result<(), PayloadError> {
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(()),
            Err(error) => match error.kind() {
                // There is no receipt below a regular file.
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(()),
                _ => Err(PayloadError::io("remove the receipt", &self.path)(error)),
            },
        }
    }
}

/// Returns a text that identifies the entry at a path among all others, even if it is renamed.
fn identity(path: &Path) -> io::Result<String> {
    let fields = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, fields)?;
    let inode = found.stx_ino;
    // An inode number may be reused; not all file systems report the time of birth.
    let has_birth_time = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let born = match has_birth_time {
        true => format!("{}.{:09}", found.stx_btime.tv_sec, found.stx_btime.tv_nsec),
        false => "at an unknown time".to_owned(),
    };
    Ok(format!("inode {inode}, born {born}\n"))
}

/// Returns the line with the length and the digest of a message.
fn version_line(bytes: u64, digest: &Digest) -> String {
    let digest = u128::from_be_bytes(*digest);
    format!("{bytes} bytes, digest {digest:032x}\n")
}

/// Parses the digest in a line from [`version_line`].
fn parse_version(line: &[u8]) -> Option<Digest> {
    let text = std::str::from_utf8(line).ok()?;
    let (bytes, digest) = text.strip_suffix('\n')?.split_once(" bytes, digest ")?;
    let digest = u128::from_str_radix(digest, 16).ok()?.to_be_bytes();
    (version_line(bytes.parse().ok()?, &digest) == text).then_some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: Digest = [7; 16];
    const DELIVERED: DestinationState = DestinationState::Delivered(DIGEST);

    fn write(receipt: &Receipt, staged: &Path) {
        let written = receipt.write(staged, 5, &DIGEST, true);
        written.expect("it can be written");
    }

    fn receipt(output: &Path) -> Receipt {
        Receipt::of(&output.join("p3"), 0xab)
    }

    fn standing(output: &Path) -> DestinationState {
        receipt(output).look().expect("it can be looked at")
    }

    #[test]
    fn a_receipt_is_for_one_entry_and_one_undertaking() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (output, staged) = (dir.path(), dir.path().join("staged"));
        let there = output.join("p3");
        fs::create_dir(&staged)?;
        assert_eq!(standing(output), DestinationState::Nothing);
        write(&receipt(output), &staged);
        let note = output.join(".flitcast-00000000000000ab-p3.receipt");
        assert!(note.exists());

        // A crash happens before the rename; then another entry is created and changed.
        assert_eq!(standing(output), DestinationState::Nothing);
        fs::create_dir(&there)?;
        assert_eq!(standing(output), DestinationState::Another);
        fs::write(there.join("file"), "")?;
        assert_eq!(standing(output), DestinationState::Another);
        fs::remove_dir_all(&there)?;

        // A delivered entry stays delivered if its content is changed later.
        fs::rename(&staged, &there)?;
        assert_eq!(standing(output), DELIVERED);
        fs::write(there.join("file"), "")?;
        assert_eq!(standing(output), DELIVERED);
        let other = Receipt::of(&there, 0xac).look();
        let other = other.expect("it can be looked at");
        assert_eq!(other, DestinationState::Another);
        receipt(output).remove().expect("it is there");
        receipt(output).remove().expect("it need not be");
        assert_eq!(standing(output), DestinationState::Another);
        Ok(())
    }

    #[test]
    fn truncated_files_and_other_entries_are_no_receipts() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (output, there) = (dir.path(), dir.path().join("p3"));
        fs::write(&there, "message")?;
        write(&receipt(output), &there);
        assert_eq!(standing(output), DELIVERED);
        let path = receipt(output).path;
        let whole = fs::read(&path)?;
        fs::write(&path, &whole[..whole.len() - 1])?;
        assert_eq!(standing(output), DestinationState::Another);
        fs::write(&path, [&whole[..], &[b' '; 1000]].concat())?;
        assert_eq!(standing(output), DestinationState::Another);
        fs::remove_file(&path)?;
        std::os::unix::fs::symlink(&there, &path)?;
        assert!(receipt(output).look().is_err(), "it is not followed");
        write(&receipt(output), &there);
        assert_eq!(standing(output), DELIVERED);
        assert_eq!(fs::read(&there)?, b"message");
        Ok(())
    }
}
