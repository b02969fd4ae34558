//! From a launched cluster to a finished set of rounds: assign, measure, predict,
//! trigger, collect. When something fails, finds out what failed first and what
//! came of the messages.

mod aftermath;
mod files;
mod hearing;
mod measure;
mod trouble;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant as Moment};

use flitcast_node::blank_report;
use flitcast_node::payload::destination;
use flitcast_proto::cost::MadeOf;
use flitcast_proto::pe::Brief;
use flitcast_proto::predict::Prediction;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::control::{Assignment, FromPe, Prepare, Report, ToPe};
use flitcast_proto::wire::negotiate;
use flitcast_proto::{PeId, RoundId};
use tokio::time::Instant;

use crate::job::host_costs::files::KnownFiles;
use crate::job::host_costs::{self, HostCosts, Source};
use crate::job::model::{Measurement, foresee, measured_model};
use crate::job::request::Request;
use crate::launch::cluster::Cluster;
use crate::observe::console::Console;
use crate::observe::event::{Event, tell};
use crate::observe::phase::Phase;
use crate::rounds::outcome::Failure;
use crate::rounds::recording::{MeasuredRound, Recording};
use crate::rounds::watch::Watch;
use trouble::{Trouble, out_of_turn};

/// What measuring an edge takes before a round that was not calibrated for: a command
/// should begin at once.
const SHORT_PROBE: Duration = Duration::from_millis(8);
/// For a word to go to a PE and back.
const ANSWER: Duration = Duration::from_secs(10);

/// All that was planned and measured.
#[derive(Debug)]
pub struct Rounds {
    /// Bytes of M_i, by PE index; `[0]` is 0.
    pub bytes: Vec<u64>,
    /// Whose messages were not sent, since each was there with a receipt.
    pub found: Vec<PeId>,
    /// The edges and the clocks, the latter as sure as they were after the last round.
    pub measured: Measurement,
    /// What the processes were taken to cost.
    pub costs: HostCosts,
    /// What was known of files; `None` where there are none.
    pub files: Option<KnownFiles>,
    /// How orders were obeyed; `None` where there are none.
    pub pacing: Option<Pacing>,
    /// What each PE was told beforehand, by PE index.
    pub briefs: Vec<Brief>,
    /// What a round was expected to take.
    pub prediction: Prediction,
    /// How long measuring the edges took; `None` where a profile stands for that.
    pub probing: Option<Duration>,
    /// Per round, each PE's report, by PE index; without its spans.
    pub reports: Vec<Vec<Report>>,
    /// The spans of the median round, if spans were asked for.
    pub recorded: Option<MeasuredRound>,
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
        conductor.enter(Phase::Probe);
        conductor.measure_well(budget).await
    };
    match measured.await {
        Ok(measured) => Ok(measured),
        Err(trouble) => Err(conductor.give_up(trouble).await),
    }
}

/// A round that is watched.
struct UnderWay {
    watch: Watch,
    began: Moment,
    predicted_ns: u64,
    /// How many times longer than predicted it takes, as was said last.
    slow: f64,
}

struct Conductor<'a> {
    cluster: &'a mut Cluster,
    request: &'a Request,
    console: &'a Console,
    bytes: Vec<u64>,
    /// Whose messages were there before, with a receipt of this undertaking.
    found: Vec<PeId>,
    /// By PE index, what M_i is made of, and the file system of P_i; where there are files.
    made_of: Vec<MadeOf>,
    file_systems: Vec<u64>,
    /// What is being done.
    phase: Phase,
    /// The round that P0 has begun and not ended.
    under_way: Option<UnderWay>,
    /// When any PE last got done with a file.
    worked_at: Instant,
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
            found: Vec::new(),
            made_of: vec![MadeOf::default(); request.tree.len()],
            file_systems: vec![0; request.tree.len()],
            phase: Phase::Connect,
            under_way: None,
            worked_at: Instant::now(),
            round: RoundId(0),
            last_reports: vec![None; request.tree.len()],
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        tell(Event::Enters(phase));
    }

    async fn rounds(&mut self) -> Result<Rounds, Trouble> {
        self.bytes = self.assign().await?;
        self.enter(Phase::Probe);
        let began = Instant::now();
        let (mut measured, costs, mut model, probing) = match &self.request.profile {
            Some(profile) => {
                // An edge stays what it is; clocks drift.
                let clocks = self.clocks().await?;
                let edges = profile.edges.clone();
                let measured = Measurement {
                    alike: vec![None; edges.len()],
                    edges,
                    clocks,
                    fits: Vec::new(),
                };
                let model = profile.model();
                let costs = HostCosts {
                    host: model.host,
                    source: Source::Profile,
                };
                (measured, costs, model, None)
            }
            None => {
                let measured = self.measure(SHORT_PROBE, false).await?;
                let costs = host_costs::of(self.request);
                let model = measured_model(&measured.edges, costs.host, self.request);
                (measured, costs, model, Some(began.elapsed()))
            }
        };
        let measured_at = Instant::now();
        let files = self.know_files(&mut model).await?;
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
        let pacing = operation.gives_orders().then_some(pacing);
        tell(Event::Foreseen {
            bytes,
            pacing,
            prediction: &prediction,
        });
        self.enter(Phase::Prepare);
        self.prepare(briefs.clone()).await?;
        let mut reports = Vec::new();
        let mut recording = Recording::default();
        for id in (1..=self.request.rounds).map(RoundId) {
            let mut round = self.round(id, &prediction).await?;
            tell(Event::RoundReported {
                reports: &round,
                clocks: &measured.clocks,
            });
            if self.request.pictures.wanted() {
                recording.keep(&mut round, &measured.clocks);
            }
            reports.push(round);
        }
        let age_ns = measured_at.elapsed().as_nanos() as u64;
        for clock in &mut measured.clocks {
            *clock = clock.aged(age_ns);
        }
        Ok(Rounds {
            bytes: self.bytes.clone(),
            found: self.found.clone(),
            measured,
            costs,
            files,
            pacing,
            briefs,
            prediction,
            probing,
            reports,
            recorded: recording.median_round(),
        })
    }

    /// Tells every PE its place and what to do; the lengths of all messages that are sent.
    async fn assign(&mut self) -> Result<Vec<u64>, Trouble> {
        self.enter(Phase::Connect);
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
                left_out: self.request.left_out.clone(),
                undertaking: self.request.undertaking,
                recorded: self.request.recorded,
                later_output: self.request.later_output.clone(),
            };
            self.cluster.say(pe, ToPe::Assignment(assignment)).await;
        }
        let mut bytes = vec![0; tree.len()];
        let scatter = self.request.operation.is_scatter();
        let n = bytes.len() - 1;
        let (tree, left_out) = (tree.clone(), self.request.left_out.clone());
        let is_null = |pe: PeId| !tree.contains(pe) || left_out.binary_search(&pe).is_ok();
        let keeps_out = |pe, bytes: &u64| *bytes == 0 || !is_null(pe);
        let is_message = |pe: &PeId| *pe != PeId::ROOT && pe.index() <= n;
        let (mut found, mut standing) = (Vec::new(), Vec::new());
        let mut made_of = vec![MadeOf::default(); bytes.len()];
        let mut file_systems = vec![0; bytes.len()];
        self.each_says(
            self.request.timeouts.disk,
            "reading the input and connecting",
            |pe, word| match word {
                FromPe::Ready(ready) => {
                    let sent = &ready.message_bytes;
                    let of = || ready.delivered.iter().chain(&ready.standing);
                    file_systems[pe.index()] = ready.file_system;
                    match (scatter, pe == PeId::ROOT) {
                        _ if !of().all(is_message) => return Some(FromPe::Ready(ready)),
                        (true, true)
                            if sent.len() == n
                                && (1..).zip(sent).all(|(i, b)| keeps_out(PeId(i), b)) =>
                        {
                            bytes[1..].copy_from_slice(sent);
                            for (of, told) in made_of[1..].iter_mut().zip(&ready.made_of) {
                                *of = *told;
                            }
                        }
                        (false, false) if sent.len() == 1 && keeps_out(pe, &sent[0]) => {
                            bytes[pe.index()] = sent[0];
                            made_of[pe.index()] =
                                ready.made_of.first().copied().unwrap_or_default();
                        }
                        _ if sent.is_empty() => {}
                        _ => return Some(FromPe::Ready(ready)),
                    }
                    found.extend(ready.delivered);
                    standing.extend(ready.standing.into_iter().map(|of| (of, pe)));
                    None
                }
                other => Some(other),
            },
        )
        .await?;
        // No entry is without a byte, whatever a PE says.
        for (made_of, bytes) in made_of.iter_mut().zip(&bytes) {
            made_of.entries = made_of.entries.min(*bytes);
            made_of.cold_bytes = made_of.cold_bytes.min(*bytes);
        }
        (self.made_of, self.file_systems) = (made_of, file_systems);
        found.sort_unstable();
        found.dedup();
        for pe in &found {
            bytes[pe.index()] = 0;
        }
        self.found = found;
        // Where no message arrives, anything may stand.
        standing.retain(|(of, _)| bytes[of.index()] > 0);
        match standing.is_empty() {
            true => Ok(bytes),
            false => Err(self.output_stands(standing)),
        }
    }

    /// Each entry that stands where a message was to arrive, and at whom.
    fn output_stands(&self, mut standing: Vec<(PeId, PeId)>) -> Trouble {
        standing.sort_unstable();
        let scatters = self.request.operation.is_scatter();
        let place = |(of, at): (PeId, PeId)| {
            // P0 gets nothing in a scatter: what it tells of is the output of the gather.
            let output = match scatters && at == PeId::ROOT {
                true => self.request.later_output.as_deref(),
                false => self.request.payload.output(),
            };
            let path = destination(output.unwrap_or(Path::new("")), of);
            let host = self.request.placement.places[at.index()].name.as_ref();
            let host = host.map_or(String::new(), |host| format!(" on {host}"));
            format!("{} at {at}{host}", path.display())
        };
        Trouble::OutputStands(standing.into_iter().map(place).collect())
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
        let address = self.or_joined_from(address, parent);
        Ok(Some(SocketAddr::new(address, listen.port()).to_string()))
    }

    /// A PE's address; where nobody said which, the one that it has joined from.
    fn or_joined_from(&self, address: IpAddr, pe: PeId) -> IpAddr {
        match self.cluster.joined_from(pe) {
            Some(from) if address.is_unspecified() => from.ip(),
            _ => address,
        }
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
        let tree = &self.request.tree;
        let briefs = tree.ids().zip(briefs).filter(|(pe, _)| tree.contains(*pe));
        let prepares: Vec<Prepare> = briefs.map(prepare).collect();
        for (pe, prepare) in tree.pes().zip(prepares) {
            self.cluster.say(pe, ToPe::Prepare(prepare)).await;
        }
        self.each_says(ANSWER, "preparing the rounds", |_, word| match word {
            FromPe::Prepared => None,
            other => Some(other),
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
        let of = self.bytes.iter().sum();
        self.console.begin(name, of);
        self.enter(Phase::Round { moved: 0, of });
        let predicted_ns = prediction.round_ns() + prediction.commit_ns();
        tell(Event::RoundBegins {
            round: id,
            bytes: &self.bytes,
            predicted_ns,
        });
        self.cluster
            .say(PeId::ROOT, ToPe::Trigger { round: id })
            .await;
        tracing::info!(round = %id, "triggered");
        // A round has no deadline of its own: it takes what its links take. It is watched
        // instead, and given up when nothing moves any more.
        let (pes, began) = (self.request.tree.len(), Moment::now());
        self.under_way = Some(UnderWay {
            watch: Watch::new(self.request.timeouts, pes, began),
            began,
            predicted_ns,
            slow: 1.0,
        });
        while self.last_reports[0].is_none() {
            match self.next_word(None).await? {
                Some((PeId::ROOT, FromPe::Progress { bytes, .. })) => {
                    self.enter(Phase::Round { moved: bytes, of });
                    self.console.moved(bytes, began.elapsed(), predicted_ns);
                }
                Some((PeId::ROOT, FromPe::Report(_))) | None => {}
                Some((pe, other)) => return Err(out_of_turn(pe, &other)),
            }
        }
        self.under_way = None;
        tell(Event::RoundDone);
        self.cluster.look(false);
        self.enter(Phase::Report);
        for pe in self.cluster.pes().skip(1) {
            self.cluster.say(pe, ToPe::Collect { round: id }).await;
        }
        let mut deadline = Instant::now() + ANSWER;
        while self
            .cluster
            .pes()
            .any(|pe| self.last_reports[pe.index()].is_none())
        {
            match self.next_word(Some(deadline)).await? {
                // Reports with spans are long.
                Some((_, FromPe::Report(_))) => deadline = Instant::now() + ANSWER,
                Some((_, FromPe::Progress { .. })) => {}
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
        // Who is absent has nothing to tell.
        let reports = self.last_reports.iter().cloned();
        let nothing = || blank_report(id, Vec::new());
        Ok(reports
            .map(|report| report.unwrap_or_else(nothing))
            .collect())
    }
}
