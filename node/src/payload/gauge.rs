//! What files cost on a file system: a few small messages and a longer one are written and
//! read there, by the very code that does it in a round. What a thread's own clock counts is
//! a core's time, the rest was waited for the disk.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_proto::cost::FileCosts;
use rustix::fs::{Advice, fadvise};

use super::cold::cold_bytes;
use super::removal::remove;
use super::scan::Content;
use super::{Packer, PayloadError, Unpacker};
use crate::pulse::Pulse;
use crate::system::{clock, memory};

/// Bytes of the long message, of which two are in memory at once, and of a short one.
const LONG_BYTES: usize = 1 << 20;
const SHORT_BYTES: usize = 2048;
/// Files of the message that has some: as many as are synced in this time, within limits.
const SYNCING_NS: f64 = 40e6;
const FILES: std::ops::RangeInclusive<usize> = 4..=32;
/// As many PEs write at once where it matters what they have in common.
const AT_ONCE: usize = 6;

/// The directory itself, or the one above it that is there.
fn standing(place: &Path) -> PathBuf {
    let is_there = |at: &&Path| fs::metadata(at).is_ok_and(|found| found.is_dir());
    let here = || Path::new(".");
    let found = place.ancestors().find(is_there);
    let found = found.filter(|at| !at.as_os_str().is_empty());
    found.unwrap_or_else(here).to_owned()
}

/// Names the file system that a path is on, or will be, among those of this host. It is
/// never 0.
pub fn file_system(place: &Path) -> u64 {
    let found = fs::metadata(standing(place));
    // A number of the kernel's, which begins at 0 for none.
    found.map_or(1, |found| found.dev().max(1))
}

/// What files cost where a path is, or will be; nothing stays there. `name` is that of nobody
/// else who may measure there at the same time, on this host or another. Takes some tenths of
/// a second, more on a very slow disk.
///
/// # Errors
///
/// Nothing can be written there.
pub fn measure_files(place: &Path, name: &str) -> io::Result<FileCosts> {
    // What a crash leaves of it is hidden, and small.
    let folder = standing(place).join(format!(".flitcast-measuring-{name}"));
    DirBuilder::new().mode(0o700).create(&folder)?;
    let costs = Gauge { folder: &folder }.costs();
    let removed = remove(&folder);
    let costs = costs.map_err(|error| io::Error::other(error.to_string()))?;
    removed.map(|()| costs)
}

/// Nanoseconds that something has taken.
#[derive(Clone, Copy)]
struct Took {
    /// While it had a core.
    core: f64,
    /// While it had none: it waited for a disk, say.
    waited: f64,
}

fn timed<T>(work: impl FnOnce() -> Result<T, PayloadError>) -> Result<(T, Took), PayloadError> {
    let (began, core_began) = (clock::now(), clock::of_thread_ns());
    let done = work()?;
    let core = (clock::of_thread_ns() - core_began) as f64;
    let waited = ((clock::now().0 - began.0) as f64 - core).max(0.0);
    Ok((done, Took { core, waited }))
}

struct Gauge<'a> {
    folder: &'a Path,
}

impl Gauge<'_> {
    fn costs(&self) -> Result<FileCosts, PayloadError> {
        let short = self.content("short", 0, SHORT_BYTES)?;
        let long = self.content("long", 0, LONG_BYTES)?;
        let (short_message, _) = read(&short)?;
        // The first one pays for what is new to the file system.
        self.write("s0", &short_message)?;
        let short_took = middle([
            self.write("s1", &short_message)?,
            self.write("s2", &short_message)?,
            self.write("s3", &short_message)?,
        ]);
        // The file, the receipt, the directory.
        let sync_about = (short_took.waited / 3.0).max(1.0);
        let files = (SYNCING_NS / sync_about) as usize;
        let files = files.clamp(*FILES.start(), *FILES.end());
        let many = self.content("many", files, SHORT_BYTES)?;

        let (many_message, _) = read(&many)?;
        let many_read = middle([read(&many)?.1, read(&many)?.1, read(&many)?.1]);
        let (long_message, _) = read(&long)?;
        let long_read = middle([read(&long)?.1, read(&long)?.1, read(&long)?.1]);
        let many_took = middle([
            self.write("m0", &many_message)?,
            self.write("m1", &many_message)?,
            self.write("m2", &many_message)?,
        ]);
        let long_took = middle([
            self.write("l0", &long_message)?,
            self.write("l1", &long_message)?,
            self.write("l2", &long_message)?,
        ]);
        drop(long_message);
        let mut slowest_ns = [0.0; 3];
        for (time, slowest_ns) in slowest_ns.iter_mut().enumerate() {
            *slowest_ns = self.write_at_once(time, &many_message)?;
        }
        slowest_ns.sort_by(f64::total_cmp);

        let (entries, long_bytes) = ((files + 1) as f64, LONG_BYTES as f64);
        let more = entries - 1.0;
        let read_ns_per_byte = long_read.core / long_bytes;
        let sync_ns = ((many_took.waited - short_took.waited) / more).max(0.0);
        let write_ns_per_byte = (long_took.core - short_took.core).max(0.0) / long_bytes;
        let create_ns = ((many_took.core - short_took.core) / more).max(0.0);
        // No disk serves anybody alone for longer than this, or all together had taken longer. Where
        // it is their work that took so long, the disk may be quicker, but then nobody waits for it.
        let syncs = entries + 2.0;
        let sync_alone_ns = slowest_ns[1] / (syncs * AT_ONCE as f64);
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
            memory_bytes: memory::dirty_bytes(),
        })
    }

    /// A file, or a folder of so many.
    fn content(&self, name: &str, files: usize, bytes: usize) -> Result<Content, PayloadError> {
        let path = self.folder.join(name);
        let make = || -> io::Result<()> {
            // Nothing that could become a hole.
            let content = vec![0x5a; bytes];
            if files == 0 {
                return fs::write(&path, content);
            }
            fs::create_dir(&path)?;
            (0..files).try_for_each(|file| fs::write(path.join(file.to_string()), &content))
        };
        make().map_err(PayloadError::io("write to", self.folder))?;
        Ok(Content::Entry(path))
    }

    /// Delivers a message under a name.
    fn write(&self, name: &str, message: &[u8]) -> Result<Took, PayloadError> {
        let destination = self.folder.join(name);
        let written = timed(|| {
            let pulse = Arc::new(Pulse::default());
            let mut unpacker = Unpacker::create(destination, false, 0, 0, pulse)?;
            unpacker.write(message)?;
            unpacker.commit()
        });
        Ok(written?.1)
    }

    /// Delivers it several times at once; what the slowest took.
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

    /// Reads what was delivered after the kernel was asked to forget it; `None` if it does
    /// not, since there is nowhere else to have it.
    fn read_cold(&self, content: &Content, files: usize) -> Result<Option<Took>, PayloadError> {
        let path = content.path();
        let files: Vec<PathBuf> = match files {
            0 => vec![path.to_owned()],
            _ => (0..files).map(|file| path.join(file.to_string())).collect(),
        };
        // Measuring is asking the disk, too.
        let bytes = content.measure()?;
        let forget = |file: &File| -> io::Result<()> {
            file.sync_all()?;
            Ok(fadvise(file, 0, None, Advice::DontNeed)?)
        };
        let forgotten = |path: &PathBuf| -> io::Result<u64> {
            let file = File::open(path)?;
            forget(&file)?;
            let cold = cold_bytes(&file, file.metadata()?.len());
            // The kernel was asked, and so it asked the disk, which may have answered.
            forget(&file)?;
            Ok(cold)
        };
        let mut cold = 0;
        for file in &files {
            cold += forgotten(file).map_err(PayloadError::io("read", path))?;
        }
        match cold {
            0 => Ok(None),
            _ => Ok(Some(read_measured(content, bytes)?.1)),
        }
    }
}

/// From giving a new thread something to do until that is known to be done.
fn handed_to_a_thread_ns() -> f64 {
    let hand_over = || {
        let began = clock::now();
        std::thread::scope(|scope| {
            scope.spawn(|| ());
        });
        (clock::now().0 - began.0) as f64
    };
    // What else goes on only adds to it.
    (0..5).map(|_| hand_over()).fold(f64::INFINITY, f64::min)
}

/// Reads a message.
fn read(content: &Content) -> Result<(Vec<u8>, Took), PayloadError> {
    read_measured(content, content.measure()?)
}

/// Reads a message of so many bytes.
fn read_measured(content: &Content, bytes: u64) -> Result<(Vec<u8>, Took), PayloadError> {
    timed(|| {
        let mut message = vec![0; bytes as usize];
        let mut packer = Packer::open(content, bytes)?;
        packer.fill(&mut message)?;
        Ok(message)
    })
}

fn middle(mut all: [Took; 3]) -> Took {
    all.sort_by(|a, b| (a.core + a.waited).total_cmp(&(b.core + b.waited)));
    all[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_can_be_true_and_leaves_nothing() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let costs = measure_files(&dir.path().join("not/there/yet"), "p3")?;
        assert!(costs.is_sound(), "{costs:?}");
        assert!(costs.create_ns > 0.0 && costs.commit_ns > 0.0, "{costs:?}");
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
