//! What processes cost on this machine, and where those numbers come from: measured when a
//! command is first used on it (`flitcast calibrate --host`, which a command has done by a
//! process of its own), kept in a cache, and corrected by what every round takes. Hosts over a
//! network are still assumed to cost what is usual.
//!
//! The filter that learns is `flitcast_proto::calibration::learned`.

mod cache;

use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use flitcast_proto::calibration::edges_from_measurements;
use flitcast_proto::calibration::learned::{Learned, Lesson};
use flitcast_proto::cost::Host;
use flitcast_proto::predict::predict;
use flitcast_proto::wire::control::Payload;
use tokio::process::Command;

use crate::model::{assumed_host, model_of};
use crate::outcome::Outcome;
use crate::request::Request;
use cache::{Kept, Key};

/// For measuring a host before its first round, which takes a tenth of a second: then it is
/// assumed to be as usual.
const LONGEST: Duration = Duration::from_secs(2);
/// How unsure the median of many rounds is, as a part of it: what the model does not know, about
/// what the best costs for 114 kinds of rounds leave.
const OFF_ALWAYS: f64 = 0.15;
/// How unsure a single round is besides.
const OFF_ONCE: f64 = 0.2;
/// A prediction of more flits on edges, some two milliseconds' work, is not worth being made
/// some thirty times to learn from it.
const MOST_FLITS: u64 = 4096;

/// Where what is known of a host comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
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

impl Source {
    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            Source::Measured => "measured",
            Source::Cached { .. } => "cached",
            Source::Profile => "profile",
            Source::Assumed => "assumed",
        }
    }
}

/// A host's costs, and where they come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostCosts {
    /// The costs.
    pub host: Host,
    /// Where they come from.
    pub source: Source,
}

/// What this process knows, with plain connections and with encrypted ones. It stays so until the
/// process ends: no prediction of a command comes from the rounds that it is compared with.
static KNOWN: [Mutex<Option<(Learned, Source)>>; 2] = [Mutex::new(None), Mutex::new(None)];

fn known(encrypted: bool) -> Option<(Learned, Source)> {
    let mut known = KNOWN[usize::from(encrypted)]
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if known.is_none() {
        let kept = Key::here(encrypted).zip(cache::folder());
        let kept = kept.and_then(|(key, folder)| Kept::load(&folder, &key));
        *known = kept.map(|kept| {
            let learned = kept.learned();
            let (rounds, age) = (learned.rounds, kept.age());
            (learned, Source::Cached { rounds, age })
        });
    }
    known.clone()
}

/// Whether a request's PEs are processes of this machine that cost what is learned of it.
fn is_here(request: &Request) -> bool {
    !request.placement.is_spread()
}

/// What the processes of a request cost, as far as this process knows.
pub fn of(request: &Request) -> HostCosts {
    let encrypted = request.guard.is_encrypted();
    let known = is_here(request).then(|| known(encrypted)).flatten();
    let (host, source) = match known {
        Some((learned, source)) => (learned.host, source),
        None => (assumed(encrypted), Source::Assumed),
    };
    HostCosts { host, source }
}

/// What is assumed of a host.
pub fn assumed(encrypted: bool) -> Host {
    let mut host = assumed_host();
    if encrypted {
        host.send_ns_per_byte += crate::model::CRYPTO_NS_PER_BYTE;
        host.receive_ns_per_byte += crate::model::CRYPTO_NS_PER_BYTE;
    }
    host
}

/// Has this machine measured if a request needs that, and nobody has done it yet.
pub async fn ensure(request: &Request) {
    let encrypted = request.guard.is_encrypted();
    let needed = is_here(request) && request.profile.is_none() && request.tree.count() > 1;
    if !needed || known(encrypted).is_some() {
        return;
    }
    let Some(key) = Key::here(encrypted) else {
        return;
    };
    match tokio::time::timeout(LONGEST, measured_by_a_process(encrypted)).await {
        Ok(Ok(said)) => match Kept::parse(&said, &key) {
            Some(kept) => {
                let mut known = KNOWN[usize::from(encrypted)]
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                *known = Some((kept.learned(), Source::Measured));
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

/// What rounds of one kind tell: when their last byte arrived, and when their messages did in the
/// geometric mean.
pub fn lesson(outcome: &Outcome) -> Option<Lesson> {
    let measured = outcome.measured?;
    let arrivals = outcome.pes.iter().filter_map(|pe| pe.measured);
    let rounds = outcome.rounds_ns.len().max(1) as f64;
    Some(Lesson {
        times_ns: vec![
            measured.median as f64,
            geometric_mean(arrivals.map(|spread| spread.median))?,
        ],
        deviation: (OFF_ALWAYS * OFF_ALWAYS + OFF_ONCE * OFF_ONCE / rounds).sqrt(),
        rounds: outcome.rounds_ns.len() as u64,
    })
}

/// The same of a prediction.
fn foreseen(arrivals_ns: &[Option<u64>]) -> Option<Vec<f64>> {
    let arrivals = arrivals_ns.iter().copied().flatten();
    let last = arrivals.clone().max()?;
    Some(vec![last as f64, geometric_mean(arrivals)?])
}

/// The same of rounds that were run, on a host that costs so much: by the schedule that they were
/// run by, which came of what was known then. PEs that were told to wait have waited.
pub fn would_take(request: &Request, outcome: &Outcome, host: &Host) -> Option<Vec<f64>> {
    let edges = edges_from_measurements(&outcome.rounds.measured.edges, host);
    let model = model_of(edges, *host, request);
    let prediction = predict(&request.tree, &outcome.rounds.briefs, &model);
    foreseen(&prediction.ok()?.arrivals_ns)
}

fn geometric_mean(all: impl Iterator<Item = u64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for ns in all {
        sum += (ns.max(1) as f64).ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

/// Learns from rounds of this machine. Those with files are passed over: their disks are in
/// what they take, and not in the model; those on shaped links tell of the links.
pub fn learn(request: &Request, outcome: &Outcome) {
    let tells = is_here(request)
        && matches!(request.payload, Payload::Synthetic { .. })
        && !request.is_shaped()
        && request.profile.is_none()
        && flits_on_edges(request, outcome) <= MOST_FLITS;
    let Some(lesson) = lesson(outcome).filter(|_| tells) else {
        return;
    };
    let encrypted = request.guard.is_encrypted();
    let (Some(key), Some(folder)) = (Key::here(encrypted), cache::folder()) else {
        return;
    };
    let predict = |host: &Host, _: usize| would_take(request, outcome, host);
    // As another command may have left it by now.
    let before = Kept::load(&folder, &key);
    let learned = before
        .as_ref()
        .map_or_else(|| Learned::assumed(assumed(encrypted)), Kept::learned);
    let learned = learned.after(&[lesson], &assumed(encrypted), &predict);
    Kept::new(key, &learned, before.as_ref()).store(&folder);
}

/// Over all messages: their flits, times the edges that they cross.
fn flits_on_edges(request: &Request, outcome: &Outcome) -> u64 {
    let flit_bytes = u64::from(request.flit_bytes);
    let flits = outcome.pes.iter().map(|pe| {
        let edges = request.tree.depth(pe.pe);
        pe.bytes.div_ceil(flit_bytes) * u64::from(edges)
    });
    flits.sum()
}

/// Keeps what was measured anew, and what a command that asked for it is told.
pub fn keep_measured(learned: &Learned, encrypted: bool) -> Option<String> {
    let kept = Kept::new(Key::here(encrypted)?, learned, None);
    if let Some(folder) = cache::folder() {
        kept.store(&folder);
    }
    Some(kept.text())
}
