//! What files cost on file systems of this host and of others, in files below the user's cache
//! directory: one for each boot of a host and each of its file systems. Every round with files
//! corrects it.

use flitcast_proto::calibration::learned::{Learned, Lesson, Prior};
use flitcast_proto::cost::{FILE_COSTS, FileCosts, Files, Host};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::CostSource;
use super::cache::{CacheEntry, Kept, age_of, folder, load, now_s, store};

/// A file system of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileSystem {
    /// Names the host and its boot: the clock that its processes read.
    pub host: String,
    /// Names the file system on it.
    pub number: u64,
}

/// What was known of files before a round.
#[derive(Clone, Debug)]
pub struct KnownFiles {
    /// Where that comes from.
    pub source: CostSource,
    /// Where messages become files, if that is one file system: which, and its place among
    /// the disks.
    pub written: Option<(FileSystem, usize)>,
    /// What they were taken to cost.
    pub files: Files,
    /// Whether what was learned of files was applied to what processes cost, too.
    pub changes_host: bool,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CachedFiles {
    file_system: FileSystem,
    /// When it was measured, in seconds since 1970.
    measured_s: u64,
    /// As they were measured, in the order of [`FileCosts`].
    measured: [f64; FILE_COSTS],
    /// What turned out to be so many times as much.
    factors: Kept,
}

/// How many [`Factors`] there are.
const FACTORS: usize = 9;

/// What costs in a round with files, as multiples of what was measured.
///
/// What processes spend is among it. They are measured with bytes that are made on the spot;
/// those of files are in no cache of a processor, and threads that work on files disturb others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// Of what processes spend on their first round,
    first: f64,
    /// on frames, messages and waking up,
    processes: f64,
    /// and on bytes on their way.
    bytes: f64,
    /// Of what threads spend on blocks, files and messages,
    entries: f64,
    /// and on the bytes of files.
    contents: f64,
    /// Of what is waited for until an entry is durable: while the disk serves nobody else,
    alone: f64,
    /// while it serves others, too,
    together: f64,
    /// and for its bytes.
    flushes: f64,
    /// Of what is waited for until something is read that is not in memory.
    fetches: f64,
}

impl Factors {
    fn from_array(factors: &[f64; FACTORS]) -> Factors {
        let [first, processes, bytes, entries, contents, rest @ ..] = *factors;
        let [alone, together, flushes, fetches] = rest;
        Factors {
            first,
            processes,
            bytes,
            entries,
            contents,
            alone,
            together,
            flushes,
            fetches,
        }
    }

    /// What processes of a host spend in a round with files.
    pub fn host(&self, host: Host) -> Host {
        Host {
            wake_ns: host.wake_ns * self.processes,
            control_ns: host.control_ns * self.processes,
            flit_ns: host.flit_ns * self.processes,
            message_ns: host.message_ns * self.processes,
            first_ns: host.first_ns * self.first,
            send_ns_per_byte: host.send_ns_per_byte * self.bytes,
            receive_ns_per_byte: host.receive_ns_per_byte * self.bytes,
            end_ns_per_byte: host.end_ns_per_byte * self.bytes,
            ..host
        }
    }

    fn files(&self, costs: FileCosts) -> FileCosts {
        let together_ns = (costs.sync_ns - costs.sync_alone_ns).max(0.0) * self.together;
        let alone_ns = costs.sync_alone_ns * self.alone;
        FileCosts {
            open_ns: costs.open_ns * self.entries,
            create_ns: costs.create_ns * self.entries,
            commit_ns: costs.commit_ns * self.entries,
            thread_ns: costs.thread_ns * self.entries,
            read_ns_per_byte: costs.read_ns_per_byte * self.contents,
            write_ns_per_byte: costs.write_ns_per_byte * self.contents,
            sync_ns: alone_ns + together_ns,
            sync_alone_ns: alone_ns,
            flush_ns_per_byte: costs.flush_ns_per_byte * self.flushes,
            fetch_ns: costs.fetch_ns * self.fetches,
            fetch_ns_per_byte: costs.fetch_ns_per_byte * self.fetches,
            ..costs
        }
    }
}

/// How factors are learned. What a disk takes changes with all that others do on it, so the
/// next rounds soon count for more than all that were before.
const PRIOR: Prior<FACTORS> = Prior {
    costs: [1.0; FACTORS],
    // What is new to a process depends on what its threads have to do first.
    unsure: [1.2, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7],
    surest: 0.1,
    drift: 0.2,
    iterations: 4,
};

impl CacheEntry for CachedFiles {
    const PREFIX: &str = "files-";

    fn name(&self) -> String {
        name(&self.file_system)
    }
}

fn name(file_system: &FileSystem) -> String {
    let told = format!("{file_system:?} {}", env!("CARGO_PKG_VERSION"));
    format!(
        "{}{:016x}.json",
        CachedFiles::PREFIX,
        xxh3_64(told.as_bytes())
    )
}

impl CachedFiles {
    /// What was measured just now.
    pub fn new(file_system: &FileSystem, costs: FileCosts) -> CachedFiles {
        CachedFiles {
            file_system: file_system.clone(),
            measured_s: now_s(),
            measured: costs.to_array(),
            factors: (&Learned::assumed(&PRIOR)).into(),
        }
    }

    /// What is kept of a file system, if it can be true.
    pub fn load(file_system: &FileSystem) -> Option<CachedFiles> {
        let kept: CachedFiles =
            serde_json::from_str(&load(&folder()?, &name(file_system))?).ok()?;
        let is_it = kept.file_system == *file_system;
        let sound = FileCosts::from_array(kept.measured).is_sound();
        (is_it && sound && kept.learned().is_some()).then_some(kept)
    }

    fn learned(&self) -> Option<Learned<FACTORS>> {
        self.factors.learned()
    }

    /// What was learned of it; never `None` of what was stored.
    fn known(&self) -> Learned<FACTORS> {
        self.learned().unwrap_or_else(|| Learned::assumed(&PRIOR))
    }

    /// Keeps it for the commands that follow.
    pub fn store(&self) {
        if let Some(folder) = folder() {
            store(&folder, self);
        }
    }

    /// What turned out to be so many times as much.
    pub fn factors(&self) -> Factors {
        Factors::from_array(&self.known().costs)
    }

    /// What files cost by it.
    pub fn costs(&self) -> FileCosts {
        self.costs_by(&self.factors())
    }

    /// What they would cost by other factors.
    pub fn costs_by(&self, factors: &Factors) -> FileCosts {
        factors.files(FileCosts::from_array(self.measured))
    }

    /// As a source of costs.
    pub fn source(&self) -> CostSource {
        CostSource::Cached {
            rounds: self.known().rounds,
            age: age_of(self.measured_s),
        }
    }

    /// What is known after a round, which `predict` foretells.
    pub fn after(
        &self,
        lesson: Lesson,
        predict: &dyn Fn(&Factors) -> Option<Vec<f64>>,
    ) -> CachedFiles {
        let predict = |costs: &[f64; FACTORS], _: usize| predict(&Factors::from_array(costs));
        let learned = self.known().after(&[lesson], &PRIOR, &predict);
        CachedFiles {
            factors: (&learned).into(),
            ..self.clone()
        }
    }
}

/// What files are assumed to cost where nobody could measure it: about what they do on a disk
/// without moving parts.
pub fn assumed() -> FileCosts {
    FileCosts {
        open_ns: 15_000.0,
        read_ns_per_byte: 0.15,
        fetch_ns: 100_000.0,
        fetch_ns_per_byte: 2.0,
        create_ns: 40_000.0,
        write_ns_per_byte: 0.4,
        sync_ns: 1_000_000.0,
        sync_alone_ns: 200_000.0,
        flush_ns_per_byte: 2.0,
        commit_ns: 100_000.0,
        thread_ns: 50_000.0,
        memory_bytes: 1e9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> CachedFiles {
        let file_system = FileSystem {
            host: "a boot".to_owned(),
            number: 7,
        };
        CachedFiles::new(&file_system, assumed())
    }

    /// A hundred files that are synced, and what else there is.
    fn toy(factors: &Factors) -> Option<Vec<f64>> {
        let costs = factors.files(assumed());
        let transfer = 100.0 * costs.open_ns + 1e6 * costs.read_ns_per_byte;
        Some(vec![transfer, transfer + 100.0 * costs.sync_ns])
    }

    /// After rounds whose syncs take so many times as much as was measured.
    fn taught(kept: CachedFiles, syncs: &[f64]) -> CachedFiles {
        syncs.iter().fold(kept, |kept, &syncs| {
            let truth = Factors {
                alone: syncs,
                together: syncs,
                ..Factors::from_array(&[1.0; FACTORS])
            };
            let lesson = Lesson {
                times_ns: toy(&truth).expect("it tells always"),
                deviation: 0.3,
                rounds: 1,
            };
            kept.after(lesson, &toy)
        })
    }

    #[test]
    fn rounds_that_take_twice_as_long_are_believed_in_the_end() {
        let kept = taught(kept(), &[2.0; 10]);
        let found = kept.costs();
        let off = found.sync_ns / assumed().sync_ns / 2.0 - 1.0;
        assert!(off.abs() < 0.05, "{off}");
        let off = found.open_ns / assumed().open_ns - 1.0;
        assert!(
            off.abs() < 0.02,
            "what was read took as long as expected: {off}"
        );
        assert_eq!(found.flush_ns_per_byte, assumed().flush_ns_per_byte);
        assert_eq!(kept.known().rounds, 10);
    }

    #[test]
    fn what_holds_no_longer_is_soon_forgotten() {
        let slow = taught(kept(), &[8.0; 10]);
        let quick = taught(slow, &[1.0; 8]);
        let off = quick.costs().sync_ns / assumed().sync_ns - 1.0;
        assert!(off.abs() < 0.15, "{off}");
    }

    #[test]
    fn one_round_that_is_far_out_moves_little() {
        let usual = taught(kept(), &[1.0; 5]);
        let moved = taught(usual, &[1000.0]).costs().sync_ns / assumed().sync_ns;
        assert!(moved < 1.5, "{moved}");
    }

    #[test]
    fn however_many_rounds_there_is_a_bound() {
        let all = taught(kept(), &[1e6; 200]);
        let moved = all.costs().sync_ns / assumed().sync_ns;
        assert!(moved < 30.01, "{moved}");
    }

    #[test]
    fn what_is_stored_of_another_boot_or_damaged_is_not_used() {
        let text = serde_json::to_string(&kept()).unwrap();
        let back: CachedFiles = serde_json::from_str(&text).unwrap();
        assert_eq!(back, kept());
        let mut other = kept().file_system;
        other.host.push('x');
        assert_ne!(name(&other), name(&kept().file_system));
    }
}
