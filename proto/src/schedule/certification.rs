//! Gathering on any tree by Transmission-Certification (paper 000, section III-B, serial; and the
//! pipelined variant of ARCHITECTURE.md).
//!
//! A PE promises its parent a gap-free stream: "`lag` ticks after your order, my whole subtree's
//! messages, `stream` ticks long". It can, because it has its children's promises and puts their
//! streams after its own message.

use super::pace::Passage;
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
    /// The stream's length in bytes; in the papers' model a flit has one.
    pub bytes: u64,
}

/// A child that will get an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The child's certificate.
    pub certificate: Certificate,
}

impl Child {
    /// Returns the time in which the stream's first flit arrives.
    fn first_flit(&self, flit_bytes: u32) -> u64 {
        let Certificate { stream, bytes, .. } = self.certificate;
        let flit = bytes.min(flit_bytes.into());
        (u128::from(stream) * u128::from(flit) / u128::from(bytes.max(1))) as u64
    }

    /// Returns the time for which the stream occupies the send port. A stream that arrived over a
    /// slower link keeps that link's pace.
    fn through(&self, up: &Passage) -> u64 {
        self.certificate
            .stream
            .max(up.ticks(self.certificate.bytes))
    }
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
    /// Bytes of the stream.
    pub bytes: u64,
    /// Time in which the stream passes.
    pub through: u64,
    /// Time from the order's begin at the send port until the stream's first byte arrives,
    pub ahead: u64,
    /// and time in which its first flit arrives.
    pub first_flit: u64,
}

impl Slot {
    fn new(child: &Child, after: u64, through: u64, flit_bytes: u32) -> Slot {
        let first_flit = child.first_flit(flit_bytes);
        let here = (child.ordered - child.turn).saturating_add(child.certificate.lag);
        Slot {
            pe: child.pe,
            turn: child.turn,
            ordered: child.ordered,
            after,
            lag: child.certificate.lag,
            bytes: child.certificate.bytes,
            through,
            ahead: here.saturating_sub(first_flit),
            first_flit,
        }
    }
}

/// Returns the children that get an order, in its sequence. `children` are in the order in which the
/// token was sent to them, with their ranks and the ticks that an order takes to reach them; each order
/// occupies the port for `control` ticks.
pub fn places(
    sync: Sync,
    control: u64,
    children: impl Iterator<Item = (PeId, u32, u64, Certificate)>,
) -> Vec<Child> {
    children
        .filter(|(.., certificate)| sync == Sync::Serial || certificate.bytes > 0)
        .zip(0u64..)
        .map(|((pe, rank, reach, certificate), before)| {
            let turn = match sync {
                Sync::Serial | Sync::Pipelined => before.saturating_mul(control),
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
                certificate,
            }
        })
        .collect()
}

/// Returns the ticks after the PE's own order at which each child's first flit has arrived, by rank,
/// then earliest first, then by index: the sequence in which the streams are relayed. In the paper this starts when
/// all orders are sent; pipelined, it starts for each child with its own order.
fn sequence(sync: Sync, children: &[Child]) -> Vec<(u64, Child)> {
    let last = children.iter().map(|child| child.ordered).max();
    let ready = |child: &Child| {
        let ordered = match sync {
            Sync::Serial => last.unwrap_or(child.ordered),
            Sync::Pipelined | Sync::Parallel | Sync::MultiPort => child.ordered,
        };
        ordered.saturating_add(child.certificate.lag)
    };
    let mut sorted: Vec<_> = children
        .iter()
        .map(|child| (ready(child), *child))
        .collect();
    sorted.sort_by_key(|(ready, child)| (child.rank, *ready, child.pe));
    sorted
}

/// Returns a PE's certificate, from its own message and the children that will get an order: own
/// message first, the children's streams after it without a gap, all as early as every one of them
/// allows.
pub fn certificate(sync: Sync, up: &Passage, own_bytes: u64, children: &[Child]) -> Certificate {
    // The send port is free when the last order is sent.
    let mut start = children.iter().map(|child| child.out).max().unwrap_or(0);
    let mut stream = up.message(own_bytes);
    let mut bytes = own_bytes;
    for (ready, child) in sequence(sync, children) {
        if child.certificate.bytes > 0 {
            start = start.max(ready.saturating_sub(stream));
            stream = stream.saturating_add(child.through(up));
            bytes = bytes.saturating_add(child.certificate.bytes);
        }
    }
    Certificate {
        lag: start.saturating_add(up.first_flit(own_bytes)),
        stream,
        bytes,
    }
}

/// Returns a PE's orders to its children if its own first flit is to reach the parent `after` ticks
/// after its own order: if it relays child j's first flit from tick r_j on, that flit must have arrived
/// by then, and j gets its order at p_j, so s_j = r_j - p_j.
pub fn orders(
    sync: Sync,
    up: &Passage,
    after: u64,
    own_bytes: u64,
    children: &[Child],
) -> Vec<Slot> {
    let start = after.saturating_sub(up.first_flit(own_bytes));
    let mut relay = start.saturating_add(up.message(own_bytes));
    let slot = |(_, child): (u64, Child)| {
        let after = match child.certificate.bytes {
            0 => child.certificate.lag,
            _ => relay.saturating_sub(child.ordered).max(1),
        };
        let through = child.through(up);
        relay = relay.saturating_add(through);
        Slot::new(&child, after, through, up.flit_bytes)
    };
    sequence(sync, children).into_iter().map(slot).collect()
}

/// Returns P0's orders to its children. P0 only receives, so the streams need no gap-free sequence:
/// each begins as early as it can and the port is free; with `all_ports`, each child has a port.
pub fn root_orders(flit_bytes: u32, all_ports: bool, children: &[Child]) -> Vec<Slot> {
    let earliest = |child: &Child| child.ordered.saturating_add(child.certificate.lag);
    let mut sorted = children.to_vec();
    sorted.sort_by_key(|child| (child.rank, earliest(child), child.pe));
    let mut free = 0u64;
    let slot = |child: &Child| {
        let Certificate { lag, stream, bytes } = child.certificate;
        let after = match bytes {
            0 => lag,
            _ => {
                // The first flit has arrived when it has passed the port.
                let flit = child.first_flit(flit_bytes);
                let first = earliest(child).max(free.saturating_add(flit));
                if !all_ports {
                    free = first.saturating_sub(flit).saturating_add(stream);
                }
                first - child.ordered
            }
        };
        Slot::new(child, after, stream, flit_bytes)
    };
    sorted.iter().map(slot).collect()
}
