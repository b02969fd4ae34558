//! Rules for the hidden files that earlier runs have left.
//!
//! A run that is killed removes nothing. The next run that uses the same folder does
//! ([`Sweep::use_of`]). A partial message is locked by the process that writes it. Without a lock
//! it is removed, unless the job of a record in its folder, or in the one above, can continue it. A
//! receipt is kept as long as such a record can be resumed; if the record may be on another host,
//! the receipt is kept as long as it proves a delivery.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::error::{PayloadError, shown};
use super::hidden::{HEADS, HiddenName, PARTIAL, name_beside, record_name};
use super::others::Others;
use super::receipt::{DestinationState, Receipt};
use super::removal::remove;
use crate::system::lock::{Lock, try_lock};

/// The locked output of a run: no other run on this host writes to it.
#[derive(Debug)]
pub struct OutputLock {
    /// `None` where the file system has no locks.
    folder: Option<File>,
}

impl OutputLock {
    /// Locks an output that exists. Fails if another run has locked it.
    pub fn take(output: &Path) -> io::Result<OutputLock> {
        let folder = File::open(output)?;
        let folder = match try_lock(&folder, Lock::Exclusive) {
            Ok(()) => Some(folder),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let output = shown(output);
                let why =
                    format!("{output}: another run is writing to it; wait until that has ended");
                return Err(io::Error::new(error.kind(), why));
            }
            Err(error) => {
                tracing::debug!(%error, "the output cannot be locked");
                None
            }
        };
        Ok(OutputLock { folder })
    }

    /// Returns whether the lock keeps out other runs on this host.
    pub fn is_exclusive(&self) -> bool {
        self.folder.is_some()
    }
}

/// Facts about a run that sweeps a folder.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    pub run: u64,
    /// Whether no process of the run writes any more.
    pub run_has_ended: bool,
    /// The job that the run belongs to. Its receipts are kept, and its partial messages, until the
    /// run has ended.
    pub job: u64,
    /// Whether the run has locked the output, and any record of the output is in it.
    pub is_exclusive: bool,
}

/// The use that a hidden file still has.
#[derive(Debug)]
enum Use {
    /// A run or a record needs the file, or may need it.
    Needed,
    /// The file has no use. The lock, if there is one, keeps it unused.
    Dead(Option<File>),
}

impl Sweep {
    /// Determines the use of a hidden file.
    fn use_of(&self, folder: &Path, name: &OsStr) -> Use {
        let dead_if = |is_dead| {
            if is_dead {
                Use::Dead(None)
            } else {
                Use::Needed
            }
        };
        match HiddenName::parse(name) {
            Some(HiddenName::Partial(id, _)) if id == self.run => dead_if(self.run_has_ended),
            Some(HiddenName::Partial(job, entry)) => {
                let is_resumable = (job == self.job && !self.run_has_ended)
                    || (is_there(&folder.join(name_beside(entry, job, HEADS)))
                        && has_record(folder, job));
                match is_resumable {
                    true => Use::Needed,
                    false => dead_if_unlocked(&folder.join(name)),
                }
            }
            Some(HiddenName::Heads(job, entry)) => {
                let partial = name_beside(entry, job, PARTIAL);
                match is_there(&folder.join(&partial)) {
                    true => self.use_of(folder, &partial),
                    false => Use::Dead(None),
                }
            }
            Some(HiddenName::Measuring) => dead_if_unlocked(&folder.join(name)),
            Some(HiddenName::Receipt(job, entry)) => {
                let proves = || Receipt::of(&folder.join(entry), job).look();
                // The record may be on another host, so only the entry counts.
                let proves_nothing =
                    || matches!(proves(), Ok(it) if !matches!(it, DestinationState::Delivered(_)));
                let is_resumable = job == self.job || has_record(folder, job);
                dead_if(!is_resumable && (self.is_exclusive || proves_nothing()))
            }
            Some(HiddenName::Scratch) => dead_if(self.is_exclusive),
            Some(HiddenName::Record | HiddenName::Replaced | HiddenName::Work) | None => {
                Use::Needed
            }
        }
    }
}

fn dead_if_unlocked(path: &Path) -> Use {
    unlocked(path).map_or(Use::Needed, |lock| Use::Dead(Some(lock)))
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Returns whether the record of a job is in a folder, or in the one above: an entry of an
/// exchange is in the folder of its PE.
fn has_record(folder: &Path, job: u64) -> bool {
    let name = record_name(job);
    let above = folder.parent().map(|above| above.join(&name));
    is_there(&folder.join(&name)) || above.is_some_and(|path| is_there(&path))
}

/// Locks the entry at a path; `None` if that fails, mostly because another process has locked it.
pub fn unlocked(path: &Path) -> Option<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = fs::OpenOptions::new();
    options.custom_flags(flags.bits() as i32);
    let readable = options.read(true).open(path);
    // The mode of a file may permit writing only.
    let file = readable.or_else(|_| options.read(false).write(true).open(path));
    let file = file.ok()?;
    try_lock(&file, Lock::Exclusive).ok().map(|()| file)
}

/// Returns whether a job has left the heads of a partial message for a destination.
pub(super) fn has_heads(destination: &Path, job: u64) -> bool {
    let name = destination.file_name().unwrap_or_default();
    is_there(&destination.with_file_name(name_beside(name, job, HEADS)))
}

/// Removes the partial message that a job has left for a destination, unless a process writes it.
pub fn discard(destination: &Path, job: u64) -> io::Result<()> {
    let name = destination.file_name().unwrap_or_default();
    let at = |hidden: OsString| destination.with_file_name(hidden);
    let (partial, heads) = (
        at(name_beside(name, job, PARTIAL)),
        at(name_beside(name, job, HEADS)),
    );
    let lock = unlocked(&partial);
    if lock.is_some() || !is_there(&partial) {
        remove(&partial)?;
        remove(&heads)?;
    }
    Ok(())
}

/// Removes the dead hidden files of a folder. A file of another run that cannot be removed is
/// logged.
pub fn sweep(folder: &Path, sweep: &Sweep) -> Result<(), PayloadError> {
    for name in names_in(folder)? {
        let Use::Dead(_lock) = sweep.use_of(folder, &name) else {
            continue;
        };
        let path = folder.join(&name);
        match (remove(&path), HiddenName::parse(&name)) {
            (Ok(()), _) => tracing::debug!(path = %path.display(), "removed: its run has ended"),
            (Err(error), Some(HiddenName::Partial(id, _))) if id == sweep.run => {
                return Err(PayloadError::io("remove", &path)(error));
            }
            (Err(error), _) => {
                tracing::warn!(path = %path.display(), %error, "a file of a run that has ended cannot be removed");
            }
        }
    }
    Ok(())
}

/// Removes the dead hidden files of an output and, if there is a folder of messages for each of the PEs
/// `with_rows`, of those.
pub fn sweep_output(
    output: &Path,
    with_rows: Option<Others>,
    how: &Sweep,
) -> Result<(), PayloadError> {
    sweep(output, how)?;
    let names = names_in(output).unwrap_or_default().into_iter();
    let rows = names.filter(|name| with_rows.is_some_and(|pes| pes.is_output(name)));
    let mut rows = rows
        .map(|name| output.join(name))
        .filter(|row| row.is_dir());
    rows.try_for_each(|row| sweep(&row, how))
}

/// Returns an entry of an output that is in the way of a run, if there is one. Entries named after
/// one of the PEs, records with their files, and dead hidden files are not. An output that
/// `has_rows` has a folder of entries for each PE. The caller must have locked the output.
pub fn in_the_way(
    output: &Path,
    has_rows: bool,
    pes: Others,
) -> Result<Option<PathBuf>, PayloadError> {
    let sweep = Sweep {
        run: 0,
        run_has_ended: true,
        job: 0,
        is_exclusive: true,
    };
    for name in names_in(output)? {
        let path = output.join(&name);
        let is_entry = pes.is_output(&name);
        match HiddenName::parse(&name) {
            Some(HiddenName::Record | HiddenName::Receipt(..)) => {}
            Some(HiddenName::Partial(job, _) | HiddenName::Heads(job, _))
                if has_record(output, job) => {}
            Some(_) if matches!(sweep.use_of(output, &name), Use::Dead(_)) => {}
            None if is_entry && has_rows && path.is_dir() => {
                if let Some(found) = in_the_way(&path, false, pes)? {
                    return Ok(Some(found));
                }
            }
            None if is_entry => {}
            _ => return Ok(Some(path)),
        }
    }
    Ok(None)
}

pub fn records_in(folder: &Path) -> Result<Vec<PathBuf>, PayloadError> {
    let names = names_in(folder)?.into_iter();
    let names = names.filter(|name| matches!(HiddenName::parse(name), Some(HiddenName::Record)));
    Ok(names.map(|name| folder.join(name)).collect())
}

/// Returns the names in a folder; none if it does not exist.
fn names_in(folder: &Path) -> Result<Vec<OsString>, PayloadError> {
    let listing = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing,
    };
    let names = listing.and_then(|all| all.map(|entry| Ok(entry?.file_name())).collect());
    names.map_err(PayloadError::io("read the directory", folder))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const RUN: u64 = 7;

    fn sweep_of(run_has_ended: bool, is_exclusive: bool) -> Sweep {
        Sweep {
            run: RUN,
            run_has_ended,
            job: 9,
            is_exclusive,
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = names_in(folder).expect("it can be listed").into_iter();
        let mut names: Vec<String> = names.map(|name| name.display().to_string()).collect();
        names.sort();
        names
    }

    fn partial(run: u64, entry: &str) -> String {
        format!(".flitcast-{run:016x}-{entry}.partial")
    }

    fn receipt(job: u64, entry: &str) -> String {
        format!(".flitcast-{job:016x}-{entry}.receipt")
    }

    #[test]
    fn a_partial_message_is_swept_when_its_run_has_ended() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let at = |name: &str| dir.path().join(name);
        let locked = at(&partial(8, "p1")).join("d");
        fs::create_dir_all(&locked)?;
        fs::set_permissions(locked, fs::Permissions::from_mode(0o500))?;
        for name in [partial(RUN, "p2"), partial(8, "a copy"), partial(6, "p3")] {
            fs::write(at(&name), "")?;
        }
        fs::set_permissions(at(&partial(8, "a copy")), fs::Permissions::from_mode(0o222))?;
        fs::create_dir(at(".flitcast-measuring-0000000000000008-p1"))?;
        fs::write(at("p1"), "")?;
        let lock = unlocked(&at(&partial(6, "p3")));
        assert!(lock.is_some());
        sweep(dir.path(), &sweep_of(false, false)).expect("all is removable");
        // One is locked, and one belongs to a run that continues.
        let left = [partial(6, "p3"), partial(RUN, "p2"), "p1".to_owned()];
        assert_eq!(names(dir.path()), left);
        drop(lock);
        sweep(dir.path(), &sweep_of(true, false)).expect("all is removable");
        assert_eq!(names(dir.path()), ["p1"]);
        sweep(&at("missing"), &sweep_of(true, false)).expect("there is nothing to sweep");
        Ok(())
    }

    #[test]
    fn a_receipt_stays_while_a_record_or_its_entry_needs_it() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let at = |name: &str| dir.path().join(name);
        // Receipts of this job, of jobs with a record here or above, and of two without a record.
        let row = at("p1");
        fs::create_dir(&row)?;
        for (folder, job, entry) in [
            (dir.path(), 9, "p3"),
            (dir.path(), 10, "p3"),
            (&row, 11, "p4"),
            (dir.path(), 12, "p3"),
            (&row, 13, "p4"),
        ] {
            fs::write(folder.join(receipt(job, entry)), "nothing that is true")?;
        }
        fs::write(at(&record_name(10)), "")?;
        fs::write(at(&record_name(11)), "")?;
        // A record on another host may need the proof of this receipt.
        fs::write(at("p5"), "")?;
        let proof = Receipt::of(&at("p5"), 14).write(&at("p5"), 1, &[7; 16], true);
        proof.expect("it can be written");
        sweep_output(dir.path(), Some(Others::all(9)), &sweep_of(false, false))
            .expect("all is removable");
        let records = [record_name(10), record_name(11)];
        let kept = [receipt(9, "p3"), receipt(10, "p3")];
        let others = ["p1".to_owned(), "p5".to_owned()];
        let with_proof = [&kept[..], &[receipt(14, "p5")], &records, &others].concat();
        assert_eq!(names(dir.path()), with_proof);
        assert_eq!(names(&row), [receipt(11, "p4")]);
        // If the output is locked, there is no record elsewhere.
        sweep_output(dir.path(), Some(Others::all(9)), &sweep_of(false, true))
            .expect("all is removable");
        assert_eq!(names(dir.path()), [&kept[..], &records, &others].concat());
        Ok(())
    }

    #[test]
    fn a_message_that_can_be_continued_stays_while_its_record_does() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let at = |name: &str| dir.path().join(name);
        let heads = |job: u64, entry: &str| format!(".flitcast-{job:016x}-{entry}.heads");
        // Jobs with a record, without one, without heads, and the job of the run.
        for job in [10, 11, 12, 9] {
            fs::write(at(&partial(job, "p1")), "")?;
        }
        for job in [10, 11, 9] {
            fs::write(at(&heads(job, "p1")), "")?;
        }
        fs::write(at(&heads(13, "p1")), "")?;
        for job in [10, 12, 13] {
            fs::write(at(&record_name(job)), "")?;
        }
        let records = [10, 12, 13].map(record_name);
        let kept = [heads(10, "p1"), partial(10, "p1")];
        let own = [heads(9, "p1"), partial(9, "p1")];
        sweep(dir.path(), &sweep_of(false, false)).expect("all is removable");
        assert_eq!(names(dir.path()), [&own[..], &kept, &records].concat());
        sweep(dir.path(), &sweep_of(true, false)).expect("all is removable");
        assert_eq!(names(dir.path()), [&kept[..], &records].concat());
        let way = in_the_way(dir.path(), false, Others::all(3)).expect("it can be listed");
        assert_eq!(way, None);
        discard(&at("p1"), 10)?;
        assert_eq!(names(dir.path()), records);
        discard(&at("p1"), 10)
    }

    #[test]
    fn files_that_a_user_may_miss_are_never_swept() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let kept = [
            ".flitcast-0000000000000007-p3.replaced",
            ".flitcast-map-0000000000000007",
            ".flitcast-notes",
            ".flitcast-round-0000000000000007.toml",
            "p3",
        ];
        let swept = [".flitcast-held-17", ".flitcast-unfinished-x"];
        for name in kept.iter().chain(&swept) {
            fs::write(dir.path().join(name), "")?;
        }
        sweep(dir.path(), &sweep_of(true, true)).expect("all is removable");
        assert_eq!(names(dir.path()), kept);
        Ok(())
    }

    #[test]
    fn entries_that_a_run_may_have_delivered_do_not_block_it() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let at = |name: &str| dir.path().join(name);
        let way =
            |has_rows| in_the_way(dir.path(), has_rows, Others::all(3)).expect("it can be listed");
        for name in [partial(8, "p1"), receipt(8, "p1"), record_name(8)] {
            fs::write(at(&name), "")?;
        }
        fs::create_dir(at("p2"))?;
        fs::write(at("p2").join(partial(8, "p1")), "")?;
        fs::write(at("p2/p1"), "")?;
        assert_eq!((way(false), way(true)), (None, None));
        let records = records_in(dir.path()).expect("it can be listed");
        assert_eq!(records, [at(&record_name(8))]);
        fs::write(at("p2/p3"), "")?;
        assert_eq!((way(false), way(true)), (None, Some(at("p2/p3"))));
        for name in [".flitcast-notes", "p03", "p3"] {
            fs::write(at(name), "")?;
            assert_eq!(way(false), Some(at(name)));
            fs::remove_file(at(name))?;
        }
        Ok(())
    }
}
