//! Messages between the coordinator and a PE. Parsing checks each value once: trees are valid, flit
//! sizes are in their range, and ids belong to PEs.

mod counts;
mod footprint;
mod kinds;
mod pe_schedule;
mod register;
mod report;
mod task;
mod version;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::flit::Digest;
use crate::cost::{Edge, FileCosts, Link};
use crate::exchange::Exchange;
use crate::items::Address;
use crate::ops::{Collective, PeSchedule};
use crate::{Compression, DeliveryId, Durability, MessageId, PeId, RoundId, Tree, Update};

pub use counts::{Counts, Doing, EdgeCounts, Pong};
pub use register::{Join, Listings, Ready, Register, Timeouts, Welcome};
pub use report::{Arrival, Begin, OwnStart, Report};
pub use task::{End, PlaceResults, Ran, Run};
pub use version::{EntryListing, MessageFiles, Prefix, SkippedFiles, Version};

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
    Report(Report),
    /// Number of bytes that P0 has sent or received so far.
    Progress {
        round: RoundId,
        bytes: u64,
    },
    /// The PE cannot continue.
    Fault {
        /// The round; 0 before the first.
        round: RoundId,
        /// The neighbour at fault, if there is one.
        peer: Option<PeId>,
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
    Line {
        text: String,
        shard: OsString,
    },
    /// The answer to a [`ToPe::Run`].
    Ran(Ran),
    /// The answer to a [`ToPe::ListShards`].
    ShardsListed {
        /// The names of the entries of the input, in order.
        names: Vec<OsString>,
        /// The bytes of the files of each entry.
        sizes: Vec<u64>,
        /// The names of the entries of the output.
        results: Vec<OsString>,
        /// The reason why the input cannot be sent; empty if it can.
        fault: String,
    },
    /// The answer to a [`ToPe::PlaceResults`].
    ResultsPlaced {
        /// For each entry the reason why it was not moved; empty if it was.
        faults: Vec<String>,
    },
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
    /// The answer to a [`ToPe::SkipFiles`].
    FilesSkipped {
        /// The files left out of each message, in the order of the request.
        skipped: Vec<SkippedFiles>,
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
        reason: String,
    },
    /// The position of the PE in the cluster, and its task.
    Assignment(Assignment),
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
        encrypted: bool,
    },
    /// Request for the digests of prefixes of messages that the PE sends or receives.
    CheckPrefixes {
        prefixes: Vec<Prefix>,
    },
    /// Files that all destinations of a message have; the source sends no content for them.
    SkipFiles {
        present: Vec<MessageFiles>,
    },
    Prepare(Prepare),
    /// Request for the time, before a round that all PEs begin at one time.
    ReadClock,
    /// Request to begin a round: to P0, or to every PE if all begin by the clock.
    Trigger {
        round: RoundId,
        /// When to begin, on the monotonic clock of the PE's host; 0 for at once.
        at_ns: u64,
    },
    /// Request to report a round when it has ended.
    Collect {
        round: RoundId,
    },
    /// Request to leave the cluster.
    Stop {
        /// Whether the job has ended, so that the PE removes its receipts first.
        over: bool,
    },
    /// Request to give a round up, to remove partial messages and to report those that arrived.
    Abort {
        round: RoundId,
        reason: String,
    },
    /// Request for an immediate [`FromPe::Pong`].
    Ping {
        /// Whether to check if the neighbours can be reached, since no byte has moved for a while.
        look: bool,
    },
    /// Request to run a command; replaces an assignment.
    Run(Run),
    /// Request to end the command on a shard; no effect if it has ended.
    EndRun {
        shard: OsString,
    },
    /// Request to P0 for the shards of its input; replaces an assignment.
    ListShards {
        /// The absolute path of the input.
        input: PathBuf,
        /// The absolute path of the output.
        output: PathBuf,
    },
    /// Request to P0 to move gathered results to the output; replaces an assignment.
    PlaceResults(PlaceResults),
    /// Request to remove this PE's part of a working folder; replaces an assignment.
    Clear {
        /// The absolute path of the working folder.
        work: PathBuf,
        /// The absolute path of a hidden folder in an output, which is removed too; empty if there is
        /// none.
        gathered: PathBuf,
    },
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
    pub collective: Collective,
    /// Payload bytes of a full flit while edges are measured; the schedule has those of the rounds.
    pub flit_bytes: u32,
    pub payload: Payload,
    /// Properties of the PE's shaped edges, by their lower ends.
    pub links: Vec<(PeId, Edge)>,
    /// Whether reports hold spans.
    pub record_spans: bool,
    /// Deliveries that are null whatever the payload is, since they were made before; in increasing
    /// order.
    pub left_out: Vec<DeliveryId>,
    /// The job that the cluster is a part of.
    pub job: Job,
    /// The other trees, if messages use several at once.
    pub lanes: Vec<Lane>,
    /// Whether the PE has a separate link to each neighbour: shaped links share no rate.
    pub own_links: bool,
    /// Versions, known from earlier runs of the job, of the messages of files that the PE sends or
    /// receives.
    pub versions: Vec<Version>,
    /// Whether no round follows, so that nothing in an output may change.
    pub dry_run: bool,
    /// Highest rate at which the PE sends, on all its connections together; 0 for no limit.
    pub max_bits_per_second: u64,
}

/// A job, which may run several clusters one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The id, used in the names of receipts.
    pub id: u64,
    /// Whether a record of it is on a disk, so that it can be resumed if the coordinator dies.
    pub recorded: bool,
    /// For P0 in a scatter, the output of a gather that follows.
    pub later_output: Option<PathBuf>,
}

/// Another tree of the same PEs from the same root, which carries a part of each message over
/// separate connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    pub tree: Arc<Tree>,
    /// Address of the PE's parent in this tree; `None` for P0.
    pub parent_listen: Option<String>,
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
        !self.collective.can_deliver(&self.tree, delivery)
            || self.left_out.binary_search(&delivery).is_ok()
    }

    pub fn must_receive(&self, message: MessageId, to: PeId) -> bool {
        !self.leaves_out(self.collective.delivery(&self.tree, message, to))
    }

    /// Returns whether any PE must receive a message.
    pub fn has_receiver(&self, message: Address) -> bool {
        let mut ends = message.ends(&self.tree);
        ends.any(|pe| self.must_receive(message.id, pe))
    }

    /// Returns the version of a message that is known from earlier runs.
    pub fn version(&self, message: MessageId) -> Option<Version> {
        let mut known = self.versions.iter();
        known.find(|version| version.message == message).copied()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Synthetic bytes, which receivers check.
    Synthetic {
        /// Lengths in bytes: one for each message id or, if the root is an end of every message and
        /// in a broadcast, one for each other PE.
        lengths: Vec<u64>,
    },
    Files(FilePayload),
}

/// Payload of messages made of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePayload {
    /// Path that P0 reads in a scatter, and every other PE in a gather.
    pub input: PathBuf,
    /// Whether all files below `input` are dealt; for a scatter only.
    pub spread: bool,
    /// Path that every other PE writes to in a scatter, and P0 in a gather.
    pub output: PathBuf,
    /// Whether an existing entry at a destination is replaced.
    pub replace: bool,
    /// Whether PEs have separate files: `input` is the PE's own entry, and `output` all that it
    /// receives. Otherwise these are entries named after the PE.
    pub apart: bool,
    /// Names by which entries of `input` can be called, beside `p1`, `p2` and so on: by PE, empty
    /// for a PE without one or of which the receiver reads no entry.
    pub names: Vec<String>,
    /// With `spread`: the names of the entries of `input` that are dealt whole; empty if all files
    /// are dealt.
    pub shards: Vec<OsString>,
    /// With `spread`: whether `input` is one file that is divided at the ends of lines.
    pub lines: bool,
    /// With `spread`: whether `input` is one file that is divided at multiples of this number of bytes;
    /// 0 if it is not.
    pub block_bytes: u64,
    /// The number of parts of the file; 0 for one for each PE.
    pub parts: u32,
    /// Rules in the form of gitignore that choose among the files of each message, or with `spread` of
    /// `input`. If the first one begins with `!`, only what such a rule takes is sent.
    pub rules: Vec<String>,
    pub durability: Durability,
    pub update: Update,
    pub compression: Compression,
    /// Whether owners, all mode bits, extended attributes and hard links are kept.
    pub archive: bool,
    /// Names of the entries in `output`: by PE, empty for a PE whose entry is called by its number,
    /// `p3`, or of which the receiver writes no entry.
    pub output_names: Vec<String>,
    /// Whether the first name with wildcards in `input` chooses among the entries of PEs, as all PEs are
    /// on one host.
    pub chooses_entries: bool,
}

impl FilePayload {
    pub fn is_divided(&self) -> bool {
        self.lines || self.block_bytes > 0
    }
}

impl Payload {
    pub fn files(&self) -> Option<&FilePayload> {
        match self {
            Payload::Files(files) => Some(files),
            Payload::Synthetic { .. } => None,
        }
    }

    pub fn output(&self) -> Option<&Path> {
        self.files().map(|files| &*files.output)
    }

    /// Returns whether PEs have separate files, whose paths do not contain their names.
    pub fn is_apart(&self) -> bool {
        matches!(self, Payload::Files(files) if files.apart)
    }
}

/// Schedule of the rounds for one PE.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    /// Input of the PE's state machine.
    pub schedule: PeSchedule,
    /// Number of rounds, counted from 1.
    pub rounds: u64,
    /// Input of its state machine on each further tree ([`crate::ops::parts`]).
    pub lanes: Vec<PeSchedule>,
    /// Prefixes that the source and all destinations have in common, of messages that this PE sends
    /// or receives. Only the rests are sent; the schedules have the lengths of the rests.
    pub prefixes: Vec<Prefix>,
}
