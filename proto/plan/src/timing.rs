//! The paces of a whole tree: in lock step, or on the links and hosts of a model.

use flitcast_proto::Compression;
use flitcast_proto::schedule::flits_of;
use flitcast_proto::schedule::pace::{ChildPace, Pace, Pacing, Passage};
use flitcast_proto::{MessageId, PeId, Tree};

use crate::cost::{Edge, Host, Link, Model, Ports};

/// The paces of a whole tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// The way in which orders are obeyed.
    pub pacing: Pacing,
    flit_bytes: u32,
    /// The packet sizes by message id, if each message is cut differently.
    packet_bytes: Vec<u32>,
    /// The times on each PE's edge to its parent; `None` in lock step.
    real: Option<Vec<EdgeTiming>>,
    /// Whether static schedules use all links of a PE at once.
    pub all_ports: bool,
    /// Whether no PE waits for a port: only processes take time.
    pub shares_no_port: bool,
    /// Whether PEs poll for short messages before they sleep. Beside a busy program, a PE that yields
    /// waits for the program's whole time slice.
    pub polls: bool,
    /// The compression of flits.
    pub compression: Compression,
    /// The longest set-up time of a packet, as a number of flits that take as long, at most
    /// [`MOST_SETUP_FLITS`]. If links have one, static schedules send packets of several flits.
    pub setup_flits: u64,
}

/// An edge to a parent, the software of both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
struct EdgeTiming {
    /// Time for which a control item to the child occupies the port, and time until it has arrived.
    control: u64,
    reach: u64,
    down: Passage,
    up: Passage,
}

impl EdgeTiming {
    const LOCK_STEP: EdgeTiming = EdgeTiming {
        control: 1,
        reach: 1,
        down: Passage::LOCK_STEP,
        up: Passage::LOCK_STEP,
    };
}

impl Timing {
    /// Times of one step for everything: the papers' model.
    pub const LOCK_STEP: Timing = Timing {
        pacing: Pacing::Scheduled,
        flit_bytes: 1,
        packet_bytes: Vec::new(),
        real: None,
        all_ports: false,
        shares_no_port: false,
        polls: false,
        compression: Compression::Never,
        setup_flits: 0,
    };

    /// Returns the times on the links and hosts of `model`.
    pub fn of(model: &Model, flit_bytes: u32, pacing: Pacing) -> Timing {
        let edges = model.edges.iter().enumerate();
        let edges = edges.map(|(edge, Edge { down, up })| {
            let [upper, lower] = model.hosts.ends(edge);
            let port = upper.control_ns + down.ns_per_byte * model.control_bytes as f64;
            let reach = port + down.latency_ns + lower.wake_ns + lower.control_ns;
            EdgeTiming {
                control: port.round() as u64,
                reach: reach.round() as u64,
                down: passage(down, [upper, lower], flit_bytes),
                up: passage(up, [lower, upper], flit_bytes),
            }
        });
        Timing {
            pacing,
            flit_bytes,
            packet_bytes: Vec::new(),
            real: Some(edges.collect()),
            all_ports: model.own_links,
            shares_no_port: model.ports == Ports::PerEdge,
            polls: model.ports == Ports::PerEdge
                && !model.own_links
                && !model.hosts.have_busy_threads(),
            compression: model.compression(),
            setup_flits: setup_flits(model, flit_bytes),
        }
    }

    /// Sets the packet size of each message, by message id; none is larger than a full flit.
    pub fn in_packets(mut self, packet_bytes: Vec<u32>) -> Timing {
        self.packet_bytes = packet_bytes;
        self
    }

    /// Returns the times on a PE's edges.
    pub fn pace(&self, tree: &Tree, pe: PeId) -> Pace {
        let children = tree.children(pe).iter().map(|child| self.edge(*child));
        let below = children.clone().map(|edge| ChildPace {
            reach: edge.reach,
            up: edge.up,
        });
        let port = self.real.as_ref().map(|edges| port(edges, tree, pe));
        let (port_ticks_per_byte, ahead_bytes) = port.unwrap_or((1.0, 0));
        Pace {
            pacing: self.pacing,
            lock_step: self.is_lock_step(),
            below: below.collect(),
            // The last PE of a path waits for a step as well (Shoulder-Tap).
            control: children
                .map(|edge| edge.control)
                .max()
                .unwrap_or(self.is_lock_step().into()),
            up: self.edge(pe).up,
            port_ticks_per_byte,
            ahead_bytes,
        }
    }

    /// Returns the edge from a PE to its parent.
    fn edge(&self, pe: PeId) -> &EdgeTiming {
        let real = self.real.as_ref().map(|edges| &edges[pe.index()]);
        real.unwrap_or(&EdgeTiming::LOCK_STEP)
    }

    /// Returns the edge from a PE's parent down to it.
    pub fn down(&self, pe: PeId) -> Passage {
        self.edge(pe).down
    }

    /// Returns whether everything takes a step.
    pub fn is_lock_step(&self) -> bool {
        self.real.is_none()
    }

    /// Returns the payload bytes of a full flit.
    pub fn flit_bytes(&self) -> u32 {
        self.flit_bytes
    }

    /// Returns the number of flits of the longest of these messages.
    pub(crate) fn flits_of_longest(&self, bytes: &[u64]) -> u64 {
        let longest = bytes.iter().copied().max().unwrap_or(0);
        flits_of(longest, self.flit_bytes)
    }

    /// Returns the packet size of each of these messages, if they have different ones; else an empty
    /// list.
    pub fn packet_bytes_of(&self, messages: impl Iterator<Item = MessageId>) -> Vec<u32> {
        let cut = messages.filter(|_| !self.packet_bytes.is_empty());
        cut.map(|message| self.flit_bytes_of(message)).collect()
    }

    /// Returns the packet size of one message.
    pub fn flit_bytes_of(&self, message: MessageId) -> u32 {
        let own = self.packet_bytes.get(message.index());
        own.copied().unwrap_or(self.flit_bytes)
    }
}

/// Limit of a set-up time in flits: far more than a message has, where bytes take no time.
const MOST_SETUP_FLITS: u64 = 1 << 20;

fn setup_flits(model: &Model, flit_bytes: u32) -> u64 {
    let links = model.edges.iter().flat_map(|edge| [&edge.down, &edge.up]);
    let flits = links.map(|link| match link.setup_ns > 0.0 {
        true => link.setup_ns / (link.ns_per_byte * f64::from(flit_bytes)),
        false => 0.0,
    });
    // A conversion from infinity saturates.
    (flits.fold(0.0, f64::max).ceil() as u64).min(MOST_SETUP_FLITS)
}

/// Number of bytes after which arrivals of a stream are noticed: two segments of TCP in frames of 1500
/// bytes.
const SEEN_BYTES: u64 = 2 * 1448;

/// Returns the time for which a byte occupies a PE's port, and the number of bytes that it sends
/// between a request for data, to any PE, and the first byte of the answer. P0's port is as quick as
/// its quickest edge. Two PEs that are not neighbours in the tree are connected through both their
/// edges.
fn port(edges: &[EdgeTiming], tree: &Tree, pe: PeId) -> (f64, u64) {
    let there_and_back = |edge: &EdgeTiming| edge.reach.saturating_add(edge.up.latency);
    let below = tree.pes().filter(|pe| tree.parent(*pe).is_some());
    let all = below.map(|pe| &edges[pe.index()]);
    let Some(farthest) = all.max_by_key(|edge| there_and_back(edge)) else {
        return (1.0, 0);
    };
    let below_pe = tree.children(pe).iter().map(|child| &edges[child.index()]);
    let quickest = below_pe.map(|edge| edge.down.full_ticks_per_byte());
    let quickest = quickest.min_by(f64::total_cmp);
    let (own, ticks_per_byte) = match tree.parent(pe) {
        Some(_) => {
            let own = &edges[pe.index()];
            (own, own.up.full_ticks_per_byte())
        }
        None => (farthest, quickest.unwrap_or(1.0)),
    };
    let ticks = there_and_back(own).saturating_add(there_and_back(farthest));
    let ticks_per_byte = ticks_per_byte.max(f64::MIN_POSITIVE);
    let ahead = (ticks as f64 / ticks_per_byte) as u64;
    (ticks_per_byte, ahead.saturating_add(SEEN_BYTES))
}

/// Creates the passage of a link with the software of both its ends, the sender's and the
/// receiver's, in nanoseconds. A process that forwards a flit receives it and then sends it, so it
/// may be slower than the wire.
pub fn passage(link: &Link, ends: [&Host; 2], flit_bytes: u32) -> Passage {
    let [sender, receiver] = ends;
    let software_ns = sender
        .relays_ns(flit_bytes)
        .max(receiver.relays_ns(flit_bytes));
    // The software's time per flit is spread over the bytes.
    let [ticks_per_packet, ticks_per_byte] =
        match link.occupied_ns(1, flit_bytes.into()) >= software_ns {
            true => [link.setup_ns, link.ns_per_byte],
            false => [0.0, software_ns / f64::from(flit_bytes)],
        };
    let latency = link.latency_ns + receiver.wake_ns + sender.flit_ns + receiver.flit_ns;
    Passage {
        latency: latency.round() as u64,
        ticks_per_packet,
        ticks_per_byte,
        message: sender.message_ns.round() as u64,
        flit_bytes,
    }
}
