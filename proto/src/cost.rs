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
    /// From the moment a sleeping process with something to do has a core until it runs there;
    /// the core does nothing else meanwhile.
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
    /// A sender may run ahead of the wire by so much, or by one frame if that is more;
    /// 0: not at all, not even by a frame.
    pub ahead_ns: f64,
    /// Bytes of a control frame,
    pub control_bytes: u64,
    /// and of a receipt, which the papers' model does not know.
    pub receipt_bytes: u64,
    /// Bytes of what stands ahead of a flit's payload.
    pub prefix_bytes: u64,
}

impl Model {
    /// The papers' model: flits and control items of one byte, a nanosecond each, no
    /// software.
    pub fn unit(pes: usize) -> Model {
        let link = Link {
            ns_per_byte: 1.0,
            ..Link::default()
        };
        Model {
            edges: vec![
                Edge {
                    down: link,
                    up: link
                };
                pes
            ],
            host: Host::NONE,
            ports: Ports::Single,
            buffer_bytes: u64::MAX,
            ahead_ns: 0.0,
            control_bytes: 1,
            receipt_bytes: 0,
            prefix_bytes: 0,
        }
    }
}

/// How many costs of a host there are.
pub const COSTS: usize = 7;

impl Host {
    /// The costs, in the order of the fields.
    pub fn costs(&self) -> [f64; COSTS] {
        [
            self.wake_ns,
            self.control_ns,
            self.flit_ns,
            self.send_ns_per_byte,
            self.receive_ns_per_byte,
            self.end_ns_per_byte,
            self.message_ns,
        ]
    }

    /// The same host with other costs, in that order.
    pub fn with_costs(self, costs: [f64; COSTS]) -> Host {
        let [wake_ns, control_ns, flit_ns, send, receive, end, message_ns] = costs;
        Host {
            wake_ns,
            control_ns,
            flit_ns,
            send_ns_per_byte: send,
            receive_ns_per_byte: receive,
            end_ns_per_byte: end,
            message_ns,
            ..self
        }
    }

    /// Software that costs nothing.
    pub const NONE: Host = Host {
        shared_cores: None,
        wake_ns: 0.0,
        control_ns: 0.0,
        flit_ns: 0.0,
        send_ns_per_byte: 0.0,
        receive_ns_per_byte: 0.0,
        end_ns_per_byte: 0.0,
        message_ns: 0.0,
    };
}
