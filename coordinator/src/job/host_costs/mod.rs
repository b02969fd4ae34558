//! What processes cost on this machine, and where those numbers come from: measured when a
//! command is first used on it (`flitcast calibrate --host`, which a command has done by a
//! process of its own), kept in a cache, and corrected by what every round takes. Hosts over a
//! network are still assumed to cost what is usual.
//!
//! The filter that learns is `flitcast_proto::calibration::learned`.

mod cache;
pub mod files;

use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use flitcast_proto::calibration::learned::{Learned, Lesson, Prior};
use flitcast_proto::cost::{COSTS, Host};
use tokio::process::Command;

use crate::job::model::assumed_host;
use crate::job::request::Site;
use cache::{CachedHost, Key};

/// For measuring a host before its first round, which takes a tenth of a second: then it is
/// assumed to be as usual.
const LONGEST: Duration = Duration::from_secs(2);

/// Where what is known of a host comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CostSource {
    /// A process that measured it for this command.
    Measured,
    /// The cache: from so many rounds, the first of them so long ago.
    Cached {
        /// How many.
        rounds: u64,
        /// How long ago.
        age: Duration,
    },
    /// A profile.
    Profile,
    /// Nobody could measure it.
    Assumed,
}

impl CostSource {
    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            CostSource::Measured => "measured",
            CostSource::Cached { .. } => "cached",
            CostSource::Profile => "profile",
            CostSource::Assumed => "assumed",
        }
    }

    /// Of two sources of what is used together, the one that is told of: what is assumed
    /// rather than what is known, then what is known of the fewest rounds.
    pub fn less_sure(self, other: CostSource) -> CostSource {
        let rank = |source: CostSource| match source {
            CostSource::Assumed => (0, 0),
            CostSource::Measured => (1, 0),
            CostSource::Cached { rounds, .. } => (2, rounds),
            CostSource::Profile => (3, 0),
        };
        if rank(self) <= rank(other) {
            self
        } else {
            other
        }
    }
}

/// A host's costs, and where they come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostCosts {
    /// The costs.
    pub host: Host,
    /// Where they come from.
    pub source: CostSource,
}

/// What this process knows, with plain connections and with encrypted ones. It stays so until the
/// process ends: no prediction of a command comes from the rounds that it is compared with.
static KNOWN: [Mutex<Option<(Learned<COSTS>, CostSource)>>; 2] =
    [Mutex::new(None), Mutex::new(None)];

fn known(encrypted: bool) -> Option<(Learned<COSTS>, CostSource)> {
    let mut known = KNOWN[usize::from(encrypted)]
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if known.is_none() {
        let kept = Key::here(encrypted).zip(cache::folder());
        let kept = kept.and_then(|(key, folder)| CachedHost::load(&folder, &key));
        *known = kept.and_then(|kept| {
            let learned = kept.learned()?;
            let (rounds, age) = (learned.rounds, kept.age());
            Some((learned, CostSource::Cached { rounds, age }))
        });
    }
    known.clone()
}

/// Whether a site's PEs are processes of this machine that cost what is learned of it.
pub fn is_here(site: &Site) -> bool {
    !site.placement.is_spread()
}

/// What the processes of a site cost, as far as this process knows.
pub fn of(site: &Site) -> HostCosts {
    let encrypted = site.guard.is_encrypted();
    let known = is_here(site).then(|| known(encrypted)).flatten();
    let (host, source) = match known {
        Some((learned, source)) => (host_of(&learned.costs), source),
        None => (assumed(encrypted), CostSource::Assumed),
    };
    HostCosts { host, source }
}

/// What is assumed of a host.
pub fn assumed(encrypted: bool) -> Host {
    let mut host = assumed_host();
    if encrypted {
        host.send_ns_per_byte += crate::job::model::CRYPTO_NS_PER_BYTE;
        host.receive_ns_per_byte += crate::job::model::CRYPTO_NS_PER_BYTE;
    }
    host
}

/// A host of this machine with these costs.
pub fn host_of(costs: &[f64; COSTS]) -> Host {
    assumed_host().with_costs(*costs)
}

/// What is assumed of this machine, and how it is learned.
pub fn prior(encrypted: bool) -> Prior<COSTS> {
    Prior {
        costs: assumed(encrypted).costs(),
        // A factor of three.
        unsure: [1.1; COSTS],
        surest: 0.03,
        drift: 0.02,
        iterations: 10,
    }
}

/// What rounds of a lesson of this index would take on such a host, as [`foreseen`] tells it.
pub type PredictHost<'a> = dyn Fn(&Host, usize) -> Option<Vec<f64>> + 'a;

/// What is known of a host after these lessons.
pub fn after(
    learned: &Learned<COSTS>,
    lessons: &[Lesson],
    prior: &Prior<COSTS>,
    predict: &PredictHost<'_>,
) -> Learned<COSTS> {
    let predict = |costs: &[f64; COSTS], lesson: usize| predict(&host_of(costs), lesson);
    learned.after(lessons, prior, &predict)
}

/// Has this machine measured if a site without a profile needs that, and nobody has done it yet.
pub async fn ensure(site: &Site) {
    let encrypted = site.guard.is_encrypted();
    let needed = is_here(site) && site.tree.count() > 1;
    if !needed || known(encrypted).is_some() {
        return;
    }
    let Some(key) = Key::here(encrypted) else {
        return;
    };
    match tokio::time::timeout(LONGEST, measured_by_a_process(encrypted)).await {
        Ok(Ok(said)) => match CachedHost::parse(&said, &key).and_then(|kept| kept.learned()) {
            Some(learned) => {
                let mut known = KNOWN[usize::from(encrypted)]
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                *known = Some((learned, CostSource::Measured));
            }
            None => tracing::info!("this host could not be measured"),
        },
        Ok(Err(error)) => tracing::info!("this host could not be measured: {error}"),
        Err(_) => tracing::info!("this host could not be measured within {LONGEST:?}"),
    }
}

/// What `flitcast calibrate --host` prints. It runs by itself, so that what watches, traces and
/// logs this command knows nothing of it.
async fn measured_by_a_process(encrypted: bool) -> std::io::Result<String> {
    let mut measuring = Command::new(std::env::current_exe()?);
    measuring
        .args(["calibrate", "--host", "--format", "json"])
        .args(encrypted.then_some("--encrypted"))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .env_remove("RUST_LOG")
        .kill_on_drop(true);
    let output = measuring.output().await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a prediction foretells of what rounds tell: when their last byte arrives, and when their
/// messages do in the geometric mean.
pub fn foreseen(arrivals_ns: &[Option<u64>]) -> Option<Vec<f64>> {
    let arrivals = arrivals_ns.iter().copied().flatten();
    let last = arrivals.clone().max()?;
    Some(vec![last as f64, geometric_mean(arrivals)?])
}

/// `None` of none.
pub fn geometric_mean(all: impl Iterator<Item = u64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for ns in all {
        sum += (ns.max(1) as f64).ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

/// Learns what processes of this machine cost from a lesson of their rounds, and keeps it for the
/// commands that follow.
pub fn learn(lesson: &Lesson, encrypted: bool, predict: &PredictHost<'_>) {
    let (Some(key), Some(folder)) = (Key::here(encrypted), cache::folder()) else {
        return;
    };
    // As another command may have left it by now.
    let before = CachedHost::load(&folder, &key);
    let learned = before.as_ref().and_then(CachedHost::learned);
    let prior = prior(encrypted);
    let learned = learned.unwrap_or_else(|| Learned::assumed(&prior));
    let learned = after(&learned, std::slice::from_ref(lesson), &prior, predict);
    CachedHost::new(key, &learned, before.as_ref()).store(&folder);
}

/// Keeps what was measured anew, and what a command that asked for it is told.
pub fn keep_measured(learned: &Learned<COSTS>, encrypted: bool) -> Option<String> {
    let kept = CachedHost::new(Key::here(encrypted)?, learned, None);
    if let Some(folder) = cache::folder() {
        kept.store(&folder);
    }
    Some(kept.text())
}
