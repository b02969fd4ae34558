//! What files cost on file systems of this host and of others, in files below the user's cache
//! directory: one for each boot of a host and each of its file systems. Every round with files
//! corrects it.

use flitcast_proto::cost::{FILE_COSTS, FileCosts, Files};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::CostSource;
use super::cache::{CacheEntry, age_of, folder, load, now_s, store};

/// What is believed of one round that lasts as long as it was told to be.
const GAIN: f64 = 0.25;
/// No round is believed to show more than this factor at once, ...
const AT_ONCE: f64 = 3.0;
/// ... and all of them together no more than this one.
const IN_ALL: f64 = 30.0;
/// What is shorter tells of threads that wake up rather than of a disk.
const SHORTEST_NS: u64 = 2_000_000;

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
    /// Where messages become files: each file system once.
    pub written: Vec<FileSystem>,
    /// What they were taken to cost.
    pub files: Files,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CachedFiles {
    file_system: FileSystem,
    /// When it was measured, in seconds since 1970.
    measured_s: u64,
    /// Rounds that were learned from since.
    rounds: u64,
    /// As they were measured, in the order of [`FileCosts`].
    measured: [f64; FILE_COSTS],
    /// What turned out to be so many times as much, as logarithms: what each file takes, and
    /// what each of its bytes does.
    factors: [f64; 2],
}

/// What most of a round's time is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MostlyFor {
    /// Files that are made, and synced one by one.
    Entries,
    /// Their bytes.
    Bytes,
}

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
            rounds: 0,
            measured: costs.to_array(),
            factors: [0.0; 2],
        }
    }

    /// What is kept of a file system, if it can be true.
    pub fn load(file_system: &FileSystem) -> Option<CachedFiles> {
        let kept: CachedFiles =
            serde_json::from_str(&load(&folder()?, &name(file_system))?).ok()?;
        let is_it = kept.file_system == *file_system;
        let sound = FileCosts::from_array(kept.measured).is_sound();
        let bounded = kept
            .factors
            .iter()
            .all(|factor| factor.abs() <= IN_ALL.ln());
        (is_it && sound && bounded).then_some(kept)
    }

    /// Keeps it for the commands that follow.
    pub fn store(&self) {
        if let Some(folder) = folder() {
            store(&folder, self);
        }
    }

    /// What files cost by it.
    pub fn costs(&self) -> FileCosts {
        let measured = FileCosts::from_array(self.measured);
        let [entries, bytes] = self.factors.map(f64::exp);
        FileCosts {
            create_ns: measured.create_ns * entries,
            write_ns_per_byte: measured.write_ns_per_byte * bytes,
            sync_ns: measured.sync_ns * entries,
            sync_alone_ns: measured.sync_alone_ns * entries,
            flush_ns_per_byte: measured.flush_ns_per_byte * bytes,
            commit_ns: measured.commit_ns * entries,
            ..measured
        }
    }

    /// As a source of costs.
    pub fn source(&self) -> CostSource {
        CostSource::Cached {
            rounds: self.rounds,
            age: age_of(self.measured_s),
        }
    }

    /// What is known after a round that was predicted to take so long until all was visible, most
    /// of it for what is said of files, and took that long.
    pub fn after(mut self, mostly_for: MostlyFor, predicted_ns: u64, took_ns: u64) -> CachedFiles {
        if predicted_ns.max(took_ns) < SHORTEST_NS {
            return self;
        }
        let off = (took_ns.max(1) as f64 / predicted_ns.max(1) as f64).ln();
        let off = off.clamp(-AT_ONCE.ln(), AT_ONCE.ln());
        let most = IN_ALL.ln();
        let factor = match mostly_for {
            MostlyFor::Entries => &mut self.factors[0],
            MostlyFor::Bytes => &mut self.factors[1],
        };
        *factor = (*factor + GAIN * off).clamp(-most, most);
        self.rounds += 1;
        self
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
        memory_bytes: 1e9,
    }
}

#[cfg(test)]
mod tests {
    use super::MostlyFor::Entries;
    use super::*;

    fn kept() -> CachedFiles {
        let file_system = FileSystem {
            host: "a boot".to_owned(),
            number: 7,
        };
        CachedFiles::new(&file_system, assumed())
    }

    #[test]
    fn rounds_that_take_twice_as_long_are_believed_in_the_end() {
        let mut kept = kept();
        let truth = 2.0 * assumed().sync_ns;
        for _ in 0..40 {
            let predicted = kept.costs().sync_ns * 100.0;
            kept = kept.after(Entries, predicted as u64, (truth * 100.0) as u64);
        }
        assert!((kept.costs().sync_ns / truth - 1.0).abs() < 0.01);
        assert_eq!(kept.costs().open_ns, assumed().open_ns, "nobody has read");
        let flushing = (kept.costs().flush_ns_per_byte, assumed().flush_ns_per_byte);
        assert_eq!(flushing.0, flushing.1, "nobody has told of bytes");
        assert_eq!(kept.rounds, 40);
    }

    #[test]
    fn one_round_that_is_far_out_moves_little() {
        let once = kept().after(Entries, 10_000_000, 100_000_000_000);
        let moved = once.costs().sync_ns / assumed().sync_ns;
        assert!(moved < AT_ONCE.powf(GAIN) + 1e-9, "{moved}");
        let short = kept().after(Entries, 1_000, SHORTEST_NS - 1);
        assert_eq!(short, kept());
    }

    #[test]
    fn however_many_rounds_there_is_a_bound() {
        let all = (0..1000).fold(kept(), |kept, _| kept.after(Entries, 1, u64::MAX));
        let moved = all.costs().sync_ns / assumed().sync_ns;
        assert!((moved / IN_ALL - 1.0).abs() < 1e-9, "{moved}");
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
