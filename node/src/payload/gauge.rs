//! Measurement of the costs of files on a file system: short messages and a long one are written
//! and read with the code that rounds use. The CPU time of the thread counts as core time, the rest
//! as time of waiting for the disk.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use flitcast_proto::cost::FileCosts;
use rustix::fs::{Advice, fadvise, statfs};

use super::durability::{EXT, TMPFS, XFS};
use super::entry::Content;
use super::leftovers::unlocked;
use super::outgoing::cold_bytes;
use super::removal::remove;
use super::{Outgoing, Packer, PayloadError, Target, Unpacker};
use crate::limits::DISK_BLOCK_BYTES;
use crate::system::{clock, process};
use crate::tuning::gauge::{AT_ONCE, FILES, HAND_OVERS, LONG_BYTES, SHORT_BYTES, SYNCING_NS};

/// File systems on which content takes at least the space of its length. Others may compress it, or are on a
/// server that does.
const PLAIN_FILE_SYSTEMS: [u64; 3] = [EXT, XFS, TMPFS];

/// Returns the path itself if it is a directory, or else the nearest directory above it.
fn standing(place: &Path) -> PathBuf {
    let found = place.ancestors().find(|at| at.is_dir());
    found.unwrap_or(Path::new(".")).to_owned()
}

/// Returns a number, never 0, that identifies the file system of an existing or future path among
/// those of this host.
pub fn file_system(place: &Path) -> u64 {
    let found = fs::metadata(standing(place));
    // The device number that the kernel has assigned.
    found.map_or(1, |found| found.dev().max(1))
}

/// Returns the number of bytes that this process may still write to the file system of an existing or
/// future path; `None` if it is unknown, or if the file system may store content in less space than its
/// length.
pub fn free_bytes(place: &Path) -> Option<u64> {
    let about = statfs(standing(place)).ok()?;
    // A tmpfs without a limit has no blocks.
    if !PLAIN_FILE_SYSTEMS.contains(&(about.f_type as u64)) || about.f_blocks == 0 {
        return None;
    }
    let blocks = match process::is_root() {
        true => about.f_bfree,
        false => about.f_bavail,
    };
    Some(blocks.saturating_mul(about.f_bsize as u64))
}

/// Measures the costs of files at an existing or future path, and removes all files that it creates
/// there. `name` must be unique among the processes of all hosts that measure there at the same
/// time. Takes some tenths of a second, more on a very slow disk.
pub fn measure_files(place: &Path, name: &str) -> io::Result<FileCosts> {
    // If this process crashes, the folder is unlocked and the next run removes it.
    let folder = standing(place).join(format!(".flitcast-measuring-{name}"));
    DirBuilder::new().mode(0o700).create(&folder)?;
    let _lock = unlocked(&folder);
    let costs = Gauge { folder: &folder }.costs();
    let removed = remove(&folder);
    let costs = costs.map_err(|error| io::Error::other(error.to_string()))?;
    removed.map(|()| costs)
}

/// Time that an operation took, in nanoseconds.
#[derive(Clone, Copy)]
struct Took {
    /// Time on a core.
    core: f64,
    /// Time without a core in which the thread did not request one: mostly waiting for the disk.
    waited: f64,
}

fn timed<T>(work: impl FnOnce() -> Result<T, PayloadError>) -> Result<Took, PayloadError> {
    let (began, core_began) = (clock::now(), clock::of_thread_ns());
    let queued_before = process::queued_ns();
    work()?;
    let core = (clock::of_thread_ns() - core_began) as f64;
    let whole = (clock::now().0 - began.0) as f64;
    let queued = process::queued_ns().saturating_sub(queued_before) as f64;
    let waited = (whole - core - queued).max(0.0);
    Ok(Took { core, waited })
}

struct Gauge<'a> {
    folder: &'a Path,
}

impl Gauge<'_> {
    fn costs(&self) -> Result<FileCosts, PayloadError> {
        let short = self.message("short", 0, SHORT_BYTES)?;
        let long = self.message("long", 0, LONG_BYTES)?;
        let short_message = read(&short)?;
        // The first delivery warms up the file system and is not counted.
        self.write("first", &short_message)?;
        let write = |name: &str, message: &[u8]| {
            thrice(|time| self.write(&format!("{name}{time}"), message))
        };
        let read_again = |message: &Outgoing| thrice(|_| read_blocks(message));
        let short_took = write("s", &short_message)?;
        // Three syncs: of the file, the receipt and the directory.
        let sync_ns = short_took.waited / 3.0;
        let files = (SYNCING_NS / sync_ns.max(1.0)) as usize;
        let files = files.clamp(*FILES.start(), *FILES.end());
        let many = self.message("many", files, SHORT_BYTES)?;

        let many_message = read(&many)?;
        let many_read = read_again(&many)?;
        let long_message = read(&long)?;
        let long_read = read_again(&long)?;
        let many_took = write("m", &many_message)?;
        let long_took = write("l", &long_message)?;
        drop(long_message);
        let at_once = |time| self.write_at_once(time, &short_message);
        let mut slowest_ns = [at_once(0)?, at_once(1)?, at_once(2)?];
        slowest_ns.sort_by(f64::total_cmp);

        let (entries, long_bytes) = ((files + 1) as f64, LONG_BYTES as f64);
        let more = entries - 1.0;
        let read_ns_per_byte = long_read.core / long_bytes;
        let write_ns_per_byte = (long_took.core - short_took.core).max(0.0) / long_bytes;
        let create_ns = ((many_took.core - short_took.core) / more).max(0.0);
        // Upper bound of the time for which a sync occupies the disk alone. If the cores were the
        // limit, the disk is faster, but then no PE waits for it.
        let sync_alone_ns = slowest_ns[1] / (3 * AT_ONCE) as f64;
        let fetched = self.read_cold(&many, files)?;
        let fetch_ns = fetched.map_or(0.0, |took| took.waited / more);
        let fetched = self.read_cold(&long, 0)?;
        let fetch = fetched.map_or(0.0, |took| (took.waited - fetch_ns).max(0.0));
        Ok(FileCosts {
            open_ns: (many_read.core / entries).max(0.0),
            read_ns_per_byte,
            fetch_ns,
            fetch_ns_per_byte: fetch / long_bytes,
            create_ns,
            write_ns_per_byte,
            sync_ns,
            sync_alone_ns: sync_alone_ns.min(sync_ns),
            flush_ns_per_byte: (long_took.waited - short_took.waited).max(0.0) / long_bytes,
            commit_ns: (short_took.core - create_ns).max(0.0),
            thread_ns: handed_to_a_thread_ns(),
            memory_bytes: process::dirty_bytes(),
        })
    }

    /// Creates a file of `bytes` bytes or, unless `files` is 0, a folder with `files` such files, and
    /// measures it as a message.
    fn message(&self, name: &str, files: usize, bytes: usize) -> Result<Outgoing, PayloadError> {
        let path = self.folder.join(name);
        let make = || -> io::Result<()> {
            // No zeros, which could become a hole.
            let content = vec![0x5a; bytes];
            if files == 0 {
                return fs::write(&path, content);
            }
            fs::create_dir(&path)?;
            (0..files).try_for_each(|file| fs::write(path.join(file.to_string()), &content))
        };
        make().map_err(PayloadError::io("write to", self.folder))?;
        Outgoing::measure(Content::Entry(path), false, &|| {})
    }

    /// Delivers a message under a name, and returns the time it took.
    fn write(&self, name: &str, message: &[u8]) -> Result<Took, PayloadError> {
        let destination = self.folder.join(name);
        timed(|| {
            let target = Target {
                destination,
                ..Target::default()
            };
            let mut unpacker = Unpacker::create(target, Arc::default())?;
            // In blocks, as a round does.
            let mut blocks = message.chunks(DISK_BLOCK_BYTES);
            blocks.try_for_each(|block| unpacker.write(block))?;
            unpacker.commit()
        })
    }

    /// Delivers a message `AT_ONCE` times at once, and returns the longest time in nanoseconds.
    fn write_at_once(&self, time: usize, message: &[u8]) -> Result<f64, PayloadError> {
        let all = std::thread::scope(|scope| {
            let write =
                |i: usize| scope.spawn(move || self.write(&format!("a{time}-{i}"), message));
            let writing: Vec<_> = (0..AT_ONCE).map(write).collect();
            let joined = writing.into_iter().map(|one| match one.join() {
                Ok(took) => took,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect::<Result<Vec<Took>, PayloadError>>()
        })?;
        let whole = |took: &Took| took.core + took.waited;
        Ok(all.iter().map(whole).fold(0.0, f64::max))
    }

    /// Reads a message after the kernel has dropped it from memory; `None` if the kernel keeps all
    /// of it, as for a file system in memory.
    fn read_cold(&self, message: &Outgoing, files: usize) -> Result<Option<Took>, PayloadError> {
        let path = message.path();
        let files: Vec<PathBuf> = match files {
            0 => vec![path.to_owned()],
            _ => (0..files).map(|file| path.join(file.to_string())).collect(),
        };
        let forget = |file: &File| -> io::Result<()> {
            file.sync_all()?;
            Ok(fadvise(file, 0, None, Advice::DontNeed)?)
        };
        let forgotten = |path: &PathBuf| -> io::Result<u64> {
            let file = File::open(path)?;
            forget(&file)?;
            let cold = cold_bytes(&file, 0, file.metadata()?.len());
            // The check may have started reads, so the content is dropped again.
            forget(&file)?;
            Ok(cold)
        };
        let mut cold = 0;
        for file in &files {
            cold += forgotten(file).map_err(PayloadError::io("read", path))?;
        }
        match cold {
            0 => Ok(None),
            _ => read_blocks(message).map(Some),
        }
    }
}

/// Returns the core time of passing a task to a thread that waits for one, and of its answer, in
/// nanoseconds. The time until the thread wakes up is a cost of processes.
fn handed_to_a_thread_ns() -> f64 {
    let (give, tasks) = mpsc::sync_channel::<()>(1);
    let (answer, answers) = mpsc::sync_channel::<()>(1);
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let began = clock::of_thread_ns();
            tasks.iter().try_for_each(|()| answer.send(())).ok();
            clock::of_thread_ns() - began
        });
        let began = clock::of_thread_ns();
        let answered = (0..HAND_OVERS).filter(|_| give.send(()).is_ok() && answers.recv().is_ok());
        let count = answered.count().max(1);
        let spent = clock::of_thread_ns() - began;
        drop(give);
        (spent + worker.join().unwrap_or(0)) as f64 / count as f64
    })
}

fn read(message: &Outgoing) -> Result<Vec<u8>, PayloadError> {
    let mut bytes = vec![0; message.measured.bytes as usize];
    Packer::of(message)?.fill(&mut bytes)?;
    Ok(bytes)
}

/// Reads a message block by block, as a round does; returns the time of reading it.
fn read_blocks(message: &Outgoing) -> Result<Took, PayloadError> {
    timed(|| {
        let mut packer = Packer::of(message)?;
        let mut left = message.measured.bytes as usize;
        let mut blocks = [(); 2].map(|()| vec![0; DISK_BLOCK_BYTES.min(left).max(1)]);
        while left > 0 {
            blocks.swap(0, 1);
            let length = left.min(DISK_BLOCK_BYTES);
            left -= packer.fill(&mut blocks[0][..length])?.max(1).min(left);
        }
        Ok(())
    })
}

/// Measures three times, and returns the middle one.
fn thrice(measure: impl Fn(usize) -> Result<Took, PayloadError>) -> Result<Took, PayloadError> {
    let mut all = [measure(0)?, measure(1)?, measure(2)?];
    all.sort_by(|a, b| (a.core + a.waited).total_cmp(&(b.core + b.waited)));
    Ok(all[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_can_be_true_and_leaves_nothing() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let costs = measure_files(&dir.path().join("not/there/yet"), "p3")?;
        assert!(costs.is_sound(), "{costs:?}");
        // The sum is the core time of a short message; under load either term may be all of it.
        assert!(costs.create_ns + costs.commit_ns > 0.0, "{costs:?}");
        assert!(costs.sync_alone_ns <= costs.sync_ns, "{costs:?}");
        assert_eq!(fs::read_dir(dir.path())?.count(), 0);
        Ok(())
    }

    #[test]
    fn a_file_system_has_one_name_for_what_is_there_and_what_will_be() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let here = file_system(dir.path());
        assert_ne!(here, 0);
        assert_eq!(here, file_system(&dir.path().join("not/there/yet")));
        Ok(())
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_measured() {
        assert!(measure_files(Path::new("/proc/self"), "p3").is_err());
    }
}
