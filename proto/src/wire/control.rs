//! The channel between the coordinator and a PE. What comes in is checked here,
//! once: a tree is a tree, a flit size is in its range, an id is a PE's.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;

use super::pb::{self, control::Kind};
use super::{MAX_FLIT_BYTES, MIN_FLIT_BYTES, WireError, put_frame};
use crate::pe::Operation;
use crate::predict::Link;
use crate::schedule::certification::Sync;
use crate::{PeId, RoundId, Tree};

/// What a PE says to the coordinator.
#[derive(Clone, Debug, PartialEq)]
pub enum FromPe {
    /// The first word.
    Register(Register),
    /// Connected to its neighbours; bytes of the messages it is the source of:
    /// M_1..M_n from P0 in a scatter, its own from another PE in a gather.
    Ready {
        /// Bytes.
        message_bytes: Vec<u64>,
    },
    /// An edge is measured.
    ProbeResult {
        /// The edge's lower end.
        child: PeId,
        /// From parent to child.
        down: Link,
        /// From child to parent.
        up: Link,
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
    },
}

/// What the coordinator says to a PE.
#[derive(Clone, Debug, PartialEq)]
pub enum ToPe {
    /// Where the PE stands and what it will do.
    Assignment(Assignment),
    /// Measure the edge to a child.
    ProbeEdge {
        /// The edge's lower end.
        child: PeId,
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
    Stop,
    /// Give the round up, undo what is half done, and report what arrived.
    Abort {
        /// The round.
        round: RoundId,
        /// Why.
        reason: String,
    },
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
}

/// Where a PE stands and what it will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The protocol version chosen.
    pub version: u32,
    /// The whole tree.
    pub tree: Arc<Tree>,
    /// Where the PE's parent listens; `None` for P0.
    pub parent_listen: Option<String>,
    /// What the rounds do.
    pub operation: Operation,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// What the messages are made of.
    pub payload: Payload,
}

/// What the messages are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Bytes that every receiver can check.
    Synthetic {
        /// Bytes of M_1..M_n.
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
    },
}

/// What the rounds need to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    /// Bytes of M_1..M_n for P0, empty for others.
    pub lengths: Vec<u64>,
    /// Bytes of the PE's own message.
    pub own_bytes: u64,
    /// Nonnull messages of the PE's subtree, its own included.
    pub subtree_messages: u64,
    /// The same for each child, in index order.
    pub child_messages: Vec<u64>,
    /// How many rounds there will be, counted from 1.
    pub rounds: u64,
    /// How long a step of the schedule lasts, in nanoseconds.
    pub step_ns: u64,
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
}

/// A message at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
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
}

fn missing(what: &str) -> WireError {
    WireError::malformed(format!("{what} is missing"))
}

fn parse_operation(value: i32, window: u32) -> Result<Operation, WireError> {
    match pb::Operation::try_from(value) {
        Ok(pb::Operation::ScatterFdf) => Ok(Operation::Scatter),
        Ok(pb::Operation::GatherShoulderTap) => Ok(Operation::ShoulderTap),
        Ok(pb::Operation::GatherCertificationSerial) => Ok(Operation::Certification(Sync::Serial)),
        Ok(pb::Operation::GatherCertificationPipelined) => {
            Ok(Operation::Certification(Sync::Pipelined))
        }
        Ok(pb::Operation::GatherCertificationParallel) => {
            Ok(Operation::Certification(Sync::Parallel))
        }
        Ok(pb::Operation::GatherLinear) => Ok(Operation::LinearGather { window }),
        Ok(pb::Operation::GatherCombining) => Ok(Operation::CombiningGather),
        Ok(pb::Operation::ScatterCombining) => Ok(Operation::CombiningScatter),
        Ok(pb::Operation::Unspecified) | Err(_) => {
            Err(WireError::malformed(format!("{value} is no operation")))
        }
    }
}

fn operation_code(operation: Operation) -> i32 {
    let code = match operation {
        Operation::Scatter => pb::Operation::ScatterFdf,
        Operation::ShoulderTap => pb::Operation::GatherShoulderTap,
        Operation::Certification(Sync::Serial) => pb::Operation::GatherCertificationSerial,
        Operation::Certification(Sync::Pipelined) => pb::Operation::GatherCertificationPipelined,
        Operation::Certification(Sync::Parallel) => pb::Operation::GatherCertificationParallel,
        Operation::LinearGather { .. } => pb::Operation::GatherLinear,
        Operation::CombiningGather => pb::Operation::GatherCombining,
        Operation::CombiningScatter => pb::Operation::ScatterCombining,
    };
    code as i32
}

fn parse_link(latency_ns: f64, ns_per_byte: f64) -> Result<Link, WireError> {
    let valid = |x: f64| x.is_finite() && x >= 0.0;
    match valid(latency_ns) && valid(ns_per_byte) {
        true => Ok(Link {
            latency_ns,
            ns_per_byte,
        }),
        false => Err(WireError::malformed(
            "a measured link with nonsense numbers",
        )),
    }
}

impl FromPe {
    /// Appends the frame, length prefix and all.
    pub fn put(&self, out: &mut Vec<u8>) {
        let kind = match self.clone() {
            FromPe::Register(register) => Kind::Register(pb::Register {
                cluster: register.cluster,
                pe: register.pe.0,
                min_version: register.min_version,
                max_version: register.max_version,
                listen: register.listen,
                pid: register.pid,
            }),
            FromPe::Ready { message_bytes } => Kind::Ready(pb::Ready { message_bytes }),
            FromPe::ProbeResult { child, down, up } => Kind::ProbeResult(pb::ProbeResult {
                child: child.0,
                down_latency_ns: down.latency_ns,
                down_ns_per_byte: down.ns_per_byte,
                up_latency_ns: up.latency_ns,
                up_ns_per_byte: up.ns_per_byte,
            }),
            FromPe::Prepared => Kind::Prepared(pb::Prepared {}),
            FromPe::Report(report) => Kind::Report(pb::Report {
                round: report.round.0,
                complete: report.complete,
                started_ns: report.started_ns,
                arrivals: report.arrivals.iter().map(put_arrival).collect(),
                collisions: report.collisions,
                peak_buffered_flits: report.peak_buffered_flits,
                peak_resident_bytes: report.peak_resident_bytes,
            }),
            FromPe::Progress { round, bytes } => Kind::Progress(pb::Progress {
                round: round.0,
                bytes,
            }),
            FromPe::Fault {
                round,
                peer,
                reason,
            } => Kind::Fault(pb::Fault {
                round: round.0,
                peer: peer.map(|pe| pe.0),
                reason,
            }),
        };
        put_frame(&pb::Control { kind: Some(kind) }, out);
    }

    /// Reads a frame's body.
    pub fn parse(body: &[u8]) -> Result<FromPe, WireError> {
        let kind = pb::Control::decode(body)?
            .kind
            .ok_or_else(|| missing("a control message"))?;
        Ok(match kind {
            Kind::Register(register) => FromPe::Register(Register {
                cluster: register.cluster,
                pe: PeId(register.pe),
                min_version: register.min_version,
                max_version: register.max_version,
                listen: register.listen,
                pid: register.pid,
            }),
            Kind::Ready(ready) => FromPe::Ready {
                message_bytes: ready.message_bytes,
            },
            Kind::ProbeResult(result) => FromPe::ProbeResult {
                child: PeId(result.child),
                down: parse_link(result.down_latency_ns, result.down_ns_per_byte)?,
                up: parse_link(result.up_latency_ns, result.up_ns_per_byte)?,
            },
            Kind::Prepared(pb::Prepared {}) => FromPe::Prepared,
            Kind::Report(report) => FromPe::Report(Report {
                round: RoundId(report.round),
                complete: report.complete,
                started_ns: report.started_ns,
                arrivals: report.arrivals.iter().map(parse_arrival).collect(),
                collisions: report.collisions,
                peak_buffered_flits: report.peak_buffered_flits,
                peak_resident_bytes: report.peak_resident_bytes,
            }),
            Kind::Progress(progress) => FromPe::Progress {
                round: RoundId(progress.round),
                bytes: progress.bytes,
            },
            Kind::Fault(fault) => FromPe::Fault {
                round: RoundId(fault.round),
                peer: fault.peer.map(PeId),
                reason: fault.reason,
            },
            _ => return Err(WireError::malformed("a coordinator's message from a PE")),
        })
    }
}

fn put_arrival(arrival: &Arrival) -> pb::Arrival {
    pb::Arrival {
        source: arrival.source.0,
        destination: arrival.destination.0,
        bytes_received: arrival.bytes_received,
        bytes_total: arrival.bytes_total,
        delivered: arrival.delivered,
        at_ns: arrival.at_ns,
    }
}

fn parse_arrival(arrival: &pb::Arrival) -> Arrival {
    Arrival {
        source: PeId(arrival.source),
        destination: PeId(arrival.destination),
        bytes_received: arrival.bytes_received,
        bytes_total: arrival.bytes_total,
        delivered: arrival.delivered,
        at_ns: arrival.at_ns,
    }
}

impl ToPe {
    /// Appends the frame, length prefix and all.
    pub fn put(&self, out: &mut Vec<u8>) {
        let kind = match self.clone() {
            ToPe::Assignment(assignment) => Kind::Assignment(put_assignment(assignment)),
            ToPe::ProbeEdge { child } => Kind::ProbeEdge(pb::ProbeEdge { child: child.0 }),
            ToPe::Prepare(prepare) => Kind::Prepare(pb::Prepare {
                lengths: prepare.lengths,
                own_bytes: prepare.own_bytes,
                subtree_messages: prepare.subtree_messages,
                child_messages: prepare.child_messages,
                rounds: prepare.rounds,
                step_ns: prepare.step_ns,
            }),
            ToPe::Trigger { round } => Kind::Trigger(pb::Trigger { round: round.0 }),
            ToPe::Collect { round } => Kind::Collect(pb::Collect { round: round.0 }),
            ToPe::Stop => Kind::Stop(pb::Stop {}),
            ToPe::Abort { round, reason } => Kind::Abort(pb::Abort {
                round: round.0,
                reason,
            }),
        };
        put_frame(&pb::Control { kind: Some(kind) }, out);
    }

    /// Reads a frame's body.
    pub fn parse(body: &[u8]) -> Result<ToPe, WireError> {
        let kind = pb::Control::decode(body)?
            .kind
            .ok_or_else(|| missing("a control message"))?;
        Ok(match kind {
            Kind::Assignment(assignment) => ToPe::Assignment(parse_assignment(assignment)?),
            Kind::ProbeEdge(probe) => ToPe::ProbeEdge {
                child: PeId(probe.child),
            },
            Kind::Prepare(prepare) => ToPe::Prepare(Prepare {
                lengths: prepare.lengths,
                own_bytes: prepare.own_bytes,
                subtree_messages: prepare.subtree_messages,
                child_messages: prepare.child_messages,
                rounds: prepare.rounds,
                step_ns: prepare.step_ns,
            }),
            Kind::Trigger(trigger) => ToPe::Trigger {
                round: RoundId(trigger.round),
            },
            Kind::Collect(collect) => ToPe::Collect {
                round: RoundId(collect.round),
            },
            Kind::Stop(pb::Stop {}) => ToPe::Stop,
            Kind::Abort(abort) => ToPe::Abort {
                round: RoundId(abort.round),
                reason: abort.reason,
            },
            _ => return Err(WireError::malformed("a PE's message from the coordinator")),
        })
    }
}

fn path_bytes(path: &Path) -> Bytes {
    Bytes::copy_from_slice(path.as_os_str().as_bytes())
}

fn parse_path(bytes: Bytes) -> PathBuf {
    OsString::from_vec(bytes.into()).into()
}

fn put_assignment(assignment: Assignment) -> pb::Assignment {
    let tree = &assignment.tree;
    pb::Assignment {
        version: assignment.version,
        parents: tree
            .pes()
            .filter_map(|pe| tree.parent(pe))
            .map(|parent| parent.0)
            .collect(),
        parent_listen: assignment.parent_listen.unwrap_or_default(),
        operation: operation_code(assignment.operation),
        window: match assignment.operation {
            Operation::LinearGather { window } => window,
            _ => 0,
        },
        flit_bytes: assignment.flit_bytes,
        payload: Some(match assignment.payload {
            Payload::Synthetic { lengths } => {
                pb::assignment::Payload::Synthetic(pb::SyntheticPayload { lengths })
            }
            Payload::Files {
                input,
                spread,
                output,
                replace,
            } => pb::assignment::Payload::Files(pb::FilePayload {
                input: path_bytes(&input),
                spread,
                output: path_bytes(&output),
                replace,
            }),
        }),
    }
}

fn parse_assignment(assignment: pb::Assignment) -> Result<Assignment, WireError> {
    let parents = assignment
        .parents
        .into_iter()
        .map(|parent| Some(PeId(parent)));
    let tree = Tree::from_parents(std::iter::once(None).chain(parents).collect());
    let tree = tree.map_err(WireError::malformed)?;
    if !(MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&assignment.flit_bytes) {
        let flit_bytes = assignment.flit_bytes;
        return Err(WireError::malformed(format!(
            "no flit can have {flit_bytes} bytes"
        )));
    }
    let payload = match assignment.payload.ok_or_else(|| missing("the payload"))? {
        pb::assignment::Payload::Synthetic(synthetic) => {
            if synthetic.lengths.len() + 1 != tree.len() {
                return Err(WireError::malformed("not one length for each PE"));
            }
            Payload::Synthetic {
                lengths: synthetic.lengths,
            }
        }
        pb::assignment::Payload::Files(files) => Payload::Files {
            input: parse_path(files.input),
            spread: files.spread,
            output: parse_path(files.output),
            replace: files.replace,
        },
    };
    let parent_listen = assignment.parent_listen;
    Ok(Assignment {
        version: assignment.version,
        tree: Arc::new(tree),
        parent_listen: (!parent_listen.is_empty()).then_some(parent_listen),
        operation: parse_operation(assignment.operation, assignment.window)?,
        flit_bytes: assignment.flit_bytes,
        payload,
    })
}
