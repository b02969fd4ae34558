//! What a tick is: a step of the papers' model, or a nanosecond of real links.
//!
//! The rules of the gathers are the same in both (spec, section 7): only how long a
//! control item, a first flit and a stream take differs, and that is said here.

use crate::cost::{Edge, Host, Link, Model, Ports};
use crate::{MessageId, PeId, Tree};

/// How TRANSMIT AFTER is obeyed (spec, section 7, "Clock or turns").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pacing {
    /// By the clock: orders go out at once and say how long to wait.
    #[default]
    Scheduled,
    /// In turns: an order goes out when what is left of the present stream is about
    /// what it takes the next one to come. Where lists are played, receivers call likewise.
    Turns,
    /// At once, all of them: streams wait in the network for their slots.
    Eager,
}

/// What passing bytes through a PE's send port takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passage {
    /// From a flit's last byte in the port until the neighbour can pass it on.
    pub latency: u64,
    /// For which a byte keeps the port busy.
    pub ticks_per_byte: f64,
    /// For which a message does, whatever its length.
    pub message: u64,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
}

impl Passage {
    /// Flits of one byte, a tick each.
    pub const LOCK_STEP: Passage = Passage {
        latency: 0,
        ticks_per_byte: 1.0,
        message: 0,
        flit_bytes: 1,
    };

    /// Of a link with the software of both its ends, the sender's and the receiver's, in nanoseconds. A
    /// process that passes a flit on takes it and sends it, one after the other, so it may be slower
    /// than the wire.
    pub fn of(link: &Link, ends: [&Host; 2], flit_bytes: u32) -> Passage {
        let [setup, per_byte] = a_flit(link, ends, flit_bytes);
        let [sender, receiver] = ends;
        let latency = link.latency_ns + receiver.wake_ns + sender.flit_ns + receiver.flit_ns;
        Passage {
            latency: latency.round() as u64,
            ticks_per_byte: per_byte + setup / f64::from(flit_bytes),
            message: sender.message_ns.round() as u64,
            flit_bytes,
        }
    }

    /// For how long so many bytes keep the port busy.
    pub fn ticks(&self, bytes: u64) -> u64 {
        match self.ticks_per_byte {
            // Exact for any length.
            1.0 => bytes,
            ticks => (ticks * bytes as f64).round() as u64,
        }
    }

    /// For how long a message does; a null one not at all.
    pub fn message(&self, bytes: u64) -> u64 {
        match bytes {
            0 => 0,
            _ => self.ticks(bytes).saturating_add(self.message),
        }
    }

    /// From the start of a stream until the neighbour can pass its first flit on, if
    /// `first` is the length of its first message; 0 if that is not known.
    pub fn first_flit(&self, first: u64) -> u64 {
        let full = u64::from(self.flit_bytes);
        let flit = if first == 0 { full } else { first.min(full) };
        self.latency.saturating_add(self.ticks(flit))
    }
}

/// What a PE knows of the edge to a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Below {
    /// From a control item's turn at the send port until the child has it.
    pub reach: u64,
    /// From the start of the child's stream until its first flit can be passed on.
    pub back: u64,
}

/// What a PE knows of time on its edges, in ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// How orders are obeyed.
    pub pacing: Pacing,
    /// The papers' model: what is due in a step goes in that step. On real links a
    /// certificate goes when all of its children's are in, since a few bytes in a
    /// socket collide with nothing.
    pub lock_step: bool,
    /// For which a control item keeps the send port busy.
    pub control: u64,
    /// The edge to the parent; P0 has none, and nothing is asked of it.
    pub up: Passage,
    /// The edges to the children, in index order.
    pub below: Vec<Below>,
    /// Of lists in turns: for which a byte keeps the PE's port busy.
    pub port_ticks_per_byte: f64,
    /// Of lists in turns: payload that the port takes between a call and the first byte that the
    /// call brings, whoever is called.
    pub ahead_bytes: u64,
}

/// The paces of a whole tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// How orders are obeyed.
    pub pacing: Pacing,
    flit_bytes: u32,
    /// By message id, where messages are cut each in its own way.
    packet_bytes: Vec<u32>,
    /// Of each PE's edge to its parent; `None` in lock step.
    real: Option<Vec<EdgeTiming>>,
    /// Lists may be played over all links of a PE at once.
    pub all_ports: bool,
    /// Nobody waits for a port: what takes time is what processes do.
    pub shares_no_port: bool,
}

/// An edge to a parent, the software of both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
struct EdgeTiming {
    /// For which a control item to the child keeps the port busy, and until it is there.
    control: u64,
    reach: u64,
    down: Passage,
    up: Passage,
    /// For which a flit down keeps the port busy, and for which each byte of it does.
    down_flit: [f64; 2],
}

impl Timing {
    /// Everything takes a step: the papers' model.
    pub const LOCK_STEP: Timing = Timing {
        pacing: Pacing::Scheduled,
        flit_bytes: 1,
        packet_bytes: Vec::new(),
        real: None,
        all_ports: false,
        shares_no_port: false,
    };

    /// On the links and hosts of `model`.
    pub fn of(model: &Model, flit_bytes: u32, pacing: Pacing) -> Timing {
        let edges = model
            .edges
            .iter()
            .enumerate()
            .map(|(edge, Edge { down, up })| {
                let [upper, lower] = model.hosts.ends(edge);
                let port = upper.control_ns + down.ns_per_byte * model.control_bytes as f64;
                let reach = port + down.latency_ns + lower.wake_ns + lower.control_ns;
                EdgeTiming {
                    control: port.round() as u64,
                    reach: reach.round() as u64,
                    down: Passage::of(down, [upper, lower], flit_bytes),
                    up: Passage::of(up, [lower, upper], flit_bytes),
                    down_flit: a_flit(down, [upper, lower], flit_bytes),
                }
            });
        Timing {
            pacing,
            flit_bytes,
            packet_bytes: Vec::new(),
            real: Some(edges.collect()),
            all_ports: model.own_links,
            shares_no_port: model.ports == Ports::PerEdge,
        }
    }

    /// The same where messages go in full flits of these sizes each, by message id; none is larger
    /// than a full flit of the others.
    pub fn in_packets(mut self, packet_bytes: Vec<u32>) -> Timing {
        self.packet_bytes = packet_bytes;
        self
    }

    /// What a PE knows.
    pub fn pace(&self, tree: &Tree, pe: PeId) -> Pace {
        let children = tree.children(pe);
        let Some(edges) = &self.real else {
            let edge = Below { reach: 1, back: 1 };
            return Pace {
                pacing: self.pacing,
                lock_step: true,
                control: 1,
                up: Passage::LOCK_STEP,
                below: vec![edge; children.len()],
                port_ticks_per_byte: 1.0,
                ahead_bytes: 0,
            };
        };
        let port = port(edges, tree, pe);
        let below = children.iter().map(|child| {
            let EdgeTiming { reach, up, .. } = edges[child.index()];
            let back = up.first_flit(0);
            Below { reach, back }
        });
        Pace {
            pacing: self.pacing,
            lock_step: false,
            control: children
                .iter()
                .map(|child| edges[child.index()].control)
                .max()
                .unwrap_or(0),
            up: edges[pe.index()].up,
            below: below.collect(),
            port_ticks_per_byte: port.0,
            ahead_bytes: port.1,
        }
    }

    /// The edge from a PE's parent down to it.
    pub fn down(&self, pe: PeId) -> Passage {
        match &self.real {
            Some(edges) => edges[pe.index()].down,
            None => Passage::LOCK_STEP,
        }
    }

    /// For which a flit keeps the port of the edge down to a PE busy, whatever its length, and for
    /// which each byte of it does.
    pub fn down_flit(&self, pe: PeId) -> [f64; 2] {
        match &self.real {
            Some(edges) => edges[pe.index()].down_flit,
            None => [0.0, 1.0],
        }
    }

    /// Whether everything takes a step.
    pub fn is_lock_step(&self) -> bool {
        self.real.is_none()
    }

    /// Payload bytes of a full flit.
    pub fn flit_bytes(&self) -> u32 {
        self.flit_bytes
    }

    /// The same of each of these messages, where each has its own; else empty.
    pub fn packet_bytes_of(&self, messages: impl Iterator<Item = MessageId>) -> Vec<u32> {
        let cut = messages.filter(|_| !self.packet_bytes.is_empty());
        cut.map(|message| self.flit_bytes_of(message)).collect()
    }

    /// The same of one message.
    pub fn flit_bytes_of(&self, message: MessageId) -> u32 {
        let own = self.packet_bytes.get(message.index());
        own.copied().unwrap_or(self.flit_bytes)
    }
}

/// What has come of a stream is seen two segments of TCP at a time, in frames of 1500 bytes.
const SEEN_BYTES: u64 = 2 * 1448;

/// For which a byte keeps a PE's port busy, and how many it takes for as long as a call goes to
/// anybody and its first byte comes back. Between two who are no neighbours in the tree lie both
/// their edges.
fn port(edges: &[EdgeTiming], tree: &Tree, pe: PeId) -> (f64, u64) {
    let there_and_back = |edge: &EdgeTiming| edge.reach.saturating_add(edge.up.latency);
    let below = tree.pes().filter(|pe| tree.parent(*pe).is_some());
    let all = below.map(|pe| &edges[pe.index()]);
    let Some(farthest) = all.max_by_key(|edge| there_and_back(edge)) else {
        return (1.0, 0);
    };
    let own = match tree.parent(pe) {
        Some(_) => &edges[pe.index()],
        None => farthest,
    };
    let ticks = there_and_back(own).saturating_add(there_and_back(farthest));
    let ticks_per_byte = own.up.ticks_per_byte.max(f64::MIN_POSITIVE);
    let ahead = (ticks as f64 / ticks_per_byte) as u64;
    (ticks_per_byte, ahead.saturating_add(SEEN_BYTES))
}

/// What a flit and each byte of it take: on the wire, or by the software if that takes longer over a
/// full flit. The software's share of a flit is spread over its bytes.
fn a_flit(link: &Link, ends: [&Host; 2], flit_bytes: u32) -> [f64; 2] {
    let [one, other] = ends.map(|host| host.relays_ns(flit_bytes));
    let software_ns = one.max(other);
    match link.occupied_ns(1, flit_bytes.into()) >= software_ns {
        true => [link.setup_ns, link.ns_per_byte],
        false => [0.0, software_ns / f64::from(flit_bytes)],
    }
}
