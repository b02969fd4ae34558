//! The hidden place beside its destination where a message is put together, and
//! the rename that makes it visible: whole, or not at all.
//!
//! What is written there is the business of [`super::Unpacker`].

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use flitcast_proto::PeId;
use rustix::fs::{CWD, RenameFlags, fsync, renameat_with};
use rustix::io::Errno;

use super::error::PayloadError;
use super::receipt::{self, Receipt, Standing};
use super::removal::remove;

const PREFIX: &str = ".flitcast-";
const SUFFIX: &str = ".partial";
const ID_DIGITS: usize = 16;

/// Whether this is the name of a hidden file beside M_i's place: of what is staged for it,
/// or of a receipt of it, whosever they are.
pub fn is_hidden_beside(name: &OsStr, pe: PeId) -> bool {
    let is_it = |suffix| {
        id_of(name, suffix).is_some_and(|(_, entry)| entry == format!("p{}", pe.0).as_bytes())
    };
    is_it(SUFFIX) || is_it(receipt::SUFFIX)
}

/// The name of a file that belongs to the entry `name` in its directory, in the business of
/// what `id` names.
pub(super) fn hidden_name(id: u64, name: &OsStr, suffix: &str) -> OsString {
    let mut hidden = OsString::from(format!("{PREFIX}{id:016x}-"));
    hidden.push(name);
    hidden.push(suffix);
    hidden
}

/// Removes what the run with this nonce left in an output directory when it was
/// killed, where messages arrive in it. Nothing of that run may be writing there any more.
pub fn sweep(output: &Path, nonce: u64) -> Result<(), PayloadError> {
    let listing = match fs::read_dir(output) {
        Ok(listing) => listing,
        // A run that never came to its output leaves nothing in it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(PayloadError::io("read the directory", output)(error)),
    };
    for entry in listing {
        let entry = entry.map_err(PayloadError::io("read the directory", output))?;
        if id_of(&entry.file_name(), SUFFIX).is_some_and(|(id, _)| id == nonce) {
            let leftover = entry.path();
            remove(&leftover).map_err(PayloadError::io("remove", &leftover))?;
        }
    }
    Ok(())
}

/// What a hidden name is made of: the id, and the entry that it stands beside.
fn id_of<'a>(name: &'a OsStr, suffix: &str) -> Option<(u64, &'a [u8])> {
    let inner = name.as_bytes().strip_prefix(PREFIX.as_bytes())?;
    let inner = inner.strip_suffix(suffix.as_bytes())?;
    let (digits, rest) = inner.split_at_checked(ID_DIGITS)?;
    let digits = str::from_utf8(digits).ok()?;
    let id = u64::from_str_radix(digits, 16).ok()?;
    let entry = rest.strip_prefix(b"-")?;
    (digits == format!("{id:016x}")).then_some((id, entry))
}

/// Owns a staging name. Whatever stands there in the end is removed: a message
/// that was not published, or what a published one replaced.
#[derive(Debug)]
pub(super) struct Staging {
    path: PathBuf,
    parent: PathBuf,
    destination: PathBuf,
    /// By which the entry that is published will be known.
    receipt: Receipt,
    /// Whether what stands at `path` is ours to remove.
    claimed: bool,
}

impl Staging {
    /// Chooses a name; nothing is created. What is published belongs to `undertaking`.
    pub fn beside(
        destination: PathBuf,
        nonce: u64,
        undertaking: u64,
    ) -> Result<Self, PayloadError> {
        let Some(name) = destination.file_name() else {
            return Err(PayloadError::Unnamed { path: destination });
        };
        let parent = match destination.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(Self {
            path: parent.join(hidden_name(nonce, name, SUFFIX)),
            receipt: Receipt::named(&parent, name, &destination, undertaking),
            parent,
            destination,
            claimed: false,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn destination(&self) -> &Path {
        &self.destination
    }

    /// From now on what stands at the staging name is ours.
    pub fn claim(&mut self) {
        self.claimed = true;
    }

    /// Moves the message to its destination, and returns when that is durable. What this
    /// undertaking itself has put there gives way; all else only if it is to be replaced.
    pub fn publish(self, replace: bool) -> Result<(), PayloadError> {
        let gives_way = replace || self.receipt.look()? == Standing::Delivered;
        self.receipt.write(&self.path)?;
        let moved = if gives_way {
            self.exchange()
        } else {
            self.move_to_free()
        };
        if let Err(error) = moved {
            // It is for what will never be there, and so would only lie about.
            if let Err(error) = self.receipt.remove() {
                tracing::warn!(%error, "a receipt is left");
            }
            return Err(match error.kind() {
                io::ErrorKind::AlreadyExists => self.exists(),
                _ => PayloadError::io("move the finished message to", &self.destination)(error),
            });
        }
        File::open(&self.parent)
            .and_then(|parent| sync_directory(parent.as_fd()))
            .map_err(PayloadError::io("make durable", &self.parent))
    }

    /// Fails if the destination is taken by what this undertaking has not put there.
    pub fn check_free(&self) -> Result<(), PayloadError> {
        match self.receipt.look()? {
            Standing::Nothing | Standing::Delivered => Ok(()),
            Standing::Another => Err(self.exists()),
        }
    }

    /// Fails early where nothing could be staged or moved into place.
    pub fn check_parent(&self) -> Result<(), PayloadError> {
        // With a slash at its end the path means a directory, or a symlink to one.
        fs::metadata(self.parent.join(""))
            .map(|_| ())
            .map_err(PayloadError::io("write to the directory", &self.parent))
    }

    fn exists(&self) -> PayloadError {
        PayloadError::Exists {
            path: self.destination.clone(),
        }
    }

    fn move_to_free(&self) -> io::Result<()> {
        match self.rename(RenameFlags::NOREPLACE) {
            Err(error) if lacks_flags(error) => {
                // Somebody could still come between the check and the rename;
                // closer one does not get on such a file system.
                if !is_free(&self.destination)? {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                fs::rename(&self.path, &self.destination)
            }
            moved => Ok(moved?),
        }
    }

    fn exchange(&self) -> io::Result<()> {
        match self.rename(RenameFlags::EXCHANGE) {
            Err(Errno::NOENT) => self.move_to_free(),
            Err(error) if lacks_flags(error) => self.exchange_in_steps(),
            moved => Ok(moved?),
        }
    }

    fn exchange_in_steps(&self) -> io::Result<()> {
        if is_free(&self.destination)? {
            return self.move_to_free();
        }
        // Not a staging name: after a crash here it is the only copy of the old
        // entry, which no sweep may remove.
        let aside = self.path.with_extension("replaced");
        if !is_free(&aside)? {
            return Err(io::Error::other(format!(
                "{} is in the way",
                super::error::shown(&aside)
            )));
        }
        fs::rename(&self.destination, &aside)?;
        if let Err(error) = fs::rename(&self.path, &self.destination) {
            fs::rename(&aside, &self.destination)?;
            return Err(error);
        }
        fs::rename(&aside, &self.path)
    }

    fn rename(&self, flags: RenameFlags) -> rustix::io::Result<()> {
        renameat_with(CWD, &self.path, CWD, &self.destination, flags)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.claimed {
            return;
        }
        if let Err(error) = remove(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "leftover could not be removed");
        }
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(directory: BorrowedFd<'_>) -> io::Result<()> {
    match fsync(directory) {
        // What file systems answer that have no such thing for directories.
        Err(Errno::INVAL) => Ok(()),
        synced => Ok(synced?),
    }
}

fn lacks_flags(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

fn is_free(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A finished message for `dir/p3`, holding "new".
    fn staged(dir: &Path) -> Staging {
        let mut staging = Staging::beside(dir.join("p3"), 7, 8).expect("it has a name");
        fs::write(staging.path(), "new").expect("the directory is there");
        staging.claim();
        staging
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .expect("the directory is there")
            .map(|entry| {
                entry
                    .expect("it is listed")
                    .file_name()
                    .display()
                    .to_string()
            })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn staging_names() {
        let staging = Staging::beside("out/p3".into(), 0xab, 0xcd).expect("it has a name");
        let expected = Path::new("out/.flitcast-00000000000000ab-p3.partial");
        assert_eq!(staging.path(), expected);
        assert!(is_hidden_beside(
            staging.path().file_name().expect("it has one"),
            PeId(3)
        ));
        let receipt = ".flitcast-00000000000000cd-p3.receipt";
        assert!(is_hidden_beside(OsStr::new(receipt), PeId(3)));
        for other in [
            "p3",
            ".flitcast-p3.partial",
            ".flitcast-00000000000000ab-p33.partial",
            ".flitcast-00000000000000cd-p.receipt",
            ".flitcast-00000000000000ab-p3",
            ".flitcast-00000000000000ab-p3.replaced",
            ".flitcast-00000000000000AB-p3.partial",
            ".flitcast-+0000000000000ab-p3.partial",
        ] {
            assert!(!is_hidden_beside(OsStr::new(other), PeId(3)), "{other}");
        }
        assert!(Staging::beside("/".into(), 0, 0).is_err());
        assert!(Staging::beside("out/..".into(), 0, 0).is_err());
    }

    #[test]
    fn sweep_removes_what_one_run_left() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let mine = dir.path().join(".flitcast-0000000000000007-p1.partial");
        fs::create_dir_all(mine.join("d"))?;
        fs::set_permissions(mine.join("d"), fs::Permissions::from_mode(0o500))?;
        let other = ".flitcast-0000000000000008-p1.partial";
        fs::write(dir.path().join(other), "")?;
        fs::write(dir.path().join("p1"), "")?;
        sweep(dir.path(), 7).expect("all is removable");
        assert_eq!(names(dir.path()), [other, "p1"]);
        sweep(&dir.path().join("missing"), 7).expect("there is nothing to sweep");
        Ok(())
    }

    #[test]
    fn without_flags_of_rename_the_old_entry_is_replaced_in_steps() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let destination = dir.path().join("p3");
        fs::create_dir(&destination)?;
        fs::write(destination.join("old"), "")?;
        staged(dir.path()).exchange_in_steps()?;
        assert_eq!(fs::read(&destination)?, b"new");
        assert_eq!(names(dir.path()), ["p3"]);
        Ok(())
    }

    #[test]
    fn what_was_moved_aside_before_a_crash_is_kept() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let aside = ".flitcast-0000000000000007-p3.replaced";
        fs::write(dir.path().join(aside), "only copy")?;
        fs::write(dir.path().join("p3"), "old")?;
        assert!(staged(dir.path()).exchange_in_steps().is_err());
        assert_eq!(names(dir.path()), [aside, "p3"]);
        assert_eq!(fs::read(dir.path().join("p3"))?, b"old");
        Ok(())
    }
}
