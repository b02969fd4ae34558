//! Gathering on any tree by Transmission-Certification (paper 000, section
//! III-B, serial; and the pipelined variant of ARCHITECTURE.md).
//!
//! A PE promises its parent a gap-free stream: "`lag` steps after your order, my
//! whole subtree's messages, `stream` flits". It can, because it knows its
//! children's promises and lines the streams up behind its own message.

use crate::PeId;

/// How the token and the certificates travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sync {
    /// As the paper words it: one child after the other, each waited for. 2n
    /// steps; every child gets an order.
    Serial,
    /// Down and back up in 2B steps, B the tree's broadcast time; only subtrees
    /// that hold flits get an order.
    Pipelined,
    /// With a port for each neighbour (paper 000, section IV, level one): down and
    /// back up in 2H steps, H the tree's height, and all orders of a PE at once.
    /// Streams still pass one at a time.
    Parallel,
}

/// (c, n): `lag_steps` after its order, a PE's subtree can send `stream_flits`
/// without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Certificate {
    /// The certified lag time c, at least 1.
    pub lag_steps: u64,
    /// The certified stream length n.
    pub stream_flits: u64,
}

/// A child that will get an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// Whose stream it is.
    pub pe: PeId,
    /// p_j: its order goes out `place` steps after the PE's own came in.
    pub place: u64,
    /// What it promised.
    pub certificate: Certificate,
}

/// A child's order, in the sequence in which the PE takes the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Whose stream it is.
    pub pe: PeId,
    /// p_j, as in [`Child`].
    pub place: u64,
    /// s_j: TRANSMIT AFTER s_j STEPS.
    pub after_steps: u64,
    /// n_j.
    pub stream_flits: u64,
}

/// The children that get an order, in its sequence. `children` come in the
/// order in which the token went to them.
pub fn places(sync: Sync, children: impl Iterator<Item = (PeId, Certificate)>) -> Vec<Child> {
    children
        .filter(|(_, certificate)| sync == Sync::Serial || certificate.stream_flits > 0)
        .zip(1..)
        .map(|((pe, certificate), place)| Child {
            pe,
            place: if sync == Sync::Parallel { 1 } else { place },
            certificate,
        })
        .collect()
}

/// Steps after the PE's own order before the first flit of a child's stream can
/// be relayed. The paper waits until all orders are out; pipelined, a child
/// starts to count when its own is.
fn ready(sync: Sync, orders: usize, child: &Child) -> u64 {
    let ordered = match sync {
        Sync::Serial => orders as u64,
        Sync::Pipelined | Sync::Parallel => child.place,
    };
    ordered
        .saturating_add(child.certificate.lag_steps)
        .saturating_add(1)
}

/// The children's streams in the sequence in which they are relayed: earliest
/// ready first, ties by index.
fn sequence(sync: Sync, children: &[Child]) -> Vec<Child> {
    let mut sorted = children.to_vec();
    sorted.sort_by_key(|child| (ready(sync, children.len(), child), child.pe));
    sorted
}

/// A PE's certificate, from its own message and the children that will get an
/// order: own message first, the children's streams behind it without a gap, all
/// as early as every one of them allows.
pub fn certificate(sync: Sync, own_flits: u64, children: &[Child]) -> Certificate {
    // The send port is free when the last order is out.
    let last_place = children.iter().map(|child| child.place).max().unwrap_or(0);
    let mut lag = last_place + 1;
    let mut stream = own_flits;
    for child in sequence(sync, children) {
        if child.certificate.stream_flits > 0 {
            lag = lag.max(ready(sync, children.len(), &child).saturating_sub(stream));
            stream = stream.saturating_add(child.certificate.stream_flits);
        }
    }
    Certificate {
        lag_steps: lag,
        stream_flits: stream,
    }
}

/// What a PE orders its children when it was itself told to transmit after
/// `after_steps`: if it relays child j's first flit r_j steps after its own
/// order, that flit must cross the step before, and j got its order at place
/// p_j, so s_j = r_j - 1 - p_j.
pub fn orders(sync: Sync, after_steps: u64, own_flits: u64, children: &[Child]) -> Vec<Slot> {
    let mut relay_step = after_steps.saturating_add(own_flits);
    sequence(sync, children)
        .iter()
        .map(|child| {
            let Certificate {
                lag_steps,
                stream_flits,
            } = child.certificate;
            let after_steps = match stream_flits {
                0 => lag_steps,
                _ => relay_step.saturating_sub(1 + child.place).max(1),
            };
            relay_step = relay_step.saturating_add(stream_flits);
            Slot {
                pe: child.pe,
                place: child.place,
                after_steps,
                stream_flits,
            }
        })
        .collect()
}

/// What P0 orders its children. It only receives, so it needs no gap-free whole:
/// each stream as early as it can come and the port is free.
pub fn root_orders(children: &[Child]) -> Vec<Slot> {
    let earliest = |child: &Child| child.place.saturating_add(child.certificate.lag_steps);
    let mut sorted = children.to_vec();
    sorted.sort_by_key(|child| (earliest(child), child.pe));
    let mut busy_until = 0u64;
    sorted
        .iter()
        .map(|child| {
            let Certificate {
                lag_steps,
                stream_flits,
            } = child.certificate;
            let after_steps = match stream_flits {
                0 => lag_steps,
                _ => {
                    let first = earliest(child).max(busy_until.saturating_add(1));
                    busy_until = first.saturating_add(stream_flits - 1);
                    first - child.place
                }
            };
            Slot {
                pe: child.pe,
                place: child.place,
                after_steps,
                stream_flits,
            }
        })
        .collect()
}
