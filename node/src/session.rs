//! The life of a PE: register, connect, measure, run rounds, leave.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use flitcast_proto::cost::FileCosts;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::round::prepare_hashes;
use flitcast_proto::wire::control::{Assignment, FromPe, Payload, Prepare, Register, ToPe};
use flitcast_proto::wire::{MAX_FLIT_PREFIX, MAX_REPORT_SPANS, MAX_VERSION, MIN_VERSION};
use flitcast_proto::{PeId, RoundId};
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;
use tokio::time::{Interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::NodeConfig;
use crate::connect::connect;
use crate::coordinator::Coordinator;
use crate::error::NodeError;
use crate::inbox::Inbox;
use crate::io::{NodeIo, RoundBuffers};
use crate::listen::{WorkSlice, Yields};
use crate::neighbours::Neighbours;
use crate::pacer::Pacer;
use crate::parts::Parts;
use crate::payload::{self, file_system, free_bytes};
use crate::permissions::confined;
use crate::rounds::{self, Channel};
use crate::runtime::joined;
use crate::store::{Store, output_folder};
use crate::system::clock::Alarm;
use crate::system::cores::HomeCore;
use crate::system::process;
use crate::system::retransmissions::Retransmissions;
use crate::{host, limits, probe, schedule_check, task};

/// Runs one PE until the coordinator ends it or has ended, or `shutdown` is cancelled. Children connect
/// to `listener`.
///
/// Boxed: a plain future would be compiled, with all rounds, where it is awaited, by the settings of
/// that crate.
pub fn run(
    config: NodeConfig,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Pin<Box<dyn Future<Output = Result<(), NodeError>>>> {
    Box::pin(async move { until(shutdown, config.pe, serve_coordinator(config, listener)).await })
}

/// Runs a PE until it ends, or until `shutdown` is cancelled.
pub(crate) async fn until<E>(
    shutdown: CancellationToken,
    pe: impl Display,
    serving: impl Future<Output = Result<(), E>>,
) -> Result<(), E> {
    // At the level of errors, so that no filter removes PE and round from a line. Entered once: a span
    // of a task is entered at each poll, which would be for each frame.
    let _span = tracing::error_span!("pe", %pe).entered();
    tokio::select! {
        result = serving => result,
        () = shutdown.cancelled() => Ok(()),
    }
}

async fn serve_coordinator(config: NodeConfig, listener: TcpListener) -> Result<(), NodeError> {
    let mut calls = 0;
    loop {
        let mut channel = Coordinator::connect(&config).await?;
        let served = serve(&config, &listener, &mut channel).await;
        let has_received = channel.has_received;
        channel.finish().await;
        calls += 1;
        match served {
            Err(error) if !has_received && calls < limits::CALLS && error.is_cut_off() => {
                tracing::debug!(%error, "calling again");
            }
            served => return served,
        }
    }
}

/// Registers, and follows the coordinator until the PE is to leave.
pub(crate) async fn serve(
    config: &NodeConfig,
    listener: &TcpListener,
    channel: &mut Coordinator,
) -> Result<(), NodeError> {
    register(config, listener, channel).await?;
    let assignment = loop {
        match channel.next_command().await? {
            ToPe::Assignment(assignment) => break assignment,
            ToPe::Run(command) => {
                if !task::run(config, channel, command).await? {
                    return Ok(());
                }
            }
            ToPe::ListShards { input, output } => {
                task::list(config, channel, input, output).await?;
            }
            ToPe::PlaceResults(results) => task::place(config, channel, results).await?,
            ToPe::Clear { work, gathered } => task::clear(config, channel, work, gathered).await?,
            // The command has just ended.
            ToPe::EndRun { .. } => {}
            ToPe::Stop { .. } => return Ok(()),
            ToPe::Refusal { reason } => {
                return Err(NodeError::Refused(config.coordinator, reason));
            }
            other => return Err(NodeError::unexpected(&other, "before an assignment")),
        }
    };
    tracing::debug!(parent = ?assignment.parent_listen, "assigned");
    let assignment = match confined(config.pe, &config.allowed, assignment) {
        Ok(assignment) => assignment,
        // No path of the assignment is used.
        Err(why) => {
            tracing::warn!("refused: {why}");
            return report_fault(config, channel, RoundId(0), NodeError::NotAllowed(why)).await;
        }
    };
    let inbox = Inbox::of(config.pe, config.cluster, &assignment);
    let recorded = assignment.job.recorded;
    let mut round = RoundId(0);
    let worked = work(config, listener, channel, assignment, &inbox, &mut round).await;
    let done = match worked {
        Ok(()) => Ok(()),
        Err(error) => report_fault(config, channel, round, error).await,
    };
    if channel.is_over || (channel.is_cut_off && !recorded) {
        inbox.clear().await;
    }
    done
}

/// Reports to the coordinator why this PE cannot continue, and waits until it is to leave.
async fn report_fault(
    config: &NodeConfig,
    channel: &mut Coordinator,
    round: RoundId,
    error: NodeError,
) -> Result<(), NodeError> {
    config.tally.failed(error.kind());
    if matches!(error, NodeError::Abandoned | NodeError::Channel(_)) {
        return Err(error);
    }
    // The coordinator decides for the other PEs. It may also have ended this PE already, and the error
    // is a consequence.
    tracing::debug!(%error, "cannot go on");
    let fault = error.report(config.pe, round);
    if channel.send_reply(fault).await.is_ok() {
        let stop = timeout(limits::AFTER_FAULT, async {
            while !matches!(channel.next_command().await, Ok(ToPe::Stop { .. }) | Err(_)) {}
        });
        if stop.await.is_ok() {
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
    let listen = listener.local_addr();
    let listen = listen.map_err(NodeError::io("the listening address"))?;
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
        host: process::host(),
        secret: config.secret,
    };
    channel.send_reply(FromPe::Register(register)).await?;
    // While other PEs start.
    prepare_hashes();
    Ok(())
}

/// Checks that an assignment is for this PE, and that its peers are other PEs of the tree, each once, by
/// index. Returns a description of the mismatch.
fn check_assignment(assignment: &Assignment, pe: PeId) -> Result<(), &'static str> {
    if !assignment.tree.contains(pe) {
        return Err("for a tree without this PE");
    }
    if let Payload::Files(files) = &assignment.payload
        && !files.compression.is_available()
    {
        return Err("that compresses with zstd, which this flitcast was built without");
    }
    let tree = &assignment.tree;
    let is_edge = |other: PeId| tree.parent(pe) == Some(other) || tree.parent(other) == Some(pe);
    let is_peer = |other: PeId| other != pe && tree.contains(other) && !is_edge(other);
    let peers = assignment.peers.iter().map(|peer| peer.pe);
    match peers.clone().is_sorted_by(|one, other| one < other) && peers.clone().all(is_peer) {
        true => Ok(()),
        false => Err("with peers that it cannot connect to"),
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
    if let Err(how) = check_assignment(&assignment, config.pe) {
        return Err(NodeError::unexpected(&ToPe::Assignment(assignment), how));
    }
    // At the same time: neighbours do not have to wait for a large input to be read.
    let pulse = channel.pulse.clone();
    let opening = async {
        let opened = Store::open(config, &assignment, &pulse).await;
        let (store, sent) = opened.map_err(NodeError::Payload)?;
        let looked = inbox.look(sent, &pulse).await;
        let mut ready = looked.map_err(NodeError::Output)?;
        (ready.file_system, ready.free_bytes) = files_on(config.pe, &assignment).await;
        Ok((store, ready))
    };
    let opening = async { tokio::try_join!(opening, connect(config, listener, &assignment)) };
    let ((mut store, ready), mut neighbours) = tokio::select! {
        opened = opening => opened?,
        command = channel.next_command() => match command? {
            ToPe::Stop { .. } | ToPe::Abort { .. } => return Ok(()),
            other => return Err(NodeError::unexpected(&other, "before the PE was ready")),
        },
    };
    for link in neighbours.iter_mut().flat_map(Neighbours::all_mut) {
        link.watch(pulse.clone());
    }
    channel.send_reply(FromPe::Ready(ready)).await?;
    let prepared = prepare(config, channel, &mut neighbours[0], &assignment, &mut store);
    let Some(prepare) = prepared.await? else {
        return Ok(());
    };
    store.continue_from(&prepare.prefixes);
    let rounds = prepare.rounds;
    // A static schedule can be long, and is in memory once.
    let schedules = schedule_check::checked(config.pe, &assignment, prepare).map_err(unfit)?;
    play_rounds(
        config,
        channel,
        &mut neighbours,
        &store,
        &assignment,
        (schedules, rounds),
        round,
    )
    .await
}

/// Returns the error for schedules that this PE cannot execute.
fn unfit(when: &'static str) -> NodeError {
    NodeError::Unexpected("Prepare".to_owned(), when)
}

async fn play_rounds(
    config: &NodeConfig,
    channel: &mut Coordinator,
    neighbours: &mut [Neighbours],
    store: &Store<'_>,
    assignment: &Assignment,
    (schedules, rounds): (Vec<PeSchedule>, u64),
    under_way: &mut RoundId,
) -> Result<(), NodeError> {
    let pe = config.pe;
    let is_root = pe == assignment.tree.root();
    let pulse = channel.pulse.clone();
    // A PE with schedules for several trees was assigned as many.
    let parts = Parts::of(&assignment.tree, &schedules);
    let parts = parts.ok_or_else(|| unfit("with parts of messages that are not contiguous"))?;
    let in_parts = schedules.len() > 1 || parts.are_any();
    let further = assignment.lanes.iter().map(|lane| &lane.tree);
    let trees = std::iter::once(&assignment.tree).chain(further);
    let records = assignment.record_spans;
    let spans = if records { MAX_REPORT_SPANS } else { 0 };
    let limit = match assignment.max_bits_per_second {
        0 => None,
        rate => Some(Pacer::new(8e9 / rate as f64).map_err(NodeError::io("an alarm"))?),
    };
    let mut lanes = Vec::new();
    for (lane, ((tree, neighbours), schedule)) in trees.zip(neighbours).zip(schedules).enumerate() {
        // Not before: the measurement of edges does not belong to a round.
        for link in neighbours.all_mut() {
            link.count(pulse.counters());
            link.set_max_flit_bytes(schedule.flit_bytes);
            link.compress(schedule.compression);
        }
        store.warm_up(schedule.flit_bytes);
        let flit_bytes = schedule.longest_received_flit();
        for sender in schedule.senders(tree, pe) {
            neighbours.get(sender).touch_memory(flit_bytes);
        }
        let mut state = RoundBuffers::default();
        if schedule.forwards_stored(pe) {
            state.held.reserve(flit_bytes as usize + MAX_FLIT_PREFIX);
        }
        let paced = neighbours.pace(&schedule, limit.as_ref());
        paced.map_err(NodeError::io("an alarm"))?;
        let ends = neighbours.all_mut().filter_map(|link| link.ends().ok());
        lanes.push(NodeIo {
            pe,
            tree: tree.clone(),
            schedule,
            spans,
            retransmissions: Retransmissions::of(ends),
            neighbours,
            store,
            alarm: Alarm::new().map_err(NodeError::io("an alarm"))?,
            pulse: &pulse,
            parts: in_parts.then_some((lane, &parts)),
            yields: Yields::default(),
            home: HomeCore::choose(pe.index(), tree.len()),
            slice: WorkSlice::default(),
            state,
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

/// The channel to the coordinator during rounds.
struct RoundsChannel<'a> {
    config: &'a NodeConfig,
    is_root: bool,
    channel: &'a mut Coordinator,
    tick: Interval,
    /// The number of bytes in the root's last progress report.
    shown: u64,
}

impl Channel for RoundsChannel<'_> {
    type Error = NodeError;

    async fn next_command(&mut self) -> Result<ToPe, NodeError> {
        self.channel.next_command().await
    }

    async fn next_command_in(&mut self, round: RoundId) -> Result<ToPe, NodeError> {
        if !self.is_root {
            return self.channel.next_command().await;
        }
        loop {
            tokio::select! {
                biased;
                command = self.channel.next_command() => return command,
                _ = self.tick.tick() => {
                    let bytes = self.channel.pulse.counters().moved_bytes();
                    if std::mem::replace(&mut self.shown, bytes) != bytes {
                        self.channel.send_reply(FromPe::Progress { round, bytes }).await?;
                    }
                }
            }
        }
    }

    async fn send_reply(&mut self, reply: FromPe) -> Result<(), NodeError> {
        self.channel.send_reply(reply).await
    }

    fn unexpected(&self, command: &ToPe, when: &'static str) -> NodeError {
        NodeError::unexpected(command, when)
    }

    fn fault(&self, round: RoundId, error: &NodeError) -> Option<FromPe> {
        // If the coordinator is gone, the next message to it fails.
        if matches!(error, NodeError::Abandoned | NodeError::Channel(_)) {
            return None;
        }
        self.config.tally.failed(error.kind());
        tracing::debug!(%error, "the round failed");
        Some(error.report(self.config.pe, round))
    }
}

/// Measures and answers measurements until the rounds can begin. Returns `None` if the coordinator ends
/// the PE.
async fn prepare(
    config: &NodeConfig,
    channel: &mut Coordinator,
    neighbours: &mut Neighbours,
    assignment: &Assignment,
    store: &mut Store<'_>,
) -> Result<Option<Prepare>, NodeError> {
    let flit_bytes = assignment.flit_bytes;
    let mut alarm = Alarm::new().map_err(NodeError::io("an alarm"))?;
    let mut probes = true;
    loop {
        let parent = async {
            match neighbours.parent().filter(|_| probes) {
                Some(link) => probe::answer_next(link, flit_bytes).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            command = channel.next_command() => match command? {
                ToPe::ProbeEdge { child, budget_ns } => {
                    let missing = || NodeError::MissingCallers(vec![child]);
                    let link = neighbours.child(child).ok_or_else(missing)?;
                    let budget_ns = budget_ns.min(limits::PROBE_BUDGET.as_nanos() as u64);
                    let measure = probe::measure(link, flit_bytes, budget_ns, &mut alarm);
                    let limit = limits::PROBE + Duration::from_nanos(budget_ns);
                    let measured = timeout(limit, measure).await;
                    let exchanges = measured.map_err(|_| NodeError::SilentChild(child))??;
                    channel.send_reply(FromPe::ProbeResult { child, exchanges }).await?;
                }
                ToPe::MeasureFiles => {
                    let costs = measure_files(config, assignment).await;
                    channel.send_reply(FromPe::FilesMeasured(costs)).await?;
                }
                ToPe::MeasureHost { encrypted } => {
                    let found = host::measure(encrypted).await;
                    channel.send_reply(FromPe::HostMeasured { found }).await?;
                }
                ToPe::CheckPrefixes { prefixes } => {
                    // They may be long, and the coordinator may end the PE meanwhile.
                    let digests = tokio::select! {
                        digests = store.check_prefixes(&prefixes) => digests,
                        command = channel.next_command() => match command? {
                            ToPe::Stop { .. } | ToPe::Abort { .. } => return Ok(None),
                            other => return Err(NodeError::unexpected(&other, "while prefixes are read")),
                        },
                    };
                    channel.send_reply(FromPe::PrefixesChecked { digests }).await?;
                }
                ToPe::SkipFiles { present } => {
                    let skipped = tokio::select! {
                        skipped = store.skip_files(present) => skipped,
                        command = channel.next_command() => match command? {
                            ToPe::Stop { .. } | ToPe::Abort { .. } => return Ok(None),
                            other => return Err(NodeError::unexpected(&other, "while files are compared")),
                        },
                    };
                    let skipped = skipped.map_err(|fault| NodeError::Payload(vec![fault]))?;
                    channel.send_reply(FromPe::FilesSkipped { skipped }).await?;
                }
                ToPe::Prepare(prepare) => return Ok(Some(prepare)),
                ToPe::Stop { .. } | ToPe::Abort { .. } => return Ok(None),
                other => return Err(NodeError::unexpected(&other, "before the rounds")),
            },
            answered = parent => probes = answered?,
        }
    }
}

/// Returns a path in the file system that matters to a PE, and a path at which its costs can be
/// measured, because nothing may be written to an input.
fn files_place(pe: PeId, assignment: &Assignment) -> Option<(&Path, PathBuf)> {
    let Payload::Files(files) = &assignment.payload else {
        return None;
    };
    let collective = assignment.collective;
    let folder = output_folder(collective, &assignment.payload)?;
    match collective.taken_by(&assignment.tree, pe).is_empty() {
        true => Some((&files.input, std::env::temp_dir())),
        false => Some((folder, folder.to_owned())),
    }
}

/// Returns the number of the file system that matters to a PE, 0 without files, and its free bytes if the
/// PE may write to it and they are known.
async fn files_on(pe: PeId, assignment: &Assignment) -> (u64, Option<u64>) {
    let Some((place, _)) = files_place(pe, assignment) else {
        return (0, None);
    };
    let place = place.to_owned();
    joined(spawn_blocking(move || (file_system(&place), free_bytes(&place))).await)
}

/// Measures the costs of files for a PE; returns `None` if that fails.
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
