//! A cache of the learned costs of hosts, in files below the user's cache directory: one for each boot,
//! processor, number of cores, build and kind of connection, since costs learned under other conditions
//! are only a guess. Files that were not written for a long time are removed.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flitcast_node::system::process::{boot, cores, processor};
use flitcast_plan::calibration::cost_estimate::{CostEstimate, Observation, Predict, Prior};
use flitcast_plan::cost::COSTS;
use flitcast_proto::wire::control::Register;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::job::model::prior;
use crate::tuning::{CACHE_AGE, CACHED_BYTES, FAR_OFF, SITTING_PAUSE, SITTINGS};

/// The conditions under which costs were learned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The kernel's name of this boot.
    boot: String,
    /// The processor, as the kernel names it.
    cpu: String,
    /// The cores that its processes may use.
    pub cores: u32,
    /// The program: its version, length and time of modification.
    build: String,
    encrypted: bool,
}

impl Key {
    /// Returns the key of this process, or `None` if the system does not provide it.
    pub fn here(encrypted: bool) -> Option<Key> {
        Key::of(boot()?, processor()?, cores()?, encrypted)
    }

    /// Returns the key of a PE from its registration. All PEs run this build, or a compatible one.
    pub fn of_pe(register: &Register, encrypted: bool) -> Option<Key> {
        let boot = register.clock.split(' ').next();
        let boot = boot.filter(|boot| !boot.is_empty())?.to_owned();
        let is_complete = register.cores > 0 && !register.processor.is_empty();
        let processor = is_complete.then(|| register.processor.clone())?;
        Key::of(boot, processor, register.cores, encrypted)
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
        let text = format!("{self:?}");
        let hash = XxHash3_64::oneshot(text.as_bytes());
        format!("host-{hash:016x}.json")
    }
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CachedHost {
    key: Key,
    /// When the host was first measured, in seconds since 1970.
    measured_s: u64,
    learned: Kept,
}

/// A cost estimate in its stored form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    rounds: u64,
    costs: Vec<f64>,
    covariance: Vec<Vec<f64>>,
    /// When it was last changed, in seconds since 1970.
    learned_s: u64,
    /// The costs at the ends of earlier sittings, the oldest first.
    sittings: Vec<Vec<f64>>,
    /// The difference between the logarithms of the measured and the predicted time of the last round, in
    /// deviations.
    last_off: f64,
}

impl Kept {
    /// Creates the stored form of an estimate; `before` is what was stored until now.
    pub fn new<const N: usize>(
        learned: &CostEstimate<N>,
        before: Option<&Kept>,
        now_s: u64,
    ) -> Kept {
        let mut sittings = before.map_or(Vec::new(), |kept| kept.sittings.clone());
        if let Some(before) = before.filter(|kept| kept.is_over(now_s)) {
            sittings.push(before.costs.clone());
            sittings.drain(..sittings.len().saturating_sub(SITTINGS));
        }
        Kept {
            rounds: learned.rounds,
            costs: learned.costs.to_vec(),
            covariance: learned.covariance.iter().map(|row| row.to_vec()).collect(),
            learned_s: now_s,
            sittings,
            last_off: 0.0,
        }
    }

    /// Returns the form after a round, if `before` was stored until now. After two rounds in a row that
    /// differ by more than `far_off` deviations from their predictions, what was learned before counts
    /// little.
    pub fn after<const N: usize>(
        before: Option<&Kept>,
        lesson: Observation,
        (prior, far_off): (&Prior<N>, f64),
        predict: &Predict<'_, N>,
    ) -> Kept {
        let now_s = now_s();
        let assumed = || CostEstimate::assumed(prior);
        let known = before.and_then(|kept| kept.at(now_s, prior));
        let mut known = known.unwrap_or_else(assumed);
        let last_off = off(&lesson, predict(&[known.costs], 0).pop().flatten());
        let before_off = before.map_or(0.0, |kept| kept.last_off);
        // One round that is far off may have been disturbed, a second one means that the host has changed.
        if last_off.abs().min(before_off.abs()) > far_off
            && last_off.is_sign_positive() == before_off.is_sign_positive()
        {
            known.covariance = assumed().covariance;
        }
        let learned = known.after(&[lesson], prior, predict);
        Kept {
            last_off,
            ..Kept::new(&learned, before, now_s)
        }
    }

    /// Returns whether the sitting of the last change is over.
    fn is_over(&self, now_s: u64) -> bool {
        now_s.saturating_sub(self.learned_s) > SITTING_PAUSE.as_secs()
    }

    /// Returns the estimate for the rounds that begin now, if it is plausible.
    pub fn at<const N: usize>(&self, now_s: u64, prior: &Prior<N>) -> Option<CostEstimate<N>> {
        let learned = self.learned()?;
        if !self.is_over(now_s) {
            return Some(learned);
        }
        let sittings = self.sittings.iter().map(|costs| costs[..].try_into().ok());
        let earlier: Vec<[f64; N]> = sittings.collect::<Option<_>>()?;
        let begun = learned.in_new_sitting(&earlier, prior);
        begun.is_sound().then_some(begun)
    }

    /// Returns the cost estimate, if it is plausible.
    pub fn learned<const N: usize>(&self) -> Option<CostEstimate<N>> {
        let rows = self.covariance.iter().map(|row| row[..].try_into().ok());
        let learned = CostEstimate {
            costs: self.costs[..].try_into().ok()?,
            covariance: rows.collect::<Option<Vec<_>>>()?.try_into().ok()?,
            rounds: self.rounds,
        };
        learned.is_sound().then_some(learned)
    }
}

/// Returns the difference between the logarithms of the last measured and predicted time, in deviations;
/// 0 without a prediction.
fn off(lesson: &Observation, predicted: Option<Vec<f64>>) -> f64 {
    let predicted = predicted.and_then(|times| times.last().copied());
    let both = lesson.times_ns.last().zip(predicted);
    both.map_or(0.0, |(measured, predicted)| {
        (measured.max(1.0) / predicted.max(1.0)).ln() / lesson.deviation
    })
}

impl CachedHost {
    /// Creates an entry for a new measurement.
    pub fn new(key: Key, learned: &CostEstimate<COSTS>) -> CachedHost {
        CachedHost {
            key,
            measured_s: now_s(),
            learned: Kept::new(learned, None, now_s()),
        }
    }

    /// Returns the entry after a round on this host; `before` is what was stored until now.
    pub fn after(
        key: Key,
        before: Option<&CachedHost>,
        lesson: Observation,
        predict: &Predict<'_, COSTS>,
    ) -> CachedHost {
        let prior = prior(key.encrypted);
        let learned = before.map(|kept| &kept.learned);
        CachedHost {
            learned: Kept::after(learned, lesson, (&prior, FAR_OFF), predict),
            key,
            measured_s: before.map_or_else(now_s, |kept| kept.measured_s),
        }
    }

    /// Parses the output of [`text`](Self::text) from any source; returns `None` if it is not
    /// plausible.
    pub fn parse(text: &str) -> Option<CachedHost> {
        let kept: CachedHost = serde_json::from_str(text).ok()?;
        kept.learned().is_some().then_some(kept)
    }

    pub fn text(&self) -> String {
        // Numbers and strings can always be serialised.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the cost estimate; never `None` for a stored one.
    pub fn learned(&self) -> Option<CostEstimate<COSTS>> {
        self.learned.learned()
    }

    /// Returns the cost estimate for rounds that begin now.
    pub fn now(&self) -> Option<CostEstimate<COSTS>> {
        self.learned.at(now_s(), &prior(self.key.encrypted))
    }

    /// Returns the time since the host was first measured.
    pub fn age(&self) -> Duration {
        age_of(self.measured_s)
    }

    /// Returns the entry for a key, or `None` if there is no valid one.
    pub fn load(folder: &Path, key: &Key) -> Option<CachedHost> {
        let kept = CachedHost::parse(&load(folder, &key.file_name())?)?;
        (kept.key == *key).then_some(kept)
    }

    pub fn store(&self, folder: &Path) {
        store(folder, &self.key.file_name(), self);
    }
}

/// Returns the content of a file, or `None` if it cannot be read or is too long.
pub fn load(folder: &Path, name: &str) -> Option<String> {
    let path = folder.join(name);
    let length = fs::metadata(&path).ok()?.len();
    let text = (length <= CACHED_BYTES).then(|| fs::read_to_string(path));
    text?.ok()
}

/// Writes a file, whole or not at all, and removes old files whose names begin with the same word. If
/// it cannot be written, the next command measures again.
pub fn store(folder: &Path, name: &str, kept: &impl Serialize) {
    let kind = name.split_inclusive('-').next().unwrap_or(name);
    // No sync is needed: the file is valid for this boot only.
    let write = || {
        fs::create_dir_all(folder)?;
        let mut beside = tempfile::Builder::new().prefix(kind).tempfile_in(folder)?;
        // Numbers and strings can always be serialised.
        let text = serde_json::to_string(kept).unwrap_or_default();
        beside.write_all(text.as_bytes())?;
        beside.persist(folder.join(name))?;
        Ok(())
    };
    let written: std::io::Result<()> = write();
    if let Err(error) = written {
        let folder = folder.display();
        tracing::info!("what this host costs cannot be kept in {folder}: {error}");
        return;
    }
    remove_old(folder, kind);
}

fn remove_old(folder: &Path, kind: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let written = entry.metadata().and_then(|found| found.modified());
        let age = written.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        let is_old = age.is_ok_and(|age| age > CACHE_AGE);
        if is_old && name.starts_with(kind) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the seconds since 1970.
pub fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// Returns the time since a moment given in seconds since 1970.
pub fn age_of(seconds: u64) -> Duration {
    let then = UNIX_EPOCH + Duration::from_secs(seconds);
    SystemTime::now().duration_since(then).unwrap_or_default()
}

/// Returns `$XDG_CACHE_HOME/flitcast` or `~/.cache/flitcast`; `None` if neither variable is set.
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

    fn key() -> Key {
        Key::here(false).expect("this is Linux")
    }

    fn learned() -> CostEstimate<COSTS> {
        CostEstimate {
            rounds: 7,
            ..CostEstimate::assumed(&prior(false))
        }
    }

    #[test]
    fn stored_hosts_are_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("not/there/yet");
        assert_eq!(CachedHost::load(&folder, &key()), None);
        let kept = CachedHost::new(key(), &learned());
        kept.store(&folder);
        let found = CachedHost::load(&folder, &key()).unwrap();
        assert_eq!(found, kept);
        assert_eq!(found.learned(), Some(learned()));
        assert!(found.age() < Duration::from_secs(3600));
    }

    #[test]
    fn another_boot_build_processor_or_number_of_cores_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let kept = CachedHost::new(key(), &learned());
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
            // With the other's name, too.
            fs::write(dir.path().join(other.file_name()), kept.text()).unwrap();
            assert_eq!(CachedHost::load(dir.path(), &other), None);
        }
    }

    #[test]
    fn impossible_values_are_refused() {
        let kept = CachedHost::new(key(), &learned());
        for (from, to) in [("15000", "-15000"), ("1.06", "0"), ("{", "[")] {
            let text = kept.text();
            assert!(text.contains(from), "{text}");
            assert_eq!(CachedHost::parse(&text.replace(from, to)), None, "{to}");
        }
    }

    #[test]
    fn old_files_are_removed_but_not_those_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let [mut old, mut recent] = [key(), key()];
        old.boot = "long ago".to_owned();
        recent.boot = "another host's".to_owned();
        for key in [&old, &recent] {
            CachedHost::new(key.clone(), &learned()).store(dir.path());
        }
        let long_ago = SystemTime::now() - CACHE_AGE - Duration::from_secs(60);
        for name in [old.file_name(), "other.json".to_owned()] {
            let file = fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(dir.path().join(name));
            file.and_then(|file| file.set_modified(long_ago)).unwrap();
        }
        CachedHost::new(key(), &learned()).store(dir.path());
        assert_eq!(CachedHost::load(dir.path(), &old), None);
        assert!(CachedHost::load(dir.path(), &recent).is_some());
        assert!(dir.path().join("other.json").exists());
    }

    /// A command that ran under a profiler takes ten times as long, and so may hundreds of them.
    #[test]
    fn outdated_costs_are_forgotten_after_two_commands() {
        let usual = prior(false).costs;
        let times = |costs: &[f64; COSTS]| vec![costs[..3].iter().sum(), costs[1..4].iter().sum()];
        let predict = |points: &[[f64; COSTS]], _: usize| {
            let each = points.iter().map(|costs| Some(times(costs)));
            each.collect::<Vec<_>>()
        };
        let after = |before: Option<CachedHost>, slower: f64| {
            let lesson = Observation {
                times_ns: times(&usual.map(|cost| cost * slower)),
                deviation: 0.15,
                rounds: 1,
            };
            CachedHost::after(key(), before.as_ref(), lesson, &predict)
        };
        let off = |kept: &CachedHost| times(&kept.learned().unwrap().costs)[0] / times(&usual)[0];
        for (first, then) in [(1.0, 10.0), (10.0, 1.0), (3.0, 1.0)] {
            let mut kept = None;
            for _ in 0..100 {
                kept = Some(after(kept, first));
            }
            let disturbed = after(kept, then);
            let rest = (off(&disturbed) / first).ln() / (then / first).ln();
            assert!(rest < 0.5, "one command: {rest}");
            let changed = off(&after(Some(disturbed), then));
            let is_near = (changed / then).ln().abs() < 0.2;
            assert!(is_near, "{first} {then}: {changed}");
        }
    }

    /// Returns the stored form after sittings an hour apart whose rounds took these multiples of the
    /// usual time.
    fn after_sittings(factors: &[f64]) -> Kept {
        let of = |factor: f64| {
            let usual = CostEstimate::assumed(&prior(false));
            CostEstimate {
                costs: usual.costs.map(|cost| cost * factor),
                ..usual
            }
        };
        let mut kept = Kept::new(&of(factors[0]), None, 0);
        for (hour, factor) in (1..).zip(&factors[1..]) {
            for minute in 0..5 {
                kept = Kept::new(&of(*factor), Some(&kept), hour * 3600 + minute * 60);
            }
        }
        kept
    }

    #[test]
    fn an_odd_sitting_does_not_count_in_the_next_one() {
        let wake_ns = prior(false).costs[0];
        let next = 100 * 3600;
        for (factors, factor) in [
            (&[1.0][..], 1.0),
            (&[1.0, 1.02, 3.0], 1.02),
            (&[3.0, 1.0, 1.0], 1.0),
            (&[1.0, 1.0, 3.0, 1.0, 3.0], 1.0),
            // A lasting change counts in the end.
            (&[1.0, 1.0, 2.0, 2.0, 2.0], 2.0),
        ] {
            let kept = after_sittings(factors);
            let begun: CostEstimate<COSTS> = kept.at(next, &prior(false)).unwrap();
            let is_like = |estimate: &CostEstimate<COSTS>, factor: f64| {
                (estimate.costs[0] / wake_ns / factor - 1.0).abs() < 1e-9
            };
            assert!(is_like(&begun, factor), "{factors:?}");
            // Within a sitting, its own rounds count.
            let last = factors.last().unwrap();
            let same: CostEstimate<COSTS> = kept.at(kept.learned_s + 60, &prior(false)).unwrap();
            assert!(is_like(&same, *last), "{factors:?}");
            assert!(kept.sittings.len() <= SITTINGS);
        }
    }
}
