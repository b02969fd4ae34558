//! What processes cost on each machine, and where those numbers come from: measured when a command
//! first uses it (`flitcast calibrate --host`, which a PE there has done by a process of its own),
//! kept in a cache, and corrected by what every round takes.
//!
//! The filter that learns is `flitcast_proto::calibration::learned`.

mod cache;
pub mod files;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flitcast_node::system::process::cores;
use flitcast_proto::calibration::learned::{Learned, Lesson, Predict, Prior};
use flitcast_proto::cost::{COSTS, Host, Hosts};
use flitcast_proto::{PeId, Tree};

use crate::job::model::assumed_host;
use crate::job::request::Site;
use cache::CachedHost;

pub use cache::Key;

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

/// What processes cost on the machines of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCosts {
    /// The costs, and which PE is on which machine.
    pub hosts: Hosts,
    /// By machine, as what it is known; `None` if it does not tell.
    pub keys: Vec<Option<Key>>,
    /// By machine, where its costs come from.
    sources: Vec<CostSource>,
}

impl HostCosts {
    /// One machine that costs so much.
    pub fn one(host: Host, source: CostSource) -> HostCosts {
        HostCosts {
            hosts: Hosts::one(host),
            keys: vec![None],
            sources: vec![source],
        }
    }

    /// Of PEs on these machines, by PE index; a PE without one has a machine of its own. What
    /// nobody has measured is assumed.
    pub fn of(pes: &[Option<Key>], tree: &Tree, encrypted: bool) -> HostCosts {
        let mut keys: Vec<Option<Key>> = Vec::new();
        let mut place = |pe: PeId| {
            let key = &pes[pe.index()];
            let known = keys.iter().position(|of| key.is_some() && of == key);
            // Who takes no part is anywhere.
            let known = known.or((!tree.contains(pe)).then_some(0));
            known.unwrap_or_else(|| {
                keys.push(key.clone());
                keys.len() - 1
            })
        };
        let of: Vec<usize> = tree.ids().map(&mut place).collect();
        let each = keys.iter().map(|key| costs_of(key.as_ref(), encrypted));
        let (machines, sources) = each.unzip();
        HostCosts {
            hosts: Hosts::new(machines, of, tree),
            keys,
            sources,
        }
    }

    /// Where they come from, of the machine that the least is known of.
    pub fn source(&self) -> CostSource {
        let sources = self.sources.iter().copied();
        sources
            .reduce(CostSource::less_sure)
            .unwrap_or(CostSource::Assumed)
    }
}

/// What a machine costs, as far as this process knows, and where from.
fn costs_of(key: Option<&Key>, encrypted: bool) -> (Host, CostSource) {
    let host = Host {
        shared_cores: key.map(Key::cores),
        ..assumed(encrypted)
    };
    match key.and_then(known) {
        Some((learned, source)) => (host.with_costs(learned.costs), source),
        None => (host, CostSource::Assumed),
    }
}

/// What this process knows of each machine. It stays so until the process ends: no prediction of a
/// command comes from the rounds that it is compared with.
static KNOWN: Mutex<BTreeMap<Key, (Learned<COSTS>, CostSource)>> = Mutex::new(BTreeMap::new());

fn all_known() -> MutexGuard<'static, BTreeMap<Key, (Learned<COSTS>, CostSource)>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of a machine, and where from.
pub fn known(key: &Key) -> Option<(Learned<COSTS>, CostSource)> {
    let mut all = all_known();
    if !all.contains_key(key) {
        let kept = CachedHost::load(&cache::folder()?, key)?;
        let learned = kept.learned()?;
        let (rounds, age) = (learned.rounds, kept.age());
        all.insert(key.clone(), (learned, CostSource::Cached { rounds, age }));
    }
    all.get(key).cloned()
}

/// Takes what `flitcast calibrate --host` said on a machine, and keeps it for the commands that
/// follow.
pub fn take_measured(key: &Key, said: &str) {
    let learned = CachedHost::parse(said).and_then(|kept| kept.learned());
    let Some(learned) = learned else {
        tracing::info!("a host could not be measured");
        return;
    };
    if let Some(folder) = cache::folder() {
        CachedHost::new(key.clone(), &learned, None).store(&folder);
    }
    all_known().insert(key.clone(), (learned, CostSource::Measured));
}

/// Whether a site's PEs are processes of this machine.
pub fn is_here(site: &Site) -> bool {
    !site.placement.is_spread()
}

/// What the processes of a site that is not up cost, as far as this process knows. What lies over a
/// network may be anything.
pub fn expected(site: &Site) -> Hosts {
    let encrypted = site.guard.is_encrypted();
    let key = is_here(site).then(|| Key::here(encrypted)).flatten();
    Hosts::one(costs_of(key.as_ref(), encrypted).0)
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

/// A host like this one with these costs.
pub fn host_here(costs: &[f64; COSTS]) -> Host {
    let host = Host {
        shared_cores: cores(),
        ..assumed_host()
    };
    host.with_costs(*costs)
}

/// What is assumed of a machine, and how it is learned.
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

/// Learns what processes of a machine cost from a lesson of their rounds, and keeps it for the
/// commands that follow.
pub fn learn(key: &Key, lesson: &Lesson, encrypted: bool, predict: &Predict<'_, COSTS>) {
    let Some(folder) = cache::folder() else {
        return;
    };
    // As another command may have left it by now.
    let before = CachedHost::load(&folder, key);
    let learned = before.as_ref().and_then(CachedHost::learned);
    let prior = prior(encrypted);
    let learned = learned.unwrap_or_else(|| Learned::assumed(&prior));
    let learned = learned.after(std::slice::from_ref(lesson), &prior, predict);
    CachedHost::new(key.clone(), &learned, before.as_ref()).store(&folder);
}

/// Keeps what was measured anew, and what a command that asked for it is told.
pub fn keep_measured(learned: &Learned<COSTS>, encrypted: bool) -> Option<String> {
    let kept = CachedHost::new(Key::here(encrypted)?, learned, None);
    if let Some(folder) = cache::folder() {
        kept.store(&folder);
    }
    Some(kept.text())
}
