//! The costs of processes on each machine: measured when a command first uses the machine (by a
//! separate process of a PE there, `flitcast calibrate --host`), stored in a cache, and corrected after
//! every round.
//!
//! `flitcast_plan::calibration::cost_estimate` contains the filter that learns.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flitcast_node::system::process::cores;
use flitcast_plan::calibration::cost_estimate::{CostEstimate, Observation, Predict};
use flitcast_plan::cost::{COSTS, Host, Hosts};
use flitcast_proto::{PeId, Tree};

use crate::job::model::{assumed, assumed_host};
use crate::job::site::Site;

mod cache;
pub mod files;

use cache::CachedHost;
pub use cache::Key;

/// The source of an estimate of a host's costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CostSource {
    /// A measurement for this command.
    Measured,
    Cached {
        /// The number of rounds that it was learned from.
        rounds: u64,
        /// The time since the first of them.
        age: Duration,
    },
    Profile,
    /// An assumption, because no PE could measure it.
    Assumed,
}

impl CostSource {
    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            CostSource::Measured => "measured",
            CostSource::Cached { .. } => "cached",
            CostSource::Profile => "profile",
            CostSource::Assumed => "assumed",
        }
    }

    /// Returns the less certain of two sources of costs that are used together, which is the one to
    /// report: assumptions first, then the one learned from the fewest rounds.
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

/// The costs of processes on the machines of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCosts {
    /// The costs, and the machine of each PE.
    pub hosts: Hosts,
    /// The key of each machine; `None` if it is unknown.
    pub keys: Vec<Option<Key>>,
    sources: Vec<CostSource>,
}

impl HostCosts {
    pub fn one(host: Host, source: CostSource) -> HostCosts {
        HostCosts {
            hosts: Hosts::one(host),
            keys: vec![None],
            sources: vec![source],
        }
    }

    /// Returns the costs of PEs on these machines, by PE index; a PE without a key has its own machine.
    /// Costs that were never measured are assumed.
    pub fn of(pes: &[Option<Key>], tree: &Tree, encrypted: bool) -> HostCosts {
        let mut keys: Vec<Option<Key>> = Vec::new();
        let mut place = |pe: PeId| {
            let key = &pes[pe.index()];
            let known = keys.iter().position(|of| key.is_some() && of == key);
            // The machine of a PE that does not take part has no effect.
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

    /// Returns the least certain source of all machines.
    pub fn source(&self) -> CostSource {
        let sources = self.sources.iter().copied();
        sources
            .reduce(CostSource::less_sure)
            .unwrap_or(CostSource::Assumed)
    }
}

/// Returns the known costs of a machine, and their source.
fn costs_of(key: Option<&Key>, encrypted: bool) -> (Host, CostSource) {
    let host = Host {
        shared_cores: key.map(|key| key.cores),
        ..assumed(encrypted)
    };
    match key.and_then(known) {
        Some((learned, source)) => (host.with_costs(learned.costs), source),
        None => (host, CostSource::Assumed),
    }
}

/// The known costs of each machine. They do not change until the process ends, so that no prediction of
/// a command is based on the rounds that it is compared with.
static KNOWN: Mutex<BTreeMap<Key, (CostEstimate<COSTS>, CostSource)>> = Mutex::new(BTreeMap::new());

fn all_known() -> MutexGuard<'static, BTreeMap<Key, (CostEstimate<COSTS>, CostSource)>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the known costs of a machine, and their source.
pub fn known(key: &Key) -> Option<(CostEstimate<COSTS>, CostSource)> {
    let mut all = all_known();
    if !all.contains_key(key) {
        let kept = CachedHost::load(&cache::folder()?, key)?;
        let learned = kept.now()?;
        let (rounds, age) = (learned.rounds, kept.age());
        all.insert(key.clone(), (learned, CostSource::Cached { rounds, age }));
    }
    all.get(key).cloned()
}

/// Takes the output of `flitcast calibrate --host` on a machine, and stores it for later commands.
pub fn take_measured(key: &Key, output: &str) {
    let learned = CachedHost::parse(output).and_then(|kept| kept.learned());
    let Some(learned) = learned else {
        tracing::info!("a host could not be measured");
        return;
    };
    if let Some(folder) = cache::folder() {
        CachedHost::new(key.clone(), &learned).store(&folder);
    }
    all_known().insert(key.clone(), (learned, CostSource::Measured));
}

/// Returns the known costs of the processes of a site that does not run yet. The costs of other hosts
/// are assumed.
pub fn expected(site: &Site) -> Hosts {
    let encrypted = site.guard.is_encrypted();
    let key = is_here(site).then(|| Key::here(encrypted)).flatten();
    Hosts::one(costs_of(key.as_ref(), encrypted).0)
}

/// Returns a prediction in the form in which rounds are compared: the arrival of the last byte, and the
/// geometric mean of the messages' arrivals.
pub fn comparable_arrivals(arrivals_ns: &[Option<u64>]) -> Option<Vec<f64>> {
    let arrivals = arrivals_ns.iter().copied().flatten();
    let last = arrivals.clone().max()?;
    Some(vec![last as f64, geometric_mean(arrivals)?])
}

/// Returns the geometric mean, or `None` for no values.
pub fn geometric_mean(all: impl Iterator<Item = u64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for ns in all {
        sum += (ns.max(1) as f64).ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

/// Learns the costs of processes of a machine from an observation of their rounds, and stores them for
/// later commands.
pub fn learn(key: &Key, lesson: Observation, predict: &Predict<'_, COSTS>) {
    if let Some(folder) = cache::folder() {
        // Another command may have updated the stored estimate since.
        let before = CachedHost::load(&folder, key);
        CachedHost::after(key.clone(), before.as_ref(), lesson, predict).store(&folder);
    }
}

/// Stores a new measurement, and returns the text for a command that requested it.
pub fn keep_measured(learned: &CostEstimate<COSTS>, encrypted: bool) -> Option<String> {
    let kept = CachedHost::new(Key::here(encrypted)?, learned);
    if let Some(folder) = cache::folder() {
        kept.store(&folder);
    }
    Some(kept.text())
}

/// Returns a host like this one with these costs.
pub fn host_here(costs: &[f64; COSTS]) -> Host {
    let host = Host {
        shared_cores: cores(),
        ..assumed_host()
    };
    host.with_costs(*costs)
}

/// Returns whether a site's PEs are processes of this machine.
pub fn is_here(site: &Site) -> bool {
    !site.placement.is_spread()
}
