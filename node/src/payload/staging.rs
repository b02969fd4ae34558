//! The hidden staging place of a message beside its destination, and the rename that makes the
//! message visible: all of it, or nothing. [`super::Unpacker`] writes the message.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use flitcast_proto::Durability;
use flitcast_proto::wire::flit::Digest;
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::error::{PayloadError, shown};
use super::folders::{above, sync_folder};
use super::hidden::{HEADS, PARTIAL, name_beside};
use super::leftovers::discard;
use super::receipt::{DestinationState, Receipt};
use super::removal::remove;
use crate::system::lock::{Lock, try_lock};

/// The place of an incoming message, and the rules for what is there.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The path at which the complete message becomes visible. Its parent directory must exist, and
    /// each path has one message at a time.
    pub destination: PathBuf,
    /// Whether an existing entry is replaced. An entry that the same job has delivered always is.
    pub replace: bool,
    pub run: u64,
    pub job: u64,
    /// Whether an incomplete message is kept, so that a later run of the job can continue it.
    pub is_kept: bool,
    /// When the message is durable.
    pub durability: Durability,
    /// Whether files that the replaced entry has are not sent, so that the version of a message is its
    /// listing, and not what was sent.
    pub is_update: bool,
    /// Whether entries may have the attributes of an archive.
    pub is_archive: bool,
    /// Whether the place is in a folder that is lent to a coordinator. Then no file gets setuid and setgid
    /// bits or capabilities, by which a program has more rights than its user.
    pub is_lent: bool,
}

/// A staging name, and the file or folder at it: an incomplete message, or the entry that a
/// published message has replaced. It is removed on drop, unless it is kept.
#[derive(Debug)]
pub(super) struct Staging {
    path: PathBuf,
    /// The heads of the message's entries; `None` if the message is not kept when incomplete.
    heads: Option<Heads>,
    parent: PathBuf,
    /// The destination. The job names the staging place of a message that is kept, the run that of
    /// any other one.
    target: Target,
    receipt: Receipt,
    /// Whether the file or folder at `path` belongs to this run, which removes it.
    claimed: bool,
    /// The locked file or folder at `path`; its lock shows that the run is alive (`leftovers.rs`).
    lock: Option<File>,
}

impl Staging {
    /// Chooses the staging name of a message; nothing is created.
    pub fn beside(target: Target) -> Result<Self, PayloadError> {
        let Target { run, job, .. } = target;
        let place = &target.destination;
        let (Some(name), Some(parent)) = (place.file_name(), above(place)) else {
            let path = shown(place);
            let why = format!("{path} cannot be a destination: it has no file name");
            return Err(PayloadError::Unusable(why));
        };
        let heads = || Heads::at(parent.join(name_beside(name, job, HEADS)));
        let id = if target.is_kept { job } else { run };
        Ok(Self {
            path: parent.join(name_beside(name, id, PARTIAL)),
            heads: target.is_kept.then(heads),
            receipt: Receipt::of(place, job),
            parent: parent.to_owned(),
            target,
            claimed: false,
            lock: None,
        })
    }

    /// Returns the heads of the message's entries, if it is kept.
    pub fn heads(&mut self) -> Option<&mut Heads> {
        self.heads.as_mut()
    }

    /// Writes the heads that were added. If that fails, the message is not kept.
    pub fn flush_heads(&mut self) {
        if let Some(heads) = &mut self.heads
            && let Err(error) = heads.flush()
        {
            let path = heads.path.display();
            tracing::info!(%path, %error, "an incomplete message cannot be continued later");
            self.forgo();
        }
    }

    /// Decides that the message is not kept if it stays incomplete.
    pub fn forgo(&mut self) {
        if let Some(heads) = self.heads.take()
            && self.claimed
            && let Err(error) = heads.remove()
        {
            tracing::warn!(path = %heads.path.display(), %error, "leftover could not be removed");
        }
    }

    /// Removes the leftovers of an earlier run of the job at the staging name, unless it `is_used`
    /// now. If another process uses the name, another one is chosen, and the message is not kept.
    pub fn make_way(&mut self, is_used: bool) {
        if self.heads.is_none() || is_used {
            return;
        }
        let Target { run, job, .. } = self.target;
        let discarded = discard(self.destination(), job);
        if discarded.is_ok() && is_free(&self.path).unwrap_or(false) {
            return;
        }
        self.heads = None;
        let name = self.destination().file_name().unwrap_or_default();
        self.path = self.parent.join(name_beside(name, run, PARTIAL));
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn destination(&self) -> &Path {
        &self.target.destination
    }

    pub fn is_archive(&self) -> bool {
        self.target.is_archive
    }

    /// Returns whether the destination is in a lent folder.
    pub fn is_lent(&self) -> bool {
        self.target.is_lent
    }

    /// Takes over the open file or folder at the staging name, and locks it until this is dropped.
    /// Fails if another run has the lock.
    pub fn claim(&mut self, made: BorrowedFd<'_>) -> io::Result<()> {
        self.claimed = true;
        let made = File::from(made.try_clone_to_owned()?);
        match try_lock(&made, Lock::Exclusive) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            // Without locks on the file system, the leftovers of a killed run stay.
            Err(_) => Ok(()),
            Ok(()) => {
                self.lock = Some(made);
                Ok(())
            }
        }
    }

    /// Moves the message, of `bytes` bytes with this digest, to its destination, and returns when
    /// that is durable, if it is to be. An existing entry is replaced if this job has delivered it, or if the target
    /// requests that.
    pub fn publish(mut self, bytes: u64, digest: &Digest) -> Result<(), PayloadError> {
        self.forgo();
        let is_delivered = |state| matches!(state, DestinationState::Delivered(_));
        let gives_way = self.target.replace || is_delivered(self.receipt.look()?);
        let is_durable = self.target.durability != Durability::Never;
        self.receipt.write(&self.path, bytes, digest, is_durable)?;
        let moved = match gives_way {
            true => self.exchange(),
            false => self.move_to_free(),
        };
        if let Err(error) = moved {
            // Without the entry, the receipt is useless.
            if let Err(error) = self.receipt.remove() {
                tracing::warn!(%error, "a receipt is left");
            }
            return Err(match error.kind() {
                io::ErrorKind::AlreadyExists => self.exists(),
                _ => PayloadError::io("move the finished message to", self.destination())(error),
            });
        }
        if !is_durable {
            return Ok(());
        }
        sync_folder(&self.parent, self.destination())
            .map_err(PayloadError::io("make durable", &self.parent))
    }

    /// Returns an error if the directory of the destination does not exist, or if the destination has
    /// an entry that is not to be replaced.
    pub fn check(&self) -> Result<(), PayloadError> {
        // With a slash at its end the path means a directory, or a symlink to one.
        let found = fs::metadata(self.parent.join(""));
        found.map_err(PayloadError::io("write to the directory", &self.parent))?;
        match self.target.replace || self.receipt.look()? != DestinationState::Another {
            true => Ok(()),
            false => Err(self.exists()),
        }
    }

    fn exists(&self) -> PayloadError {
        PayloadError::Exists(self.destination().to_owned())
    }

    fn move_to_free(&self) -> io::Result<()> {
        match self.rename(RenameFlags::NOREPLACE) {
            Err(error) if lacks_flags(error) => {
                // Another process could create the destination between the check and the rename;
                // such a file system has nothing better.
                if !is_free(self.destination())? {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                fs::rename(&self.path, self.destination())
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
        if is_free(self.destination())? {
            return self.move_to_free();
        }
        // Not a staging name: after a crash here it is the only copy of the old entry, which no
        // sweep may remove.
        let aside = self.path.with_extension("replaced");
        if !is_free(&aside)? {
            return Err(io::Error::other(format!("{} is in the way", shown(&aside))));
        }
        fs::rename(self.destination(), &aside)?;
        if let Err(error) = fs::rename(&self.path, self.destination()) {
            return Err(match fs::rename(&aside, self.destination()) {
                Ok(()) => error,
                Err(other) => {
                    let aside = shown(&aside);
                    io::Error::other(format!("{error}; what was there is now {aside}: {other}"))
                }
            });
        }
        fs::rename(&aside, &self.path)
    }

    fn rename(&self, flags: RenameFlags) -> rustix::io::Result<()> {
        renameat_with(CWD, &self.path, CWD, self.destination(), flags)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.claimed || self.heads.is_some() {
            return;
        }
        if let Err(error) = remove(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "leftover could not be removed");
        }
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

/// The heads of the entries in a partial message, in a file beside it.
///
/// The files of a partial message have the content that has arrived. To continue the message, a
/// later run also needs the heads of its entries: their kinds, lengths, modes and times. A head is
/// written after its entry has been created, so the entry of each head exists.
#[derive(Debug)]
pub(super) struct Heads {
    pub path: PathBuf,
    /// The open file; `None` until it has been created.
    file: Option<File>,
    /// Heads that have not been written yet.
    pending: Vec<u8>,
}

impl Heads {
    /// Creates the heads at a path, which is not accessed yet.
    pub fn at(path: PathBuf) -> Heads {
        Heads {
            path,
            file: None,
            pending: Vec::new(),
        }
    }

    /// Adds an encoded head, which [`Heads::flush`] writes.
    pub fn push(&mut self, head: &[u8]) {
        self.pending.extend_from_slice(head);
    }

    /// Writes the heads that were added. Fails if another process has created the file.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut options = OpenOptions::new();
                let options = options.append(true).create_new(true).mode(0o600);
                none.insert(options.open(&self.path)?)
            }
        };
        file.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }

    /// Opens the file that an earlier run has left, for reading from its beginning and for
    /// appending.
    pub fn open(&mut self) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true);
        let file = options.custom_flags(flags.bits() as i32).open(&self.path)?;
        self.file = Some(file.try_clone()?);
        Ok(file)
    }

    /// Removes what the file has behind its first `bytes` bytes.
    pub fn truncate(&self, bytes: u64) -> io::Result<()> {
        let file = self.file.as_ref();
        file.map_or(Ok(()), |file| file.set_len(bytes))
    }

    pub fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn target(destination: &Path) -> Target {
        Target {
            destination: destination.to_owned(),
            run: 7,
            job: 8,
            ..Target::default()
        }
    }

    /// A finished message for `dir/p3`, holding "new".
    fn staged(dir: &Path) -> Staging {
        let mut staging = Staging::beside(target(&dir.join("p3"))).expect("it has a name");
        fs::write(staging.path(), "new").expect("the directory is there");
        let made = File::open(staging.path()).expect("it was made");
        staging.claim(made.as_fd()).expect("nobody has locked it");
        staging
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("the directory is there");
        let names = entries.map(|entry| entry.expect("it is listed").file_name());
        let mut names: Vec<String> = names.map(|name| name.display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn staging_names() {
        for (is_kept, name) in [(false, 7), (true, 8)] {
            let target = Target {
                is_kept,
                ..target(Path::new("out/p3"))
            };
            let staging = Staging::beside(target).expect("it has a name");
            let expected = format!("out/.flitcast-{name:016x}-p3.partial");
            assert_eq!(staging.path(), Path::new(&expected));
        }
        for unnamed in ["/", "out/.."] {
            assert!(Staging::beside(target(Path::new(unnamed))).is_err());
        }
    }

    /// Without flags of `rename`. An entry that was moved aside before a crash is kept.
    #[test]
    fn an_old_entry_is_replaced_in_steps() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let destination = dir.path().join("p3");
        fs::create_dir(&destination)?;
        fs::write(destination.join("old"), "")?;
        staged(dir.path()).exchange_in_steps()?;
        assert_eq!(fs::read(&destination)?, b"new");
        assert_eq!(names(dir.path()), ["p3"]);

        let aside = ".flitcast-0000000000000007-p3.replaced";
        fs::write(dir.path().join(aside), "only copy")?;
        fs::write(&destination, "old")?;
        assert!(staged(dir.path()).exchange_in_steps().is_err());
        assert_eq!(names(dir.path()), [aside, "p3"]);
        assert_eq!(fs::read(&destination)?, b"old");
        Ok(())
    }
}
