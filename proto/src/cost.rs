//! What moving bytes costs on real links: the parameters of the one model that
//! prediction, schedules and shaped links share (spec, section 7).
//!
//! A frame of b bytes keeps its sender's port busy for b times the link's
//! `ns_per_byte` and is there a `latency_ns` later; the processes at both ends spend
//! what [`Host`] says on it, on cores that they may have to share.

/// One direction of an edge: the wire alone, without the software of its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// From a byte's departure to its arrival.
    pub latency_ns: f64,
    /// The inverse of the rate.
    pub ns_per_byte: f64,
    /// What a link that was idle lets through at once before its rate holds (a token
    /// bucket's depth).
    pub burst_bytes: f64,
}

/// Both directions of an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Edge {
    /// From parent to child.
    pub down: Link,
    /// From child to parent.
    pub up: Link,
}

/// What the processes spend, in nanoseconds of a core unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Cores that all PEs share; `None` where each has its own.
    pub shared_cores: Option<u32>,
    /// From the moment something is there for a sleeping process until it runs; no
    /// core's time.
    pub wake_ns: f64,
    /// A control frame, at either end.
    pub control_ns: f64,
    /// A flit, at either end, whatever its length.
    pub flit_ns: f64,
    /// A byte, handed to the network.
    pub send_ns_per_byte: f64,
    /// A byte, taken from the network.
    pub receive_ns_per_byte: f64,
    /// A byte at its message's source or destination: made or checked, and hashed.
    pub end_ns_per_byte: f64,
    /// A message at its source or destination: the set-up cost.
    pub message_ns: f64,
}

/// Whether a PE's edges share what they send and receive through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// One send port and one receive port: a host with one network card.
    Single,
    /// A port of its own for each edge.
    PerEdge,
}

/// All that a prediction knows of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// `edges[i]` lies between P_i and its parent; `edges[0]` is not looked at.
    pub edges: Vec<Edge>,
    /// The processes.
    pub host: Host,
    /// Their ports.
    pub ports: Ports,
    /// Bytes that a link holds between the sender's write and the receiver's read,
    /// at most.
    pub buffer_bytes: u64,
}
