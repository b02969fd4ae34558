//! What a running command tells of itself, as it stands in its file: written by the command,
//! read by `flitcast watch` and whoever else likes JSON.

use serde::{Deserialize, Serialize};

/// A command that conducts rounds, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// The command's process.
    pub pid: u32,
    /// When that process started, in the kernel's ticks: another one with its number
    /// started at another time.
    pub process_start: u64,
    /// "scatter", "gather" or "broadcast".
    pub operation: String,
    /// Its algorithm.
    pub algorithm: String,
    /// The tree as typed, or the cluster's name.
    pub cluster: String,
    /// "launch", "connect", "probe", "prepare", "round" or "report".
    pub phase: String,
    /// The phase, for eyes.
    pub doing: String,
    /// The round under way; 0 before the first.
    pub round: u64,
    /// How many there are to be on this cluster.
    pub rounds: u64,
    /// Payload that P0 has sent or received in the round.
    pub moved_bytes: u64,
    /// How much of it there is to be.
    pub bytes: u64,
    /// Since the round began, in nanoseconds; absent between rounds.
    pub elapsed_ns: Option<u64>,
    /// What the round was predicted to take.
    pub predicted_ns: Option<u64>,
    /// What is left of it, by the prediction and by how far it is.
    pub left_ns: Option<u64>,
    /// The PEs, by number.
    pub pes: Vec<PePicture>,
}

/// One PE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PePicture {
    /// Its number.
    pub pe: u32,
    /// Its parent's; P0 has none.
    pub parent: Option<u32>,
    /// Its host's name, in a cluster that has such.
    pub name: Option<String>,
    /// Where its host is reached.
    pub address: String,
    /// Its process, once it has registered.
    pub pid: Option<u32>,
    /// What it does, in words.
    pub state: String,
    /// Whether its part of the round is over.
    pub is_done: bool,
    /// Since it last told of itself, in milliseconds.
    pub heard_ms: Option<u64>,
    /// Bytes of its message; of P0, of all messages.
    pub bytes: u64,
    /// How many of them this PE has sent or received in the round.
    pub moved_bytes: u64,
    /// The edge to its parent.
    pub edge: Option<EdgePicture>,
    /// Flits of passing messages in its memory.
    pub buffered_flits: u64,
    /// Flits that waited for a busy port, since the cluster came up.
    pub collisions: u64,
    /// The process's memory.
    pub resident_bytes: u64,
}

/// The edge between a PE and its parent, as the PE sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgePicture {
    /// Bytes of frames from the parent, since the cluster came up.
    pub down_bytes: u64,
    /// To the parent.
    pub up_bytes: u64,
    /// The same in a second, over the last one; absent until that is known.
    pub down_bytes_per_s: Option<u64>,
    /// To the parent.
    pub up_bytes_per_s: Option<u64>,
}
