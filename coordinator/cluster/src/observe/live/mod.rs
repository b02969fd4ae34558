//! The current state of this process's cluster and its counters since the process started. The
//! conducting code writes them; the file for `flitcast watch` and the metrics page read them.
//!
//! The state is global ([`NOW`]), like the log: a process conducts one round at a time, and
//! observers outside identify it by its process id only.

pub mod publish;
pub mod snapshot;
mod totals;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flitcast_plan::Algorithm;
use flitcast_proto::wire::control::{Counts, Doing};
use flitcast_proto::{PeId, RoundId, Tree};
use snapshot::{PePicture, Snapshot};
use totals::EdgeRates;

use crate::job::request::Request;
use crate::observe::console::left_ns;
use crate::observe::event::{Event, MapEvent, ShardCounts};
use crate::observe::phase::Phase;
use crate::site::placement::Place;
use crate::system::process;
use crate::text::figures::first_names;
pub use totals::{BOUNDS_S, Histogram, RoundEnd, RoundKind, Totals};

/// The state of this process.
pub static NOW: LazyLock<Live> = LazyLock::new(Live::default);

/// Time without an answer after which a PE is shown as silent. PEs are pinged every heartbeat,
/// twice a second unless `--timeouts` changes that.
const SILENT: Duration = Duration::from_millis(1500);

/// The state of a process that conducts rounds.
#[derive(Debug, Default)]
pub struct Live(Mutex<LiveState>);

#[derive(Debug, Default)]
struct LiveState {
    /// The present cluster; `None` before the first.
    cluster: Option<LiveCluster>,
    /// The cluster that runs the commands of a map, while another one moves a shard.
    map: Option<LiveCluster>,
    /// Totals over all clusters, without the counters of the PEs of the present cluster.
    totals: Totals,
}

/// A cluster and its current activity.
#[derive(Debug)]
struct LiveCluster {
    kind: RoundKind,
    name: String,
    tree: Arc<Tree>,
    pes: BTreeMap<PeId, PeStatus>,
    rounds: u64,
    phase: Phase,
    round: RoundId,
    operation: Algorithm,
    /// Lengths by delivery, once they are known.
    bytes: Vec<u64>,
    under_way: Option<RunningRound>,
    /// The shards of a map while commands run.
    shards: Option<ShardCounts>,
}

#[derive(Clone, Copy, Debug)]
struct RunningRound {
    began: Instant,
    predicted_ns: u64,
}

/// The latest state that a PE has reported.
#[derive(Debug)]
struct PeStatus {
    place: Place,
    pid: Option<u32>,
    last_report_at: Option<Instant>,
    doing: Doing,
    counts: Counts,
    rates: EdgeRates,
    /// The shards on which the PE runs commands.
    shards: BTreeSet<String>,
}

impl Live {
    pub fn observe(&self, event: &Event<'_>) {
        self.lock().observe(event);
    }

    /// Returns the totals, including the counters of the present cluster.
    pub fn totals(&self) -> Totals {
        let state = self.lock();
        let mut totals = state.totals.clone();
        let present = state.cluster.iter().chain(&state.map);
        totals.add(present.flat_map(LiveCluster::counts));
        totals
    }

    /// Returns a snapshot; `None` before the first cluster.
    pub fn picture(&self) -> Option<Snapshot> {
        let state = self.lock();
        let shown = state.map.as_ref().or(state.cluster.as_ref());
        shown.map(LiveCluster::picture)
    }

    fn lock(&self) -> MutexGuard<'_, LiveState> {
        // Counters stay usable if another thread panicked while it held the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveState {
    fn observe(&mut self, event: &Event<'_>) {
        match *event {
            Event::Launching(request) => self.launching(request),
            Event::Launched { pid, hosts } => self.with(|now| {
                for (pe, seen) in &mut now.pes {
                    seen.pid = pid(*pe);
                    if seen.place.address.is_unspecified() && seen.place.name.is_none() {
                        seen.place.name = hosts.get(pe).cloned();
                    }
                }
            }),
            Event::Enters(phase) => self.with(|now| now.phase = phase),
            Event::RoundBegins {
                round,
                bytes,
                predicted_ns,
            } => self.with(|now| {
                now.round = round;
                now.bytes = bytes.to_vec();
                let began = Instant::now();
                now.under_way = Some(RunningRound {
                    began,
                    predicted_ns,
                });
            }),
            Event::RoundDone => self.round_over(RoundEnd::Done),
            Event::Pong(pe, pong) => {
                self.with(|now| now.update_pe(pe, pong.doing, &pong.counts));
            }
            Event::Map(ref event) => {
                if let Some(map) = self.map.as_mut().or(self.cluster.as_mut()) {
                    map.observe(event);
                }
            }
            Event::RunEnds => self.run_ends(),
            Event::Reported(pe, counts) => self.with(|now| now.update_pe(pe, Doing::Idle, counts)),
            Event::Failed { kind, .. } => {
                self.round_over(RoundEnd::Failed);
                *self.totals.errors.entry(kind).or_default() += 1;
            }
            Event::Abandoned => self.round_over(RoundEnd::Interrupted),
            Event::Predicted { algorithm, .. } => self.with(|now| now.kind.algorithm = algorithm),
            Event::Begins { .. }
            | Event::RoundReported { .. }
            | Event::Interrupted
            | Event::Stopping
            | Event::Ends { .. } => {}
        }
    }

    fn launching(&mut self, request: &Request) {
        // The next cluster counts from 0.
        match self.cluster.take() {
            Some(map) if map.shards.is_some() => self.map = Some(map),
            Some(over) => self.totals.add(over.counts()),
            None => {}
        }
        let seen = |pe: PeId| PeStatus {
            place: request.site.placement.places[pe.index()].clone(),
            pid: None,
            last_report_at: None,
            doing: Doing::Idle,
            counts: Counts::default(),
            rates: EdgeRates::default(),
            shards: BTreeSet::new(),
        };
        self.cluster = Some(LiveCluster {
            kind: RoundKind {
                operation: request.way.operation.collective().name(),
                algorithm: request.way.algorithm(),
            },
            name: request.place(),
            tree: request.site.tree.clone(),
            pes: request.site.tree.pes().map(|pe| (pe, seen(pe))).collect(),
            rounds: request.rounds,
            phase: Phase::Launch,
            round: RoundId(0),
            operation: request.way.operation,
            bytes: request.messages.bytes.clone(),
            under_way: None,
            shards: None,
        });
    }

    /// Returns to the map whose shard has been moved, or ends the commands of a map.
    fn run_ends(&mut self) {
        if let Some(map) = self.map.take() {
            let moved = self.cluster.replace(map);
            self.totals.add(moved.iter().flat_map(LiveCluster::counts));
        } else if let Some(now) = &mut self.cluster {
            now.shards = None;
        }
    }

    fn round_over(&mut self, end: RoundEnd) {
        let Some(now) = &mut self.cluster else {
            return;
        };
        let Some(round) = now.under_way.take() else {
            return;
        };
        let totals = &mut self.totals;
        *totals.rounds.entry((now.kind, end)).or_default() += 1;
        if end == RoundEnd::Done {
            let predicted = Duration::from_nanos(round.predicted_ns);
            totals.predicted.entry(now.kind).or_default().add(predicted);
            let took = round.began.elapsed();
            totals.measured.entry(now.kind).or_default().add(took);
        }
    }

    fn with(&mut self, change: impl FnOnce(&mut LiveCluster)) {
        if let Some(now) = &mut self.cluster {
            change(now);
        }
    }
}

impl LiveCluster {
    fn observe(&mut self, event: &MapEvent<'_>) {
        match *event {
            MapEvent::Shards(shards) => self.shards = Some(shards),
            MapEvent::Pong(pe, pong) => self.update_pe(pe, pong.doing, &pong.counts),
            MapEvent::Begins(pe, shard) => {
                let seen = self.pes.get_mut(&pe);
                seen.map(|seen| seen.shards.insert(shard.to_owned()));
            }
            MapEvent::Ended(pe, shard) => {
                let seen = self.pes.get_mut(&pe);
                seen.map(|seen| seen.shards.remove(shard));
            }
        }
    }

    fn update_pe(&mut self, pe: PeId, doing: Doing, counts: &Counts) {
        let at = Instant::now();
        if let Some(seen) = self.pes.get_mut(&pe) {
            (seen.doing, seen.last_report_at) = (doing, Some(at));
            seen.rates.add(&counts.edges, at);
            seen.counts.clone_from(counts);
        }
    }

    fn counts(&self) -> impl Iterator<Item = (PeId, &Counts)> {
        let reporting = self
            .pes
            .iter()
            .filter(|(_, seen)| seen.last_report_at.is_some());
        reporting.map(|(pe, seen)| (*pe, &seen.counts))
    }

    fn picture(&self) -> Snapshot {
        let moved = match self.phase {
            Phase::Round { moved, .. } => moved,
            _ => 0,
        };
        let collective = self.operation.collective();
        let to_move = collective.moved_by_pe(&self.tree, &self.bytes);
        // The root reports its moved bytes; this is its total.
        let bytes = to_move[self.tree.root().index()];
        let elapsed = self.under_way.map(|round| round.began.elapsed());
        let predicted_ns = self.under_way.map(|round| round.predicted_ns);
        let left_ns = elapsed.zip(predicted_ns);
        let left_ns = left_ns.map(|(elapsed, ns)| self::left_ns(moved, bytes, elapsed, ns));
        let (operation, algorithm, phase) = match self.shards {
            Some(_) => ("map", "", "run"),
            None => (self.kind.operation, self.kind.algorithm, self.phase.name()),
        };
        let pes = self.pes.iter();
        let pes = pes.map(|(pe, seen)| self.pe(*pe, seen, to_move[pe.index()]));
        Snapshot {
            pid: std::process::id(),
            process_start: process::started_at(std::process::id()).unwrap_or(0),
            operation: operation.to_owned(),
            algorithm: algorithm.to_owned(),
            cluster: self.name.clone(),
            phase: phase.to_owned(),
            doing: match self.shards {
                Some(shards) => shards.to_string(),
                None => self.phase.to_string(),
            },
            round: self.round.0,
            rounds: self.rounds,
            moved_bytes: moved,
            bytes,
            elapsed_ns: elapsed.map(|elapsed| elapsed.as_nanos() as u64),
            predicted_ns,
            left_ns,
            shards: self.shards,
            pes: pes.collect(),
        }
    }

    /// Returns the snapshot of a PE that has to move `bytes` bytes in a round.
    fn pe(&self, pe: PeId, seen: &PeStatus, bytes: u64) -> PePicture {
        let counts = &seen.counts;
        let silence = seen.last_report_at.map(|at| at.elapsed());
        // A PE's report about its latest round may concern the previous round.
        let is_of_round = self.round.0 > 0 && counts.rounds_begun == self.round.0;
        let is_done = is_of_round && counts.rounds_done == self.round.0;
        let state = match silence {
            None if self.shards.is_some() && seen.pid.is_none() => "no shard".to_owned(),
            None => "not heard yet".to_owned(),
            Some(silence) if silence >= SILENT => {
                format!("silent for {:.1} s", silence.as_secs_f64())
            }
            Some(_) if !seen.shards.is_empty() => {
                format!("running {}", first_names(seen.shards.iter()))
            }
            Some(_) if is_done => "done".to_owned(),
            Some(_) => describe(seen.doing),
        };
        let parent = self.tree.parent(pe);
        PePicture {
            pe: pe.0,
            parent: parent.map(|parent| parent.0),
            name: seen.place.name.clone(),
            address: seen.place.address.to_string(),
            pid: seen.pid,
            state,
            is_done,
            heard_ms: silence.map(|silence| silence.as_millis() as u64),
            bytes,
            moved_bytes: if is_of_round { counts.moved_bytes } else { 0 },
            edge: parent.and_then(|parent| seen.rates.edge(parent)),
            buffered_flits: counts.buffered_flits,
            collisions: counts.collisions,
            resident_bytes: counts.resident_bytes,
        }
    }
}

fn describe(doing: Doing) -> String {
    match doing {
        Doing::Idle => "idle".to_owned(),
        Doing::Working => "working".to_owned(),
        Doing::Sending(to) => format!("sending to {to}"),
        Doing::Receiving(from) => format!("receiving from {from}"),
        Doing::Listening => "waiting".to_owned(),
    }
}
