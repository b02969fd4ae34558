//! Gathering on any tree by Transmission-Certification (paper 000, section III-B, serial; and the
//! pipelined variant of ARCHITECTURE.md).
//!
//! A PE promises its parent a gap-free stream: "`lag` ticks after your order, my whole subtree's
//! messages, `stream` ticks long". It can, because it has its children's promises and puts their
//! streams after its own message.

use super::pace::{ChildPace, Pacing, Packets, Passage};
use crate::PeId;

/// The order in which the token and the certificates travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// One child after the other, each waited for, as in the paper's text. 2n steps; every child gets
    /// an order.
    Serial,
    /// Down and back up in 2B steps, B the tree's broadcast time; only subtrees
    /// that hold flits get an order.
    Pipelined,
    /// With a port for each neighbour (paper 000, section IV, level one): down and
    /// back up in 2H steps, H the tree's height, and all orders of a PE at once.
    /// Streams still pass one at a time.
    Parallel,
    /// [`Sync::Parallel`] with all ports in use at the same time: a PE's orders delay no stream,
    /// and P0 receives each child's stream on a separate port. Streams to a relay still follow each
    /// other, because there is only one link to its parent.
    MultiPort,
    /// None: the root has its children's certificates before the round, since it has the lengths of their
    /// messages. On stars only.
    Known,
}

/// (c, n): `lag` ticks after its order, the first flit of a PE's subtree is with the
/// parent, and all of it follows without a gap. A tick is a step in the papers' model
/// and a nanosecond on real links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Certificate {
    /// The certified lag time c, at least 1.
    pub lag: u64,
    /// The certified stream length n, as the time it takes on the edge to the parent.
    pub stream: u64,
    pub packets: Packets,
}

/// A child that will get an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Child {
    /// The PE that sends the stream.
    pub pe: PeId,
    /// The rank by which its stream is taken; the same for all if each comes as early as it can.
    pub rank: u32,
    /// Begin of its order at the send port, in ticks after the PE's own order.
    pub turn: u64,
    /// End of that order at the send port of the stream; 0 if it uses another port.
    pub out: u64,
    /// Arrival of the order at the child: the place p_j.
    pub ordered: u64,
    pub up: Passage,
    pub certificate: Certificate,
}

impl Child {
    /// Returns the time in which the stream's first packet arrives.
    fn first_packet(&self) -> u64 {
        self.up.packet(self.certificate.packets.first)
    }

    /// Returns the time at which the stream's first byte arrives if the order, with the child at
    /// `ordered`, contains `after`.
    fn begin(&self, ordered: u64, after: u64) -> u64 {
        ordered
            .saturating_add(after)
            .saturating_sub(self.first_packet())
    }

    /// Returns the time for which the stream occupies the send port, and the time from the arrival of its
    /// first byte until it is relayed without a gap. In turns a stream from a slower edge is not held
    /// back, and keeps that edge's pace.
    fn relayed(&self, pacing: Pacing, up: &Passage) -> (u64, u64) {
        let Certificate {
            stream, packets, ..
        } = self.certificate;
        let (through, largest) = (up.stream(packets), self.up.packet(packets.largest));
        match pacing {
            Pacing::Turns => (through.max(stream), largest),
            Pacing::Scheduled | Pacing::Eager => {
                (through, largest.saturating_add(self.up.slower(up, packets)))
            }
        }
    }
}

/// A child's stream, in the sequence in which its parent relays them.
struct Relayed {
    child: Child,
    /// Earliest arrival of its first byte, in ticks after the parent's order.
    begin: u64,
    /// Time for which it occupies the parent's send port.
    through: u64,
    /// D_j: time from the arrival of its first byte until it is relayed (paper 003, section 7.3, with
    /// separate times for each edge). A packet is relayed when it is complete, and the stream may not meet
    /// the one before.
    delay: u64,
}

/// A child's order, in the sequence in which the PE takes the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The PE that sends the stream.
    pub pe: PeId,
    /// Begin of the order at the send port.
    pub turn: u64,
    /// Arrival of the order at the child.
    pub ordered: u64,
    /// s_j: TRANSMIT AFTER s_j TICKS.
    pub after: u64,
    /// c_j: the earliest begin of the stream.
    pub lag: u64,
    pub packets: Packets,
    /// Time in which the stream passes.
    pub through: u64,
    /// Time from the order's begin at the send port until the stream's first byte arrives.
    pub ahead: u64,
    /// Time from the arrival of the first byte until it is relayed.
    pub delay: u64,
}

impl Slot {
    fn new(child: &Child, after: u64, through: u64, delay: u64) -> Slot {
        Slot {
            pe: child.pe,
            turn: child.turn,
            ordered: child.ordered,
            after,
            lag: child.certificate.lag,
            packets: child.certificate.packets,
            through,
            ahead: child.begin(child.ordered - child.turn, child.certificate.lag),
            delay,
        }
    }
}

/// Returns the children that get an order, in its sequence. `children` are in the order in which the
/// token was sent to them, with their ranks and the ticks that an order takes to reach them; each order
/// occupies the port for `control` ticks.
pub fn places(
    sync: Sync,
    control: u64,
    children: impl Iterator<Item = (PeId, u32, ChildPace, Certificate)>,
) -> Vec<Child> {
    children
        .filter(|(.., certificate)| sync == Sync::Serial || certificate.packets.bytes > 0)
        .zip(0u64..)
        .map(
            |((pe, rank, ChildPace { reach, up }, certificate), before)| {
                let turn = match sync {
                    Sync::Serial | Sync::Pipelined | Sync::Known => before.saturating_mul(control),
                    Sync::Parallel | Sync::MultiPort => 0,
                };
                let out = match sync {
                    Sync::MultiPort => 0,
                    _ => turn.saturating_add(control),
                };
                Child {
                    pe,
                    rank,
                    turn,
                    out,
                    ordered: turn.saturating_add(reach),
                    up,
                    certificate,
                }
            },
        )
        .collect()
}

/// Returns the children's streams by rank, then earliest first, then by index: the sequence in which they
/// are relayed. In the paper this starts when all orders are sent; pipelined, it starts for each child with
/// its own order.
fn sequence(sync: Sync, pacing: Pacing, up: &Passage, children: &[Child]) -> Vec<Relayed> {
    let last = children.iter().map(|child| child.ordered).max();
    let relayed = |child: &Child| {
        let ordered = match sync {
            Sync::Serial => last.unwrap_or(child.ordered),
            Sync::Pipelined | Sync::Parallel | Sync::MultiPort | Sync::Known => child.ordered,
        };
        let (through, delay) = child.relayed(pacing, up);
        Relayed {
            child: *child,
            begin: child.begin(ordered, child.certificate.lag),
            through,
            delay,
        }
    };
    let mut sorted: Vec<Relayed> = children.iter().map(relayed).collect();
    sorted.sort_by_key(|it| (it.child.rank, it.begin, it.child.pe));
    let mut later = 0u64;
    for it in sorted
        .iter_mut()
        .rev()
        .filter(|it| it.child.certificate.packets.bytes > 0)
    {
        // It has ended when the next one begins, which is relayed after it.
        let next = later.saturating_add(it.child.certificate.stream);
        it.delay = it.delay.max(next.saturating_sub(it.through));
        later = it.delay;
    }
    sorted
}

/// Returns a PE's certificate, from its own message and the children that will get an order: own
/// message first, the children's streams after it without a gap, all as early as every one of them
/// allows.
pub fn certificate(
    sync: Sync,
    pacing: Pacing,
    up: &Passage,
    own: Packets,
    children: &[Child],
) -> Certificate {
    // The send port is free when the last order is sent.
    let mut start = children.iter().map(|child| child.out).max().unwrap_or(0);
    let mut stream = up.message(own);
    let mut packets = own;
    for it in sequence(sync, pacing, up, children) {
        if it.child.certificate.packets.bytes > 0 {
            let ready = it.begin.saturating_add(it.delay);
            start = start.max(ready.saturating_sub(stream));
            stream = stream.saturating_add(it.through);
            packets = packets.then(it.child.certificate.packets);
        }
    }
    Certificate {
        lag: start.saturating_add(up.first_packet(packets.first)),
        stream,
        packets,
    }
}

/// Returns a PE's orders to its children if its first packet is to reach the parent `after` ticks after
/// its own order: if it relays child j's stream from tick r_j on, the first byte must have arrived D_j
/// before, and j gets its order at p_j, so s_j = r_j - D_j - p_j and the time of its first packet.
pub fn orders(
    sync: Sync,
    pacing: Pacing,
    up: &Passage,
    after: u64,
    own: Packets,
    children: &[Child],
) -> Vec<Slot> {
    let streams = sequence(sync, pacing, up, children);
    let packets = streams.iter().map(|it| it.child.certificate.packets);
    let whole = packets.fold(own, Packets::then);
    let start = after.saturating_sub(up.first_packet(whole.first));
    let mut relay = start.saturating_add(up.message(own));
    let slot = |it: Relayed| {
        let Relayed {
            child,
            through,
            delay,
            ..
        } = it;
        let after = match child.certificate.packets.bytes {
            0 => child.certificate.lag,
            _ => {
                let first = relay.saturating_add(child.first_packet());
                first
                    .saturating_sub(delay.saturating_add(child.ordered))
                    .max(1)
            }
        };
        relay = relay.saturating_add(through);
        Slot::new(&child, after, through, delay)
    };
    streams.into_iter().map(slot).collect()
}

/// Returns P0's orders to its children. P0 only receives, so the streams need no gap-free sequence:
/// each begins as early as it can and the port is free; with `all_ports`, each child has a port.
pub fn root_orders(all_ports: bool, children: &[Child]) -> Vec<Slot> {
    let earliest = |child: &Child| child.begin(child.ordered, child.certificate.lag);
    let mut sorted = children.to_vec();
    sorted.sort_by_key(|child| (child.rank, earliest(child), child.pe));
    let mut free = 0u64;
    let slot = |child: &Child| {
        let Certificate {
            lag,
            stream,
            packets,
        } = child.certificate;
        let after = match packets.bytes {
            0 => lag,
            _ => {
                let begin = earliest(child).max(free);
                if !all_ports {
                    free = begin.saturating_add(stream);
                }
                begin.saturating_add(child.first_packet()) - child.ordered
            }
        };
        Slot::new(child, after, stream, child.first_packet())
    };
    sorted.iter().map(slot).collect()
}
