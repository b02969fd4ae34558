//! What was learned of a host, in a file below the user's cache directory: one for each
//! boot, processor, number of cores, build and kind of connection, since what was learned
//! elsewhere is no more than a guess here. Files that nobody has written for long are removed.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flitcast_node::system::process::{boot, cores, processor};
use flitcast_proto::calibration::learned::Learned;
use flitcast_proto::cost::COSTS;
use flitcast_proto::wire::control::Register;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// A file of this is some 2 KiB; a longer one is none of ours.
const LONGEST_BYTES: u64 = 64 << 10;
/// Hosts that were booted so long ago are rarely still up, and quickly measured anew.
const OLD: Duration = Duration::from_secs(30 * 24 * 3600);

/// What the costs hold for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The kernel's name of this boot.
    boot: String,
    /// The processor, as the kernel names it.
    cpu: String,
    /// The cores that its processes may use.
    cores: u32,
    /// The program: its version, length and time of modification.
    build: String,
    /// Whether connections are encrypted.
    encrypted: bool,
}

impl Key {
    /// Of this process; `None` where the system does not tell.
    pub fn here(encrypted: bool) -> Option<Key> {
        Key::of(boot()?, processor()?, cores()?, encrypted)
    }

    /// Of a PE's, by what it says of itself. PEs are of this build, or one that speaks with it.
    pub fn of_pe(register: &Register, encrypted: bool) -> Option<Key> {
        let boot = register.clock.split(' ').next();
        let boot = boot.filter(|boot| !boot.is_empty())?.to_owned();
        let tells = register.cores > 0 && !register.processor.is_empty();
        let processor = tells.then(|| register.processor.clone())?;
        Key::of(boot, processor, register.cores, encrypted)
    }

    /// The cores that its processes may use.
    pub fn cores(&self) -> u32 {
        self.cores
    }

    fn of(boot: String, cpu: String, cores: u32, encrypted: bool) -> Option<Key> {
        let program = fs::metadata(std::env::current_exe().ok()?).ok()?;
        Some(Key {
            boot,
            cpu,
            cores,
            build: format!(
                "{} {} {}.{:09}",
                env!("CARGO_PKG_VERSION"),
                program.len(),
                program.mtime(),
                program.mtime_nsec()
            ),
            encrypted,
        })
    }

    fn file_name(&self) -> String {
        let told = format!("{self:?}");
        let hash = xxh3_64(told.as_bytes());
        format!("{}{hash:016x}.json", CachedHost::PREFIX)
    }
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CachedHost {
    key: Key,
    /// When the host was first measured, in seconds since 1970.
    measured_s: u64,
    learned: Kept,
}

/// What was learned, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    rounds: u64,
    costs: Vec<f64>,
    covariance: Vec<Vec<f64>>,
}

impl<const N: usize> From<&Learned<N>> for Kept {
    fn from(learned: &Learned<N>) -> Kept {
        Kept {
            rounds: learned.rounds,
            costs: learned.costs.to_vec(),
            covariance: learned.covariance.iter().map(|row| row.to_vec()).collect(),
        }
    }
}

impl Kept {
    /// What is known by it, if it can be true.
    pub fn learned<const N: usize>(&self) -> Option<Learned<N>> {
        let rows = self.covariance.iter().map(|row| row[..].try_into().ok());
        let learned = Learned {
            costs: self.costs[..].try_into().ok()?,
            covariance: rows.collect::<Option<Vec<_>>>()?.try_into().ok()?,
            rounds: self.rounds,
        };
        learned.is_sound().then_some(learned)
    }
}

impl CachedHost {
    /// What was learned just now, of a host that was first measured at a time, or is now.
    pub fn new(key: Key, learned: &Learned<COSTS>, first: Option<&CachedHost>) -> CachedHost {
        CachedHost {
            key,
            measured_s: first.map_or_else(now_s, |first| first.measured_s),
            learned: learned.into(),
        }
    }

    /// Parses what [`text`](Self::text) made, wherever that was, if it can be true.
    pub fn parse(text: &str) -> Option<CachedHost> {
        let kept: CachedHost = serde_json::from_str(text).ok()?;
        kept.learned().is_some().then_some(kept)
    }

    /// As it is kept.
    pub fn text(&self) -> String {
        // Numbers and strings always have a form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What is known by it; never `None` of what was stored.
    pub fn learned(&self) -> Option<Learned<COSTS>> {
        self.learned.learned()
    }

    /// How long ago the host was first measured.
    pub fn age(&self) -> Duration {
        age_of(self.measured_s)
    }

    /// What is kept for a key; `None` if nothing is, or nothing sound.
    pub fn load(folder: &Path, key: &Key) -> Option<CachedHost> {
        let kept = CachedHost::parse(&load(folder, &key.file_name())?)?;
        (kept.key == *key).then_some(kept)
    }

    /// Keeps it.
    pub fn store(&self, folder: &Path) {
        store(folder, self);
    }
}

impl CacheEntry for CachedHost {
    const PREFIX: &str = "host-";

    fn name(&self) -> String {
        self.key.file_name()
    }
}

/// What is kept in a file of its own.
pub trait CacheEntry: Serialize {
    /// What the names of all files of this kind begin with.
    const PREFIX: &str;

    /// The file's name.
    fn name(&self) -> String;
}

/// What a file holds; `None` if it cannot be read, or is none of ours.
pub fn load(folder: &Path, name: &str) -> Option<String> {
    let path = folder.join(name);
    let length = fs::metadata(&path).ok()?.len();
    let text = (length <= LONGEST_BYTES).then(|| fs::read_to_string(path));
    text?.ok()
}

/// Writes a file, whole or not at all, and removes those of its kind that are old. Where it
/// cannot be written, the next command measures anew.
pub fn store<T: CacheEntry>(folder: &Path, kept: &T) {
    // Nothing is synced: it holds for this boot only.
    let write = || {
        fs::create_dir_all(folder)?;
        let mut beside = tempfile::Builder::new()
            .prefix(T::PREFIX)
            .tempfile_in(folder)?;
        // Numbers and strings always have a form.
        let text = serde_json::to_string(kept).unwrap_or_default();
        beside.write_all(text.as_bytes())?;
        beside.persist(folder.join(kept.name()))?;
        Ok(())
    };
    let written: std::io::Result<()> = write();
    if let Err(error) = written {
        let folder = folder.display();
        tracing::info!("what this host costs cannot be kept in {folder}: {error}");
        return;
    }
    remove(folder, |name, age| name.starts_with(T::PREFIX) && age > OLD);
}

/// Removes what is kept in files of such names and ages.
fn remove(folder: &Path, goes: impl Fn(&str, Duration) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let written = entry.metadata().and_then(|found| found.modified());
        let age = written.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        if name.ends_with(".json") && goes(&name, age.unwrap_or_default()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// How long ago it was so many seconds since 1970.
pub fn age_of(seconds: u64) -> Duration {
    let then = UNIX_EPOCH + Duration::from_secs(seconds);
    SystemTime::now().duration_since(then).unwrap_or_default()
}

/// `$XDG_CACHE_HOME/flitcast`, or `~/.cache/flitcast`; `None` where neither is known.
pub fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let given = absolute("XDG_CACHE_HOME");
    let usual = || absolute("HOME").map(|home| home.join(".cache"));
    Some(given.or_else(usual)?.join("flitcast"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::host_costs::prior;

    fn key() -> Key {
        Key::here(false).expect("this is Linux")
    }

    fn learned() -> Learned<COSTS> {
        Learned {
            rounds: 7,
            ..Learned::assumed(&prior(false))
        }
    }

    #[test]
    fn what_is_kept_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("not/there/yet");
        assert_eq!(CachedHost::load(&folder, &key()), None);
        let kept = CachedHost::new(key(), &learned(), None);
        kept.store(&folder);
        let found = CachedHost::load(&folder, &key()).unwrap();
        assert_eq!(found, kept);
        assert_eq!(found.learned(), Some(learned()));
        assert!(found.age() < Duration::from_secs(3600));
    }

    #[test]
    fn another_boot_build_processor_or_number_of_cores_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let kept = CachedHost::new(key(), &learned(), None);
        let change: [fn(&mut Key); 5] = [
            |key| key.boot.push('x'),
            |key| key.build.push('x'),
            |key| key.cpu.push('x'),
            |key| key.cores += 1,
            |key| key.encrypted = true,
        ];
        for change in change {
            let mut other = key();
            change(&mut other);
            kept.store(dir.path());
            assert_eq!(CachedHost::load(dir.path(), &other), None);
            // Under the other's name, too.
            fs::write(dir.path().join(other.file_name()), kept.text()).unwrap();
            assert_eq!(CachedHost::load(dir.path(), &other), None);
        }
    }

    #[test]
    fn what_cannot_be_true_is_refused() {
        let kept = CachedHost::new(key(), &learned(), None);
        for (from, to) in [("15000", "-15000"), ("1.2100000000000002", "0"), ("{", "[")] {
            let text = kept.text();
            assert!(text.contains(from), "{text}");
            assert_eq!(CachedHost::parse(&text.replace(from, to)), None, "{to}");
        }
    }

    #[test]
    fn files_that_nobody_wrote_for_long_go_and_those_of_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let [mut old, mut recent] = [key(), key()];
        old.boot = "long ago".to_owned();
        recent.boot = "another host's".to_owned();
        for key in [&old, &recent] {
            CachedHost::new(key.clone(), &learned(), None).store(dir.path());
        }
        let long_ago = SystemTime::now() - OLD - Duration::from_secs(60);
        for name in [old.file_name(), "other.json".to_owned()] {
            let file = fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(dir.path().join(name));
            file.and_then(|file| file.set_modified(long_ago)).unwrap();
        }
        CachedHost::new(key(), &learned(), None).store(dir.path());
        assert_eq!(CachedHost::load(dir.path(), &old), None);
        assert!(CachedHost::load(dir.path(), &recent).is_some());
        assert!(dir.path().join("other.json").exists());
    }
}
