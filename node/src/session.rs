//! A PE's life: register, connect, measure, play rounds, leave.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use flitcast_proto::pe::{Brief, Operation, Pace, Pe};
use flitcast_proto::wire::control::{
    Arrival, Assignment, FromPe, Payload, Prepare, Register, Report, ToPe,
};
use flitcast_proto::wire::edge::{EdgeFrame, Hello};
use flitcast_proto::wire::{MAX_VERSION, MIN_VERSION, WireError, negotiate};
use flitcast_proto::{PeId, RoundId};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use tokio_util::codec::Framed;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::channel::{ChannelError, PeCodec};
use crate::clock::Alarm;
use crate::link::{Link, LinkError};
use crate::neighbours::Neighbours;
use crate::payload::{self, PayloadError};
use crate::round::{Round, RoundError, Store, blank_report};
use crate::{limits, probe, process};

/// Who a PE is and whom it belongs to.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Which PE.
    pub pe: PeId,
    /// Where the coordinator listens.
    pub coordinator: SocketAddr,
    /// Names the cluster; who does not know it is turned away.
    pub cluster: u64,
}

/// Why a PE ended before it was told to.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The coordinator cannot be reached.
    #[error("cannot reach the coordinator at {addr}: {source}")]
    Coordinator {
        /// Where it should be.
        addr: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The control channel broke.
    #[error("the channel to the coordinator: {0}")]
    Channel(#[from] ChannelError),
    /// The coordinator is gone.
    #[error("the coordinator closed the channel")]
    Abandoned,
    /// The coordinator said something that has no place now.
    #[error("the coordinator said {said} {when}")]
    Unexpected {
        /// What.
        said: String,
        /// When.
        when: &'static str,
    },
    /// The parent cannot be reached.
    #[error("cannot reach the parent {parent} at {addr}: {source}")]
    Parent {
        /// The parent.
        parent: PeId,
        /// Where it should be.
        addr: String,
        /// Why not.
        source: io::Error,
    },
    /// Not all children came.
    #[error("no connection from {}", list(.missing))]
    MissingChildren {
        /// Who is missing.
        missing: Vec<PeId>,
    },
    /// A child does not answer.
    #[error("{child} does not answer the probe of its edge")]
    SilentChild {
        /// The child.
        child: PeId,
    },
    /// A neighbour failed outside a round.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The messages cannot be read.
    #[error("{}", lines(.0))]
    Payload(Vec<PayloadError>),
    /// The round failed.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// The operating system refused something basic.
    #[error("{what}: {source}")]
    Io {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

fn list(pes: &[PeId]) -> String {
    pes.iter()
        .map(PeId::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn lines(errors: &[PayloadError]) -> String {
    errors
        .iter()
        .map(PayloadError::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

impl NodeError {
    fn peer(&self) -> Option<PeId> {
        match self {
            NodeError::Round(error) => error.peer(),
            NodeError::Parent { parent, .. } => Some(*parent),
            NodeError::MissingChildren { missing } => missing.first().copied(),
            _ => None,
        }
    }
}

type Channel = Framed<TcpStream, PeCodec>;

/// Plays one PE until the coordinator says stop, or is gone, or `shutdown` is
/// cancelled. Children connect to `listener`.
pub async fn run(
    config: NodeConfig,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), NodeError> {
    let span = tracing::info_span!("pe", pe = %config.pe);
    let life = live(config, listener).instrument(span);
    tokio::select! {
        result = life => result,
        () = shutdown.cancelled() => Ok(()),
    }
}

async fn live(config: NodeConfig, listener: TcpListener) -> Result<(), NodeError> {
    let mut channel = register(&config, &listener).await?;
    let assignment = match next_word(&mut channel).await? {
        ToPe::Assignment(assignment) => assignment,
        ToPe::Stop => return Ok(()),
        other => return Err(unexpected(&other, "before an assignment")),
    };
    tracing::debug!(parent = ?assignment.parent_listen, "assigned");
    let mut round = RoundId(0);
    let Err(error) = work(&config, &listener, &mut channel, assignment, &mut round).await else {
        return Ok(());
    };
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
    };
    if say(&mut channel, fault).await.is_ok() {
        let told = timeout(limits::AFTER_FAULT, async {
            while !matches!(next_word(&mut channel).await, Ok(ToPe::Stop) | Err(_)) {}
        });
        if told.await.is_ok() {
            return Ok(());
        }
    }
    Err(error)
}

async fn register(config: &NodeConfig, listener: &TcpListener) -> Result<Channel, NodeError> {
    let addr = config.coordinator;
    let failed = |source| NodeError::Coordinator { addr, source };
    let stream = timeout(limits::CONNECT, TcpStream::connect(addr)).await;
    let stream = stream
        .map_err(|_| failed(io::ErrorKind::TimedOut.into()))?
        .map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let mut channel = Framed::new(stream, PeCodec::default());
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
    };
    say(&mut channel, FromPe::Register(register)).await?;
    Ok(channel)
}

async fn say(channel: &mut Channel, word: FromPe) -> Result<(), NodeError> {
    use futures_util::SinkExt as _;
    Ok(channel.send(word).await?)
}

async fn next_word(channel: &mut Channel) -> Result<ToPe, NodeError> {
    use futures_util::StreamExt as _;
    match channel.next().await {
        Some(word) => Ok(word?),
        None => Err(NodeError::Abandoned),
    }
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
    channel: &mut Channel,
    assignment: Assignment,
    round: &mut RoundId,
) -> Result<(), NodeError> {
    let (store, sizes) = open_store(config, &assignment).await?;
    let mut neighbours = connect(config, listener, &assignment).await?;
    say(
        channel,
        FromPe::Ready {
            message_bytes: sizes,
        },
    )
    .await?;
    let Some(prepare) = prepare(channel, &mut neighbours, assignment.flit_bytes).await? else {
        return Ok(());
    };
    say(channel, FromPe::Prepared).await?;
    let mut alarm = Alarm::new().map_err(|source| NodeError::Io {
        what: "an alarm",
        source,
    })?;
    for id in (1..=prepare.rounds).map(RoundId) {
        *round = id;
        if config.pe == PeId::ROOT {
            match next_word(channel).await? {
                ToPe::Trigger { round } if round == id => {}
                ToPe::Stop => return Ok(()),
                ToPe::Abort { .. } => break,
                other => return Err(unexpected(&other, "between rounds")),
            }
        }
        let brief = brief(config.pe, &assignment, &prepare);
        let mut round = Round {
            id,
            pe: Pe::new(assignment.tree.clone(), config.pe, brief),
            gathers: !assignment.operation.is_scatter(),
            neighbours: &mut neighbours,
            store: &store,
            flit_bytes: assignment.flit_bytes,
            alarm: &mut alarm,
            progress: Rc::new(Cell::new(0)),
            report: blank_report(id, expected(config.pe, assignment.operation, &prepare)),
            commits: JoinSet::new(),
        };
        let span = tracing::info_span!("round", round = %id);
        let over = play(channel, &mut round, config.pe).instrument(span).await;
        let gave_up = !matches!(over, Ok(Over::Played));
        if gave_up {
            round.settle().await;
        }
        let report = Report {
            peak_resident_bytes: process::peak_resident_bytes(),
            ..round.report
        };
        match over {
            Ok(Over::Stopped) => return Ok(()),
            Ok(Over::Played | Over::Aborted) => say(channel, FromPe::Report(report)).await?,
            Err(error) => {
                let (peer, reason) = (error.peer(), error.to_string());
                say(
                    channel,
                    FromPe::Fault {
                        round: id,
                        peer,
                        reason,
                    },
                )
                .await?;
                say(channel, FromPe::Report(report)).await?;
                tracing::debug!(%error, "the round failed");
            }
        }
        if gave_up {
            break;
        }
    }
    loop {
        match next_word(channel).await? {
            ToPe::Stop => return Ok(()),
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

async fn play(channel: &mut Channel, round: &mut Round<'_>, pe: PeId) -> Result<Over, NodeError> {
    let id = round.id;
    let is_root = pe == PeId::ROOT;
    let progress = round.progress.clone();
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
            word = next_word(channel) => match word? {
                ToPe::Collect { round } if round == id => collect = true,
                ToPe::Stop => return Ok(Over::Stopped),
                ToPe::Abort { .. } => return Ok(Over::Aborted),
                other => return Err(unexpected(&other, "in a round")),
            },
            _ = tick.tick(), if is_root => {
                if progress.get() != shown {
                    shown = progress.get();
                    say(channel, FromPe::Progress { round: id, bytes: shown }).await?;
                }
            }
        }
    }
    Ok(Over::Played)
}

fn brief(pe: PeId, assignment: &Assignment, prepare: &Prepare) -> Brief {
    let mut bytes = vec![0; assignment.tree.len()];
    if pe == PeId::ROOT {
        bytes[1..].copy_from_slice(&prepare.lengths);
    } else {
        bytes[pe.index()] = prepare.own_bytes;
    }
    let Assignment {
        operation,
        flit_bytes,
        ..
    } = *assignment;
    Brief {
        operation,
        flit_bytes,
        pace: Pace {
            step: prepare.step_ns,
            control_step: 0,
        },
        sends: Brief::sends_of(&assignment.tree, operation, &bytes, flit_bytes, pe),
        subtree_messages: prepare.subtree_messages,
        child_messages: prepare.child_messages.clone(),
    }
}

/// The messages that will come to this PE.
fn expected(pe: PeId, operation: Operation, prepare: &Prepare) -> Vec<Arrival> {
    let arrival = |(source, destination), bytes_total| Arrival {
        source,
        destination,
        bytes_received: 0,
        bytes_total,
        delivered: false,
        at_ns: 0,
    };
    let all = match (operation.is_scatter(), pe == PeId::ROOT) {
        (true, false) => vec![arrival((PeId::ROOT, pe), prepare.own_bytes)],
        (false, true) => {
            let sources = (1..).map(PeId).zip(&prepare.lengths);
            sources
                .map(|(source, &bytes)| arrival((source, PeId::ROOT), bytes))
                .collect()
        }
        _ => Vec::new(),
    };
    all.into_iter()
        .filter(|arrival| arrival.bytes_total > 0)
        .collect()
}

/// Until the rounds can begin: measures and answers measurements. `None` if the
/// coordinator wants the PE to leave.
async fn prepare(
    channel: &mut Channel,
    neighbours: &mut Neighbours,
    flit_bytes: u32,
) -> Result<Option<Prepare>, NodeError> {
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
            word = next_word(channel) => match word? {
                ToPe::ProbeEdge { child } => {
                    let link = neighbours.child(child).ok_or(NodeError::MissingChildren {
                        missing: vec![child],
                    })?;
                    let measured = timeout(limits::PROBE, probe::measure(link, flit_bytes)).await;
                    let (down, up) = measured.map_err(|_| NodeError::SilentChild { child })??;
                    say(channel, FromPe::ProbeResult { child, down, up }).await?;
                }
                ToPe::Prepare(prepare) => return Ok(Some(prepare)),
                ToPe::Stop | ToPe::Abort { .. } => return Ok(None),
                other => return Err(unexpected(&other, "before the rounds")),
            },
            answered = parent => answered?,
        }
    }
}

/// What the messages are made of, and how long those are that this PE sends.
async fn open_store(
    config: &NodeConfig,
    assignment: &Assignment,
) -> Result<(Store, Vec<u64>), NodeError> {
    let (pe, nonce) = (config.pe, config.cluster);
    let scatter = assignment.operation.is_scatter();
    let (input, spread, output, replace) = match assignment.payload.clone() {
        Payload::Files {
            input,
            spread,
            output,
            replace,
        } => (input, spread, output, replace),
        Payload::Synthetic { lengths } => {
            payload::Synthetic::warm_up();
            let sizes = match (scatter, pe == PeId::ROOT) {
                (true, true) => lengths,
                (false, false) => vec![lengths[pe.index() - 1]],
                _ => Vec::new(),
            };
            let store = Store {
                contents: None,
                output: Default::default(),
                replace: false,
                nonce,
            };
            return Ok((store, sizes));
        }
    };
    let pes = assignment.tree.len();
    let read = spawn_blocking(move || {
        let contents = match (scatter, pe == PeId::ROOT) {
            (true, true) => payload::scatter_input(&input, spread, pes)?,
            (false, false) => {
                let mut contents = vec![None; pes];
                contents[pe.index()] = payload::gather_input(&input, pe).map_err(|e| vec![e])?;
                contents
            }
            _ => Vec::new(),
        };
        let sizes = payload::measure_all(&contents)?;
        Ok((contents, sizes))
    });
    let (contents, sizes) = payload::joined(read.await).map_err(NodeError::Payload)?;
    let sizes = match (scatter, pe == PeId::ROOT) {
        (true, true) => sizes[1..].to_vec(),
        (false, false) => vec![sizes[pe.index()]],
        _ => Vec::new(),
    };
    Ok((
        Store {
            contents: Some(contents),
            output,
            replace,
            nonce,
        },
        sizes,
    ))
}

/// Connects to the parent and waits for all children.
async fn connect(
    config: &NodeConfig,
    listener: &TcpListener,
    assignment: &Assignment,
) -> Result<Neighbours, NodeError> {
    let tree = &assignment.tree;
    let to_parent = async {
        match (tree.parent(config.pe), &assignment.parent_listen) {
            (Some(parent), Some(addr)) => {
                connect_to_parent(config, parent, addr, assignment.flit_bytes)
                    .await
                    .map(Some)
            }
            _ => Ok(None),
        }
    };
    let children = accept_children(
        config,
        listener,
        tree.children(config.pe),
        assignment.flit_bytes,
    );
    let (parent, children) = tokio::try_join!(to_parent, children)?;
    Ok(Neighbours::new(parent, children))
}

fn hello(config: &NodeConfig, min_version: u32, max_version: u32) -> EdgeFrame {
    let (cluster, pe) = (config.cluster, config.pe);
    EdgeFrame::Hello(Hello {
        cluster,
        pe,
        min_version,
        max_version,
    })
}

async fn connect_to_parent(
    config: &NodeConfig,
    parent: PeId,
    addr: &str,
    flit_bytes: u32,
) -> Result<Link, NodeError> {
    let failed = |source| NodeError::Parent {
        parent,
        addr: addr.to_owned(),
        source,
    };
    let stream = timeout(limits::CONNECT, TcpStream::connect(addr)).await;
    let stream = stream
        .map_err(|_| failed(io::ErrorKind::TimedOut.into()))?
        .map_err(failed)?;
    let mut link = Link::new(parent, stream, flit_bytes).map_err(failed)?;
    let shake = async {
        link.send_control(&hello(config, MIN_VERSION, MAX_VERSION))
            .await?;
        match link.next_control().await? {
            EdgeFrame::Hello(theirs) if theirs.pe == parent && theirs.cluster == config.cluster => {
                negotiate(theirs.min_version, theirs.max_version).map_err(|e| link.wire(e))
            }
            _ => Err(link.wire(WireError::Malformed("no hello of the parent".to_owned()))),
        }
    };
    timeout(limits::NEIGHBOURS, shake)
        .await
        .map_err(|_| failed(io::ErrorKind::TimedOut.into()))??;
    Ok(link)
}

/// Takes the children's connections. Whoever is no child of this cluster is turned
/// away without a word, and holds nobody up: each is heard in a task of its own.
async fn accept_children(
    config: &NodeConfig,
    listener: &TcpListener,
    children: &[PeId],
    flit_bytes: u32,
) -> Result<Vec<Link>, NodeError> {
    let mut missing = children.to_vec();
    let mut links = Vec::with_capacity(children.len());
    let mut greeting = JoinSet::new();
    let deadline = tokio::time::Instant::now() + limits::NEIGHBOURS;
    while !missing.is_empty() {
        tokio::select! {
            accepted = listener.accept(), if greeting.len() < limits::GREETINGS => match accepted {
                Ok((stream, addr)) => {
                    let config = config.clone();
                    greeting.spawn(async move {
                        let greeted = timeout(limits::HANDSHAKE, greet(&config, stream, flit_bytes));
                        greeted.await.unwrap_or_else(|_| Err("it said nothing".to_owned()))
                            .map_err(|why| (addr, why))
                    });
                }
                // Out of descriptors, say: others may close some.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(greeted) = greeting.join_next() => match payload::joined(greeted) {
                Ok(link) => match missing.iter().position(|&child| child == link.peer()) {
                    Some(place) => {
                        missing.swap_remove(place);
                        links.push(link);
                    }
                    None => tracing::warn!(peer = %link.peer(), "no child of ours, or twice"),
                },
                Err((addr, why)) => tracing::warn!(%addr, why, "turned a connection away"),
            },
            () = tokio::time::sleep_until(deadline) => {
                return Err(NodeError::MissingChildren { missing });
            }
        }
    }
    Ok(links)
}

async fn greet(config: &NodeConfig, stream: TcpStream, flit_bytes: u32) -> Result<Link, String> {
    // Who it is, it has yet to say; and until then it may send no more than that.
    let io = |e: io::Error| e.to_string();
    stream.set_nodelay(true).map_err(io)?;
    let mut link = Link::new(config.pe, stream, 0).map_err(io)?;
    let theirs = match link.next_control().await.map_err(|e| e.to_string())? {
        EdgeFrame::Hello(hello) => hello,
        _ => return Err("it did not say hello".to_owned()),
    };
    if theirs.cluster != config.cluster {
        return Err("it is of another cluster".to_owned());
    }
    let version = negotiate(theirs.min_version, theirs.max_version).map_err(|e| e.to_string())?;
    let answer = hello(config, version, version);
    link.send_control(&answer)
        .await
        .map_err(|e| e.to_string())?;
    link.is_known_to_be(theirs.pe, flit_bytes);
    Ok(link)
}
