//! From a launched cluster to a finished set of rounds: assign, measure, predict,
//! trigger, collect. When something fails, finds out what failed first and what
//! came of the messages.

mod measure;

use std::net::SocketAddr;
use std::time::Duration;

use flitcast_proto::calibration::fit::FitError;
use flitcast_proto::pe::Brief;
use flitcast_proto::predict::Prediction;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::control::{Assignment, FromPe, Payload, Prepare, Report, ToPe};
use flitcast_proto::wire::{WireError, negotiate};
use flitcast_proto::{PeId, RoundId};
use thiserror::Error;
use tokio::time::Instant;

use crate::cluster::{Cluster, DEATH_NOTICE, Heard, how, names};
use crate::console::Console;
use crate::model::{Measurement, foresee, measured_model};
use crate::outcome::{Failure, Lacking};
use crate::pictures::{MeasuredRound, Recording};
use crate::request::Request;

/// For the PEs to read their input and to connect: most of it is walking a large
/// input, a million files in a minute or two on a slow disk.
const READY: Duration = Duration::from_secs(300);
/// What measuring an edge takes before a round that was not calibrated for: a command
/// should begin at once.
const SHORT_PROBE: Duration = Duration::from_millis(8);
/// And all edges together.
const SHORT_PROBES: Duration = Duration::from_secs(1);
/// For a word to go to a PE and back.
const ANSWER: Duration = Duration::from_secs(10);
/// After a failure, for the survivors to undo what is half done and tell what
/// arrived.
const LAST_REPORTS: Duration = Duration::from_secs(2);

/// All that was planned and measured.
#[derive(Debug)]
pub struct Rounds {
    /// Bytes of M_i, by PE index; `[0]` is 0.
    pub bytes: Vec<u64>,
    /// The edges and the clocks, the latter as sure as they were after the last round.
    pub measured: Measurement,
    /// How orders were obeyed; `None` where there are none.
    pub pacing: Option<Pacing>,
    /// What a round was expected to take.
    pub prediction: Prediction,
    /// How long measuring the edges took; `None` where a profile stands for that.
    pub probing: Option<Duration>,
    /// Per round, each PE's report, by PE index; without its spans.
    pub reports: Vec<Vec<Report>>,
    /// The spans of the median round, if spans were asked for.
    pub recorded: Option<MeasuredRound>,
}

/// What went wrong first, and with whom.
#[derive(Debug, Error)]
enum Trouble {
    #[error("{0} {1}{2}")]
    Died(PeId, String, String),
    #[error("{0}: {1}")]
    Fault(PeId, String),
    #[error("{0} {1}")]
    Vanished(PeId, String),
    #[error("no word from {} within {} s, {doing}", names(.silent), limit.as_secs())]
    Silent {
        silent: Vec<PeId>,
        limit: Duration,
        doing: &'static str,
    },
    #[error("{0}: {1}")]
    Incompatible(PeId, WireError),
    #[error("the schedule contradicts itself: {0}")]
    Schedule(#[from] flitcast_proto::pe::Violation),
    #[error("{0} said {1} out of turn")]
    OutOfTurn(PeId, String),
    #[error("{0} says it listens on `{1}`, which is no address and port")]
    NoPort(PeId, String),
    #[error("the edge to {0} could not be measured: {1}")]
    Unmeasured(PeId, FitError),
    #[error("the clock of {0} could not be compared with its parent's")]
    Timeless(PeId),
}

impl Trouble {
    fn pe(&self) -> Option<PeId> {
        match self {
            Trouble::Died(pe, ..)
            | Trouble::Fault(pe, _)
            | Trouble::Vanished(pe, _)
            | Trouble::Incompatible(pe, _)
            | Trouble::OutOfTurn(pe, _)
            | Trouble::NoPort(pe, _)
            | Trouble::Unmeasured(pe, _)
            | Trouble::Timeless(pe) => Some(*pe),
            Trouble::Silent { silent, .. } => silent.first().copied(),
            Trouble::Schedule(_) => None,
        }
    }
}

/// Conducts all rounds of a request on a cluster.
pub async fn conduct(
    cluster: &mut Cluster,
    request: &Request,
    console: &Console,
) -> Result<Rounds, Failure> {
    let mut conductor = Conductor::new(cluster, request, console);
    match conductor.rounds().await {
        Ok(rounds) => Ok(rounds),
        Err(trouble) => Err(conductor.give_up(trouble).await),
    }
}

/// Measures the edges and the clocks of a cluster, and no more; `budget` is for each
/// edge.
pub async fn measure(
    cluster: &mut Cluster,
    request: &Request,
    console: &Console,
    budget: Duration,
) -> Result<Measurement, Failure> {
    let mut conductor = Conductor::new(cluster, request, console);
    let measured = async {
        conductor.assign().await?;
        conductor.measure_well(budget).await
    };
    match measured.await {
        Ok(measured) => Ok(measured),
        Err(trouble) => Err(conductor.give_up(trouble).await),
    }
}

struct Conductor<'a> {
    cluster: &'a mut Cluster,
    request: &'a Request,
    console: &'a Console,
    bytes: Vec<u64>,
    /// The round under way; 0 before the first.
    round: RoundId,
    /// The latest report of each PE on that round.
    last_reports: Vec<Option<Report>>,
}

impl<'a> Conductor<'a> {
    fn new(cluster: &'a mut Cluster, request: &'a Request, console: &'a Console) -> Self {
        Conductor {
            cluster,
            request,
            console,
            bytes: Vec::new(),
            round: RoundId(0),
            last_reports: vec![None; request.tree.len()],
        }
    }

    async fn rounds(&mut self) -> Result<Rounds, Trouble> {
        self.bytes = self.assign().await?;
        let began = Instant::now();
        let (mut measured, model, probing) = match &self.request.profile {
            Some(profile) => {
                // An edge stays what it is; clocks drift.
                let clocks = self.clocks().await?;
                let edges = profile.edges.clone();
                let fits = Vec::new();
                let measured = Measurement {
                    edges,
                    clocks,
                    fits,
                };
                (measured, profile.model(), None)
            }
            None => {
                let edges = self.request.tree.len() as u32;
                let measured = self.measure(SHORT_PROBE.min(SHORT_PROBES / edges)).await?;
                let model = measured_model(&measured.edges, self.request);
                (measured, model, Some(began.elapsed()))
            }
        };
        let measured_at = Instant::now();
        let Request {
            tree,
            operation,
            flit_bytes,
            pacing,
            ..
        } = self.request;
        let measured_best = self.request.profile.as_ref().map(|profile| profile.pacing);
        let pacing = pacing
            .or(measured_best)
            .unwrap_or(self.request.usual_pacing());
        let bytes = &self.bytes;
        let foreseen = foresee(tree, *operation, pacing, bytes, *flit_bytes, &model);
        let (briefs, prediction) = foreseen?;
        self.prepare(briefs).await?;
        let mut reports = Vec::new();
        let mut recording = Recording::default();
        for id in (1..=self.request.rounds).map(RoundId) {
            let mut round = self.round(id, &prediction).await?;
            if self.request.pictures.wanted() {
                recording.keep(&mut round);
            }
            reports.push(round);
        }
        let age_ns = measured_at.elapsed().as_nanos() as u64;
        for clock in &mut measured.clocks {
            *clock = clock.aged(age_ns);
        }
        Ok(Rounds {
            bytes: self.bytes.clone(),
            measured,
            pacing: operation.gives_orders().then_some(pacing),
            prediction,
            probing,
            reports,
            recorded: recording.median_round(),
        })
    }

    /// Tells every PE its place and what to do; the lengths of all messages.
    async fn assign(&mut self) -> Result<Vec<u64>, Trouble> {
        let tree = &self.request.tree;
        for pe in tree.pes() {
            let Some(register) = self.cluster.register(pe) else {
                continue;
            };
            let version = negotiate(register.min_version, register.max_version)
                .map_err(|error| Trouble::Incompatible(pe, error))?;
            let assignment = Assignment {
                version,
                tree: tree.clone(),
                parent_listen: self.parent_listen(pe)?,
                operation: self.request.operation,
                flit_bytes: self.request.flit_bytes,
                payload: self.request.payload.clone(),
                links: self.request.links_of(pe),
                record_spans: self.request.pictures.wanted(),
            };
            self.cluster.say(pe, ToPe::Assignment(assignment)).await;
        }
        let mut bytes = vec![0; tree.len()];
        let scatter = self.request.operation.is_scatter();
        let n = bytes.len() - 1;
        self.each_says(
            READY,
            "reading the input and connecting",
            |pe, word| match word {
                FromPe::Ready { message_bytes } => {
                    match (scatter, pe == PeId::ROOT) {
                        (true, true) if message_bytes.len() == n => {
                            bytes[1..].copy_from_slice(&message_bytes);
                        }
                        (false, false) if message_bytes.len() == 1 => {
                            bytes[pe.index()] = message_bytes[0];
                        }
                        _ if message_bytes.is_empty() => {}
                        _ => return Err(FromPe::Ready { message_bytes }),
                    }
                    Ok(())
                }
                other => Err(other),
            },
        )
        .await?;
        Ok(bytes)
    }

    /// Where a PE reaches its parent: at the address that the placement gives, and the
    /// port that the parent has got.
    fn parent_listen(&self, pe: PeId) -> Result<Option<String>, Trouble> {
        let Some(parent) = self.request.tree.parent(pe) else {
            return Ok(None);
        };
        let Some(register) = self.cluster.register(parent) else {
            return Ok(None);
        };
        let listen: SocketAddr = register
            .listen
            .parse()
            .map_err(|_| Trouble::NoPort(parent, register.listen.chars().take(100).collect()))?;
        let address = self.request.placement.parent_address(pe, parent);
        Ok(Some(SocketAddr::new(address, listen.port()).to_string()))
    }

    /// Tells every PE what the rounds need to know: the very briefs that were predicted.
    async fn prepare(&mut self, briefs: Vec<Brief>) -> Result<(), Trouble> {
        let (scatters, bytes) = (self.request.operation.is_scatter(), &self.bytes);
        let prepare = |(pe, brief): (PeId, Brief)| Prepare {
            lengths: match pe == PeId::ROOT {
                true => bytes[1..].to_vec(),
                false => Vec::new(),
            },
            own_bytes: bytes[pe.index()],
            subtree_messages: brief.subtree_messages,
            child_messages: brief.child_messages,
            rounds: self.request.rounds,
            order: match scatters {
                true => brief
                    .sends
                    .iter()
                    .map(|message| message.destination)
                    .collect(),
                false => Vec::new(),
            },
            pace: brief.pace,
        };
        let prepares: Vec<Prepare> = self.request.tree.pes().zip(briefs).map(prepare).collect();
        for (pe, prepare) in self.request.tree.pes().zip(prepares) {
            self.cluster.say(pe, ToPe::Prepare(prepare)).await;
        }
        self.each_says(ANSWER, "preparing the rounds", |_, word| match word {
            FromPe::Prepared => Ok(()),
            other => Err(other),
        })
        .await
    }

    async fn round(
        &mut self,
        id: RoundId,
        prediction: &Prediction,
    ) -> Result<Vec<Report>, Trouble> {
        self.round = id;
        self.last_reports.fill(None);
        let what = if self.request.operation.is_scatter() {
            "scatter"
        } else {
            "gather"
        };
        let name = match self.request.rounds {
            1 => what.to_owned(),
            rounds => format!("{what} by {} {id}/{rounds}", self.request.algorithm),
        };
        self.console.begin(name, self.bytes.iter().sum());
        let predicted_ns = prediction.round_ns();
        let began = Instant::now();
        self.cluster
            .say(PeId::ROOT, ToPe::Trigger { round: id })
            .await;
        tracing::info!(round = %id, "triggered");
        // A round has no deadline of its own: it takes what its links take.
        while self.last_reports[0].is_none() {
            match self.next_word(None).await? {
                Some((PeId::ROOT, FromPe::Progress { bytes, .. })) => {
                    self.console.moved(bytes, began.elapsed(), predicted_ns);
                }
                Some((PeId::ROOT, FromPe::Report(_))) | None => {}
                Some((pe, other)) => return Err(out_of_turn(pe, &other)),
            }
        }
        for pe in self.cluster.pes().skip(1) {
            self.cluster.say(pe, ToPe::Collect { round: id }).await;
        }
        let deadline = Instant::now() + ANSWER;
        while self.last_reports.iter().any(Option::is_none) {
            match self.next_word(Some(deadline)).await? {
                Some((_, FromPe::Report(_) | FromPe::Progress { .. })) => {}
                Some((pe, other)) => return Err(out_of_turn(pe, &other)),
                None => {
                    let silent = self.cluster.pes();
                    let silent = silent.filter(|pe| self.last_reports[pe.index()].is_none());
                    return Err(Trouble::Silent {
                        silent: silent.collect(),
                        limit: ANSWER,
                        doing: "reporting the round",
                    });
                }
            }
        }
        Ok(self.last_reports.iter().flatten().cloned().collect())
    }

    /// One word of a certain kind from every PE; `take` returns what it is not.
    async fn each_says(
        &mut self,
        limit: Duration,
        doing: &'static str,
        mut take: impl FnMut(PeId, FromPe) -> Result<(), FromPe>,
    ) -> Result<(), Trouble> {
        let deadline = Instant::now() + limit;
        let mut silent: Vec<PeId> = self.cluster.pes().collect();
        while !silent.is_empty() {
            let Some((pe, word)) = self.next_word(Some(deadline)).await? else {
                return Err(Trouble::Silent {
                    silent,
                    limit,
                    doing,
                });
            };
            take(pe, word).map_err(|word| out_of_turn(pe, &word))?;
            silent.retain(|&waited_for| waited_for != pe);
        }
        Ok(())
    }

    /// The next word of any PE, `None` at the deadline; trouble if there is any.
    async fn next_word(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<(PeId, FromPe)>, Trouble> {
        match self.cluster.hear(deadline).await {
            None => Ok(None),
            Some((pe, Heard::Word(FromPe::Fault { reason, peer, .. }))) => {
                Err(self.first_cause(Trouble::Fault(pe, reason), peer).await)
            }
            Some((pe, Heard::Word(word))) => {
                self.note(pe, &word);
                Ok(Some((pe, word)))
            }
            Some((pe, Heard::ChannelEnded(error))) => {
                let how = error.map_or("closed its channel without a word".to_owned(), |error| {
                    format!("cannot be understood any more: {error}")
                });
                Err(self.first_cause(Trouble::Vanished(pe, how), Some(pe)).await)
            }
            Some((pe, Heard::Exited(status, last_words))) => Err(died(pe, status, last_words)),
        }
    }

    fn note(&mut self, pe: PeId, word: &FromPe) {
        if let FromPe::Report(report) = word
            && report.round == self.round
        {
            self.last_reports[pe.index()] = Some(report.clone());
        }
    }

    /// A neighbour often notices a death before the operating system tells of it:
    /// waits a moment for a better cause than `seen`.
    async fn first_cause(&mut self, seen: Trouble, suspect: Option<PeId>) -> Trouble {
        if suspect.is_none() {
            return seen;
        }
        let deadline = Instant::now() + DEATH_NOTICE;
        while let Some((pe, heard)) = self.cluster.hear(Some(deadline)).await {
            match heard {
                Heard::Exited(status, last_words) => return died(pe, status, last_words),
                Heard::Word(word) => self.note(pe, &word),
                Heard::ChannelEnded(_) => {}
            }
        }
        seen
    }

    /// Ends the round everywhere and finds out what arrived.
    async fn give_up(&mut self, trouble: Trouble) -> Failure {
        let cause = trouble.to_string();
        tracing::info!(%cause, "giving up");
        let reason = cause.clone();
        self.cluster
            .say_to_all(&ToPe::Abort {
                round: self.round,
                reason,
            })
            .await;
        let started = self.round > RoundId(0);
        let deadline = Instant::now() + LAST_REPORTS;
        let waited_for = |this: &Self, pe: PeId| {
            this.cluster.is_alive(pe) && this.last_reports[pe.index()].is_none()
        };
        while started && self.cluster.pes().any(|pe| waited_for(self, pe)) {
            match self.cluster.hear(Some(deadline)).await {
                Some((pe, Heard::Word(word))) => self.note(pe, &word),
                Some(_) => {}
                None => break,
            }
        }
        let mut delivered = Vec::new();
        let mut lacking = Vec::new();
        for pe in self.cluster.pes().skip(1).filter(|_| started) {
            let bytes = self.bytes[pe.index()];
            let arrival = self.arrival_of(pe);
            match arrival {
                _ if bytes == 0 => {}
                Some((_, true)) => delivered.push(pe),
                Some((received, false)) => lacking.push(Lacking {
                    pe,
                    bytes,
                    received: Some(received),
                }),
                None => lacking.push(Lacking {
                    pe,
                    bytes,
                    received: None,
                }),
            }
        }
        Failure {
            cause,
            pe: trouble.pe(),
            pid: trouble.pe().map(|pe| self.cluster.pid(pe)),
            host: trouble
                .pe()
                .and_then(|pe| self.request.placement.places[pe.index()].name.clone()),
            parent: trouble.pe().and_then(|pe| self.request.tree.parent(pe)),
            round: started.then_some(self.round),
            scatter: self.request.operation.is_scatter(),
            keeps_files: matches!(self.request.payload, Payload::Files { .. }),
            delivered,
            lacking,
        }
    }

    /// Bytes of M_i that came, and whether it was delivered; `None` if nobody can
    /// tell any more.
    fn arrival_of(&self, pe: PeId) -> Option<(u64, bool)> {
        let at = if self.request.operation.is_scatter() {
            pe
        } else {
            PeId::ROOT
        };
        let report = self.last_reports[at.index()].as_ref()?;
        let mut arrivals = report.arrivals.iter();
        let arrival = arrivals.find(|a| a.source.max(a.destination) == pe)?;
        Some((arrival.bytes_received, arrival.delivered))
    }
}

fn died(pe: PeId, status: std::process::ExitStatus, last_words: Vec<String>) -> Trouble {
    let said = match last_words.is_empty() {
        true => String::new(),
        false => format!("; its last words: {}", last_words.join(" / ")),
    };
    Trouble::Died(pe, how(status), said)
}

fn out_of_turn(pe: PeId, word: &FromPe) -> Trouble {
    Trouble::OutOfTurn(pe, format!("{word:?}").chars().take(100).collect())
}
