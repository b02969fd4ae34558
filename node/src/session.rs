//! A PE's life: register, connect, measure, play rounds, leave.

mod error;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flitcast_proto::cost::FileCosts;
use flitcast_proto::pe::Pe;
use flitcast_proto::wire::control::{
    Assignment, FromPe, Payload, Prepare, Ready, Register, Report, ToPe,
};
use flitcast_proto::wire::{MAX_VERSION, MIN_VERSION, Secret};
use flitcast_proto::{PeId, RoundId};
use tokio::net::TcpListener;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::allowed::Allowed;
use crate::briefing::{brief, expected, is_left_out, is_order};
use crate::clock::Alarm;
use crate::connect::connect;
use crate::coordinator::Coordinator;
use crate::counters::Tally;
use crate::inbox::Inbox;
use crate::limits::Timeouts;
use crate::link::Link;
use crate::neighbours::Neighbours;
use crate::payload::{self, file_system};
use crate::recorder::Recorder;
use crate::retransmissions::Retransmissions;
use crate::round::{Round, blank_report};
use crate::security::Security;
use crate::store::{Outbox, Store};
use crate::task;
use crate::{limits, probe, process};
pub use error::NodeError;

/// Who a PE is and whom it belongs to.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Which PE.
    pub pe: PeId,
    /// Where the coordinator listens.
    pub coordinator: SocketAddr,
    /// Names the cluster.
    pub cluster: u64,
    /// That it is of this launch; who does not know it is turned away.
    pub secret: Secret,
    /// How its connections are guarded.
    pub security: Security,
    /// How long it waits for what.
    pub timeouts: Timeouts,
    /// What it counts.
    pub tally: Tally,
    /// What it does at the coordinator's word.
    pub allowed: Allowed,
}

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
    let fault = FromPe::Fault {
        round,
        peer: error.peer(),
        reason: error.to_string(),
        bad_input: error.is_bad_input(config.pe),
        output_stands: error.is_standing_output(),
    };
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
        secret: config.secret,
    };
    channel.say(FromPe::Register(register)).await
}

fn unexpected(word: &ToPe, when: &'static str) -> NodeError {
    NodeError::Unexpected {
        said: crate::clipped(word),
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
    neighbours.watch(channel.pulse());
    channel
        .say(FromPe::Ready(Ready {
            message_bytes: sent.bytes,
            made_of: sent.made_of,
            file_system,
            delivered: found.delivered,
            standing: found.standing,
        }))
        .await?;
    let Some(prepare) = prepare(config, channel, &mut neighbours, &assignment).await? else {
        return Ok(());
    };
    let needed = match config.pe == PeId::ROOT {
        true => assignment.tree.len() - 1,
        false => 0,
    };
    let children = assignment.tree.children(config.pe).len();
    if prepare.lengths.len() != needed
        || prepare.child_messages.len() != children
        || prepare.pace.below.len() != children
        || !is_order(&prepare)
        || !is_left_out(&prepare, &assignment)
    {
        return Err(unexpected(&ToPe::Prepare(prepare), "for another tree"));
    }
    channel.say(FromPe::Prepared).await?;
    play_rounds(
        config,
        channel,
        &mut neighbours,
        &store,
        &assignment,
        &prepare,
        round,
    )
    .await
}

fn alarm() -> Result<Alarm, NodeError> {
    Alarm::new().map_err(|source| NodeError::Io {
        what: "an alarm",
        source,
    })
}

async fn play_rounds(
    config: &NodeConfig,
    channel: &mut Coordinator,
    neighbours: &mut Neighbours,
    store: &Store,
    assignment: &Assignment,
    prepare: &Prepare,
    under_way: &mut RoundId,
) -> Result<(), NodeError> {
    let pe = config.pe;
    let mut alarm = alarm()?;
    let pulse = channel.pulse().clone();
    // Not before: what measures the edges is no round's.
    neighbours.count(pulse.counters());
    let ends = neighbours.all_mut().filter_map(|link| link.ends().ok());
    let mut retransmissions = Retransmissions::of(ends);
    for id in (1..=prepare.rounds).map(RoundId) {
        *under_way = id;
        let brief = brief(pe, assignment, prepare);
        let outbox = Outbox::new(store, brief.sends.clone(), assignment.flit_bytes);
        if pe == PeId::ROOT {
            match channel.next_word().await? {
                ToPe::Trigger { round } if round == id => {}
                ToPe::Stop { .. } => return Ok(()),
                ToPe::Abort { .. } => break,
                other => return Err(unexpected(&other, "between rounds")),
            }
        }
        let mut round = Round {
            id,
            pe: Pe::new(assignment.tree.clone(), pe, brief),
            gathers: !assignment.operation.is_scatter(),
            neighbours: &mut *neighbours,
            store,
            outbox,
            held: Vec::new(),
            begun: false,
            flit_bytes: assignment.flit_bytes,
            alarm: &mut alarm,
            pulse: &pulse,
            recorder: Recorder::new(assignment.record_spans),
            report: blank_report(id, expected(pe, assignment.operation, prepare)),
            commits: JoinSet::new(),
        };
        let span = tracing::error_span!("round", round = %id);
        let over = play(channel, &mut round, pe).instrument(span).await;
        let gave_up = !matches!(over, Ok(Over::Played));
        if gave_up {
            round.settle().await;
        }
        let links = round.neighbours.all_mut();
        let report = Report {
            repeated_frames: links.map(Link::take_repeated).sum(),
            retransmitted_packets: retransmissions.take(),
            peak_resident_bytes: process::peak_resident_bytes(),
            spans: round.recorder.into_spans(),
            counts: Box::new(pulse.counters().counts()),
            ..round.report
        };
        match over {
            Ok(Over::Stopped) => return Ok(()),
            Ok(Over::Played | Over::Aborted) => channel.say(FromPe::Report(report)).await?,
            Err(error) => {
                // That the coordinator is gone is found, and counted, when it is told so.
                if !matches!(error, NodeError::Abandoned | NodeError::Channel(_)) {
                    config.tally.failed(error.kind());
                }
                let fault = FromPe::Fault {
                    round: id,
                    peer: error.peer(),
                    reason: error.to_string(),
                    bad_input: error.is_bad_input(pe),
                    output_stands: error.is_standing_output(),
                };
                channel.say(fault).await?;
                channel.say(FromPe::Report(report)).await?;
                tracing::debug!(%error, "the round failed");
            }
        }
        if gave_up {
            break;
        }
    }
    loop {
        match channel.next_word().await? {
            ToPe::Stop { .. } => return Ok(()),
            // Said to all, whether they had given up themselves or not.
            ToPe::Abort { .. } => {}
            other => return Err(unexpected(&other, "after the last round")),
        }
    }
}

/// How a round ended, as far as this PE is concerned.
enum Over {
    /// It is over, and the coordinator wants to hear of it.
    Played,
    /// The coordinator gave it up.
    Aborted,
    /// The coordinator wants the PE to leave.
    Stopped,
}

async fn play(
    channel: &mut Coordinator,
    round: &mut Round<'_>,
    pe: PeId,
) -> Result<Over, NodeError> {
    let id = round.id;
    let is_root = pe == PeId::ROOT;
    let pulse = round.pulse;
    let mut shown = 0;
    let mut tick = tokio::time::interval(limits::PROGRESS);
    let mut collect = is_root;
    let mut played = false;
    let mut playing = std::pin::pin!(round.play());
    while !(played && collect) {
        tokio::select! {
            biased;
            result = &mut playing, if !played => {
                result?;
                played = true;
            }
            word = channel.next_word() => match word? {
                ToPe::Collect { round } if round == id => collect = true,
                ToPe::Stop { .. } => return Ok(Over::Stopped),
                ToPe::Abort { .. } => return Ok(Over::Aborted),
                other => return Err(unexpected(&other, "in a round")),
            },
            _ = tick.tick(), if is_root => {
                let moved = pulse.counters().moved_bytes();
                if moved != shown {
                    shown = moved;
                    channel.say(FromPe::Progress { round: id, bytes: shown }).await?;
                }
            }
        }
    }
    Ok(Over::Played)
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
                    let link = neighbours.child(child).ok_or(NodeError::MissingChildren {
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
    let Payload::Files { input, output, .. } = &assignment.payload else {
        return None;
    };
    match assignment.operation.is_scatter() == (pe == PeId::ROOT) {
        true => Some((input, std::env::temp_dir())),
        false => Some((output, output.clone())),
    }
}

/// Names the file system that matters to a PE; 0 where there are no files.
async fn files_on(pe: PeId, assignment: &Assignment) -> u64 {
    let Some((place, _)) = files_place(pe, assignment) else {
        return 0;
    };
    let place = place.to_owned();
    payload::joined(spawn_blocking(move || file_system(&place)).await)
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
