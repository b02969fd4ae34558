//! The time of a plan on real links, computed from its crossings alone.
//!
//! A plan counts steps, in which a flit or a control item crosses an edge. On links with a latency, a
//! rate and a set-up time the same plan follows these rules, as a real round does:
//!
//! - A PE sends in the planned order: as soon as it has the flits and all control items that the
//!   plan gives it in earlier steps, and its port is free. Nothing waits for the end of a step, and
//!   within a step the possible packet that can begin first goes first.
//! - A PE receives in the planned order.
//! - A packet occupies both ports for its set-up time and its bytes, and arrives a latency later, one
//!   block after the other. If links have a set-up time, it leaves when all of it is there; else each
//!   of its flits follows when it is.
//! - A control item of a few bytes is sent between two packets: it pays no set-up and waits for no
//!   port.
//!
//! No state machine runs here. [`crate::predict`] runs those of real rounds, and both have to take the
//! same time (`predict/plan_tests.rs`).

use std::collections::{BTreeMap, VecDeque};

use flitcast_proto::items::{Packing, ScheduledHop};
use flitcast_proto::{MessageId, PeId, Tree};

use crate::baseline::Transfer;
use crate::cost::{Model, Ports};
use crate::gossip::{Gossip, Piece};
use crate::trace::{Crossing, Item};

/// A planned crossing of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The step in which it begins.
    pub step: u64,
    /// The sender.
    pub from: PeId,
    /// The receiver.
    pub to: PeId,
    /// The content.
    pub load: Load,
    /// Positions of the crossings that have to arrive before it can begin, besides those that bring
    /// its flits.
    pub after: Vec<usize>,
}

impl Sent {
    /// Creates a crossing that waits for its flits alone.
    pub(crate) fn new(step: u64, [from, to]: [PeId; 2], load: Load) -> Sent {
        Sent {
            step,
            from,
            to,
            load,
            after: Vec::new(),
        }
    }
}

/// The content of a planned crossing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// A control item.
    Control,
    /// Flits that leave the sender together. They are one packet if `is_whole` or if links have a
    /// set-up time; else each flit follows as soon as it is there.
    Flits {
        /// The flits, in order.
        flits: Vec<Piece>,
        /// Whether they are one packet on links without a set-up time, too.
        is_whole: bool,
    },
    /// This number of flits, each a packet. The sender has them before.
    Count(u64),
}

/// The course of a plan on links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OnLinks {
    /// Time when the last flit arrives.
    pub time_ns: f64,
    /// Number of packets, control items not counted.
    pub packets: u64,
}

/// Returns the time and the number of packets of planned crossings on the links of a model; its hosts
/// cost nothing. Flits have `flit_bytes` bytes.
pub fn course(all: &[Sent], tree: &Tree, model: &Model, flit_bytes: u32) -> OnLinks {
    let mut carrier = Carrier {
        all,
        tree,
        model,
        flit_bytes: u64::from(flit_bytes) + model.prefix_bytes,
        sends: BTreeMap::new(),
        takes: BTreeMap::new(),
        here: BTreeMap::new(),
        last_control: vec![0.0; tree.len()],
        arrived: vec![0.0; all.len()],
        whole: OnLinks::default(),
    };
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|place| all[*place].step);
    for step in order.chunk_by(|one, next| all[*one].step == all[*next].step) {
        carrier.step(step);
    }
    carrier.whole
}

/// Returns one flit of a piece.
fn one(piece: &Piece, offset: u64) -> Piece {
    Piece {
        offset,
        flits: 1,
        ..*piece
    }
}

/// A port of a PE: the only one in this direction, or the one for a neighbour.
type Port = (PeId, Option<PeId>);

struct Carrier<'a> {
    all: &'a [Sent],
    tree: &'a Tree,
    model: &'a Model,
    /// Bytes of a flit's frame.
    flit_bytes: u64,
    /// Times from which ports are free.
    sends: BTreeMap<Port, f64>,
    takes: BTreeMap<Port, f64>,
    /// Arrivals of flits at PEs that are not their sources.
    here: BTreeMap<(PeId, MessageId, u64), f64>,
    /// For each PE, the arrival of the last control item of earlier steps.
    last_control: Vec<f64>,
    /// Arrivals by position.
    arrived: Vec<f64>,
    whole: OnLinks,
}

impl Carrier<'_> {
    fn port(&self, pe: PeId, other: PeId) -> Port {
        (pe, (self.model.ports == Ports::PerEdge).then_some(other))
    }

    /// Sends all crossings that begin in a step.
    fn step(&mut self, places: &[usize]) {
        let mut queues: BTreeMap<Port, VecDeque<usize>> = BTreeMap::new();
        let mut controls = Vec::new();
        for &place in places {
            let Sent { from, to, load, .. } = &self.all[place];
            match load {
                Load::Control => controls.push(place),
                _ => queues
                    .entry(self.port(*from, *to))
                    .or_default()
                    .push_back(place),
            }
        }
        controls.iter().for_each(|place| self.control(*place));
        loop {
            let heads = queues.iter().filter_map(|(port, queue)| {
                let place = *queue.front()?;
                Some((self.begin(place), place, *port))
            });
            let first = heads.min_by(|one, next| one.0.total_cmp(&next.0).then(one.1.cmp(&next.1)));
            let Some((_, place, port)) = first else { break };
            queues.entry(port).or_default().pop_front();
            self.packet(place);
        }
        for place in controls {
            let last_control = &mut self.last_control[self.all[place].to.index()];
            *last_control = last_control.max(self.arrived[place]);
        }
    }

    /// Returns the time from which the sender may send something, apart from its port and its flits.
    fn permitted(&self, place: usize) -> f64 {
        let Sent { from, after, .. } = &self.all[place];
        let after = after.iter().map(|before| self.arrived[*before]);
        after.fold(self.last_control[from.index()], f64::max)
    }

    /// Returns when the sender has flits of a message.
    fn has(&self, from: PeId, flits: &Piece) -> f64 {
        let each = flits.offset..flits.offset + flits.flits;
        let times = each.filter_map(|flit| self.here.get(&(from, flits.message, flit)));
        times.copied().fold(0.0, f64::max)
    }

    /// Returns when a packet, or its first flit, begins to occupy its port.
    fn begin(&self, place: usize) -> f64 {
        let Sent { from, to, load, .. } = &self.all[place];
        let free = self.sends.get(&self.port(*from, *to)).copied();
        let begin = self.permitted(place).max(free.unwrap_or(0.0));
        let has = |it: &Piece| self.has(*from, it);
        match load {
            Load::Flits { flits, .. } if self.is_whole(place) => {
                flits.iter().map(has).fold(begin, f64::max)
            }
            Load::Flits { flits, .. } => {
                let first = flits.first().map(|it| has(&one(it, it.offset)));
                first.map_or(begin, |first| begin.max(first))
            }
            Load::Control | Load::Count(_) => begin,
        }
    }

    fn is_whole(&self, place: usize) -> bool {
        let Sent { from, to, load, .. } = &self.all[place];
        let is_whole = matches!(load, Load::Flits { is_whole: true, .. });
        is_whole || self.model.link(self.tree, *from, *to).setup_ns > 0.0
    }

    fn control(&mut self, place: usize) {
        let Sent { from, to, .. } = self.all[place];
        let link = self.model.link(self.tree, from, to);
        let takes = link.ns_per_byte * self.model.control_bytes as f64;
        let begin = self.permitted(place);
        let free = self.sends.entry(self.port(from, to)).or_default();
        // The packet that it interrupts is delayed.
        *free = free.max(begin) + takes;
        self.arrived[place] = begin + takes + link.latency_ns;
    }

    fn packet(&mut self, place: usize) {
        let all = self.all;
        match &all[place].load {
            Load::Flits { flits, .. } if self.is_whole(place) => self.flits(place, flits),
            Load::Flits { flits, .. } => {
                for piece in flits {
                    for offset in piece.offset..piece.offset + piece.flits {
                        self.flits(place, &[one(piece, offset)]);
                    }
                }
            }
            Load::Count(flits) => {
                for _ in 0..*flits {
                    self.cross(place, self.permitted(place), 1);
                }
            }
            Load::Control => {}
        }
    }

    /// Sends flits in one packet.
    fn flits(&mut self, place: usize, pieces: &[Piece]) {
        let Sent { from, to, .. } = self.all[place];
        let mut behind: u64 = pieces.iter().map(|it| it.flits).sum();
        let ready = pieces.iter().map(|it| self.has(from, it));
        let ready = ready.fold(self.permitted(place), f64::max);
        let arrived = self.cross(place, ready, behind);
        let link = self.model.link(self.tree, from, to);
        for piece in pieces {
            behind -= piece.flits;
            let here = arrived - link.occupied_ns(0, behind * self.flit_bytes);
            for flit in piece.offset..piece.offset + piece.flits {
                self.here.insert((to, piece.message, flit), here);
            }
        }
    }

    /// Sends a packet that is there at `ready`; returns its arrival.
    fn cross(&mut self, place: usize, ready: f64, flits: u64) -> f64 {
        let Sent { from, to, .. } = self.all[place];
        let link = self.model.link(self.tree, from, to);
        let takes = link.occupied_ns(1, flits * self.flit_bytes);
        let (sends, takes_at) = (self.port(from, to), self.port(to, from));
        let sent = self.sends.entry(sends).or_default();
        *sent = sent.max(ready) + takes;
        let there = *sent + link.latency_ns;
        let taken = self.takes.entry(takes_at).or_default();
        *taken = there.max(*taken + takes);
        self.arrived[place] = *taken;
        self.whole.time_ns = self.whole.time_ns.max(*taken);
        self.whole.packets += 1;
        *taken
    }
}

/// Returns the crossings of a plan that lists flits and control items step by step.
pub fn of_crossings(crossings: &[Crossing]) -> Vec<Sent> {
    let all = crossings.iter().map(|crossing| {
        let load = match crossing.item {
            Item::Control(_) => Load::Control,
            Item::Flit { message, index } => Load::Flits {
                flits: vec![Piece {
                    message: message.id,
                    offset: index - 1,
                    flits: 1,
                }],
                is_whole: false,
            },
        };
        Sent::new(crossing.step, [crossing.from, crossing.to], load)
    });
    all.collect()
}

/// Returns the crossings of a static schedule. With `are_whole`, its packets are whole, whatever the
/// links.
pub fn of_hops(hops: &[ScheduledHop], are_whole: bool) -> Vec<Sent> {
    let mut all: Vec<Sent> = Vec::new();
    // The last packet of each sender to each receiver.
    let mut last: BTreeMap<[PeId; 2], usize> = BTreeMap::new();
    for hop in hops {
        let ends = [hop.from, hop.to];
        let flits = |place, flits| Piece {
            message: hop.message,
            offset: hop.offset + place,
            flits,
        };
        let packet = |place, number| {
            let load = Load::Flits {
                flits: vec![flits(place, number)],
                is_whole: are_whole,
            };
            Sent::new(hop.first_step + place * hop.every, ends, load)
        };
        let joined = last.get(&ends).filter(|_| hop.packing == Packing::Joins);
        match (hop.packing, joined.map(|place| &mut all[*place].load)) {
            (_, Some(Load::Flits { flits: joined, .. })) => joined.push(flits(0, hop.flits)),
            (Packing::Flits, _) => all.extend((0..hop.flits).map(|place| packet(place, 1))),
            _ => {
                last.insert(ends, all.len());
                all.push(packet(0, hop.flits));
            }
        }
    }
    all
}

/// Returns the packets of a gossip on a network; each goes from its first PE directly to its last.
/// With `are_whole`, a packet leaves when all of it is there, whatever the links.
pub fn of_gossip(gossip: &Gossip, are_whole: bool) -> Vec<Sent> {
    let steps = (1..).zip(gossip.steps());
    let all = steps.flat_map(|(step, packets)| {
        packets.packets.into_iter().map(move |packet| {
            let pieces = gossip.blocks.pieces(packet.class, &packet.flits);
            let load = Load::Flits {
                flits: pieces.collect(),
                is_whole: are_whole,
            };
            Sent::new(step, [packet.from, packet.to], load)
        })
    });
    all.collect()
}

/// Returns the crossings of a baseline, whose ends are neighbours. A step here is the number of
/// transfers that one waits for in succession.
pub fn of_transfers(transfers: &[Transfer]) -> Vec<Sent> {
    let mut all: Vec<Sent> = Vec::new();
    for transfer in transfers {
        let before = transfer.after.iter().map(|before| all[*before].step);
        all.push(Sent {
            step: 1 + before.max().unwrap_or(0),
            from: transfer.from,
            to: transfer.to,
            load: match transfer.control {
                true => Load::Control,
                false => Load::Count(transfer.flits),
            },
            after: transfer.after.clone(),
        });
    }
    all
}
