//! Messages between the coordinator and a PE. Parsing checks each value once: trees are valid, flit
//! sizes are in their range, and ids belong to PEs.

mod brief;
mod counts;
mod footprint;
mod from_pe;
mod join;
mod kind;
mod pace;
mod prefix;
mod span;
mod streams;
mod task;
mod to_pe;
mod version;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prost::Message as _;

use super::flit::Digest;
use super::{Secret, WireError, pb};
use crate::calibration::Exchange;
use crate::cost::{Edge, FileCosts, Link, MadeOf};
use crate::items::{Address, Message};
use crate::ops::{Brief, Operation};
use crate::spans::Span;
use crate::streams::Streams;
use crate::{DeliveryId, MessageId, PeId, RoundId, Tree};

pub use counts::{Counts, EdgeCounts};
pub use join::{Join, TimeoutsNs, Welcome};
pub use prefix::Prefix;
pub use task::{End, Ran, Run};
pub use version::Version;

/// Message from a PE to the coordinator.
#[derive(Clone, Debug, PartialEq)]
pub enum FromPe {
    /// First message of a PE that was not started for this launch.
    Join(Join),
    /// First message of a PE, or the second one of a PE that joins.
    Register(Register),
    /// The PE is connected to its neighbours and has examined its files.
    Ready(Ready),
    /// The result of measuring an edge.
    ProbeResult {
        /// The lower end of the edge.
        child: PeId,
        /// The bytes sent over the edge, with their times.
        exchanges: Vec<Exchange>,
    },
    /// The PE is ready for the first round.
    Prepared,
    /// The result of a round at this PE.
    Report(Report),
    /// Number of bytes that P0 has sent or received so far.
    Progress {
        /// The round.
        round: RoundId,
        /// Number of bytes.
        bytes: u64,
    },
    /// The PE cannot continue.
    Fault {
        /// The round; 0 before the first.
        round: RoundId,
        /// The neighbour at fault, if there is one.
        peer: Option<PeId>,
        /// The reason.
        reason: String,
        /// Whether a message cannot be read at its source, so that excluding a PE does not help.
        bad_input: bool,
        /// Whether a message cannot become visible, since its destination exists.
        output_stands: bool,
        /// Whether the neighbour at fault has closed the connection; it may report a better reason.
        hung_up: bool,
        /// Messages, or parts of them, whose source is not the version that was measured or
        /// delivered.
        changed: Vec<MessageId>,
    },
    /// The answer to a [`ToPe::Ping`].
    Pong(Pong),
    /// A line from the standard error of a command, or a part of a long line.
    Line(String),
    /// The answer to a [`ToPe::Run`].
    Ran(Ran),
    /// The answer to a [`ToPe::Clear`].
    Cleared {
        /// The paths that could not be removed, with the reasons; empty if nothing is left.
        left: String,
    },
    /// The answer to a [`ToPe::MeasureFiles`]; `None` if the costs cannot be measured.
    FilesMeasured(Option<FileCosts>),
    /// The answer to a [`ToPe::MeasureHost`].
    HostMeasured {
        /// The output of `flitcast calibrate --host --format json`; empty if it fails.
        found: String,
    },
    /// The answer to a [`ToPe::CheckPrefixes`].
    PrefixesChecked {
        /// The XXH3-128 of each prefix, in the order of the request; zeros for a prefix that cannot
        /// be read.
        digests: Vec<Digest>,
    },
    /// The answer to a [`ToPe::ReadClock`].
    ClockRead {
        /// The monotonic clock of the PE's host.
        at_ns: u64,
    },
}

/// Message from the coordinator to a PE.
#[derive(Clone, Debug, PartialEq)]
pub enum ToPe {
    /// The answer to a [`FromPe::Join`].
    Welcome(Welcome),
    /// The negative answer to a [`FromPe::Join`].
    Refusal {
        /// The reason.
        reason: String,
    },
    /// The position of the PE in the cluster, and its task.
    Assignment(Assignment),
    /// Request to measure the edge to a child.
    ProbeEdge {
        /// The lower end of the edge.
        child: PeId,
        /// Time for the measurement; 0 for the minimum that comparing the two clocks takes.
        budget_ns: u64,
    },
    /// Request to measure the costs of files on the PE's file system.
    MeasureFiles,
    /// Request to measure the costs of processes on the PE's host.
    MeasureHost {
        /// Whether connections are encrypted.
        encrypted: bool,
    },
    /// Request for the digests of prefixes of messages that the PE sends or receives.
    CheckPrefixes {
        /// The prefixes.
        prefixes: Vec<Prefix>,
    },
    /// The schedule of the rounds.
    Prepare(Prepare),
    /// Request for the time, before a round that all PEs begin at one time.
    ReadClock,
    /// Request to begin a round: to P0, or to every PE if all begin by the clock.
    Trigger {
        /// The round.
        round: RoundId,
        /// When to begin, on the monotonic clock of the PE's host; 0 for at once.
        at_ns: u64,
    },
    /// Request to report a round when it has ended.
    Collect {
        /// The round.
        round: RoundId,
    },
    /// Request to leave the cluster.
    Stop {
        /// Whether the job has ended, so that the PE removes its receipts first.
        over: bool,
    },
    /// Request to give a round up, to remove partial messages and to report those that arrived.
    Abort {
        /// The round.
        round: RoundId,
        /// The reason.
        reason: String,
    },
    /// Request for an immediate [`FromPe::Pong`].
    Ping {
        /// Whether to check if the neighbours can be reached, since no byte has moved for a while.
        look: bool,
    },
    /// Request to run a command; replaces an assignment.
    Run(Run),
    /// Request to remove this PE's part of a working folder; replaces an assignment.
    Clear {
        /// The absolute path of the working folder.
        work: PathBuf,
    },
}

/// Sign of life of a PE, with its current activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pong {
    /// Time since the PE last read a byte from an edge or wrote one to it.
    pub quiet_ms: u64,
    /// Time since the PE last finished an entry of a message on its disk, or found one there to
    /// send.
    pub files_quiet_ms: u64,
    /// Current activity.
    pub doing: Doing,
    /// Neighbours whose hosts do not acknowledge retransmitted data; empty unless requested.
    pub unreached: Vec<PeId>,
    /// The counts so far.
    pub counts: Counts,
}

/// Activity of a PE, as far as it concerns other PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// There is no round, or the PE's part of it has ended.
    Idle,
    /// The PE is working, or waits for its disk or for a time.
    Working,
    /// The PE waits until this neighbour accepts bytes.
    Sending(PeId),
    /// The PE waits for the rest of a message from this neighbour.
    Receiving(PeId),
    /// The PE waits for the next message of any neighbour.
    Listening,
}

/// First message of a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Id of the cluster.
    pub cluster: u64,
    /// The PE that sends the message.
    pub pe: PeId,
    /// Oldest protocol version offered.
    pub min_version: u32,
    /// Newest protocol version offered.
    pub max_version: u32,
    /// Address for connections of the PE's children: "address:port".
    pub listen: String,
    /// Process id.
    pub pid: u32,
    /// Name of the PE's monotonic clock: equal names are one clock. Empty if unknown.
    pub clock: String,
    /// Name of the processor by the kernel; empty if unknown.
    pub processor: String,
    /// Number of cores that the PE may run on; 0 if unknown.
    pub cores: u32,
    /// Proof that the PE belongs to this launch.
    pub secret: Secret,
}

/// Entries that a PE has found at the places of its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Lengths in bytes of the messages sent by this PE, by id: M_1..M_n from P0 in a scatter, its
    /// own message from another PE in a gather.
    pub message_bytes: Vec<u64>,
    /// Deliveries to this PE that exist and have a receipt of this job.
    pub delivered: Vec<DeliveryId>,
    /// Deliveries to this PE whose places have another entry, which must not be replaced.
    pub standing: Vec<DeliveryId>,
    /// Number of entries and of cold bytes of each message of files, in the order of
    /// `message_bytes`.
    pub made_of: Vec<MadeOf>,
    /// Number of the file system that the PE writes messages to, or reads its own from, among those
    /// of its host; 0 without files.
    pub file_system: u64,
    /// States of the sources of messages made of files, in the order of `message_bytes`.
    pub states: Vec<u64>,
    /// Digests in the receipts of `delivered`, in the same order.
    pub delivered_digests: Vec<Digest>,
    /// Lengths in bytes of the entries at `standing`, read as messages, in the same order; 0 if an
    /// entry cannot be a message.
    pub standing_bytes: Vec<u64>,
    /// Digests of the entries at `standing`, in the same order.
    pub standing_digests: Vec<Digest>,
    /// Deliveries to this PE of which an earlier run of the job left a prefix, with its length in
    /// bytes.
    pub prefixes: Vec<(DeliveryId, u64)>,
}

/// The position of a PE in the cluster, and its task.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// The protocol version chosen.
    pub version: u32,
    /// The whole tree.
    pub tree: Arc<Tree>,
    /// Address of the PE's parent; `None` for P0.
    pub parent_listen: Option<String>,
    /// PEs that are connected to the PE but not neighbours in the tree, by index.
    pub peers: Vec<Peer>,
    /// The algorithm of the rounds.
    pub operation: Operation,
    /// Payload bytes of a full flit while edges are measured; the brief has those of the rounds.
    pub flit_bytes: u32,
    /// The payload of the messages.
    pub payload: Payload,
    /// Properties of the PE's shaped edges, by their lower ends.
    pub links: Vec<(PeId, Edge)>,
    /// Whether reports hold spans.
    pub record_spans: bool,
    /// Deliveries that are null whatever the payload is, since they were made before; in increasing
    /// order.
    pub left_out: Vec<DeliveryId>,
    /// Id of the job that the cluster is a part of, used in the names of its receipts.
    pub undertaking: u64,
    /// Whether a record of the job is on a disk, so that it can be resumed if the coordinator dies.
    pub recorded: bool,
    /// For P0 in a scatter, the output of a gather that follows.
    pub later_output: Option<PathBuf>,
    /// The other trees, if messages use several at once.
    pub lanes: Vec<Lane>,
    /// Whether the PE has a separate link to each neighbour: shaped links share no rate.
    pub own_links: bool,
    /// Versions, known from earlier runs of the job, of the messages of files that the PE sends or
    /// receives.
    pub versions: Vec<Version>,
    /// Whether no round follows, so that nothing in an output may change.
    pub dry_run: bool,
}

/// Another tree of the same PEs from the same root, which carries a part of each message over
/// separate connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// The whole tree.
    pub tree: Arc<Tree>,
    /// Address of the PE's parent in this tree; `None` for P0.
    pub parent_listen: Option<String>,
    /// Properties of the PE's shaped edges, by their lower ends.
    pub links: Vec<(PeId, Edge)>,
}

/// A PE that is connected to this one outside of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// The other PE.
    pub pe: PeId,
    /// Address of the other PE if this PE makes the connection; `None` if the other one does.
    pub listen: Option<String>,
    /// Properties of a shaped link from this PE, and of the one to it.
    pub link: Option<[Link; 2]>,
}

impl Assignment {
    /// Returns whether a delivery is null whatever the payload is: it was made before, or one of
    /// its ends is absent.
    pub fn leaves_out(&self, delivery: DeliveryId) -> bool {
        !self.operation.can_deliver(&self.tree, delivery)
            || self.left_out.binary_search(&delivery).is_ok()
    }

    /// Returns whether a PE must receive a message.
    pub fn owes(&self, message: MessageId, to: PeId) -> bool {
        !self.leaves_out(self.operation.delivery(&self.tree, message, to))
    }

    /// Returns whether any PE must receive a message.
    pub fn owes_anybody(&self, message: Address) -> bool {
        let mut ends = message.ends(&self.tree);
        ends.any(|pe| self.owes(message.id, pe))
    }
}

/// Payload of the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Synthetic bytes, which receivers check.
    Synthetic {
        /// Lengths in bytes: one for each message id or, if the root is an end of every message and
        /// in a broadcast, one for each other PE.
        lengths: Vec<u64>,
    },
    /// Files.
    Files {
        /// Path that P0 reads in a scatter, and every other PE in a gather.
        input: PathBuf,
        /// Whether all files below `input` are dealt; for a scatter only.
        spread: bool,
        /// Path that every other PE writes to in a scatter, and P0 in a gather.
        output: PathBuf,
        /// Whether an existing entry at a destination is replaced.
        replace: bool,
        /// Whether PEs have separate files: `input` is the PE's own entry, and `output` all that it
        /// receives. Otherwise these are entries named after the PE.
        apart: bool,
    },
}

impl Payload {
    /// Returns the output of messages made of files.
    pub fn output(&self) -> Option<&Path> {
        match self {
            Payload::Files { output, .. } => Some(output),
            Payload::Synthetic { .. } => None,
        }
    }

    /// Returns whether PEs have separate files, whose paths do not contain their names.
    pub fn is_apart(&self) -> bool {
        matches!(self, Payload::Files { apart: true, .. })
    }
}

/// Schedule of the rounds for one PE.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    /// Input of the PE's state machine.
    pub brief: Brief,
    /// Number of rounds, counted from 1.
    pub rounds: u64,
    /// Input of its state machine on each further tree ([`crate::ops::parts`]).
    pub lanes: Vec<Brief>,
    /// Prefixes that the source and all destinations have in common, of messages that this PE sends
    /// or receives. Only the rests are sent; the briefs have the lengths of the rests.
    pub prefixes: Vec<Prefix>,
}

/// Result of a round at one PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The round.
    pub round: RoundId,
    /// Whether the round was completed; false if it was given up.
    pub complete: bool,
    /// Time at which the round began, on the monotonic clock of P0's host; 0 at other PEs.
    pub started_ns: u64,
    /// Time at which a triggered PE began, which may be a little later, on this host's monotonic
    /// clock; 0 at other PEs.
    pub began_ns: u64,
    /// The messages with this PE as destination.
    pub arrivals: Vec<Arrival>,
    /// Number of flits that had to wait for a busy port.
    pub collisions: u64,
    /// Maximum number of flits of other PEs' messages in user memory.
    pub peak_buffered_flits: u64,
    /// Maximum resident set of the process in bytes.
    pub peak_resident_bytes: u64,
    /// Start of the PE's own message; `None` if no schedule defines it, or before it.
    pub own_start: Option<OwnStart>,
    /// Number of frames of earlier rounds, which were dropped.
    pub late_frames: u64,
    /// Number of frames received before on the same edge, since the last report; they were dropped.
    pub repeated_frames: u64,
    /// Time that the PE has waited for its files with messages to send or to receive.
    pub files_ns: u64,
    /// Number of packets sent by this PE that TCP has retransmitted since the last report; 0 if the
    /// kernel does not report it.
    pub retransmitted_packets: u64,
    /// Activity of the PE's ports, if the assignment requests it: the first
    /// [`MAX_REPORT_SPANS`](super::MAX_REPORT_SPANS) spans.
    pub spans: Vec<Span>,
    /// The counts at the end of the round.
    pub counts: Box<Counts>,
    /// Certificates, order and streams of a gather by certification, on this host's monotonic clock.
    pub streams: Streams,
}

impl Report {
    /// Adds the report of another part of the round, which runs on another tree at the same time.
    /// The arrivals of a message's parts are combined.
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

    /// Returns the report of a round in which these messages are expected and nothing has happened.
    pub fn blank(round: RoundId, arrivals: Vec<Arrival>) -> Report {
        Report {
            round,
            complete: false,
            started_ns: 0,
            began_ns: 0,
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
            streams: Streams::default(),
        }
    }
}

/// The start of a PE's own message in a gather, on its host's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnStart {
    /// Time defined by the order or the wakeup call.
    pub due_ns: u64,
    /// Time at which its first flit was passed to the socket.
    pub began_ns: u64,
}

/// A message at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The message.
    pub message: MessageId,
    /// The PE that sends it.
    pub source: PeId,
    /// The PE that receives it.
    pub destination: PeId,
    /// Number of bytes that have arrived.
    pub bytes_received: u64,
    /// Length of the message in bytes.
    pub bytes_total: u64,
    /// Whether the message is complete, verified and visible.
    pub delivered: bool,
    /// Time at which its last byte was read from the link, on this host's monotonic clock.
    pub at_ns: u64,
    /// Time of delivery on the same clock; 0 if it was not delivered.
    pub delivered_ns: u64,
    /// XXH3-128 of the files written for a delivered message.
    pub digest: Option<Digest>,
}

impl Arrival {
    /// Combines the arrivals of the parts of each message; returns those of whole messages, by id.
    pub fn joined(parts: impl IntoIterator<Item = Arrival>) -> Vec<Arrival> {
        let mut joined: BTreeMap<MessageId, Arrival> = BTreeMap::new();
        for part in parts {
            let whole = joined.entry(part.message);
            whole.and_modify(|it| it.add_part(&part)).or_insert(part);
        }
        joined.into_values().collect()
    }

    /// Adds the arrival of another part of the message.
    fn add_part(&mut self, part: &Arrival) {
        self.bytes_received += part.bytes_received;
        self.bytes_total += part.bytes_total;
        self.delivered &= part.delivered;
        self.at_ns = self.at_ns.max(part.at_ns);
        self.delivered_ns = match self.delivered {
            true => self.delivered_ns.max(part.delivered_ns),
            false => 0,
        };
        self.digest = self.digest.or(part.digest);
    }

    /// Returns the arrival of a message at a PE, before its first byte.
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
            digest: None,
        }
    }
}

/// Decodes a control frame, unless its lists would take more memory than its bytes allow.
fn decode(body: &[u8]) -> Result<pb::control::Kind, WireError> {
    footprint::check(body)?;
    let kind = pb::Control::decode(body)?.kind;
    kind.ok_or_else(|| missing("a control message"))
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
