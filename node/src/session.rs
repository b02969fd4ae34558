//! A PE's life: register, connect, measure, play rounds, leave.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flitcast_proto::cost::FileCosts;
use flitcast_proto::ops::{Brief, Gossip, Layout, Operation};
use flitcast_proto::wire::control::{Assignment, FromPe, Payload, Prepare, Ready, Register, ToPe};
use flitcast_proto::wire::{MAX_VERSION, MIN_VERSION};
use flitcast_proto::{PeId, RoundId};
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;
use tokio::time::{Interval, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::blocking::joined;
use crate::config::NodeConfig;
use crate::connect::connect;
use crate::coordinator::Coordinator;
use crate::error::NodeError;
use crate::host;
use crate::inbox::Inbox;
use crate::io::{NodeIo, State};
use crate::neighbours::Neighbours;
use crate::parts::Parts;
use crate::payload::{self, file_system};
use crate::rounds::Channel;
use crate::store::Store;
use crate::system::clock::Alarm;
use crate::system::process;
use crate::system::retransmissions::Retransmissions;
use crate::text::clipped;
use crate::{briefing, limits, probe, rounds, task};

/// Plays one PE until the coordinator says stop, or is gone, or `shutdown` is
/// cancelled. Children connect to `listener`.
pub async fn run(
    config: NodeConfig,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), NodeError> {
    // At the level of errors, so that no filter takes PE and round out of a line.
    let span = tracing::error_span!("pe", pe = %config.pe);
    let life = live(config, listener).instrument(span);
    tokio::select! {
        result = life => result,
        () = shutdown.cancelled() => Ok(()),
    }
}

async fn live(config: NodeConfig, listener: TcpListener) -> Result<(), NodeError> {
    let mut calls = 0;
    loop {
        let mut channel = Coordinator::connect(&config).await?;
        let lived = serve(&config, &listener, &mut channel).await;
        let heard = channel.has_spoken();
        channel.finish().await;
        calls += 1;
        match lived {
            Err(error) if !heard && calls < limits::CALLS && error.is_cut_off() => {
                tracing::debug!(%error, "calling again");
            }
            lived => return lived,
        }
    }
}

/// Registers, and does what the coordinator asks until it is to leave.
pub(crate) async fn serve(
    config: &NodeConfig,
    listener: &TcpListener,
    channel: &mut Coordinator,
) -> Result<(), NodeError> {
    register(config, listener, channel).await?;
    let assignment = loop {
        match channel.next_word().await? {
            ToPe::Assignment(assignment) => break assignment,
            ToPe::Run(command) => match task::run(config, channel, command).await? {
                true => {}
                false => return Ok(()),
            },
            ToPe::Clear { work } => task::clear(config, channel, work).await?,
            ToPe::Stop { .. } => return Ok(()),
            ToPe::Refusal { reason } => {
                let addr = config.coordinator;
                return Err(NodeError::Refused { addr, reason });
            }
            other => return Err(unexpected(&other, "before an assignment")),
        }
    };
    tracing::debug!(parent = ?assignment.parent_listen, "assigned");
    let is_allowed = match assignment.payload {
        Payload::Files { .. } => config.allowed.files.clone(),
        Payload::Synthetic { .. } => Ok(()),
    };
    // Whoever says where files are is not obeyed in anything: no path is looked at.
    if let Err(why) = is_allowed {
        return told(config, channel, RoundId(0), NodeError::NotAllowed(why)).await;
    }
    let inbox = Inbox::of(config.pe, &assignment);
    let recorded = assignment.recorded;
    let mut round = RoundId(0);
    let worked = work(config, listener, channel, assignment, &inbox, &mut round).await;
    let done = match worked {
        Ok(()) => Ok(()),
        Err(error) => told(config, channel, round, error).await,
    };
    if channel.is_over() || (channel.is_gone() && !recorded) {
        inbox.clear().await;
    }
    done
}

/// Tells the coordinator why this PE cannot go on, and waits until it is to leave.
async fn told(
    config: &NodeConfig,
    channel: &mut Coordinator,
    round: RoundId,
    error: NodeError,
) -> Result<(), NodeError> {
    config.tally.failed(error.kind());
    if matches!(error, NodeError::Abandoned | NodeError::Channel(_)) {
        return Err(error);
    }
    // The coordinator decides what becomes of the others; it may also have told us
    // to go already, and the error is what that looks like from here.
    tracing::debug!(%error, "cannot go on");
    let fault = fault(config.pe, round, &error);
    if channel.say(fault).await.is_ok() {
        let told = timeout(limits::AFTER_FAULT, async {
            while !matches!(channel.next_word().await, Ok(ToPe::Stop { .. }) | Err(_)) {}
        });
        if told.await.is_ok() {
            return Ok(());
        }
    }
    Err(error)
}

async fn register(
    config: &NodeConfig,
    listener: &TcpListener,
    channel: &mut Coordinator,
) -> Result<(), NodeError> {
    let listen = listener.local_addr().map_err(|source| NodeError::Io {
        what: "the listening address",
        source,
    })?;
    let register = Register {
        cluster: config.cluster,
        pe: config.pe,
        min_version: MIN_VERSION,
        max_version: MAX_VERSION,
        listen: listen.to_string(),
        pid: std::process::id(),
        clock: process::clock(),
        processor: process::processor().unwrap_or_default(),
        cores: process::cores().unwrap_or(0),
        secret: config.secret,
    };
    channel.say(FromPe::Register(register)).await
}

fn unexpected(word: &ToPe, when: &'static str) -> NodeError {
    NodeError::Unexpected {
        said: clipped(word),
        when,
    }
}

async fn work(
    config: &NodeConfig,
    listener: &TcpListener,
    channel: &mut Coordinator,
    assignment: Assignment,
    inbox: &Inbox,
    round: &mut RoundId,
) -> Result<(), NodeError> {
    if !assignment.tree.contains(config.pe) {
        return Err(unexpected(
            &ToPe::Assignment(assignment),
            "to one whom its tree lacks",
        ));
    }
    // Lists may name any of them, and nobody else. On a network they are some of all.
    let operation = assignment.operation;
    let peers = operation.peers(&assignment.tree, config.pe);
    let told: Vec<PeId> = assignment.peers.iter().map(|peer| peer.pe).collect();
    let is_some_of = told.is_sorted_by(|one, other| one < other)
        && told.iter().all(|pe| peers.binary_search(pe).is_ok());
    let is_on_network = matches!(operation, Operation::Gossip(Gossip::OnNetwork(_)));
    if told != peers && !(is_on_network && is_some_of) {
        return Err(unexpected(
            &ToPe::Assignment(assignment),
            "with other peers than its operation has",
        ));
    }
    // At the same time: neighbours are not kept waiting for a large input to be read.
    let pulse = channel.pulse().clone();
    let opening = async {
        let opened = Store::open(config, &assignment, &pulse).await;
        let (store, sent) = opened.map_err(NodeError::Payload)?;
        let found = inbox.look().await.map_err(NodeError::Output)?;
        Ok((store, sent, found, files_on(config.pe, &assignment).await))
    };
    let opening = async { tokio::try_join!(opening, connect(config, listener, &assignment)) };
    let ((store, sent, found, file_system), mut neighbours) = tokio::select! {
        opened = opening => opened?,
        word = channel.next_word() => match word? {
            ToPe::Stop { .. } | ToPe::Abort { .. } => return Ok(()),
            other => return Err(unexpected(&other, "before the PE was ready")),
        },
    };
    for neighbours in &mut neighbours {
        neighbours.watch(channel.pulse());
    }
    channel
        .say(FromPe::Ready(Ready {
            message_bytes: sent.bytes,
            made_of: sent.made_of,
            file_system,
            delivered: found.delivered,
            standing: found.standing,
        }))
        .await?;
    let Some(prepare) = prepare(config, channel, &mut neighbours[0], &assignment).await? else {
        return Ok(());
    };
    let Some(briefs) = briefing::for_all(config.pe, &assignment, &prepare) else {
        return Err(unexpected(&ToPe::Prepare(prepare), "for another tree"));
    };
    play_rounds(
        config,
        channel,
        &mut neighbours,
        &store,
        &assignment,
        (briefs, prepare.rounds),
        round,
    )
    .await
}

fn alarm() -> Result<Alarm, NodeError> {
    Alarm::new().map_err(no_alarm)
}

fn no_alarm(source: io::Error) -> NodeError {
    let what = "an alarm";
    NodeError::Io { what, source }
}

async fn play_rounds(
    config: &NodeConfig,
    channel: &mut Coordinator,
    neighbours: &mut [Neighbours],
    store: &Store,
    assignment: &Assignment,
    (briefs, rounds): (Vec<Brief>, u64),
    under_way: &mut RoundId,
) -> Result<(), NodeError> {
    let pe = config.pe;
    let is_root = pe == assignment.tree.root();
    let pulse = channel.pulse().clone();
    // Whoever is told of several trees was assigned as many.
    let parts = Parts::of(&assignment.tree, &briefs).ok_or_else(|| NodeError::Unexpected {
        said: "Prepare".to_owned(),
        when: "with parts of messages that are none",
    })?;
    let in_parts = briefs.len() > 1 || parts.are_any();
    let further = assignment.lanes.iter().map(|lane| &lane.tree);
    let trees = std::iter::once(&assignment.tree).chain(further);
    let mut lanes = Vec::new();
    for (lane, ((tree, neighbours), brief)) in trees.zip(neighbours).zip(briefs).enumerate() {
        // Not before: what measures the edges is no round's.
        neighbours.count(pulse.counters());
        neighbours.take_flits_of(brief.flit_bytes);
        neighbours.pace(&brief).map_err(no_alarm)?;
        let ends = neighbours.all_mut().filter_map(|link| link.ends().ok());
        lanes.push(NodeIo {
            pe,
            tree: tree.clone(),
            brief,
            records_spans: assignment.record_spans,
            retransmissions: Retransmissions::of(ends),
            neighbours,
            store,
            alarm: alarm()?,
            pulse: &pulse,
            parts: in_parts.then_some((lane, &parts)),
            state: State::default(),
        });
    }
    let mut channel = RoundsChannel {
        config,
        is_root,
        channel,
        tick: tokio::time::interval(limits::PROGRESS),
        shown: 0,
    };
    rounds::play_rounds(is_root, rounds, &mut lanes, &mut channel, under_way).await
}

/// The channel to the coordinator while rounds are played.
struct RoundsChannel<'a> {
    config: &'a NodeConfig,
    is_root: bool,
    channel: &'a mut Coordinator,
    tick: Interval,
    /// The bytes that the root has told of last.
    shown: u64,
}

impl Channel for RoundsChannel<'_> {
    type Error = NodeError;

    async fn next_word(&mut self) -> Result<ToPe, NodeError> {
        self.channel.next_word().await
    }

    async fn next_word_in(&mut self, round: RoundId) -> Result<ToPe, NodeError> {
        if !self.is_root {
            return self.channel.next_word().await;
        }
        loop {
            tokio::select! {
                biased;
                word = self.channel.next_word() => return word,
                _ = self.tick.tick() => {
                    let bytes = self.channel.pulse().counters().moved_bytes();
                    if std::mem::replace(&mut self.shown, bytes) != bytes {
                        self.channel.say(FromPe::Progress { round, bytes }).await?;
                    }
                }
            }
        }
    }

    async fn say(&mut self, word: FromPe) -> Result<(), NodeError> {
        self.channel.say(word).await
    }

    fn unexpected(&self, word: &ToPe, when: &'static str) -> NodeError {
        unexpected(word, when)
    }

    fn fault(&self, round: RoundId, error: &NodeError) -> Option<FromPe> {
        // When the coordinator is gone, that is counted where something is next said to it.
        if matches!(error, NodeError::Abandoned | NodeError::Channel(_)) {
            return None;
        }
        self.config.tally.failed(error.kind());
        tracing::debug!(%error, "the round failed");
        Some(fault(self.config.pe, round, error))
    }
}

/// What the coordinator is told of an error.
fn fault(pe: PeId, round: RoundId, error: &NodeError) -> FromPe {
    FromPe::Fault {
        round,
        peer: error.peer(),
        reason: error.to_string(),
        bad_input: error.is_bad_input(pe),
        output_stands: error.is_standing_output(),
        hung_up: error.is_hung_up(),
    }
}

/// Until the rounds can begin: measures and answers measurements. `None` if the
/// coordinator wants the PE to leave.
async fn prepare(
    config: &NodeConfig,
    channel: &mut Coordinator,
    neighbours: &mut Neighbours,
    assignment: &Assignment,
) -> Result<Option<Prepare>, NodeError> {
    let flit_bytes = assignment.flit_bytes;
    let mut alarm = alarm()?;
    loop {
        let parent = async {
            match neighbours.parent() {
                Some(link) => {
                    let frame = link.next_control().await?;
                    probe::answer(link, frame, flit_bytes).await
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            word = channel.next_word() => match word? {
                ToPe::ProbeEdge { child, budget_ns } => {
                    let link = neighbours.child(child).ok_or(NodeError::MissingCallers {
                        missing: vec![child],
                    })?;
                    let budget_ns = budget_ns.min(limits::PROBE_BUDGET.as_nanos() as u64);
                    let measure = probe::measure(link, flit_bytes, budget_ns, &mut alarm);
                    let limit = limits::PROBE + Duration::from_nanos(budget_ns);
                    let measured = timeout(limit, measure).await;
                    let exchanges = measured.map_err(|_| NodeError::SilentChild { child })??;
                    channel.say(FromPe::ProbeResult { child, exchanges }).await?;
                }
                ToPe::MeasureFiles => {
                    let costs = measure_files(config, assignment).await;
                    channel.say(FromPe::FilesMeasured(costs)).await?;
                }
                ToPe::MeasureHost { encrypted } => {
                    let found = host::measure(encrypted).await;
                    channel.say(FromPe::HostMeasured { found }).await?;
                }
                ToPe::Prepare(prepare) => return Ok(Some(prepare)),
                ToPe::Stop { .. } | ToPe::Abort { .. } => return Ok(None),
                other => return Err(unexpected(&other, "before the rounds")),
            },
            answered = parent => answered?,
        }
    }
}

/// The file system that matters to a PE: that of the first path. What files cost there is
/// measured at the second: nothing is written to somebody's input.
fn files_place(pe: PeId, assignment: &Assignment) -> Option<(&Path, PathBuf)> {
    let Payload::Files {
        input,
        output,
        apart,
        ..
    } = &assignment.payload
    else {
        return None;
    };
    let operation = assignment.operation;
    // Of one message the output is no folder, but stands in one.
    let folder = match *apart && operation.layout() == Layout::Whole {
        true => output.parent().unwrap_or(output),
        false => output,
    };
    match operation.taken_by(&assignment.tree, pe).is_empty() {
        true => Some((input, std::env::temp_dir())),
        false => Some((folder, folder.to_owned())),
    }
}

/// Names the file system that matters to a PE; 0 where there are no files.
async fn files_on(pe: PeId, assignment: &Assignment) -> u64 {
    let Some((place, _)) = files_place(pe, assignment) else {
        return 0;
    };
    let place = place.to_owned();
    joined(spawn_blocking(move || file_system(&place)).await)
}

/// What files cost a PE; `None` where that cannot be found out.
async fn measure_files(config: &NodeConfig, assignment: &Assignment) -> Option<FileCosts> {
    let (_, place) = files_place(config.pe, assignment)?;
    let name = format!("{:016x}-p{}", config.cluster, config.pe.0);
    let measuring = spawn_blocking(move || payload::measure_files(&place, &name));
    match timeout(limits::MEASURE_FILES, measuring).await.ok()?.ok()? {
        Ok(costs) => Some(costs),
        Err(error) => {
            tracing::info!(%error, "what files cost cannot be measured");
            None
        }
    }
}
