//! The state of a running command as JSON in its file. The command writes it; `flitcast watch` and
//! other programs read it.

use serde::{Deserialize, Serialize};

use crate::observe::event::ShardCounts;

/// Snapshot of a command that conducts rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Process id of the command.
    pub pid: u32,
    /// Start time of that process in the kernel's ticks, which distinguishes it from a later
    /// process with the same id.
    pub process_start: u64,
    /// "scatter", "gather", "broadcast", "gossip", "exchange", or "map" while its commands run.
    pub operation: String,
    pub algorithm: String,
    /// The tree as typed, or the name of the cluster.
    pub cluster: String,
    /// "launch", "connect", "probe", "predict", "prepare", "round" or "report", or "run" while
    /// the commands of a map run.
    pub phase: String,
    /// The phase as human-readable text.
    pub doing: String,
    /// Number of the round under way; 0 before the first.
    pub round: u64,
    /// Number of rounds planned on this cluster.
    pub rounds: u64,
    /// Payload bytes that P0 has sent or received in the round.
    pub moved_bytes: u64,
    /// Payload bytes that P0 will have sent or received at the end of the round.
    pub bytes: u64,
    /// Time since the round began, in nanoseconds; absent between rounds.
    pub elapsed_ns: Option<u64>,
    /// Predicted duration of the round.
    pub predicted_ns: Option<u64>,
    /// Estimated remaining time, from the prediction and the progress.
    pub left_ns: Option<u64>,
    /// The shards of a map while commands run on them; else absent.
    pub shards: Option<ShardCounts>,
    /// The PEs in order of their numbers.
    pub pes: Vec<PePicture>,
}

/// Snapshot of one PE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PePicture {
    pub pe: u32,
    /// Number of the PE's parent; absent for P0.
    pub parent: Option<u32>,
    /// Name of the host, if the cluster file names hosts, or the PE has joined and has no address.
    pub name: Option<String>,
    pub address: String,
    /// Process id, once the PE has registered.
    pub pid: Option<u32>,
    /// Activity of the PE as human-readable text.
    pub state: String,
    /// Whether the PE has completed its part of the round.
    pub is_done: bool,
    /// Time since the PE's last report, in milliseconds.
    pub heard_ms: Option<u64>,
    /// Bytes of the PE's message; for P0, of all messages.
    pub bytes: u64,
    /// Bytes of them that this PE has sent or received in the round.
    pub moved_bytes: u64,
    /// The edge to the parent.
    pub edge: Option<EdgePicture>,
    /// Number of flits of passing messages in the PE's memory.
    pub buffered_flits: u64,
    /// Number of flits that waited for a busy port since the cluster started.
    pub collisions: u64,
    /// Resident memory of the process.
    pub resident_bytes: u64,
}

/// The edge between a PE and its parent, as the PE counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgePicture {
    /// Bytes of frames from the parent since the cluster started.
    pub down_bytes: u64,
    /// Bytes of frames to the parent since the cluster started.
    pub up_bytes: u64,
    /// Bytes per second from the parent over about the last second; absent until two reports exist.
    pub down_bytes_per_s: Option<u64>,
    /// Bytes per second to the parent over about the last second.
    pub up_bytes_per_s: Option<u64>,
}
