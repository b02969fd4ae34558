//! The channel between the coordinator and a PE. What comes in is checked here,
//! once: a tree is a tree, a flit size is in its range, an id is a PE's.

mod brief;
mod counts;
mod from_pe;
mod join;
mod pace;
mod span;
mod task;
mod to_pe;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Secret, WireError, pb};
use crate::calibration::Exchange;
use crate::cost::{Edge, FileCosts, Link, MadeOf};
use crate::items::{Address, Message};
use crate::ops::{Brief, Operation};
use crate::spans::Span;
use crate::{DeliveryId, MessageId, PeId, RoundId, Tree};

pub use counts::{Counts, EdgeCounts};
pub use join::{Join, TimeoutsNs, Welcome};
pub use task::{End, Ran, Run};

/// What a PE says to the coordinator.
#[derive(Clone, Debug, PartialEq)]
pub enum FromPe {
    /// The first word of a PE that was not started for this launch.
    Join(Join),
    /// The first word, or the second of one that joins.
    Register(Register),
    /// Connected to its neighbours, with its files looked at.
    Ready(Ready),
    /// An edge is measured.
    ProbeResult {
        /// The edge's lower end.
        child: PeId,
        /// What was exchanged over it, and when.
        exchanges: Vec<Exchange>,
    },
    /// Ready for the first round.
    Prepared,
    /// A round, seen from this PE.
    Report(Report),
    /// Bytes that P0 has sent or received so far.
    Progress {
        /// The round.
        round: RoundId,
        /// Bytes.
        bytes: u64,
    },
    /// The PE cannot go on.
    Fault {
        /// The round; 0 before the first.
        round: RoundId,
        /// The neighbour at fault, where there is one.
        peer: Option<PeId>,
        /// Why.
        reason: String,
        /// A message cannot be read at its source: whoever is left out, that stays as it
        /// is.
        bad_input: bool,
        /// A message cannot become visible, since something stands in its place.
        output_stands: bool,
        /// The neighbour at fault has ended the connection, and may know better why.
        hung_up: bool,
    },
    /// The answer to a [`ToPe::Ping`].
    Pong(Pong),
    /// What a command says on stderr, a line or a part of a long one.
    Line(String),
    /// The answer to a [`ToPe::Run`].
    Ran(Ran),
    /// The answer to a [`ToPe::Clear`].
    Cleared {
        /// What could not be removed, and why; empty if all is gone.
        left: String,
    },
    /// The answer to a [`ToPe::MeasureFiles`]; `None` where that cannot be measured.
    FilesMeasured(Option<FileCosts>),
    /// The answer to a [`ToPe::MeasureHost`].
    HostMeasured {
        /// What `flitcast calibrate --host --format json` says; empty where it cannot tell.
        found: String,
    },
}

/// What the coordinator says to a PE.
#[derive(Clone, Debug, PartialEq)]
pub enum ToPe {
    /// The answer to a [`FromPe::Join`].
    Welcome(Welcome),
    /// The other answer: why not.
    Refusal {
        /// Why.
        reason: String,
    },
    /// Where the PE stands and what it will do.
    Assignment(Assignment),
    /// Measure the edge to a child.
    ProbeEdge {
        /// The edge's lower end.
        child: PeId,
        /// What it should take; 0: only as long as the two clocks need.
        budget_ns: u64,
    },
    /// Find out what files cost on the PE's file system.
    MeasureFiles,
    /// Find out what processes cost where the PE runs.
    MeasureHost {
        /// With encrypted connections.
        encrypted: bool,
    },
    /// What the rounds need to know.
    Prepare(Prepare),
    /// P0 begins a round.
    Trigger {
        /// The round.
        round: RoundId,
    },
    /// Report a round when it is over.
    Collect {
        /// The round.
        round: RoundId,
    },
    /// Leave.
    Stop {
        /// The undertaking is over: remove its receipts before.
        over: bool,
    },
    /// Give the round up, undo what is half done, and report what arrived.
    Abort {
        /// The round.
        round: RoundId,
        /// Why.
        reason: String,
    },
    /// Say at once that you live, and what you are doing.
    Ping {
        /// Nothing has moved for a while: look whether the neighbours can be reached.
        look: bool,
    },
    /// Instead of an assignment: run a command.
    Run(Run),
    /// Instead of an assignment: remove this PE's part of a working folder.
    Clear {
        /// An absolute path.
        work: PathBuf,
    },
}

/// That a PE lives, and what it is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pong {
    /// Since it last read a byte from an edge, or wrote one to it.
    pub quiet_ms: u64,
    /// Since it last finished a file, directory or symlink of a message on its disk, or
    /// found one there to be sent.
    pub files_quiet_ms: u64,
    /// What it is doing.
    pub doing: Doing,
    /// Neighbours whose hosts do not acknowledge what was sent, and sent again; empty
    /// if nobody asked.
    pub unreached: Vec<PeId>,
    /// What it has counted until now.
    pub counts: Counts,
}

/// What a PE is doing, as far as others can have to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Nothing: no round, or its part in one is over.
    Idle,
    /// At work, or waiting for its disk or the clock.
    Working,
    /// Waiting until this neighbour takes bytes.
    Sending(PeId),
    /// Waiting for the rest of a message of this neighbour.
    Receiving(PeId),
    /// Between messages, waiting for whoever is next.
    Listening,
}

/// A PE's first word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Names the cluster.
    pub cluster: u64,
    /// Who is speaking.
    pub pe: PeId,
    /// The oldest protocol version offered.
    pub min_version: u32,
    /// The newest protocol version offered.
    pub max_version: u32,
    /// Where the PE's children reach it: "address:port".
    pub listen: String,
    /// Its process.
    pub pid: u32,
    /// Names the monotonic clock that the PE reads: equal names are one clock. Empty
    /// where the system does not tell.
    pub clock: String,
    /// The processor, as the kernel names it; empty where it does not tell.
    pub processor: String,
    /// The cores that the PE may run on; 0 where the system does not tell.
    pub cores: u32,
    /// That it is of this launch.
    pub secret: Secret,
}

/// What a PE has found where its messages lie, and where they are to arrive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Bytes of the messages it is the source of, by id: M_1..M_n from P0 in a scatter, its own
    /// from another PE in a gather.
    pub message_bytes: Vec<u64>,
    /// Of the messages it is the destination of, those that are there with a receipt of this
    /// undertaking.
    pub delivered: Vec<DeliveryId>,
    /// Those whose place is taken by something else, which is not to be replaced.
    pub standing: Vec<DeliveryId>,
    /// Of messages made of files, what each is made of, as in `message_bytes`.
    pub made_of: Vec<MadeOf>,
    /// Names the file system that it writes messages to, or reads its own from, among those
    /// of its host; 0 where there are no files.
    pub file_system: u64,
}

/// Where a PE stands and what it will do.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The protocol version chosen.
    pub version: u32,
    /// The whole tree.
    pub tree: Arc<Tree>,
    /// Where the PE's parent listens; `None` for P0.
    pub parent_listen: Option<String>,
    /// With whom the PE is connected that is no neighbour in the tree, by index.
    pub peers: Vec<Peer>,
    /// What the rounds do.
    pub operation: Operation,
    /// Payload bytes of a full flit while edges are measured; those of the rounds the brief says.
    pub flit_bytes: u32,
    /// What the messages are made of.
    pub payload: Payload,
    /// What those of its edges are to be like that are shaped, by their lower ends.
    pub links: Vec<(PeId, Edge)>,
    /// Whether reports hold spans.
    pub record_spans: bool,
    /// Deliveries that are null whatever the payload says, in increasing order: they were made
    /// before.
    pub left_out: Vec<DeliveryId>,
    /// Names the undertaking that the cluster is a part of, in the names of its receipts.
    pub undertaking: u64,
    /// Whether a record of it is on a disk, so that somebody may go on with it should the
    /// coordinator die.
    pub recorded: bool,
    /// P0 in a scatter: where a gather will deliver that follows.
    pub later_output: Option<PathBuf>,
    /// The further trees, where messages go on several at once.
    pub lanes: Vec<Lane>,
    /// The PE has a link of its own to each neighbour: shaped ones share nothing.
    pub own_links: bool,
}

/// A further tree of the same PEs from the same root, on which a part of the messages goes, over
/// connections of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The whole tree.
    pub tree: Arc<Tree>,
    /// Where the PE's parent in it listens; `None` for P0.
    pub parent_listen: Option<String>,
    /// What those of its edges are to be like that are shaped, by their lower ends.
    pub links: Vec<(PeId, Edge)>,
}

/// Somebody with whom a PE is connected beside the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Who.
    pub pe: PeId,
    /// Where it listens, if the PE is to call it; else it will call.
    pub listen: Option<String>,
    /// If the link is to be shaped: what it is like away from the PE, and towards it.
    pub link: Option<[Link; 2]>,
}

impl Assignment {
    /// Whether nothing is owed in this delivery, whatever the payload says: it was made before,
    /// or one of its ends is absent.
    pub fn leaves_out(&self, delivery: DeliveryId) -> bool {
        !self.operation.can_deliver(&self.tree, delivery)
            || self.left_out.binary_search(&delivery).is_ok()
    }

    /// Whether a message is owed to a PE.
    pub fn owes(&self, message: MessageId, to: PeId) -> bool {
        !self.leaves_out(self.operation.delivery(&self.tree, message, to))
    }

    /// Whether a message is owed to anybody.
    pub fn owes_anybody(&self, message: Address) -> bool {
        let mut ends = message.ends(&self.tree);
        ends.any(|pe| self.owes(message.id, pe))
    }
}

/// What the messages are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Bytes that every receiver can check.
    Synthetic {
        /// Bytes of each that may be there, by id: where the root is an end of every message, of
        /// M_1..M_n, and in a broadcast, too, one for each PE that is not the root.
        lengths: Vec<u64>,
    },
    /// Files.
    Files {
        /// Read by P0 in a scatter, by every other PE in a gather.
        input: PathBuf,
        /// Scatter only: deal all files below `input`.
        spread: bool,
        /// Written by every other PE in a scatter, by P0 in a gather.
        output: PathBuf,
        /// An entry that stands at the destination already is replaced.
        replace: bool,
        /// Each PE has files of its own: `input` is what it has itself, and `output` all that it
        /// gets, where these would else be entries named after it.
        apart: bool,
    },
}

impl Payload {
    /// Where messages made of files arrive.
    pub fn output(&self) -> Option<&Path> {
        match self {
            Payload::Files { output, .. } => Some(output),
            Payload::Synthetic { .. } => None,
        }
    }

    /// Whether each PE has files of its own, without its name.
    pub fn is_apart(&self) -> bool {
        matches!(self, Payload::Files { apart: true, .. })
    }
}

/// What the rounds need to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    /// What the PE's state machine is told.
    pub brief: Brief,
    /// How many rounds there will be, counted from 1.
    pub rounds: u64,
    /// What it is told for each further tree ([`crate::ops::parts`]).
    pub lanes: Vec<Brief>,
}

/// A round, seen from one PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The round.
    pub round: RoundId,
    /// False where the round was given up.
    pub complete: bool,
    /// When P0 took the trigger, on this host's monotonic clock.
    pub started_ns: u64,
    /// The messages that this PE is the destination of.
    pub arrivals: Vec<Arrival>,
    /// Flits that had to wait for a busy port.
    pub collisions: u64,
    /// Flits of messages not its own, in user memory, high-water mark.
    pub peak_buffered_flits: u64,
    /// The process's high-water mark.
    pub peak_resident_bytes: u64,
    /// When the PE's own message started; `None` where no schedule says when it is to,
    /// and before it has.
    pub own_start: Option<OwnStart>,
    /// Frames of earlier rounds, which were dropped.
    pub late_frames: u64,
    /// Frames that had come before on the same edge, since the last report; dropped.
    pub repeated_frames: u64,
    /// For how long the PE has waited for its files, with messages to send or to take.
    pub files_ns: u64,
    /// Packets that TCP has sent again on the PE's edges, since the last report: those that this
    /// end had sent. 0 where the kernel cannot be asked.
    pub retransmitted_packets: u64,
    /// What its ports did, if the assignment asks for it: the first
    /// [`MAX_REPORT_SPANS`](super::MAX_REPORT_SPANS).
    pub spans: Vec<Span>,
    /// What it had counted when the round was over.
    pub counts: Box<Counts>,
}

impl Report {
    /// One of the parts that a PE has in a round, which are played on several trees at once: the
    /// arrival of a message is that of its parts.
    #[must_use]
    pub fn with_part(mut self, part: Report) -> Report {
        self.arrivals = Arrival::joined(self.arrivals.into_iter().chain(part.arrivals));
        self.collisions += part.collisions;
        self.peak_buffered_flits += part.peak_buffered_flits;
        self.own_start = self.own_start.or(part.own_start);
        self.late_frames += part.late_frames;
        self.repeated_frames += part.repeated_frames;
        self.files_ns = self.files_ns.max(part.files_ns);
        self.retransmitted_packets += part.retransmitted_packets;
        let room = super::MAX_REPORT_SPANS.saturating_sub(self.spans.len());
        self.spans.extend(part.spans.into_iter().take(room));
        self
    }

    /// Of a round in which nothing has happened but that these messages are expected.
    pub fn blank(round: RoundId, arrivals: Vec<Arrival>) -> Report {
        Report {
            round,
            complete: false,
            started_ns: 0,
            arrivals,
            collisions: 0,
            peak_buffered_flits: 0,
            peak_resident_bytes: 0,
            own_start: None,
            late_frames: 0,
            files_ns: 0,
            repeated_frames: 0,
            retransmitted_packets: 0,
            spans: Vec::new(),
            counts: Box::default(),
        }
    }
}

/// The start of a PE's own message in a gather, on its host's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnStart {
    /// When it was due, by the order or the wakeup call.
    pub due_ns: u64,
    /// When its first flit was handed to the socket.
    pub began_ns: u64,
}

/// A message at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Which it is.
    pub message: MessageId,
    /// Where it comes from.
    pub source: PeId,
    /// Where it is.
    pub destination: PeId,
    /// Bytes that have come.
    pub bytes_received: u64,
    /// Bytes that it has.
    pub bytes_total: u64,
    /// Whole, its digest verified, and visible.
    pub delivered: bool,
    /// When its last byte was taken from the link, on this host's monotonic clock.
    pub at_ns: u64,
    /// When it was delivered, on the same clock; 0 if it is not.
    pub delivered_ns: u64,
}

impl Arrival {
    /// Those of whole messages, by id, where several are of parts of one.
    pub fn joined(parts: impl IntoIterator<Item = Arrival>) -> Vec<Arrival> {
        let mut joined: BTreeMap<MessageId, Arrival> = BTreeMap::new();
        for part in parts {
            let whole = joined.entry(part.message);
            whole.and_modify(|it| it.add_part(&part)).or_insert(part);
        }
        joined.into_values().collect()
    }

    /// Another part of the message arrives as this one says.
    fn add_part(&mut self, part: &Arrival) {
        self.bytes_received += part.bytes_received;
        self.bytes_total += part.bytes_total;
        self.delivered &= part.delivered;
        self.at_ns = self.at_ns.max(part.at_ns);
        self.delivered_ns = match self.delivered {
            true => self.delivered_ns.max(part.delivered_ns),
            false => 0,
        };
    }

    /// Of a message that is to come to a PE.
    pub fn of(message: &Message, at: PeId) -> Arrival {
        Arrival {
            message: message.id,
            source: message.source,
            destination: at,
            bytes_received: 0,
            bytes_total: message.bytes,
            delivered: false,
            at_ns: 0,
            delivered_ns: 0,
        }
    }
}

fn missing(what: &str) -> WireError {
    WireError::malformed(format!("{what} is missing"))
}

fn put_link(link: Link) -> pb::Link {
    pb::Link {
        latency_ns: link.latency_ns,
        ns_per_byte: link.ns_per_byte,
        burst_bytes: link.burst_bytes,
        setup_ns: link.setup_ns,
    }
}

fn parse_link(link: Option<pb::Link>) -> Result<Link, WireError> {
    let link = link.ok_or_else(|| missing("a link"))?;
    let link = Link {
        latency_ns: link.latency_ns,
        ns_per_byte: link.ns_per_byte,
        burst_bytes: link.burst_bytes,
        setup_ns: link.setup_ns,
    };
    let Link {
        latency_ns,
        setup_ns,
        ns_per_byte,
        burst_bytes,
    } = link;
    let numbers = [latency_ns, setup_ns, ns_per_byte, burst_bytes];
    match numbers.iter().all(|x| x.is_finite() && *x >= 0.0) {
        true => Ok(link),
        false => Err(WireError::malformed("a link with nonsense numbers")),
    }
}
