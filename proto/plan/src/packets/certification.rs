//! Transmission-Certification II: a gather in packets on a tree whose lengths P0 does not have (paper
//! 003, section 7.3; its text leaves gaps, and this is one interpretation).
//!
//! As in [`crate::schedule::certification`], with a delay at each relay: a packet is forwarded when it
//! is complete. The token carries a cap on packet sizes, the same for all PEs, since every packet costs
//! time at P0's port. In the paper a control packet has one flit and a set-up; on real links a control
//! item goes between two packets ([`ControlCost`]), so another cap may be best there.

use std::cmp::Reverse;

use flitcast_proto::{PeId, Tree};

use super::caps::caps;
use super::model::{LinkCost, PacketPlanError, Ticks};

/// Limit of tried caps times certified PEs: half a second.
const MOST_CAPS: usize = 1000;
const MOST_CERTIFIED: usize = 1 << 20;

/// The time that a token, a certificate or an order takes on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ControlCost {
    /// The time of a packet of one flit, as in the paper.
    #[default]
    Packet,
    /// No time: a few bytes between two packets, as on real links.
    Free,
}

impl ControlCost {
    /// Returns the time of a control item: the paper's beta + 1, or nothing.
    pub fn ticks(self, cost: LinkCost) -> Ticks {
        match self {
            ControlCost::Packet => cost.packet(1),
            ControlCost::Free => 0,
        }
    }
}

/// The promise of a PE to its parent for its whole subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Ticks from its order to the earliest begin of its stream: the certified lag time c.
    pub lag: Ticks,
    /// R, the number of packets.
    pub packets: u64,
    /// F, the number of flits.
    pub flits: u64,
    /// The flits of the largest packet.
    pub largest: u64,
}

/// The times at which a PE sends its own data and relays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    pub pe: PeId,
    /// s: number of ticks from the PE's order to the begin of the stream.
    pub after: Ticks,
    /// Begin on the link to the parent,
    pub start: Ticks,
    pub end: Ticks,
}

/// A gather by Transmission-Certification II.
#[derive(Clone, Debug)]
pub struct Certified {
    /// The largest packet that a PE may make.
    pub cap: u64,
    /// Time of a control item.
    pub control: Ticks,
    /// The certificates by PE; P0's covers all messages.
    pub certificates: Vec<Certificate>,
    /// Time when P0 has the last certificate: the paper's 2B.
    pub certified: Ticks,
    /// The streams of all PEs that get an order, from the top down.
    pub streams: Vec<Stream>,
    /// Time when the last stream ends at P0.
    pub time: Ticks,
}

impl Certified {
    /// Returns the sources of all nonnull messages in the order in which P0 receives them: each PE's own
    /// message, then its children's streams as they begin.
    pub fn order(&self, tree: &Tree, flits: &[u64]) -> Vec<PeId> {
        let mut children: Vec<Vec<&Stream>> = vec![Vec::new(); tree.len()];
        for stream in &self.streams {
            if let Some(parent) = tree.parent(stream.pe) {
                children[parent.index()].push(stream);
            }
        }
        let (mut order, mut waiting) = (Vec::new(), vec![tree.root()]);
        while let Some(pe) = waiting.pop() {
            order.extend((flits[pe.index()] > 0).then_some(pe));
            let streams = &mut children[pe.index()];
            streams.sort_by_key(|stream| Reverse((stream.start, stream.pe)));
            waiting.extend(streams.iter().map(|stream| stream.pe));
        }
        order
    }

    /// Returns an upper bound of the time, which takes the place of the paper's Lemma 22: 2B + H (d k +
    /// beta + b) and the time of all messages at P0's port, if H is the depth of the tree, d the largest
    /// number of children, k the time of a control item, and b the largest packet.
    pub fn upper_bound(&self, tree: &Tree, flits: &[u64], cost: LinkCost) -> Ticks {
        let nonnull = tree.pes().filter(|pe| flits[pe.index()] > 0);
        let depth = nonnull.map(|pe| Ticks::from(tree.depth(pe))).max();
        let children = tree.pes().map(|pe| tree.children(pe).len()).max();
        let whole = &self.certificates[tree.root().index()];
        let orders = children.unwrap_or(0) as Ticks * self.control;
        let each = orders + cost.packet(whole.largest);
        self.certified + depth.unwrap_or(0) * each + cost.certified(whole)
    }
}

impl LinkCost {
    /// Returns the time of a certified stream on a link: the paper's n.
    pub fn certified(self, certificate: &Certificate) -> Ticks {
        self.stream(certificate.packets, certificate.flits)
    }
}

/// A child with flits below it, in the sequence in which its parent receives the streams.
struct Child {
    pe: PeId,
    /// Ticks after its parent's order at which it has its own.
    ordered: Ticks,
    /// Ticks after its parent's order at which its stream can begin.
    ready: Ticks,
    /// D: the time from the begin of its stream until the stream is forwarded. That is the time of the
    /// largest packet of this and all later streams: with its own alone, a later stream with larger
    /// packets would have to begin before this one. 0 at P0, which forwards nothing.
    delay: Ticks,
}

struct Planner<'a> {
    tree: &'a Tree,
    flits: &'a [u64],
    cost: LinkCost,
    /// Time of a control item.
    control: Ticks,
    cap: u64,
    certificates: Vec<Certificate>,
}

impl Planner<'_> {
    /// Returns the certificate for a PE's own message.
    fn own(&self, pe: PeId) -> Certificate {
        let flits = self.flits[pe.index()];
        let packets = flits.div_ceil(self.cap);
        Certificate {
            lag: 0,
            packets,
            flits,
            largest: flits.div_ceil(packets.max(1)),
        }
    }

    fn certificate(&self, pe: PeId) -> &Certificate {
        &self.certificates[pe.index()]
    }

    /// Returns the children whose subtrees have flits. Orders are sent in the token's sequence.
    fn children(&self, pe: PeId) -> Vec<Child> {
        let control = self.control;
        let order = self.tree.token_broadcast().order(pe).iter();
        let with_flits = order.filter(|child| self.certificate(**child).flits > 0);
        let child = |(place, &pe): (u128, &PeId)| Child {
            pe,
            ordered: place * control,
            ready: place * control + self.certificate(pe).lag,
            delay: 0,
        };
        let mut children: Vec<Child> = (1..).zip(with_flits).map(child).collect();
        children.sort_by_key(|child| (child.ready, child.pe));
        let mut largest = 0;
        for child in children.iter_mut().rev().filter(|_| pe != self.tree.root()) {
            largest = self.certificates[child.pe.index()].largest.max(largest);
            child.delay = self.cost.packet(largest);
        }
        children
    }

    /// Returns the certificate of a PE whose children have theirs: own packets first, and each stream
    /// as early as `lag` allows. The child at place p is ready at p control packets and its own lag.
    fn certify(&self, pe: PeId) -> Certificate {
        let children = self.children(pe);
        let mut whole = self.own(pe);
        // The last order has been sent.
        whole.lag = self.control * children.len() as Ticks;
        for child in children {
            let here = child.ready + child.delay;
            let lag = here.saturating_sub(self.cost.certified(&whole));
            whole.lag = whole.lag.max(lag);
            let below = self.certificate(child.pe);
            whole.packets += below.packets;
            whole.flits += below.flits;
            whole.largest = whole.largest.max(below.largest);
        }
        whole
    }

    /// Returns the streams of a PE's children, and when each child has its order. The PE has its own
    /// order at `ordered` and begins at `start`; it relays the streams after its own packets without a
    /// gap.
    fn streams(&self, pe: PeId, ordered: Ticks, start: Ticks) -> Vec<(Ticks, Stream)> {
        let mut relayed = start + self.cost.certified(&self.own(pe));
        let stream = |child: Child| {
            // A relay is never ordered to send a stream that is not ready, because of its lag.
            let start = (relayed - child.delay).max(ordered + child.ready);
            let end = start + self.cost.certified(self.certificate(child.pe));
            relayed = end + child.delay;
            let ordered = ordered + child.ordered;
            let stream = Stream {
                pe: child.pe,
                after: start - ordered,
                start,
                end,
            };
            (ordered, stream)
        };
        self.children(pe).into_iter().map(stream).collect()
    }
}

/// Returns the gather of `flits[i]` from P_i in even packets of at most `cap` flits.
pub fn plan(
    tree: &Tree,
    flits: &[u64],
    cost: LinkCost,
    control: ControlCost,
    cap: u64,
) -> Result<Certified, PacketPlanError> {
    super::check(flits)?;
    Ok(with_cap(tree, flits, cost, control, cap))
}

fn with_cap(
    tree: &Tree,
    flits: &[u64],
    cost: LinkCost,
    control: ControlCost,
    cap: u64,
) -> Certified {
    let mut planner = Planner {
        tree,
        flits,
        cost,
        control: control.ticks(cost),
        cap,
        certificates: vec![Certificate::default(); tree.len()],
    };
    for &pe in tree.top_down().iter().rev() {
        planner.certificates[pe.index()] = planner.certify(pe);
    }
    let certified = 2 * planner.control * Ticks::from(tree.token_broadcast().steps());
    // Arrival of a PE's order, and begin of its stream.
    let mut begins = vec![None; tree.len()];
    begins[tree.root().index()] = Some((certified, 0));
    let mut streams = Vec::new();
    for &pe in tree.top_down() {
        let Some((ordered, start)) = begins[pe.index()] else {
            continue;
        };
        for (ordered, stream) in planner.streams(pe, ordered, start) {
            begins[stream.pe.index()] = Some((ordered, stream.start));
            streams.push(stream);
        }
    }
    Certified {
        cap,
        control: planner.control,
        certified,
        time: streams.iter().map(|stream| stream.end).max().unwrap_or(0),
        certificates: planner.certificates,
        streams,
    }
}

/// Returns the gather under the cap with the least time, of as many as there is time to try.
pub fn plan_best_cap(
    tree: &Tree,
    flits: &[u64],
    cost: LinkCost,
    control: ControlCost,
) -> Result<Certified, PacketPlanError> {
    super::check(flits)?;
    let at_most = (MOST_CERTIFIED / tree.len()).clamp(2, MOST_CAPS);
    let caps = caps(flits.iter().copied().filter(|&flits| flits > 0), at_most).tried;
    let with = |cap| with_cap(tree, flits, cost, control, cap);
    let tried = caps.iter().rev().map(|cap| with(cap.least));
    let best = tried.min_by_key(|certified| certified.time);
    Ok(best.unwrap_or_else(|| with(1)))
}

#[cfg(test)]
mod tests;
